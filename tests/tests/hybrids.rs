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

/// By the machine's own parts, of which this test knows no more than what the kernel says of CPUs 0 and 1.
#[test]
fn ranks_are_bound_to_parts_of_the_machine() {
    let said = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/{file}")).unwrap_or_default();
        text.trim().starts_with("0-") || text.trim().starts_with("0,1")
    };
    let together = |both: bool| if both { ["0 1", "0 1"] } else { ["0", "1"] };
    for (flags, cpus) in [
        (&["--bind-to", "socket"][..], together(said("topology/package_cpus_list"))),
        (&["--bind-to", "core"], together(said("topology/core_cpus_list"))),
        (&["--bind-to", "hwthread"], ["0", "1"]),
        (&["--bind-to", "board"], ["0 1", "0 1"]),
        (&["--cpu-bind", "map_cpu:1,0"], ["1", "0"]),
        (&["--cpu-bind", "list:0-1:1"], ["0 1", "1"]),
        (&["--map-by", "ppr:2:node", "--bind-to", "none"], ["0 1", "0 1"]),
    ] {
        let told = places(&[&["-n", "2"], flags].concat(), &[]);
        let wanted = format!("rank 0: CPUs {}, threads -", cpus[0]);
        assert!(told.stdout.starts_with(&wanted), "{flags:?}: {told:?}");
        assert!(told.stdout.contains(&format!("rank 1: CPUs {}, threads -", cpus[1])), "{flags:?}: {told:?}");
    }
}

/// A dry run tells of another machine, in hwloc's words.
#[test]
fn a_dry_run_may_be_of_another_machine() {
    let binary = binary("places.c");
    let run =
        Vmpirun::new("machine").args(["--dry-run", "-n", "4", "--map-by", "ppr:2:socket:PE=2", "--bind-to", "numa"]);
    let got = run.env("HWLOC_SYNTHETIC", "package:2 numa:2 core:4 pu:2").arg(&binary).run();
    for line in ["CPUs 0,2: rank 0, bound to CPUs 0-7", "CPUs 16,18: rank 2, bound to CPUs 16-23", "CPUs 20,22: rank 3"]
    {
        assert!(got.code == 0 && got.stdout.contains(line), "{line}: {got:?}");
    }
    let run = Vmpirun::new("machine-bad").args(["--dry-run", "-n", "1"]).env("HWLOC_SYNTHETIC", "what:2");
    assert_eq!(run.arg(&binary).run().code, 2);
}

/// A rank with more threads than CPUs beside a CPU of the job that has nothing to do is told of, once; who has given it the CPUs, or has none to give, hears nothing.
#[test]
fn threads_that_lack_cpus_are_told_of() {
    let binary = binary("crowd.c");
    let note = "rank 0 has 3 threads that want to run on 1 CPU, while 1 CPU of the job is idle: --cpus-per-rank 2";
    let run = |flags: &[&str]| {
        let run = Vmpirun::new("crowd").args(["--cores", "0,1"]).args(flags).without("OMP_NUM_THREADS");
        let outcome = run.arg(&binary).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "done\n"), "{outcome:?}");
        outcome.stderr
    };
    let told = run(&["-n", "2"]);
    assert_eq!(told.matches(note).count(), 1, "{told}");
    for flags in [&["-n", "2", "--cpus-per-rank", "2"][..], &["-n", "2", "--bind-to", "none"], &["-n", "2", "--quiet"]]
    {
        assert!(!run(flags).contains("want to run"), "{flags:?}");
    }
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
