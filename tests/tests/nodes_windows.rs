//! One-sided communication between the ranks of two nodes: the real MPIs' answers, and targets that need not call MPI.

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};

use vmpi_tests::nodes::{Nodes, find, same};
use vmpi_tests::place::{room, venv};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PROGRAMS: &[(&str, &[&str])] = &[
    ("rma_move.c", &["apart"]),
    ("rma_accumulate.c", &[]),
    ("rma_sync.c", &[]),
    ("rma_win.c", &["apart"]),
    ("rma_errors.c", &[]),
    ("rma_threads.c", &[]),
    ("rma_spin.c", &["get", "20", "apart"]),
    ("rma_spin.c", &["fetch", "20", "apart"]),
    ("rma_spin.c", &["swap", "20", "apart"]),
];

#[test]
fn programs_answer_as_under_openmpi() {
    let nodes = Nodes::beside_others("windows");
    for (name, args) in PROGRAMS {
        same(&nodes, name, Mpi::Openmpi, 5, &[], args);
        same(&nodes, name, Mpi::Openmpi, 4, &["-V", "2", "--map-by", "node"], args);
    }
}

/// Debian's own MPICH gets many windows at once wrong (rma_move.c, rma_far.c) and hangs in rma_sync.c, with more ranks than cores.
#[test]
fn a_program_answers_as_under_mpich() {
    let nodes = Nodes::beside_others("windows-mpich");
    same(&nodes, "rma_accumulate.c", Mpi::Mpich, 4, &["--map-by", "node"], &[]);
}

/// Where the carriers may not copy, the targets themselves do what is asked, whenever they are in MPI.
#[test]
fn the_same_without_single_copy() {
    let nodes = Nodes::beside_others("windows-pieces");
    for (name, args) in PROGRAMS {
        let flags = ["-x", "VMPI_SINGLE_COPY=0", "-V", "3"];
        same(&nodes, name, Mpi::Openmpi, 5, &flags, args);
        same(&nodes, name, Mpi::Openmpi, 4, &[&flags[..], &["--map-by", "node"]].concat(), args);
    }
}

#[test]
fn the_same_with_progress_by_ranks_and_over_a_slow_network() {
    let nodes = Nodes::beside_others("windows-ways");
    for name in ["rma_move.c", "rma_accumulate.c"] {
        same(&nodes, name, Mpi::Openmpi, 4, &["--progress", "rank"], &["apart"]);
    }
    same(&nodes, "rma_sync.c", Mpi::Openmpi, 4, &["--fabric", "emulated:100:200"], &[]);
}

/// The program checks itself: some of what it does the peers do wrong, or not without their targets.
#[test]
fn targets_compute_and_all_work_in_each_others_memory() {
    let nodes = Nodes::beside_others("windows-far");
    for (mpi, flags) in
        [(Mpi::Openmpi, &["-V", "3"][..]), (Mpi::Mpich, &["-V", "2"]), (Mpi::Openmpi, &["-V", "3", "--map-by", "node"])]
    {
        let run = nodes.vmpirun("far").args(["-n", "5", "--quantum", "50"]).args(flags).arg(program("rma_far.c", mpi));
        let got = run.cwd(room("cwd")).deadline(Duration::from_secs(120)).run();
        let right = got.code == 0 && got.stdout.ends_with("all checks hold\n");
        assert!(right, "{flags:?}, built for {}: exit code {}\n{}\n{}", mpi.name(), got.code, got.stdout, got.stderr);
    }
}

/// Memory of another node's rank is nothing that can be loaded: asking for it is no error.
#[test]
fn memory_is_shared_within_a_node_only() {
    let nodes = Nodes::beside_others("windows-query");
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        for flags in [&["-V", "3"][..], &["-V", "2", "--map-by", "node"]] {
            let run = nodes.vmpirun("query").args(["-n", "4"]).args(flags).arg(program("rma_query.c", mpi));
            let got = run.deadline(Duration::from_secs(60)).run();
            let right = got.code == 0 && got.stdout == "all checks hold\n";
            assert!(right, "{flags:?}, {}: {} {} {}", mpi.name(), got.code, got.stdout, got.stderr);
        }
    }
}

/// Who cannot lock everybody's memory locks nobody's.
#[test]
fn locks_that_cannot_all_be_had_are_given_back() {
    let nodes = Nodes::beside_others("windows-full");
    let run = nodes.vmpirun("full").args(["-n", "5", "-V", "3"]).arg(program("rma_lock_full.c", Mpi::Openmpi));
    let got = run.deadline(Duration::from_secs(120)).run();
    assert!(got.code == 0 && got.stdout == "all checks hold\n", "{} {} {}", got.code, got.stdout, got.stderr);
}

/// Memory that is shared by loads and stores is one node's.
#[test]
fn shared_memory_over_nodes_is_refused() {
    let nodes = Nodes::beside_others("windows-shared");
    let got = nodes.vmpirun("shared").args(["-n", "4"]).arg(program("rma_spin.c", Mpi::Openmpi)).run();
    assert!(got.code != 0 && got.stderr.contains("MPI_ERR_RMA_SHARED"), "{got:?}");
    assert!(got.stderr.contains("is on another node"), "{got:?}");
}

/// Who holds the lock on another node's memory dies, or the carrier of that node does.
#[test]
fn deaths_end_the_waits_for_locks() {
    let nodes = Nodes::beside_others("windows-deaths");
    for how in ["lock", "accumulate"] {
        let start = || {
            let run = nodes.vmpirun(how).args(["-n", "4"]).arg(program("deaths.c", Mpi::Openmpi)).arg(how);
            let mut job = run.deadline(Duration::from_secs(60)).start();
            let pids = job.ready(4);
            (job, pids)
        };
        let (job, pids) = start();
        kill(Pid::from_raw(pids[2]), Signal::SIGKILL).expect("it lives");
        let got = job.finish();
        assert!(got.code == 137 && got.stderr.contains("rank 2") && got.stderr.contains(&nodes.b), "{got:?}");
        let (job, _) = start();
        kill(Pid::from_raw(find(&job.runtime_dir, &nodes.a, "--carry")[0].pid), Signal::SIGKILL).expect("it lives");
        let got = job.finish();
        assert!(got.code == 125 && got.stderr.contains(&nodes.a), "{got:?}");
    }
}

#[test]
fn imb_rma_over_two_nodes() {
    let nodes = Nodes::beside_others("windows-imb");
    let names = "Unidir_put,Unidir_get,Bidir_put,One_put_all,All_get_all,Put_local,Exchange_put,Accumulate,Get_accumulate,\
                 Fetch_and_op,Compare_and_swap,Truly_passive_put";
    for flags in [&[][..], &["--map-by", "node"]] {
        let got = nodes
            .vmpirun("imb")
            .args(["-n", "4", "-V", "2"])
            .args(flags)
            .env("LD_LIBRARY_PATH", venv().join("lib"))
            .arg(venv().join("bin/IMB-RMA"))
            .args(["-iter", "20", "-msglog", "0:18"])
            .args(names.split(','))
            .cwd(room("cwd"))
            .deadline(Duration::from_secs(120))
            .run();
        let benchmarks = got.stdout.lines().filter(|line| line.starts_with("# Benchmarking")).count();
        assert!(got.code == 0 && benchmarks >= names.split(',').count(), "{flags:?}: {} {}", got.stdout, got.stderr);
    }
}
