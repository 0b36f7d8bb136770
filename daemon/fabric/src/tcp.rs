//! All of a node's links, over TCP: two connections per pair of nodes, made by the one with the higher number.
//!
//! The second one is for the bytes of large messages (`send_bulk`). What lies in a connection's buffers goes before all that is sent later, and on a
//! slow network that takes milliseconds: with one connection answers that the other direction waits for stood behind them.
//! Each connection has a seat: those of the first lane, by node, then those of the second.

mod dial;
mod door;
mod handshake;
mod welcome;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::auth::{Greeting, Refusal};
use crate::fabric::{BULK_BYTES, Event, Fabric, LinkError, WIRE_UP};
use crate::key::Key;
use crate::link::Link;
use dial::{PAUSE, Tries};
use door::{Door, FIRST_KNOCK};
use handshake::{Greeted, Stage};

/// Connections per pair of nodes: for `send` and `send_bulk`.
const LANES: u32 = 2;
const BULK: u32 = 1;
/// Looks at a bulk lane after something has come there; then each `RARELY`th.
const KEEN_LOOKS: u32 = 1000;
const RARELY: u32 = 8;
const LISTENER: u64 = u64::MAX;
/// How long the other lane is listened to when one has been closed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long one address may take to answer, and a greeting to be finished.
const PATIENCE: Duration = Duration::from_secs(4);
const EVENTS: usize = 64;
/// With more links than these asking the kernel which of them to read takes less than trying all.
const FEW_LINKS: usize = 3;

/// A node of the job, and where its vmpid listens.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    /// In the order in which they are tried.
    pub addresses: Vec<SocketAddr>,
}

enum Peer {
    /// This node, or one that is not known yet.
    Nobody,
    /// It will connect.
    Expected {
        until: Instant,
    },
    /// Being connected to; the other addresses are tried later.
    Dialled {
        at: SocketAddr,
        later: VecDeque<SocketAddr>,
        stage: Stage,
        shake: Greeted,
        tries: Tries,
    },
    /// None of its addresses has led to it; they are tried again.
    Resting {
        until: Instant,
        tries: Tries,
    },
    Up(Box<Link>),
    /// Closed by the other end, whose other lane may say why.
    Ended {
        until: Instant,
        why: LinkError,
    },
    /// Given up by this end: nothing that comes from there counts, but it can still be told why. A link that closes reads as a death.
    Shunned(Box<Link>),
    Gone,
}

/// The links of one node.
pub struct Tcp {
    epoll: Epoll,
    door: Door,
    /// All are to be there by then.
    until: Instant,
    sealed: bool,
    me: u32,
    key: Key,
    nodes: Vec<Node>,
    /// By seat.
    peers: Vec<Peer>,
    /// Looks that are still due to bulk lanes, and those since the last one at them.
    keen: u32,
    skipped: u32,
    /// Found while connecting, to be told at the next turn.
    lost: Vec<(u32, LinkError)>,
}

impl Tcp {
    /// Listen on a port that is free; nobody is let in before `join`.
    ///
    /// # Errors
    /// No socket can be made.
    pub fn listen() -> io::Result<Tcp> {
        let (door, epoll) = (Door::open()?, Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?);
        let (nodes, peers, lost, key) = (Vec::new(), Vec::new(), Vec::new(), Key::from_bytes([0; 32]));
        let until = Instant::now();
        Ok(Tcp { epoll, door, until, sealed: false, me: 0, key, nodes, peers, keen: 0, skipped: 0, lost })
    }

    /// Seal what goes over the links (`seal`). Before `join`, and on all nodes.
    pub fn seal(&mut self) {
        self.sealed = true;
    }

    /// The port on which this node listens.
    ///
    /// # Errors
    /// Those of getsockname.
    pub fn port(&self) -> io::Result<u16> {
        let listener = self.door.listener().ok_or(io::ErrorKind::NotConnected)?;
        Ok(listener.local_addr()?.port())
    }

    /// This is node `me` of `nodes`: connect to the lower ones, expect the higher ones.
    ///
    /// # Errors
    /// The listener cannot be watched.
    pub fn join(&mut self, me: u32, nodes: Vec<Node>, key: Key, now: Instant) -> io::Result<()> {
        let listener = self.door.listener().ok_or(io::ErrorKind::NotConnected)?;
        self.epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
        (self.me, self.nodes, self.key) = (me, nodes, key);
        let until = now + WIRE_UP;
        self.until = until;
        self.door.expect(self.nodes.iter().map(|node| &node.addresses[..]));
        let seats = self.nodes.len() as u32 * LANES;
        self.peers = (0..seats)
            .map(|seat| if self.node_of(seat) > me { Peer::Expected { until } } else { Peer::Nobody })
            .collect();
        for seat in 0..seats {
            let node = self.node_of(seat);
            if node < me {
                self.dial_all(seat, now, Tries { pause: PAUSE, ..Tries::default() });
            }
        }
        self.close_door();
        Ok(())
    }

    fn node_of(&self, seat: u32) -> u32 {
        seat % self.nodes.len() as u32
    }

    fn lane_of(&self, seat: u32) -> u32 {
        seat / self.nodes.len() as u32
    }

    fn seat(&self, node: u32, lane: u32) -> usize {
        (lane * self.nodes.len() as u32 + node) as usize
    }

    fn name(&self, seat: u32) -> String {
        self.nodes[self.node_of(seat) as usize].name.clone()
    }

    fn link(&self, node: u32, lane: u32) -> Option<&Link> {
        match self.peers.get(self.seat(node, lane)) {
            Some(Peer::Up(link)) => Some(link),
            _ => None,
        }
    }

    fn link_mut(&mut self, node: u32, lane: u32) -> Option<&mut Link> {
        let seat = self.seat(node, lane);
        match self.peers.get_mut(seat) {
            Some(Peer::Up(link) | Peer::Shunned(link)) => Some(link),
            _ => None,
        }
    }

    /// Frames may go.
    fn is_up(&self, node: u32) -> bool {
        (0..LANES).all(|lane| self.link(node, lane).is_some())
    }

    /// Frames are told: all lanes are up, or have been.
    fn is_heard(&self, node: u32) -> bool {
        (0..LANES).all(|lane| matches!(self.peers[self.seat(node, lane)], Peer::Up(_) | Peer::Ended { .. }))
    }

    fn greeting(&self, to: u32, lane: u32) -> io::Result<Greeting> {
        let nonce = *Key::random()?.bytes();
        Ok(Greeting { nodes: self.nodes.len() as u32, from: self.me, to, lane, sealed: self.sealed, nonce })
    }

    /// A lane is of no more use. If the other end has closed it, the other lane may still hold the reason: the node is lost when that ends, too, or
    /// says nothing for a while.
    fn end_lane(&mut self, seat: u32, why: LinkError, now: Instant) {
        let node = self.node_of(seat);
        let closed = matches!(why, LinkError::Closed { .. } | LinkError::Broken { .. });
        let has_another =
            (0..LANES).any(|lane| self.seat(node, lane) != seat as usize && self.link(node, lane).is_some());
        if closed && has_another {
            self.peers[seat as usize] = Peer::Ended { until: now + LAST_WORDS, why };
        } else {
            self.give_up(seat, why);
        }
    }

    /// With one lane the node is lost.
    fn give_up(&mut self, seat: u32, why: LinkError) {
        let node = self.node_of(seat);
        let over = |peer: &Peer| matches!(peer, Peer::Gone | Peer::Shunned(_));
        let told = (0..LANES).any(|lane| over(&self.peers[self.seat(node, lane)]));
        if told {
            return;
        }
        let shun = matches!(why, LinkError::Nonsense { .. } | LinkError::Silent { .. });
        for lane in 0..LANES {
            let seat = self.seat(node, lane);
            self.peers[seat] = match std::mem::replace(&mut self.peers[seat], Peer::Gone) {
                Peer::Up(link) if shun => {
                    let _ = self.epoll.delete(&link.stream);
                    Peer::Shunned(link)
                }
                _ => Peer::Gone,
            };
        }
        self.lost.push((node, why));
    }

    fn read(&mut self, seat: u32, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        let node = self.node_of(seat);
        let Peer::Up(link) = &mut self.peers[seat as usize] else { return };
        let read = link.read(now, &mut |kind, body| on_event(Event::Frame { node, kind, body }));
        if let Err(why) = read {
            self.end_lane(seat, why, now);
        }
    }

    fn check_deadlines(&mut self, now: Instant) {
        self.door.check_deadlines(now);
        for seat in 0..self.peers.len() as u32 {
            match &mut self.peers[seat as usize] {
                Peer::Expected { until } if *until <= now => {
                    let why = LinkError::NeverCame { node: self.name(seat), others: self.door.others() };
                    self.give_up(seat, why);
                }
                Peer::Resting { until, tries } if *until <= now => {
                    let tries = std::mem::take(tries);
                    match now < self.until {
                        true => self.dial_all(seat, now, tries),
                        false => self.dial_later(seat, now, tries),
                    }
                }
                Peer::Dialled { shake, stage, tries, .. } if shake.until <= now => {
                    let connecting = *stage == Stage::Connecting;
                    // What was cut short at the end says less than what went before.
                    if now < self.until || tries.why.is_none() {
                        let slow = io::Error::new(
                            io::ErrorKind::TimedOut,
                            format!("no answer within {} s", PATIENCE.as_secs()),
                        );
                        self.dial_failed(seat, now, |tries, at| match connecting {
                            true => tries.failed(at, &slow),
                            false => tries.refused(Refusal::Slow),
                        });
                    } else {
                        let tries = std::mem::take(tries);
                        self.dial_later(seat, now, tries);
                    }
                }
                Peer::Ended { until, .. } if *until <= now => {
                    if let Peer::Ended { why, .. } = std::mem::replace(&mut self.peers[seat as usize], Peer::Nobody) {
                        self.give_up(seat, why);
                    }
                }
                Peer::Up(link) => {
                    if let Err(why) = link.check(now) {
                        self.end_lane(seat, why, now);
                    }
                }
                _ => {}
            }
        }
    }
}

impl Fabric for Tcp {
    fn describe(&self) -> String {
        if self.sealed { "tcp, sealed".into() } else { "tcp".into() }
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn quiet_notifications(&mut self, node: u32) -> bool {
        (0..LANES).all(|lane| self.link_mut(node, lane).is_some_and(Link::quiet_notifications))
    }

    fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        if let Some(link) = self.link_mut(node, 0) {
            link.send(kind, parts);
        }
    }

    fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        if let Some(link) = self.link_mut(node, BULK) {
            link.send(kind, parts);
        }
    }

    fn backlog_bytes(&self, node: u32) -> usize {
        self.link(node, 0).map_or(0, Link::backlog_bytes)
    }

    fn has_room(&self, node: u32) -> bool {
        self.link(node, BULK).is_none_or(|link| link.backlog_bytes() < BULK_BYTES)
    }

    fn is_flushed(&self) -> bool {
        self.peers.iter().all(|peer| !matches!(peer, Peer::Up(link) if link.backlog_bytes() > 0))
    }

    fn flush(&mut self) {
        for (seat, peer) in self.peers.iter_mut().enumerate() {
            let link = match peer {
                Peer::Up(link) => link,
                Peer::Shunned(link) => {
                    link.write();
                    continue;
                }
                _ => continue,
            };
            link.write();
            if link.watches_room != (link.backlog_bytes() > 0) {
                link.watches_room = !link.watches_room;
                let mut interest = EpollFlags::EPOLLIN;
                interest.set(EpollFlags::EPOLLOUT, link.watches_room);
                let _ = self.epoll.modify(&link.stream, &mut EpollEvent::new(interest, seat as u64));
            }
        }
    }

    fn progress(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        self.flush();
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let mut knocked = false;
        for event in &events[..count] {
            let token = event.data();
            match token {
                // Those that are here already are heard first.
                LISTENER => knocked = true,
                token if token >= FIRST_KNOCK => {
                    if let Some(node) = self.knock_ready(token, now) {
                        on_event(Event::Up(node));
                    }
                }
                token => {
                    let (seat, node) = (token as u32, self.node_of(token as u32));
                    let dialled = matches!(self.peers[seat as usize], Peer::Dialled { .. });
                    if dialled && self.dialled_ready(seat, now) {
                        on_event(Event::Up(node));
                    }
                    if !dialled && event.events() != EpollFlags::EPOLLOUT && self.is_heard(node) {
                        self.read(seat, now, on_event);
                    }
                }
            }
        }
        let up = if knocked { self.accept(now) } else { Vec::new() };
        up.into_iter().for_each(|node| on_event(Event::Up(node)));
        for seat in 0..self.peers.len() as u32 {
            if matches!(&self.peers[seat as usize], Peer::Up(link) if link.hushed) {
                self.read(seat, now, on_event);
            }
        }
        self.check_deadlines(now);
        for (node, why) in std::mem::take(&mut self.lost) {
            on_event(Event::Lost(node, why));
        }
    }

    fn poll(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        let nodes = self.nodes.len();
        if nodes > FEW_LINKS + 1 || !self.lost.is_empty() || (0..nodes as u32).any(|n| n != self.me && !self.is_up(n)) {
            return self.progress(now, on_event);
        }
        // Bulk comes after other frames that ask for it, and much of it together.
        self.skipped += 1;
        let seats = if self.keen > 0 || self.skipped >= RARELY { nodes * LANES as usize } else { nodes };
        (self.keen, self.skipped) = (self.keen.saturating_sub(1), if seats == nodes { self.skipped } else { 0 });
        let mut lost = Vec::new();
        for (seat, peer) in self.peers[..seats].iter_mut().enumerate() {
            let (node, Peer::Up(link)) = ((seat % nodes) as u32, peer) else { continue };
            let (mut came, keen) = (false, &mut self.keen);
            let read = link.read(now, &mut |kind, body| {
                came = true;
                on_event(Event::Frame { node, kind, body });
            });
            if came && seat >= nodes {
                *keen = KEEN_LOOKS;
            }
            if let Err(why) = read {
                lost.push((seat as u32, why));
            }
        }
        for (seat, why) in lost {
            self.end_lane(seat, why, now);
        }
    }

    fn expect_bulk(&mut self) {
        self.keen = KEEN_LOOKS;
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.lost.is_empty() {
            return Some(Instant::now());
        }
        let peers = self.peers.iter().filter_map(|peer| match peer {
            Peer::Nobody | Peer::Shunned(_) | Peer::Gone => None,
            Peer::Expected { until } | Peer::Ended { until, .. } | Peer::Resting { until, .. } => Some(*until),
            Peer::Dialled { shake, .. } => Some(shake.until),
            Peer::Up(link) => Some(link.deadline()),
        });
        peers.chain(self.door.deadline()).min()
    }
}
