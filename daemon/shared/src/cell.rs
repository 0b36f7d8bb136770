//! Collective cells: the ranks of a communicator on one node exchange small values in shared memory.
//!
//! A cell serves the operations of its communicator in order. Operation `g` uses half `g % 2`; a rank that starts
//! operation `g` first makes sure that everybody has left operation `g - 2`, whose half it is about to use.
//! The last rank to arrive at an operation combines what the others left there, so every rank is switched in once.
//! Death story: a rank that never arrives leaves the others SUSPENDED (Wait::Cell); its death ends the job, or, in a job that survives it,
//! wakes them and ends the operation with an error. The cell is then never used again; it stays taken.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of one cell, head included.
pub const CELL_BYTES: u64 = 65536;

/// Bytes of one half's data.
pub const HALF_BYTES: usize = (CELL_BYTES as usize - size_of::<CellHead>()) / 2;

/// Head of a cell. All-zero is a cell nobody has used.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CellHead {
    /// Ranks that have arrived at the operation of each half; fetch_add by each, reset by the last.
    arrived: [AtomicU32; 2],
    /// For each half the number (plus 1) of the operation whose result lies there.
    posted: [AtomicU64; 2],
    /// For each half the sum over all ranks of its operations that they have left.
    left: [AtomicU64; 2],
    /// Members that have freed the communicator.
    released: AtomicU32,
    /// A rank waits for a half to become free; set by it, taken by the rank whose leaving may have freed it.
    wanted: AtomicU32,
    reserved: [u32; 4],
}

/// A cell as a communicator of `size` ranks uses it.
#[derive(Copy, Clone)]
pub struct Cell<'a> {
    pub head: &'a CellHead,
    pub data: *mut u8,
    pub size: u32,
}

impl CellHead {
    /// Nobody uses the cell any more: as a cell nobody has used.
    pub fn reset(&self) {
        for word in self.arrived.iter().chain([&self.released, &self.wanted]) {
            word.store(0, Ordering::Relaxed);
        }
        for word in self.posted.iter().chain(&self.left) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Cell<'_> {
    /// Room for each rank's contribution (and as much for the result), bytes.
    #[inline]
    pub fn slot_bytes(size: u32) -> usize {
        (HALF_BYTES / (size as usize + 1)) & !7
    }

    /// Address of the contribution of `rank` in operation `number`; the result's is that of rank `size`.
    #[inline]
    pub fn slot(&self, number: u64, rank: u32) -> *mut u8 {
        let offset = (number % 2) as usize * HALF_BYTES + rank as usize * Self::slot_bytes(self.size);
        // SAFETY: rank <= size, so inside the half.
        unsafe { self.data.add(offset) }
    }

    /// The whole half of operation `number`.
    #[inline]
    pub fn half(&self, number: u64) -> *mut u8 {
        // SAFETY: inside the cell.
        unsafe { self.data.add((number % 2) as usize * HALF_BYTES) }
    }

    /// May operation `number` use its half?
    #[inline]
    pub fn is_free(&self, number: u64) -> bool {
        self.head.left[(number % 2) as usize].load(Ordering::SeqCst) >= u64::from(self.size) * (number / 2)
    }

    /// The half of operation `number` was not free: ask to be woken when that may have changed, and look again.
    #[cold]
    pub fn want(&self, number: u64) -> bool {
        self.head.wanted.store(1, Ordering::SeqCst);
        self.is_free(number)
    }

    /// This rank has arrived at operation `number`; true if it is the last one.
    #[inline]
    pub fn arrive(&self, number: u64) -> bool {
        let arrived = &self.head.arrived[(number % 2) as usize];
        let last = arrived.fetch_add(1, Ordering::SeqCst) + 1 == self.size;
        if last {
            arrived.store(0, Ordering::Relaxed);
        }
        last
    }

    /// The result of operation `number` is there. The caller then wakes those who wait.
    #[inline]
    pub fn post(&self, number: u64) {
        self.head.posted[(number % 2) as usize].store(number + 1, Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC A: before the look at the states
    }

    #[inline]
    pub fn is_posted(&self, number: u64) -> bool {
        self.head.posted[(number % 2) as usize].load(Ordering::SeqCst) == number + 1
    }

    /// This rank is done with operation `number`. True if that may let somebody start one (who then must be woken).
    #[inline]
    pub fn leave(&self, number: u64) -> bool {
        let left = self.head.left[(number % 2) as usize].fetch_add(1, Ordering::SeqCst) + 1;
        left.is_multiple_of(u64::from(self.size))
            && self.head.wanted.load(Ordering::SeqCst) != 0
            && self.head.wanted.swap(0, Ordering::SeqCst) != 0
    }

    /// A member frees the communicator; true for the last of `members`, after which the cell is as new.
    pub fn release(&self, members: u32) -> bool {
        if self.head.released.fetch_add(1, Ordering::SeqCst) + 1 < members {
            return false;
        }
        // Operations that were given up (a revoked communicator's) may have left something.
        for word in self.head.arrived.iter().chain([&self.head.wanted]) {
            word.store(0, Ordering::Relaxed);
        }
        for word in self.head.posted.iter().chain(&self.head.left) {
            word.store(0, Ordering::Relaxed);
        }
        self.head.released.store(0, Ordering::SeqCst);
        true
    }
}
