//! Connections whose ends have not proved yet that they belong to the job.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, connect, socket, sockopt};

use crate::auth::{End, GREETING_BYTES, Greeting, PROOF_BYTES, Refusal, check};
use crate::key::Key;

/// A connection whose other end has not proved yet that it belongs to the job.
pub(super) struct Greeted {
    pub(super) stream: TcpStream,
    pub(super) own: Greeting,
    pub(super) got: Vec<u8>,
    pub(super) want: usize,
    pub(super) until: Instant,
}

/// Accepted; the greeting of the other end, once it has come.
pub(super) struct PendingConnection {
    pub(super) shake: Greeted,
    pub(super) from: IpAddr,
    /// Nodes of the job are there.
    pub(super) home: bool,
    pub(super) theirs: Option<Greeting>,
}

pub(super) fn begin_connecting(at: SocketAddr) -> io::Result<OwnedFd> {
    let family = if at.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let fd = socket(family, SockType::Stream, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
    let _ = nix::sys::socket::setsockopt(&fd, sockopt::KeepAlive, &true);
    let begun = match at {
        SocketAddr::V4(at) => connect(fd.as_raw_fd(), &SockaddrIn::from(at)),
        SocketAddr::V6(at) => connect(fd.as_raw_fd(), &SockaddrIn6::from(at)),
    };
    match begun {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(fd),
        Err(e) => Err(e.into()),
    }
}

/// Read on, but not beyond what the greeting needs: frames come behind it.
pub(super) fn read_exactly(shake: &mut Greeted) -> Result<(), Refusal> {
    let mut bytes = [0; GREETING_BYTES + PROOF_BYTES];
    while shake.got.len() < shake.want {
        let missing = shake.want - shake.got.len();
        match (&shake.stream).read(&mut bytes[..missing]) {
            // A greeting alone may still say which version it is.
            Ok(0) if shake.got.len() >= GREETING_BYTES => return Ok(()),
            Ok(0) => return Err(Refusal::Closed),
            Ok(count) => shake.got.extend_from_slice(&bytes[..count]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(_) => return Err(Refusal::Closed),
        }
    }
    Ok(())
}

/// The answer of node `node` to a greeting; `None` if it has not come whole.
pub(super) fn check_answer(key: &Key, shake: &Greeted, node: u32) -> Result<Option<Greeting>, Refusal> {
    let Some(greeting) = shake.got.first_chunk::<GREETING_BYTES>() else { return Ok(None) };
    let theirs = Greeting::decode(greeting)?;
    if theirs.sealed != shake.own.sealed {
        return Err(Refusal::Sealed { theirs: theirs.sealed });
    }
    if (theirs.from, theirs.nodes) != (node, shake.own.nodes) {
        return Err(Refusal::Confused { from: theirs.from, to: theirs.to, nodes: theirs.nodes });
    }
    if shake.got.len() < shake.want {
        return Ok(None);
    }
    if (theirs.to, theirs.lane) != (shake.own.from, shake.own.lane) {
        return Err(Refusal::Confused { from: theirs.from, to: theirs.to, nodes: theirs.nodes });
    }
    check(key, End::Accepting, &shake.own, &theirs, &shake.got[GREETING_BYTES..])?;
    Ok(Some(theirs))
}

/// Why a node has not been reached yet.
#[derive(Debug)]
pub(super) enum Trouble {
    /// By none of its addresses: in words.
    Unreachable(String),
    Refused(Refusal),
}

impl Trouble {
    /// Would it be the same the next time?
    pub(super) fn is_final(&self) -> bool {
        use Refusal::{Closed, NoRoom, Slow};
        matches!(self, Trouble::Refused(why) if !matches!(why, Closed | NoRoom | Slow))
    }
}

/// How far the connecting end is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Connecting,
    /// It has greeted.
    Greeted,
    /// It has proved who it is, and waits for the acknowledgement.
    Proved(Greeting),
}
