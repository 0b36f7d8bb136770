//! `cargo xtask`: setup, build, demo, test, bench, install.
//!
//! Each command is a module; [`shell`] runs programs and says which; [`place`] knows the directories.

mod bench;
mod build;
mod demo;
mod install;
#[cfg(feature = "manual")]
mod manual;
mod place;
mod setup;
mod shell;
mod statistics;
mod test;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Install what tests and benchmarks need: the real MPIs, LAMMPS, HPCC, a virtual environment, tools. Does nothing twice.
    Setup,
    /// Build everything and lay out target/release as an installation.
    Build,
    /// Run Debian's LAMMPS, unmodified, on three ranks per core, and show what vmpi did.
    Demo {
        /// Time steps of the simulation.
        #[arg(long, default_value_t = 400)]
        steps: u32,
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
    /// Ring, barrier and allreduce beside Open MPI, MPICH and the floor; a table and target/bench/bench.json.
    Bench {
        /// How often the interleaved series is run.
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Numbers of ranks on two cores.
        #[arg(long, value_delimiter = ',', default_values_t = [2, 4, 8, 16])]
        ranks: Vec<u32>,
    },
    /// Build, and copy programs, libraries, manual pages and completions below a prefix.
    Install {
        #[arg(long, default_value = "/usr/local")]
        prefix: PathBuf,
    },
    /// Write manual pages and completions (called by install).
    #[cfg(feature = "manual")]
    #[command(hide = true)]
    Manual { share: PathBuf },
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Setup => setup::setup(),
        Command::Build => build::build(),
        Command::Demo { steps } => demo::demo(steps),
        Command::Test { repeat: Some(times), filter, .. } => test::repeat(times, filter.as_deref()),
        Command::Test { tier: 2, filter, .. } => test::second_tier(filter.as_deref()),
        Command::Test { quick, filter, .. } => test::test(quick, filter.as_deref()),
        Command::Bench { rounds, ranks } => bench::bench(rounds, &ranks),
        Command::Install { prefix } => install::install(&prefix),
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
