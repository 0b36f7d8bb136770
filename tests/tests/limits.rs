//! How much of everything a job may have. (No oracle: Open MPI 4.1.4 takes a minute for these, and mixes messages up.)

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;

/// More requests than the 65,536 that every rank of the largest job has room for, and as many unexpected messages.
#[test]
fn very_many_messages_are_under_way_at_once() {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("outstanding.c", Mpi::Mpich);
    drop(turn);
    let outcome = Vmpirun::new("outstanding").args(["-n", "2", "-V", "2"]).arg(binary).arg("100000").run();
    assert!(outcome.code == 0 && outcome.stdout.ends_with("all checks hold\n"), "{outcome:?}");
}

/// Where memory for messages that nobody asks for ends, a sentence says so and who holds them; that is no deadlock, and no job hangs.
#[test]
fn the_end_of_memory_for_messages_is_named() {
    Turn::beside_others();
    let turn = Turn::take();
    let binaries = [program("floods.c", Mpi::Openmpi), program("floods.c", Mpi::Mpich)];
    drop(turn);
    let cases: &[(&str, &str, &[&str])] = &[
        ("l", "8", &["-V", "1"]),
        ("l", "8", &["-V", "2"]),
        ("l", "2000", &["-V", "2"]),
        ("lr", "8", &["-V", "1"]),
        ("i", "8", &["-V", "1"]),
        ("i", "100", &["-V", "2"]),
        ("ir", "8", &["-V", "2"]),
        ("l", "8", &["-V", "2", "--enable-recovery"]),
        ("ir", "8", &["-V", "1", "--enable-recovery"]),
        ("l", "8", &["-V", "2", "--on-deadlock", "abort"]),
    ];
    for ((parts, bytes, flags), binary) in cases.iter().zip(binaries.iter().cycle()) {
        let run = Vmpirun::new("memory").args(["-n", "2", "-x", "VMPI_UNEXPECTED_BYTES=3M"]).args(*flags);
        let outcome = run.arg(binary).args([parts, "0", bytes]).deadline(Duration::from_secs(60)).run();
        assert_says_who_holds(&outcome, "3145728 bytes on this node");
    }
}

/// The same where each rank holds some of it, and waits for room at others, or at itself.
#[test]
fn the_end_of_memory_for_messages_is_named_where_all_hold_some() {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("pressure.c", Mpi::Mpich);
    drop(turn);
    let cases: [(&str, &[&str]); 5] = [
        ("4", &["-V", "8"]),
        ("4", &["-V", "8", "-x", "VMPI_SINGLE_COPY=0", "-x", "VMPI_STRONG_PROGRESS=0"]),
        ("6", &["-V", "3", "--policy", "lifo"]),
        ("6", &["-V", "6"]),
        ("6", &["-V", "3", "--enable-recovery"]),
    ];
    for (ranks, flags) in cases {
        let run = Vmpirun::new("all").args(["-n", ranks, "-x", "VMPI_UNEXPECTED_BYTES=3M"]).args(flags);
        let outcome = run.arg(&binary).args(["all", "1000"]).run();
        assert!(outcome.code == 125 && !outcome.stderr.contains("deadlock"), "{outcome:?}");
        let says = ["that no receive has asked for", "3145728 bytes on this node", "VMPI_UNEXPECTED_BYTES"];
        assert!(says.iter().all(|words| outcome.stderr.contains(words)), "{outcome:?}");
        assert!(!outcome.stderr.contains("two ranks wrong"), "{outcome:?}");
    }
}

fn assert_says_who_holds(outcome: &Outcome, limit: &str) {
    assert!(outcome.code == 125 && !outcome.stderr.contains("deadlock"), "{outcome:?}");
    for word in ["rank 0 holds ", "that no receive has asked for", "from rank 1", limit, "VMPI_UNEXPECTED_BYTES"] {
        assert!(outcome.stderr.contains(word), "no {word:?} in {outcome:?}");
    }
}

/// The same over two nodes.
#[test]
fn the_end_of_memory_for_messages_is_named_over_nodes() {
    let nodes = Nodes::beside_others("memory");
    let turn = Turn::take();
    let binary = program("floods.c", Mpi::Openmpi);
    drop(turn);
    for (parts, bytes) in [("l", "8"), ("l", "2000"), ("ir", "8")] {
        let run = nodes.vmpirun("memory").args(["-n", "2", "--map-by", "node", "-x", "VMPI_UNEXPECTED_BYTES=3M"]);
        let outcome = run.arg(&binary).args([parts, "0", bytes]).deadline(Duration::from_secs(60)).run();
        assert_says_who_holds(&outcome, "3145728 bytes on this node");
    }
}

/// Rank 1 holds all the memory for a while: rank 0, whose next message found none, takes it when there is some again, and who holds it is named if there never is.
#[test]
fn memory_for_messages_that_comes_back_is_used() {
    Turn::beside_others();
    let turn = Turn::take();
    let binaries = [program("hoard.c", Mpi::Openmpi), program("hoard.c", Mpi::Mpich)];
    drop(turn);
    let cases = [("", "2"), ("r", "2"), ("", "3"), ("r", "4"), ("", "4"), ("n", "2"), ("rn", "3")];
    for (case, binary) in cases.iter().zip(binaries.iter().cycle()) {
        for flags in [&[][..], &["--enable-recovery"]] {
            let run =
                Vmpirun::new("hoard").args(["-n", "4", "-V", case.1, "-x", "VMPI_UNEXPECTED_BYTES=3M"]).args(flags);
            assert_is_used(case.0, &run.arg(binary).args(["3000", "15000", case.0]).run());
        }
    }
}

fn assert_is_used(parts: &str, outcome: &Outcome) {
    if parts.contains('n') {
        assert!(outcome.code == 125 && outcome.stderr.contains("rank 1 holds 15000 messages"), "{outcome:?}");
    } else {
        assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{outcome:?}");
    }
}

/// The same over two nodes.
#[test]
fn memory_for_messages_that_comes_back_is_used_over_nodes() {
    let nodes = Nodes::beside_others("hoard");
    let turn = Turn::take();
    let binary = program("hoard.c", Mpi::Openmpi);
    drop(turn);
    for parts in ["", "r", "n"] {
        let run = nodes.vmpirun("hoard").args(["-n", "4", "-V", "2", "-x", "VMPI_UNEXPECTED_BYTES=3M"]);
        assert_is_used(parts, &run.arg(&binary).args(["3000", "15000", parts]).run());
    }
}

/// What has been allowed must be a number.
#[test]
fn memory_for_messages_must_be_a_number() {
    let run = Vmpirun::new("number").args(["-n", "1", "-x", "VMPI_UNEXPECTED_BYTES=much", "true"]);
    let outcome = run.run();
    assert!(outcome.code == 2 && outcome.stderr.contains("VMPI_UNEXPECTED_BYTES=much is no number"), "{outcome:?}");
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
