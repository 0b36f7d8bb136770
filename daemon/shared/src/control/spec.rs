//! A job as its launcher submits it, and the part of a node in one of several.

use crate::crash::OnCrash;
use crate::escape::Names;
use crate::simulate::Compute;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One program of an MPMD job.
#[derive(Clone, Serialize, Deserialize)]
pub struct App {
    /// Absolute path of the file to execute.
    pub program: String,
    /// `argv`, `argv[0]` included.
    pub argv: Vec<String>,
    /// The whole environment, except what the daemon adds per rank.
    pub env: Vec<(String, String)>,
    pub cwd: String,
    /// Number of ranks.
    pub ranks: u32,
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let App { program, argv, env, cwd, ranks } = self;
        let mut told = f.debug_struct("App");
        told.field("program", program).field("argv", argv).field("env", &Names(env));
        told.field("cwd", cwd).field("ranks", ranks).finish()
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// Round robin in rank order.
    Rr,
    /// Whoever has been READY longest.
    Fifo,
    /// Whoever has become READY last.
    Lifo,
    /// Whom most suspended ranks wait for.
    Priority,
    /// Whom the rank that gives the core up has made READY last: the receiver of its message.
    Follow,
    /// Whom a generator that each rank has draws (`vmpirun --chaos`): not for users to name.
    Drawn,
}

impl Policy {
    /// All of them, by the names that users know.
    pub const NAMES: [(&'static str, Policy); 5] = [
        ("rr", Policy::Rr),
        ("fifo", Policy::Fifo),
        ("lifo", Policy::Lifo),
        ("priority", Policy::Priority),
        ("follow", Policy::Follow),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, policy)| *policy == self).map_or("", |(name, _)| name)
    }
}

/// Whether ranks move from core to core of their node.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// Each rank stays where it was placed.
    #[default]
    None,
    /// An idle core takes over READY ranks of a busy one.
    Steal,
    /// Measured load moves ranks for good.
    Refine,
    /// As `Steal`, but only a rank that starves behind one that computes.
    Rescue,
}

impl Balance {
    /// All of them, by the names that users know.
    pub const NAMES: [(&'static str, Balance); 4] =
        [("none", Balance::None), ("rescue", Balance::Rescue), ("steal", Balance::Steal), ("refine", Balance::Refine)];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, balance)| *balance == self).map_or("", |(name, _)| name)
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnBlock {
    /// A rank asleep in the kernel outside MPI gives up its core.
    Release,
    Keep,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wtime {
    Wall,
    Rank,
}

/// How the ranks' standard streams are connected; the descriptors follow in `Fds` frames, in this order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdio {
    /// The standard inputs (`JobSpec::stdin_count`; ranks without one get /dev/null), then stdout and stderr, shared by all ranks.
    Shared,
    /// The standard inputs, then stdout and stderr of each rank (of this node).
    PerRank,
}

/// The machine that a job is simulated on (`vmpirun --simulate`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulation {
    /// The name of a built-in one, or the absolute path of a file.
    pub machine: String,
    pub compute: Compute,
    /// What is other than the machine's file says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Collectives go message by message; else the engine plays those that it can.
    #[serde(default)]
    pub by_messages: bool,
}

/// What to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    pub apps: Vec<App>,
    /// Total number of ranks.
    pub ranks: u32,
    /// V, as chosen or asked for: the largest number of ranks on one core.
    pub v: u32,
    /// CPU numbers given to the job.
    pub cpus: Vec<u32>,
    /// CPUs that none of the ranks is placed on, for ranks that they spawn.
    #[serde(default)]
    pub spare_cpus: Vec<u32>,
    /// Where a core is a place of several CPUs: for each of all cores the further ones, beside that of `cpus` or `spare_cpus`. Empty: one CPU each.
    #[serde(default)]
    pub beside: Vec<Vec<u32>>,
    /// Where ranks may run on more CPUs than those of their core (`--bind-to socket`): for each of all cores all of these. Empty: `bind` decides.
    #[serde(default)]
    pub masks: Vec<Vec<u32>>,
    /// For each rank the index in `cpus`.
    pub placement: Vec<u32>,
    /// Pin each rank to its core's CPU.
    pub bind: bool,
    pub policy: Policy,
    #[serde(default)]
    pub balance: Balance,
    /// A rank that reaches no scheduling point for so long, while others are READY, loses its core; 0: never.
    pub quantum_ms: u64,
    pub on_block: OnBlock,
    pub wtime: Wtime,
    pub stdio: Stdio,
    /// The ranks that have a standard input, in order, each its own; none named: rank 0.
    #[serde(default)]
    pub stdin: Vec<u32>,
    /// Number of descriptors that follow in `Fds` frames.
    pub fds: u32,
    /// Ranks that are stopped (SIGSTOP) as soon as their program has been loaded, for a debugger.
    #[serde(default)]
    pub stop: Vec<u32>,
    /// Lines like "rank 3 failed" end the job at once (default); false: the other ranks go on (`--no-kill`-like modes).
    pub kill_on_failure: bool,
    /// Fault tolerance: a rank's death is an MPI error for the ranks that need it (and `kill_on_failure` is off).
    #[serde(default)]
    pub recovery: bool,
    /// The job lives in virtual time.
    #[serde(default)]
    pub simulation: Option<Simulation>,
    /// What is done about ranks that end badly.
    #[serde(default)]
    pub on_crash: OnCrash,
    /// A job in which nothing has come about for so many seconds is told of; 0: never.
    #[serde(default)]
    pub hang_s: u64,
    /// Each rank has its own random addresses (ASLR). Otherwise all have the same: a processor's branch predictor goes by addresses, and
    /// serves all ranks of a core then.
    #[serde(default)]
    pub randomize: bool,
    /// Count what goes from rank to rank, from the start.
    #[serde(default)]
    pub monitor: bool,
    /// Record what the ranks do and when, from the start.
    #[serde(default)]
    pub trace: bool,
    /// Performance counters that the ranks count (`env::COUNTERS` tells them).
    #[serde(default)]
    pub counters: Vec<String>,
    /// MPI_UNIVERSE_SIZE, if the user has said it (0: the attribute is not set); else it follows from V and the cores.
    #[serde(default)]
    pub universe: Option<u32>,
    /// A job of several nodes, of which this is the part of one.
    #[serde(default)]
    pub nodes: Option<Box<Nodes>>,
}

impl JobSpec {
    /// These programs on one core that need not be there, nothing asked for, all sharing one standard output: what callers change from there.
    pub fn plain(apps: Vec<App>) -> JobSpec {
        let ranks = apps.iter().map(|app| app.ranks).sum();
        JobSpec {
            apps,
            ranks,
            v: ranks,
            cpus: vec![0],
            spare_cpus: vec![],
            beside: vec![],
            masks: vec![],
            placement: vec![0; ranks as usize],
            bind: false,
            policy: Policy::Rr,
            balance: Balance::None,
            quantum_ms: 5000,
            on_block: OnBlock::Release,
            wtime: Wtime::Wall,
            stdio: Stdio::Shared,
            stdin: vec![],
            fds: 3,
            stop: vec![],
            kill_on_failure: true,
            recovery: false,
            simulation: None,
            on_crash: OnCrash::default(),
            hang_s: 0,
            randomize: false,
            monitor: false,
            trace: false,
            counters: vec![],
            universe: None,
            nodes: None,
        }
    }
}

/// Which rank runs on which node: `JobSpec` counts all ranks of the job, and a daemon starts those of its own node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Nodes {
    /// This node.
    pub here: u32,
    pub names: Vec<String>,
    /// For each rank its node.
    pub of_rank: Vec<u32>,
    /// What the nodes' carriers prove to each other that they belong to the job (hexadecimal).
    pub key: String,
    /// A number that no other job has.
    pub identity: u64,
    /// `tcp`, `tcp,seal`, `verbs` or `verbs:DEVICE` (or the job ends), `auto` (verbs where they work), or `emulated:LATENCY_US:MB_PER_S`.
    pub fabric: String,
    /// Why that, if the launcher has chosen it.
    #[serde(default)]
    pub fabric_why: String,
    /// A large message moves only once its sender has come to a scheduling point (`--progress rank`).
    pub progress_by_rank: bool,
    /// MPI_UNIVERSE_SIZE, which counts the cores of all nodes.
    #[serde(default)]
    pub universe: u32,
    /// For the launcher: what each node's part has of its own. `JobSpec::placement` is an index in the CPUs of the rank's node.
    #[serde(default)]
    pub parts: Vec<NodePart>,
}

/// What differs from node to node in a job's specification.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodePart {
    pub cpus: Vec<u32>,
    /// Those that none of the ranks is placed on, for ranks that they spawn.
    #[serde(default)]
    pub spare_cpus: Vec<u32>,
    /// As `JobSpec::beside`.
    #[serde(default)]
    pub beside: Vec<Vec<u32>>,
    /// As `JobSpec::masks`.
    #[serde(default)]
    pub masks: Vec<Vec<u32>>,
    pub v: u32,
    pub bind: bool,
}

/// The nodes of a job, as its ranks learn them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeMap {
    /// A number that no other job has.
    pub identity: u64,
    pub names: Vec<String>,
    pub of_rank: Vec<u32>,
}

impl JobSpec {
    /// Does `rank` run on this node?
    pub fn is_local(&self, rank: u32) -> bool {
        self.nodes.as_ref().is_none_or(|nodes| nodes.of_rank.get(rank as usize) == Some(&nodes.here))
    }

    /// The ranks of this node, in order.
    pub fn local_ranks(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.ranks).filter(|rank| self.is_local(*rank))
    }

    /// The name of a rank's node, in a job of several.
    pub fn node_of(&self, rank: u32) -> Option<&str> {
        let nodes = self.nodes.as_ref()?;
        nodes.names.get(*nodes.of_rank.get(rank as usize)? as usize).map(String::as_str)
    }

    /// MPI_UNIVERSE_SIZE of the ranks that the launcher starts: what the user has said, else V ranks on each core, spare ones included,
    /// and no fewer than are started.
    pub fn universe_size(&self) -> u32 {
        let planned = self.nodes.as_ref().map(|nodes| nodes.universe).filter(|&universe| universe > 0);
        let here = || self.ranks.max(self.v.saturating_mul(self.all_cpus().count() as u32));
        self.universe.or(planned).unwrap_or_else(here)
    }

    /// The ranks of this node that have a standard input, in order.
    pub fn local_readers(&self) -> impl Iterator<Item = u32> + '_ {
        let readers = if self.stdin.is_empty() { &[0][..] } else { &self.stdin[..] };
        readers.iter().copied().filter(|rank| self.is_local(*rank))
    }

    /// Descriptors for standard input; one at least, which nobody may read.
    pub fn stdin_count(&self) -> usize {
        self.local_readers().count().max(1)
    }

    /// The CPUs of a core: the one that it goes by first.
    pub fn place(&self, core: usize) -> impl Iterator<Item = u32> + '_ {
        self.all_cpus().nth(core).into_iter().chain(self.beside.get(core).into_iter().flatten().copied())
    }

    /// The CPU that each core of the job goes by: those with ranks first.
    pub fn all_cpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.cpus.iter().chain(&self.spare_cpus).copied()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::dynamic::{SpawnApp, World};
    use crate::spawn_protocol::Growth;

    #[test]
    fn values_of_variables_are_not_shown() {
        let env = vec![("API_TOKEN".to_string(), "hunter2".to_string())];
        let (program, argv, cwd) = ("/bin/true".to_string(), vec!["true".to_string()], "/".to_string());
        let spawned = SpawnApp {
            candidates: vec![program.clone()],
            argv: argv.clone(),
            cwd: cwd.clone(),
            nodes: vec![],
            env: env.clone(),
            counts: vec![1],
        };
        let growth = Growth {
            world: World::default(),
            apps: vec![spawned.clone()],
            variables: env.clone(),
            births: vec![],
            first_stream: 0,
        };
        let app = App { program, argv, env, cwd, ranks: 1 };
        for shown in [format!("{app:?}"), format!("{spawned:?}"), format!("{growth:#?}")] {
            assert!(shown.contains("API_TOKEN") && !shown.contains("hunter2"), "{shown}");
        }
    }
}
