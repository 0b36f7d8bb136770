//! Queues that a computing rank lends out, so that messages are matched for it while it is outside MPI (strong progress).
//!
//! The run state says who owns the queues of a rank that waits; this word says it of one that is RUNNING or AWAY. As it leaves MPI with
//! receives of large messages posted, a rank lends its queues. A sender that can do nothing but wait for that rank takes them, matches, moves its
//! payload and gives them back; so does the carrier, which has messages from other nodes. The rank takes them back as it enters MPI again. Senders that
//! compute themselves do not: when both ranks are in MPI, both copy, which takes half the time.
//!
//! SYNC P: a sender is SUSPENDED and then looks whether its receiver lends; a receiver lends and then looks whether the sender of what it has not taken
//! is SUSPENDED. Jobs that survive deaths do not lend, since a death in the middle would damage the queues. Death story: a deliverer that dies with
//! queues in its hands ends the job, as with TENDED ones.

use super::envelope::kind;
use super::queues::Outgoing;
use super::tend::{Endpoint, wake_space_waiters};
use super::transfer::RankMover;
use crate::job::JobSegment;
use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use crate::node::NodeSegment;
use crate::sched::{self, RunState};

const SEQ: Ordering = Ordering::SeqCst;

/// The rank has its queues itself.
const KEPT: u32 = 0;
/// Nobody has them.
const LENT: u32 = 1;
/// A deliverer matches.
const TAKEN: u32 = 2;

/// Looks at queues that a deliverer has before the rank lets others use the CPU between two.
const QUICK_LOOKS: u32 = 1000;

/// Lend the queues of `rank`, which is this one and had them.
#[inline]
fn lend(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P: before it looks into its inbox
}

/// Take lent queues back, unless a deliverer has them right now.
fn try_take_back(node: &NodeSegment, rank: u32) -> bool {
    node.rank(rank).lent.compare_exchange(LENT, KEPT, SEQ, SEQ).is_ok()
}

/// Take lent queues back; while a deliverer matches, wait for it.
#[inline]
fn take_back(node: &NodeSegment, rank: u32) {
    let mut looks = 0;
    while !try_take_back(node, rank) {
        looks += 1;
        if looks < QUICK_LOOKS {
            spin_loop();
        } else {
            yield_cpu();
        }
    }
}

/// May a deliverer take the queues of `rank`?
#[inline]
pub fn is_lent(node: &NodeSegment, rank: u32) -> bool {
    let computes = matches!(node.state(rank), RunState::Running | RunState::Away | RunState::Adopted);
    node.rank(rank).lent.load(SEQ) == LENT && computes
}

/// As a deliverer: take the queues of `rank` if it lends them (SYNC P).
fn try_take(node: &NodeSegment, rank: u32) -> bool {
    is_lent(node, rank) && node.rank(rank).lent.compare_exchange(LENT, TAKEN, SEQ, SEQ).is_ok()
}

/// As a deliverer: give them back; the caller then looks into the inbox once more.
fn give_back(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P
}

/// What may be in the inbox of a rank that is about to compute.
enum Left {
    /// Whatever has come.
    Unknown,
    /// What there is no room for.
    Stuck,
    /// Large messages of these ranks, who do not wait; so many envelopes had come when they were looked at.
    Of(Vec<u32>, u64),
}

impl Endpoint {
    /// This rank leaves MPI: let others match for it until `take_back`, if it has posted receives of large messages. True if they may.
    /// For small ones it does not pay: a ping-pong of 8 bytes with MPI_Irecv between two cores took 0.67 us instead of 0.46.
    #[inline]
    pub fn lend(&mut self) -> bool {
        self.has_to_lend() && self.lend_queues()
    }

    /// Has it posted receives of large messages, in a job whose ranks lend their queues?
    #[inline]
    pub fn has_to_lend(&self) -> bool {
        self.lends && self.queues().head.posted_large != 0
    }

    fn lend_queues(&mut self) -> bool {
        let mut left = Left::Unknown;
        loop {
            lend(&self.node, self.me);
            let inbox = self.inbox();
            let more = match &left {
                Left::Unknown => !inbox.is_quiet(),
                Left::Stuck => false,
                Left::Of(senders, come) => inbox.come() != *come || self.can_any_only_wait(senders),
            };
            if !more || !try_take_back(&self.node, self.me) {
                return true;
            }
            left = self.drain_for_waiting();
            if self.queues().head.posted_large == 0 {
                return false;
            }
        }
    }

    /// Before this rank computes: take what is there, if one of the senders of large messages can do nothing but wait. Else the copies are
    /// better made when both are in MPI.
    #[cold]
    fn drain_for_waiting(&mut self) -> Left {
        let inbox = self.inbox();
        let come = inbox.come();
        let mut senders = Vec::new();
        inbox.look(|envelope| {
            if envelope.kind == kind::RTS {
                senders.push(envelope.from);
            }
        });
        if !self.can_any_only_wait(&senders) {
            return Left::Of(senders, come);
        }
        if !inbox.has_mail() {
            // Its turn comes when the one before it has been written.
            yield_cpu();
            return Left::Unknown;
        }
        let tail = inbox.ends.tail.load(Ordering::Relaxed);
        self.drain_own();
        let stuck = self.inbox().ends.tail.load(Ordering::Relaxed) == tail;
        self.flush();
        if stuck { Left::Stuck } else { Left::Unknown }
    }

    /// Has one of `senders` nothing else to do than to wait? (TENDED: it may be SUSPENDED again in a moment.)
    fn can_any_only_wait(&self, senders: &[u32]) -> bool {
        let waits = |state| matches!(state, RunState::Suspended | RunState::Tended | RunState::Remote);
        senders.iter().any(|sender| *sender < self.node.header().ranks && waits(self.node.state(*sender)))
    }

    /// It enters MPI again: the queues are its own.
    #[inline(never)]
    pub fn take_back(&self) {
        take_back(&self.node, self.me);
    }

    /// What this rank is about to wait for is that `receiver` takes a large message: if that one computes, it is given it.
    pub fn await_receiver(&mut self, receiver: u32) {
        if self.lends && receiver < self.node.header().ranks {
            self.receivers.push(receiver);
        }
    }

    /// Match for those that this rank waits for, as far as they let it.
    pub(super) fn tend_receivers(&mut self) {
        let (node, job, me, out) = (&self.node, &self.job, self.me, &mut self.outgoing);
        // One that has mail which only it can take is not looked at again.
        self.receivers.retain(|to| tend_lent(node, job, me, *to, out));
        self.flush();
    }
}

/// If `rank` computes and lends its queues, match for it, and move the payloads of rank `me`. False: it has mail that only itself can take.
pub(super) fn tend_lent(node: &NodeSegment, job: &JobSegment, me: u32, rank: u32, out: &mut Outgoing) -> bool {
    let inbox = job.inbox(rank);
    while try_take(node, rank) {
        let tail = inbox.ends.tail.load(Ordering::Relaxed);
        let any = inbox.has_mail();
        let mut mover = RankMover { node, job, me, on: rank };
        let mut others = Vec::new();
        // SAFETY: lent by their owner and taken by this process.
        let mut queues = unsafe { job.queues(rank) };
        queues.drain(&mut mover, out);
        queues.push_for(me, &mut mover, out, |sender| others.push(sender));
        wake_space_waiters(node, job, rank);
        let moved = inbox.ends.tail.load(Ordering::Relaxed) != tail;
        give_back(node, rank);
        if moved {
            // If one of these waits, it has looked before its message was matched here, or while this process had the queues.
            others
                .into_iter()
                .filter(|sender| *sender < node.header().ranks)
                .for_each(|sender| sched::wake(node, sender));
        } else if any {
            return false;
        }
        if inbox.is_quiet() {
            break;
        }
        if !any {
            // The oldest is being written; its sender may need this CPU.
            yield_cpu();
        }
    }
    true
}
