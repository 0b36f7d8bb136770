//! Connecting to a node: by each of its addresses, again and again until the time is over, unless it says what would be the same the next time.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::epoll::{EpollEvent, EpollFlags};

use super::handshake::{Greeted, Stage, Trouble, begin_connecting, check_answer, read_exactly};
use super::{PATIENCE, Peer, Tcp};
use crate::auth::{End, GREETING_BYTES, Greeting, PROOF_BYTES, Refusal, check, is_no_room, proof};
use crate::fabric::{LinkError, WIRE_UP};
use crate::link::Link;
use crate::seal;

/// Between two tries of all addresses, at first and at most.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
const LONG_PAUSE: Duration = Duration::from_millis(500);
/// Where all of them say that nobody listens there it is tried for so long: a vmpid listens before others hear of it.
const NOBODY_THERE: Duration = Duration::from_secs(2);

/// How the tries to connect to a node have gone.
#[derive(Default)]
pub(super) struct Tries {
    /// Of the last one that failed.
    pub(super) why: Option<Trouble>,
    /// Not all addresses said at once that nobody listens there.
    pub(super) hopeful: bool,
    pub(super) pause: Duration,
}

impl Tries {
    pub(super) fn failed(&mut self, at: SocketAddr, why: &io::Error) {
        use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
        self.hopeful |= !matches!(why.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable);
        self.why = Some(Trouble::Unreachable(format!("{at}: {why}")));
    }

    pub(super) fn refused(&mut self, why: Refusal) {
        self.hopeful = true;
        self.why = Some(Trouble::Refused(why));
    }
}

impl Tcp {
    /// Begin to connect to a node, by whichever of its addresses.
    pub(super) fn dial_all(&mut self, seat: u32, now: Instant, tries: Tries) {
        let later = self.nodes[self.node_of(seat) as usize].addresses.iter().copied().collect();
        self.dial(seat, later, now, tries);
    }

    /// Begin to connect to the first of these addresses that allows it.
    fn dial(&mut self, seat: u32, mut later: VecDeque<SocketAddr>, now: Instant, mut tries: Tries) {
        while let Some(at) = later.pop_front() {
            let begun =
                self.greeting(self.node_of(seat), self.lane_of(seat)).and_then(|own| Ok((own, begin_connecting(at)?)));
            match begun {
                Ok((own, fd)) => {
                    let stream = TcpStream::from(fd);
                    let interest = EpollFlags::EPOLLOUT;
                    if let Err(e) = self.epoll.add(&stream, EpollEvent::new(interest, u64::from(seat))) {
                        tries.failed(at, &e.into());
                        continue;
                    }
                    let want = GREETING_BYTES + PROOF_BYTES;
                    let until = (now + PATIENCE).min(self.until);
                    let shake = Greeted { stream, own, got: Vec::new(), want, until };
                    self.peers[seat as usize] = Peer::Dialled { at, later, stage: Stage::Connecting, shake, tries };
                    return;
                }
                Err(e) => tries.failed(at, &e),
            }
        }
        self.dial_later(seat, now, tries);
    }

    /// No address has led to the node: again after a while, if that is of any use.
    pub(super) fn dial_later(&mut self, seat: u32, now: Instant, mut tries: Tries) {
        let end = if tries.hopeful { self.until } else { self.until - WIRE_UP + NOBODY_THERE };
        let none = self.nodes[self.node_of(seat) as usize].addresses.is_empty();
        if !none && now + tries.pause < end && !tries.why.as_ref().is_some_and(Trouble::is_final) {
            let until = now + tries.pause;
            tries.pause = (2 * tries.pause).min(LONG_PAUSE);
            tries.hopeful = false;
            self.peers[seat as usize] = Peer::Resting { until, tries };
            return;
        }
        let node = self.name(seat);
        let why = match tries.why {
            Some(Trouble::Refused(why)) => LinkError::Refused { node, why },
            other => {
                let addresses = &self.nodes[self.node_of(seat) as usize].addresses;
                let tried: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
                let tried = if none { "any address (it has none)".into() } else { tried.join(", ") };
                let why = match other {
                    Some(Trouble::Unreachable(why)) => why,
                    _ => "there is nothing to try".into(),
                };
                LinkError::Unreachable { node, tried, why }
            }
        };
        self.give_up(seat, why);
    }

    /// The connection that is being made to `seat` has come to nothing.
    pub(super) fn dial_failed(&mut self, seat: u32, now: Instant, note: impl FnOnce(&mut Tries, SocketAddr)) {
        if let Peer::Dialled { at, later, mut tries, .. } =
            std::mem::replace(&mut self.peers[seat as usize], Peer::Nobody)
        {
            note(&mut tries, at);
            match tries.why.as_ref().is_some_and(Trouble::is_final) {
                true => self.dial_later(seat, now, tries),
                false => self.dial(seat, later, now, tries),
            }
        }
    }

    /// The connection of `seat` can go on with its greeting. True: the node is up with that.
    pub(super) fn dialled_ready(&mut self, seat: u32, now: Instant) -> bool {
        let Peer::Dialled { stage, .. } = &self.peers[seat as usize] else { return false };
        let done = match *stage {
            Stage::Connecting => return self.connected(seat, now),
            Stage::Greeted => self.answered(seat).map(|()| false),
            Stage::Proved(theirs) => self.acknowledged(seat, &theirs),
        };
        match done {
            Ok(true) => self.up(seat, now),
            Ok(false) => false,
            Err(why) => {
                self.dial_failed(seat, now, |tries, _| tries.refused(why));
                false
            }
        }
    }

    /// It is connected, or cannot be.
    fn connected(&mut self, seat: u32, now: Instant) -> bool {
        let Peer::Dialled { stage, shake, .. } = &mut self.peers[seat as usize] else { return false };
        let failed = match shake.stream.take_error() {
            Ok(None) => match (&shake.stream).write(&shake.own.encode()) {
                // So few bytes always fit into a fresh connection.
                Ok(GREETING_BYTES) => None,
                Ok(_) => Some(io::Error::other("it took only a part of the greeting")),
                Err(e) => Some(e),
            },
            Ok(Some(e)) | Err(e) => Some(e),
        };
        match failed {
            None => {
                *stage = Stage::Greeted;
                let _ = self.epoll.modify(&shake.stream, &mut EpollEvent::new(EpollFlags::EPOLLIN, u64::from(seat)));
            }
            Some(why) => self.dial_failed(seat, now, |tries, at| tries.failed(at, &why)),
        }
        false
    }

    /// More of its answer has come: once it is whole and good, prove who this is.
    fn answered(&mut self, seat: u32) -> Result<(), Refusal> {
        let node = self.node_of(seat);
        let Peer::Dialled { stage, shake, .. } = &mut self.peers[seat as usize] else { return Ok(()) };
        read_exactly(shake)?;
        let Some(theirs) = check_answer(&self.key, shake, node)? else { return Ok(()) };
        let mine = proof(&self.key, End::Connecting, &shake.own, &theirs);
        if !matches!((&shake.stream).write(&mine), Ok(PROOF_BYTES)) {
            return Err(Refusal::Closed);
        }
        (shake.got, shake.want, *stage) = (Vec::new(), PROOF_BYTES, Stage::Proved(theirs));
        Ok(())
    }

    /// Has it taken this end's proof?
    fn acknowledged(&mut self, seat: u32, theirs: &Greeting) -> Result<bool, Refusal> {
        let Peer::Dialled { shake, .. } = &mut self.peers[seat as usize] else { return Ok(false) };
        read_exactly(shake)?;
        if shake.got.len() < shake.want {
            return Ok(false);
        }
        if is_no_room(&shake.got) {
            return Err(Refusal::NoRoom);
        }
        check(&self.key, End::Welcome, &shake.own, theirs, &shake.got).map(|()| true)
    }

    /// The other end has proved who it is, and knows who this is. True: the node is up with that.
    fn up(&mut self, seat: u32, now: Instant) -> bool {
        match std::mem::replace(&mut self.peers[seat as usize], Peer::Gone) {
            Peer::Dialled { shake, stage: Stage::Proved(theirs), .. } => {
                let seals = self.sealed.then(|| seal::both(&self.key, End::Connecting, &shake.own, &theirs));
                let link = Link::new(shake.stream, self.name(seat), seals, now);
                self.peers[seat as usize] = Peer::Up(Box::new(link));
                self.is_up(self.node_of(seat))
            }
            other => {
                self.peers[seat as usize] = other;
                false
            }
        }
    }
}
