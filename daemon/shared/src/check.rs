//! Where the ranks of a node compare their collective calls, and their one-sided accesses (`accesses`), while a program is checked (`vmpirun --check`): a segment of its own, which a job has only then.
//!
//! Each call has a key: its communicator's context, and its number there. Who comes first leaves a record of the call; the others compare theirs with it as they
//! come, before any of them waits; the last one takes it away. A table of buckets, each under a lock that is held for a copy of a record. Nothing depends on what
//! is in it: where there is no room, or a lock is not to be had, a call is not compared.
//!
//! Death story: who dies with a bucket's lock leaves the others looking at it for `LOOKS` looks each, after which they go on without it.

pub mod accesses;

use crate::mem::segment::{Head, Segment, SegmentError, layout_hash};
use crate::mem::sync::{AtomicU32, Ordering, spin_loop, yield_cpu};
use accesses::{ROWS, Row};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// Words of a record.
pub const WORDS: usize = 12;
/// The first ones: what is compared. The others say who has made the call.
pub const COMPARED: usize = 5;
/// What is known of one rank's call.
pub type Record = [u64; WORDS];

/// Which call of which communicator.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Key {
    pub context: u32,
    /// Calls of one class are counted by themselves.
    pub class: u32,
    pub number: u32,
}

/// What a rank finds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    First,
    /// Somebody has been here before, with the same.
    Alike,
    /// Somebody has been here before, with this.
    Behind(Record),
    /// There is no room.
    Unknown,
}

#[repr(C)]
struct Entry {
    /// Members on this node that are still to come; 0: the entry is free.
    left: u32,
    key: [u32; 3],
    record: Record,
}

#[repr(C, align(64))]
struct Bucket {
    lock: AtomicU32,
    entries: [Entry; ENTRIES],
}

const BUCKETS: u64 = 256;
const ENTRIES: usize = 16;
/// A lock is held for some hundred nanoseconds, unless the kernel runs somebody else on that CPU.
const LOOKS: u32 = 20_000;
const LOOKS_BETWEEN_YIELDS: u32 = 100;
const LAYOUT: u64 = layout_hash(&[3, BUCKETS, size_of::<Bucket>() as u64, ROWS, size_of::<Row>() as u64]);
const FIRST_AT: u64 = (size_of::<Head>() as u64).next_multiple_of(64);
const ROWS_AT: u64 = FIRST_AT + BUCKETS * size_of::<Bucket>() as u64;
const BYTES: u64 = (ROWS_AT + ROWS * size_of::<Row>() as u64).next_multiple_of(4096);

/// Where a key has its bucket or row, in the upper bits: neighbours lie apart.
fn mixed(context: u32, number: u32) -> u64 {
    (u64::from(context) << 32 | u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

pub struct CheckBoard {
    segment: Segment,
}

impl CheckBoard {
    /// # Errors
    /// Those of the system.
    pub fn create() -> Result<CheckBoard, SegmentError> {
        // All zero is an empty board.
        Segment::create("check", LAYOUT, BYTES).map(|segment| CheckBoard { segment })
    }

    /// # Errors
    /// It is no such segment, or cannot be mapped.
    pub fn map(fd: OwnedFd) -> Result<CheckBoard, SegmentError> {
        let segment = Segment::map("check", LAYOUT, fd)?;
        match segment.bytes() as u64 {
            BYTES => Ok(CheckBoard { segment }),
            found => Err(SegmentError::Size { expected: BYTES, found }),
        }
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// The row of accesses with this number, or a number that is that modulo `ROWS`.
    fn row(&self, number: u64) -> NonNull<Row> {
        self.segment.at(ROWS_AT + number % ROWS * size_of::<Row>() as u64, size_of::<Row>()).cast::<Row>()
    }

    /// A rank comes to the call of this key, which `members` ranks of this node make; what is compared is `mine`, and who comes first leaves `record`.
    pub fn arrive(&self, key: Key, members: u32, mine: &[u64; COMPARED], record: impl FnOnce() -> Record) -> Arrival {
        let mixed = mixed(key.context, key.number);
        let bucket = (mixed >> 40).wrapping_add(key.class.into()) % BUCKETS;
        let bucket =
            self.segment.at(FIRST_AT + bucket * size_of::<Bucket>() as u64, size_of::<Bucket>()).cast::<Bucket>();
        // SAFETY: inside the mapping, aligned as FIRST_AT and the size are; an atomic word.
        let lock = unsafe { &(*bucket.as_ptr()).lock };
        if !take(lock) {
            return Arrival::Unknown;
        }
        // SAFETY: as above; the lock makes this the only one who looks at the entries. A process that scribbles may do so all the same: any value of them is one.
        let entries = unsafe { &mut (*bucket.as_ptr()).entries };
        let found = meet(entries, [key.context, key.class, key.number], members, (mine, record));
        lock.store(0, Ordering::Release);
        found
    }
}

fn meet(
    entries: &mut [Entry; ENTRIES],
    key: [u32; 3],
    members: u32,
    (mine, record): (&[u64; COMPARED], impl FnOnce() -> Record),
) -> Arrival {
    if let Some(entry) = entries.iter_mut().find(|entry| entry.left > 0 && entry.key == key) {
        entry.left -= 1;
        return if entry.record[..COMPARED] == *mine { Arrival::Alike } else { Arrival::Behind(entry.record) };
    }
    match entries.iter_mut().find(|entry| entry.left == 0) {
        Some(entry) => {
            (entry.left, entry.key, entry.record) = (members.saturating_sub(1), key, record());
            Arrival::First
        }
        None => Arrival::Unknown,
    }
}

fn take(lock: &AtomicU32) -> bool {
    for look in 1..=LOOKS {
        if lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return true;
        }
        if look % LOOKS_BETWEEN_YIELDS == 0 { yield_cpu() } else { spin_loop() }
    }
    false
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn key(number: u32) -> Key {
        Key { context: 4, class: 0, number }
    }

    #[test]
    fn those_who_come_later_see_what_the_first_one_left() {
        let board = CheckBoard::create().unwrap();
        let other = CheckBoard::map(board.fd().try_clone_to_owned().unwrap()).unwrap();
        let arrive =
            |board: &CheckBoard, n: u32, what: u64| board.arrive(key(n), 3, &[what; COMPARED], || [what; WORDS]);
        assert_eq!(arrive(&board, 1, 7), Arrival::First);
        assert_eq!(arrive(&other, 2, 9), Arrival::First);
        assert_eq!(arrive(&other, 1, 8), Arrival::Behind([7; WORDS]));
        assert_eq!(arrive(&board, 1, 7), Arrival::Alike);
        // All three have been there.
        assert_eq!(arrive(&board, 1, 5), Arrival::First);
    }

    #[test]
    fn a_board_that_is_full_says_so_and_one_that_is_locked_is_left() {
        let board = CheckBoard::create().unwrap();
        let arrive = |n: u32| board.arrive(key(n), 2, &[0; COMPARED], || [0; WORDS]);
        let unknown = (0..100_000).filter(|n| arrive(*n) == Arrival::Unknown).count();
        assert_eq!(unknown as u64, 100_000 - BUCKETS * ENTRIES as u64);
        let (lock, held) = (AtomicU32::new(0), AtomicU32::new(1));
        assert!(take(&lock) && !take(&held));
    }
}
