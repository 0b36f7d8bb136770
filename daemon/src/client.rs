//! A connection of the control socket, what it is for, and what all of them hold.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Instant;

use vmpi_shared::control::MAX_FRAME_BYTES;

use crate::connection::Channel;

/// What a connection is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Has not said hello.
    Stranger,
    Tool,
    /// Submitted this job (or none that was accepted, or it is over).
    Launcher(Option<u32>),
    /// Is this rank of this job.
    Rank(u32, u32),
    /// Carries this job's messages to other nodes.
    Carrier(u32),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Role::Stranger => f.write_str("a connection without hello"),
            Role::Tool => f.write_str("a tool"),
            Role::Launcher(Some(job)) => write!(f, "the launcher of job {job}"),
            Role::Launcher(None) => f.write_str("a launcher without a job"),
            Role::Rank(job, rank) => write!(f, "rank {rank} of job {job}"),
            Role::Carrier(job) => write!(f, "the carrier of job {job}"),
        }
    }
}

/// One connection and what it is for.
pub struct Client {
    pub channel: Channel,
    pub role: Role,
    /// Close once everything is sent; nothing more is read.
    pub closing: bool,
    /// A tool that waits for what the launcher of this job tells.
    pub waits_for: Option<u32>,
    /// What epoll is asked: for room to write, and for what there is to read.
    pub(crate) wants_write: bool,
    pub(crate) listens: bool,
    /// What it holds, as far as that has been counted.
    pub(crate) holds: (usize, usize),
    /// It has closed its end.
    pub(crate) ended: bool,
    /// It has a turn to come (`clients`).
    pub(crate) in_backlog: bool,
}

impl Client {
    pub fn new(channel: Channel) -> Client {
        Client {
            channel,
            role: Role::Stranger,
            closing: false,
            waits_for: None,
            wants_write: false,
            listens: true,
            holds: (0, 0),
            ended: false,
            in_backlog: false,
        }
    }

    /// Is nothing more to be read of it until it has read what it was told? Launchers and carriers wait for what they write to be read, and are held to what may be unread.
    pub(crate) fn is_paused(&self) -> bool {
        matches!(self.role, Role::Stranger | Role::Tool | Role::Rank(..)) && self.channel.is_paused()
    }
}

/// Who is to have a turn, and what all hold.
#[derive(Default)]
pub struct Turns {
    /// Connections of which whole messages have been read and not served.
    pub backlog: Vec<u64>,
    /// Connections of tools and strangers, the oldest first.
    pub guests: BTreeSet<u64>,
    pub bytes: usize,
    pub fds: usize,
    /// No descriptor was free: when to listen again.
    pub listen_at: Option<Instant>,
}

impl Turns {
    /// Is somebody to be served at once?
    pub fn are_due(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// When something is to be looked at, if nobody calls before.
    pub fn next(&self) -> Option<Instant> {
        self.listen_at
    }

    /// What a connection holds may have changed.
    pub fn account(&mut self, client: &mut Client) {
        let now = client.channel.holds();
        let before = std::mem::replace(&mut client.holds, now);
        self.bytes = (self.bytes + now.0).saturating_sub(before.0);
        self.fds = (self.fds + now.1).saturating_sub(before.1);
    }

    /// A connection belongs to a job now, or is gone.
    pub fn no_guest(&mut self, token: u64) {
        self.guests.remove(&token);
    }
}

/// The longest frame that one of this role may send.
pub fn most_bytes(role: Role) -> u32 {
    match role {
        Role::Stranger => 4 << 10,
        Role::Carrier(_) => 1 << 20,
        Role::Rank(..) => 16 << 20,
        // A specification holds environments and a place for each rank.
        Role::Tool | Role::Launcher(_) => MAX_FRAME_BYTES,
    }
}
