//! Ranks with threads, and ranks that wait outside MPI: several CPUs for a rank, spinning on memory, jobs beside each other.

use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::Turn;

fn binary(name: &str) -> std::path::PathBuf {
    let _turn = Turn::take();
    program(name, Mpi::Openmpi)
}

/// Ranks of one core, each of which waits for a store of another one without calling MPI: seconds before, by the quantum.
#[test]
fn ranks_that_spin_on_memory_let_each_other_run() {
    let binary = binary("spin_turn.c");
    for ranks in ["2", "4"] {
        let outcome = Vmpirun::new("spin-turn").args(["-n", ranks, "--cores", "0"]).arg(&binary).run();
        assert_eq!((outcome.code, &*outcome.stdout), (0, "soon\n"), "{outcome:?}");
    }
}

/// The same of threads, while another thread of the rank waits in MPI.
#[test]
fn threads_that_spin_let_other_ranks_run() {
    let binary = binary("spin_barrier.c");
    for cores in ["0", "0,1"] {
        let outcome = Vmpirun::new("spin-barrier").args(["-n", "4", "--cores", cores]).arg(&binary).run();
        assert_eq!((outcome.code, &*outcome.stdout), (0, "right, soon\n"), "{outcome:?}");
    }
}

/// `--quantum 0` is a promise: nobody's core is taken for what it does outside MPI.
#[test]
fn without_a_quantum_nobody_is_judged() {
    let binary = binary("spin_turn.c");
    let run = Vmpirun::new("spin-kept").args(["-n", "2", "--cores", "0", "--quantum", "0", "--timeout", "2"]);
    assert_eq!(run.arg(&binary).run().code, 124);
}

fn places(flags: &[&str], env: &[(&str, &str)]) -> Outcome {
    let binary = binary("places.c");
    let mut run = Vmpirun::new("places").args(["--cores", "0,1"]).args(flags);
    for name in ["OMP_NUM_THREADS", "OMP_PLACES", "OMP_WAIT_POLICY"] {
        run = run.without(name);
    }
    for (name, value) in env {
        run = run.env(name, *value);
    }
    let outcome = run.arg(&binary).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// All CPUs of its place are a rank's, and OpenMP is told so; ranks that share a place let its threads sleep. The user's own words stand.
#[test]
fn a_rank_has_the_cpus_of_its_place() {
    for flags in [["--cpus-per-rank", "2"], ["--map-by", "slot:PE=2"], ["--cpus-per-task", "2"], ["-d", "2"]] {
        let told = places(&[&["-n", "1"], &flags[..]].concat(), &[]).stdout;
        assert_eq!(told, "rank 0: CPUs 0 1, threads 2, places -, waits -\n", "{flags:?}");
    }
    let both = "CPUs 0 1, threads 2, places {0},{1}, waits passive";
    let told = places(&["-n", "2", "--cpus-per-rank", "2"], &[]).stdout;
    assert_eq!(told, format!("rank 0: {both}\nrank 1: {both}\n"));
    let told = places(&["-n", "2", "--cpus-per-rank", "2"], &[("OMP_NUM_THREADS", "1"), ("OMP_WAIT_POLICY", "active")]);
    assert!(told.stdout.contains("rank 1: CPUs 0 1, threads 1, places {0},{1}, waits active"), "{told:?}");
    let told = places(&["-n", "2", "--cpus-per-rank", "2", "--bind-to", "none"], &[("OMP_WAIT_POLICY", "active")]);
    assert!(told.stdout.contains("rank 0: CPUs 0 1, threads 2, places -, waits active"), "{told:?}");
    let told = places(&["-n", "1", "--cpus-per-rank", "64"], &[]);
    assert!(told.stderr.contains("instead of 64") && told.stdout.contains("threads 2"), "{told:?}");
}

/// CPUs that no rank would have go to those that have threads for them.
#[test]
fn omp_num_threads_is_a_wish_for_cpus() {
    let told = places(&["-n", "1"], &[("OMP_NUM_THREADS", "2")]).stdout;
    assert_eq!(told, "rank 0: CPUs 0 1, threads 2, places -, waits -\n");
    let told = places(&["-n", "2"], &[("OMP_NUM_THREADS", "2")]).stdout;
    assert_eq!(told, "rank 0: CPUs 0, threads 2, places -, waits -\nrank 1: CPUs 1, threads 2, places -, waits -\n");
}

/// Two vmpiruns of one rank each, without a daemon in common, are not on the same CPU; a third one, of two, shares.
#[test]
fn jobs_take_cpus_that_others_do_not_have() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: a network namespace of its own, where other tests' jobs claim nothing, takes root");
        return;
    }
    let binary = binary("beside.c");
    let script = "\"$0\" -n 1 \"$1\" & \"$0\" -n 1 \"$1\" & sleep 1; \"$0\" --verbose -n 2 \"$1\"; wait";
    let outcome = Vmpirun::wrapped("beside", "unshare", &["--net", "sh", "-c", script]).arg(&binary).run();
    let mut cpus: Vec<&str> = outcome.stdout.lines().collect();
    cpus.sort_unstable();
    assert_eq!(cpus, ["0", "0", "1", "1"], "{outcome:?}");
}
