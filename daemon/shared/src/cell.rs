//! Collective cells: the ranks of a communicator on one node exchange small values in shared memory.
//!
//! A cell serves the operations of its communicator in order. Operation `g` uses lane `g % LANES`, and for its data a slot of the smallest size that is enough
//! ([`SIZES`]): slot `g % n` of the `n` that there are. A rank that starts it first makes sure that everybody has left operation `g - n`, whose slot it is about to
//! use. So a rank that need not wait for the others (the root of a broadcast, a leaf of a reduction) runs ahead by so many, and each of the others then
//! does as many when it is switched in. Nothing but the data's place depends on how much a rank believes it is: ranks that are wrong about that meet all the same.
//! The last rank to arrive at an operation combines what the others left there, so every rank is switched in once.
//! The ranks of a core are a group: they count in a line of their own, and only the last one of them in the line of all, so that the
//! lines do not travel between cores for every rank.
//! Death story: a rank that never arrives leaves the others SUSPENDED (Wait::Cell); its death ends the job, or, in a job that survives it,
//! wakes them and ends the operation with an error. The cell is then never used again; it stays taken.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, fence};

/// So many operations of a cell may be under way. Model tests go round sooner.
pub const LANES: usize = if cfg!(feature = "model") { 8 } else { 64 };

/// Slots for the data of an operation: of how many bytes, and how many there are (at most `LANES`).
pub const SIZES: [(usize, usize); 3] =
    [(2 << 10, LANES), (16 << 10, if cfg!(feature = "model") { 4 } else { 8 }), (DATA_BYTES, 2)];

/// Most bytes of data of one operation.
pub const DATA_BYTES: usize = 64 << 10;

/// Where a cell's data begin.
pub(crate) const DATA_AT: usize = size_of::<CellHead>().next_multiple_of(4096);

/// Bytes of one cell, head included.
pub const CELL_BYTES: u64 = (DATA_AT + slots_before(SIZES.len())) as u64;

/// Bytes of all slots of the first `sizes` sizes.
const fn slots_before(sizes: usize) -> usize {
    let (mut at, mut bytes) = (0, 0);
    while at < sizes {
        bytes += SIZES[at].0 * SIZES[at].1;
        at += 1;
    }
    bytes
}

/// Which of [`SIZES`] is the smallest with room for so many bytes (at most [`DATA_BYTES`]).
#[inline]
pub fn size_for(bytes: usize) -> usize {
    SIZES.iter().position(|(room, _)| bytes <= *room).unwrap_or(SIZES.len() - 1)
}

/// There is no result: the members disagree about how much it is, or it could not be had.
pub const DISAGREED: u64 = u64::MAX;

/// Most groups of a cell; where there are more cores, some share one.
pub const GROUPS: usize = 16;

/// In [`LaneHead::passed`], the bits that count members.
const MEMBER_BITS: u32 = 24;
const MEMBERS: u64 = (1 << MEMBER_BITS) - 1;

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
#[repr(C, align(64))]
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

/// One operation of a cell: its number, and how large a slot this rank takes for its data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    number: u64,
    size: usize,
}

impl Turn {
    /// Operation `number`, with so many bytes of data in all (at most [`DATA_BYTES`]).
    #[inline]
    pub fn new(number: u64, bytes: usize) -> Turn {
        Turn { number, size: size_for(bytes) }
    }

    /// Who arrives has left all operations of lower numbers.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// All have left the operations before `left`: is its slot free then?
    #[inline]
    pub fn may_start(&self, left: u64) -> bool {
        self.number < left + self.slots()
    }

    #[inline]
    fn slots(&self) -> u64 {
        SIZES[self.size].1 as u64
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
    /// The data of operation `turn`, as they lie if they are so many bytes.
    #[inline]
    pub fn data(&self, turn: &Turn, bytes: usize) -> *mut u8 {
        let size = size_for(bytes);
        let (room, slots) = SIZES[size];
        // SAFETY: inside the cell.
        unsafe { self.data.add(slots_before(size) + turn.number as usize % slots * room) }
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

    /// May operation `turn` use its slot?
    pub fn is_free(&self, turn: &Turn) -> bool {
        turn.number.checked_sub(turn.slots()).is_none_or(|number| self.is_left(number))
    }

    /// The slot of operation `turn` was not free. Are now half of its size, so that who waits goes on for more than one operation? If not, asks to be woken
    /// when that may have changed.
    #[cold]
    pub fn want(&self, turn: &Turn) -> bool {
        let number = turn.number - turn.slots() / 2;
        let wanted = u64::MAX - number;
        self.is_left(number) || {
            // Who waits looks again and again.
            if self.head.wanted.load(Ordering::SeqCst) < wanted {
                self.head.wanted.fetch_max(wanted, Ordering::SeqCst);
            }
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
        let passed = turn.number << MEMBER_BITS | (u64::from(place) + 1);
        self.lane(turn).passed.store(passed, Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC A: before the look at the state
    }

    /// Has the member at `place` done that?
    #[inline]
    pub fn has_passed(&self, turn: &Turn, place: u32) -> bool {
        let passed = self.lane(turn).passed.load(Ordering::SeqCst);
        // The number's upper bits do not fit, and what an operation so long ago has left is never taken for this one's.
        passed >> MEMBER_BITS == turn.number << MEMBER_BITS >> MEMBER_BITS && passed & MEMBERS > u64::from(place)
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
        let members = u64::from(self.groups.members[self.groups.mine]);
        let left = self.own(turn).left.fetch_add(1, Ordering::SeqCst) + 1;
        let wanted = &self.head.wanted;
        left.is_multiple_of(members)
            && wanted.load(Ordering::SeqCst) >= u64::MAX - turn.number
            && wanted.swap(0, Ordering::SeqCst) != 0
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
        let wide = Turn::new(7, DATA_BYTES);
        assert!(wide.may_start(6) && !wide.may_start(5), "there are two slots for the largest");
        let narrow = Turn::new(64, SIZES[0].0);
        assert!(narrow.may_start(1) && !narrow.may_start(0));
        assert_eq!([0, 2048, 2049, 16384, 16385, DATA_BYTES].map(size_for), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn slots_lie_side_by_side() {
        let groups = Groups::new(0, [0, 0].into_iter());
        let mut memory = vec![0u8; CELL_BYTES as usize];
        // SAFETY: the head is atomics, for which zeros do, at an address that is asked for below.
        let head: Box<CellHead> = unsafe { Box::new(std::mem::zeroed()) };
        let cell = Cell { head: &head, data: memory.as_mut_ptr(), groups: &groups };
        let mut ends = Vec::new();
        for (room, slots) in SIZES {
            for number in 0..slots as u64 {
                let at = cell.data(&Turn::new(number, room), room) as usize - memory.as_ptr() as usize;
                ends.push((at, at + room));
                let again = cell.data(&Turn::new(number + slots as u64, room), room) as usize;
                assert_eq!(again - memory.as_ptr() as usize, at);
            }
        }
        assert!(ends[0].0 == 0 && ends.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(ends.last().unwrap().1 + DATA_AT, CELL_BYTES as usize);
    }

    #[test]
    fn a_scan_is_told_from_earlier_ones() {
        let groups = Groups::new(0, [0, 0].into_iter());
        // SAFETY: as above.
        let head: Box<CellHead> = unsafe { Box::new(std::mem::zeroed()) };
        let cell = Cell { head: &head, data: std::ptr::null_mut(), groups: &groups };
        for number in [0, 64, 128, (1 << 40) - 64, 1 << 40, (1 << 40) + 64, 1 << 63] {
            let turn = Turn::new(number, 8);
            assert!(!cell.has_passed(&turn, 0) && !cell.has_passed(&turn, 1), "{number}");
            cell.pass(&turn, 0);
            assert!(cell.has_passed(&turn, 0) && !cell.has_passed(&turn, 1), "{number}");
            cell.pass(&turn, 1);
            assert!(cell.has_passed(&turn, 0) && cell.has_passed(&turn, 1));
        }
    }
}
