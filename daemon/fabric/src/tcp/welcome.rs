//! Letting in who connects and proves to be a node of the job.

use std::io::Write;
use std::time::Instant;

use nix::sys::epoll::{EpollEvent, EpollFlags};

use super::handshake::{Greeted, PendingConnection, read_exactly};
use super::{EVENTS, LANES, PATIENCE, Peer, Tcp};
use crate::auth::{End, GREETING_BYTES, Greeting, PROOF_BYTES, Refusal, check, proof};
use crate::link::Link;
use crate::seal;

impl Tcp {
    /// Let in who knocks; the nodes that are up with that.
    pub(super) fn accept(&mut self, now: Instant) -> Vec<u32> {
        let mut up = Vec::new();
        for _ in 0..EVENTS {
            let Some((stream, from)) = self.door.accept() else { break };
            let Ok(own) = self.greeting(u32::MAX, u32::MAX) else { continue };
            let token = self.door.next_token();
            let watched = stream.set_nonblocking(true).is_ok()
                && self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, token)).is_ok();
            if watched {
                let shake = Greeted { stream, own, got: Vec::new(), want: GREETING_BYTES, until: now + PATIENCE };
                // Who comes from where a node is, is heard before others are let in.
                if self.door.let_wait(token, PendingConnection { shake, from, home: false, theirs: None }) {
                    up.extend(self.knock_ready(token, now));
                }
            }
        }
        up
    }

    /// Somebody who has connected says more; the node, if it is up with that.
    pub(super) fn knock_ready(&mut self, token: u64, now: Instant) -> Option<u32> {
        let knock = self.door.get_mut(token)?;
        let good = read_exactly(&mut knock.shake).is_ok();
        if good && knock.shake.got.len() < knock.shake.want {
            return None;
        }
        if good && knock.theirs.is_none() && self.answer(token).is_some() {
            return None;
        }
        let node = if good { self.let_in(token, now) } else { None };
        self.door.turned_away(token);
        self.close_door();
        node.filter(|node| self.is_up(*node))
    }

    /// A greeting has come: answer it, if it is one that is expected.
    fn answer(&mut self, token: u64) -> Option<()> {
        let knock = self.door.get_mut(token)?;
        let greeting: &[u8; GREETING_BYTES] = knock.shake.got.first_chunk()?;
        let theirs = match Greeting::decode(greeting) {
            Ok(theirs) => theirs,
            Err(Refusal::Version { .. }) => {
                // So that it can say why.
                let _ = (&knock.shake.stream).write(&knock.shake.own.encode());
                return None;
            }
            Err(_) => return None,
        };
        let expected = theirs.to == self.me
            && theirs.nodes == self.nodes.len() as u32
            && theirs.from < theirs.nodes
            && theirs.lane < LANES
            && matches!(self.peers[self.seat(theirs.from, theirs.lane)], Peer::Expected { .. });
        if !expected {
            return None;
        }
        let knock = self.door.get_mut(token)?;
        (knock.shake.own.to, knock.shake.own.lane) = (theirs.from, theirs.lane);
        let mine = proof(&self.key, End::Accepting, &theirs, &knock.shake.own);
        let answer = [&knock.shake.own.encode()[..], &mine[..]].concat();
        if !matches!((&knock.shake.stream).write(&answer), Ok(n) if n == answer.len()) || theirs.sealed != self.sealed {
            return None;
        }
        (knock.shake.got, knock.shake.want, knock.theirs) = (Vec::new(), PROOF_BYTES, Some(theirs));
        Some(())
    }

    /// Who has greeted says that it has the key: the node that it is.
    fn let_in(&mut self, token: u64, now: Instant) -> Option<u32> {
        let knock = self.door.get_mut(token)?;
        let theirs = knock.theirs?;
        check(&self.key, End::Connecting, &theirs, &knock.shake.own, &knock.shake.got).ok()?;
        let seat = self.seat(theirs.from, theirs.lane);
        if !matches!(self.peers[seat], Peer::Expected { .. }) {
            return None;
        }
        let Greeted { stream, own, .. } = self.door.come_in(token)?.shake;
        let welcome = proof(&self.key, End::Welcome, &theirs, &own);
        if !matches!((&stream).write(&welcome), Ok(PROOF_BYTES)) {
            return None;
        }
        self.epoll.modify(&stream, &mut EpollEvent::new(EpollFlags::EPOLLIN, seat as u64)).ok()?;
        let seals = self.sealed.then(|| seal::both(&self.key, End::Accepting, &theirs, &own));
        self.peers[seat] = Peer::Up(Box::new(Link::new(stream, self.name(seat as u32), seals, now)));
        Some(theirs.from)
    }

    /// Nobody connects to this node any more.
    pub(super) fn close_door(&mut self) {
        if self.door.listener().is_some() && !self.peers.iter().any(|peer| matches!(peer, Peer::Expected { .. })) {
            self.door.close();
        }
    }
}
