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

use super::Endpoint;
use super::queue_loan::{Remaining, offer_queues, progress_for_offerer, reclaim_queues, try_reclaim_queues};
use crate::matching::envelope::kind;
use crate::mem::sync::{Ordering, yield_cpu};
use crate::sched::RunState;

impl Endpoint {
    /// This rank leaves MPI: let others match for it until `reclaim_queues`, if it has posted receives of large messages. True if they may.
    /// For small ones it does not pay: a ping-pong of 8 bytes with MPI_Irecv between two cores took 0.67 us instead of 0.46.
    #[inline]
    pub fn offer_queues(&mut self) -> bool {
        self.has_to_lend() && self.lend_queues()
    }

    /// Has it posted receives of large messages, in a job whose ranks lend their queues?
    #[inline]
    pub fn has_to_lend(&self) -> bool {
        self.lends && self.queues().head.posted_large != 0
    }

    fn lend_queues(&mut self) -> bool {
        let mut left = Remaining::Unknown;
        loop {
            offer_queues(&self.node, self.me);
            let inbox = self.inbox();
            let more = match &left {
                Remaining::Unknown => !inbox.is_quiet(),
                Remaining::Stuck => false,
                Remaining::Of(senders, come) => inbox.come() != *come || self.can_any_only_wait(senders),
            };
            if !more || !try_reclaim_queues(&self.node, self.me) {
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
    fn drain_for_waiting(&mut self) -> Remaining {
        let inbox = self.inbox();
        let come = inbox.come();
        let mut senders = Vec::new();
        inbox.look(|envelope| {
            if envelope.kind == kind::RTS {
                senders.push(envelope.from);
            }
        });
        if !self.can_any_only_wait(&senders) {
            return Remaining::Of(senders, come);
        }
        if !inbox.has_mail() {
            // Its turn comes when the one before it has been written.
            yield_cpu();
            return Remaining::Unknown;
        }
        let tail = inbox.ends.tail.load(Ordering::Relaxed);
        self.drain_own();
        let stuck = self.inbox().ends.tail.load(Ordering::Relaxed) == tail;
        self.flush();
        if stuck { Remaining::Stuck } else { Remaining::Unknown }
    }

    /// Has one of `senders` nothing else to do than to wait? (TENDED: it may be SUSPENDED again in a moment.)
    fn can_any_only_wait(&self, senders: &[u32]) -> bool {
        let waits = |state| matches!(state, RunState::Suspended | RunState::Tended | RunState::Remote);
        senders.iter().any(|sender| *sender < self.node.header().ranks && waits(self.node.state(*sender)))
    }

    /// It enters MPI again: the queues are its own.
    #[inline(never)]
    pub fn reclaim_queues(&self) {
        reclaim_queues(&self.node, self.me);
    }

    /// What this rank is about to wait for is that `receiver` takes a large message: if that one computes, it is given it.
    pub fn await_receiver(&mut self, receiver: u32) {
        if self.lends && receiver < self.node.header().ranks {
            self.receivers.push(receiver);
        }
    }

    /// Match for those that this rank waits for, as far as they let it.
    pub(super) fn progress_for_receivers(&mut self) {
        let (node, job, me, out) = (&self.node, &self.job, self.me, &mut self.outgoing);
        // One that has mail which only it can take is not looked at again.
        self.receivers.retain(|to| progress_for_offerer(node, job, me, *to, out));
        self.flush();
    }
}
