//! Copying elements to and from packed bytes, any part of them.

#![allow(unsafe_code)]

use super::Type;
use super::node::Sink;

/// Runs up to this length are copied by fixed-size moves in strided loops.
macro_rules! copy_strided {
    ($len:expr; $($n:literal)*; $from:expr, $from_step:expr, $to:expr, $to_step:expr, $count:expr) => {
        match $len {
            $($n => for i in 0..$count as isize {
                // SAFETY: the caller of the enclosing function answers for every run of the type; copies of
                // `[u8; N]` need no alignment.
                unsafe {
                    let bytes = $from.wrapping_offset(i.wrapping_mul($from_step)).cast::<[u8; $n]>().read();
                    $to.wrapping_offset(i.wrapping_mul($to_step)).cast::<[u8; $n]>().write(bytes);
                }
            },)*
            len => for i in 0..$count as isize {
                // SAFETY: as above; user memory and packed bytes do not overlap.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        $from.wrapping_offset(i.wrapping_mul($from_step)),
                        $to.wrapping_offset(i.wrapping_mul($to_step)),
                        len as usize,
                    );
                }
            },
        }
    };
}

/// Copy a run; the short lengths of struct members without a call to memcpy (structs pack twice as fast).
///
/// # Safety
/// As `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy_run(from: *const u8, to: *mut u8, len: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match len {
            1 => to.write(from.read()),
            4 => to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
            8 => to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
            12 => to.cast::<[u8; 12]>().write(from.cast::<[u8; 12]>().read()),
            16 => to.cast::<[u8; 16]>().write(from.cast::<[u8; 16]>().read()),
            len => std::ptr::copy_nonoverlapping(from, to, len as usize),
        }
    }
}

struct Packer {
    user: *const u8,
    packed: *mut u8,
}

impl Sink for Packer {
    #[inline]
    fn run(&mut self, offset: i64, len: u64) -> bool {
        // SAFETY: `pack`'s caller answers for the user's memory; `pack` bounds the walk by the length of the output.
        unsafe { copy_run(self.user.wrapping_offset(offset as isize), self.packed, len) };
        self.packed = self.packed.wrapping_add(len as usize);
        true
    }
    fn strided(&mut self, offset: i64, count: u64, stride: i64, len: u64) -> bool {
        let (from, to) = (self.user.wrapping_offset(offset as isize), self.packed);
        copy_strided!(len; 1 2 4 8 12 16 24 32; from, stride as isize, to, len as isize, count);
        self.packed = self.packed.wrapping_add((len * count) as usize);
        true
    }
}

struct Unpacker {
    user: *mut u8,
    packed: *const u8,
}

impl Sink for Unpacker {
    #[inline]
    fn run(&mut self, offset: i64, len: u64) -> bool {
        // SAFETY: `unpack`'s caller answers for the user's memory; `unpack` bounds the walk by the length of the data.
        unsafe { copy_run(self.packed, self.user.wrapping_offset(offset as isize), len) };
        self.packed = self.packed.wrapping_add(len as usize);
        true
    }
    fn strided(&mut self, offset: i64, count: u64, stride: i64, len: u64) -> bool {
        let (from, to) = (self.packed, self.user.wrapping_offset(offset as isize));
        copy_strided!(len; 1 2 4 8 12 16 24 32; from, len as isize, to, stride as isize, count);
        self.packed = self.packed.wrapping_add((len * count) as usize);
        true
    }
}

/// Packed bytes between `skip` and the end of the data, at most `room`.
fn clip(ty: &Type, count: u64, skip: u64, room: usize) -> u64 {
    ty.size().saturating_mul(count).saturating_sub(skip).min(room as u64)
}

/// Copy packed bytes `[skip, skip + out.len())` of `count` elements at `buf` to `out`; returns the bytes copied (less
/// at the end of the data).
///
/// # Safety
/// `buf` must hold `count` elements, none of them in `out`.
pub unsafe fn pack(ty: &Type, count: u64, buf: *const u8, skip: u64, out: &mut [u8]) -> usize {
    // SAFETY: passed on.
    unsafe { pack_to(ty, count, buf, skip, out.as_mut_ptr(), out.len()) }
}

/// As `pack`, to `room` bytes that may hold nothing yet.
///
/// # Safety
/// As there; `out` is valid for so many.
pub unsafe fn pack_to(ty: &Type, count: u64, buf: *const u8, skip: u64, out: *mut u8, room: usize) -> usize {
    let bytes = clip(ty, count, skip, room);
    ty.walk(count, skip, skip.saturating_add(bytes), &mut Packer { user: buf, packed: out });
    bytes as usize
}

/// The reverse: copy `data` to where packed bytes `[skip, ..)` of `count` elements at `buf` lie; returns the bytes
/// copied.
///
/// # Safety
/// `buf` must have room for `count` elements, none of them in `data`.
pub unsafe fn unpack(ty: &Type, count: u64, buf: *mut u8, skip: u64, data: &[u8]) -> usize {
    let bytes = clip(ty, count, skip, data.len());
    ty.walk(count, skip, skip.saturating_add(bytes), &mut Unpacker { user: buf, packed: data.as_ptr() });
    bytes as usize
}
