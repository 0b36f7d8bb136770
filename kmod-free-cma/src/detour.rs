//! Copies that the processor makes slowly.
//!
//! The kernel copies by `rep movsb` where processors are said to be good at that. Those of AMD with fast short string moves (Zen 3 and later) take four times as long (2.3 GB/s here
//! instead of 10.5) if the target lies 1 to 31 bytes behind the source in its page. It does where two blocks of whole pages come from
//! malloc's heap, one after the other: 16 bytes of malloc's own lie between. Such a copy takes the way through a buffer that lies well to both; the second
//! copy, in the cache, costs a fifth.
#![allow(unsafe_code)]

use crate::Block;
use nix::errno::Errno;
use std::cell::Cell;
use std::sync::LazyLock;

const PAGE_BYTES: u64 = 4096;
/// The target lies less than so many bytes behind the source.
const TOO_NEAR_BYTES: u64 = 32;
/// There the buffer lies, behind the source.
const BEHIND_BYTES: u64 = 64;
/// What is shorter takes longer for the system call.
const LEAST_BYTES: u64 = 2048;
/// What stays in the first or second cache.
const MOST_BYTES: u64 = 64 << 10;

static SLOW_HERE: LazyLock<bool> = LazyLock::new(is_such_a_processor);

#[cfg(target_arch = "x86_64")]
fn is_such_a_processor() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let (least, features) = (__cpuid(0), 7);
    let vendor = [least.ebx, least.edx, least.ecx].map(u32::to_le_bytes).concat();
    // Fast short string moves.
    vendor == b"AuthenticAMD" && least.eax >= features && __cpuid_count(features, 0).edx & 1 << 4 != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn is_such_a_processor() -> bool {
    false
}

/// So many bytes of a copy from `from` to `to` are to take the detour; `None`: it goes straight.
#[inline]
pub(crate) fn needed(from: Option<Block>, to: Option<Block>, max_bytes: u64) -> Option<u64> {
    let (from, to) = (from?, to?);
    let behind = to.addr.wrapping_sub(from.addr) % PAGE_BYTES;
    let len = from.len.min(to.len).min(max_bytes);
    let slow = (1..TOO_NEAR_BYTES).contains(&behind) && len >= LEAST_BYTES && *SLOW_HERE;
    slow.then_some(len.min(MOST_BYTES))
}

thread_local! {
    /// Kept: memory of malloc's that is given back and got again has to be found again, too.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Let `f` use a place for `MOST_BYTES` that lies well behind `source`.
fn with_place<R>(source: u64, f: impl FnOnce(*mut u8) -> R) -> R {
    // A thread that is ending has none any more.
    let mut memory = BUFFER.try_with(Cell::take).unwrap_or_default();
    memory.reserve((MOST_BYTES + PAGE_BYTES) as usize);
    let start = memory.as_mut_ptr();
    let at = source.wrapping_add(BEHIND_BYTES).wrapping_sub(start as u64) % PAGE_BYTES;
    let result = f(start.wrapping_add(at as usize));
    let _ = BUFFER.try_with(|buffer| buffer.set(memory));
    result
}

/// Read `len` bytes at `from` of another process to `to`: `read` fills a block of this one from there, and returns how many bytes it got.
///
/// # Safety
/// `to` is valid for writes.
pub(crate) unsafe fn read(
    from: u64,
    to: u64,
    len: u64,
    read: impl FnOnce(Block) -> Result<u64, Errno>,
) -> Result<u64, Errno> {
    with_place(from, |place| {
        let got = read(Block { addr: place as u64, len })?;
        // SAFETY: so many bytes have been read there, and `to` has room.
        unsafe { std::ptr::copy_nonoverlapping(place.cast_const(), to as *mut u8, got.min(len) as usize) };
        Ok(got)
    })
}

/// Write `len` bytes at `from` to another process: `write` does it from a block of this one.
///
/// # Safety
/// `from` is valid for reads.
pub(crate) unsafe fn write(from: u64, len: u64, write: impl FnOnce(Block) -> Result<u64, Errno>) -> Result<u64, Errno> {
    with_place(from, |place| {
        // SAFETY: the caller's promise; there is room for so many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, place, len as usize) };
        write(Block { addr: place as u64, len })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(addr: u64, len: u64) -> Option<Block> {
        Some(Block { addr, len })
    }

    #[test]
    fn only_what_lies_a_little_behind_takes_the_detour() {
        let way = |from, to, len| needed(block(from, len), block(to, len), u64::MAX);
        let detour = SLOW_HERE.then_some(5000);
        assert_eq!(way(0x10000, 0x20010, 5000), detour);
        assert_eq!(way(0x1fff8, 0x20008, 5000), detour, "across a page's end");
        assert_eq!(way(0x10000, 0x20001, 1 << 20), SLOW_HERE.then_some(MOST_BYTES));
        for (from, to, len) in
            [(0x10010, 0x20010, 5000), (0x10010, 0x20000, 5000), (0x10000, 0x20020, 5000), (0, 16, 2047)]
        {
            assert_eq!(way(from, to, len), None, "{from:x} {to:x} {len}");
        }
        assert_eq!(needed(None, block(16, 5000), 5000), None);
    }

    #[test]
    fn the_place_lies_well_to_both() {
        for source in [0u64, 1, 16, 4032, 4095, 0x7fff_1234] {
            with_place(source, |place| assert_eq!((place as u64).wrapping_sub(source) % PAGE_BYTES, BEHIND_BYTES));
        }
    }

    /// Both ways, whatever the processor.
    #[test]
    fn the_bytes_are_those() {
        let me = std::process::id() as i32;
        let source: Vec<u8> = (0..MOST_BYTES).map(|at| (at % 251) as u8).collect();
        for len in [1u64, 5000, MOST_BYTES] {
            let (from, wanted) = (source.as_ptr() as u64, &source[..len as usize]);
            let mut target = vec![0u8; MOST_BYTES as usize];
            let there = [Block { addr: from, len }];
            // SAFETY: the target has room.
            let got = unsafe {
                read(from, target.as_mut_ptr() as u64, len, |place| {
                    crate::read(me, &[place], &there).map_err(|_| Errno::EFAULT)
                })
            };
            assert_eq!((got, &target[..len as usize]), (Ok(len), wanted));
            let mut target = vec![0u8; MOST_BYTES as usize];
            let there = [Block { addr: target.as_mut_ptr() as u64, len }];
            // SAFETY: the source is there.
            let put =
                unsafe { write(from, len, |place| crate::write(me, &[place], &there).map_err(|_| Errno::EFAULT)) };
            assert_eq!((put, &target[..len as usize]), (Ok(len), wanted));
        }
    }
}
