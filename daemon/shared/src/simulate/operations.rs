//! One-sided communication in virtual time: what a rank does in the memory of another one, which takes no part in it.
//!
//! An operation travels as a message does. When it is there, its origin does it: a process of its own, so that whatever it is needs no other's help, and the
//! target may compute or wait meanwhile. The origin is in MPI then, or has not got so far; where it waits for something else it is made to run. Its answer
//! travels back, and ends its request.
//!
//! What is done so at one time is there at that time, for all: an operation begins when nobody can do anything earlier any more, and nothing happens before it
//! is over (`Counts::doing`). So operations on one memory come one after the other, in the order of virtual time, and a target that looks sees those that
//! have come by its clock, and no others. What is written so is seen by who goes on next through the engine's lock, which both have held. Death story: that of the
//! simulation; the job of a rank that dies at an operation is ended. One that cannot meet another (`FLAG_DONE`) has been done where it was begun, and only takes its time.

use super::engine::{Engine, Exhausted, OF_GRANTED, answer_tie, number_of};
use super::heap::Entry;
use super::layout::{Event, status, what};
use super::network::{Flow, Network};
use crate::matching::envelope::{FLAG_DONE, FLAG_UNANSWERED, kind};
use crate::matching::queues::answer;
use crate::mem::sync::Ordering;

/// The request of another rank is over: what was asked for at `target` is granted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    pub target: u32,
    pub to: u32,
    pub request: u32,
}

impl Event {
    /// What has been under way to `to` is for `from`, from now on: an operation is done by whoever has begun it.
    pub(super) fn turn_to_who_does_it(&mut self) {
        if self.envelope.kind == kind::OPERATION && self.played == 0 && self.to != self.envelope.from {
            std::mem::swap(&mut self.from, &mut self.to);
        }
    }

    fn is_to_be_done(&self) -> bool {
        self.what == what::ARRIVES && self.envelope.kind == kind::OPERATION && self.envelope.flags & FLAG_DONE == 0
    }
}

impl Engine<'_> {
    /// What is done in another rank's memory is seen by those who run: so nobody may be before it.
    pub(super) fn may_happen(&self, next: Entry) -> bool {
        next.key.time < self.horizon() || !self.events[next.event as usize].is_to_be_done()
    }

    /// An operation is there: its answer is under way, and its origin is to do it.
    pub(super) fn operate(
        &mut self,
        index: u32,
        at: u64,
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let Event { from: target, to: origin, envelope, tie, .. } = self.events[index as usize];
        if envelope.flags & FLAG_UNANSWERED == 0 {
            let mut fin = answer(kind::FIN, envelope.request);
            fin.len = envelope.offset();
            let back = self.make(what::ARRIVES, (target, 0), origin, &fin)?;
            self.events[back as usize].tie = answer_tie(origin, number_of(tie));
            if network.shares(target, origin, fin.len) {
                let flow = Flow { at, key: 0, from: target, to: origin, bytes: fin.len };
                self.flow(back, what::FLOWS, flow, network)?;
            } else {
                let wire = network.cost(target, origin, fin.len).wire;
                self.there(back, at.saturating_add(wire), woken);
            }
        }
        if !self.events[index as usize].is_to_be_done() {
            self.forget(index);
            self.free_event(index);
            return Ok(());
        }
        if self.ranks[origin as usize].status.load(Ordering::Relaxed) != status::OVER {
            self.counts.doing = origin + 1;
        }
        self.happen(index, at, woken);
        Ok(())
    }

    /// `rank` has done the operation that came at `at`, and so these are answered.
    pub fn has_done(
        &mut self,
        rank: u32,
        at: u64,
        grants: &[Grant],
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        for grant in grants {
            let wire = network.cost(grant.target, grant.to, 0).wire;
            let (to, fin) = ((grant.to, OF_GRANTED | u64::from(grant.request)), answer(kind::FIN, grant.request));
            self.arrive(at.saturating_add(wire), rank, to, &fin, woken)?;
        }
        if self.counts.doing == rank + 1 {
            self.counts.doing = 0;
        }
        Ok(())
    }
}
