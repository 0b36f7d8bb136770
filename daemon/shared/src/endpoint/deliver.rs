//! Delivering a message: into the receiver's inbox, waiting for room there, and seeing to it that somebody takes it out.

use super::Endpoint;
use super::carrier;
use super::inspect;
use super::proxy::{progress_for, spinner, wake_waiter};
use super::queue_loan::progress_for_offerer;
use super::transfer::RankMover;
use crate::job::JobSegment;
use crate::matching::envelope::{Envelope, kind};
use crate::matching::inbox::{Full, Inbox};
use crate::matching::request;
use crate::mem::sync::{Ordering, yield_cpu};
use crate::node::{NodeSegment, RankDescriptor};
use crate::sched::{self, RunState, Wait, carrier_bell, watch};

impl Endpoint {
    /// Bring `envelope` to rank `to`; suspends while its inbox is full. Answers that this causes are delivered too.
    pub fn deliver(&mut self, to: u32, envelope: &Envelope) {
        self.deliver_one(to, envelope);
        self.flush();
    }

    /// Bring `envelope`, an eager message, to rank `to`, unless that holds so many unexpected messages that its senders wait: false.
    #[inline(always)]
    pub fn deliver_unless_crowded(&mut self, to: u32, envelope: &Envelope) -> bool {
        if to == self.me && self.keep(envelope) {
            if !self.outgoing.is_empty() {
                self.flush();
            }
            return true;
        }
        let inbox = self.job.inbox(to);
        if inbox.ends.unexpected.load(Ordering::Relaxed) >= self.job.config().unexpected_limit && to != self.me {
            return false;
        }
        let pushed = self.push_in(inbox, envelope);
        self.deliver_rest(to, envelope, pushed);
        if !self.outgoing.is_empty() {
            self.flush();
        }
        true
    }

    /// Match a message of this rank to itself, past its inbox, whose lines senders on other cores write, too. False if there is no room for it, or was none for an
    /// earlier one.
    #[inline(never)]
    fn keep(&mut self, envelope: &Envelope) -> bool {
        if self.posts_to_itself {
            return false;
        }
        let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        let kept = queues.accept(envelope, &mut mover, &mut self.outgoing);
        self.posts_to_itself = !kept;
        kept
    }

    /// Deliver the answers that matching has left.
    #[inline]
    pub(super) fn flush(&mut self) {
        while let Some((to, envelope)) = self.outgoing.pop() {
            self.deliver_one(to, &envelope);
        }
    }

    #[inline(never)]
    pub(super) fn deliver_one(&mut self, to: u32, envelope: &Envelope) {
        if to == self.me && self.keep(envelope) {
            return;
        }
        let pushed = self.push(to, envelope);
        self.deliver_rest(to, envelope, pushed);
    }

    /// The first try to push has ended so.
    #[inline(always)]
    fn deliver_rest(&mut self, to: u32, envelope: &Envelope, pushed: Result<(), Full>) {
        if pushed == Err(Full) && !self.push_when_possible(to, envelope) {
            return;
        }
        if to != self.me {
            self.notify(to, envelope);
        }
    }

    /// As `push`, as soon as there is room. False if nobody makes room any more, nor misses the message: what this rank waits for from that one
    /// ends with an error.
    #[cold]
    fn push_when_possible(&mut self, to: u32, envelope: &Envelope) -> bool {
        // The inboxes of a simulated job are full, for ever.
        if self.is_simulated() {
            self.send_in_virtual_time(to, envelope);
            return false;
        }
        while self.push(to, envelope) == Err(Full) {
            if self.node.failure(to).is_some() {
                return false;
            }
            self.await_space(to);
        }
        true
    }

    fn push(&self, to: u32, envelope: &Envelope) -> Result<(), Full> {
        self.push_in(self.job.inbox(to), envelope)
    }

    #[inline(always)]
    fn push_in(&self, inbox: Inbox<'_>, envelope: &Envelope) -> Result<(), Full> {
        if self.node.header().recovery != 0 { inbox.push_signed(envelope, self.me) } else { inbox.push(envelope) }
    }

    /// `to` has mail: let the spinner of its core know, or end its wait or match for it here if it is suspended.
    #[inline(always)]
    fn notify(&mut self, to: u32, envelope: &Envelope) {
        let node = &self.node;
        if node.header().spread != 0 && node.is_remote(to) {
            let call = if carrier::more_may_follow(envelope) { carrier_bell::call_soon } else { carrier_bell::call };
            return call(node, to);
        }
        // SYNC A: the push (sequentially consistent) comes before the look at holder and state.
        let receiver = node.rank(to);
        let core = node.core_in(receiver);
        // A sender that has announced a large payload matches itself: it may write straight into the receiver's buffer.
        if envelope.kind != kind::RTS && core != self.core && watch::leave_to_spinner(node, core, to) {
            return;
        }
        if !(waits_for(receiver, envelope) && sched::ready_untended(node, to, receiver)) {
            self.progress_for(to);
        }
    }

    /// If `rank` is suspended, match for it; make it READY if that ended its wait.
    fn progress_for(&mut self, rank: u32) {
        progress_for(&self.node, &self.job, self.me, rank, &mut self.outgoing);
    }

    /// Wait until the inbox of `to` has room: match for it if it is suspended, else suspend until it has drained.
    #[cold]
    fn await_space(&mut self, to: u32) {
        if to == self.me {
            self.drain_own();
            // Memory has ended for what lies there. Others may give some back.
            if !self.is_stuck() {
                return;
            }
        } else {
            self.progress_for(to);
            progress_for_offerer(&self.node, &self.job, self.me, to, &mut self.outgoing);
            if self.job.inbox(to).has_space() {
                return;
            }
            // While this rank waits for others they must be able to finish with it.
            self.drain_own();
        }
        let (node, job) = (&self.node, &self.job);
        let inbox = job.inbox(to);
        // SAFETY: this endpoint outlives it.
        let mine = unsafe { self.own.inbox() };
        node.rank(self.me).call.store(6, Ordering::Relaxed);
        node.rank(self.me).peer.store(to as i32, Ordering::Relaxed);
        let stuck = self.is_stuck();
        let mut over = || {
            // When this rank can be found waiting, and not before: who made room in between would take the wish for one that has been heard, and
            // others may have filled the room again. The wish before the look, as whoever drains makes room before the look at that.
            inbox.ends.space_wanted.store(1, Ordering::SeqCst);
            let there = inbox.has_space() || (!stuck && mine.has_mail());
            there || awaits_mail(node, job, to) || node.failure(to).is_some()
        };
        let slept = sched::suspend_tending(
            node,
            self.me,
            Wait::Space,
            to,
            node.header().spin_ticks,
            &mut over,
            &mut spinner(node, job, self.me, &mut self.outgoing),
        );
        if !slept && !self.job.inbox(to).has_space() {
            // Another sender has taken a cell and not filled it yet, so nobody can drain: it may need this CPU.
            yield_cpu();
        }
    }

    /// Collective cell `cell` has changed: wake those of `members` that wait for it. The caller has fenced (SYNC A).
    pub fn wake_cell(&mut self, cell: u32, members: impl Iterator<Item = u32>) {
        for member in members {
            if member == self.me {
                continue;
            }
            wake_waiter(&self.node, member, Wait::Cell, cell);
            if self.node.rank(member).cell_threads.load(Ordering::SeqCst) != 0 {
                // Several threads wait for different things there: a message wakes them all.
                let mut wake = Envelope::EMPTY;
                wake.kind = kind::WAKE;
                self.deliver_one(member, &wake);
            }
        }
        self.flush();
    }

    /// What `rank` waits for in memory that it shares with this rank may have come about. The caller has fenced.
    pub fn wake_rank(&mut self, rank: u32) {
        if rank == self.me {
            return;
        }
        if self.node.is_remote(rank) {
            // In a window's segment here its carrier waits in its name.
            return carrier_bell::call(&self.node, rank);
        }
        sched::wake(&self.node, rank);
        if self.node.rank(rank).cell_threads.load(Ordering::SeqCst) != 0 {
            // Several threads wait for different things there: a message wakes them all.
            let mut wake = Envelope::EMPTY;
            wake.kind = kind::WAKE;
            self.deliver_one(rank, &wake);
            self.flush();
        }
    }
}

/// Is `rank` suspended, so that others can match for it? Not if memory has ended for the first message in its inbox: who waits for room there would wake it, and
/// then itself, for ever.
#[inline]
fn awaits_mail(node: &NodeSegment, job: &JobSegment, rank: u32) -> bool {
    node.state(rank) == RunState::Suspended && !inspect::is_stuck(job, rank)
}

/// Does `receiver` wait for this message, which it can take itself, and for nothing else?
#[inline]
fn waits_for(receiver: &RankDescriptor, envelope: &Envelope) -> bool {
    // The state first: it was changed after the rest had been written.
    receiver.state.load(Ordering::SeqCst) == RunState::Suspended.word()
        && receiver.wait_kind.load(Ordering::Relaxed) == Wait::Message as u32
        && receiver.wait_operand.load(Ordering::Relaxed) == envelope.context
        && envelope.is_eager()
        && request::accepts(
            receiver.peer.load(Ordering::Relaxed),
            receiver.tag.load(Ordering::Relaxed),
            envelope.source,
            envelope.tag,
        )
}
