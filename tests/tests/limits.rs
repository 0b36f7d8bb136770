//! How much of everything a job may have. (No oracle: Open MPI 4.1.4 takes a minute for these, and mixes messages up.)

use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

/// More requests and more unexpected messages than the 65,536 that every rank of the largest job has room for.
#[test]
fn very_many_messages_are_under_way_at_once() {
    let turn = Turn::take();
    let binary = program("outstanding.c", Mpi::Mpich);
    drop(turn);
    let outcome = Vmpirun::new("outstanding").args(["-n", "2", "-V", "2"]).arg(binary).arg("100000").run();
    assert!(outcome.code == 0 && outcome.stdout.ends_with("all checks hold\n"), "{outcome:?}");
}
