//! `cargo xtask`: setup, build, demo, test, bench, paper, functions, install, dist, release.
//!
//! Each command is a module; [`shell`] runs programs and says which; [`place`] knows the directories.

mod bench;
mod build;
mod demo;
mod dist;
mod guest;
mod install;
#[cfg(any(test, feature = "manual"))]
mod manual;
mod mpich_suite;
mod needs;
mod paper;
mod place;
mod release;
mod setup;
mod shell;
mod statistics;
mod test;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What can go wrong is said in a sentence.
type Result<T> = std::result::Result<T, String>;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "vmpi's own commands")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what tests and benchmarks need: the real MPIs, LAMMPS, HPCC, a virtual environment, tools. Says what and how
    /// much before it does; leaves no service enabled; does nothing twice.
    Setup,
    /// Build everything and lay out target/release as an installation.
    Build,
    /// Run a program with one and with three ranks on each core, beside the MPIs that are here. Installs nothing.
    Demo {
        /// Time steps of LAMMPS.
        #[arg(long, default_value_t = 400)]
        steps: u32,
        /// Install Debian's LAMMPS, if it is not there, and show it, too.
        #[arg(long)]
        with_lammps: bool,
    },
    /// Format, lints, licences, unit tests, and the suites of real processes.
    Test {
        /// Leave out the suites of real processes.
        #[arg(long)]
        quick: bool,
        /// Run the suites of real processes this often in place of everything: what hangs or fails once in a while.
        #[arg(long, value_name = "TIMES", conflicts_with = "quick")]
        repeat: Option<u32>,
        /// 2: only the suites that take many minutes (they are no part of the first tier).
        #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2), default_value_t = 1, conflicts_with_all = ["quick", "repeat"])]
        tier: u8,
        /// Run only tests whose name contains this.
        filter: Option<String>,
    },
    /// vmpi beside the other MPIs and the physical floor, interleaved: tables, target/bench/EXPERIMENT.json, .md and .svg.
    Bench {
        #[arg(help = bench::help())]
        experiments: Vec<String>,
        /// How often the interleaved series is run; 1 is a trial, with short batches.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Numbers of ranks on two cores, in place of each experiment's own.
        #[arg(long, value_delimiter = ',')]
        ranks: Option<Vec<u32>>,
        /// Who is measured: quick, all, or names (an unknown name lists them).
        #[arg(long, default_value = "quick")]
        peers: String,
        /// Seconds after which a run is given up.
        #[arg(long, default_value_t = 60)]
        limit: u64,
        /// Take what is in target/release, without building.
        #[arg(long)]
        built: bool,
        /// Milliseconds that a batch of messages takes at least; 50, in a trial 10.
        #[arg(long)]
        batch: Option<u32>,
    },
    /// The tables and figures of the EuroMPI'20 paper, measured here: paper.md and paper/*.svg.
    Paper {
        /// None: all.
        parts: Vec<paper::Part>,
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// What each process of table 1 computes (the paper: 30 s).
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// The directory to write to (docs holds the one of the repository).
        #[arg(long, default_value = "target/bench")]
        into: PathBuf,
        /// Seconds after which a run is given up.
        #[arg(long, default_value_t = 120)]
        limit: u64,
        /// Take what is in target/release, without building.
        #[arg(long)]
        built: bool,
        /// Of overlap-blocking only the emulated network, three sizes and one computation, of virtual-time few ranks: minutes, not an hour.
        #[arg(long)]
        brief: bool,
    },
    /// Fetch the kernel in which tests of verbs run (a part of `test --tier 2`).
    #[command(hide = true)]
    Guest,
    /// Write docs/functions.md, the table of MPI's functions and what becomes of each, from the built libraries.
    Functions,
    /// Build, and copy programs, libraries, manual pages and completions below a prefix.
    Install {
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
    },
    /// Build once more, the same on every machine, and make packages: a wheel, a tarball, Debian packages, an RPM, recipes.
    Dist {
        /// The directory for the packages and SHA256SUMS.
        #[arg(long, default_value = "target/dist/out")]
        into: PathBuf,
        /// Package files that are no commit.
        #[arg(long)]
        allow_dirty: bool,
        /// Link for this glibc, as 2.28, by zig (`pip install cargo-zigbuild ziglang`); otherwise it is this machine's.
        #[arg(long, value_name = "VERSION")]
        glibc: Option<String>,
    },
    /// Check what must agree before a version is tagged, and say what its maintainer does then.
    Release,
    /// Write manual pages and completions (called by install).
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Manual { share: PathBuf },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Setup => setup::setup(),
        Command::Build => build::build(),
        Command::Demo { steps, with_lammps } => demo::demo(steps, with_lammps),
        Command::Test { repeat: Some(times), filter, .. } => test::repeat(times, filter.as_deref()),
        Command::Test { tier: 2, filter, .. } => test::second_tier(filter.as_deref()),
        Command::Test { quick, filter, .. } => test::test(quick, filter.as_deref()),
        Command::Bench { experiments, rounds, ranks, peers, limit, built, batch } => bench::bench(&bench::Options {
            experiments,
            rounds,
            ranks,
            peers,
            limit: Duration::from_secs(limit),
            batch_ms: batch,
            built,
        }),
        Command::Paper { parts, rounds, seconds, into, limit, built, brief } => paper::paper(&paper::Options {
            parts,
            rounds,
            seconds,
            into,
            limit: Duration::from_secs(limit),
            built,
            brief,
        }),
        Command::Guest => setup::second_tier(),
        Command::Functions => test::functions(),
        Command::Install { prefix } => install::install(&prefix),
        Command::Dist { into, allow_dirty, glibc } => dist::dist(&dist::Options { into, allow_dirty, glibc }),
        Command::Release => release::release(),
        #[cfg(feature = "manual")]
        Command::Manual { share } => manual::write(&share),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("xtask: {sentence}");
            ExitCode::FAILURE
        }
    }
}
