//! How much of everything a job may have. (No oracle: Open MPI 4.1.4 takes a minute for these, and mixes messages up.)

use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

/// More requests and more unexpected messages than the 65,536 that every rank of the largest job has room for.
#[test]
fn very_many_messages_are_under_way_at_once() {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("outstanding.c", Mpi::Mpich);
    drop(turn);
    let outcome = Vmpirun::new("outstanding").args(["-n", "2", "-V", "2"]).arg(binary).arg("100000").run();
    assert!(outcome.code == 0 && outcome.stdout.ends_with("all checks hold\n"), "{outcome:?}");
}

/// Limits of a shell (`ulimit`) or a batch system, set for vmpirun and all that it starts: the job runs, or a sentence names the limit.
#[test]
fn low_limits_are_borne_or_named() {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("barrier_allreduce.c", Mpi::Openmpi);
    drop(turn);
    let cases: &[(&str, i32, &[&str])] = &[
        // Sparse files count whole; the launcher's soft limit is for ranks.
        ("--fsize=1000000:", 0, &[]),
        ("--fsize=1000000", 125, &["1000000 bytes at most (ulimit -f)"]),
        ("--as=2000000000", 0, &[]),
        ("--as=100000000", 125, &["100000000 bytes of addresses at most (ulimit -v)", "fewer ranks"]),
        ("--nofile=16", 125, &["at least", "limit is 16", "ulimit -n 30"]),
        ("--nofile=30", 125, &["open files", "limit is 30", "ulimit -Hn"]),
        // Too little for a thread's stack; enough for a shell.
        ("--data=3500000", 0, &[]),
    ];
    for (limit, code, words) in cases {
        let run = Vmpirun::wrapped("limits", "prlimit", &[limit]).args(["-n", "4", "-V", "2"]);
        let outcome =
            if limit.starts_with("--data") { run.args(["sh", "-c", "exit 0"]) } else { run.arg(&binary) }.run();
        assert_eq!(outcome.code, *code, "{limit}: {outcome:?}");
        let silent = *code == 0 && outcome.stderr.lines().any(|line| !line.starts_with("vmpirun: note"));
        assert!(!silent && !outcome.stderr.contains("panicked"), "{limit}: {outcome:?}");
        for word in *words {
            assert!(outcome.stderr.contains(word), "{limit}: no {word:?} in {outcome:?}");
        }
    }
}

/// Too little for a thread's stack, of which the launcher of a job of several nodes needs some.
#[test]
fn a_launcher_that_can_have_no_thread_says_so() {
    let run = Vmpirun::wrapped("threads", "prlimit", &["--data=1500000"]);
    let outcome = run.args(["--host", "a,b", "--launcher-exec", "cat", "-n", "2", "true"]).run();
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains("cannot start a thread") && !outcome.stderr.contains("panicked"), "{outcome:?}");
}
