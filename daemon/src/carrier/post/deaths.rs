//! Deaths and revocations, told from node to node, in a job that survives deaths.
//!
//! On one node a rank that hears of a death has everything that the dead one had sent in its inbox, and whoever has copied from another's memory looks
//! whether that one may have given the message up before it believes the data (`ft` in the core). Over nodes the order of frames gives the same:
//!
//! - The news of a death goes behind all that lay in the outboxes when it was noticed (`Notice::marks`), and is published on the other node when
//!   everything before it has been delivered (`Late`).
//! - The last byte of a large message does not complete it; the frame SENT does, which goes where nothing that has changed before the sender's
//!   memory was read is still to be told. So a receiver that completes knows what its sender knew.
//! - What names a request of a rank whose peer has died is forgotten before that rank hears of it, because it then uses the request again.
//!
//! Revocations are found in the list of the job segment, and go into the other nodes' lists. Who publishes wakes the carrier: by its bell, or by marking
//! the outbox of a member there; the daemon rings for one that has died in between.

use std::collections::{BTreeSet, VecDeque};

use vmpi_shared::ask::Ask;
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::outcome;
use vmpi_shared::sched::failure;

use super::{Peer, Post};
use crate::carrier::transfer::{Incoming, Outgoing};
use crate::carrier::wire;

/// A death of which a node is to be told.
struct Notice {
    node: u32,
    dead: u32,
    /// Ranks of that node, and how many envelopes for each were there or being written when the death was noticed.
    marks: Vec<(u32, u64)>,
}

/// What waits until everything that came before it has been delivered.
enum Late {
    Dead(u32),
    Sent(u32),
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
    late: VecDeque<Late>,
    /// Large messages that have been read whole, and of which that is to be said.
    read: Vec<Outgoing>,
}

impl Deaths {
    /// Is there nothing to be told or said?
    pub fn are_told(&self) -> bool {
        self.untold.is_empty() && self.read.is_empty()
    }

    /// A death or a completion has come.
    pub fn came(&mut self, kind: u8, number: u32) {
        self.late.push_back(if kind == wire::DEAD { Late::Dead(number) } else { Late::Sent(number) });
    }

    /// The last byte of a message has been read out of its sender's memory.
    pub fn is_read(&mut self, out: Outgoing) {
        self.read.push(out);
    }
}

impl Post {
    /// Does the job survive deaths?
    pub(super) fn survives(&self) -> bool {
        self.courier.node.header().recovery != 0
    }

    /// Has this rank, of whichever node, failed?
    pub(super) fn has_failed(&self, rank: u32) -> bool {
        self.courier.node.failure(rank).is_some()
    }

    /// Find out what has changed, tell it, and say what follows from that.
    pub(super) fn mourn(&mut self) {
        if !self.survives() {
            return;
        }
        self.look_at_changes();
        self.act_on_late();
        if !self.stalled.is_empty() {
            self.collect_all();
        }
        self.tell_deaths();
        self.say_read();
        self.settle();
    }

    fn look_at_changes(&mut self) {
        let changes = self.courier.job.changes();
        if changes == self.deaths.seen {
            return;
        }
        self.deaths.seen = changes;
        while let Some(context) = self.courier.job.revocation(self.deaths.revocations) {
            self.deaths.revocations += 1;
            if self.deaths.revoked.insert(context) {
                self.tell_all(wire::REVOKED, context);
            }
        }
        for rank in 0..self.nodes.of_rank.len() as u32 {
            if self.courier.is_local(rank) && self.has_failed(rank) && self.deaths.buried.insert(rank) {
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
        for (credit, envelope, held) in self.pending.remove(&dead).into_iter().flatten() {
            self.drop_for_dead(credit, dead, &envelope, held.is_empty());
        }
        let elsewhere: Vec<u32> =
            (0..self.nodes.of_rank.len() as u32).filter(|rank| self.courier.node.is_remote(*rank)).collect();
        for node in (0..self.peers.len() as u32).filter(|node| *node != self.nodes.here) {
            let there = elsewhere.iter().filter(|rank| self.nodes.of_rank[**rank as usize] == node);
            let marks = there.map(|rank| (*rank, self.courier.job.inbox(*rank).come())).collect();
            self.deaths.untold.push(Notice { node, dead, marks });
        }
        // It may have died before it marked what it had pushed.
        self.stalled.extend(elsewhere);
    }

    /// An envelope for a rank of this node that has failed. `stored`: its payload, if it has one, is in a block of its sender's slab here.
    pub(super) fn drop_for_dead(&mut self, credit: Option<u32>, dead: u32, envelope: &Envelope, stored: bool) {
        if stored && wire::has_payload(envelope) {
            self.courier.give_back(envelope);
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
        let Post { deaths, courier, peers, fabric, .. } = self;
        deaths.untold.retain(|notice| {
            if peers[notice.node as usize] == Peer::Gone {
                return false;
            }
            let left = notice.marks.iter().all(|(to, mark)| courier.job.inbox(*to).gone() >= *mark);
            if left {
                fabric.send(notice.node, wire::DEAD, &[&notice.dead.to_le_bytes()]);
            }
            !left
        });
    }

    /// Say of messages that they have been read, unless something has changed since that is to be told first.
    fn say_read(&mut self) {
        if self.deaths.read.is_empty() || self.courier.job.changes() != self.deaths.seen {
            return;
        }
        for out in std::mem::take(&mut self.deaths.read) {
            if self.deaths.untold.iter().any(|notice| notice.node == out.node) {
                self.deaths.read.push(out);
                continue;
            }
            self.fabric.send(out.node, wire::SENT, &[&out.transfer.to_le_bytes()]);
            self.deliver(None, out.rank, answer(kind::FIN, out.request), Vec::new());
        }
    }

    /// Another node says that a communicator has been revoked.
    pub(super) fn revoked(&mut self, context: u32) {
        if self.deaths.revoked.insert(context) {
            self.courier.job.revoke(context, self.deaths.revocations);
            failure::wake_all(&self.courier.node, &self.courier.job);
        }
    }

    /// Act on what has come, as far as everything before it has been delivered.
    fn act_on_late(&mut self) {
        while let Some(late) = self.deaths.late.front() {
            match *late {
                Late::Dead(_) if !self.pending.is_empty() => return,
                Late::Dead(rank) => self.died_elsewhere(rank),
                Late::Sent(transfer) => {
                    if let Some(entry) = self.incoming.get_mut(&transfer) {
                        entry.said = true;
                    }
                    self.finish_incoming();
                }
            }
            self.deaths.late.pop_front();
        }
    }

    /// A rank of another node has failed, and all that it had sent has been delivered.
    fn died_elsewhere(&mut self, dead: u32) {
        self.announced.retain(|_, announced| announced.to != dead);
        self.outgoing.retain(|out| out.to != dead);
        self.deaths.read.retain(|out| out.to != dead);
        let mut unanswered = Vec::new();
        for entry in self.incoming.values_mut().filter(|entry| entry.sender == dead && !entry.void) {
            entry.void = true;
            if entry.is_fetched() {
                unanswered.push((entry.rank, entry.request));
            }
        }
        for (rank, request) in unanswered {
            let mut refused = answer(kind::PLACED, request);
            refused.set_peer_request(outcome::PEER_FAILED);
            self.deliver(None, rank, refused, Vec::new());
        }
        failure::publish_elsewhere(&self.courier.node, &self.courier.job, dead);
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
