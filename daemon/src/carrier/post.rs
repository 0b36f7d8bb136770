//! The carrier's loop: out of the segments into frames, out of frames into the segments.
//!
//! Flow control: an envelope to a rank takes one of its credits, which come back when it has been delivered there. Without credits it stays in
//! the rank's inbox here, and a full inbox makes its senders wait as on one node. So what a carrier holds back for a rank is bounded, and a
//! rank that takes nothing stops those alone who send to it. A message for which the sender's slab here has no block is kept by the carrier and
//! announced to the receiver like a large one (`held`).

mod arrived;
mod deaths;
mod deliver;
mod enrol;
mod held;
#[cfg(test)]
mod hostile;
mod idle;
mod large;
mod windows;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io;
use std::time::{Duration, Instant};

use vmpi_cma::Block;
use vmpi_fabric::fabric::BACKLOG_BYTES;
use vmpi_fabric::{Event, Fabric};
use vmpi_shared::ask::{Ask, What};
use vmpi_shared::control::{Connection, Nodes, Request};
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::matching::envelope::{Envelope, FLAG_MAPPED, kind};

use super::frame_count::FrameCount;
use super::realtime::Realtime;
use super::transfer::{Announced, CHUNK_BYTES, Cursor, Fin, Incoming, Memory, Outgoing};
use super::wire::{self, BodyError, CREDITS, Frame, Said};
use crate::log::debug;
use arrived::{Arrived, check_ends};
use deliver::{Line, Owed};
use idle::Moves;

/// Time between two attempts to deliver to a rank that had no room.
const RETRY: Duration = Duration::from_millis(1);
/// After a node has said that the job ends there, for so long nobody asks why its link is gone: its vmpid tells the launcher.
const QUIT_PATIENCE: Duration = Duration::from_secs(5);
/// How long a node that ends tries to say so.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How far another node is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Peer {
    Coming,
    Up,
    /// It sends nothing more by one of the two ways.
    HalfBye,
    /// It sends nothing more.
    Bye,
    /// The job ends there.
    Quit(Instant),
    Gone,
}

/// What a node has sent, other than data.
enum Came {
    Envelope(Arrived),
    Said(u8, Said),
}

pub struct CarrierLoop {
    endpoint: CarrierEndpoint,
    fabric: FrameCount,
    /// Frames of other nodes that have been acted on.
    received: u64,
    daemon: Connection,
    nodes: Nodes,
    peers: Vec<Peer>,
    wired: bool,
    /// For each rank the envelopes that may still go to it.
    credits: Vec<u32>,
    /// Remote ranks of whose inboxes here something was left.
    stalled: BTreeSet<u32>,
    /// By node and rank.
    owed: BTreeMap<(u32, u32), Owed>,
    /// Ranks whose number had another process before, for which something may still be under way.
    reborn: BTreeSet<u32>,
    /// What could not be delivered at once, by rank.
    pending: BTreeMap<u32, Line>,
    /// By rank and request.
    announced: HashMap<(u32, u32), Announced>,
    ahead: held::Ahead,
    kept: held::Held,
    incoming: HashMap<u32, Incoming>,
    next_transfer: u32,
    outgoing: VecDeque<Outgoing>,
    chunk: Vec<u8>,
    /// Windows that members here share with ranks of other nodes, by their names (`vmpi_shared::ask`).
    windows: HashMap<(i32, u32), windows::Open>,
    draining: bool,
    said_bye: bool,
    bye_heard: Vec<bool>,
    drained: bool,
    told_lost: bool,
    rest: idle::Idle,
    realtime: Realtime,
    deaths: deaths::Deaths,
}

impl CarrierLoop {
    pub fn new(endpoint: CarrierEndpoint, fabric: Box<dyn Fabric>, daemon: Connection, nodes: Nodes) -> CarrierLoop {
        let mut peers = vec![Peer::Coming; nodes.names.len()];
        peers[nodes.here as usize] = Peer::Gone;
        CarrierLoop {
            credits: vec![CREDITS; nodes.of_rank.len()],
            bye_heard: vec![false; peers.len()],
            peers,
            rest: idle::Idle::new(endpoint.patience()),
            endpoint,
            fabric: FrameCount::new(fabric),
            received: 0,
            daemon,
            nodes,
            wired: false,
            stalled: BTreeSet::new(),
            owed: BTreeMap::new(),
            reborn: BTreeSet::new(),
            pending: BTreeMap::new(),
            announced: HashMap::new(),
            ahead: held::Ahead::default(),
            kept: held::Held::default(),
            incoming: HashMap::new(),
            next_transfer: 0,
            outgoing: VecDeque::new(),
            chunk: vec![0; CHUNK_BYTES as usize],
            windows: HashMap::new(),
            draining: false,
            said_bye: false,
            drained: false,
            told_lost: false,
            realtime: Realtime::default(),
            deaths: deaths::Deaths::default(),
        }
    }

    /// Until the daemon ends it or is gone.
    ///
    /// # Errors
    /// The daemon cannot be told something.
    pub fn serve(&mut self) -> io::Result<()> {
        let mut moves = Moves::Yes;
        idle::be_exact();
        loop {
            let now = Instant::now();
            self.step(now, moves)?;
            match self.rest()? {
                Some(ready) => moves = ready,
                None => {
                    self.quit();
                    return Ok(());
                }
            }
        }
    }

    /// Everything that can be done now.
    fn step(&mut self, now: Instant, moves: Moves) -> io::Result<()> {
        if moves == Moves::Yes || self.fabric.deadline().is_some_and(|at| at <= now) {
            self.turn(now, Moves::Yes);
        } else if moves == Moves::Perhaps {
            self.turn(now, moves);
        }
        self.retry();
        self.collect_all();
        self.pump();
        self.mourn();
        self.say_credits();
        self.say_taken();
        self.check_progress(now)?;
        // What has just been queued goes before this process sleeps.
        self.fabric.flush();
        Ok(())
    }

    /// Let the fabric move, and act on what it brings.
    fn turn(&mut self, now: Instant, moves: Moves) {
        let mut came = Vec::new();
        let mut fates = Vec::new();
        let CarrierLoop { fabric, endpoint, nodes, incoming, kept, peers, .. } = self;
        let mut failed: Vec<(u32, BodyError)> = Vec::new();
        let (mut stirred, mut received) = (false, 0);
        let mut tell = |event: Event<'_>| match event {
            Event::Up(node) => fates.push((node, None)),
            Event::Lost(node, why) => fates.push((node, Some(why.to_string()))),
            // Nothing counts that comes from a node which is lost.
            Event::Frame { node, .. } if peers[node as usize] == Peer::Gone || failed.iter().any(|it| it.0 == node) => {
            }
            Event::Frame { node, kind, body } => {
                let acted = wire::read(kind, body).and_then(|frame| match frame {
                    // Straight from the link's buffer into the receive buffer.
                    Frame::Data { transfer, bytes } => {
                        (stirred, received) = (true, received + 1);
                        large::data(&endpoint.node, incoming, kept, (node, transfer), bytes)
                    }
                    Frame::Envelope { to, envelope, payload } => {
                        let arrived = Arrived::take_in(endpoint, nodes, node, (to, envelope, payload))?;
                        came.push((node, Came::Envelope(arrived)));
                        Ok(())
                    }
                    Frame::Said(said) => {
                        came.push((node, Came::Said(kind, said)));
                        Ok(())
                    }
                });
                failed.extend(acted.err().map(|error| (node, error)));
            }
        };
        if moves == Moves::Perhaps {
            fabric.poll(now, &mut tell);
        } else {
            fabric.progress(now, &mut tell);
        }
        // What came before a link was lost counts; a link is up before anything comes.
        let (up, lost): (Vec<_>, Vec<_>) = fates.into_iter().partition(|(_, why)| why.is_none());
        for (node, _) in up {
            if self.peers[node as usize] == Peer::Coming {
                self.peers[node as usize] = Peer::Up;
            }
        }
        if stirred || !came.is_empty() {
            self.rest.stirred();
        }
        received += came.len() as u64;
        for (node, came) in came {
            let acted = match came {
                Came::Envelope(arrived) => self.arrived(node, arrived),
                Came::Said(kind, said) => self.said(node, kind, said),
            };
            failed.extend(acted.err().map(|error| (node, error)));
        }
        self.finish_incoming();
        self.received += received;
        for (node, error) in failed {
            self.lose(node, &format!("node {} sent {error}", self.nodes.names[node as usize]), now);
        }
        for (node, why) in lost {
            self.lose(node, &why.unwrap_or_default(), now);
        }
    }

    /// The link to a node is gone, or of no use.
    fn lose(&mut self, node: u32, why: &str, now: Instant) {
        let peer = &mut self.peers[node as usize];
        match *peer {
            Peer::Bye | Peer::Quit(_) if self.drained || *peer == Peer::Bye => *peer = Peer::Gone,
            // Its vmpid has told the launcher why, which tells ours.
            Peer::Quit(since) if now.duration_since(since) < QUIT_PATIENCE => {}
            Peer::Gone => {}
            _ => {
                *peer = Peer::Gone;
                self.say_lost(why.to_string());
            }
        }
    }

    fn say_lost(&mut self, reason: String) {
        if !std::mem::replace(&mut self.told_lost, true) {
            debug!("carrier: {reason}");
            // If the daemon is gone, the next turn sees that.
            let _ = self.daemon.send(&Request::Lost { reason }, &[]);
        }
    }

    /// What follows from how far all are: connected, drained, given up.
    fn check_progress(&mut self, now: Instant) -> io::Result<()> {
        let others = || (0..self.peers.len()).filter(|node| *node != self.nodes.here as usize);
        if !self.wired && others().all(|node| self.peers[node] != Peer::Coming) && !self.told_lost {
            self.wired = true;
            self.daemon.send(&Request::Wired { by: self.described() }, &[])?;
        }
        let late = others().find(|node| match self.peers[*node] {
            Peer::Quit(since) => now.duration_since(since) >= QUIT_PATIENCE,
            _ => false,
        });
        if let Some(node) = late {
            self.peers[node] = Peer::Gone;
            let reason = format!("the job has ended on node {}", self.nodes.names[node]);
            self.say_lost(reason);
        }
        let all_gone = self.stalled.is_empty() && self.outgoing.is_empty() && self.deaths.are_told();
        if self.draining && !self.said_bye && all_gone {
            self.said_bye = true;
            // Behind all that has been sent, by either way.
            for node in 0..self.peers.len() as u32 {
                self.fabric.send(node, wire::BYE, &[]);
                self.fabric.send_bulk(node, wire::BYE, &[]);
            }
        }
        let others = || (0..self.peers.len()).filter(|node| *node != self.nodes.here as usize);
        if self.said_bye && !self.drained && others().all(|node| self.bye_heard[node] || self.peers[node] == Peer::Gone)
        {
            self.drained = true;
            self.daemon.send(&Request::Drained, &[])?;
        }
        Ok(())
    }

    /// The job ends here: tell the others, as far as they take it at once.
    fn quit(&mut self) {
        if !self.drained {
            for node in 0..self.peers.len() as u32 {
                self.fabric.send(node, wire::QUIT, &[]);
            }
        }
        self.fabric.linger(LAST_WORDS);
    }

    /// By what messages go to other nodes, and why.
    fn described(&self) -> String {
        match self.nodes.fabric_why.as_str() {
            "" => self.fabric.describe(),
            why => format!("{} ({why})", self.fabric.describe()),
        }
    }

    /// Take what ranks of this node have pushed for remote rank `to`.
    fn collect(&mut self, to: u32) {
        let Some(&node) = self.nodes.of_rank.get(to as usize) else { return };
        let gone = matches!(self.peers[node as usize], Peer::Gone) || self.has_failed(to);
        let may_follow = self.may_copy() && self.may_follow();
        let CarrierLoop { endpoint, fabric, credits, announced, incoming, next_transfer, outgoing, ahead, .. } = self;
        let (mut aside, mut refused) = (Vec::new(), Vec::new());
        let all = endpoint.collect(to, |envelope| {
            let mut envelope = *envelope;
            let ask = if envelope.kind == kind::ASK { Ask::of(&envelope).ok() } else { None };
            if ask.is_some_and(|ask| ask.what.is_local()) {
                aside.push(envelope);
                return true;
            }
            if envelope.kind == kind::LET_GO {
                aside.push(envelope);
                return true;
            }
            if gone {
                // Nobody is there any more; the job ends, or the message is one that nobody waits for.
                if wire::has_payload(&envelope) {
                    endpoint.give_back(&envelope);
                }
                if ask.is_some() {
                    refused.push(envelope);
                }
                return true;
            }
            if matches!(envelope.kind, kind::PULL | kind::FIN | kind::GO) {
                aside.push(envelope);
                return true;
            }
            if credits[to as usize] == 0 || fabric.backlog_bytes(node) > BACKLOG_BYTES {
                return false;
            }
            if !vmpi_shared::endpoint::carrier::travels(envelope.kind) {
                return true;
            }
            match ask {
                Some(ask) if ask.what.fetches() => {
                    envelope.set_peer_request(*next_transfer);
                    let memory = Memory::of(endpoint, envelope.from, false).unwrap_or(Memory::GONE);
                    incoming.insert(*next_transfer, fetched((node, to), &envelope, &ask, memory));
                    *next_transfer = next_transfer.wrapping_add(1) & !wire::UNASKED;
                }
                Some(ask) if ask.what == What::Bring => {
                    let (addr, len) = (ask.offset, ask.bytes);
                    let place = Announced { addr, open: false, blocks: 0, len, to, fin: Fin::Nobody, wanted: false };
                    announced.insert((envelope.from, envelope.request), place);
                }
                _ => {}
            }
            let (bytes, used) = wire::encode(to, &envelope);
            if wire::has_payload(&envelope) {
                let Some(payload) = endpoint.payload(&envelope) else { return true };
                fabric.send(node, wire::ENVELOPE, &[&bytes[..used], payload]);
                endpoint.give_back(&envelope);
            } else {
                if envelope.kind == kind::RTS {
                    let open = envelope.flags & FLAG_MAPPED != 0;
                    let memory = may_follow.then(|| Memory::of(endpoint, envelope.from, open)).flatten();
                    if let Some(out) = memory.and_then(|it| ahead.follow(fabric, (node, to), &envelope, it)) {
                        outgoing.push_back(out);
                        credits[to as usize] -= 1;
                        return true;
                    }
                    let (addr, blocks, len) = (envelope.addr(), envelope.blocks(), envelope.len);
                    let place = Announced { addr, open, blocks, len, to, fin: Fin::Carrier, wanted: false };
                    announced.insert((envelope.from, envelope.request), place);
                }
                fabric.send(node, wire::ENVELOPE, &[&bytes[..used]]);
            }
            credits[to as usize] -= 1;
            true
        });
        if !all {
            self.stalled.insert(to);
        }
        refused.iter().for_each(|envelope| self.refuse_for_dead(envelope));
        self.act_on(to, aside);
        self.settle();
    }

    /// Do what ranks here have asked of this carrier on the way to rank `to`.
    fn act_on(&mut self, to: u32, aside: Vec<Envelope>) {
        for envelope in aside {
            match envelope.kind {
                kind::ASK => self.asked_here(&envelope),
                kind::LET_GO => self.let_go(envelope),
                kind::GO => self.sender_says_go(to, &envelope),
                _ => self.answer_remote(to, envelope),
            }
        }
    }

    /// An answer (PULL, FIN) of a rank here, or of matching for it, to remote rank `to`.
    fn answer_remote(&mut self, to: u32, envelope: Envelope) {
        let Some(&node) = self.nodes.of_rank.get(to as usize) else { return };
        if envelope.request & held::KEPT != 0 {
            return self.give_kept(&envelope);
        }
        if envelope.kind == kind::PULL && self.begin_incoming(to, node, &envelope) {
            return;
        }
        self.answer_far(node, to, &envelope);
    }

    /// As it is, without credit.
    fn answer_far(&mut self, node: u32, rank: u32, answer: &Envelope) {
        let (bytes, used) = wire::encode(rank, answer);
        self.fabric.send(node, wire::ENVELOPE, &[&bytes[..used]]);
    }

    /// What another node says.
    fn said(&mut self, node: u32, kind: u8, said: Said) -> Result<(), BodyError> {
        match said {
            Said::Credit { rank, count, unexpected } => {
                if self.nodes.of_rank.get(rank as usize) != Some(&node) {
                    return Err(BodyError::NotThere(rank));
                }
                let credits = &mut self.credits[rank as usize];
                // More than there can be: for envelopes to who had this number before.
                *credits = credits.saturating_add(count).min(CREDITS);
                self.endpoint.note_unexpected(rank, unexpected);
            }
            Said::Ready { sender, request, transfer, len } => self.wanted(node, (sender, request), transfer, len)?,
            Said::Refused { transfer, errno } => match transfer & wire::UNASKED {
                0 => self.refused(node, transfer, errno)?,
                _ => self.withheld(node, transfer, errno)?,
            },
            Said::Followed { .. } if !self.may_follow() => return Err(BodyError::Misplaced(kind)),
            Said::Followed { transfer, to, envelope } => self.followed(node, transfer, to, envelope)?,
            Said::Taken { bytes } => self.ahead.taken(node, u64::from(bytes)),
            Said::Bye => match self.peers[node as usize] {
                Peer::Up => self.peers[node as usize] = Peer::HalfBye,
                Peer::HalfBye => {
                    self.peers[node as usize] = Peer::Bye;
                    self.fabric.send(node, wire::BYE_HEARD, &[]);
                }
                _ => {}
            },
            Said::ByeHeard if !self.said_bye => return Err(BodyError::Misplaced(kind)),
            Said::ByeHeard => self.bye_heard[node as usize] = true,
            Said::Quit => match self.peers[node as usize] {
                // Who says it again gets no more time.
                Peer::Quit(_) | Peer::Gone => {}
                _ => self.peers[node as usize] = Peer::Quit(Instant::now()),
            },
            Said::Sent { .. } | Said::Dead { .. } | Said::Known { .. } | Said::Revoked { .. } if !self.survives() => {
                return Err(BodyError::Misplaced(kind));
            }
            Said::Sent { transfer } => self.heard_sent(node, transfer),
            Said::Dead { rank } => self.heard_of_death(node, rank, false)?,
            Said::Known { rank } => self.heard_of_death(node, rank, true)?,
            Said::Revoked { context } => self.revoked(context)?,
        }
        Ok(())
    }
}

/// What a rank here fetches from rank `sender` of `node`, as `ask` says.
fn fetched((node, sender): (u32, u32), envelope: &Envelope, ask: &Ask, memory: Memory) -> Incoming {
    Incoming {
        rank: envelope.from,
        request: envelope.request,
        node,
        sender,
        sender_request: 0,
        to: Cursor::over(memory, vec![Block { addr: ask.offset, len: ask.bytes }]),
        len: ask.bytes,
        got: 0,
        failed: 0,
        pull: Envelope::EMPTY,
        answers_sender: false,
        said: true,
        told: false,
        void: false,
        credit: false,
    }
}
