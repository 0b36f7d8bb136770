//! Envelopes for ranks of this node: delivered, or held until there is room, and the credits of the nodes that have sent them.
//!
//! What a node that lies can have held here is bounded: its envelopes by its credits, its answers (FIN, PULL), which go without, by what a rank can have
//! asked.

use std::collections::VecDeque;

use vmpi_fabric::fabric::BACKLOG_BYTES;
use vmpi_shared::endpoint::inspect;
use vmpi_shared::matching::envelope::Envelope;

use super::CarrierLoop;
use crate::carrier::wire::{self, BodyError, CREDITS};

/// So many delivered envelopes are told together.
const CREDIT_STEP: u32 = CREDITS / 4;

/// Up to here answers that wait for a rank are not counted against its requests.
const FEW_ANSWERS: u32 = 1024;

/// An envelope that could not be delivered at once.
pub(super) struct Held {
    /// Whose credit it holds.
    pub credit: Option<u32>,
    /// An answer of another node.
    answers: bool,
    pub envelope: Envelope,
    /// What has no block yet.
    pub payload: Vec<u8>,
}

/// Those for one rank, in their order.
#[derive(Default)]
pub(super) struct Line {
    queue: VecDeque<Held>,
    /// Answers of other nodes among them.
    answers: u32,
}

impl Line {
    fn push_back(&mut self, held: Held) {
        self.answers += u32::from(held.answers);
        self.queue.push_back(held);
    }

    fn push_front(&mut self, held: Held) {
        self.answers += u32::from(held.answers);
        self.queue.push_front(held);
    }

    fn pop_front(&mut self) -> Option<Held> {
        let held = self.queue.pop_front()?;
        self.answers -= u32::from(held.answers);
        Some(held)
    }
}

impl IntoIterator for Line {
    type Item = Held;
    type IntoIter = std::collections::vec_deque::IntoIter<Held>;

    fn into_iter(self) -> Self::IntoIter {
        self.queue.into_iter()
    }
}

/// Envelopes of a node for a rank here.
#[derive(Default)]
pub(super) struct Owed {
    /// That hold its credit.
    held: u32,
    /// Of those, the delivered ones, of which it has not been told.
    delivered: u32,
}

impl CarrierLoop {
    /// Deliver, or keep for later behind what waits for this rank already. `payload`: what has no block yet.
    pub(super) fn deliver(&mut self, credit: Option<u32>, to: u32, envelope: Envelope, payload: Vec<u8>) {
        self.deliver_held(to, Held { credit, answers: false, envelope, payload });
    }

    /// As `deliver`, for a FIN or PULL of another node.
    ///
    /// # Errors
    /// More wait already than rank `to` has requests for, of which each can have one FIN and one PULL.
    pub(super) fn deliver_answer(&mut self, to: u32, envelope: Envelope) -> Result<(), BodyError> {
        let waiting = self.pending.get(&to).map_or(0, |line| line.answers);
        if waiting >= FEW_ANSWERS && waiting >= inspect::requests(&self.endpoint.job, to).saturating_mul(2) {
            return Err(BodyError::Answers(to));
        }
        self.deliver_held(to, Held { credit: None, answers: true, envelope, payload: Vec::new() });
        Ok(())
    }

    fn deliver_held(&mut self, to: u32, held: Held) {
        if self.has_failed(to) {
            return self.drop_for_dead(held.credit, to, &held.envelope, held.payload.is_empty());
        }
        let waiting = self.pending.contains_key(&to);
        if !waiting && held.payload.is_empty() && self.endpoint.deliver(to, &held.envelope).is_ok() {
            return self.delivered(held.credit, to);
        }
        self.pending.entry(to).or_default().push_back(held);
    }

    /// Bytes, about, of all that waits.
    #[cfg(test)]
    pub(super) fn pending_bytes(&self) -> usize {
        let held = self.pending.values().flat_map(|line| &line.queue);
        held.map(|held| size_of::<Held>() + held.payload.capacity()).sum()
    }

    /// An envelope of `node` for a rank here takes one of its credits.
    ///
    /// # Errors
    /// It has none.
    pub(super) fn take_credit(&mut self, node: u32, to: u32) -> Result<(), BodyError> {
        let most = if self.reborn.contains(&to) { 2 * CREDITS } else { CREDITS };
        let owed = self.owed.entry((node, to)).or_default();
        if owed.held >= most {
            return Err(BodyError::Credits(to));
        }
        owed.held += 1;
        Ok(())
    }

    /// What holds a credit of `node` for rank `to` has been delivered, or done.
    pub(super) fn delivered(&mut self, credit: Option<u32>, to: u32) {
        if let Some(node) = credit {
            self.owed.entry((node, to)).or_default().delivered += 1;
        }
    }

    /// Does something wait here for more than memory, which only a rank that runs gives back?
    pub(super) fn may_deliver_soon(&self) -> bool {
        let job = &self.endpoint.job;
        self.pending.iter().any(|(rank, line)| match line.queue.front() {
            Some(held) if !held.payload.is_empty() => !job.chunks().is_scarce(),
            _ => !inspect::is_stuck(job, *rank),
        })
    }

    /// Try again what could not be delivered.
    pub(super) fn retry(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let ranks: Vec<u32> = self.pending.keys().copied().collect();
        for rank in ranks {
            while let Some(mut held) = self.pending.get_mut(&rank).and_then(Line::pop_front) {
                if !held.payload.is_empty() && self.endpoint.store(&mut held.envelope, &held.payload) {
                    held.payload = Vec::new();
                }
                if held.payload.is_empty() && self.endpoint.deliver(rank, &held.envelope).is_ok() {
                    self.delivered(held.credit, rank);
                    continue;
                }
                if let Some(line) = self.pending.get_mut(&rank) {
                    line.push_front(held);
                }
                break;
            }
            if self.pending.get(&rank).is_some_and(|line| line.queue.is_empty()) {
                self.pending.remove(&rank);
            }
        }
        self.settle();
    }

    /// Deliver the answers that matching has caused, until there are none.
    pub(super) fn settle(&mut self) {
        loop {
            let answers = self.endpoint.answers();
            if answers.is_empty() {
                return;
            }
            for (to, envelope) in answers {
                if self.endpoint.is_local(to) {
                    self.deliver(None, to, envelope, Vec::new());
                } else {
                    self.answer_remote(to, envelope);
                }
            }
        }
    }

    /// Give credits back; not to who does not take what has been sent already, among it what its envelopes have asked for.
    pub(super) fn say_credits(&mut self) {
        let CarrierLoop { owed, fabric, endpoint, .. } = self;
        owed.retain(|(node, rank), owed| {
            if owed.delivered >= CREDIT_STEP && fabric.backlog_bytes(*node) <= BACKLOG_BYTES {
                let count = owed.delivered.min(CREDITS);
                owed.delivered -= count;
                owed.held = owed.held.saturating_sub(count);
                fabric.send(*node, wire::CREDIT, &[&wire::from_words([*rank, count, endpoint.unexpected(*rank)])]);
            }
            owed.held > 0 || owed.delivered > 0
        });
    }
}
