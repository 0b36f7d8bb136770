//! One-sided accesses that are open: who has begun to put, get or accumulate what of whose memory, and is not known to be complete.
//!
//! A row for each member's memory of each window (by a hash, so several may share one). Who begins an access compares it with those in the row, and leaves it
//! there. Accesses of an epoch between two fences have the number of the first one, which all members count alike: those of another number do not conflict,
//! and make room. The others (`Access::fence` = 0) are taken out by who has begun them, when they are complete. Where there is no room nothing is noted.

use super::{CheckBoard, mixed, take};
use crate::mem::sync::{AtomicU32, Ordering};

/// What is done. A number, not an enumeration, since others write it, too.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(transparent)]
pub struct Kind(u32);

impl Kind {
    pub const PUT: Kind = Kind(0);
    pub const GET: Kind = Kind(1);
    /// By `Access::operation`, on data of `Access::class`; 0: any.
    pub const ACCUMULATE: Kind = Kind(2);
    /// An accumulation that changes nothing (MPI_NO_OP).
    pub const FETCH: Kind = Kind(3);

    fn only_reads(self) -> bool {
        self == Kind::GET || self == Kind::FETCH
    }

    fn accumulates(self) -> bool {
        self == Kind::ACCUMULATE || self == Kind::FETCH
    }
}

/// Whose memory.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Place {
    pub context: u32,
    /// The rank in the job.
    pub target: u32,
}

/// Bytes `first..end` of a member's memory (of a dynamic window: addresses).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Access {
    pub first: u64,
    pub end: u64,
    pub kind: Kind,
    pub operation: u32,
    pub class: u32,
    /// The rank in the job.
    pub origin: u32,
    /// The fence before it.
    pub fence: u64,
    /// A sum over what is put; 0: not known.
    pub data: u64,
    /// The same, once it is there.
    pub sum: u64,
    pub site: [u64; 2],
    pub name: [u8; 32],
}

impl Access {
    fn overlaps(&self, other: &Access) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// Do both put the same bytes to the same place?
    fn repeats(&self, other: &Access) -> bool {
        let range = (self.first, self.end) == (other.first, other.end);
        let put = self.kind == Kind::PUT && other.kind == Kind::PUT;
        range && put && self.data != 0 && self.data == other.data
    }

    /// Is what comes of the two undefined?
    pub fn conflicts(&self, other: &Access) -> bool {
        if self.fence != other.fence || !self.overlaps(other) || self.repeats(other) {
            return false;
        }
        let differ = |a: u32, b: u32| a != 0 && b != 0 && a != b;
        let alike = !differ(self.operation, other.operation) && !differ(self.class, other.class);
        let both_read = self.kind.only_reads() && other.kind.only_reads();
        let both_accumulate = self.kind.accumulates() && other.kind.accumulates();
        !(both_read || both_accumulate && alike)
    }
}

#[derive(Copy, Clone, Default)]
#[repr(C)]
struct Slot {
    used: u32,
    place: Place,
    access: Access,
}

#[repr(C, align(64))]
pub(super) struct Row {
    lock: AtomicU32,
    slots: [Slot; SLOTS],
}

pub(super) const ROWS: u64 = 128;
const SLOTS: usize = 256;

impl CheckBoard {
    /// With the row of `place`, if its lock is to be had.
    fn with_row<R>(&self, place: Place, work: impl FnOnce(&mut [Slot; SLOTS]) -> R) -> Option<R> {
        let row = self.row(mixed(place.context, place.target) >> 32);
        // SAFETY: inside the mapping, and aligned (`CheckBoard::row`); an atomic word.
        let lock = unsafe { &(*row.as_ptr()).lock };
        if !take(lock) {
            return None;
        }
        // SAFETY: as above; under the lock nobody else looks at the slots. A process that scribbles may do so all the same: any number is one.
        let done = work(unsafe { &mut (*row.as_ptr()).slots });
        lock.store(0, Ordering::Release);
        Some(done)
    }

    /// These accesses begin at once. One that is open and conflicts with one of them, with that.
    pub fn open(&self, place: Place, new: &[Access]) -> Option<(Access, Access)> {
        let met = self.with_row(place, |slots| {
            let found = meet(slots, place, new);
            new.iter().for_each(|access| note(slots, place, access));
            found
        });
        met.flatten()
    }

    /// The same of accesses that are complete at once, or of which that is not heard.
    pub fn meets(&self, place: Place, new: &[Access]) -> Option<(Access, Access)> {
        self.with_row(place, |slots| meet(slots, place, new)).flatten()
    }

    /// What this access has written is there.
    pub fn written(&self, place: Place, done: &Access) {
        self.with_row(place, |slots| {
            let is_it = |slot: &&mut Slot| slot.used != 0 && slot.place == place && slot.access == *done;
            if let Some(slot) = slots.iter_mut().find(is_it) {
                slot.access.sum = done.data;
            }
        });
    }

    /// Accesses without a fence that `are_over` are complete.
    pub fn close(&self, place: Place, are_over: impl Fn(&Access) -> bool) {
        self.with_row(place, |slots| {
            for slot in slots.iter_mut() {
                if slot.used != 0 && slot.place == place && slot.access.fence == 0 && are_over(&slot.access) {
                    slot.used = 0;
                }
            }
        });
    }

    /// The window is no more: nothing of it is open.
    pub fn clear(&self, place: Place) {
        self.with_row(place, |slots| {
            slots.iter_mut().filter(|slot| slot.place == place).for_each(|slot| slot.used = 0);
        });
    }

    /// What is open between two fences, of which the first one has this number.
    pub fn opened(&self, place: Place, fence: u64) -> Vec<Access> {
        let all = self.with_row(place, |slots| {
            let here = slots.iter().filter(|slot| slot.used != 0 && slot.place == place && slot.access.fence == fence);
            here.map(|slot| slot.access).collect()
        });
        all.unwrap_or_default()
    }
}

fn meet(slots: &[Slot; SLOTS], place: Place, new: &[Access]) -> Option<(Access, Access)> {
    let mut open = slots.iter().filter(|slot| slot.used != 0 && slot.place == place).map(|slot| slot.access);
    open.find_map(|open| Some((open, *new.iter().find(|access| access.conflicts(&open))?)))
}

/// Leave `access` in a free slot, in one of an epoch that is over, or in one that it goes on with.
fn note(slots: &mut [Slot; SLOTS], place: Place, access: &Access) {
    let mut free = None;
    for (at, slot) in slots.iter_mut().enumerate() {
        let known = &mut slot.access;
        let over = slot.place == place && known.fence != 0 && known.fence < access.fence;
        if slot.used == 0 || over {
            free = free.or(Some(at));
        } else if slot.place == place && known.end == access.first {
            let joined = Access { first: known.first, end: access.end, data: 0, sum: 0, ..*access };
            if joined == (Access { end: access.end, data: 0, sum: 0, ..*known }) {
                *known = joined;
                return;
            }
        }
    }
    if let Some(at) = free {
        slots[at] = Slot { used: 1, place, access: *access };
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn access(first: u64, end: u64, kind: Kind, origin: u32) -> Access {
        Access { first, end, kind, origin, ..Access::default() }
    }

    #[test]
    fn what_conflicts_with_what() {
        const PUT: Kind = Kind::PUT;
        const GET: Kind = Kind::GET;
        const SUM: Kind = Kind::ACCUMULATE;
        const FETCH: Kind = Kind::FETCH;
        let conflict = |a: Kind, b: Kind| access(0, 8, a, 0).conflicts(&access(4, 12, b, 1));
        for (a, b, expected) in [
            (PUT, PUT, true),
            (PUT, GET, true),
            (PUT, SUM, true),
            (PUT, FETCH, true),
            (GET, GET, false),
            (GET, SUM, true),
            (GET, FETCH, false),
            (FETCH, FETCH, false),
            (FETCH, SUM, false),
            (SUM, SUM, false),
        ] {
            assert_eq!((conflict(a, b), conflict(b, a)), (expected, expected), "{a:?} {b:?}");
        }
        let sum = |operation, class| Access { operation, class, ..access(0, 8, SUM, 0) };
        assert!(sum(1, 4).conflicts(&sum(2, 4)) && sum(1, 4).conflicts(&sum(1, 5)));
        assert!(!sum(1, 4).conflicts(&sum(1, 4)) && !sum(0, 4).conflicts(&sum(2, 0)));
        let of = |data, access| Access { data, ..access };
        assert!(!of(5, access(0, 8, PUT, 0)).conflicts(&of(5, access(0, 8, PUT, 1))), "the same in any order");
        assert!(of(5, access(0, 8, PUT, 0)).conflicts(&of(6, access(0, 8, PUT, 1))));
        assert!(of(5, access(0, 8, PUT, 0)).conflicts(&of(5, access(1, 9, PUT, 1))));
        assert!(!access(0, 8, PUT, 0).conflicts(&access(8, 16, PUT, 1)), "they touch");
        assert!(!access(0, 8, PUT, 0).conflicts(&Access { fence: 1, ..access(0, 8, PUT, 1) }), "another epoch");
    }

    #[test]
    fn an_epoch_ends_with_its_fence_and_others_when_they_are_closed() {
        let board = CheckBoard::create().unwrap();
        let place = Place { context: 7, target: 2 };
        let put = |first, fence, origin| Access { fence, ..access(first, first + 8, Kind::PUT, origin) };
        assert_eq!(board.open(place, &[put(0, 1, 0)]), None);
        assert_eq!(board.open(place, &[put(4, 1, 1)]), Some((put(0, 1, 0), put(4, 1, 1))));
        assert_eq!(board.open(Place { target: 3, ..place }, &[put(0, 1, 1)]), None, "another's memory");
        assert_eq!(board.open(place, &[put(0, 2, 1)]), None);
        let more = Access { data: 9, ..put(40, 2, 1) };
        assert_eq!(board.open(place, &[more]), None);
        board.written(place, &more);
        assert_eq!(board.opened(place, 2), [put(0, 2, 1), Access { sum: 9, ..more }]);
        assert_eq!(board.open(place, &[put(0, 0, 0)]), None);
        board.close(place, |access| access.origin == 1);
        assert!(board.open(place, &[put(0, 0, 1)]).is_some());
        board.close(place, |_| true);
        assert_eq!(board.open(place, &[put(0, 0, 1)]), None);
        board.clear(place);
        assert_eq!(board.opened(place, 2), []);
    }

    #[test]
    fn a_loop_over_neighbours_takes_one_slot() {
        let board = CheckBoard::create().unwrap();
        let place = Place { context: 8, target: 0 };
        for at in 0..10_000 {
            assert_eq!(board.open(place, &[access(at * 8, at * 8 + 8, Kind::PUT, 0)]), None);
        }
        assert_eq!(board.opened(place, 0), [access(0, 80_000, Kind::PUT, 0)]);
        assert!(board.open(place, &[access(640, 641, Kind::GET, 1)]).is_some());
    }
}
