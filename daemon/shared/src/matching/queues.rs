//! A rank's matching queues: posted receives, unexpected messages, request slots. Reached only by their owner.
//!
//! Receives that name source and tag, and all unexpected messages, hang in bins by (context, source, tag); receives with
//! a wildcard hang in a list of their own, and posting order decides between the two. Unexpected messages hang in a
//! second list in order of arrival for wildcard receives and probes. So hundreds of either cost nothing extra. Unexpected messages beyond the rank's own
//! room lie in chunks of the job (`store`), and while there are so many they hang in bins of another size, for each kind of wildcard, too (`index`).

pub(super) mod held;
mod index;
mod slots;
mod store;
mod unexpected;

pub use held::HOLDS;
pub(crate) use index::each_unexpected;
pub use store::{Reserve, Store};
pub use unexpected::{LEAST_UNEXPECTED_LIMIT, Unexpected};

use super::envelope::{self, Envelope, FLAG_SYNC, kind};
use super::inbox::Inbox;
use super::mover::{Mover, Transfer};
use super::request::{
    self, ANY_SOURCE, ANY_TAG, FLAG_AWAITED, FLAG_CARRIED, FLAG_COPIED, FLAG_KEPT, FLAG_MATCH, FLAG_WAKE, Slot,
    accepts, outcome, state,
};

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
    /// Post the receive in slot `index` (context, source, tag, buffer filled in): match it or queue it.
    #[inline]
    pub fn post(&mut self, index: u32, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        let (context, source, tag) = (slot.context, slot.source, slot.tag);
        slot.order = self.head.order;
        self.head.order += 1;
        if self.head.unexpected_count != 0
            && let Some(entry) = self.find_unexpected(context, source, tag)
        {
            let envelope = self.take_unexpected(entry);
            self.matched(index, &envelope, mover, out);
            return;
        }
        // Behind the others of its list.
        let slot = &mut self.slots[index as usize];
        slot.state = state::POSTED;
        slot.next = 0;
        self.head.posted_large += u32::from(slot.capacity >= LARGE_BYTES);
        let list = self.posted_list(context, source, tag);
        let last = std::mem::replace(&mut list.last, index + 1);
        if last == 0 {
            list.first = index + 1;
        } else {
            self.slots[last as usize - 1].next = index + 1;
        }
        self.slots[index as usize].prev = last;
    }

    /// Give slot `index` the message of `envelope` (a matched probe's).
    pub fn assign(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        self.matched(index, envelope, mover, out);
    }

    /// Take a posted receive back. False if it has matched.
    pub fn cancel(&mut self, index: u32) -> bool {
        let slot = self.slots[index as usize];
        if slot.state != state::POSTED {
            return false;
        }
        let mut list = *self.posted_list(slot.context, slot.source, slot.tag);
        self.unlink_posted(&mut list, index);
        *self.posted_list(slot.context, slot.source, slot.tag) = list;
        self.slots[index as usize].state = state::CANCELLED;
        self.completed(index);
        true
    }

    /// The request in slot `index` cannot complete any more.
    pub fn fail(&mut self, index: u32, outcome: u32) {
        let slot = self.slots[index as usize];
        if slot.state == state::POSTED {
            let mut list = *self.posted_list(slot.context, slot.source, slot.tag);
            self.unlink_posted(&mut list, index);
            *self.posted_list(slot.context, slot.source, slot.tag) = list;
        }
        let slot = &mut self.slots[index as usize];
        slot.state = state::COMPLETE;
        slot.outcome = outcome;
        self.completed(index);
    }

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

    /// Is there something for their owner to go on with, and will it wait again after that?
    pub fn only_answers(&self) -> bool {
        self.head.service.first != 0 && self.head.waiting != 0 && self.head.wait_count != 0
    }

    /// Handle one envelope; false leaves it in the inbox (no room for it, or only the rank itself can take it).
    pub(super) fn accept(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) -> bool {
        match envelope.kind {
            kind::INLINE | kind::SLAB | kind::RTS if self.head.direct_room != 0 => self.accept_direct(envelope, mover),
            kind::INLINE | kind::SLAB | kind::RTS => match self.find_posted(envelope) {
                Some(index) => {
                    self.matched(index, envelope, mover, out);
                    true
                }
                None => self.queue_unexpected(envelope),
            },
            kind::FIN => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && matches!(slot.state, state::SENT | state::TO_PUSH)
                {
                    slot.state = state::COMPLETE;
                    slot.outcome = envelope.peer_request();
                    slot.remote = envelope.addr();
                    self.completed(envelope.request);
                } else {
                    self.answered_late(envelope.request);
                }
                true
            }
            kind::PULL => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::SENT
                {
                    slot.state = state::TO_PUSH;
                    slot.from = envelope.from;
                    slot.peer_request = envelope.peer_request();
                    slot.progress = envelope.offset();
                    slot.len = envelope.len;
                    slot.flags &= !FLAG_CARRIED;
                    self.serve(envelope.request);
                }
                true
            }
            kind::GO => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::SENT
                {
                    slot.state = state::TO_PUSH;
                    slot.peer_request = envelope.peer_request();
                    slot.len = envelope.len;
                    slot.flags |= FLAG_CARRIED;
                    self.serve(envelope.request);
                } else {
                    // Given up here; the receiver, which has not, gets it as it would with progress by the daemon.
                    out.push((
                        envelope.from,
                        go(mover.owner(), envelope.request, envelope.peer_request(), envelope.len),
                    ));
                }
                true
            }
            kind::PIECE => {
                if !mover.is_owner() {
                    self.head.wake = 1;
                    return false;
                }
                self.piece(envelope, mover, out);
                true
            }
            kind::HELP => {
                // For the sender itself, while it waits; nobody else can.
                if mover.is_owner()
                    && let Some(slot) = self.slots.get(envelope.request as usize)
                    && slot.state == state::SENT
                {
                    mover.help(envelope, slot);
                }
                true
            }
            kind::PLACED => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::PULLING
                {
                    slot.state = state::COMPLETE;
                    slot.flags |= FLAG_COPIED;
                    slot.outcome = envelope.peer_request();
                    self.completed(envelope.request);
                }
                true
            }
            kind::LET_GO => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::PULLING
                {
                    slot.state = state::COMPLETE;
                    slot.flags &= !FLAG_KEPT;
                    slot.outcome = envelope.peer_request();
                    self.completed(envelope.request);
                } else {
                    self.answered_late(envelope.request);
                }
                true
            }
            kind::WAKE => {
                self.head.wake = 1;
                self.inbox.count_event();
                true
            }
            _ => true, // not one of ours: scribbled; drop it
        }
    }

    /// The answer for a request that was ended before it came.
    #[cold]
    fn answered_late(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        if slot.state == state::KEPT {
            self.free_slot(index);
        } else if slot.state == state::COMPLETE {
            slot.flags &= !FLAG_KEPT;
        }
    }

    /// A message comes while the rank waits in a blocking receive without a request. If it is the one, it stays where it is, for the
    /// rank to take; if more than taking is needed for it, it is queued, and the rank must go the long way.
    fn accept_direct(&mut self, envelope: &Envelope, mover: &mut dyn Mover) -> bool {
        let head = &mut *self.head;
        let wanted = head.probe_context == envelope.context
            && accepts(head.probe_source, head.probe_tag, envelope.source, envelope.tag);
        if wanted {
            head.wake = 1;
            if envelope.is_eager() && envelope.len < u64::from(head.direct_room) {
                return false;
            }
            // What comes behind it must not be taken first.
            head.direct_room = 0;
        } else if head.direct_room == HOLDS {
            return self.hold(envelope, mover);
        }
        self.queue_unexpected(envelope)
    }

    /// A piece of a pulled message has come; the owner copies it in and asks for more.
    fn piece(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        let index = envelope.request;
        let Some(slot) = self.slots.get_mut(index as usize).filter(|s| s.state == state::PULLING) else { return };
        mover.piece(envelope, slot);
        slot.progress = envelope.offset().saturating_add(envelope.len);
        let wanted = slot.len.min(slot.capacity);
        if slot.progress >= wanted {
            slot.state = state::COMPLETE;
            out.push((slot.from, answer(kind::FIN, slot.peer_request)));
            self.completed(index);
        } else if envelope.flags & super::envelope::FLAG_LAST_OF_WINDOW != 0 {
            out.push((slot.from, pull(mover.owner(), index, slot)));
        }
    }

    /// The receive `index` takes the message of `envelope`.
    #[inline]
    fn matched(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        if envelope.kind == kind::RTS {
            self.matched_announced(index, envelope, mover, out);
        } else {
            self.matched_eager(index, envelope, out);
        }
    }

    /// As `matched`, for a message that comes with its data.
    #[inline]
    fn matched_eager(&mut self, index: u32, envelope: &Envelope, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        slot.describe(envelope);
        if envelope.kind == kind::SLAB {
            slot.remote = envelope.addr();
        } else {
            envelope.copy_body(&mut slot.inline);
            slot.remote = 0;
        }
        slot.state = state::ARRIVED;
        if envelope.flags & FLAG_SYNC != 0 {
            let mut fin = answer(kind::FIN, envelope.request);
            fin.set_offset(slot.posted_at);
            out.push((envelope.from, fin));
        }
        self.completed(index);
    }

    /// As `matched`, for an announced message.
    #[inline(never)]
    fn matched_announced(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        slot.describe(envelope);
        slot.remote = envelope.addr();
        slot.remote_blocks = envelope.blocks();
        slot.remote_flags = envelope.flags.into();
        match mover.transfer(envelope, index, slot) {
            Transfer::Done => {
                slot.state = state::COMPLETE;
                slot.flags |= FLAG_COPIED;
                out.push((envelope.from, answer(kind::FIN, envelope.request)));
            }
            Transfer::Timed => {
                slot.state = state::PULLING;
                slot.flags |= FLAG_COPIED;
                let mut fin = answer(kind::FIN, envelope.request);
                fin.len = slot.len;
                fin.set_blocks(index + 1);
                fin.set_offset(slot.posted_at);
                out.push((envelope.from, fin));
                return;
            }
            Transfer::Failed(errno) => {
                slot.state = state::COMPLETE;
                slot.outcome = outcome::ERRNO | errno as u32;
                let mut fin = answer(kind::FIN, envelope.request);
                fin.set_peer_request(slot.outcome);
                out.push((envelope.from, fin));
            }
            Transfer::Gone => {
                // Nothing comes any more; its owner learns so from the daemon, and ends it.
                slot.state = state::PULLING;
                return;
            }
            Transfer::Refused => {
                slot.state = state::PULLING;
                slot.progress = 0;
                if slot.flags & FLAG_MATCH != 0 {
                    self.head.wake = 1;
                }
                out.push((envelope.from, pull(mover.owner(), index, slot)));
                return;
            }
            Transfer::LeaveToOwner => {
                slot.state = state::TO_PULL;
                self.serve(index);
                return;
            }
        }
        self.completed(index);
    }

    /// Go on with a request of the service list, by the rank itself. `None`: the list is empty.
    pub fn next_service(&mut self) -> Option<u32> {
        let first = self.head.service.first;
        if first == 0 {
            return None;
        }
        let next = self.slots[first as usize - 1].next_service;
        self.slots[first as usize - 1].next_service = 0;
        self.head.service.first = next;
        if next == 0 {
            self.head.service.last = 0;
        }
        Some(first - 1)
    }

    /// The owner pulls the data of a TO_PULL request.
    pub fn pull(&mut self, index: u32, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &self.slots[index as usize];
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::RTS;
        envelope.from = slot.from;
        envelope.source = slot.matched_source;
        envelope.tag = slot.matched_tag;
        envelope.len = slot.len;
        envelope.request = slot.peer_request;
        envelope.trace = slot.trace;
        envelope.set_addr(slot.remote);
        envelope.set_blocks(slot.remote_blocks);
        envelope.flags = slot.remote_flags as u8;
        self.matched(index, &envelope, mover, out);
    }

    /// As the sender of announced messages that another deliverer has matched: move their payloads. `other` hears the senders of the rest.
    pub fn push_for(&mut self, sender: u32, mover: &mut dyn Mover, out: &mut Outgoing, mut other: impl FnMut(u32)) {
        let last = self.head.service.last;
        while let Some(index) = self.next_service() {
            let slot = &self.slots[index as usize];
            match slot.state {
                state::TO_PULL if slot.from == sender => self.pull(index, mover, out),
                state::TO_PULL => {
                    other(slot.from);
                    self.serve(index);
                }
                _ => self.serve(index),
            }
            if index + 1 == last {
                return;
            }
        }
    }

    fn serve(&mut self, index: u32) {
        self.slots[index as usize].next_service = 0;
        match self.head.service.last {
            0 => self.head.service.first = index + 1,
            last => self.slots[last as usize - 1].next_service = index + 1,
        }
        self.head.service.last = index + 1;
        self.head.wake = 1;
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

    #[inline]
    fn posted_list(&mut self, context: u32, source: i32, tag: i32) -> &mut List {
        if source == ANY_SOURCE || tag == ANY_TAG {
            &mut self.head.wild
        } else {
            &mut self.bins[bin_of(context, source, tag)].posted
        }
    }

    fn unlink_posted(&mut self, list: &mut List, index: u32) {
        let Slot { next, prev, capacity, .. } = self.slots[index as usize];
        self.head.posted_large -= u32::from(capacity >= LARGE_BYTES);
        match prev {
            0 => list.first = next,
            prev => self.slots[prev as usize - 1].next = next,
        }
        match next {
            0 => list.last = prev,
            next => self.slots[next as usize - 1].prev = prev,
        }
    }

    /// The posted receive that takes this message, unlinked: the one posted first among bin and wildcards.
    fn find_posted(&mut self, envelope: &Envelope) -> Option<u32> {
        let bin = bin_of(envelope.context, envelope.source, envelope.tag);
        let scan = |first: u32| {
            let mut at = first;
            while at != 0 {
                let slot = &self.slots[at as usize - 1];
                if slot.context == envelope.context && accepts(slot.source, slot.tag, envelope.source, envelope.tag) {
                    return Some((slot.order, at - 1));
                }
                at = slot.next;
            }
            None
        };
        let exact = scan(self.bins[bin].posted.first);
        let wild = scan(self.head.wild.first);
        let (is_wild, index) = match (exact, wild) {
            (Some((e, index)), Some((w, _))) if e < w => (false, index),
            (_, Some((_, index))) => (true, index),
            (Some((_, index)), None) => (false, index),
            (None, None) => return None,
        };
        let mut list = if is_wild { self.head.wild } else { self.bins[bin].posted };
        self.unlink_posted(&mut list, index);
        if is_wild {
            self.head.wild = list;
        } else {
            self.bins[bin].posted = list;
        }
        Some(index)
    }

    /// Is the request over (or arrived, to be copied out)?
    pub fn is_over(&self, index: u32) -> bool {
        matches!(self.slots[index as usize].state, state::ARRIVED | state::COMPLETE | state::CANCELLED)
    }
}

/// An envelope that answers about request `request` of the addressee.
pub fn answer(kind: u8, request: u32) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    envelope.kind = kind;
    envelope.request = request;
    envelope
}

/// The word on which the carriers move what request `request` has announced, and its question: `from` is who says it, `transfer` their number for it.
pub fn go(from: u32, request: u32, transfer: u32, len: u64) -> Envelope {
    let mut go = answer(kind::GO, request);
    (go.from, go.len) = (from, len);
    go.set_peer_request(transfer);
    go
}

/// Ask the sender for the next pieces of the message that receive `index` takes.
fn pull(me: u32, index: u32, slot: &Slot) -> Envelope {
    let mut pull = answer(kind::PULL, slot.peer_request);
    pull.from = me;
    pull.set_peer_request(index);
    pull.set_offset(slot.progress);
    pull.set_addr(slot.addr);
    pull.set_blocks(slot.blocks);
    pull.len = slot.len.min(slot.capacity);
    if slot.flags & request::FLAG_MAPPED != 0 {
        pull.flags |= envelope::FLAG_MAPPED;
    }
    pull
}

const _: () = {
    assert!(size_of::<QueueHead>() == 128);
    assert!(request::ANY_SOURCE == -1 && request::ANY_TAG == -2);
};
