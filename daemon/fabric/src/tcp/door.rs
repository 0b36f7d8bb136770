//! Who knocks: connections of which nobody knows yet whose they are.
//!
//! Anybody who reaches the port may connect and say nothing. So there is room for so many of them, and the one that has waited longest is shown out for the
//! next: a node of the job says who it is as soon as it is connected, and if it has been shown out all the same it is told why, and comes again. Those that come
//! from where the job's nodes are have a room of their own, which strangers do not fill; nor does one address fill that of the strangers. When
//! all nodes have come the port is closed.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{Backlog, listen};

use super::LANES;
use super::handshake::PendingConnection;
use crate::auth::no_room;
use crate::fabric::Others;

/// Strangers at a time, and of them from one address.
const MOST_STRANGERS: usize = 256;
const MOST_OF_ONE: usize = 16;
/// Connections that the kernel holds until they are accepted: who connects while this process does something else is not to wait for a second try.
const BACKLOG: i32 = 4096;
/// The first token: those below are seats.
pub(super) const FIRST_KNOCK: u64 = 1 << 32;

pub(super) struct Door {
    /// Until all have come.
    listener: Option<TcpListener>,
    /// By token, which is in the order in which they came.
    knocks: BTreeMap<u64, PendingConnection>,
    next: u64,
    /// Where the job's nodes are, and how many of them are there.
    homes: HashMap<IpAddr, usize>,
    others: Others,
}

/// What counts as one place: of an IPv6 address the network, in which a host may have as many as it likes.
fn place(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => IpAddr::V6(Ipv6Addr::from_bits(six.to_bits() >> 64 << 64)),
    }
}

impl Door {
    /// # Errors
    /// No socket can be made.
    pub(super) fn open() -> io::Result<Door> {
        let any = [SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))];
        let listener = TcpListener::bind(&any[..])?;
        listener.set_nonblocking(true)?;
        // The kernel takes as many as it allows (net.core.somaxconn).
        let _ = Backlog::new(BACKLOG).map(|backlog| listen(&listener, backlog));
        let (knocks, homes) = (BTreeMap::new(), HashMap::new());
        Ok(Door { listener: Some(listener), knocks, next: FIRST_KNOCK, homes, others: Others::default() })
    }

    pub(super) fn listener(&self) -> Option<&TcpListener> {
        self.listener.as_ref()
    }

    /// Nodes of the job, one after the other, have these addresses.
    pub(super) fn expect<'a>(&mut self, nodes: impl Iterator<Item = &'a [SocketAddr]>) {
        for addresses in nodes {
            let mut seen: Vec<IpAddr> = addresses.iter().map(|at| at.ip().to_canonical()).collect();
            seen.sort_unstable();
            seen.dedup();
            seen.into_iter().for_each(|home| *self.homes.entry(home).or_default() += 1);
        }
    }

    /// The next connection, and where it comes from.
    pub(super) fn accept(&mut self) -> Option<(TcpStream, IpAddr)> {
        match self.listener.as_ref()?.accept() {
            Ok((stream, from)) => Some((stream, from.ip().to_canonical())),
            Err(e) => {
                // Without a descriptor for the next one this would be tried for ever.
                let full = [Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM];
                if e.raw_os_error().is_some_and(|errno| full.contains(&Errno::from_raw(errno))) {
                    let oldest = self.oldest(|knock| !knock.home).or(self.oldest(|_| true));
                    oldest.into_iter().for_each(|token| self.show_out(token));
                }
                None
            }
        }
    }

    fn oldest(&self, which: impl Fn(&PendingConnection) -> bool) -> Option<u64> {
        self.knocks.iter().find(|(_, knock)| which(knock)).map(|(token, _)| *token)
    }

    /// The token of the next one.
    pub(super) fn next_token(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Let one wait in the room, for which another may have to go. Does it come from where the job's nodes are?
    pub(super) fn let_wait(&mut self, token: u64, mut knock: PendingConnection) -> bool {
        let (from, home) = (knock.from, self.homes.get(&knock.from).copied());
        knock.home = home.is_some();
        let waiting =
            |which: &dyn Fn(&PendingConnection) -> bool| self.knocks.values().filter(|knock| which(knock)).count();
        let of_same = |other: &PendingConnection| place(other.from) == place(from);
        let stranger = |other: &PendingConnection| !other.home;
        let goes = match home {
            // Each of its nodes may come twice by each lane: what has been given up by one end may still be there at the other.
            Some(nodes) if waiting(&|other| other.from == from) >= 2 * LANES as usize * nodes => {
                self.oldest(|other| other.from == from)
            }
            Some(_) => None,
            None if waiting(&|other| stranger(other) && of_same(other)) >= MOST_OF_ONE => {
                self.oldest(|other| stranger(other) && of_same(other))
            }
            None if waiting(&stranger) >= MOST_STRANGERS => self.oldest(stranger),
            None => None,
        };
        goes.into_iter().for_each(|token| self.show_out(token));
        self.knocks.insert(token, knock);
        home.is_some()
    }

    /// Say that there is no room, and close.
    fn show_out(&mut self, token: u64) {
        if let Some(knock) = self.turned_away(token) {
            let stream = &mut &knock.shake.stream;
            // What has not been read would take the word with it.
            let _ = stream.read(&mut [0; 256]);
            let _ = stream.write(&no_room());
        }
    }

    /// This one was none of the job's, or has to go.
    pub(super) fn turned_away(&mut self, token: u64) -> Option<PendingConnection> {
        let knock = self.knocks.remove(&token)?;
        self.others = Others { count: self.others.count + 1, from: Some(knock.from) };
        Some(knock)
    }

    pub(super) fn get_mut(&mut self, token: u64) -> Option<&mut PendingConnection> {
        self.knocks.get_mut(&token)
    }

    /// This one has said who it is.
    pub(super) fn come_in(&mut self, token: u64) -> Option<PendingConnection> {
        self.knocks.remove(&token)
    }

    pub(super) fn check_deadlines(&mut self, now: Instant) {
        while let Some(token) = self.oldest(|knock| knock.shake.until <= now) {
            self.turned_away(token);
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.knocks.values().map(|knock| knock.shake.until).min()
    }

    /// Who has come that is not of the job, as far as that is known.
    pub(super) fn others(&self) -> Others {
        let last = self.knocks.values().next_back().map(|knock| knock.from);
        Others { count: self.others.count + self.knocks.len() as u64, from: last.or(self.others.from) }
    }

    /// Nobody else is expected.
    pub(super) fn close(&mut self) {
        self.listener = None;
        self.knocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Greeting;
    use crate::tcp::handshake::Greeted;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    fn knock(from: IpAddr) -> (PendingConnection, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let own = Greeting { nodes: 2, from: 0, to: 1, lane: 0, sealed: false, nonce: [0; 32] };
        let stream = TcpStream::from(OwnedFd::from(here));
        let shake = Greeted { stream, own, got: Vec::new(), want: 0, until: Instant::now() };
        (PendingConnection { shake, from, home: false, theirs: None }, there)
    }

    fn v4(n: u32) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n))
    }

    #[test]
    fn the_oldest_goes_and_nobody_takes_anothers_place() {
        let mut door = Door::open().unwrap();
        let home = v4(9);
        door.expect([&[SocketAddr::from((Ipv4Addr::new(10, 0, 0, 9), 1))][..]].into_iter());
        let mut ends = Vec::new();
        let mut come = |door: &mut Door, from| {
            let (knock, end) = knock(from);
            let token = door.next_token();
            ends.push(end);
            (door.let_wait(token, knock), token)
        };
        let (is_home, node) = come(&mut door, home);
        assert!(is_home);
        // One address has its room, in which the oldest goes.
        let first: Vec<u64> = (0..MOST_OF_ONE + 4).map(|_| come(&mut door, v4(1)).1).collect();
        assert!(first[..4].iter().all(|token| door.get_mut(*token).is_none()));
        assert!(first[4..].iter().all(|token| door.get_mut(*token).is_some()));
        // All strangers have theirs.
        let many: Vec<u64> = (0..2 * MOST_STRANGERS as u32).map(|n| come(&mut door, v4(100 + n)).1).collect();
        assert!(first.iter().all(|token| door.get_mut(*token).is_none()));
        assert_eq!(many.iter().filter(|token| door.get_mut(**token).is_some()).count(), MOST_STRANGERS);
        assert!(door.get_mut(node).is_some(), "which a node's is no part of");
        // Nor does who sits where a node is keep it out.
        let last = (0..10).map(|_| come(&mut door, home).1).last().unwrap();
        assert!(door.get_mut(node).is_none() && door.get_mut(last).is_some());
        assert_eq!(door.others().count, 20 + 512 + 11);
        let mut said = [0; 8];
        (&ends[0]).read_exact(&mut said).unwrap();
        assert_eq!(said, no_room()[..8]);
    }

    #[test]
    fn a_host_of_many_addresses_is_one() {
        let six = |low: u64| IpAddr::V6(Ipv6Addr::from_bits(0xfd00_u128 << 112 | u128::from(low)));
        assert_eq!(place(six(1)), place(six(u64::MAX)));
        assert_ne!(place(v4(1)), place(v4(2)));
    }
}
