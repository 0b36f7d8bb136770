//! What the daemon knows of one rank: its processes, and how far they have come. `job` draws the conclusions.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use vmpi_shared::control::Ended;

/// The number of a rank that its job has an entry for, in its tables and in its segments. What a client says is a number like any other: only
/// `Job::member` makes one of these of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member(u32);

impl Member {
    /// `rank` of a job that has `entries`, with room in its segments for `capacity` ranks.
    pub fn check(rank: u32, entries: usize, capacity: u32) -> Option<Member> {
        (rank < capacity && (rank as usize) < entries).then_some(Member(rank))
    }

    pub fn number(self) -> u32 {
        self.0
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The MPI process of a rank: the spawned one, or a descendant of it (sh -c, python).
pub struct Attachment {
    pub pid: i32,
    pub connection: Option<u64>,
    pub face: String,
    pub alive: bool,
    pub ended: Option<Ended>,
    /// Watches it if it is not the spawned process.
    pub pidfd: Option<OwnedFd>,
}

impl Attachment {
    /// Has the process ended, though nobody has said so yet?
    pub fn has_ended(&self) -> bool {
        use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
        self.pidfd.as_ref().is_some_and(|pidfd| {
            let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0)
        })
    }
}

/// A rank as the daemon sees it.
#[derive(Default)]
pub struct Rank {
    /// Index in `Job::worlds`, and the rank there.
    pub world: usize,
    pub world_rank: u32,
    /// Index among the spawner's programs, and that of the program in its own command (MPI_APPNUM).
    pub program: usize,
    pub appnum: u32,
    /// Started by an MPI_Comm_spawn that failed for another process: it is being killed, and its end means nothing.
    pub abandoned: bool,
    /// Started by an MPI_Comm_spawn over several nodes of which it is not known yet whether it succeeds: it is kept out of MPI.
    pub held: bool,
    /// Process that the daemon spawned; 0: not yet.
    pub pid: i32,
    pub group: i32,
    /// How that process ended; it has been reaped.
    pub ended: Option<Ended>,
    pub attachment: Option<Attachment>,
    pub finalized: bool,
    /// MPI programs that were this rank before, one after the other.
    pub program_count: u32,
    /// `Reply::Ended` has been made.
    pub over: bool,
    pub died: bool,
    pub wrapper_deadline: Option<Instant>,
}

impl Rank {
    /// A rank whose process is to be started.
    pub fn new(world: usize, world_rank: u32, program: usize, appnum: u32) -> Rank {
        Rank { world, world_rank, program, appnum, ..Rank::default() }
    }
}
