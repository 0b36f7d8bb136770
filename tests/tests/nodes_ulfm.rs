//! Fault tolerance (ULFM) over two nodes: the stories of ulfm.rs, whose victims die on either node. The programs check what each survivor sees; here
//! it is checked that all of them get there, that the exit code and a sentence still name the dead rank, and that nothing is left.

use std::time::Duration;
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

/// All survivors of a story get to its end, whichever node the victims live on.
fn stories(name: &str, mpi: Mpi, stories: &[&[&str]]) {
    let nodes = Nodes::new(name);
    for args in stories {
        let dead = if args[0] == "during" { 2 } else { 1 };
        for (ranks, flags) in [
            (3, &["-V", "2"][..]),
            (4, &["-V", "2"]),
            (4, &["-V", "2", "--map-by", "node"]),
            (7, &["-V", "4", "--map-by", "node"]),
            (8, &["-V", "4"]),
        ] {
            for _ in 0..rounds() {
                let outcome = run(&nodes, "ulfm_death.c", mpi, ranks, flags, args);
                let seen = outcome.stdout.matches("survivor ").count() as u32;
                let told = format!("{args:?} on {ranks} ranks of two nodes {flags:?}, built for {}", mpi.name());
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

/// The classic loop comes to the right answer whoever dies, also two at once, and all of a node.
#[test]
fn fail_revoke_shrink_go_on() {
    let nodes = Nodes::new("ulfm-loop");
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
    let nodes = Nodes::new("ulfm-node");
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
