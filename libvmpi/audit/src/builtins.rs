//! What compiled code calls without having been asked to, and the C library has elsewhere.

use core::ffi::{c_int, c_void};

/// # Safety
/// As memcpy(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    for at in 0..len {
        // SAFETY: the caller's.
        unsafe { *to.add(at) = *from.add(at) };
    }
    to
}

/// # Safety
/// As memmove(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    if to.cast_const() <= from {
        // SAFETY: the caller's; from the front nothing is overwritten that is still to be read.
        return unsafe { memcpy(to, from, len) };
    }
    for at in (0..len).rev() {
        // SAFETY: the caller's.
        unsafe { *to.add(at) = *from.add(at) };
    }
    to
}

/// # Safety
/// As memset(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, len: usize) -> *mut c_void {
    for at in 0..len {
        // SAFETY: the caller's.
        unsafe { *to.cast::<u8>().add(at) = byte as u8 };
    }
    to
}

/// # Safety
/// As memcmp(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, len: usize) -> c_int {
    for at in 0..len {
        // SAFETY: the caller's.
        let (one, other) = unsafe { (*a.add(at), *b.add(at)) };
        if one != other {
            return c_int::from(one) - c_int::from(other);
        }
    }
    0
}

/// # Safety
/// As strlen(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn strlen(text: *const u8) -> usize {
    let mut len = 0;
    // SAFETY: the caller's.
    while unsafe { *text.add(len) } != 0 {
        len += 1;
    }
    len
}

/// Named in the unwind tables of `core`; nothing unwinds here.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}
