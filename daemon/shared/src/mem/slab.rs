//! Blocks for eager payloads: each sender owns a region, takes blocks from it and gets them back from receivers.
//!
//! Only the owner takes (its process, under its entry lock); anyone gives back, by pushing on a list that the owner
//! empties whole (no ABA problem). An exhausted region is an ordinary answer: the sender then puts a small payload into a chunk of the
//! job's (`chunks`), or lets the receiver come for the data.

use super::chunks::{Chunks, Filling};
use crate::mem::sync::{AtomicU64, Ordering};

/// Block sizes.
pub const CLASS_BYTES: [u64; 8] = [512, 2048, 8192, 16384, 65536, 131072, 262144, 524288];

/// The block for what goes in parts (pieces, asks), and the largest payload for another node. From this size on blocks leave a quarter of the region to smaller
/// ones: a block keeps its size for ever, and without one small messages, too, would have to be asked for.
pub const PART_BYTES: u64 = 65536;

/// The largest block.
pub const LARGEST_BYTES: u64 = CLASS_BYTES[CLASS_BYTES.len() - 1];

/// A region's lists. Offsets count from the start of the job segment; 0 is none.
#[repr(C, align(64))]
#[derive(Default)]
pub struct SlabHead {
    /// Blocks given back, linked through their first word; pushed by receivers, emptied by the owner.
    pub returned: [AtomicU64; CLASS_BYTES.len()],
    /// Blocks at hand, linked likewise; the owner.
    pub free: [AtomicU64; CLASS_BYTES.len()],
    /// Bytes of the region never used so far; the owner.
    pub untouched: AtomicU64,
    /// Where payloads go for which no block is left; the owner.
    filling: Filling,
    reserved0: [u64; 6],
}

/// A sender's region.
#[derive(Copy, Clone)]
pub struct Slab<'a> {
    pub head: &'a SlabHead,
    /// Where the job segment's start lies, seen from this region.
    pub base: *mut u8,
    /// Offset of the region.
    pub start: u64,
    pub of_job: &'a Regions,
}

/// What is the same for all regions of a job.
pub struct Regions {
    /// Length of each.
    pub bytes: u64,
    /// For what has no room there.
    pub chunks: Chunks,
}

/// The class of a payload of `len` bytes; `None` if it fits no block.
#[inline]
pub fn class_of(len: u64) -> Option<usize> {
    CLASS_BYTES.iter().position(|bytes| len <= *bytes)
}

impl Slab<'_> {
    /// Length of the region.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.of_job.bytes
    }

    #[inline]
    fn link(&self, block: u64) -> &AtomicU64 {
        assert!(
            block >= self.start && block + 8 <= self.start + self.bytes() && block.is_multiple_of(64),
            "slab offset {block} is damaged"
        );
        // SAFETY: inside the region, aligned; a free block's first word is its link.
        unsafe { &*self.base.wrapping_add(block as usize).cast::<AtomicU64>() }
    }

    /// Address of `len` bytes at an offset; `None` if it is neither inside the region nor a payload's outside.
    #[inline]
    pub fn block(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let inside = offset >= self.start && offset.checked_add(len)? <= self.start + self.bytes();
        if inside { Some(self.base.wrapping_add(offset as usize)) } else { self.of_job.chunks.payload(offset, len) }
    }

    /// As `take` for rank `owner`, whose region this is, and where that is used up out of the job's chunks, up to [`PART_BYTES`].
    #[inline]
    pub fn take_or_put(&self, owner: u32, len: u64) -> Option<u64> {
        match self.take(len) {
            None if len <= PART_BYTES => self.of_job.chunks.put(owner, &self.head.filling, len),
            taken => taken,
        }
    }

    /// Take a block of at least `len` bytes (the owner only); `None` if the region is used up.
    #[inline]
    pub fn take(&self, len: u64) -> Option<u64> {
        let class = class_of(len)?;
        let free = &self.head.free[class];
        let mut block = free.load(Ordering::Relaxed);
        if block == 0 {
            block = self.head.returned[class].swap(0, Ordering::Acquire); // SYNC E: with give's release
        }
        if block != 0 {
            free.store(self.link(block).load(Ordering::Relaxed), Ordering::Relaxed);
            return Some(block);
        }
        let used = self.head.untouched.load(Ordering::Relaxed);
        let size = CLASS_BYTES[class];
        let room = if size < PART_BYTES { self.bytes() } else { self.bytes() / 4 * 3 };
        if used + size > room {
            return None;
        }
        self.head.untouched.store(used + size, Ordering::Relaxed);
        Some(self.start + used)
    }

    /// The block that the next payload of `len` bytes will most likely lie in, if it is at hand (the owner only).
    #[inline]
    pub(super) fn next(&self, len: u64) -> Option<u64> {
        let class = class_of(len)?;
        let at_hand = |list: &AtomicU64| Some(list.load(Ordering::Relaxed)).filter(|block| *block != 0);
        at_hand(&self.head.free[class]).or_else(|| at_hand(&self.head.returned[class]))
    }

    /// Give a block of a payload of `len` bytes back (anyone).
    #[inline]
    pub fn give(&self, block: u64, len: u64) {
        if block.wrapping_sub(self.start) >= self.bytes() {
            return self.of_job.chunks.received(block);
        }
        let Some(class) = class_of(len) else { return };
        let returned = &self.head.returned[class];
        let mut first = returned.load(Ordering::Relaxed);
        loop {
            self.link(block).store(first, Ordering::Relaxed);
            match returned.compare_exchange_weak(first, block, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return, // SYNC E
                Err(now) => first = now,
            }
        }
    }
}
