//! A rank's matching queues: posted receives, unexpected messages, request slots. Reached only by their owner.
//!
//! Receives that name source and tag, and all unexpected messages, hang in bins by (context, source, tag); receives with
//! a wildcard hang in a list of their own, and posting order decides between the two. Unexpected messages hang in a
//! second list in order of arrival for wildcard receives and probes. So hundreds of either cost nothing extra. Unexpected messages beyond the rank's own
//! room lie in chunks of the job (`store`), and while there are so many they hang in bins of another size, for each kind of wildcard, too (`index`).

mod answer;
mod arrival;
mod claims;
pub(crate) mod held;
mod index;
mod matched;
mod posted;
mod service;
mod slots;
mod store;
mod unexpected;

pub use answer::{answer, go};
pub use claims::{Claims, Hope};
pub use held::HOLDS;
pub(crate) use index::each_unexpected;
pub use store::{Reserve, Store};
pub use unexpected::{AWAKENING, LEAST_UNEXPECTED_LIMIT, Unexpected};

use super::envelope::Envelope;
use super::inbox::Inbox;
use super::mover::Mover;
use super::request::{self, FLAG_AWAITED, FLAG_WAKE, Slot, state};

/// Told instead of their number of a rank's unexpected messages when memory for them ends: no `unexpected_limit` is higher.
pub const CROWDED: u32 = u32::MAX;
/// Number of bins (a power of two).
pub const BINS: usize = 256;

/// The smallest limit from which on messages are announced.
pub const LARGE_BYTES: u64 = 4096;

/// What each blocking probe of several threads adds to `QueueHead::probe_active`.
pub const PROBE_ANY: u32 = 2;

/// First and last of a list; index + 1, 0 for none.
#[repr(C)]
#[derive(Copy, Clone, Default)]
pub struct List {
    pub first: u32,
    pub last: u32,
}

/// One bin.
#[repr(C)]
#[derive(Copy, Clone, Default)]
pub struct Bin {
    pub posted: List,
    pub unexpected: List,
}

/// The rest of a rank's matching state. Plain memory, all-zero at the start.
#[repr(C, align(64))]
#[derive(Copy, Clone, Default)]
pub struct QueueHead {
    /// Completions of awaited requests that are still missing; counts while `waiting`.
    pub wait_count: u32,
    pub waiting: u32,
    /// Something happened that only the rank itself can go on with.
    pub wake: u32,
    pub slots_used: u32,
    pub slots_free: u32,
    pub unexpected_used: u32,
    pub unexpected_free: u32,
    /// Unexpected messages now (a hint for senders) .
    pub unexpected_count: u32,
    /// Posted receives with a wildcard.
    pub wild: List,
    /// Unexpected messages in order of arrival.
    pub arrived: List,
    /// Requests that the rank itself must go on with.
    pub service: List,
    /// Next posting order.
    pub order: u64,
    /// A blocking probe waits for the message described here; from `PROBE_ANY` on, several may, for any.
    /// So does a blocking receive without a request while `direct_room` is not 0.
    pub probe_active: u32,
    pub probe_context: u32,
    pub probe_source: i32,
    pub probe_tag: i32,
    /// Requests in use.
    pub slots_live: u32,
    /// The most requests in use, and the most unexpected messages, since a tool asked for it.
    pub slots_most: u32,
    pub unexpected_most: u32,
    /// Bytes + 1 that a blocking receive without a request has room for; nothing else is under way then.
    /// `HOLDS`: their owner holds messages back.
    pub direct_room: u32,
    /// Posted receives with room for messages that are announced and then moved as a whole.
    pub posted_large: u32,
    /// The rank; its owner, before anybody matches here.
    pub rank: u32,
    /// Chunks of unexpected messages (`store`), the first one that has room, and the one that holds their index; index + 1.
    pub chunks: u32,
    pub roomy: u32,
    pub index: u32,
    /// A message was left in the inbox for want of room, and how many had been taken out of there by then.
    pub declined: u32,
    pub declined_at: u32,
    pub reserved: u32,
}

impl QueueHead {
    /// As [`Queues::is_stirred`].
    #[inline]
    pub fn is_stirred(&self) -> bool {
        self.wake != 0 || (self.waiting != 0 && self.wait_count == 0)
    }
}

/// What tending or draining found out.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The rank's wait is over, or it must do something itself.
    Ready,
    /// It goes on waiting.
    Wait,
}

/// Answers that matching makes necessary: (rank, envelope). Delivered by the caller when it has let go of the queues.
pub type Outgoing = Vec<(u32, Envelope)>;

/// View of a rank's queues.
pub struct Queues<'a> {
    pub inbox: Inbox<'a>,
    pub head: &'a mut QueueHead,
    pub bins: &'a mut [Bin; BINS],
    pub slots: &'a mut [Slot],
    pub unexpected: Store<'a>,
}

#[inline]
fn bin_of(context: u32, source: i32, tag: i32) -> usize {
    let mix = (u64::from(context) << 40) ^ (u64::from(source as u32) << 20) ^ u64::from(tag as u32);
    (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize & (BINS - 1)
}

impl Queues<'_> {
    /// Take everything out of the inbox: match, queue, complete. `out` collects answers for other ranks.
    pub fn drain(&mut self, mover: &mut dyn Mover, out: &mut Outgoing) -> Verdict {
        let inbox = self.inbox;
        while inbox.pop_if(|envelope| self.accept(envelope, mover, out)) {}
        if self.is_stirred() { Verdict::Ready } else { Verdict::Wait }
    }

    /// Is nothing under way, and no message here?
    #[inline]
    pub fn is_idle(head: &QueueHead) -> bool {
        head.slots_live == 0 && head.unexpected_count == 0
    }

    /// Is the wait of their owner over, or is there something else for it to do?
    #[inline]
    pub fn is_stirred(&self) -> bool {
        self.head.is_stirred()
    }

    /// Is the first message of the inbox one that there was no room for, and is there none now?
    pub fn is_stuck(&self) -> bool {
        let same = self.head.declined != 0 && self.head.declined_at == self.inbox.gone() as u32;
        same && self.inbox.has_mail() && self.is_full()
    }

    /// Is there a message in the inbox, and not one for which there is no room?
    pub fn can_take(&self) -> bool {
        self.inbox.has_mail() && !self.is_stuck()
    }

    /// Is there something for their owner to go on with, and will it wait again after that?
    pub fn only_answers(&self) -> bool {
        self.head.service.first != 0 && self.head.waiting != 0 && self.head.wait_count != 0
    }

    /// Account for a completion.
    fn completed(&mut self, index: u32) {
        self.inbox.count_event();
        let flags = self.slots[index as usize].flags;
        if flags & FLAG_AWAITED != 0 {
            self.head.wait_count = self.head.wait_count.saturating_sub(1);
        }
        if flags & FLAG_WAKE != 0 {
            self.head.wake = 1;
        }
    }

    /// Is the request over (or arrived, to be copied out)?
    pub fn is_over(&self, index: u32) -> bool {
        matches!(self.slots[index as usize].state, state::ARRIVED | state::COMPLETE | state::CANCELLED)
    }
}

const _: () = {
    assert!(size_of::<QueueHead>() == 128);
    assert!(request::ANY_SOURCE == -1 && request::ANY_TAG == -2);
};
