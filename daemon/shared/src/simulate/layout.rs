//! What lies in a simulation's segment: plain memory, touched only by who holds the lock, but for the words that say otherwise.

use super::heap::Places;
use crate::matching::envelope::{Envelope, INLINE_BYTES};
use crate::mem::sync::{AtomicU32, AtomicU64, Ordering};

/// How a rank stands in virtual time. All zeros: it runs.
pub mod status {
    /// It may do something at any time from its `bound` on.
    pub const RUNS: u32 = 0;
    /// It does nothing before an event makes it run.
    pub const WAITS: u32 = 1;
    /// It does nothing any more.
    pub const OVER: u32 = 2;
}

/// What an event does.
pub mod what {
    /// A message asks its sender's interface for a way out.
    pub const LEAVES: u32 = 1;
    /// The data of an announced message does.
    pub const DATA_LEAVES: u32 = 2;
    /// Something arrives at its rank.
    pub const ARRIVES: u32 = 3;
    /// Virtual time has come to where its rank is.
    pub const REACHED: u32 = 4;
    /// A message, or data, on links that it shares.
    pub const FLOWS: u32 = 5;
    pub const DATA_FLOWS: u32 = 6;
    /// It would be there, but for one before it that is not.
    pub const HELD: u32 = 7;
    /// Its receiver has taken it already: nothing happens any more.
    pub const TAKEN: u32 = 8;
}

/// Steps of a rank's part in a collective that the engine plays.
pub const MOST_STEPS: usize = 32;
/// No rank: nothing is sent, or received, in a step.
pub const NOBODY: u32 = u32::MAX;
/// Data of a collective that the engine plays: what an event's envelope has room for.
pub const MOST_DATA: usize = INLINE_BYTES;

/// What becomes of the data that a step receives.
pub mod does {
    /// There are none.
    pub const NOTHING: u32 = 0;
    /// They are what the rank has from then on.
    pub const REPLACE: u32 = 1;
    /// They are of lower ranks than what the rank has: theirs op mine.
    pub const COMBINE: u32 = 2;
    /// Of higher ones: mine op theirs.
    pub const COMBINE_BEHIND: u32 = 3;
}

/// The segment's own words, behind its head.
#[repr(C, align(64))]
pub struct Header {
    /// Who changes anything below holds it: 0, or its rank + 1.
    pub lock: AtomicU32,
    pub ranks: u32,
    /// Room for so many events.
    pub room: u32,
    pub image_bytes: u32,
    pub flow_bytes: u64,
    /// No message takes less from any rank to any other.
    pub lookahead: u64,
    /// `Compute` as numbers.
    pub compute: u32,
    /// Collectives go message by message: the engine plays none.
    pub by_messages: u32,
    pub scale: u64,
    pub counts: Counts,
}

/// What changes as time goes on.
#[repr(C)]
#[derive(Default, Debug)]
pub struct Counts {
    /// Of the events: the first free one (index + 1), those ever used, those in use.
    pub free: u32,
    pub used: u32,
    pub live: u32,
    /// Entries of the three heaps.
    pub leaving: u32,
    pub arriving: u32,
    pub running: u32,
    /// Ranks that are over.
    pub over: u32,
    /// Flows under way.
    pub flowing: u32,
    /// The rank that does an operation now, + 1: nothing else happens meanwhile.
    pub doing: u32,
    pub reserved: u32,
    /// When flows change next, if there are any.
    pub next_flow: u64,
    pub events: u64,
    pub messages: u64,
    /// How often the lower bound on what may still happen has let events be gone through.
    pub rounds: u64,
}

/// A rank in virtual time.
#[repr(C, align(64))]
#[derive(Default)]
pub struct SimRank {
    pub status: AtomicU32,
    /// While it waits: arrivals that it takes before anything can be over; 0: none end this wait.
    pub need: u32,
    /// It has been waiting for `REACHED`, which has happened.
    pub reached: u32,
    /// Its place in the heap of those that run + 1.
    pub place: u32,
    /// RUNS: the earliest time at which it may do anything. WAITS: the earliest arrival that has become known meanwhile.
    pub bound: u64,
    /// When it was made to run, and by which of what has arrived (index + 1): what has come since is later.
    pub woken: u64,
    /// What has arrived and has not been taken, in order; index + 1.
    pub first: u32,
    pub last: u32,
    /// From when on its network interface is free.
    pub interface_free: u64,
    /// Its clock, for those who look from outside.
    pub clock: AtomicU64,
    pub computed: AtomicU64,
    pub sent: AtomicU64,
    pub waited: AtomicU64,
    pub messages: AtomicU64,
    pub woken_by: u32,
    /// Of its messages: those that are to ask its interface, and announced ones whose data have not left. Without any, what it sends leaves at once.
    pub to_leave: u32,
    /// What is to arrive at a time that is known, the first and the last; index + 1.
    pub coming: u32,
    pub coming_last: u32,
    /// While it waits: arrivals that must become known before it can go on; 0: it does not ask.
    pub hopes: u32,
    /// Those have made it run, and it has not taken them yet.
    pub hoped: u32,
    /// And whose messages those may be: a bit for each rank, by its number modulo 64.
    pub hopes_from: u64,
    pub unused: [u64; 7],
}

/// The sender's request of a message that has left its buffer: none, but a number by which the copy is known.
pub(crate) const DETACHED: u32 = 1 << 31;

/// Add to a rank's account, which only one process writes at a time: its own, or, while the rank is in a collective that is played, who has the lock.
#[inline]
pub(super) fn add(account: &AtomicU64, amount: u64) {
    account.store(account.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
}

/// A step of a rank's part in a collective that the engine plays: a message to one rank, then one from another.
#[repr(C)]
#[derive(Copy, Clone, Default, Debug)]
pub struct Step {
    pub to: u32,
    pub from: u32,
    /// The message to the same rank before this one, as in `Event`; once it is sent itself: its own event + 1 and tie.
    pub before: u32,
    /// `does`, of what is received.
    pub does: u32,
    pub before_tie: u64,
}

/// A rank's part in a collective that the engine plays.
#[repr(C, align(64))]
pub struct Part {
    /// Of the communicator. Each of its messages meets the next step of its receiver that waits for its sender.
    pub context: u32,
    pub steps: u32,
    /// The step that it is in, and whether that has sent its message.
    pub at: u32,
    pub sent: u32,
    /// The rank has joined, and its part is not over. All-zero: it is in none.
    pub under_way: u32,
    /// Messages that have come before their steps, in order; index + 1.
    pub early: u32,
    pub early_last: u32,
    /// Bytes of the data that it has; the operation that combines them (`arith::Builtin`) and their elements (`arith::Element`).
    pub bytes: u32,
    pub op: u8,
    pub element: u8,
    /// A message has brought more than that, or tells that another one has.
    pub too_long: u16,
    pub reserved: u32,
    /// The rank's clock in it.
    pub clock: u64,
    /// Of its first message.
    pub number: u64,
    pub data: [u8; MOST_DATA],
    pub step: [Step; MOST_STEPS],
}

/// Something that happens at a point in virtual time.
#[repr(C)]
pub struct Event {
    pub time: u64,
    /// Its sender and number, which no other event has.
    pub tie: u64,
    pub what: u32,
    /// The rank at which it happens in the end, and the one it comes from.
    pub to: u32,
    pub from: u32,
    /// Next one in the list of what has arrived, or of those that are free; index + 1.
    pub next: u32,
    /// LEAVES: the message of the same pair before this one, if there was one (index + 1), and its tie.
    pub before: u32,
    /// DATA_LEAVES: the receiver's request.
    pub request: u32,
    pub before_tie: u64,
    /// HELD behind this one; of what is to arrive: the one before it in its receiver's list; index + 1.
    pub behind: u32,
    /// Of a collective that the engine plays: its context + 1.
    pub played: u32,
    /// When it was there, at the earliest: what left before it may hold it up.
    pub arrival: u64,
    pub envelope: Envelope,
}

#[cfg(not(feature = "model"))]
const _: () = {
    assert!(size_of::<Header>() == 128);
    assert!(size_of::<SimRank>() == 192);
    assert!(size_of::<Event>() == 224);
    assert!(size_of::<Part>() == 960);
    assert!(size_of::<super::heap::Entry>() == 24);
};

/// A flow's event, by its key.
#[repr(C)]
#[derive(Copy, Clone, Default, Debug)]
pub struct Flowing {
    pub key: u64,
    pub event: u32,
    pub reserved: u32,
}

/// Those that run, by their bounds.
impl Places for &mut [SimRank] {
    fn bound(&self, rank: u32) -> u64 {
        self[rank as usize].bound
    }
    fn place(&self, rank: u32) -> u32 {
        self[rank as usize].place
    }
    fn set_place(&mut self, rank: u32, place: u32) {
        self[rank as usize].place = place;
    }
}
