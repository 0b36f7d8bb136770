//! Fault tolerance (ULFM) over two and three nodes: the stories of ulfm.rs, whose victims die on either node. The programs check what each survivor sees; here
//! it is checked that all of them get there, that the exit code and a sentence still name the dead rank, and that nothing is left.

use std::time::Duration;
use vmpi_tests::aborts;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Outcome;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;

/// Runs of each story and shape; more are asked for by `VMPI_ULFM_ROUNDS`.
fn rounds() -> u32 {
    std::env::var("VMPI_ULFM_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
}

fn run(nodes: &Nodes, source: &str, mpi: Mpi, ranks: u32, flags: &[&str], args: &[&str]) -> Outcome {
    let turn = Turn::take();
    let binary = program(source, mpi);
    drop(turn);
    let run = nodes.vmpirun("ulfm").args(["--enable-recovery", "-n", &ranks.to_string()]).args(flags);
    run.arg(binary).args(args).deadline(Duration::from_secs(60)).run()
}

/// Ranks, and how they are spread.
type Shape = (u32, &'static [&'static str]);

/// All survivors of a story get to its end, whichever node the victims live on.
fn stories(name: &str, mpi: Mpi, stories: &[&[&str]]) {
    let shapes: &[Shape] = &[
        (3, &["-V", "2"]),
        (4, &["-V", "2"]),
        (4, &["-V", "2", "--map-by", "node"]),
        (7, &["-V", "4", "--map-by", "node"]),
        (8, &["-V", "4"]),
    ];
    stories_of(&Nodes::beside_others(name), mpi, stories, shapes);
}

fn stories_of(nodes: &Nodes, mpi: Mpi, stories: &[&[&str]], shapes: &[Shape]) {
    for args in stories {
        let dead = if args[0] == "during" { 2 } else { 1 };
        for &(ranks, flags) in shapes {
            for _ in 0..rounds() {
                let outcome = run(nodes, "ulfm_death.c", mpi, ranks, flags, args);
                let seen = outcome.stdout.matches("survivor ").count() as u32;
                let told = format!("{args:?} on {ranks} ranks of several nodes {flags:?}, built for {}", mpi.name());
                assert_eq!((seen, outcome.code), (ranks - dead, 128 + 9), "{told}: {outcome:?}");
                assert!(outcome.stderr.contains("was killed by signal 9"), "{told}: {outcome:?}");
                assert!(!outcome.stderr.contains("the other ranks were ended"), "{told}: {outcome:?}");
            }
        }
    }
}

#[test]
fn messages_and_collectives_end_with_an_error() {
    let all: &[&[&str]] = &[&["receive"], &["wildcard"], &["requests"], &["running"], &["barrier"]];
    stories("ulfm-ends", Mpi::Openmpi, all);
    stories("ulfm-ends-mpich", Mpi::Mpich, &[&["receive"], &["wildcard"]]);
}

#[test]
fn large_and_small_collectives_end_with_an_error() {
    let all: &[&[&str]] = &[&["allreduce"], &["allreduce-short"], &["bcast"], &["bcast-short"]];
    stories("ulfm-coll", Mpi::Openmpi, all);
}

#[test]
fn agreement_is_uniform_and_locks_are_given_up() {
    stories("ulfm-agree", Mpi::Openmpi, &[&["agree"], &["during"], &["lock"]]);
    stories("ulfm-agree-mpich", Mpi::Mpich, &[&["agree"], &["during"]]);
}

#[test]
fn a_death_at_any_moment() {
    let all: &[&[&str]] = &[&["storm", "5000"], &["storm", "3000", "3000"], &["storm", "9000", "300000"]];
    stories("ulfm-storm", Mpi::Openmpi, all);
}

/// Memory of a receive that was given up is the program's, though the sender's data still travels.
#[test]
fn what_has_been_given_up_is_written_no_more() {
    let shapes: &[Shape] = &[
        (4, &["-V", "2", "--map-by", "node", "--fabric", "emulated:1000:16"]),
        (8, &["-V", "4", "--map-by", "node", "--fabric", "emulated:1000:16"]),
        (4, &["-V", "2", "--map-by", "node", "--fabric", "emulated:1000:16", "--progress", "rank"]),
        (4, &["-V", "2", "--map-by", "node"]),
    ];
    stories_of(&Nodes::beside_others("ulfm-kept"), Mpi::Openmpi, &[&["kept"]], shapes);
}

/// A survivor may hear of the death from its own node, from the victim's, or from what a third one does because of it.
#[test]
fn survivors_of_three_nodes() {
    let all: &[&[&str]] = &[
        &["receive"],
        &["barrier"],
        &["requests"],
        &["allreduce"],
        &["bcast"],
        &["bcast-short"],
        &["agree"],
        &["during"],
        &["lock"],
        &["storm", "5000", "300000"],
    ];
    let shapes: &[Shape] = &[(6, &["-V", "2"]), (7, &["-V", "3", "--map-by", "node"])];
    Turn::beside_others();
    let nodes = Nodes::three("ulfm-three");
    stories_of(&nodes, Mpi::Openmpi, all, shapes);
    let outcome = run(&nodes, "ulfm_loop.c", Mpi::Openmpi, 8, &["-V", "3", "--map-by", "node"], &["3", "400000"]);
    assert!(outcome.stdout.contains("5 of 8 ranks are left, total 646392600"), "{outcome:?}");
}

/// Messages that the ranks move themselves, and a network that takes its time.
#[test]
fn survivors_beside_other_ways_of_messages() {
    let all: &[&[&str]] =
        &[&["receive"], &["requests"], &["allreduce"], &["bcast"], &["lock"], &["storm", "5000", "300000"]];
    let shapes: &[Shape] = &[
        (4, &["-V", "2", "--map-by", "node", "--progress", "rank"]),
        (4, &["-V", "2", "--map-by", "node", "--fabric", "emulated:200:200"]),
    ];
    stories_of(&Nodes::beside_others("ulfm-ways"), Mpi::Openmpi, all, shapes);
}

/// A spawned rank dies, on whichever node: parents and children go on with those who are left.
#[test]
fn a_spawned_rank_dies() {
    let spawn = |nodes: Nodes, shapes: &[Shape]| {
        for &(ranks, flags) in shapes {
            for _ in 0..rounds() {
                let outcome = run(&nodes, "ulfm_spawn.c", Mpi::Openmpi, ranks, flags, &[]);
                let count = |who: &str| outcome.stdout.matches(who).count() as u32;
                let seen = (count("parent "), count("child "), outcome.code);
                assert_eq!(seen, (ranks, 2, 128 + 9), "{ranks} {flags:?}: {outcome:?}");
            }
        }
    };
    let shapes: &[Shape] = &[(1, &["-V", "2"]), (2, &["-V", "2", "--map-by", "node"]), (4, &["-V", "2"])];
    spawn(Nodes::beside_others("ulfm-spawn"), shapes);
    spawn(Nodes::three("ulfm-spawn3"), &[(3, &["-V", "2", "--map-by", "node"])]);
}

/// MPI_Abort ends the ranks of its communicator, on whichever node they live, and the others go on.
#[test]
fn an_abort_ends_the_ranks_of_its_communicator() {
    let shapes: &[Shape] =
        &[(4, &["-V", "2"]), (5, &["-V", "3", "--map-by", "node"]), (7, &["-V", "4", "--map-by", "node"])];
    let nodes = Nodes::beside_others("ulfm-abort");
    for story in aborts::STORIES {
        for &(ranks, flags) in shapes {
            for _ in 0..rounds() {
                aborts::check(story, ranks, &run(&nodes, "ulfm_abort.c", Mpi::Openmpi, ranks, flags, &[story]));
            }
        }
    }
    let outcome = run(&nodes, "ulfm_abort.c", Mpi::Openmpi, 4, &["-V", "2", "--map-by", "node"], &["all"]);
    assert!(outcome.code == 8 && !outcome.stdout.contains("goes on"), "{outcome:?}");
}

/// The classic loop comes to the right answer whoever dies, also two at once, and all of a node.
#[test]
fn fail_revoke_shrink_go_on() {
    let nodes = Nodes::beside_others("ulfm-loop");
    for (ranks, victims, bytes, flags) in [
        (2, 1, 8, &[][..]),
        (4, 2, 8, &["-V", "2"]),
        (5, 3, 80, &["-V", "3", "--map-by", "node"]),
        (8, 3, 400_000, &["-V", "4"]),
        (6, 4, 8, &["-V", "3"]),
    ] {
        for _ in 0..rounds() {
            let (k, size) = (victims.to_string(), bytes.to_string());
            let outcome = run(&nodes, "ulfm_loop.c", Mpi::Openmpi, ranks, flags, &[&k, &size]);
            let line = format!("{} of {ranks} ranks are left, total 646392600", ranks - victims);
            assert!(outcome.stdout.contains(&line) && outcome.code == 128 + 9, "{ranks} {k} {size}: {outcome:?}");
        }
    }
}

/// The end of a node, or of what belongs to vmpi there, is still the job's.
#[test]
fn a_node_that_dies_ends_the_job_by_its_name() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;
    let nodes = Nodes::beside_others("ulfm-node");
    let turn = Turn::take();
    let binary = program("deaths.c", Mpi::Openmpi);
    drop(turn);
    let run = nodes.vmpirun("node").args(["--enable-recovery", "-n", "4", "-V", "2"]).arg(binary).arg("recv");
    let mut job = run.deadline(Duration::from_secs(60)).start();
    job.ready(4);
    kill(Pid::from_raw(vmpi_tests::nodes::find(&job.runtime_dir, &nodes.b, "--carry")[0].pid), Signal::SIGKILL)
        .expect("it lives");
    let got = job.finish();
    assert!(got.code == 125 && got.stderr.contains(&nodes.b), "{got:?}");
}
