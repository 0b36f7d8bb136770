//! A rank's end of the two segments: it receives, waits, and matches for ranks that are suspended.
//!
//! Reading order: this file, `transfer` (large payloads; `pieces`: through the slab), `deliver` (how a message gets there), `proxy` (matching for a suspended
//! rank), `strong_progress` and `queue_loan` (for one that computes), `poll` (for one that polls), `carrier` (to and from other nodes), `inspect` (another's
//! queues, read only), `simulated` (all of it in virtual time), `holding` (messages that their receiver holds back).

pub mod carrier;
mod deliver;
pub mod holding;
pub mod inspect;
mod pieces;
mod poll;
mod proxy;
mod queue_loan;
pub mod simulated;
pub mod strong_progress;
pub mod transfer;

use self::proxy::{spinner, wake_space_waiters, wake_waiters_for_space};
use self::transfer::RankMover;
use crate::job::{JobSegment, Parts};
use crate::matching::envelope::Envelope;
use crate::matching::envelope::{INLINE_BYTES, kind};
use crate::matching::inbox::Inbox;
use crate::matching::polls::Polls;
use crate::matching::queues::{Outgoing, Queues};
use crate::matching::request::{self, state};
use crate::mem::short_copy::short_copy;
use crate::mem::sync::{Ordering, yield_cpu};
use crate::mem::warmth::Warmth;
use crate::node::{NodeSegment, RankDescriptor};
use crate::sched::{self, Wait, policy, watch};
use crate::simulate::Simulated;

/// A rank's end of the two segments: what it sends with and receives by. Used by one thread at a time.
pub struct Endpoint {
    pub node: NodeSegment,
    pub job: JobSegment,
    pub me: u32,
    /// Of this rank, in `job`.
    own: Parts,
    /// Index of this rank's core when it last suspended: a guess if ranks move.
    core: u32,
    outgoing: Outgoing,
    /// It has watched for what it waits for already: no more of that before the next message.
    tired: bool,
    /// A message of this rank to itself had to go through its inbox: so do all from then on, which keeps their order.
    posts_to_itself: bool,
    /// Do ranks of this job lend their queues?
    lends: bool,
    /// Those that what this rank waits for depends on.
    receivers: Vec<u32>,
    polls: Polls,
    pub warmth: Warmth,
    /// In a simulated job: its virtual time.
    simulated: Option<Box<Simulated>>,
}

/// What a blocking receive without a request waits for, and the number of its call for `vmpictl`.
#[derive(Copy, Clone, Debug)]
pub struct Want {
    pub context: u32,
    pub source: i32,
    pub tag: i32,
    pub call: u32,
}

/// What a receive took straight out of the inbox.
#[derive(Copy, Clone, Debug)]
pub struct Taken {
    pub source: i32,
    pub tag: i32,
    pub len: u64,
    /// The sender's rank in the job, and `Envelope::trace`.
    pub from: u32,
    pub trace: u16,
}

impl Endpoint {
    pub fn new(mut node: NodeSegment, job: JobSegment, me: u32) -> Endpoint {
        node.set_actor(me);
        // SAFETY: both segments stay mapped as long as the endpoint lives.
        unsafe { node.set_ring(job.trace(me)) };
        let core = node.core_of(me);
        let lends = job.config().lend_queues != 0 && node.header().recovery == 0;
        let own = job.parts(me);
        // SAFETY: this rank's own queues, in which nobody matches before it has entered.
        unsafe { own.queues() }.head.rank = me;
        Endpoint {
            node,
            job,
            me,
            own,
            core,
            outgoing: Outgoing::new(),
            tired: false,
            posts_to_itself: false,
            lends,
            receivers: Vec::new(),
            polls: Polls::default(),
            warmth: Warmth::default(),
            simulated: None,
        }
    }

    /// This rank's own queues; use one result at a time.
    #[inline(always)]
    pub fn queues(&self) -> Queues<'_> {
        // SAFETY: this rank is RUNNING or AWAY while it executes library code and does not lend them then, so the queues are its own.
        unsafe { self.own.queues() }
    }

    /// This rank's own inbox.
    #[inline(always)]
    pub fn inbox(&self) -> Inbox<'_> {
        // SAFETY: the result does not outlive the segment.
        unsafe { self.own.inbox() }
    }

    /// Suspend until somebody changes collective cell `cell` (or mail comes, or `over` says so).
    pub fn suspend_for_cell(&mut self, cell: u32, call: u32, over: impl Fn() -> bool) {
        self.sleep(Wait::Cell, cell, (call, -1, -1), over);
    }

    /// Suspend; until then tell `vmpictl` what for: (call, peer, tag).
    fn sleep(&mut self, wait: Wait, operand: u32, what: (u32, i32, i32), over: impl Fn() -> bool) {
        let stuck = self.is_stuck();
        let (node, job, warmth) = (&self.node, &self.job, &mut self.warmth);
        tell(node, self.me, what);
        // SAFETY: `job` is borrowed for as long.
        let inbox = unsafe { self.own.inbox() };
        let patience = if std::mem::take(&mut self.tired) { 0 } else { node.header().spin_ticks };
        // SYNC P: this rank is SUSPENDED when it looks; a receiver lends first and then looks at the state of who has sent.
        let lent = || self.receivers.iter().any(|to| queue_loan::is_lent(node, *to) && !job.inbox(*to).is_quiet());
        let slab = job.slab(self.me);
        let mut over = || {
            over() || (!stuck && inbox.has_mail()) || lent() || {
                warmth.step(&slab);
                false
            }
        };
        sched::suspend_tending(
            node,
            self.me,
            wait,
            operand,
            patience,
            &mut over,
            &mut spinner(node, job, self.me, &mut self.outgoing),
        );
        self.core = self.node.core_of(self.me);
        self.flush();
    }

    /// Empty this rank's inbox, then deliver the answers.
    /// Returns whether there was anything.
    ///
    /// The caller then looks at all it waits for. What happens after that, while it sends and waits for room, stays noted (`QueueHead::wake`, the count of
    /// what it waits for), so that `suspend` does not miss it.
    #[inline]
    pub fn progress(&mut self) -> bool {
        self.queues().head.wake = 0;
        if !self.inbox().has_mail() && self.outgoing.is_empty() && self.queues().head.service.first == 0 {
            return false;
        }
        self.drain_own();
        self.queues().head.wake = 0;
        self.serve();
        self.flush();
        true
    }

    /// What has come was taken in in the middle of something, by who does not look at all that this rank waits for: it does before it suspends.
    #[inline]
    pub fn look_again(&mut self) {
        self.queues().head.wake = 1;
    }

    /// As `progress`, in a job that survives deaths: what dead ranks had sent has been taken in then, also where it lies behind an envelope that is
    /// still being written. Returns those ranks; who fails while this runs is not among them. Who failed is looked up before what has come: the dead
    /// had pushed all that they pushed when their failure was published.
    ///
    /// Death story: for a rank that dies while it writes an envelope the daemon publishes an empty one (`Inbox::void`); a carrier's end is the job's.
    #[cold]
    pub fn take_in(&mut self) -> Vec<u32> {
        let failed: Vec<u32> =
            (0..self.node.header().ranks).filter(|rank| self.node.failure(*rank).is_some()).collect();
        let due = self.inbox().come();
        loop {
            let inbox = self.inbox();
            let (gone, mail) = (inbox.gone(), inbox.has_mail());
            self.progress();
            let now = self.inbox().gone();
            // What stays although it is there finds no room.
            if now >= due || (mail && now == gone) {
                return failed;
            }
            if !mail {
                yield_cpu();
            }
        }
    }

    fn drain_own(&mut self) {
        let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        queues.drain(&mut mover, &mut self.outgoing);
        wake_space_waiters(&self.node, &self.job, self.me);
    }

    /// Post a receive whose slot has been filled in.
    #[inline]
    pub fn post(&mut self, slot: u32) {
        let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        queues.post(slot, &mut mover, &mut self.outgoing);
        if !self.outgoing.is_empty() {
            self.flush();
        }
    }

    /// The short way of a blocking receive of at most `capacity` bytes, without a request: nothing else is under way here, and the message
    /// is, when it comes, the oldest of the inbox. `None` if that turns out otherwise: no message of the receive has been taken then.
    ///
    /// # Safety
    /// `into` has room for `capacity` bytes.
    #[inline(always)]
    pub unsafe fn take(&mut self, want: &Want, into: *mut u8, capacity: u64) -> Option<Taken> {
        // In a job that survives deaths these are to be heard of while it waits.
        if self.node.header().recovery != 0 || !Queues::is_idle(self.queues().head) || !self.outgoing.is_empty() {
            return None;
        }
        if !self.inbox().has_mail() && !self.await_direct(want, capacity) {
            return None;
        }
        // SAFETY: passed on.
        unsafe { self.take_first(want, into, capacity) }
    }

    /// Wait until the message that a receive without a request waits for is the first of the inbox. False if it has come otherwise, or
    /// if something else needs this rank, or it is better waited for with a request.
    #[inline(never)]
    fn await_direct(&mut self, want: &Want, capacity: u64) -> bool {
        let Endpoint { node, job, me, own, outgoing, tired, warmth, .. } = self;
        let (node, job, me) = (&*node, &*job, *me);
        // SAFETY: `job` is borrowed for as long.
        let inbox = unsafe { own.inbox() };
        let slab = job.slab(me);
        let watched = watch::watch(node, me, || {
            inbox.has_mail() || {
                warmth.step(&slab);
                false
            }
        });
        if watched == Some(true) {
            return true;
        }
        if capacity > u64::from(job.config().eager_limit_bytes) {
            // A posted receive lets the sender write straight into the buffer.
            *tired = watched.is_some();
            return false;
        }
        *tired = false;
        // SAFETY: as in `queues`.
        let head = unsafe { own.queues() }.head;
        // Nothing else is under way.
        head.wake = 0;
        (head.probe_context, head.probe_source, head.probe_tag) = (want.context, want.source, want.tag);
        head.direct_room = capacity as u32 + 1;
        let descriptor = tell(node, me, (want.call, want.source, want.tag));
        let patience = if watched.is_some() { 0 } else { node.header().spin_ticks };
        let over = || inbox.has_mail();
        sched::suspend_for_message(node, me, want.context, patience, over, spinner(node, job, me, outgoing));
        self.core = node.core_in(descriptor);
        if !outgoing.is_empty() {
            self.flush();
        }
        let head = self.queues().head;
        head.wake = 0;
        std::mem::take(&mut head.direct_room) != 0
    }

    /// Take the first message of the inbox if it is the one.
    ///
    /// # Safety
    /// As `take`.
    #[inline(always)]
    unsafe fn take_first(&mut self, want: &Want, into: *mut u8, capacity: u64) -> Option<Taken> {
        let job = &self.job;
        let inbox = self.inbox();
        let first = inbox.first()?;
        let Envelope { kind, context, source, tag, from, trace, len, .. } = *first.envelope;
        let wanted = context == want.context && request::accepts(want.source, want.tag, source, tag);
        if !wanted || len > capacity || !first.envelope.is_eager() {
            return None;
        }
        let payload = match kind {
            kind::INLINE if len <= INLINE_BYTES as u64 => first.envelope.body.as_ptr(),
            kind::SLAB => job.block(from, first.envelope.addr(), len)?.cast_const(),
            _ => return None,
        };
        // SAFETY: `payload` has `len` bytes, which are no more than `into` has room for.
        unsafe { short_copy(payload, into, len as usize) };
        if kind == kind::SLAB {
            job.slab(from).give(first.envelope.addr(), len);
        }
        first.remove();
        if inbox.is_room_wanted() {
            wake_waiters_for_space(&self.node, job, self.me);
        }
        Some(Taken { source, tag, len, from, trace })
    }

    /// The same of a message that has come and that no receive has asked for. `None`: there is none, or it does not go so.
    ///
    /// # Safety
    /// As `take`.
    pub unsafe fn take_unexpected(&mut self, want: &Want, into: *mut u8, capacity: u64) -> Option<Taken> {
        if self.node.header().recovery != 0 {
            return None;
        }
        let index = self.find_waiting(want)?;
        let job = &self.job;
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        let envelope = &queues.unexpected[index as usize].envelope;
        let Envelope { kind, source, tag, from, trace, len, .. } = *envelope;
        let addr = envelope.addr();
        if len > capacity || !envelope.is_eager() {
            return None;
        }
        let payload = match kind {
            kind::INLINE if len <= INLINE_BYTES as u64 => envelope.body.as_ptr(),
            kind::SLAB => job.block(from, addr, len)?.cast_const(),
            _ => return None,
        };
        // SAFETY: `payload` has `len` bytes, which are no more than `into` has room for.
        unsafe { short_copy(payload, into, len as usize) };
        if kind == kind::SLAB {
            job.slab(from).give(addr, len);
        }
        queues.take_unexpected(index);
        Some(Taken { source, tag, len, from, trace })
    }

    /// Where the message of `want` is among those that no receive has asked for.
    fn find_waiting(&mut self, want: &Want) -> Option<u32> {
        if self.queues().head.unexpected_count == 0 {
            return None;
        }
        let found = self.queues().find_unexpected(want.context, want.source, want.tag);
        if found.is_some() || !self.inbox().has_mail() {
            return found;
        }
        self.progress();
        self.queues().find_unexpected(want.context, want.source, want.tag)
    }

    /// A message to `to` is about to be pushed: note which way it goes, and have its inbox's next cell on the way to this core's cache.
    #[inline]
    pub fn expect(&self, to: u32) {
        if to != self.me {
            self.node.send_pattern().note_send(to);
            self.job.inbox(to).prefetch();
        }
    }

    /// Let the receive in `slot` take a message that a matched probe took out of the queue.
    pub fn assign(&mut self, slot: u32, envelope: &Envelope) {
        let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        queues.assign(slot, envelope, &mut mover, &mut self.outgoing);
        self.flush();
    }

    /// Go on with requests that only this rank can go on with.
    fn serve(&mut self) {
        while let Some(index) = self.queues().next_service() {
            policy::note_answering(&self.node, self.me, false);
            match self.queues().slots[index as usize].state {
                state::TO_PULL => {
                    let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
                    // SAFETY: as in `queues`.
                    let mut queues = unsafe { self.own.queues() };
                    queues.pull(index, &mut mover, &mut self.outgoing);
                }
                state::TO_PUSH => self.push_on(index),
                _ => {}
            }
        }
    }

    /// Suspend until a message has changed something for this rank: `wait_count` reached 0 or `wake` was set. Not if that has happened since
    /// it looked (`progress`), while it waited for room in another inbox.
    pub fn suspend(&mut self, call: u32, peer: i32, tag: i32) {
        if !self.receivers.is_empty() {
            self.progress_for_receivers();
        }
        if !self.queues().is_stirred() {
            self.sleep(Wait::Queues, 0, (call, peer, tag), || false);
        }
        self.receivers.clear();
        self.queues().head.waiting = 0;
    }

    /// Is there a message in the inbox for which this rank has no room? It can be taken only after a receive that takes one
    /// of the unexpected ones, and so can all that came behind it.
    #[inline]
    pub fn is_stuck(&self) -> bool {
        self.queues().head.declined != 0 && self.is_stuck_now()
    }

    #[cold]
    fn is_stuck_now(&self) -> bool {
        let queues = self.queues();
        let stuck = queues.is_stuck();
        queues.head.declined = stuck.into();
        stuck
    }

    /// Does this rank hold some of the memory that all ranks of the node share for unexpected messages?
    pub fn holds_memory(&self) -> bool {
        self.queues().head.chunks != 0
    }

    /// Prepare to wait for `missing` completions of requests flagged AWAITED.
    pub fn arm(&mut self, missing: u32) {
        let head = self.queues().head;
        head.wait_count = missing;
        head.waiting = u32::from(missing > 0);
    }

    /// Give the core to other READY ranks.
    pub fn yield_core(&self) -> bool {
        sched::yield_core(&self.node, self.me)
    }
}

/// What rank `me` is about to wait for: (call, peer, tag).
#[inline]
fn tell(node: &NodeSegment, me: u32, (call, peer, tag): (u32, i32, i32)) -> &RankDescriptor {
    let descriptor = node.rank(me);
    descriptor.call.store(call, Ordering::Relaxed);
    descriptor.peer.store(peer, Ordering::Relaxed);
    descriptor.tag.store(tag, Ordering::Relaxed);
    descriptor
}

const _: () = assert!(request::FLAG_AWAITED != request::FLAG_WAKE);

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::job::{JobConfig, JobSegment};
    use crate::matching::request::{FLAG_AWAITED, FLAG_WAKE};
    use crate::node::NodeConfig;
    use std::sync::mpsc;
    use std::time::Duration;

    /// A message that ends a wait is taken in while room is waited for in another inbox, after the rank has looked and before it suspends.
    #[test]
    fn what_comes_while_room_is_waited_for_is_not_slept_over() {
        for flag in [FLAG_AWAITED, FLAG_WAKE] {
            let (tell, told) = mpsc::channel();
            std::thread::spawn(move || {
                let node = NodeSegment::create(&NodeConfig::on_one_core(0, 2)).unwrap();
                let job = JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(2) }).unwrap();
                let mut endpoint = Endpoint::new(node, job, 0);
                crate::sched::enter(&endpoint.node, 0);
                let index = endpoint.queues().take_slot().unwrap();
                let slot = &mut endpoint.queues().slots[index as usize];
                (slot.state, slot.flags) = (state::SENT, flag);
                endpoint.progress();
                if flag == FLAG_AWAITED {
                    endpoint.arm(1);
                }
                let mut fin = Envelope::EMPTY;
                (fin.kind, fin.request) = (kind::FIN, index);
                endpoint.job.inbox(0).push(&fin).unwrap();
                endpoint.drain_own();
                endpoint.suspend(1, -1, -1);
                // Once looked at, it is no reason to stay awake.
                endpoint.progress();
                tell.send(endpoint.queues().is_stirred()).unwrap();
            });
            assert_eq!(told.recv_timeout(Duration::from_secs(20)), Ok(false), "it sleeps");
        }
    }
}
