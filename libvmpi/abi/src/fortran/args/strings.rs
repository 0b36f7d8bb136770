//! CHARACTER arguments: blanks at the end in Fortran, a NUL in C.

use super::Arg;
use crate::abi::Abi;
use std::ffi::{c_char, c_int, c_void};

/// A CHARACTER going in: leading and trailing blanks are not part of it.
pub enum StrIn {}
impl<A: Abi> Arg<A> for StrIn {
    type Held = Vec<u8>;
    type Passed = *mut c_char;
    unsafe fn take(arg: *mut c_void, len: usize) -> Vec<u8> {
        // SAFETY: `arg` has `len` characters.
        let mut string = trimmed(unsafe { std::slice::from_raw_parts(arg.cast(), len) }).to_vec();
        string.push(0);
        string
    }
    fn pass(held: &mut Vec<u8>) -> *mut c_char {
        held.as_mut_ptr().cast()
    }
}

/// `string` without blanks at either end.
pub fn trimmed(string: &[u8]) -> &[u8] {
    let end = string.iter().rposition(|&c| c != b' ').map_or(0, |i| i + 1);
    let start = string[..end].iter().position(|&c| c != b' ').unwrap_or(end);
    &string[start..end]
}

/// A CHARACTER coming out of a call that succeeds: padded with blanks, or cut off.
pub enum StrOut {}
impl<A: Abi> Arg<A> for StrOut {
    type Held = HeldString;
    type Passed = *mut c_char;
    unsafe fn take(arg: *mut c_void, len: usize) -> HeldString {
        let mut buffer = vec![0; longest_string::<A>().max(len) + 1];
        buffer[0] = NOT_WRITTEN;
        HeldString { arg: arg.cast(), len, buffer }
    }
    fn pass(held: &mut HeldString) -> *mut c_char {
        held.buffer.as_mut_ptr().cast()
    }
    unsafe fn give(held: HeldString, code: c_int) {
        if code != 0 || held.buffer[0] == NOT_WRITTEN {
            return;
        }
        // SAFETY: the CHARACTER has `len` characters.
        blank_padded(&held.buffer, unsafe { std::slice::from_raw_parts_mut(held.arg, held.len) });
    }
}

/// A C string in the making, and the CHARACTER that it goes to.
pub struct HeldString {
    arg: *mut u8,
    len: usize,
    buffer: Vec<u8>,
}

/// First byte of a string that the call has not written; in UTF-8 no string starts so.
const NOT_WRITTEN: u8 = 0xFF;

fn longest_string<A: Abi>() -> usize {
    [
        A::MAX_PROCESSOR_NAME,
        A::MAX_ERROR_STRING,
        A::MAX_OBJECT_NAME,
        A::MAX_INFO_KEY,
        A::MAX_INFO_VAL,
        A::MAX_LIBRARY_VERSION_STRING,
        A::MAX_PORT_NAME,
    ]
    .into_iter()
    .fold(0, usize::max)
}

/// Copy the NUL-terminated `from` to the Fortran string `to`.
pub fn blank_padded(from: &[u8], to: &mut [u8]) {
    let length = from.iter().position(|&c| c == 0).unwrap_or(from.len()).min(to.len());
    to[..length].copy_from_slice(&from[..length]);
    to[length..].fill(b' ');
}
