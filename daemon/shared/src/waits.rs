//! What the ranks of a job wait for, as the daemon sees it from outside; `vmpictl why` and vmpirun's deadlock report are made of it.

use serde::{Deserialize, Serialize};

/// All ranks of a job and what they wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobWaits {
    pub job: u32,
    pub program: String,
    /// Every rank waits in MPI for another one, no message is under way, and nothing outside the ranks can end a wait: proven.
    pub deadlock: bool,
    pub ranks: Vec<RankWait>,
    /// The communicators that the waits are about, and who is in them.
    pub comms: Vec<CommInfo>,
}

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankWait {
    pub rank: u32,
    pub pid: i32,
    /// Which MPI_COMM_WORLD (1: the launcher's), and the rank there.
    pub world: u32,
    pub world_rank: u32,
    /// As `vmpictl show` names it; `ENDED` if its process is gone, `STARTING` before MPI_Init, `REMOTE` on another node.
    pub state: String,
    /// That node, of which this one's daemon knows nothing more.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// One of `sched::CALLS`; empty if it does not wait in MPI.
    pub call: String,
    /// How long it has been suspended.
    pub waiting_s: f64,
    pub waits: Vec<WaitOn>,
    /// Waits that are not listed.
    pub more: u32,
    /// Any one of them is enough.
    pub any: bool,
    /// Messages here that no receive has asked for, the oldest first.
    pub unexpected: Vec<Unasked>,
    /// How many there are in all.
    pub unexpected_count: u32,
}

/// What a wait is for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A message that is to be received.
    #[default]
    Receive,
    /// The receiver of a message that has been sent.
    Send,
    /// A message that is to be probed.
    Probe,
    /// The other members of a collective call.
    Collective,
    /// Room in another rank's inbox.
    Space,
    /// Another member of a window.
    Window,
    /// The daemon (MPI_Comm_spawn, agreement, questions about ports).
    Daemon,
    /// A group of this job that connects to the port at which it accepts.
    Connect,
    /// A group of this job that accepts at the port to which it connects.
    Accept,
}

/// One thing that a rank waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitOn {
    pub kind: WaitKind,
    /// Matching context of the communicator; bit 0: a message of a collective call.
    pub context: u32,
    /// Rank in the communicator; -1: any.
    pub peer: i32,
    /// -2: any.
    pub tag: i32,
    pub bytes: u64,
    /// The ranks of the job that could end it; empty: not known.
    pub ranks: Vec<u32>,
}

/// A message that no receive has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unasked {
    pub context: u32,
    /// Sender, rank in the communicator and in the job.
    pub source: i32,
    pub from: u32,
    pub tag: i32,
    pub bytes: u64,
}

/// A communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommInfo {
    pub context: u32,
    pub name: String,
    /// Job ranks of its members in order; empty: not known.
    pub members: Vec<u32>,
}
