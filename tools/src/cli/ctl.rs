//! vmpictl's command line.

use clap::{Args, CommandFactory, Parser, Subcommand};

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
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        #[command(flatten)]
        format: Format,
    },
    /// Explain who waits for whom: circles, who is missing in a collective, messages that nobody asks for.
    Why {
        /// JOB or DAEMON:JOB.
        job: String,
        /// A graph for Graphviz instead of sentences.
        #[arg(long, conflicts_with = "json")]
        dot: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Print the call stacks of a job's ranks; each is stopped for about a millisecond.
    Stacks {
        /// JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK.
        job: String,
        /// All threads, not only the first one of each rank.
        #[arg(long)]
        threads: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Print the versions of vmpictl and of the daemons that run.
    Version {
        #[command(flatten)]
        format: Format,
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
