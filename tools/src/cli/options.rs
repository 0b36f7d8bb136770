//! What a vmpirun command line asks for, before anything is looked up.

use super::places::{BindTo, CpusPerRank, RankPlace, Resource};
use super::starter::Starter;
use crate::hosts::Host;
use crate::orders::Chaos;
use crate::simulate::ComputeTime;
use crate::sweep::Sweep;
use vmpi_shared::control::{Balance, Check, OnBlock, Overlap, Policy, Wtime};
use vmpi_shared::crash::OnCrash;

/// Ranks per core, as asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum VChoice {
    /// What earlier runs of the program speak for.
    Auto,
    Exactly(u32),
}

/// Which ranks share a core, and a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MapBy {
    /// Neighbours in rank order share a core.
    #[default]
    Block,
    /// Rank r goes to core r modulo the number of cores.
    RoundRobin,
    /// One rank to each node in turn.
    Node,
    /// Rank by rank round the sockets, NUMA nodes or caches.
    Each(Resource),
    /// Dealt out at random, by this seed.
    Random(u64),
    /// Those together that send each other much, by this file.
    Affinity(String),
}

/// How lines are marked with their rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Label {
    /// srun's `-l`: `03: line`.
    Srun,
    /// Hydra's `-prepend-rank`: `[3] line`.
    Hydra,
    /// Open MPI's `--tag-output`: `[1,3]<stdout>:line`.
    OpenMpi,
}

/// Where the ranks' output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputMode {
    /// Through vmpirun, a whole line at a time.
    #[default]
    Lines,
    /// The ranks write to vmpirun's own stdout and stderr.
    Raw,
    /// A directory with two files per rank.
    Directory(String),
}

/// Who reads vmpirun's standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StdinTo {
    All,
    /// In order; none: nobody.
    Ranks(Vec<u32>),
}

impl Default for StdinTo {
    fn default() -> StdinTo {
        StdinTo::Ranks(vec![0])
    }
}

/// MPI_UNIVERSE_SIZE, as Hydra's `-usize` says it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Universe {
    Exactly(u32),
    /// The attribute is not set.
    Unbounded,
}

/// What happens when all ranks wait for each other.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum OnDeadlock {
    /// Say so, once.
    #[default]
    Report,
    /// Say so and end the job.
    Abort,
    /// Let it be.
    Ignore,
}

/// How much `--report` says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// A verdict, and least, mean and most.
    Summary,
    /// Also each core and rank.
    Full,
}

/// Which variables of vmpirun's environment the ranks inherit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvMode {
    All,
    Nothing,
    Only(Vec<String>),
    Except(Vec<String>),
}

/// A variable given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvSetting {
    Set(String, String),
    /// Take it from vmpirun's environment; a trailing `*` takes all with this prefix.
    Copy(String),
}

/// A command that stands before the program of some ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub words: Vec<String>,
    /// None: of all.
    pub ranks: Option<Vec<u32>>,
}

/// The options of one program (MPMD: of one section between colons).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppOptions {
    pub ranks: Option<u32>,
    pub wdir: Option<String>,
    pub path: Option<String>,
    pub env_mode: Option<EnvMode>,
    pub env: Vec<EnvSetting>,
    /// Where this program's ranks go, of a job of several programs.
    pub hosts: Vec<Host>,
    /// MPI's `-soft`: numbers of ranks that will do, of which the largest up to `ranks` is taken.
    pub soft: Option<Vec<u32>>,
    pub program: String,
    pub args: Vec<String>,
}

/// The options of the whole job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    pub apps: Vec<AppOptions>,
    pub v: Option<VChoice>,
    pub cores: Option<Vec<u32>>,
    pub policy: Policy,
    /// `None`: what suits the job (`launch::prepare`).
    pub balance: Option<Balance>,
    /// Milliseconds; 0: never.
    pub quantum_ms: u64,
    pub on_block: OnBlock,
    pub wtime: Wtime,
    pub map_by: MapBy,
    pub bind: Option<bool>,
    /// What `bind` means, where more than yes or no was said.
    pub bind_to: Option<BindTo>,
    pub cpus_per_rank: Option<CpusPerRank>,
    /// Only so many CPUs (hyperthreads) of each physical core are used.
    pub threads_per_core: Option<u32>,
    /// So many ranks on each part of a node (`ppr:N:socket`); on each core is `v`, on each node `ranks_per_node`.
    pub ranks_per: Option<(u32, Resource)>,
    /// A rank file.
    pub rank_places: Vec<RankPlace>,
    pub report_bindings: bool,
    pub display_allocation: bool,
    pub env_mode: EnvMode,
    pub env: Vec<EnvSetting>,
    pub hostfiles: Vec<String>,
    pub hosts: Vec<Host>,
    pub ranks_per_node: Option<u32>,
    /// No more nodes than so many.
    pub nodes: Option<u32>,
    /// These get no ranks.
    pub exclude: Vec<String>,
    /// No ranks on this node, if there are others.
    pub no_local: bool,
    /// A command instead of ssh.
    pub launcher: Option<String>,
    /// More words for it, or for ssh.
    pub launcher_arguments: Option<String>,
    /// Whose way to start a process on a node, instead of that of the batch system.
    pub starter: Option<Starter>,
    /// Run vmpirun itself under this debugger.
    pub debugger: Option<String>,
    /// Commands that stand before the program of some ranks (Intel's `-gtool`).
    pub tools: Vec<Tool>,
    /// What carries messages between nodes.
    pub fabric: String,
    pub progress_by_rank: bool,
    /// `None`: as VMPI_OVERLAP of the environment says.
    pub overlap: Option<Overlap>,
    /// Is the program's use of MPI checked? `None`: as VMPI_CHECK of the environment says.
    pub check: Option<Check>,
    /// Where to write what is found.
    pub check_json: Option<String>,
    /// Nodes on which no rank starts stay, for ranks that are spawned.
    pub spare_nodes: bool,
    pub output: OutputMode,
    pub label: Option<Label>,
    pub timestamp: bool,
    pub merge_stderr: bool,
    pub outfile_pattern: Option<String>,
    pub errfile_pattern: Option<String>,
    pub stdin: StdinTo,
    /// `None`: what the cores or the slots hold.
    pub universe: Option<Universe>,
    pub timeout_s: Option<u64>,
    /// Seconds between TERM and KILL; `None`: as usual after what ends the job.
    pub kill_after_s: Option<u64>,
    pub kill_on_failure: bool,
    pub recovery: bool,
    pub on_deadlock: OnDeadlock,
    pub on_crash: OnCrash,
    /// Seconds; 0: never.
    pub on_hang_s: u64,
    pub randomize: bool,
    pub print_exit_codes: bool,
    pub report: Option<ReportForm>,
    /// `--pcontrol regions`: MPI_Pcontrol is given names.
    pub pcontrol_names: bool,
    /// Performance counters, with commas between them.
    pub counters: Option<String>,
    /// Where the matrix of all transfers goes.
    pub matrix: Option<String>,
    /// Where the trace of the run goes.
    pub trace: Option<String>,
    /// Where the page about the run goes.
    pub report_html: Option<String>,
    /// A directory for the matrix in several forms and a file per rank.
    pub profile: Option<String>,
    /// What MPI leaves open follows from a seed.
    pub chaos: Option<Chaos>,
    /// Where what is decided is written, and by what it is decided.
    pub record: Option<String>,
    pub replay: Option<String>,
    /// Run again with what else could have been decided, so often at most.
    pub explore: Option<u32>,
    /// What runs of `--chaos A..B` and `--explore` print is compared.
    pub compare_stdout: bool,
    /// The machine to simulate: a file or the name of a built-in one.
    pub simulate: Option<String>,
    /// What computation takes there.
    pub compute: Option<ComputeTime>,
    /// What of the machine is other than its file says.
    pub machine_changes: Vec<String>,
    /// The job is run once for each value.
    pub sweep: Option<Sweep>,
    pub sweep_picture: Option<String>,
    /// Collectives go message by message there.
    pub by_messages: Option<bool>,
    pub dry_run: bool,
    pub json: bool,
    pub verbose: bool,
    pub quiet: bool,
    /// Ranks to stop at their start for a debugger.
    pub gdb: Vec<u32>,
    pub configfiles: Vec<String>,
    /// The program is srun's file with the programs of the ranks.
    pub multi_prog: bool,
    /// Options as they were typed that have no effect here.
    pub ignored: Vec<String>,
    /// Things accepted that mean nothing here, each said once.
    pub notes: Vec<String>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            apps: Vec::new(),
            v: None,
            cores: None,
            policy: Policy::Rr,
            balance: None,
            quantum_ms: 5000,
            on_block: OnBlock::Release,
            wtime: Wtime::Wall,
            map_by: MapBy::Block,
            bind: None,
            bind_to: None,
            cpus_per_rank: None,
            threads_per_core: None,
            ranks_per: None,
            rank_places: Vec::new(),
            report_bindings: false,
            display_allocation: false,
            env_mode: EnvMode::All,
            env: Vec::new(),
            hostfiles: Vec::new(),
            hosts: Vec::new(),
            nodes: None,
            exclude: Vec::new(),
            no_local: false,
            launcher: None,
            launcher_arguments: None,
            starter: None,
            debugger: None,
            tools: Vec::new(),
            fabric: "auto".into(),
            progress_by_rank: false,
            overlap: None,
            check: None,
            check_json: None,
            spare_nodes: false,
            ranks_per_node: None,
            output: OutputMode::Lines,
            label: None,
            timestamp: false,
            merge_stderr: false,
            outfile_pattern: None,
            errfile_pattern: None,
            stdin: StdinTo::default(),
            universe: None,
            timeout_s: None,
            kill_after_s: None,
            kill_on_failure: true,
            recovery: false,
            on_deadlock: OnDeadlock::Report,
            on_crash: OnCrash::Stack,
            on_hang_s: 0,
            randomize: false,
            print_exit_codes: false,
            report: None,
            pcontrol_names: false,
            counters: None,
            matrix: None,
            trace: None,
            report_html: None,
            profile: None,
            chaos: None,
            record: None,
            replay: None,
            explore: None,
            compare_stdout: false,
            simulate: None,
            compute: None,
            machine_changes: Vec::new(),
            sweep: None,
            sweep_picture: None,
            by_messages: None,
            dry_run: false,
            json: false,
            verbose: false,
            quiet: false,
            gdb: Vec::new(),
            configfiles: Vec::new(),
            multi_prog: false,
            ignored: Vec::new(),
            notes: Vec::new(),
        }
    }
}
