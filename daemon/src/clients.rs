//! Whose turn it is: what connections may cost the event loop, one by one and all together.
//!
//! One client must not keep others waiting, nor take what the jobs of all need. A turn reads once and serves what has come for a moment; what is left has its next turn after
//! the other connections had theirs (`backlog`). What a client holds here is bounded: frames by its role, descriptors by the frame that brings them, answers by what it reads.
//! Who breaks a bound is told so, as far as it listens, and closed; that of a launcher ends its job, as its death would.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::sys::epoll::{EpollEvent, EpollFlags};

use crate::client::{Client, Role, most_bytes};
use crate::connection::{Channel, Incoming, ReadError};
use crate::daemon::{Daemon, LISTENER};
use crate::log::{self, debug};

/// What is served of one connection at a time: so many messages, or for so long.
const TURN_FRAMES: usize = 64;
const TURN_TIME: Duration = Duration::from_millis(2);
/// How often a dead rank's connection is read, and for how long that is served, before its end is acted upon: what its socket held, as a rule.
const LAST_READS: usize = 16;
const LAST_TIME: Duration = Duration::from_millis(100);
/// Connections accepted at a time.
const ACCEPTS: usize = 64;
/// After this time is looked again whether descriptors are free.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections of tools, and of those who have not said who they are, besides those of ranks to come: beyond it the oldest goes.
const MOST_GUESTS: usize = 1024;
/// Bytes that have been read of all connections and make no whole message yet; who adds to more, and has more than a message's usual bytes, is closed.
const MOST_HELD_BYTES: usize = 256 << 20;
const USUAL_BYTES: usize = 1 << 20;
/// Descriptors that come with one message at most, and those of all connections that no message has taken.
const MOST_LOOSE_FDS: usize = 253;
const MOST_HELD_FDS: usize = 1024;

impl Daemon {
    /// Take new connections, a bounded number, so that ranks that connect do not starve the others.
    pub(crate) fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(e)
                    if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS)) =>
                {
                    // Who knocks would wake this process again and again.
                    log::line(&format!("cannot take connections for a moment: {e}"));
                    let _ = self.epoll.delete(&self.listener);
                    self.turns.listen_at = Some(Instant::now() + ACCEPT_PAUSE);
                    return;
                }
                Err(e) => {
                    debug!("accept: {e}");
                    return;
                }
            };
            let channel = match Channel::new(stream) {
                Ok(channel) => channel,
                Err(e) => {
                    debug!("a connection without credentials: {e}");
                    continue;
                }
            };
            let token = self.new_token();
            if self.epoll.add(channel.stream(), EpollEvent::new(EpollFlags::EPOLLIN, token)).is_ok() {
                self.clients.insert(token, Client::new(channel));
                self.turns.guests.insert(token);
            }
        }
        // Each rank is one until it has attached.
        let most = MOST_GUESTS + self.jobs.values().map(|job| job.ranks.len()).sum::<usize>();
        while self.turns.guests.len() > most
            && let Some(oldest) = self.turns.guests.pop_first()
        {
            debug!("more than {most} tools are connected: the oldest connection is closed");
            self.close(oldest);
        }
    }

    /// Listen again, if it is time to.
    pub(crate) fn listen_again(&mut self, now: Instant) {
        if self.turns.listen_at.take_if(|at| *at <= now).is_some() {
            let _ = self.epoll.add(self.listener.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, LISTENER));
        }
    }

    pub(crate) fn client_ready(&mut self, token: u64, events: EpollFlags) {
        let over = EpollFlags::EPOLLHUP | EpollFlags::EPOLLERR;
        // Of one that is not read its end shows when it is written to.
        let unread = self.clients.get(&token).is_some_and(|client| !client.listens);
        if events.contains(EpollFlags::EPOLLOUT) || (unread && events.intersects(over)) {
            self.flush(token);
        }
        if events.intersects(EpollFlags::EPOLLIN | over) {
            self.read_client(token);
        }
    }

    /// A turn of a connection that has something to say; it is closed at its end.
    fn read_client(&mut self, token: u64) {
        let Some(client) = self.clients.get(&token) else { return };
        let waits = client.closing || client.is_paused() || client.channel.has_next(most_bytes(client.role));
        // What has been read comes first.
        if !waits {
            self.read_some(token);
        }
        self.serve_some(token, TURN_FRAMES, TURN_TIME);
        self.settle_turn(token);
    }

    /// A turn for each of those of whom something has been read and not served.
    pub(crate) fn serve_backlog(&mut self) {
        for token in std::mem::take(&mut self.turns.backlog) {
            if let Some(client) = self.clients.get_mut(&token) {
                client.in_backlog = false;
                self.serve_some(token, TURN_FRAMES, TURN_TIME);
                self.settle_turn(token);
            }
        }
    }

    /// What a process that has ended has said before.
    pub(crate) fn hear_out(&mut self, token: u64) {
        let until = Instant::now() + LAST_TIME;
        for _ in 0..LAST_READS {
            let before = self.clients.get(&token).map(|client| client.channel.holds());
            self.read_some(token);
            let after = self.clients.get(&token).map(|client| client.channel.holds());
            let left = until.saturating_duration_since(Instant::now());
            self.serve_some(token, usize::MAX, left);
            if after.is_none() || before == after || left.is_zero() {
                break;
            }
        }
        self.settle_turn(token);
    }

    fn read_some(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token).filter(|client| !client.closing && !client.ended) else {
            return;
        };
        let before = client.channel.holds();
        let incoming = client.channel.read(&mut self.scratch);
        let after = client.channel.holds();
        self.turns.account(client);
        let too_much = self.turns.bytes > MOST_HELD_BYTES && after.0 > USUAL_BYTES;
        match incoming {
            Ok(Incoming::Open) if too_much || self.turns.fds > MOST_HELD_FDS && after.1 > before.1 => {
                let reason = "clients have sent this vmpid more than it can hold at a time; try again";
                self.turn_out(token, reason.into());
            }
            Ok(Incoming::Open) => {}
            Ok(Incoming::Closed) => client.ended = true,
            // It is gone; what it has said before counts.
            Err(ReadError::Socket(error)) => {
                debug!("connection {token}: {error}");
                client.ended = true;
            }
            Err(error @ ReadError::Cut) => self.turn_out(token, error.to_string()),
        }
    }

    /// Serve what has been read whole.
    fn serve_some(&mut self, token: u64, most: usize, time: Duration) {
        let until = Instant::now() + time;
        for _ in 0..most {
            let Some(client) = self.clients.get_mut(&token) else { return };
            if client.closing || client.is_paused() {
                return;
            }
            match client.channel.next(most_bytes(client.role)) {
                Ok(Some(request)) => self.serve(token, request),
                Ok(None) => return,
                Err(error) => return self.refuse(token, error.to_string(), 125),
            }
            if Instant::now() >= until {
                return;
            }
        }
    }

    /// After a turn: what follows from what is left.
    fn settle_turn(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let more = client.channel.has_next(most_bytes(client.role));
        if client.closing {
            client.channel.forget_input();
        }
        self.turns.account(client);
        if client.closing {
            if client.ended {
                self.close(token);
            }
            return;
        }
        if more && !client.is_paused() {
            if !std::mem::replace(&mut client.in_backlog, true) {
                self.turns.backlog.push(token);
            }
            return;
        }
        if client.ended && !more {
            return self.close(token);
        }
        // Descriptors come with the first byte of the message that takes them.
        let loose = client.channel.holds().1;
        let allowed = match client.role {
            Role::Stranger => 0,
            _ if more || client.channel.is_in_frame() => 2 * MOST_LOOSE_FDS,
            _ => 0,
        };
        if loose > allowed {
            self.turn_out(token, format!("{loose} descriptors came that no message has announced"));
        }
    }

    /// Refuse a client, and say so to whoever reads what vmpid says.
    fn turn_out(&mut self, token: u64, reason: String) {
        if let Some(client) = self.clients.get_mut(&token) {
            log::line(&format!("{} (pid {}) is refused: {reason}", client.role, client.channel.peer().pid));
            client.channel.forget_input();
            self.turns.account(client);
        }
        self.refuse(token, reason, 125);
    }

    /// Send what is queued; watch for room if the socket is full, close if the peer is gone or all is said.
    pub(crate) fn flush(&mut self, token: u64) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        if let Err(error) = client.channel.flush() {
            debug!("connection {token}: {error}");
            self.close(token);
            return;
        }
        let wants_write = client.channel.is_backed_up();
        if client.closing && !wants_write {
            self.close(token);
            return;
        }
        let listens = !client.closing && !client.is_paused();
        if (wants_write, listens) == (client.wants_write, client.listens) {
            return;
        }
        let goes_on = listens && !client.listens;
        (client.wants_write, client.listens) = (wants_write, listens);
        let mut interest = EpollFlags::empty();
        interest.set(EpollFlags::EPOLLIN, listens);
        interest.set(EpollFlags::EPOLLOUT, wants_write);
        let _ = self.epoll.modify(client.channel.stream(), &mut EpollEvent::new(interest, token));
        if goes_on && !std::mem::replace(&mut client.in_backlog, true) {
            self.turns.backlog.push(token);
        }
    }

    /// A connection is gone: what it held is free.
    pub(crate) fn gone(&mut self, token: u64, client: &mut Client) {
        client.channel.forget_input();
        self.turns.account(client);
        self.turns.no_guest(token);
        if self.turns.listen_at.is_some() {
            self.turns.listen_at = Some(Instant::now());
        }
    }
}
