//! The ring into which deliverers push a rank's envelopes: many producers, one consumer (the owner of the queues).
//!
//! Each cell's sequence word says whose turn it is (Vyukov's bounded queue, counted so that all-zero is an empty ring).
//! Death story: a producer that dies between taking a cell and publishing it blocks the ring; its death ends the job. In a job that
//! survives deaths producers sign the cell as they take it (`push_signed`), and the daemon publishes what a dead one has left (`void`).

use super::cooperative_copy::CooperativeCopy;
use super::envelope::Envelope;
use crate::mem::prefetch;
use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, may_die};
use std::cell::UnsafeCell;

/// The ring's two ends.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Ends {
    /// Next cell to fill; producers, CAS.
    pub head: AtomicU64,
    reserved0: [u64; 7],
    /// Next cell to empty; the consumer. Read by producers that want to know whether there is room.
    pub tail: AtomicU64,
    /// Completions, unexpected messages and wake-ups so far; the consumer. Threads of the rank tell by it that they must
    /// look again.
    pub events: AtomicU64,
    reserved1: [u64; 6],
    // What senders look at each time, and what changes seldom: a cache line of their own.
    /// A producer waits for room; set by producers, taken by the consumer after it has made room.
    pub space_wanted: AtomicU32,
    /// Unexpected messages that the rank holds, if they are many (`queues::LEAST_UNEXPECTED_LIMIT`); the consumer. A hint for senders, who then wait until theirs are
    /// matched.
    pub unexpected: AtomicU32,
    /// The rank whose message the consumer is to take next, + 1; 0: it has not said. For senders in a replay (`vmpirun --replay`).
    pub favoured: AtomicU32,
    reserved2: [u32; 13],
    pub cooperative_copy: CooperativeCopy,
}

/// One cell.
#[repr(C, align(64))]
pub struct Cell {
    /// Turn: 2 * lap for "empty in this lap", 2 * lap + 1 for "full". Between the two, `SIGNED` times (rank + 1) more, if the producer signs.
    turn: AtomicU64,
    envelope: UnsafeCell<Envelope>,
}

impl Default for Cell {
    fn default() -> Cell {
        Cell { turn: AtomicU64::new(0), envelope: UnsafeCell::new(Envelope::EMPTY) }
    }
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Cell>() == 192);
#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<Ends>() == 256);

/// Laps are below this: a ring that is filled a million times a second gets there in a year.
const SIGNED: u64 = 1 << 40;

/// A cell's turn without the sign of who has taken it.
#[inline]
fn unsigned(turn: u64) -> u64 {
    turn % SIGNED
}

/// A full ring: an ordinary answer.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// A rank's inbox; `cells.len()` is a power of two.
#[derive(Copy, Clone)]
pub struct Inbox<'a> {
    pub ends: &'a Ends,
    pub cells: &'a [Cell],
}

// SAFETY: a cell's envelope is touched only by the producer that took the cell or by the consumer, told apart by `turn`.
unsafe impl Sync for Cell {}

impl Inbox<'_> {
    #[inline(always)]
    fn place(&self, position: u64) -> (&Cell, u64) {
        let size = self.cells.len() as u64;
        // A power of two: a shift, where a division would take longer than the rest.
        (&self.cells[(position & (size - 1)) as usize], position >> size.trailing_zeros())
    }

    /// Append an envelope. No syscall, no lock.
    #[inline(always)]
    pub fn push(&self, envelope: &Envelope) -> Result<(), Full> {
        let mut position = self.ends.head.load(Ordering::Relaxed);
        loop {
            let (cell, lap) = self.place(position);
            let turn = cell.turn.load(Ordering::Acquire); // SYNC C: with pop's release
            if turn == 2 * lap {
                match self.ends.head.compare_exchange_weak(position, position + 1, Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => {
                        // SAFETY: taking the position made this producer the cell's only user until `turn` changes.
                        envelope.copy_to(unsafe { &mut *cell.envelope.get() });
                        // SYNC D: with pop's acquire. Sequentially consistent, because the caller looks at the
                        // receiver's state next (SYNC A): cheaper than a fence behind a release.
                        cell.turn.store(2 * lap + 1, Ordering::SeqCst);
                        return Ok(());
                    }
                    Err(now) => position = now,
                }
            } else if turn < 2 * lap {
                return Err(Full);
            } else {
                position = self.ends.head.load(Ordering::Relaxed);
            }
        }
    }

    /// Let nobody push into this ring, which is empty and which nobody uses yet: it is full for all who try, and has no mail.
    pub fn close(&self) {
        let size = self.cells.len() as u64;
        self.ends.head.store(size, Ordering::SeqCst);
        self.ends.tail.store(size, Ordering::SeqCst);
    }

    /// Is every cell that was ever taken empty again?
    pub fn is_quiet(&self) -> bool {
        self.ends.head.load(Ordering::SeqCst) == self.ends.tail.load(Ordering::SeqCst)
    }

    /// Fetch the next free cell for writing: it was last touched by the consumer, perhaps on another core; and the word that says which one it is, which
    /// other producers write, too.
    #[inline]
    pub fn prefetch(&self) {
        prefetch::for_writing(&self.ends.head);
        let (cell, _) = self.place(self.ends.head.load(Ordering::Relaxed));
        prefetch::for_writing(cell);
    }

    /// As `push` by rank `from`, which may die in the middle of it: the cell says whose it is from the moment when it is taken, and the ring's
    /// head is moved on by whoever finds it behind.
    #[inline(never)]
    pub fn push_signed(&self, envelope: &Envelope, from: u32) -> Result<(), Full> {
        loop {
            let position = self.ends.head.load(Ordering::SeqCst);
            let (cell, lap) = self.place(position);
            let turn = cell.turn.load(Ordering::SeqCst); // SYNC C
            // Also if the cell has been taken, a lap ago, and not been filled yet.
            if unsigned(turn) < 2 * lap {
                return Err(Full);
            }
            let signed = 2 * lap + SIGNED * (u64::from(from) + 1);
            let taken =
                turn == 2 * lap && cell.turn.compare_exchange(turn, signed, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            // Only from here on: a cell behind the head is taken.
            let _ = self.ends.head.compare_exchange(position, position + 1, Ordering::SeqCst, Ordering::SeqCst);
            if taken {
                may_die();
                // SAFETY: taking the cell made this producer its only user until `turn` changes.
                envelope.copy_to(unsafe { &mut *cell.envelope.get() });
                cell.turn.store(2 * lap + 1, Ordering::SeqCst); // SYNC D, as in `push`
                return Ok(());
            }
        }
    }

    /// Rank `dead` is no more: publish the cells that it has taken, as messages that mean nothing. True if there were any.
    pub fn void(&self, dead: u32) -> bool {
        let (tail, head) = (self.ends.tail.load(Ordering::SeqCst), self.ends.head.load(Ordering::SeqCst));
        let mut any = false;
        // One more than the head, which may be behind; never more than there are cells, whatever the words say.
        for position in (tail..=head).take(self.cells.len()) {
            let (cell, lap) = self.place(position);
            let signed = 2 * lap + SIGNED * (u64::from(dead) + 1);
            if cell.turn.load(Ordering::SeqCst) == signed {
                // SAFETY: signed by a process that is gone, so nobody else uses the cell until `turn` changes.
                unsafe { (*cell.envelope.get()).kind = 0 };
                cell.turn.store(2 * lap + 1, Ordering::SeqCst);
                any = true;
            }
        }
        any
    }

    /// Is there an envelope to take? For anyone; only a hint unless the caller owns the queues.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        let tail = self.ends.tail.load(Ordering::SeqCst);
        let (cell, lap) = self.place(tail);
        cell.turn.load(Ordering::SeqCst) == 2 * lap + 1
    }

    /// Envelopes that have come, or are being written, since the ring was made.
    pub fn come(&self) -> u64 {
        self.ends.head.load(Ordering::SeqCst)
    }

    /// Envelopes that have been taken since the ring was made.
    pub fn gone(&self) -> u64 {
        self.ends.tail.load(Ordering::SeqCst)
    }

    /// Look at the envelopes that are there, the oldest first, and leave them. Only the owner of the queues calls this.
    pub fn look(&self, mut at: impl FnMut(&Envelope)) {
        for position in self.ends.tail.load(Ordering::Relaxed)..self.come() {
            let (cell, lap) = self.place(position);
            // SYNC D. One that is being written is passed over.
            if cell.turn.load(Ordering::Acquire) == 2 * lap + 1 {
                // SAFETY: as in `pop_if`.
                at(unsafe { &*cell.envelope.get() });
            }
        }
    }

    /// Note that something has happened that a thread of the rank may wait for. Only the owner of the queues calls this.
    #[inline]
    pub fn count_event(&self) {
        self.ends.events.store(self.ends.events.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Does a cell at one of the ends say what it cannot, whoever pushes and takes meanwhile? Certain, for anyone; not for a ring that is closed. What is wrong, in
    /// words: a sender that comes there finds the ring neither full nor free, for ever.
    pub fn damage(&self) -> Option<String> {
        let (tail, head) = (self.ends.tail.load(Ordering::SeqCst), self.ends.head.load(Ordering::SeqCst));
        if (tail, head) == (0, 0) {
            // Nothing has come yet: a look at its cells would take memory for them.
            return None;
        }
        let size = self.cells.len() as u64;
        let turn_at = |position: u64| unsigned(self.place(position).0.turn.load(Ordering::SeqCst));
        let (first, next) = (turn_at(tail), turn_at(head));
        if (self.ends.tail.load(Ordering::SeqCst), self.ends.head.load(Ordering::SeqCst)) != (tail, head) {
            return None;
        }
        // Signed cells may be taken, filled and emptied before the head is moved on.
        if tail > head.saturating_add(1) || head > tail.saturating_add(size + 1) {
            return Some(format!("its ends are {tail} and {head}"));
        }
        // Empty, filled, emptied before the tail is moved on, and filled again.
        let at_tail = 2 * self.place(tail).1;
        if !(at_tail..=at_tail + 3).contains(&first) {
            return Some(format!("its first place says {first:#x}"));
        }
        // Taken a lap ago and not filled yet.
        let at_head = 2 * self.place(head).1;
        let known = at_head.saturating_sub(2)..=at_head + 2;
        (!known.contains(&next)).then(|| format!("its next place says {next:#x}"))
    }

    /// Does somebody wait for room?
    #[inline]
    pub fn is_room_wanted(&self) -> bool {
        self.ends.space_wanted.load(Ordering::SeqCst) != 0
    }

    /// Is there room for one more? A hint.
    pub fn has_space(&self) -> bool {
        let (cell, lap) = self.place(self.ends.head.load(Ordering::SeqCst));
        unsigned(cell.turn.load(Ordering::SeqCst)) >= 2 * lap
    }

    /// The oldest envelope, if there is any. Only the owner of the queues calls this.
    #[inline(always)]
    pub fn first(&self) -> Option<First<'_>> {
        let tail = self.ends.tail.load(Ordering::Relaxed);
        let (cell, lap) = self.place(tail);
        if cell.turn.load(Ordering::Acquire) != 2 * lap + 1 {
            return None; // SYNC D
        }
        // SAFETY: the turn says full: producers keep off until it changes, and there is one consumer.
        Some(First { envelope: unsafe { &*cell.envelope.get() }, turn: &cell.turn, ends: self.ends, tail, lap })
    }

    /// Look at the oldest envelope and, if `take` returns true, remove it. False: nothing there, or `take` declined.
    /// Only the owner of the queues calls this.
    #[inline]
    pub fn pop_if(&self, take: impl FnOnce(&Envelope) -> bool) -> bool {
        match self.first() {
            Some(first) if take(first.envelope) => {
                first.remove();
                true
            }
            _ => false,
        }
    }
}

/// The oldest envelope of an inbox.
pub struct First<'a> {
    pub envelope: &'a Envelope,
    turn: &'a AtomicU64,
    ends: &'a Ends,
    tail: u64,
    lap: u64,
}

impl First<'_> {
    /// It has been taken: its cell is free.
    #[inline(always)]
    pub fn remove(self) {
        self.turn.store(2 * (self.lap + 1), Ordering::Release); // SYNC C
        self.ends.tail.store(self.tail + 1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_ring_is_full_and_has_no_mail() {
        let (ends, cells) = (Ends::default(), [(); 4].map(|()| Cell::default()));
        let inbox = Inbox { ends: &ends, cells: &cells };
        inbox.close();
        for _ in 0..2 {
            assert_eq!((inbox.push(&Envelope::EMPTY), inbox.push_signed(&Envelope::EMPTY, 1)), (Err(Full), Err(Full)));
            assert!(!inbox.has_mail() && inbox.is_quiet() && inbox.first().is_none());
        }
    }

    /// Whatever a ring of this protocol may look like between any two of its steps is no damage; a turn, or an end, from elsewhere is.
    #[test]
    fn a_ring_is_damaged_by_what_no_step_leaves() {
        let (ends, cells) = (Ends::default(), [(); 4].map(|()| Cell::default()));
        let inbox = Inbox { ends: &ends, cells: &cells };
        let mut chance = fastrand::Rng::with_seed(3);
        for round in 0..2000u32 {
            assert_eq!(inbox.damage(), None, "round {round}");
            match chance.u8(..4) {
                0 => drop(inbox.push(&Envelope::EMPTY)),
                1 => drop(inbox.push_signed(&Envelope::EMPTY, 7)),
                2 => drop(inbox.pop_if(|_| true)),
                _ => {
                    // The consumer between its two steps, the producer between its own.
                    if let Some(First { turn, lap, tail, .. }) = inbox.first() {
                        turn.store(2 * (lap + 1), Ordering::SeqCst);
                        assert_eq!(inbox.damage(), None);
                        ends.tail.store(tail + 1, Ordering::SeqCst);
                    }
                    let head = ends.head.load(Ordering::SeqCst);
                    let (cell, lap) = inbox.place(head);
                    if cell.turn.load(Ordering::SeqCst) == 2 * lap {
                        cell.turn.store(2 * lap + SIGNED * 3, Ordering::SeqCst);
                        assert_eq!(inbox.damage(), None);
                        ends.head.store(head + 1, Ordering::SeqCst);
                        assert_eq!(inbox.damage(), None);
                        cell.turn.store(2 * lap + 1, Ordering::SeqCst);
                    }
                }
            }
        }
        let (head, tail) = (ends.head.load(Ordering::SeqCst), ends.tail.load(Ordering::SeqCst));
        for position in [head, tail] {
            let (cell, lap) = inbox.place(position);
            let before = cell.turn.load(Ordering::SeqCst);
            for turn in [0, 1, 2 * lap + 9, 1 << 30, SIGNED - 1, u64::MAX] {
                cell.turn.store(turn, Ordering::SeqCst);
                assert!(inbox.damage().is_some(), "{turn:#x} at {position}");
            }
            cell.turn.store(before, Ordering::SeqCst);
            assert_eq!(inbox.damage(), None);
        }
        for (end, before) in [(&ends.head, head), (&ends.tail, tail)] {
            for value in [0, before + 20, u64::MAX] {
                end.store(value, Ordering::SeqCst);
                assert!(inbox.damage().is_some(), "{value:#x} for {before}");
            }
            end.store(before, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_cell_that_was_taken_a_lap_ago_and_not_filled_is_not_passed_over() {
        let (ends, cells) = (Ends::default(), [(); 4].map(|()| Cell::default()));
        let inbox = Inbox { ends: &ends, cells: &cells };
        // Rank 1 is in the middle of a push, or has died there.
        cells[0].turn.store(SIGNED * 2, Ordering::SeqCst);
        ends.head.store(1, Ordering::SeqCst);
        for _ in 0..3 {
            inbox.push_signed(&Envelope::EMPTY, 2).unwrap();
        }
        assert_eq!((inbox.push_signed(&Envelope::EMPTY, 2), inbox.has_space()), (Err(Full), false));
        assert!(!inbox.pop_if(|_| true));
        assert!(inbox.void(1));
        for _ in 0..4 {
            assert!(inbox.pop_if(|_| true));
        }
        assert!(inbox.has_space() && inbox.is_quiet());
        inbox.push_signed(&Envelope::EMPTY, 2).unwrap();
        assert!(inbox.pop_if(|_| true));
    }
}
