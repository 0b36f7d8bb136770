//! Deaths and revocations, told from node to node, in a job that survives deaths.
//!
//! On one node a rank that hears of a death has everything that the dead one had sent in its inbox, and whoever has copied from another's memory looks
//! whether that one may have given the message up before it believes the data (`ft` in the core). Over nodes the order of frames gives the same:
//!
//! - The news of a death goes behind all that lay in the outboxes when it was noticed (`Notice::marks`), and is published on the other node when
//!   everything before it has been delivered (`Late`).
//! - The last byte of a large message does not complete it, nor does an error that was met in reading it (the sender may have given it up, and its
//!   memory with it): the frame SENT does, which goes where nothing that has changed before the sender's memory was read is still to be told. So a receiver
//!   that completes knows what its sender knew.
//! - Of a death on a third node the sender may have heard first. So a node that publishes one says so to the others (KNOWN), and what comes from it
//!   behind that counts when they have published it, too.
//! - What names a request of a rank whose peer has died is forgotten before that rank hears of it, because it then uses the request again.
//!
//! Revocations are found in the list of the job segment, and go into the other nodes' lists, from there on to all others. Who publishes wakes the carrier: by its bell, or by marking
//! the outbox of a member there; the daemon rings for one that has died in between.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use vmpi_shared::ask::Ask;
use vmpi_shared::job::REVOCATIONS;
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::outcome;
use vmpi_shared::sched::failure;

use super::deliver::Held;
use super::{CarrierLoop, Peer};
use crate::carrier::transfer::{Incoming, Outgoing};
use crate::carrier::wire::{self, BodyError};

/// A death of which a node is to be told.
struct Notice {
    node: u32,
    dead: u32,
    /// Ranks of that node, and how many envelopes for each were there or being written when the death was noticed.
    marks: Vec<(u32, u64)>,
}

/// What waits until everything that came before it has been delivered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Late {
    Dead(u32),
    Sent(u32),
    Known(u32),
}

/// What has come from other nodes and not been acted on yet.
#[derive(Default)]
struct News(BTreeMap<u32, VecDeque<Late>>);

impl News {
    /// Who says of a rank the same again says nothing; of a transfer it is heard once (`Incoming::told`).
    fn came(&mut self, node: u32, late: Late) {
        let queue = self.0.entry(node).or_default();
        if matches!(late, Late::Sent(_)) || !queue.contains(&late) {
            queue.push_back(late);
        }
    }

    /// What may be acted on, and whose word it is. Deaths wait for nothing but deliveries: if they waited behind what others know, two nodes
    /// that knew of each other's dead would wait for each other's news.
    fn next(&mut self, delivered: bool, has_failed: impl Fn(u32) -> bool) -> Option<(u32, Late)> {
        self.0.iter_mut().find_map(|(node, late)| {
            let dead = late.iter().position(|late| delivered && matches!(late, Late::Dead(_)));
            let first = match late.front()? {
                Late::Dead(_) => false,
                Late::Known(rank) => has_failed(*rank),
                Late::Sent(_) => true,
            };
            let at = dead.or(first.then_some(0))?;
            Some((*node, late.remove(at)?))
        })
    }
}

/// What the carrier knows of deaths and revocations.
#[derive(Default)]
pub(super) struct Deaths {
    /// `JobSegment::changes` as far as this process has acted on them.
    seen: u64,
    /// Entries of the list of revocations that have been read.
    revocations: usize,
    /// Contexts of which all nodes know, or have been told.
    revoked: BTreeSet<u32>,
    /// Ranks of this node that have failed.
    buried: BTreeSet<u32>,
    untold: Vec<Notice>,
    late: News,
    /// Large messages that have been read whole, or cannot be, and of which that is to be said.
    read: Vec<Outgoing>,
}

impl Deaths {
    /// Is there nothing to be told or said?
    pub fn are_told(&self) -> bool {
        self.untold.is_empty() && self.read.is_empty()
    }

    /// Nor anything to be acted on?
    pub fn are_done(&self) -> bool {
        self.are_told() && self.late.0.values().all(VecDeque::is_empty)
    }

    /// Bytes, about.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        let late = self.late.0.values().map(|late| late.capacity() * size_of::<Late>());
        late.sum::<usize>() + self.revoked.len() * 8 + (self.untold.len() + self.read.len()) * 256
    }

    /// Nothing more is read of a message out of its sender's memory.
    pub fn is_read(&mut self, out: Outgoing) {
        self.read.push(out);
    }
}

impl CarrierLoop {
    /// Does the job survive deaths?
    pub(super) fn survives(&self) -> bool {
        self.endpoint.node.header().recovery != 0
    }

    /// Has this rank, of whichever node, failed?
    pub(super) fn has_failed(&self, rank: u32) -> bool {
        self.endpoint.node.failure(rank).is_some()
    }

    /// Find out what has changed, tell it, and say what follows from that.
    pub(super) fn mourn(&mut self) {
        if !self.survives() {
            return;
        }
        loop {
            self.look_at_changes();
            self.act_on_late();
            if !self.stalled.is_empty() {
                self.collect_all();
            }
            self.tell_deaths();
            self.say_read();
            self.settle();
            // What has just been published is to be acted on before this process sleeps.
            if self.endpoint.job.changes() == self.deaths.seen {
                return;
            }
        }
    }

    fn look_at_changes(&mut self) {
        let changes = self.endpoint.job.changes();
        if changes == self.deaths.seen {
            return;
        }
        self.deaths.seen = changes;
        while let Some(context) = self.endpoint.job.revocation(self.deaths.revocations) {
            self.deaths.revocations += 1;
            if self.deaths.revoked.insert(context) {
                self.tell_all(wire::REVOKED, context);
            }
        }
        for rank in 0..self.nodes.of_rank.len() as u32 {
            if self.endpoint.is_local(rank) && self.has_failed(rank) && self.deaths.buried.insert(rank) {
                self.bury(rank);
            }
        }
    }

    fn tell_all(&mut self, kind: u8, number: u32) {
        for node in (0..self.peers.len() as u32).filter(|node| *node != self.nodes.here) {
            self.fabric.send(node, kind, &[&number.to_le_bytes()]);
        }
    }

    /// A rank of this node has failed: nothing of what it had announced can be read any more, and nothing is brought to it.
    fn bury(&mut self, dead: u32) {
        self.announced.retain(|(rank, _), _| *rank != dead);
        self.outgoing.retain(|out| out.rank != dead);
        self.deaths.read.retain(|out| out.rank != dead);
        for Held { credit, envelope, payload, .. } in self.pending.remove(&dead).into_iter().flatten() {
            self.drop_for_dead(credit, dead, &envelope, payload.is_empty());
        }
        let elsewhere: Vec<u32> =
            (0..self.nodes.of_rank.len() as u32).filter(|rank| self.endpoint.node.is_remote(*rank)).collect();
        for node in (0..self.peers.len() as u32).filter(|node| *node != self.nodes.here) {
            let there = elsewhere.iter().filter(|rank| self.nodes.of_rank[**rank as usize] == node);
            let marks = there.map(|rank| (*rank, self.endpoint.job.inbox(*rank).come())).collect();
            self.deaths.untold.push(Notice { node, dead, marks });
        }
        // It may have died before it marked what it had pushed.
        self.stalled.extend(elsewhere);
    }

    /// An envelope for a rank of this node that has failed. `stored`: its payload, if it has one, is in a block of its sender's slab here.
    pub(super) fn drop_for_dead(&mut self, credit: Option<u32>, dead: u32, envelope: &Envelope, stored: bool) {
        if stored && wire::has_payload(envelope) {
            self.endpoint.give_back(envelope);
        }
        self.delivered(credit, dead);
    }

    /// What a rank here asked of a rank that has failed, or of its memory, and what has not left: it will not be done.
    pub(super) fn refuse_for_dead(&mut self, envelope: &Envelope) {
        let Ok(ask) = Ask::of(envelope) else { return };
        let how = match () {
            () if ask.what.fetches() => kind::PLACED,
            () if ask.what.is_answered() => kind::FIN,
            () => return,
        };
        let mut refused = answer(how, envelope.request);
        refused.set_peer_request(outcome::PEER_FAILED);
        self.deliver(None, envelope.from, refused, Vec::new());
    }

    /// Tell the nodes of deaths, as soon as everything that the dead had pushed has left.
    fn tell_deaths(&mut self) {
        let CarrierLoop { deaths, endpoint, peers, fabric, .. } = self;
        deaths.untold.retain(|notice| {
            if peers[notice.node as usize] == Peer::Gone {
                return false;
            }
            let left = notice.marks.iter().all(|(to, mark)| endpoint.job.inbox(*to).gone() >= *mark);
            if left {
                fabric.send(notice.node, wire::DEAD, &[&notice.dead.to_le_bytes()]);
            }
            !left
        });
    }

    /// Say of messages that they have been read, unless something has changed since that is to be told first.
    fn say_read(&mut self) {
        if self.deaths.read.is_empty() || self.endpoint.job.changes() != self.deaths.seen {
            return;
        }
        for out in std::mem::take(&mut self.deaths.read) {
            if self.deaths.untold.iter().any(|notice| notice.node == out.node) {
                self.deaths.read.push(out);
                continue;
            }
            self.fabric.send(out.node, wire::SENT, &[&out.transfer.to_le_bytes()]);
            self.end_outgoing(&out);
        }
    }

    /// A rank of `node` has failed, or (`known`) ranks there know of one of a third node.
    ///
    /// # Errors
    /// That one lives elsewhere.
    pub(super) fn heard_of_death(&mut self, node: u32, rank: u32, known: bool) -> Result<(), BodyError> {
        let home = self.nodes.of_rank.get(rank as usize).copied().ok_or(BodyError::NotThere(rank))?;
        let fits = if known { home != node && home != self.nodes.here } else { home == node };
        if !fits {
            return Err(BodyError::NotThere(rank));
        }
        self.deaths.late.came(node, if known { Late::Known(rank) } else { Late::Dead(rank) });
        Ok(())
    }

    /// Nothing more is read of what `node` sends as `transfer`. Of one that is void nothing may be left here.
    pub(super) fn heard_sent(&mut self, node: u32, transfer: u32) {
        let entry = self.incoming.get_mut(&transfer).filter(|entry| entry.node == node && !entry.told);
        if let Some(entry) = entry {
            entry.told = true;
            self.deaths.late.came(node, Late::Sent(transfer));
        }
    }

    /// Another node says that a communicator has been revoked. Ranks of this one may act on that before a third one hears of it.
    ///
    /// # Errors
    /// More than there can be.
    pub(super) fn revoked(&mut self, context: u32) -> Result<(), BodyError> {
        if self.deaths.revoked.contains(&context) {
            return Ok(());
        }
        if self.deaths.revoked.len() >= REVOCATIONS {
            return Err(BodyError::Number { kind: wire::REVOKED, what: "context", number: context.into() });
        }
        self.deaths.revoked.insert(context);
        self.tell_all(wire::REVOKED, context);
        self.endpoint.job.revoke(context, self.deaths.revocations);
        failure::wake_all(&self.endpoint.node, &self.endpoint.job);
        Ok(())
    }

    /// Act on what has come, as far as everything before it has been delivered.
    fn act_on_late(&mut self) {
        loop {
            let (delivered, node) = (self.pending.is_empty(), &self.endpoint.node);
            let Some((node, late)) = self.deaths.late.next(delivered, |rank| node.failure(rank).is_some()) else {
                return;
            };
            match late {
                Late::Dead(rank) => self.died_elsewhere(rank),
                Late::Known(_) => {}
                Late::Sent(transfer) => {
                    if let Some(entry) = self.incoming.get_mut(&transfer).filter(|entry| entry.node == node) {
                        entry.said = true;
                    }
                    self.finish_incoming();
                }
            }
        }
    }

    /// A rank of another node has failed, and all that it had sent has been delivered.
    fn died_elsewhere(&mut self, dead: u32) {
        self.announced.retain(|_, announced| announced.to != dead);
        let mut credits = Vec::new();
        self.outgoing.retain(|out| {
            if out.to == dead && out.credit {
                credits.push((out.node, out.rank));
            }
            out.to != dead
        });
        self.deaths.read.retain(|out| out.to != dead);
        let mut unanswered = Vec::new();
        for entry in self.incoming.values_mut().filter(|entry| entry.sender == dead && !entry.void) {
            entry.void = true;
            if std::mem::take(&mut entry.credit) {
                credits.push((entry.node, entry.rank));
            }
            if entry.is_fetched() {
                unanswered.push((entry.rank, entry.request));
            }
        }
        credits.into_iter().for_each(|(node, rank)| self.delivered(Some(node), rank));
        for (rank, request) in unanswered {
            let mut refused = answer(kind::PLACED, request);
            refused.set_peer_request(outcome::PEER_FAILED);
            self.deliver(None, rank, refused, Vec::new());
        }
        failure::publish_elsewhere(&self.endpoint.node, &self.endpoint.job, dead);
        // Behind everything that was read before, and before what is read from now on.
        let home = self.nodes.of_rank.get(dead as usize).copied();
        for node in (0..self.peers.len() as u32).filter(|node| *node != self.nodes.here && Some(*node) != home) {
            self.fabric.send(node, wire::KNOWN, &[&dead.to_le_bytes()]);
        }
        // What lies in its outbox, and who waits for room there.
        self.stalled.insert(dead);
    }
}

impl Incoming {
    /// Is it the answer to what a rank here has asked about another's memory?
    fn is_fetched(&self) -> bool {
        self.pull.kind != kind::PULL && !self.answers_sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Everything that may be acted on, in that order.
    fn all(news: &mut News, failed: &RefCell<BTreeSet<u32>>) -> Vec<Late> {
        let mut all = Vec::new();
        while let Some((_, late)) = news.next(true, |rank| failed.borrow().contains(&rank)) {
            if let Late::Dead(rank) = late {
                failed.borrow_mut().insert(rank);
            }
            all.push(late);
        }
        all
    }

    #[test]
    fn what_presupposes_a_death_waits_for_it() {
        let (mut news, failed) = (News::default(), RefCell::default());
        news.came(1, Late::Sent(1));
        news.came(1, Late::Known(7));
        news.came(1, Late::Sent(2));
        assert_eq!(all(&mut news, &failed), [Late::Sent(1)]);
        news.came(2, Late::Dead(7));
        news.came(2, Late::Sent(3));
        assert_eq!(news.next(false, |_| false), None, "what came before has not been delivered");
        assert_eq!(all(&mut news, &failed), [Late::Dead(7), Late::Known(7), Late::Sent(2), Late::Sent(3)]);
    }

    #[test]
    fn nodes_that_know_of_each_others_dead_do_not_wait_for_each_other() {
        let (mut news, failed) = (News::default(), RefCell::default());
        for (node, other, own) in [(1, 8, 7), (2, 7, 8)] {
            news.came(node, Late::Known(other));
            news.came(node, Late::Sent(node));
            news.came(node, Late::Dead(own));
        }
        assert_eq!(all(&mut news, &failed).len(), 6);
        assert_eq!(*failed.borrow(), BTreeSet::from([7, 8]));
    }
}
