//! Inside an allocation of a real Slurm: one vmpid per node, started by srun.

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::{bin_dir, room};
use vmpi_tests::slurm::Slurm;

/// `salloc OPTIONS vmpirun ARGUMENTS`.
fn allocated(slurm: &Slurm, name: &str, options: &[&str], arguments: &[&str]) -> Outcome {
    let run = Vmpirun::wrapped(name, "salloc", &[&["--quiet", "-N2"], options].concat());
    let run = run.env("SLURM_CONF", slurm.conf()).cwd(room("cwd")).deadline(Duration::from_secs(120));
    run.args(arguments).run()
}

#[test]
#[ignore = "second tier"]
fn an_allocation_is_used() {
    let slurm = Slurm::start();
    assert!(bin_dir().join("vmpid").exists());
    let names = &["sh", "-c", "echo $VMPI_RANK $OMPI_COMM_WORLD_LOCAL_RANK"];
    let got = allocated(&slurm, "names", &[], &[&["-V", "2", "--report=full", "-l"], &names[..]].concat());
    let mut lines: Vec<&str> = got.stdout.lines().collect();
    lines.sort_unstable();
    assert!(got.code == 0 && lines == ["0: 0 0", "1: 1 1", "2: 2 0", "3: 3 1"], "{got:?}\n{}", slurm.logs());
    for part in
        ["node vmpis1: 2 ranks on 1 core", "node vmpis2: 2 ranks on 1 core", "messages to other nodes go by tcp"]
    {
        assert!(got.stderr.contains(part), "{part}\n{got:?}");
    }
    let binary = program("p2p.c", Mpi::Openmpi);
    let got = allocated(&slurm, "p2p", &[], &["-n", "5", &binary.display().to_string()]);
    assert!(got.code == 0 && got.stdout.contains("all checks hold"), "{got:?}\n{}", slurm.logs());
    // Tasks that were asked for are the ranks.
    let got = allocated(&slurm, "tasks", &["--ntasks-per-node=1"], &["sh", "-c", "echo $OMPI_COMM_WORLD_SIZE"]);
    assert_eq!((got.code, got.stdout.as_str()), (0, "2\n2\n"), "{got:?}");
    let got = allocated(&slurm, "dry", &[], &["--dry-run", "-n", "2", "true"]);
    assert!(
        got.code == 0 && (got.stdout.clone() + &got.stderr).contains("vmpis[1-2], 2 CPUs; vmpid is started by srun"),
        "{got:?}"
    );
    let got = allocated(&slurm, "small", &[], &["-n", "5", "-V", "2", "true"]);
    let why = "5 ranks with V = 2 need 3 cores, and Slurm job";
    assert!(got.code == 2 && got.stderr.contains(why) && got.stderr.contains("(on vmpis[1-2])"), "{got:?}");
    // A rank that fails ends all, with its code and its node's name.
    let binary = program("deaths.c", Mpi::Openmpi);
    let got = allocated(&slurm, "abort", &[], &["-n", "4", &binary.display().to_string(), "abort7", "2"]);
    assert!(got.code == 7 && got.stderr.contains("rank 2") && got.stderr.contains("vmpis2"), "{got:?}");
}

/// srun starts the program itself: its PMI leads the processes to their ranks.
#[test]
#[ignore = "second tier"]
fn processes_of_srun_are_ranks() {
    let slurm = Slurm::start();
    let of = |name: &str, mpi: Mpi, options: &[&str], arguments: &[&str]| {
        let run = Vmpirun::by(name, "srun").args(["--quiet", "-n4", "--overcommit"]).args(options);
        let run = run.arg(program("foreign.c", mpi)).args(arguments).env("SLURM_CONF", slurm.conf()).cwd(room("cwd"));
        let libraries = bin_dir().join("vmpi").join(mpi.name());
        run.env("LD_LIBRARY_PATH", libraries).deadline(Duration::from_secs(120)).run()
    };
    // Slurm's pmix plugin has one directory for both of these nodes, which are on one machine, and does not start there.
    for options in [["-N2", "--mpi=pmi2"], ["-N1", "--mpi=pmi2"], ["-N1", "--mpi=pmix"]] {
        for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
            let got = of("srun", mpi, &options, &["ok"]);
            let mut ranks: Vec<&str> = got.stdout.lines().filter(|line| line.starts_with("rank ")).collect();
            ranks.sort_unstable();
            let wanted = ["rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"];
            assert!(got.code == 0 && ranks == wanted, "{options:?} {mpi:?}: {got:?}\n{}", slurm.logs());
        }
    }
    let run = |name: &str, options: &[&str], arguments: &[&str]| {
        of(name, Mpi::Openmpi, &[&["-N2"], options].concat(), arguments)
    };
    let got = run("srun-abort", &["--mpi=pmi2", "-K"], &["abort", "1"]);
    assert!(got.code != 0 && got.stderr.contains("called MPI_Abort with error code 7"), "{got:?}");
    // Without PMI nobody knows of the others, and one says so.
    let got = run("srun-none", &["--mpi=none"], &["exit", "9"]);
    assert!(got.stderr.contains("4 processes were started, but not how they find each other"), "{got:?}");
}
