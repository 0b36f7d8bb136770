//! Collective cells: the ranks of a communicator on one node exchange small values in shared memory.
//!
//! A cell serves the operations of its communicator in order. Operation `g` uses half `g % 2`; a rank that starts
//! operation `g` first makes sure that everybody has left operation `g - 2`, whose half it is about to use.
//! The last rank to arrive at an operation combines what the others left there, so every rank is switched in once.
//! The ranks of a core are a group: they count in a line of their own, and only the last one of them in the line of all, so that the
//! lines do not travel between cores for every rank.
//! Death story: a rank that never arrives leaves the others SUSPENDED (Wait::Cell); its death ends the job, or, in a job that survives it,
//! wakes them and ends the operation with an error. The cell is then never used again; it stays taken.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// Bytes of one cell, head included.
pub const CELL_BYTES: u64 = 65536;

/// Bytes of one half's data.
pub const HALF_BYTES: usize = (CELL_BYTES as usize - size_of::<CellHead>()) / 2;

/// Most groups of a cell; where there are more cores, some share one.
pub const GROUPS: usize = 16;

/// Head of a cell. All-zero is a cell nobody has used.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CellHead {
    /// Groups that have arrived at the operation of each half; fetch_add by the last of each, reset by the last.
    arrived: [AtomicU32; 2],
    /// For each half the number (plus 1) of the operation whose result lies there.
    posted: [AtomicU64; 2],
    /// Members that have freed the communicator.
    released: AtomicU32,
    /// A rank waits for a half to become free; set by it, taken by the rank whose leaving may have freed it.
    wanted: AtomicU32,
    reserved: [u64; 4],
    groups: [GroupHead; GROUPS],
}

/// What the members of one group count.
#[repr(C, align(64))]
#[derive(Default)]
struct GroupHead {
    /// Members that have arrived at the operation of each half; fetch_add by each, reset by the last.
    arrived: [AtomicU32; 2],
    /// For each half the sum over the members of its operations that they have left.
    left: [AtomicU64; 2],
    /// For each half the number (plus 1) of the operation whose end a member passes on to the others of the group.
    told: [AtomicU64; 2],
    reserved: [u64; 3],
}

/// How the ranks of a communicator are spread over the groups of its cell: the same at all of them, but for `mine`.
#[derive(Clone, Debug)]
pub struct Groups {
    size: u32,
    mine: usize,
    members: [u32; GROUPS],
}

impl Groups {
    /// The group of the ranks of core `core`.
    pub fn of_core(core: u32) -> usize {
        core as usize % GROUPS
    }

    /// As a rank of core `mine` sees them, given the core of each rank.
    pub fn new(mine: u32, cores: impl Iterator<Item = u32>) -> Groups {
        let mut members = [0; GROUPS];
        cores.for_each(|core| members[Self::of_core(core)] += 1);
        Groups { size: members.iter().sum(), mine: Self::of_core(mine), members }
    }

    fn used(&self) -> u32 {
        self.members.iter().filter(|members| **members != 0).count() as u32
    }

    /// Are all of them in one group?
    #[inline]
    pub fn is_one(&self) -> bool {
        self.members[self.mine] == self.size
    }
}

/// A cell as a rank of a communicator uses it.
#[derive(Copy, Clone)]
pub struct Cell<'a> {
    pub head: &'a CellHead,
    pub data: *mut u8,
    pub groups: &'a Groups,
}

impl CellHead {
    /// Nobody uses the cell any more: as a cell nobody has used. Operations that were given up (a revoked communicator's) may have left
    /// something.
    pub fn reset(&self) {
        let clear = |counts: &[AtomicU32; 2], numbers: &[AtomicU64; 2]| {
            counts.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            numbers.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        };
        clear(&self.arrived, &self.posted);
        for group in &self.groups {
            clear(&group.arrived, &group.left);
            group.told.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        self.wanted.store(0, Ordering::Relaxed);
        self.released.store(0, Ordering::SeqCst);
    }

    /// A member frees the communicator; true for the last of `members`, after which the cell is as new.
    pub fn release(&self, members: u32) -> bool {
        let last = self.released.fetch_add(1, Ordering::SeqCst) + 1 >= members;
        if last {
            self.reset();
        }
        last
    }
}

impl Cell<'_> {
    /// Most bytes that each rank can contribute.
    #[inline]
    pub fn slot_bytes(size: u32) -> usize {
        (HALF_BYTES / (size as usize + 1)) & !7
    }

    /// Address of the contribution of `rank` in operation `number`, each of `bytes` bytes (at most [`Cell::slot_bytes`]); the result's is
    /// that of rank `size`.
    #[inline]
    pub fn slot(&self, number: u64, rank: u32, bytes: usize) -> *mut u8 {
        debug_assert!(rank <= self.groups.size && bytes <= Self::slot_bytes(self.groups.size));
        let offset = (number % 2) as usize * HALF_BYTES + rank as usize * bytes.next_multiple_of(8);
        // SAFETY: rank <= size, and size + 1 slots of slot_bytes, which `bytes` does not exceed, fit into the half.
        unsafe { self.data.add(offset) }
    }

    /// The whole half of operation `number`.
    #[inline]
    pub fn half(&self, number: u64) -> *mut u8 {
        // SAFETY: inside the cell.
        unsafe { self.data.add((number % 2) as usize * HALF_BYTES) }
    }

    #[inline]
    fn own(&self) -> &GroupHead {
        &self.head.groups[self.groups.mine]
    }

    /// May operation `number` use its half?
    pub fn is_free(&self, number: u64) -> bool {
        let (half, before) = ((number % 2) as usize, number / 2);
        let left = |(group, members): (&GroupHead, &u32)| {
            group.left[half].load(Ordering::SeqCst) >= u64::from(*members) * before
        };
        self.head.groups.iter().zip(&self.groups.members).all(left)
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
        let half = (number % 2) as usize;
        let last_of = |arrived: &AtomicU32, all: u32| {
            let last = arrived.fetch_add(1, Ordering::SeqCst) + 1 == all;
            if last {
                arrived.store(0, Ordering::Relaxed);
            }
            last
        };
        last_of(&self.own().arrived[half], self.groups.members[self.groups.mine])
            && (self.groups.is_one() || last_of(&self.head.arrived[half], self.groups.used()))
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

    /// This rank has seen the end of operation `number`: is it the one of its group that tells the others?
    #[inline]
    pub fn tells(&self, number: u64) -> bool {
        let told = &self.own().told[(number % 2) as usize];
        told.load(Ordering::SeqCst) != number + 1 && told.swap(number + 1, Ordering::SeqCst) != number + 1
    }

    /// This rank is done with operation `number`. True if that may let somebody start one (who then must be woken).
    #[inline]
    pub fn leave(&self, number: u64) -> bool {
        let left = self.own().left[(number % 2) as usize].fetch_add(1, Ordering::SeqCst) + 1;
        left.is_multiple_of(u64::from(self.groups.members[self.groups.mine]))
            && self.head.wanted.load(Ordering::SeqCst) != 0
            && self.head.wanted.swap(0, Ordering::SeqCst) != 0
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn groups_are_cores() {
        let groups = Groups::new(1, [0, 0, 1, 17, 2].into_iter());
        assert_eq!((groups.size, groups.mine, groups.used(), groups.is_one()), (5, 1, 3, false));
        assert_eq!(groups.members[..4], [2, 2, 1, 0]);
        assert!(Groups::new(3, [3, 3].into_iter()).is_one());
    }
}
