//! Kills at any moment: one process of a job ends by kill -9, on one node or of two. Nobody survives, nothing is left, and the exit code names the cause.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Vmpirun};
use vmpi_tests::leftovers::Process;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;

const KINDS: [&str; 7] = ["small", "large", "collective", "onesided", "files", "spawn", "compute"];
/// As the kernel cuts it.
const PROGRAM: &str = "works.c.openmpi";

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Victim {
    Rank,
    Daemon,
    /// The process that watches the daemon.
    Keeper,
    Launcher,
    /// vmpirun on the second node.
    Agent,
}

impl Victim {
    /// Those of this job, right now.
    fn of(self, job: &Job) -> Vec<i32> {
        let all = job.processes();
        let parent_of = |pid: i32| all.iter().find(|other| other.pid == pid);
        let is = |process: &Process, name: &str| process.name == name;
        // Carriers and ranks that are just being made look like their daemons, but for their parents.
        let daemons =
            |process: &&Process| is(process, "vmpid") && parent_of(process.parent).is_some_and(|p| is(p, "vmpid"));
        let is_daemon = |process: &&Process| {
            daemons(process)
                && parent_of(process.parent).and_then(|p| parent_of(p.parent)).is_none_or(|p| !is(p, "vmpid"))
        };
        let chosen: Vec<&Process> = match self {
            Victim::Rank => all.iter().filter(|process| is(process, PROGRAM)).collect(),
            Victim::Daemon => all.iter().filter(is_daemon).collect(),
            Victim::Keeper => {
                let keepers: Vec<i32> = all.iter().filter(is_daemon).map(|process| process.parent).collect();
                all.iter().filter(|process| keepers.contains(&process.pid)).collect()
            }
            Victim::Launcher => return vec![job.pid()],
            Victim::Agent => all.iter().filter(|process| is(process, "vmpirun") && process.pid != job.pid()).collect(),
        };
        chosen.into_iter().map(|process| process.pid).collect()
    }

    fn code(self) -> i32 {
        match self {
            Victim::Rank | Victim::Launcher => 128 + 9,
            Victim::Daemon | Victim::Keeper | Victim::Agent => 125,
        }
    }
}

fn works() -> PathBuf {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("works.c", Mpi::Openmpi);
    drop(turn);
    binary
}

/// One job and one kill, all drawn from the seed.
///
/// # Panics
/// If anything is not as it is to be.
fn one(seed: u64, (run, program): (Vmpirun, &Path), kinds: &[&str], victims: &[Victim]) {
    let mut chance = fastrand::Rng::with_seed(seed);
    let (kind, victim) = (kinds[chance.usize(..kinds.len())], victims[chance.usize(..victims.len())]);
    let delay = Duration::from_millis(chance.u64(..1500));
    let told = format!("seed {seed}: {victim:?} in {kind} after {delay:?}");
    let job = run.args(["-n", "6", "-V", "3"]).arg(program).args([kind, "60"]).start();
    std::thread::sleep(delay);
    let deadline = Instant::now() + Duration::from_secs(20);
    let pid = loop {
        let found = victim.of(&job);
        // Between the look and the kill a spawned one may end by itself.
        if let Some(pid) = found.get(chance.usize(..found.len().max(1)))
            && kill(Pid::from_raw(*pid), Signal::SIGKILL).is_ok()
        {
            break *pid;
        }
        assert!(Instant::now() < deadline, "{told}: there is none; {:?}", job.processes());
        std::thread::sleep(Duration::from_millis(5));
    };
    let outcome = job.finish();
    assert_eq!(outcome.code, victim.code(), "{told}, pid {pid}: {outcome:?}");
    assert!(!outcome.stdout.contains("wrong"), "{told}: {outcome:?}");
    let named = outcome.stderr.contains(&pid.to_string());
    assert!(victim != Victim::Rank || named, "{told}: the message names pid {pid}: {outcome:?}");
}

/// What failed, of so many; each is told of as it fails.
fn many(count: u64, one: impl Fn(u64)) {
    let first = std::env::var("VMPI_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let failed = (first..first + count).filter(|seed| catch_unwind(AssertUnwindSafe(|| one(*seed))).is_err());
    let failed: Vec<u64> = failed.collect();
    println!("{count} kills, {} not as they are to be: seeds {failed:?}", failed.len());
    assert!(failed.is_empty(), "{} of {count} kills: seeds {failed:?}", failed.len());
}

fn count(usual: u64) -> u64 {
    std::env::var("VMPI_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A neighbour's copy that finds the dead rank's process gone is not the cause.
#[test]
fn a_rank_during_large_messages_is_named() {
    let works = works();
    many(12, |seed| one(seed, (Vmpirun::new("kills"), &works), &["large", "onesided"], &[Victim::Rank]));
}

#[test]
#[ignore = "second tier"]
fn at_any_moment() {
    let victims = [Victim::Rank, Victim::Rank, Victim::Rank, Victim::Daemon, Victim::Keeper, Victim::Launcher];
    let works = works();
    many(count(700), |seed| one(seed, (Vmpirun::new("kills"), &works), &KINDS, &victims));
}

#[test]
#[ignore = "second tier"]
fn at_any_moment_of_two_nodes() {
    let (works, nodes) = (works(), Nodes::new("kills"));
    let victims = [Victim::Rank, Victim::Rank, Victim::Rank, Victim::Daemon, Victim::Launcher, Victim::Agent];
    many(count(300), |seed| one(seed, (nodes.vmpirun("kills"), &works), &KINDS, &victims));
}
