//! Seeing inside a job of two nodes: deadlocks over nodes, and who waits for whom on all of them.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;

fn run(nodes: &Nodes, what: &[&str], ranks: &str, flags: &[&str], mpi: Mpi) -> Vmpirun {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("deadlock.c", mpi);
    drop(turn);
    nodes.vmpirun("inside").args(["-n", ranks, "-V", "3"]).args(flags).arg(binary).args(what)
}

fn planted(nodes: &Nodes, what: &str, ranks: &str, flags: &[&str], mpi: Mpi) -> Outcome {
    let flags = [&["--on-deadlock", "abort"], flags].concat();
    run(nodes, &[what], ranks, &flags, mpi).deadline(Duration::from_secs(60)).run()
}

/// Each of them is over several nodes: nobody on one of these sees all of it.
#[test]
fn deadlocks_over_nodes_are_explained() {
    let nodes = Nodes::new("deadlock");
    let all = |ranks: u32| format!("all {ranks} ranks wait in MPI for each other, and no message is under way");
    for (what, ranks, flags, mpi, sentences) in [
        (
            "two-receives",
            "2",
            &["--map-by", "node"][..],
            Mpi::Openmpi,
            &[
                "rank 0 waits in MPI_Recv at ",
                "(two_receives) on MPI_COMM_WORLD, for a message from rank 1 with tag 5",
                "Rank 0 and rank 1 wait for each other.",
            ][..],
        ),
        (
            "missing",
            "6",
            &[],
            Mpi::Mpich,
            &[
                "Rank 5 is missing in MPI_Barrier: 5 of the 6 members of MPI_COMM_WORLD are there. Rank 5 is in MPI_Recv at",
            ],
        ),
        ("missing", "4", &["--enable-recovery"], Mpi::Openmpi, &["rank 3 waits in MPI_Recv at "]),
        (
            "missing",
            "5",
            &["--fabric", "emulated:300:100"],
            Mpi::Openmpi,
            &["Rank 4 is missing in MPI_Barrier: 4 of the 5"],
        ),
        (
            "wrong-tag",
            "3",
            &["--map-by", "node"],
            Mpi::Openmpi,
            &[
                "Rank 1 holds a message from rank 0 with tag 7 (4 bytes) on MPI_COMM_WORLD that no receive has asked for",
            ],
        ),
        (
            "ring",
            "4",
            &[],
            Mpi::Openmpi,
            &["in a circle: 0 -> 1 -> 2 -> 3 -> 0.", "until rank 1 receives its message of 1048576 bytes"],
        ),
        ("ring", "4", &["--progress", "rank"], Mpi::Openmpi, &["in a circle: 0 -> 1 -> 2 -> 3 -> 0."]),
        ("halo", "3", &["--map-by", "node"], Mpi::Openmpi, &["for a message from rank 2 with tag 33"]),
        (
            "named",
            "6",
            &[],
            Mpi::Openmpi,
            &["Rank 2 is missing in MPI_Allreduce: 2 of the 3 members of the communicator \"even ranks\" are there."],
        ),
        ("no-visitor", "4", &[], Mpi::Mpich, &["for a group of this job that connects to its port"]),
    ] {
        let outcome = planted(&nodes, what, ranks, flags, mpi);
        assert_eq!(outcome.code, 123, "{what} {flags:?}: {outcome:?}");
        let all = all(ranks.parse().expect("a number"));
        for sentence in sentences.iter().chain([&all.as_str()]) {
            assert!(
                outcome.stderr.contains(sentence),
                "{what} {flags:?}: \"{sentence}\" is missing in {}",
                outcome.stderr
            );
        }
    }
    let told = planted(&nodes, "two-receives", "2", &["--map-by", "node"], Mpi::Mpich).stderr;
    let places = format!("Rank 0 is on node {}, rank 1 on node {}.\n", nodes.a, nodes.b);
    assert!(told.contains(&places), "{told}");
    // All others have ended, on either node.
    let alone = planted(&nodes, "left-alone", "4", &[], Mpi::Openmpi);
    assert_eq!(alone.code, 123, "{alone:?}");
}

/// Each has locked its own memory alone, and asks for that of the other one, on the other node.
#[test]
fn a_circle_of_window_locks_over_nodes_is_told_as_such() {
    let nodes = Nodes::new("locks");
    let run = nodes.vmpirun("locks").args(["-n", "2", "--map-by", "node", "--on-deadlock", "abort"]);
    let outcome = run.arg(program("simulated_windows.c", Mpi::Openmpi)).arg("stuck").run();
    assert_eq!(outcome.code, 123, "{outcome:?}");
    for (rank, other) in [(0, 1), (1, 0)] {
        let line = outcome.stderr.lines().find(|line| line.contains(&format!("rank {rank} waits in MPI_Win_lock at")));
        let turn = format!("for its turn with the window of rank {other}");
        assert!(line.is_some_and(|line| line.contains(&turn)), "{outcome:?}");
    }
}

/// What takes long, or is under way for long, is no deadlock.
#[test]
fn nobody_is_accused_wrongly_over_nodes() {
    let nodes = Nodes::new("innocent");
    for (what, flags) in [
        ("sleeper", &[][..]),
        ("computer", &[]),
        ("lock", &[]),
        ("spawn", &[]),
        ("port", &[]),
        ("thread-elsewhere", &["--map-by", "node"]),
        ("traffic", &[]),
        ("traffic", &["--enable-recovery"]),
        // Each message is under way for longer than it takes to find everybody waiting.
        ("slow", &["--fabric", "emulated:1600000:100"]),
    ] {
        let outcome = planted(&nodes, what, "4", flags, Mpi::Openmpi);
        assert!(outcome.code == 0 && !outcome.stderr.contains("deadlock"), "{what} {flags:?}: {outcome:?}");
    }
}

/// Who has left without MPI_Finalize is the cause, not that the others wait for it.
#[test]
fn who_leaves_is_named_not_those_who_wait() {
    let nodes = Nodes::new("leaves");
    let outcome = planted(&nodes, "leaves", "4", &[], Mpi::Openmpi);
    assert!(outcome.code == 1 && !outcome.stderr.contains("deadlock in job"), "{outcome:?}");
    assert!(outcome.stderr.contains("rank 3") && outcome.stderr.contains("MPI_Finalize"), "{outcome:?}");
}

/// `vmpictl why` on either node knows all of them; when the launcher is stopped, its own.
#[test]
fn vmpictl_on_any_node_explains_all() {
    let nodes = Nodes::new("why");
    let mut job = run(&nodes, &["missing"], "4", &[], Mpi::Openmpi).start();
    let why = |node: &str| nodes.vmpictl(&job.runtime_dir, node, &["why", "1", "--json"]);
    for node in [&nodes.a, &nodes.b] {
        let mut last = Value::Null;
        let found = eventually(Duration::from_secs(30), || {
            let answer = why(node);
            last = serde_json::from_str(&answer.stdout).unwrap_or(Value::Null);
            answer.code == 0 && last["deadlock"] == true
        });
        assert!(found, "{node}: {last:#}");
        assert_eq!(last["absences"][0]["absent"], serde_json::json!([3]), "{last:#}");
        assert_eq!(last["absences"][0]["present"], serde_json::json!([0, 1, 2]), "{last:#}");
        for (rank, node) in [&nodes.a, &nodes.a, &nodes.b, &nodes.b].into_iter().enumerate() {
            assert_eq!(last["ranks"][rank]["node"], node.as_str(), "{last:#}");
        }
        assert_eq!(last["ranks"][3]["site"]["caller"], "missing_participant", "{last:#}");
        assert_eq!(last["ranks"][0]["site"]["function"], "MPI_Barrier", "{last:#}");
    }
    kill(Pid::from_raw(job.pid()), Signal::SIGSTOP).expect("vmpirun is alive");
    let here = nodes.vmpictl(&job.runtime_dir, &nodes.b, &["why", "1"]);
    kill(Pid::from_raw(job.pid()), Signal::SIGCONT).expect("vmpirun is alive");
    assert!(here.code == 0 && here.stdout.contains("2 of 2 ranks of this node wait in MPI"), "{here:?}");
    assert!(here.stderr.contains("this is what is known on this node"), "{here:?}");
    assert!(!job.has_ended(), "a report alone does not end the job");
    kill(Pid::from_raw(job.pid()), Signal::SIGTERM).expect("vmpirun is alive");
    let outcome = job.finish();
    assert_eq!(outcome.stderr.matches("deadlock in job").count(), 1, "said once: {outcome:?}");
    assert_eq!(outcome.code, 143, "{outcome:?}");
}

/// Ranks of both nodes that crash in the same place: one stack, and each of them named.
#[test]
fn crashes_on_both_nodes_are_told() {
    let nodes = Nodes::new("crash");
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("crash.c", Mpi::Openmpi);
    drop(turn);
    let run = |which: &str| nodes.vmpirun("crash").args(["-n", "4", "-V", "2"]).arg(&binary).args(["null", which]);
    let outcome = run("3").run();
    let node = format!(", node {}", nodes.b);
    for part in ["vmpirun: rank 3 (pid ", &node, "null_pointer at crash.c:", "was killed by signal 11"] {
        assert!(outcome.code == 139 && outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
    let outcome = run("all").run();
    assert!(outcome.code == 139 && outcome.stderr.contains("null_pointer at crash.c:"), "{outcome:?}");
}
