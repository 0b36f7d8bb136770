//! vmpictl's command line.

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};

/// Show what the vmpi daemons of this node are doing.
#[derive(Debug, Parser)]
#[command(name = "vmpictl", version, propagate_version = true)]
pub struct CtlArgs {
    #[command(subcommand)]
    pub command: CtlCommand,
}

#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// List jobs, or with --ranks their ranks.
    Ps {
        /// One line per rank.
        #[arg(long)]
        ranks: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Show one job, or one rank of it: `show 1`, `show 1/3`, `show 4711:1` (job 1 of the daemon with pid 4711).
    Show {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK; the only job may be left out.
        job: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Explain who waits for whom: circles, who is missing in a collective, messages that nobody asks for.
    Why {
        /// JOB or DAEMON:JOB; the only job may be left out.
        job: Option<String>,
        /// A graph for Graphviz instead of sentences.
        #[arg(long, conflicts_with = "json")]
        dot: bool,
        #[command(flatten)]
        format: Format,
    },
    /// What has gone from rank to rank: messages, bytes and sizes, for point-to-point, collectives after decomposition, and one-sided.
    Matrix {
        /// JOB or DAEMON:JOB; the only job may be left out.
        job: Option<String>,
        /// Begin to count.
        #[arg(long, conflicts_with = "off")]
        on: bool,
        /// Stop counting; what has been counted stays.
        #[arg(long)]
        off: bool,
        /// A line per kind and pair, with a histogram of sizes.
        #[arg(long, conflicts_with_all = ["svg", "png", "json"])]
        csv: bool,
        /// A heat map.
        #[arg(long, conflicts_with_all = ["png", "json"])]
        svg: bool,
        /// A heat map in pixels.
        #[arg(long, conflicts_with = "json")]
        png: bool,
        /// Where the ranks would better sit; JOB may also be a file of `vmpirun --matrix FILE.json`.
        #[arg(long, conflicts_with_all = ["csv", "svg", "png", "json"])]
        place: bool,
        /// Write to this file instead of standard output.
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Record what cores and ranks do, and when: `trace 1 start`, `trace 1 stop`, `trace 1 export FILE`;
    /// in a job of several nodes on all of them.
    Trace {
        /// JOB or DAEMON:JOB.
        job: String,
        #[command(subcommand)]
        what: TraceCommand,
    },
    /// Stop all ranks of a job, or one (SIGSTOP).
    Suspend {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        #[command(flatten)]
        format: Format,
    },
    /// Let what `suspend` has stopped go on (SIGCONT).
    Resume {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        #[command(flatten)]
        format: Format,
    },
    /// End a job (SIGTERM, then SIGKILL); its vmpirun exits with 143. One rank: send it SIGTERM.
    Kill {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        #[command(flatten)]
        format: Format,
    },
    /// Set the nice value of a job's ranks, or of one rank, with all their threads.
    Prio {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        /// From -20 (most urgent; needs privileges) to 19.
        #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-20..=19))]
        nice: i32,
        #[command(flatten)]
        format: Format,
    },
    /// Watch cores and ranks as they run; q ends it.
    Top {
        /// Print one look as plain text (also done where standard output is no terminal).
        #[arg(long)]
        once: bool,
        /// Seconds between two looks.
        #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
        interval: f64,
        /// Put the ranks in the order of this column.
        #[arg(long, value_name = "COLUMN")]
        sort: Option<String>,
        /// Only ranks whose row has all of these words.
        #[arg(long, value_name = "WORDS")]
        filter: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Look whether this machine (and PROGRAM) lets vmpi do its best; exit code 1 if something does not work.
    Doctor {
        /// A program whose MPI is looked up.
        #[arg(value_hint = ValueHint::CommandName)]
        program: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Print figures of all jobs for Prometheus.
    Metrics {
        /// Also figures of each rank, with the label `rank`.
        #[arg(long)]
        per_rank: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Print the call stacks of a job's ranks, equal ones once; each rank is stopped for about a millisecond.
    Stacks {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK; the only job may be left out.
        job: Option<String>,
        /// All threads, not only the first one of each rank.
        #[arg(long)]
        threads: bool,
        /// Each rank by itself, with the frames of vmpi and of what starts a program.
        #[arg(long)]
        all_frames: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Put two runs side by side, the largest differences first: A and B are what `vmpirun --json` or `vmpictl show --json` printed (a program's
    /// output may stand before it), traces (FILE.pftrace), or matrices (FILE.json).
    Compare {
        #[arg(value_hint = ValueHint::FilePath)]
        a: String,
        #[arg(value_hint = ValueHint::FilePath)]
        b: String,
        #[command(flatten)]
        format: Format,
    },
    /// Look at descriptions of machines that `vmpirun --simulate` runs a program on.
    Machine {
        #[command(subcommand)]
        what: MachineCommand,
    },
    /// Print what the daemons of this node have noted lately, or only what is about one job, which may be over.
    Logs {
        /// JOB or DAEMON:JOB.
        job: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Print the versions of vmpictl and of the daemons that run.
    Version {
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Begin to record; what was recorded before is forgotten.
    Start {
        #[command(flatten)]
        format: Format,
    },
    /// Stop recording; what was recorded stays until the job ends.
    Stop {
        #[command(flatten)]
        format: Format,
    },
    /// Write what has been recorded so far; FILE's ending says how: .svg, .png, .html, .otf2, or .pftrace and kin for ui.perfetto.dev.
    Export {
        #[arg(value_hint = ValueHint::FilePath)]
        file: String,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Subcommand)]
pub enum MachineCommand {
    /// Explain a machine in words, and say what messages take on it; or say what is wrong with its file, with the line.
    Check {
        /// A file (TOML, or a platform of SimGrid in XML), or the name of a built-in machine.
        #[arg(value_hint = ValueHint::FilePath)]
        machine: String,
        #[command(flatten)]
        format: Format,
    },
    /// Measure what messages take here, by two ranks that play ping-pong, and print a file that says so; needs a C compiler. With flags of vmpirun that
    /// name two hosts (`-- --host a,b -ppn 1`), between those, too.
    Measure {
        /// Write to this file instead of standard output.
        #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<String>,
        /// Flags of vmpirun, behind `--`.
        #[arg(last = true)]
        flags: Vec<String>,
    },
    /// Name the built-in machines.
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Print the file of a built-in machine, to begin one of your own with.
    Print {
        /// As `vmpictl machine list` names it.
        name: String,
    },
}

#[derive(Copy, Clone, Debug, Args)]
pub struct Format {
    /// JSON with schema_version and raw units.
    #[arg(long)]
    pub json: bool,
}

/// The clap command, for the man page and completions.
pub fn vmpictl_command() -> clap::Command {
    CtlArgs::command()
}
