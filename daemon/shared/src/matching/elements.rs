//! Messages of elements that lie in small pieces of their rank's memory: only that rank knows where, so it packs what it sends, and unpacks what it gets,
//! part by part (`pieces`), in the cache. Nobody else could do it as fast: the kernel takes half a microsecond to find a piece in another process.
//!
//! The slot of such a send, its announcement, and the slot of a receive for which that holds have `FLAG_ELEMENTS`.

use super::envelope::{self, Envelope};
use super::request::{self, Slot};
use std::sync::OnceLock;

/// How a process reaches the elements of its own messages, by the number of their slot. Each function answers whether it knows that message.
#[derive(Copy, Clone)]
pub struct Reach {
    /// Pack what lies from byte `from` on to `room` bytes at `to`.
    pub pack: unsafe fn(slot: u32, from: u64, to: *mut u8, room: usize) -> bool,
    /// Unpack `len` bytes at `from` to where those from byte `at` on belong.
    pub unpack: unsafe fn(slot: u32, at: u64, from: *const u8, len: usize) -> bool,
}

/// So many bytes a block are worth the kernel's look at where it lies in another process: 32 MiB in blocks of 8 KiB take 7 ms so, and 4 packed and unpacked.
pub const LEAST_BLOCK_BYTES: u64 = 16 << 10;

static REACH: OnceLock<Reach> = OnceLock::new();

/// Said once, before the first message.
pub fn set_reach(reach: Reach) {
    let _ = REACH.set(reach);
}

/// Pack a part of what this process's slot sends.
///
/// # Panics
/// The process sends no elements by it: what stands in the segment is damaged.
///
/// # Safety
/// `to` has room for so many bytes.
pub(crate) unsafe fn pack(slot: u32, from: u64, to: *mut u8, room: usize) {
    // SAFETY: passed on.
    let packed = REACH.get().is_some_and(|reach| unsafe { (reach.pack)(slot, from, to, room) });
    assert!(packed, "request {slot} is damaged: no elements are sent by it");
}

/// Unpack a part of what this process's slot receives.
///
/// # Panics
/// As `pack`.
///
/// # Safety
/// `from` holds so many bytes.
pub(crate) unsafe fn unpack(slot: u32, at: u64, from: *const u8, len: usize) {
    // SAFETY: passed on.
    let unpacked = REACH.get().is_some_and(|reach| unsafe { (reach.unpack)(slot, at, from, len) });
    assert!(unpacked, "request {slot} is damaged: no elements are received by it");
}

/// Can only its sender pack this message, or only its receiver unpack it?
#[inline]
pub(crate) fn are_elements(envelope: &Envelope, slot: &Slot) -> bool {
    envelope.flags & envelope::FLAG_ELEMENTS != 0 || slot.flags & request::FLAG_ELEMENTS != 0
}
