//! Messages between the daemon, its ranks and the tools, over a Unix stream socket.
//!
//! A frame is a little-endian `u32` length and that many bytes of JSON; file descriptors travel with the frame's first
//! byte (SCM_RIGHTS, at most [`MAX_FDS`] a frame). The first message on every connection is [`Request::Hello`]; the daemon answers
//! [`Reply::Hello`] or [`Reply::Refused`]. Then the connection is a tool's, a launcher's (after `Submit`) or a rank's (after `Attach`).

use crate::crash::{Crash, Dying};
use crate::dynamic::{Answer, Ask, NewContexts, Ranks, World};
use crate::monitor::Matrix;
use crate::spawn_protocol::{Birth, Stage, Step};
use crate::trace::TraceMap;
use crate::waits::{JobWaits, Still};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

mod check;
mod connection;
mod overlap;
mod report;
mod spec;

pub use check::{About, CallSite, Check, Finding, FindingKind, Findings, Party};
pub use connection::{Connection, Control, Received, receive_some};
pub use overlap::Overlap;
pub use report::{CoreReport, Helper, JobReport, RankReport, RegionReport, SimulationReport, Spread3, WaitShare};
pub use spec::{App, Balance, JobSpec, NodeMap, NodePart, Nodes, OnBlock, Policy, Simulation, Stdio, Wtime};

/// Changes whenever a message changes its meaning.
pub const PROTOCOL: u32 = 16;
/// Most ranks that a segment is made for, and most of all else that it counts: all sizes computed from these are far from overflow.
pub const MOST_RANKS: u32 = 1 << 24;
/// Longest frame accepted.
pub const MAX_FRAME_BYTES: u32 = 64 << 20;
/// Descriptors in one frame (the kernel's SCM_MAX_FD is 253).
pub const MAX_FDS: usize = 250;
/// Descriptors that a daemon needs for itself and a first job besides those of the job's ranks.
pub const DAEMON_FDS: u64 = 30;
/// The daemon's socket inside the runtime directory.
pub const SOCKET_NAME: &str = "vmpid.sock";
/// The status page's flink inside the runtime directory.
pub const STATUS_FLINK_NAME: &str = "status";
/// What it is called until it is written.
pub const NEW_FLINK_NAME: &str = ".vmpi-status.new";
/// A private daemon's directory is called so, its launcher's pid behind.
pub const PRIVATE_PREFIX: &str = "job-";
/// The file in it on which the launcher holds a lock as long as it lives. Its name marks the directory as vmpi's (`leftovers`).
pub const LAUNCHER_LOCK_NAME: &str = ".vmpi-launcher";
/// What that file is called until it is locked: whoever finds it unlocked takes its launcher for dead.
pub const NEW_LAUNCHER_LOCK_NAME: &str = ".vmpi-launcher.new";

/// How the note begins that says by what a node's messages go to others.
pub const CARRIED: &str = "messages to other nodes go by";

/// Environment of a rank: where its daemon listens, who it is.
pub mod env {
    pub const SOCKET: &str = "VMPI_SOCKET";
    /// Auditors of ld.so, and vmpi's own, which finds the faces for programs that open libraries by a path.
    pub const AUDIT: &str = "LD_AUDIT";
    pub const AUDITOR: &str = "libvmpi_audit.so";
    /// A word that no other job has, whichever daemon's: not a secret (programs print their environment), but who has another one has lost its way.
    pub const JOB: &str = "VMPI_JOB";
    pub const JOBID: &str = "VMPI_JOBID";
    pub const RANK: &str = "VMPI_RANK";
    /// Number of a rank in its job: its rank in MPI_COMM_WORLD, unless it was spawned by MPI_Comm_spawn.
    pub const JOB_RANK: &str = "VMPI_JOB_RANK";
    pub const SIZE: &str = "VMPI_SIZE";
    pub const V: &str = "VMPI_V";
    /// `0` in the job's environment: large messages go through shared memory, as where the kernel refuses single copy.
    pub const SINGLE_COPY: &str = "VMPI_SINGLE_COPY";
    /// Performance counters, with commas between them (`vmpirun --counters`).
    pub const COUNTERS: &str = "VMPI_COUNTERS";
    /// The file of `vmpirun --compute record:FILE` and `replay:FILE`.
    pub const COMPUTATION: &str = "VMPI_COMPUTATION";
    /// Set: a report will tell of the program's regions.
    pub const REGIONS: &str = "VMPI_REGIONS";
    /// `regions`: MPI_Pcontrol is given names of regions (`vmpirun --pcontrol`).
    pub const PCONTROL: &str = "VMPI_PCONTROL";
    /// `0` in the job's environment: no huge pages under buffers that are used often.
    pub const HUGE_PAGES: &str = "VMPI_HUGE_PAGES";
    /// `0` in the job's environment: memory that large messages use often is not laid open to the other ranks; `1`: also what is not malloc's.
    pub const MAP_MEMORY: &str = "VMPI_MAP_MEMORY";
    /// `0` in the job's environment: nobody matches messages for a rank that computes.
    pub const STRONG_PROGRESS: &str = "VMPI_STRONG_PROGRESS";
    /// `auto`, `on` or `off`, in the job's environment: do blocking calls return before their messages are over? (`vmpirun --overlap`)
    pub const OVERLAP: &str = "VMPI_OVERLAP";
    /// `off`, `cheap` or `full`, in the job's environment: is the program's use of MPI checked? (`vmpirun --check`)
    pub const CHECK: &str = "VMPI_CHECK";
    /// Bytes, in the job's environment: memory for messages of the job that no receive has asked for, on each node.
    pub const UNEXPECTED_BYTES: &str = "VMPI_UNEXPECTED_BYTES";
    /// A seed, and with commas what is left to it (`vmpirun --chaos`).
    pub const CHAOS: &str = "VMPI_CHAOS";
    /// A directory into which each rank writes what it decides (`vmpirun --record`); the second is set: also what else could have been decided.
    pub const RECORD: &str = "VMPI_RECORD";
    pub const RECORD_ALL: &str = "VMPI_RECORD_ALL";
    /// The record that is followed (`vmpirun --replay`).
    pub const REPLAY: &str = "VMPI_REPLAY";
    /// Directory that holds the runtime directory (tests and users override it).
    pub const RUNTIME_DIR: &str = "VMPI_RUNTIME_DIR";
    /// The RDMA device that a node's vmpid is to use, where there are several.
    pub const VERBS_DEVICE: &str = "VMPI_VERBS_DEVICE";
}

/// How a process ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Exited(i32),
    Signaled(i32),
}

impl Ended {
    /// The shell's number: the code, or 128 + signal.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exited(code) => code,
            Ended::Signaled(signal) => 128 + signal,
        }
    }
}

/// Why a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Cause {
    /// All ranks ended with code 0.
    Success,
    /// A rank ended with a non-zero code or by a signal, or without MPI_Finalize; the first one.
    RankFailed { rank: u32, pid: i32, ended: Ended, finalized: bool, initialized: bool },
    /// A rank's MPI process ended without MPI_Finalize, and the one that had started it (`parent`, a script) went on.
    Unfinished { rank: u32, pid: i32, parent: i32 },
    /// MPI_Abort, or a fatal MPI error.
    Aborted { rank: u32, pid: i32, code: i32, reason: String },
    /// The same with `--enable-recovery`: the `ranks` ranks of a communicator were ended, and the others were not.
    GroupAborted { rank: u32, pid: i32, code: i32, reason: String, ranks: u32 },
    /// The launcher asked for it (Ctrl-C, TERM, timeout).
    Cancelled { reason: String, code: i32 },
    /// The launcher's connection broke.
    LauncherDied,
    /// The daemon is shutting down.
    Shutdown,
    /// The daemon could not go on with this job.
    Internal { reason: String },
}

/// A rank that was spawned by MPI_Comm_spawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewRank {
    /// Number in the job; that of a rank that has ended may be used again.
    pub rank: u32,
    pub pid: i32,
    /// Which world (`World::number`), and the rank there.
    pub world: u32,
    pub world_rank: u32,
    pub program: String,
    /// In a job of several nodes: the name of its node, and the number of its pair of streams among all that the job ever had.
    #[serde(default)]
    pub node: Option<String>,
    #[serde(default)]
    pub stream: u32,
}

/// What the daemon has noted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Seconds since 1970.
    pub at_s: f64,
    /// Which job it is about, if one.
    pub job: Option<u32>,
    pub text: String,
}

/// A rank that waits by looking at memory again and again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpinningRank {
    pub rank: u32,
    pub pid: i32,
}

/// One rank's end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RankEnd {
    pub rank: u32,
    pub pid: i32,
    pub ended: Ended,
    /// MPI_Init was called.
    pub initialized: bool,
    pub finalized: bool,
    /// Process-POV clock at the end, seconds; 0 if MPI was never initialized.
    pub rtime_s: f64,
    pub switches: u64,
    /// What is known of a SIGKILL that vmpi has not sent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why_killed: String,
}

/// What is asked about the recording of a job.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceAsk {
    Start,
    Stop,
    Export,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Request {
    Hello {
        version: String,
        protocol: u32,
    },
    /// A launcher submits a job; `Fds` frames follow until `spec.fds` descriptors have arrived.
    Submit {
        spec: Box<JobSpec>,
    },
    Fds {
        count: u32,
    },
    /// The launcher ends its job: `signal` to all ranks (TERM first, KILL after `grace_ms`).
    Cancel {
        reason: String,
        code: i32,
        signal: i32,
        grace_ms: u64,
    },
    /// The launcher passes a signal on to all ranks (USR1, TSTP, CONT ...).
    Forward {
        signal: i32,
    },
    /// A rank in MPI_Init. Answer: `Attached` with four descriptors (node segment, job segment, bell, pids), and in a job of several nodes
    /// those of the carrier's bell.
    Attach {
        job: u32,
        rank: u32,
        /// As in the environment (`env::JOB`).
        word: String,
        face: String,
    },
    /// A rank whose use of MPI is checked wants to compare its collective calls with those of the others here. Answer: `CheckBoard` with its descriptor.
    CheckBoard,
    /// It has found this. No answer.
    Found {
        finding: Box<Finding>,
    },
    /// A rank has returned from MPI_Finalize.
    Finalized,
    /// What the daemon has noted lately, about a job or at all. Answer: `Logs`.
    Logs {
        job: Option<u32>,
    },
    /// A rank asks for something that concerns dynamic processes, or another rank's descriptor. Answer: `Answer` with the same number.
    Ask {
        number: u64,
        ask: Ask,
    },
    /// A rank ends the job, or with fault tolerance only `group`, which it belongs to. No answer: the rank is killed.
    Abort {
        code: i32,
        reason: String,
        #[serde(default)]
        group: Option<Ranks>,
    },
    /// The launcher of a job of several nodes: a rank of another node has ended `group`, for `cause`.
    EndGroup {
        group: Ranks,
        cause: Cause,
        code: i32,
    },
    /// The launcher of a job of several nodes: where each node's carrier listens. Answer: `Started`, when all are connected.
    Wire {
        table: Vec<Vec<SocketAddr>>,
    },
    /// The launcher has looked at these ranks, which had told of their end (`Reply::Dying`): they may go on to it.
    Heard {
        ranks: Vec<u32>,
    },
    /// The launcher of a job of several nodes answers what `Asked` has told it.
    Answered {
        rank: u32,
        number: u64,
        answer: Answer,
    },
    /// The launcher of a job of several nodes starts world `world`: the next step. Answer: `Grew` to the first two.
    Grow {
        world: u32,
        step: Step,
    },
    /// The launcher of a job of several nodes: all of them are `Idle`, and nobody spawns any more.
    Conclude,
    /// The carrier of a job, which is known by its pid. Answer: `Carrying` with six descriptors (node segment, job segment, pids, and three of its bell).
    Carry {
        job: u32,
    },
    /// The carrier listens on this port.
    Listening {
        port: u16,
    },
    /// The carrier is connected to those of all nodes: by what, in words.
    Wired {
        by: String,
    },
    /// The carrier knows the ranks of this world.
    Enrolled {
        world: u32,
        error: Option<String>,
    },
    /// The carrier cannot go on.
    Lost {
        reason: String,
    },
    /// The carrier has taken everything to the other nodes.
    Drained,
    /// Tools.
    Jobs,
    Show {
        job: u32,
    },
    /// Who waits for whom. Of a job of several nodes all are asked, unless only what is known `here` is wanted.
    Why {
        job: u32,
        here: bool,
    },
    /// The launcher of a job of several nodes asks what this node's ranks wait for. Answer: `WaitsPart` with the same number.
    WaitsPart {
        number: u64,
    },
    /// What has gone from whom to whom. `on`: begin or stop counting first.
    Matrix {
        job: u32,
        on: Option<bool>,
    },
    /// Record what ranks do and when, or hand it over. Answer: `Done`, or `Trace` with a descriptor of the job segment; of a job of several
    /// nodes `Traced` with one of the file, in the form that `path` ends with.
    Trace {
        job: u32,
        ask: TraceAsk,
        path: String,
    },
    /// The launcher of a job of several nodes asks this node's part of that. Answer: `TracePart` with the same number.
    TracePart {
        number: u64,
        ask: TraceAsk,
    },
    /// It answers tool `tool`; with the file, if there is one, that comes along.
    ToolTold {
        tool: u64,
        reply: Box<Reply>,
        files: u32,
    },
    /// A signal to all ranks, or to one of them. Answer: `Done`.
    Signal {
        job: u32,
        rank: Option<u32>,
        signal: i32,
    },
    /// End a job as its launcher would. Answer: `Done`.
    Kill {
        job: u32,
    },
    Shutdown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Reply {
    Hello {
        version: String,
        protocol: u32,
        pid: i32,
    },
    /// Nothing was done; `code` is the exit code that fits (2, 125, 126, 127).
    Refused {
        reason: String,
        code: i32,
    },
    Submitted {
        job: u32,
    },
    /// All ranks have been spawned.
    Started {
        pids: Vec<i32>,
    },
    /// Ranks have been spawned by others. With `Stdio::PerRank` the read ends of stdout and stderr of each come along.
    Grown {
        ranks: Vec<NewRank>,
    },
    Ended {
        rank: RankEnd,
    },
    Logs {
        lines: Vec<LogLine>,
    },
    /// In a job of several nodes: a rank here has ended `group`, for `cause`; its ranks elsewhere are still to be told.
    GroupEnded {
        group: Ranks,
        cause: Cause,
        code: i32,
    },
    /// The job is over and every process of it is gone, but what ranks have left running after a good end (`JobReport::helpers`).
    Finished {
        cause: Cause,
        code: i32,
        report: Box<JobReport>,
        /// If transfers have been counted.
        #[serde(default)]
        matrix: Option<Box<Matrix>>,
        /// If what ranks did was recorded; the descriptor of the job segment comes along.
        #[serde(default)]
        trace: Option<Box<TraceMap>>,
    },
    Attached {
        job: u32,
        rank: u32,
        ranks: u32,
        appnum: u32,
        world: World,
        /// MPI_UNIVERSE_SIZE.
        universe: u32,
        /// In a job of several nodes.
        #[serde(default)]
        nodes: Option<NodeMap>,
    },
    /// To a process that wants to be a rank, but has been started by that rank's MPI process `of`, which goes on: it is a program of its own.
    Apart {
        of: i32,
    },
    /// The descriptor comes along.
    CheckBoard,
    /// This node's part of a job of several nodes can be reached at this port.
    Listening {
        port: u16,
        /// Room for so many ranks in its segments.
        capacity: u32,
    },
    Carrying {
        nodes: Box<Nodes>,
    },
    /// To the launcher of a job of several nodes: a rank asks what only who sees them all can answer. Answer: `Answered`, now or later.
    Asked {
        rank: u32,
        number: u64,
        ask: Ask,
        /// For communicators that may come of it.
        contexts: NewContexts,
    },
    /// To the launcher of a job of several nodes: this node's part of a spawn has been done, or not (`error`).
    Grew {
        world: u32,
        stage: Stage,
        error: Option<String>,
    },
    /// Likewise: a spawned rank of this node is gone, and its number may be given to another one here.
    Vacant {
        rank: u32,
    },
    /// Likewise: no rank of this node lives, and the last world that it has heard of is this one.
    Idle {
        world: u32,
    },
    /// To the carrier: ranks of this world will be there. Answer: `Enrolled`.
    Enrol {
        world: u32,
        births: Vec<Birth>,
    },
    /// To the carrier: connect to the others.
    Wire {
        table: Vec<Vec<SocketAddr>>,
    },
    /// To the carrier: no rank of this node sends any more; take the rest to the others.
    Drain,
    /// To the carrier: the job ends here, and why is told elsewhere.
    Quit,
    Answer {
        number: u64,
        answer: Answer,
    },
    Jobs {
        jobs: Vec<JobReport>,
    },
    Why {
        waits: Box<JobWaits>,
    },
    Matrix {
        matrix: Box<Matrix>,
    },
    Trace {
        map: Box<TraceMap>,
    },
    /// To the launcher of a job of several nodes: a tool of this node asks for all of them. Answer: `ToolTold`.
    TraceAsked {
        tool: u64,
        ask: TraceAsk,
        path: String,
    },
    /// Likewise: this node's part, and whether it records now. With `map` the descriptor of the job segment comes along.
    TracePart {
        number: u64,
        on: bool,
        refused: Option<String>,
        map: Option<Box<TraceMap>>,
    },
    /// All nodes' recordings have been written; the file comes along.
    Traced {
        gaps: Option<String>,
        events: u64,
        dropped: u64,
        length_s: f64,
    },
    Done,
    /// To the launcher of a job of several nodes: no rank of this node can go on by itself.
    Still {
        still: Still,
    },
    /// Likewise: a tool of this node asks who waits for whom. Answer: `ToolTold`.
    WhyAsked {
        tool: u64,
    },
    /// Likewise: what the ranks of this node wait for, and whether it has long been so.
    WaitsPart {
        number: u64,
        still: Option<Still>,
        waits: Box<JobWaits>,
    },
    /// To the launcher on the rank's node: a rank is about to end badly, and waits to be looked at. Answer: `Heard`.
    Dying {
        dying: Dying,
    },
    /// To the launcher of a job of several nodes: what has been seen then.
    Crashed {
        crash: Box<Crash>,
    },
    /// To the launcher: all ranks wait for each other.
    Deadlock {
        waits: Box<JobWaits>,
    },
    /// To the launcher: nothing has come about in this job for so long (`JobSpec::hang_s`).
    Hang {
        waits: Box<JobWaits>,
        seconds: u64,
    },
    /// To the launcher, once: `threads` threads of a rank want to run on `cpus` CPUs, while these CPUs of the job are `idle`.
    Crowded {
        rank: u32,
        threads: u32,
        cpus: u32,
        idle: Vec<u32>,
    },
    /// To the launcher: for so long nothing of this simulated job has run but these ranks, and they spin on memory outside MPI.
    HeldUp {
        ranks: Vec<SpinningRank>,
        seconds: u64,
    },
    Show {
        job: Box<JobReport>,
    },
    ShuttingDown,
}
