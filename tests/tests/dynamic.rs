//! Dynamic processes: spawns that fail, and deaths in jobs that have grown. Whatever ends whenever, the whole job ends, nothing
//! is left, and the exit code and a sentence name the cause.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Vmpirun};
use vmpi_tests::place::Turn;

const STARTED: usize = 2;
const ALL: usize = 5;

fn job(name: &str, source: &str, mpi: Mpi, args: &[&str]) -> Vmpirun {
    let turn = Turn::take();
    let binary = program(source, mpi);
    drop(turn);
    // Where all compute, the last one begins after two turns.
    Vmpirun::new(name).args(["-n", &STARTED.to_string(), "--quantum", "100"]).arg(binary).args(args)
}

fn deaths(how: &str) -> Vmpirun {
    job(&format!("spawn-{how}"), "spawn_deaths.c", Mpi::Openmpi, &[how])
}

fn settled(job: &mut Job, processes: usize) -> Vec<i32> {
    let pids = job.ready(processes);
    std::thread::sleep(Duration::from_millis(100));
    pids
}

fn end(pid: i32) {
    assert!(pid > 1, "pid {pid}");
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("the victim is alive");
}

/// What the standard says where the real MPIs end the job; the program checks itself.
#[test]
fn failed_spawns_leave_the_parent_alive() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        let outcome = job("spawn-errors", "spawn_errors.c", mpi, &[]).run();
        assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{mpi:?}: {outcome:?}");
    }
}

/// With more ranks than in the conformance suite, where Open MPI 4 hangs; the program checks itself.
#[test]
fn groups_meet_at_ports() {
    for (mpi, ranks) in [(Mpi::Openmpi, "3"), (Mpi::Mpich, "5"), (Mpi::Standard, "4")] {
        let turn = Turn::take();
        let binary = program("spawn_ports.c", mpi);
        drop(turn);
        let outcome = Vmpirun::new("ports").args(["-n", ranks]).arg(binary).run();
        assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{mpi:?}: {outcome:?}");
    }
}

fn killed(state: &str, victim: usize, words: &[&str]) {
    let mut job = deaths(state).start();
    let pids = settled(&mut job, ALL);
    end(pids[victim]);
    let outcome = job.finish();
    assert_eq!(outcome.code, 128 + 9, "{outcome:?}");
    for word in words.iter().map(|word| word.to_string()).chain([pids[victim].to_string()]) {
        assert!(outcome.stderr.contains(&word), "no {word:?} in {}", outcome.stderr);
    }
}

fn daemon_killed(state: &str) {
    let mut job = deaths(state).start();
    settled(&mut job, ALL);
    let (daemon, _) = job.daemon_pids();
    end(daemon);
    assert_eq!(job.finish().code, 125);
}

fn launcher_killed(state: &str) {
    let mut job = deaths(state).start();
    settled(&mut job, ALL);
    end(job.pid());
    assert_eq!(job.finish().code, 128 + 9);
}

macro_rules! in_every_state {
    ($($state:ident)*) => { $( mod $state {
        #[test]
        fn child() { super::killed(stringify!($state), 3, &["spawned rank 3", "rank 1 of world 2", "spawn_deaths"]); }
        #[test]
        fn parent() { super::killed(stringify!($state), 0, &["rank 0 "]); }
        #[test]
        fn daemon() { super::daemon_killed(stringify!($state)); }
        #[test]
        fn launcher() { super::launcher_killed(stringify!($state)); }
    } )* };
}
in_every_state! { recv compute accept }

/// In the middle of spawning: the daemon, the launcher or a rank.
#[test]
fn killed_while_it_grows() {
    for (round, pause_ms) in [3, 17, 40, 71, 110, 150].into_iter().enumerate() {
        let mut job = deaths("loop").start();
        let pids = job.ready(STARTED);
        std::thread::sleep(Duration::from_millis(pause_ms));
        let (victim, code) = match round % 3 {
            0 => (job.daemon_pids().0, 125),
            1 => (job.pid(), 128 + 9),
            _ => (pids[1], 128 + 9),
        };
        end(victim);
        assert_eq!(job.finish().code, code);
    }
}

#[test]
fn a_spawned_rank_that_fails_is_named() {
    for (how, code, word) in [("exit3", 3, "code 3"), ("abort7", 7, "code 7"), ("nofinalize", 1, "MPI_Finalize")] {
        let outcome = deaths(how).run();
        assert_eq!(outcome.code, code, "{how}: {outcome:?}");
        assert!(outcome.stderr.contains("spawned rank 3 (rank 1 of world 2"), "{how}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(word), "{how}: no {word:?} in {}", outcome.stderr);
    }
}

/// A script that runs one MPI program after the other: each is an MPI job of its own (the real MPIs fail at the second).
#[test]
fn programs_one_after_the_other() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        let turn = Turn::take();
        let binary = program("coll.c", mpi);
        drop(turn);
        let run = |script: &str| {
            let run = Vmpirun::new("again").args(["-n", "3", "sh", "-c", script]).arg(&binary);
            let outcome = run.run();
            assert_eq!(outcome.code, 0, "{outcome:?}");
            outcome.stdout
        };
        let once = run(r#""$0""#);
        let thrice = run(r#""$0" && "$0" && exec "$0""#);
        assert!(once.lines().count() > 0);
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&thrice), sorted(&once.repeat(3)));
    }
}

/// The job is over when all of its processes are; what they write arrives, with labels that tell worlds apart.
#[test]
fn children_outlive_their_parents() {
    for (flags, line) in
        [(&["-l"][..], "2.1: child 1 says goodbye"), (&["--tag-output"], "[2,1]<stdout>:child 1 says goodbye")]
    {
        let turn = Turn::take();
        let binary = program("spawn_deaths.c", Mpi::Mpich);
        drop(turn);
        let outcome = Vmpirun::new("spawn-outlive").args(flags).args(["-n", "2"]).arg(binary).arg("outlive").run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert!(outcome.stdout.contains(line), "{}", outcome.stdout);
    }
    let outcome = deaths("outlive").run();
    assert_eq!(outcome.stdout.matches("says goodbye").count(), ALL - STARTED, "{outcome:?}");
}
