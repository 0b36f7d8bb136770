//! A rank that holds messages back: which there are, and letting them go. In what order, and when, is its own affair; of one sender they stay in order.

use super::Endpoint;
use super::transfer::RankMover;
use crate::matching::envelope::Envelope;
use crate::matching::queues::held::held;
use crate::matching::queues::{HOLDS, each_unexpected};
use crate::mem::sync::Ordering;

/// A context in which no message travels.
const NOWHERE: u32 = u32::MAX;

impl Endpoint {
    /// From now on what comes to this rank is held back until it is let go.
    pub fn hold_back(&mut self) {
        self.lends = false;
        self.queues().head.direct_room = HOLDS;
        self.forget_probe();
    }

    /// No probe is waited for: a message for it would pass for one of a direct receive.
    pub fn forget_probe(&mut self) {
        self.queues().head.probe_context = NOWHERE;
    }

    /// Of which ranks messages are held back, in the order in which the first of each came.
    pub fn held_senders(&self) -> Vec<u32> {
        let mut senders = Vec::new();
        for envelope in held().iter() {
            if !senders.contains(&envelope.from) {
                senders.push(envelope.from);
            }
        }
        senders
    }

    /// Let the oldest message of `sender` go. False: there is no room for it.
    pub fn let_go(&mut self, sender: u32) -> bool {
        let at = held().iter().position(|envelope| envelope.from == sender);
        let Some(envelope) = at.and_then(|at| held().remove(at)) else { return true };
        let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        let done = queues.admit(&envelope, &mut mover, &mut self.outgoing);
        self.serve();
        self.flush();
        done
    }

    /// Look at the envelope of each message that has come and that no receive has taken.
    pub fn each_unasked(&self, mut look: impl FnMut(&Envelope)) {
        // SAFETY: the segment outlives it, and the queues are this rank's own.
        let store = unsafe { self.job.parts(self.me).store() };
        each_unexpected(self.queues().head, &store, |message| {
            look(&message.envelope);
            true
        });
        held().iter().for_each(look);
    }

    /// In a replay: whose message this rank takes next.
    pub fn favour(&self, rank: u32) {
        let told = &self.inbox().ends.favoured;
        if told.load(Ordering::Relaxed) != rank + 1 {
            told.store(rank + 1, Ordering::Relaxed);
        }
    }

    /// Does rank `to`, of this node, hold `many` messages that it has not asked for, and is about to take another one's?
    pub fn is_flooded(&self, to: u32, many: u32) -> bool {
        if to == self.me || self.node.is_remote(to) {
            return false;
        }
        let ends = self.job.inbox(to).ends;
        let favoured = ends.favoured.load(Ordering::Relaxed);
        ends.unexpected.load(Ordering::Relaxed) >= many && favoured != 0 && favoured != self.me + 1
    }

    /// It was about to suspend and looks again instead.
    pub fn stay_awake(&mut self) {
        self.receivers.clear();
        self.queues().head.waiting = 0;
    }
}
