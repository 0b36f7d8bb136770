//! Fault tolerance (ULFM): deaths by kill -9 in jobs of `vmpirun --enable-recovery`. The programs check what each survivor sees; here
//! it is checked that every survivor gets there, that the exit code and a sentence still name the dead rank, and that nothing is left.

use std::time::Duration;
use vmpi_tests::aborts;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::Turn;

fn run(source: &str, mpi: Mpi, flags: &[&str], args: &[&str]) -> Outcome {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program(source, mpi);
    drop(turn);
    let run = Vmpirun::new("ulfm").deadline(Duration::from_secs(60)).args(flags);
    run.arg(binary).args(args).run()
}

/// Runs of each story and shape; more are asked for by `VMPI_ULFM_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("VMPI_ULFM_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

/// All survivors of a story get to its end.
fn story(mpi: Mpi, args: &[&str], dead: u32) {
    for (ranks, v) in [(3, 1), (4, 2), (6, 3), (8, 3)] {
        for _ in 0..rounds() {
            let (n, per_core) = (ranks.to_string(), v.to_string());
            let outcome = run("ulfm_death.c", mpi, &["--enable-recovery", "-n", &n, "-V", &per_core], args);
            let seen = outcome.stdout.matches("survivor ").count() as u32;
            assert_eq!((seen, outcome.code), (ranks - dead, 128 + 9), "{mpi:?} {args:?} -n {n} -V {v}: {outcome:?}");
            assert!(outcome.stderr.contains("was killed by signal 9"), "{outcome:?}");
            assert!(!outcome.stderr.contains("the other ranks were ended"), "{outcome:?}");
        }
    }
}

macro_rules! stories {
    ($($name:ident: $args:expr, $dead:expr;)*) => { $( mod $name {
        use super::*;
        #[test]
        fn openmpi() { story(Mpi::Openmpi, &$args, $dead); }
        #[test]
        fn mpich() { story(Mpi::Mpich, &$args, $dead); }
    } )* };
}

stories! {
    receive: ["receive"], 1;
    barrier: ["barrier"], 1;
    allreduce: ["allreduce"], 1;
    allreduce_short: ["allreduce-short"], 1;
    bcast: ["bcast"], 1;
    bcast_short: ["bcast-short"], 1;
    wildcard: ["wildcard"], 1;
    lock: ["lock"], 1;
    agree: ["agree"], 1;
    during: ["during"], 2;
    running: ["running"], 1;
    requests: ["requests"], 1;
    storm: ["storm", "5000"], 1;
    storm_of_long_messages: ["storm", "9000", "300000"], 1;
}

/// The standard's own ABI, with what only vmpi.h has.
#[test]
fn standard_abi() {
    for args in [&["receive"][..], &["wildcard"], &["agree"], &["during"], &["lock"]] {
        story(Mpi::Standard, args, if args == ["during"] { 2 } else { 1 });
    }
}

/// The classic loop comes to the right answer whoever dies, also two at once.
#[test]
fn fail_revoke_shrink_go_on() {
    for (ranks, v, victims, bytes) in [(2, 1, 1, 8), (4, 2, 2, 8), (5, 3, 3, 80), (8, 3, 3, 400_000), (6, 3, 4, 8)] {
        for _ in 0..rounds() {
            let [n, per_core, k, size] = [ranks, v, victims, bytes].map(|number: i32| number.to_string());
            let flags = ["--with-ft", "ulfm", "-n", &n, "-V", &per_core];
            let outcome = run("ulfm_loop.c", Mpi::Openmpi, &flags, &[&k, &size]);
            let line = format!("{} of {n} ranks are left, total 646392600", ranks - victims);
            assert!(outcome.stdout.contains(&line) && outcome.code == 128 + 9, "{n} {v} {k} {size}: {outcome:?}");
        }
    }
}

/// A spawned rank dies: parents and children go on with those who are left.
#[test]
fn a_spawned_rank_dies() {
    for (ranks, v) in [("1", "1"), ("2", "2"), ("3", "3")] {
        for mpi in [Mpi::Openmpi, Mpi::Mpich] {
            let outcome = run("ulfm_spawn.c", mpi, &["--enable-recovery", "-n", ranks, "-V", v], &[]);
            let (parents, children) =
                (outcome.stdout.matches("parent ").count(), outcome.stdout.matches("child ").count());
            assert_eq!(
                (parents.to_string().as_str(), children, outcome.code),
                (ranks, 2, 128 + 9),
                "{mpi:?}: {outcome:?}"
            );
        }
    }
}

/// MPI_Abort ends the ranks of its communicator, MPI_ERRORS_ABORT too, and the others go on.
#[test]
fn an_abort_ends_the_ranks_of_its_communicator() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        let error: &[&str] = if mpi == Mpi::Openmpi { &[] } else { &["error"] };
        for story in aborts::STORIES.iter().chain(error) {
            for (ranks, v) in [(4, 2), (5, 5), (7, 4)] {
                let (n, per_core) = (ranks.to_string(), v.to_string());
                let flags = ["--enable-recovery", "-n", &n, "-V", &per_core];
                aborts::check(story, ranks, &run("ulfm_abort.c", mpi, &flags, &[story]));
            }
        }
    }
}

/// Of all that live, or without the option, it is the job's end.
#[test]
fn an_abort_of_all_ends_the_job() {
    for (flags, story) in [
        (&["--enable-recovery", "-n", "4"][..], "all"),
        (&["-n", "4"], "all"),
        (&["-n", "5"], "odd"),
        (&["-n", "3"], "self"),
    ] {
        let outcome = run("ulfm_abort.c", Mpi::Openmpi, flags, &[story]);
        let said = outcome.stderr.contains("aborted the job with code 8");
        assert!(outcome.code == 8 && said && !outcome.stdout.contains("goes on"), "{flags:?} {story}: {outcome:?}");
    }
}

/// Without the option a death ends the job by name, as ever.
#[test]
fn without_the_option_a_death_ends_the_job() {
    for args in ["receive", "lock", "barrier"] {
        let outcome = run("ulfm_death.c", Mpi::Openmpi, &["-n", "3", "-V", "3"], &[args]);
        assert_eq!(outcome.code, 128 + 9, "{outcome:?}");
        assert!(
            outcome.stderr.contains("rank 2 (") && outcome.stderr.contains("the other ranks were ended"),
            "{outcome:?}"
        );
        assert!(!outcome.stdout.contains("survivor"), "{outcome:?}");
    }
}

/// With it, a program that asks for no errors ends at the first operation that needs the dead rank, and the sentence says so.
#[test]
fn errors_are_fatal_by_default() {
    let outcome = run("ulfm_fatal.c", Mpi::Openmpi, &["-disable-auto-cleanup", "-n", "3"], &[]);
    assert!(outcome.code != 0 && outcome.stderr.contains("PROC_FAILED"), "{outcome:?}");
}
