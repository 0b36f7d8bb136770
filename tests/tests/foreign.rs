//! Programs started by other MPIs' launchers: each process is the rank that the launcher says it is, of one job; streams, exit codes and signals stay the
//! launcher's.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::{Turn, bin_dir, room, venv, venv_mpich};

const ABIS: [Mpi; 3] = [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard];
/// Debian's Hydra speaks PMI-1, its Open MPI PMIx.
const HYDRA: &[&str] = &["mpiexec.mpich", "-n", "4"];
const PMIX: &[&str] = &["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "-n", "4"];

fn binary(mpi: Mpi) -> PathBuf {
    let _turn = Turn::take();
    program("foreign.c", mpi)
}

/// `LAUNCHER foreign ARGUMENTS` with vmpi's library in the place of the program's.
fn launched(name: &str, launcher: &[&str], mpi: Mpi, arguments: &[&str]) -> Vmpirun {
    let binary = binary(mpi);
    let libraries = bin_dir().join("vmpi").join(mpi.name());
    let run = Vmpirun::by(name, launcher[0]).args(&launcher[1..]).arg(binary).args(arguments);
    run.env("LD_LIBRARY_PATH", libraries).env("VMPIRUN_ON_DEADLOCK", "ignore").deadline(Duration::from_secs(120))
}

#[test]
fn four_processes_are_four_ranks() {
    Turn::beside_others();
    let from = |venv: PathBuf, launcher: &str| venv.join("bin").join(launcher).display().to_string();
    let intel = from(venv(), "mpiexec.hydra");
    let forker = from(venv_mpich(), "mpiexec.gforker");
    let prterun = from(venv(), "prterun");
    let prte = [&prterun, "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "-n", "4"];
    for launcher in [HYDRA, &[&intel, "-n", "4"], &[&forker, "-n", "4"], PMIX, &prte] {
        for mpi in ABIS {
            let got = launched("foreign", launcher, mpi, &["ok"]).run();
            // PRRTE prints some for an older client library than its own.
            assert!(!got.stderr.contains("PMIX ERROR"), "{launcher:?} {mpi:?}: {got:?}");
            let mut ranks: Vec<&str> = got.stdout.lines().filter(|line| line.starts_with("rank ")).collect();
            ranks.sort_unstable();
            let wanted = ["rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"];
            assert!(
                got.code == 0 && ranks == wanted && got.stdout.contains("all checks hold"),
                "{launcher:?} {mpi:?}: {got:?}"
            );
        }
    }
}

/// As rsh: the words after the host are for a shell there.
const RSH: &str = "#!/bin/sh\nnode=$1; shift; exec \"$(dirname \"$0\")/enter\" \"$node\" sh -c \"$*\"\n";

/// Launchers start two processes on each of two nodes; the first of these starts vmpid on both, by the agent that the launcher's variables name.
#[test]
fn processes_on_two_nodes_are_ranks_of_one_job() {
    let nodes = Nodes::beside_others("foreign");
    let rsh = nodes.enter().with_file_name("rsh");
    std::fs::write(&rsh, RSH).expect("the scratch directory is writable");
    std::fs::set_permissions(&rsh, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    let hosts = format!("{},{}", nodes.a, nodes.b);
    let slots = format!("{}:2,{}:2", nodes.a, nodes.b);
    let hydra = ["mpiexec.mpich", "-localhost", "10.99.0.1", "-hosts", &hosts, "-ppn", "2", "-n", "4"];
    let orte = [
        "mpirun.openmpi",
        "--allow-run-as-root",
        "--oversubscribe",
        "-x",
        "VMPI_RUNTIME_DIR",
        "-x",
        "LD_LIBRARY_PATH",
        "--host",
        &slots,
        "-n",
        "4",
    ];
    for (launcher, mpi) in [(&hydra[..], Mpi::Openmpi), (&orte[..], Mpi::Mpich)] {
        let binary = binary(mpi);
        let run = Vmpirun::by_on_node("foreign-two", &nodes.enter(), &nodes.a).args(launcher).arg(binary).arg("nodes");
        let run =
            run.env("LD_LIBRARY_PATH", bin_dir().join("vmpi").join(mpi.name())).deadline(Duration::from_secs(120));
        let run = run.env("HYDRA_LAUNCHER", "rsh").env("HYDRA_LAUNCHER_EXEC", &rsh).env("OMPI_MCA_plm_rsh_agent", &rsh);
        let got = run.env("OMPI_MCA_oob_tcp_if_include", "cable").run();
        let mut ranks: Vec<&str> = got.stdout.lines().filter(|line| line.starts_with("rank ")).collect();
        ranks.sort_unstable();
        let wanted = ["rank 0 of 4", "rank 1 of 4", "rank 2 of 4", "rank 3 of 4"];
        assert!(got.code == 0 && ranks == wanted, "{launcher:?}: {got:?}");
        assert!(got.stdout.contains("all checks hold"), "{launcher:?}: {got:?}");
    }
}

#[test]
fn streams_and_exit_codes_are_the_launchers() {
    Turn::beside_others();
    let input = room("foreign").join("input.txt");
    File::create(&input).and_then(|mut file| file.write_all(b"a line\n")).expect("target/ is writable");
    for launcher in [HYDRA, PMIX] {
        let run = launched("foreign-in", launcher, Mpi::Openmpi, &["stdin"]);
        let got = run.stdin(File::open(&input).expect("it was written")).run();
        assert!(got.code == 0 && got.stdout.contains("read a line\n"), "{launcher:?}: {got:?}");
        let got = launched("foreign-exit", launcher, Mpi::Mpich, &["exit", "2"]).run();
        assert!(got.code == 5 && got.stdout.contains("all checks hold"), "{launcher:?}: {got:?}");
    }
}

#[test]
fn a_rank_that_ends_badly_ends_all() {
    Turn::beside_others();
    for launcher in [HYDRA, PMIX] {
        let got = launched("foreign-abort", launcher, Mpi::Openmpi, &["abort", "1"]).run();
        assert_eq!(got.code, 7, "{launcher:?}: {got:?}");
        let got = launched("foreign-segv", launcher, Mpi::Mpich, &["segv", "3"]).run();
        // What launchers make of a signal: 11, 139.
        let told = got.stderr.contains("SIGSEGV") || (got.stderr.clone() + &got.stdout).contains("signal 11");
        assert!(got.code != 0 && told, "{launcher:?}: {got:?}");
    }
}

#[test]
fn who_kills_whom() {
    Turn::beside_others();
    for launcher in [HYDRA, PMIX] {
        // A rank.
        let mut job = launched("foreign-kill", launcher, Mpi::Openmpi, &["wait"]).start();
        let ranks = job.ready(4);
        kill(Pid::from_raw(ranks[2]), Signal::SIGKILL).expect("it waits");
        let got = job.finish();
        assert_ne!(got.code, 0, "{launcher:?}: {got:?}");
        // vmpid: its ranks cannot go on, and do not.
        let mut job = launched("foreign-vmpid", launcher, Mpi::Openmpi, &["wait"]).start();
        let ranks = job.ready(4);
        let (daemon, keeper) = job.daemon_pids();
        for pid in keeper.into_iter().chain([daemon]) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let gone = || ranks.iter().all(|pid| kill(Pid::from_raw(*pid), None).is_err());
        assert!(eventually(Duration::from_secs(20), gone), "{launcher:?}: ranks outlive vmpid");
        let got = job.finish();
        assert_ne!(got.code, 0, "{launcher:?}: {got:?}");
        // The launcher.
        let mut job = launched("foreign-launcher", launcher, Mpi::Mpich, &["wait"]).start();
        job.ready(4);
        kill(Pid::from_raw(job.pid()), Signal::SIGTERM).expect("it runs");
        let got = job.finish();
        assert_ne!(got.code, 0, "{launcher:?}: {got:?}");
    }
}

/// No wire between them: each is alone, and says so once.
#[test]
fn copies_without_a_wire_are_told_of() {
    Turn::beside_others();
    let binary = binary(Mpi::Openmpi);
    let alone = |rank: &str, more: &[(&str, &str)]| {
        let mut command = Command::new(&binary);
        command.arg("ok").env("LD_LIBRARY_PATH", bin_dir().join("vmpi/openmpi")).envs(more.iter().copied());
        command.env("OMPI_COMM_WORLD_SIZE", "4").env("OMPI_COMM_WORLD_RANK", rank);
        let output = command.output().expect("it starts");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = alone("0", &[]);
    assert!(said.contains("4 processes were started") && said.contains("vmpirun -n 4"), "{said}");
    assert!(!alone("1", &[]).contains("processes were started"));
    assert!(!alone("0", &[("VMPI_FOREIGN", "0")]).contains("processes were started"));
}

/// What Hydra tells its own processes is nothing for the ranks of a vmpirun among these.
#[test]
fn an_outer_launchers_variables_stay_outside() {
    Turn::beside_others();
    let run = Vmpirun::by("outer", "mpiexec.mpich").args(["-n", "1"]).arg(bin_dir().join("vmpirun"));
    let got = run.args(["-n", "2", "sh", "-c", "env | grep -c '^PMI_FD\\|^HYDI_\\|^PMI_HOSTNAME'; true"]).run();
    assert_eq!((got.code, got.stdout.as_str()), (0, "0\n0\n"), "{got:?}");
}
