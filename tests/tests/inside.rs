//! Seeing inside a job: deadlocks and who waits for whom.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::place::Turn;

fn built(name: &str, mpi: Mpi) -> PathBuf {
    Turn::beside_others();
    let _turn = Turn::take();
    program(name, mpi)
}

fn planted(what: &str, ranks: u32, flags: &[&str], mpi: Mpi) -> Outcome {
    let binary = built("deadlock.c", mpi);
    let run = Vmpirun::new("deadlock").args(["-n", &ranks.to_string(), "-V", "3", "--on-deadlock", "abort"]);
    run.args(flags).arg(binary).arg(what).run()
}

fn assert_says(outcome: &Outcome, sentences: &[&str]) {
    assert_eq!(outcome.code, 123, "{outcome:?}");
    for sentence in sentences {
        assert!(outcome.stderr.contains(sentence), "\"{sentence}\" is missing in {}", outcome.stderr);
    }
}

#[test]
fn two_receives_are_explained() {
    for flags in [&[][..], &["--policy", "fifo"], &["--enable-recovery"]] {
        let outcome = planted("two-receives", 2, flags, Mpi::Openmpi);
        assert_says(
            &outcome,
            &[
                "all 2 ranks wait in MPI for each other",
                "rank 0 waits in MPI_Recv at ",
                "(two_receives) on MPI_COMM_WORLD, for a message from rank 1 with tag 5",
                "Rank 0 and rank 1 wait for each other.",
            ],
        );
    }
}

#[test]
fn a_single_rank_waits_for_nobody() {
    assert_says(
        &planted("left-alone", 1, &[], Mpi::Openmpi),
        &["): its rank waits in MPI, and no message is under way"],
    );
}

#[test]
fn a_missing_participant_is_named() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        let outcome = planted("missing", 6, &[], mpi);
        assert_says(
            &outcome,
            &[
                "ranks 0-4 wait in MPI_Barrier at ",
                "Rank 5 is missing in MPI_Barrier: 5 of the 6 members of MPI_COMM_WORLD are there. Rank 5 is in MPI_Recv at",
                "rank 5 waits in MPI_Recv",
                "for a message from rank 0 with tag 7",
            ],
        );
    }
}

#[test]
fn a_wrong_tag_is_found() {
    let outcome = planted("wrong-tag", 3, &[], Mpi::Mpich);
    assert_says(
        &outcome,
        &[
            "Rank 1 holds a message from rank 0 with tag 7 (4 bytes) on MPI_COMM_WORLD that no receive has asked for, and waits for one \
             with tag 8: is one of the two tags wrong?",
        ],
    );
}

/// What has come of all that a rank waits for is no sign that the rest is under way.
#[test]
fn a_wait_that_is_over_in_part_is_one() {
    for flags in [&[][..], &["--policy", "follow"], &["--enable-recovery"]] {
        assert_says(
            &planted("halo", 3, flags, Mpi::Openmpi),
            &[
                "rank 0 waits in MPI_Waitall at ",
                "for a message from rank 2 with tag 33",
                "ranks 1-2 wait in MPI_Barrier",
                "Rank 0 is missing in MPI_Barrier",
            ],
        );
    }
}

#[test]
fn a_port_to_which_nobody_comes() {
    assert_says(
        &planted("no-visitor", 3, &[], Mpi::Mpich),
        &[
            "rank 0 waits in MPI_Comm_accept at ",
            "for a group of this job that connects to its port",
            "Rank 0 is missing in MPI_Barrier",
        ],
    );
}

#[test]
fn circles_names_and_threads() {
    let outcome = planted("ring", 4, &[], Mpi::Openmpi);
    assert_says(
        &outcome,
        &["in a circle: 0 -> 1 -> 2 -> 3 -> 0.", "until rank 1 receives its message of 1048576 bytes"],
    );
    let outcome = planted("named", 6, &[], Mpi::Openmpi);
    assert_says(
        &outcome,
        &["Rank 2 is missing in MPI_Allreduce: 2 of the 3 members of the communicator \"even ranks\" are there."],
    );
    let outcome = planted("threads-all", 2, &[], Mpi::Openmpi);
    assert_says(&outcome, &["with tag 21", "with tag 22", "Rank 1 waits for itself"]);
}

/// Programs in which all ranks but one wait for a long time are not called deadlocked: each of these takes seconds, in which every look
/// could be wrong.
#[test]
fn nobody_is_accused_wrongly() {
    let binary = built("deadlock.c", Mpi::Openmpi);
    let cases = ["sleeper", "computer", "lock", "spawn", "port", "thread-elsewhere", "traffic"];
    for (what, v) in cases.iter().flat_map(|what| [(what, "2"), (what, "4")]) {
        for flags in [&[][..], &["--enable-recovery"]] {
            if !flags.is_empty() && v == "2" {
                continue;
            }
            let run = Vmpirun::new("innocent").args(["-n", "4", "-V", v, "--on-deadlock", "abort"]);
            let outcome = run.args(flags).arg(&binary).arg(what).run();
            assert!(outcome.code == 0 && !outcome.stderr.contains("deadlock"), "{what}, V={v}, {flags:?}: {outcome:?}");
        }
    }
}

/// A job that hangs, and what vmpictl tells of it.
fn hanging(what: &[&str]) -> Job {
    let binary = built("deadlock.c", Mpi::Openmpi);
    Vmpirun::new("hanging").args(["-n", "4", "-V", "2"]).arg(binary).args(what).start()
}

fn end(mut job: Job) -> Outcome {
    assert!(!job.has_ended(), "a report alone does not end the job");
    kill(Pid::from_raw(job.pid()), Signal::SIGTERM).expect("vmpirun is alive");
    job.finish()
}

#[test]
fn vmpictl_explains_a_job_that_hangs() {
    let job = hanging(&["missing"]);
    let mut last = Value::Null;
    let found = eventually(Duration::from_secs(30), || {
        let answer = job.vmpictl(&["why", "1", "--json"]);
        last = serde_json::from_str(&answer.stdout).unwrap_or(Value::Null);
        answer.code == 0 && last["deadlock"] == true
    });
    assert!(found, "{last:#}");
    assert_eq!(last["schema_version"], 1);
    assert_eq!(last["absences"][0]["absent"], serde_json::json!([3]), "{last:#}");
    assert_eq!(last["absences"][0]["present"], serde_json::json!([0, 1, 2]));
    assert_eq!(last["cycles"], serde_json::json!([[0, 3]]));
    assert_eq!(last["ranks"][3]["site"]["function"], "MPI_Recv");
    assert_eq!(last["ranks"][3]["site"]["caller"], "missing_participant");
    let text = job.vmpictl(&["why", "1"]);
    assert!(text.code == 0 && text.stdout.contains("Rank 3 is missing in MPI_Barrier"), "{text:?}");
    let dot = job.vmpictl(&["why", "1", "--dot"]);
    assert!(dot.stdout.starts_with("digraph") && dot.stdout.contains("r3 -> r0 [color=red"), "{dot:?}");
    let stacks = job.vmpictl(&["stacks", "1/3"]);
    assert!(stacks.code == 0 && stacks.stdout.contains("missing_participant at deadlock.c:"), "{stacks:?}");
    assert!(!stacks.stdout.contains("vmpi_core") && stacks.stdout.contains("  #0  MPI_Recv in vmpi\n"), "{stacks:?}");
    let merged = job.vmpictl(&["stacks"]);
    assert!(merged.code == 0 && merged.stdout.starts_with("3 ranks: 0-2\n  #0  MPI_Barrier in vmpi\n"), "{merged:?}");
    assert!(merged.stdout.contains("\nrank 3, pid "), "{merged:?}");
    let all = job.vmpictl(&["stacks", "--all-frames"]);
    assert!(
        all.stdout.contains("__libc_start_main") && all.stdout.matches("missing_participant").count() == 4,
        "{all:?}"
    );
    assert_eq!(job.vmpictl(&["stacks", "1/4"]).code, 1, "there is no rank 4");
    assert_eq!(job.vmpictl(&["why", "7"]).code, 1, "there is no job 7");
    let outcome = end(job);
    assert!(outcome.stderr.contains("deadlock in job 1"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("look at all call stacks: vmpictl stacks 1, one of them closely: gdb -p "),
        "{outcome:?}"
    );
    assert_eq!(outcome.stderr.matches("deadlock in job").count(), 1, "said once: {outcome:?}");
    assert_eq!(outcome.code, 143, "{outcome:?}");
}

#[test]
fn why_tells_of_a_job_that_is_no_deadlock() {
    // For longer than anybody looks: on a busy machine that takes seconds.
    let job = hanging(&["sleeper", "600"]);
    let mut text = String::new();
    let found = eventually(Duration::from_secs(30), || {
        text = job.vmpictl(&["why", "1"]).stdout;
        text.contains("3 of 4 ranks wait in MPI")
    });
    assert!(found, "{text}");
    assert!(text.contains("Rank 3 is missing in MPI_Barrier") && !text.contains("deadlock in job"), "{text}");
    let outcome = end(job);
    assert!(outcome.code == 143 && !outcome.stderr.contains("deadlock"), "{outcome:?}");
}

/// A rank that computes, one that sleeps and two that wait: nothing is proven, and all of it is told, once.
#[test]
fn a_job_without_progress_is_told_of() {
    let binary = built("stuck.c", Mpi::Mpich);
    let run = Vmpirun::new("hang").args(["-n", "5", "-V", "3", "--on-hang", "2", "--timeout", "12"]);
    let outcome = run.arg(binary).run();
    assert_eq!(outcome.code, 124, "{outcome:?}");
    for sentence in [
        "no progress in job 1 (",
        "for 2 s: no message has gone or come, and no wait in MPI has ended; 2 of 5 ranks wait in MPI",
        "ranks 0-1 wait in MPI_Barrier at stuck.c:",
        "rank 2 computes at stuck.c:",
        "rank 3 sleeps outside MPI at stuck.c:",
        "rank 4 asks again and again by MPI_Iprobe at stuck.c:",
        "To go on: look at all call stacks",
    ] {
        assert!(outcome.stderr.contains(sentence), "\"{sentence}\" is missing in {}", outcome.stderr);
    }
    assert_eq!(outcome.stderr.matches("no progress in job").count(), 1, "said once: {}", outcome.stderr);
}

/// Work, though it takes long, is progress as long as messages go.
#[test]
fn a_job_with_progress_is_not_told_of() {
    let binary = built("stuck.c", Mpi::Mpich);
    let run = Vmpirun::new("no-hang").args(["-n", "5", "-V", "3", "--on-hang", "2"]);
    let outcome = run.arg(binary).arg("slow").run();
    assert!(outcome.code == 0 && !outcome.stderr.contains("no progress"), "{outcome:?}");
}
