//! Collective cells: the ranks of a communicator on one node exchange small values in shared memory.
//!
//! A cell serves the operations of its communicator in order. Operation `g` uses lane `g % LANES`; a rank that starts it first makes sure that everybody
//! has left operation `g - LANES`, whose lane it is about to use. So a rank that need not wait for the others (the root of a broadcast, a leaf of a
//! reduction) runs ahead by so many, and each of the others then does as many when it is switched in. What does not fit into one lane takes
//! several ([`Turn`]).
//! The last rank to arrive at an operation combines what the others left there, so every rank is switched in once.
//! The ranks of a core are a group: they count in a line of their own, and only the last one of them in the line of all, so that the
//! lines do not travel between cores for every rank.
//! Death story: a rank that never arrives leaves the others SUSPENDED (Wait::Cell); its death ends the job, or, in a job that survives it,
//! wakes them and ends the operation with an error. The cell is then never used again; it stays taken.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// So many operations of a cell may be under way. Model tests go round sooner.
pub const LANES: usize = if cfg!(feature = "model") { 8 } else { 64 };

const LANE_BYTES: usize = 2048;

/// Most bytes of data of one operation, which takes as many lanes, side by side, as it needs. Two of the largest may be under way.
pub const DATA_BYTES: usize = LANES / 2 * LANE_BYTES;

/// Where a cell's data begin.
pub(crate) const DATA_AT: usize = size_of::<CellHead>().next_multiple_of(4096);

/// Bytes of one cell, head included.
pub const CELL_BYTES: u64 = (DATA_AT + LANES * LANE_BYTES) as u64;

/// There is no result: the members disagree about how much it is, or it could not be had.
pub const DISAGREED: u64 = u64::MAX;

/// Most groups of a cell; where there are more cores, some share one.
pub const GROUPS: usize = 16;

/// In [`LaneHead::passed`], the bits that count members.
const MEMBER_BITS: u32 = 24;

/// Head of a cell. All-zero is a cell nobody has used.
#[repr(C, align(64))]
#[cfg_attr(feature = "model", derive(Default))]
pub struct CellHead {
    /// Members that have freed the communicator.
    released: AtomicU32,
    /// Ranks wait until all have left an operation: `u64::MAX` less the first such one's number, 0 if none does. Raised by them, taken by the rank
    /// whose leaving may be what they wait for.
    wanted: AtomicU64,
    lanes: [LaneHead; LANES],
    groups: [GroupHead; GROUPS],
}

/// What all members, or the last one of each group, write for an operation.
#[repr(C, align(32))]
#[cfg_attr(feature = "model", derive(Default))]
struct LaneHead {
    /// The number (plus 1) of the operation whose result lies there.
    posted: AtomicU64,
    /// What the operation's result is said to be, for those who see it posted: bytes, or [`DISAGREED`].
    said: AtomicU64,
    /// Of a scan: its number, shifted by `MEMBER_BITS`, and how many members have passed their results on. Written by each in turn.
    passed: AtomicU64,
    /// Groups that have arrived; fetch_add by the last of each, reset by the last.
    arrived: AtomicU32,
}

/// What the members of one group count.
#[repr(C, align(64))]
#[cfg_attr(feature = "model", derive(Default))]
struct GroupHead {
    lanes: [GroupLane; LANES],
}

#[repr(C, align(32))]
#[cfg_attr(feature = "model", derive(Default))]
struct GroupLane {
    /// The sum over the members of its operations that they have left.
    left: AtomicU64,
    /// The number (plus 1) of the operation whose end a member passes on to the others of the group.
    told: AtomicU64,
    /// Members that have arrived; fetch_add by each, reset by the last.
    arrived: AtomicU32,
}

/// One operation of a cell: a number for each lane that it uses, a power of two of them, or passes over because they begin at a multiple of that. All
/// members find the same, from the operations before and the size of the data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    first: u64,
    number: u64,
    last: u64,
}

impl Turn {
    /// The operation after those of the first `before` numbers, with so many bytes of data in all (at most [`DATA_BYTES`]).
    #[inline]
    pub fn next(before: u64, bytes: usize) -> Turn {
        if bytes <= LANE_BYTES {
            return Turn { first: before, number: before, last: before };
        }
        let lanes = bytes.div_ceil(LANE_BYTES).next_power_of_two() as u64;
        let number = before.next_multiple_of(lanes);
        Turn { first: before, number, last: number + lanes - 1 }
    }

    /// Its first number: who arrives has left all before.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The first number of the operation after it.
    #[inline]
    pub fn after(&self) -> u64 {
        self.last + 1
    }

    /// All have left the numbers before `left`: are its lanes free then?
    #[inline]
    pub fn may_start(&self, left: u64) -> bool {
        self.last < left + LANES as u64
    }

    #[inline]
    fn lane(&self) -> usize {
        self.number as usize % LANES
    }
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
        let zero = |word: &AtomicU64| word.store(0, Ordering::Relaxed);
        for lane in &self.lanes {
            zero(&lane.posted);
            zero(&lane.said);
            zero(&lane.passed);
            lane.arrived.store(0, Ordering::Relaxed);
        }
        for lane in self.groups.iter().flat_map(|group| &group.lanes) {
            zero(&lane.left);
            zero(&lane.told);
            lane.arrived.store(0, Ordering::Relaxed);
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
    /// The data of operation `turn`.
    #[inline]
    pub fn data(&self, turn: &Turn) -> *mut u8 {
        // SAFETY: inside the cell.
        unsafe { self.data.add(turn.lane() * LANE_BYTES) }
    }

    #[inline]
    fn lane(&self, turn: &Turn) -> &LaneHead {
        &self.head.lanes[turn.lane()]
    }

    #[inline]
    fn own(&self, turn: &Turn) -> &GroupLane {
        &self.head.groups[self.groups.mine].lanes[turn.lane()]
    }

    /// Have all left the operation of this number?
    fn is_left(&self, number: u64) -> bool {
        let (lane, times) = (number as usize % LANES, number / LANES as u64 + 1);
        let left = |(group, members): (&GroupHead, &u32)| {
            *members == 0 || group.lanes[lane].left.load(Ordering::SeqCst) >= u64::from(*members) * times
        };
        self.head.groups.iter().zip(&self.groups.members).all(left)
    }

    /// May operation `turn` use its lanes? The last of them is the last to become free.
    pub fn is_free(&self, turn: &Turn) -> bool {
        turn.last.checked_sub(LANES as u64).is_none_or(|number| self.is_left(number))
    }

    /// The lanes of operation `turn` were not free. Are now half of them, so that who waits goes on for more than one operation? If not, asks to be woken
    /// when that may have changed.
    #[cold]
    pub fn want(&self, turn: &Turn) -> bool {
        // What this rank itself has left in any case.
        let Some(before) = turn.first.checked_sub(1) else { return true };
        let number = before.min(turn.last - LANES as u64 / 2);
        self.is_left(number) || {
            self.head.wanted.fetch_max(u64::MAX - number, Ordering::SeqCst);
            self.is_left(number)
        }
    }

    /// This rank has arrived at operation `turn`; true if it is the last one.
    #[inline]
    pub fn arrive(&self, turn: &Turn) -> bool {
        let last_of = |arrived: &AtomicU32, all: u32| {
            let last = arrived.fetch_add(1, Ordering::SeqCst) + 1 == all;
            if last {
                arrived.store(0, Ordering::Relaxed);
            }
            last
        };
        last_of(&self.own(turn).arrived, self.groups.members[self.groups.mine])
            && (self.groups.is_one() || last_of(&self.lane(turn).arrived, self.groups.used()))
    }

    /// The result of operation `turn` is there, of so many bytes as it says. The caller then wakes those who wait.
    #[inline]
    pub fn post(&self, turn: &Turn, bytes: u64) {
        self.lane(turn).said.store(bytes, Ordering::Relaxed);
        self.lane(turn).posted.store(turn.number + 1, Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC A: before the look at the states
    }

    #[inline]
    pub fn is_posted(&self, turn: &Turn) -> bool {
        self.lane(turn).posted.load(Ordering::SeqCst) == turn.number + 1
    }

    /// How many bytes the result of operation `turn`, which is posted, has.
    #[inline]
    pub fn said(&self, turn: &Turn) -> u64 {
        self.lane(turn).said.load(Ordering::Relaxed)
    }

    /// In operation `turn`, a scan, the member at `place` has left what it and those before it come to. The caller then wakes the next one.
    #[inline]
    pub fn pass(&self, turn: &Turn, place: u32) {
        self.lane(turn).passed.store(Self::passed(turn, place), Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC A: before the look at the state
    }

    /// Has the member at `place` done that?
    #[inline]
    pub fn has_passed(&self, turn: &Turn, place: u32) -> bool {
        self.lane(turn).passed.load(Ordering::SeqCst) >= Self::passed(turn, place)
    }

    fn passed(turn: &Turn, place: u32) -> u64 {
        (turn.number << MEMBER_BITS) + u64::from(place) + 1
    }

    /// This rank has seen the end of operation `turn`: is it the one of its group that tells the others?
    #[inline]
    pub fn tells(&self, turn: &Turn) -> bool {
        let (told, number) = (&self.own(turn).told, turn.number + 1);
        told.load(Ordering::SeqCst) != number && told.swap(number, Ordering::SeqCst) != number
    }

    /// This rank is done with operation `turn`. True if that may let somebody start one (who then must be woken).
    #[inline]
    pub fn leave(&self, turn: &Turn) -> bool {
        let group = &self.head.groups[self.groups.mine];
        let members = u64::from(self.groups.members[self.groups.mine]);
        let mut all = false;
        for number in turn.first..=turn.last {
            let left = group.lanes[number as usize % LANES].left.fetch_add(1, Ordering::SeqCst) + 1;
            all |= left.is_multiple_of(members);
        }
        let wanted = &self.head.wanted;
        all && wanted.load(Ordering::SeqCst) >= u64::MAX - turn.last && wanted.swap(0, Ordering::SeqCst) != 0
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

    #[test]
    fn turns() {
        let narrow = Turn::next(5, LANE_BYTES);
        assert_eq!(narrow, Turn { first: 5, number: 5, last: 5 });
        let wider = Turn::next(narrow.after(), 2 * LANE_BYTES + 1);
        assert_eq!(wider, Turn { first: 6, number: 8, last: 11 });
        let widest = Turn::next(wider.after(), DATA_BYTES);
        assert_eq!(widest, Turn { first: 12, number: 32, last: 63 });
        let again = Turn::next(widest.after(), DATA_BYTES);
        assert_eq!(again, Turn { first: 64, number: 64, last: 95 });
        assert!(again.may_start(32) && !again.may_start(31), "those that had its lanes must have been left");
    }
}
