//! Real programs as Debian and PyPI ship them: LAMMPS, HPCC, Intel's benchmarks, mpi4py.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vmpi_tests::case::first_difference;
use vmpi_tests::compile::Mpi;
use vmpi_tests::installation::mpi4py_of_our_own;
use vmpi_tests::job::{Outcome, Vmpirun, path_with};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::oracle;
use vmpi_tests::place::{Turn, room, top, venv};

const MINUTES: Duration = Duration::from_secs(300);

fn vmpirun(name: &str, ranks: u32, v: u32) -> Vmpirun {
    Turn::beside_others();
    let (ranks, v) = (ranks.to_string(), v.to_string());
    Vmpirun::new(name).args(["-n", &ranks, "-V", &v]).deadline(MINUTES)
}

fn succeeded(what: &str, outcome: &Outcome) {
    assert_eq!(outcome.code, 0, "{what}\n{}\n--- stderr\n{}", outcome.stdout, outcome.stderr);
}

/// The thermodynamic lines of a LAMMPS run: from `Step` to `Loop time`.
fn thermo(text: &str) -> String {
    let lines = text.lines().skip_while(|l| !l.trim_start().starts_with("Step"));
    lines.take_while(|l| !l.starts_with("Loop time")).map(|l| format!("{}\n", l.trim())).collect()
}

/// `run`: a job of so many ranks, to be made when the oracle's turn is over.
fn lammps(ranks: u32, run: impl FnOnce() -> Vmpirun) {
    Turn::beside_others();
    let input = top().join("tests/data/in.melt").display().to_string();
    let args = ["-in", &input, "-log", "none"];
    let wanted = oracle::ask(Mpi::Openmpi, &PathBuf::from("/usr/bin/lmp"), ranks, &args, &[], &room("cwd"));
    let got = run().arg("/usr/bin/lmp").args(args).cwd(room("cwd")).run();
    succeeded("LAMMPS", &got);
    let (got, wanted) = (thermo(&got.stdout), thermo(&wanted.stdout));
    assert_eq!(wanted.lines().count(), 7, "the oracle's output has an unexpected form:\n{wanted}");
    assert!(got == wanted, "{}", first_difference(&got, &wanted));
}

#[test]
fn lammps_on_4_ranks_computes_what_it_does_under_openmpi() {
    lammps(4, || vmpirun("lammps-4", 4, 2));
}

#[test]
fn lammps_on_6_ranks_computes_what_it_does_under_openmpi() {
    lammps(6, || vmpirun("lammps-6", 6, 3));
}

fn hpcc(name: &str, run: Vmpirun) {
    let dir = room(name);
    fs::copy(top().join("tests/data/hpccinf.txt"), dir.join("hpccinf.txt")).expect("target/ is writable");
    let result = dir.join("hpccoutf.txt");
    let _ = fs::remove_file(&result);
    // OpenBLAS, if it is installed, would make a thread per core in each rank.
    let outcome = run.env("OPENBLAS_NUM_THREADS", "1").arg("/usr/bin/hpcc").cwd(&dir).run();
    succeeded("HPCC", &outcome);
    let text = fs::read_to_string(&result).expect("HPCC writes hpccoutf.txt");
    assert!(text.contains("Success=1"), "{text}");
    assert!(text.contains("End of HPC Challenge tests."), "{text}");
    let bad = text.lines().find(|l| {
        l.contains("FAILED")
            || (l.contains("failed residual") && !l.trim_start().starts_with('0'))
            || (l.contains("Node(s) with error") && !l.trim_end().ends_with(" 0"))
    });
    assert_eq!(bad, None, "{text}");
}

#[test]
fn hpcc_passes_its_own_checks() {
    hpcc("hpcc", vmpirun("hpcc", 6, 3));
}

/// Unmodified programs over two nodes, by TCP.
#[test]
fn lammps_hpcc_and_imb_on_two_nodes() {
    let nodes = Nodes::new("programs");
    let run = |name: &str| nodes.vmpirun(name).args(["-n", "8", "--fabric", "tcp"]).deadline(MINUTES);
    lammps(8, || run("lammps"));
    hpcc("hpcc-nodes", run("hpcc"));
    imb("IMB-MPI1", run("imb"), "8", &["PingPong", "Exchange", "Allreduce", "Allgatherv", "Alltoallv", "Bcast"]);
}

/// Intel's benchmarks check no results in release builds; that each table comes to its end is what
/// counts.
fn imb(program: &str, run: Vmpirun, ranks: &str, benchmarks: &[&str]) {
    let binary = venv().join("bin").join(program);
    let outcome = run
        .arg(&binary)
        .args(["-iter", "20", "-time", "0.2", "-msglog", "0:18", "-npmin", ranks])
        .args(benchmarks)
        .cwd(room("cwd"))
        .run();
    succeeded(program, &outcome);
    for benchmark in benchmarks {
        let heading = format!("# Benchmarking {benchmark}");
        let heading = heading.to_lowercase();
        assert!(
            outcome.stdout.lines().any(|l| l.trim().to_lowercase().starts_with(&heading)),
            "no {heading}\n{}",
            outcome.stdout
        );
    }
    assert!(outcome.stdout.contains("# All processes entering MPI_Finalize"), "{}", outcome.stdout);
}

#[test]
fn imb_mpi1() {
    imb(
        "IMB-MPI1",
        vmpirun("IMB-MPI1", 6, 3),
        "6",
        &[
            "PingPong",
            "PingPing",
            "Sendrecv",
            "Exchange",
            "Allreduce",
            "Reduce",
            "Reduce_scatter",
            "Allgather",
            "Allgatherv",
            "Gather",
            "Gatherv",
            "Scatter",
            "Scatterv",
            "Alltoall",
            "Alltoallv",
            "Bcast",
            "Barrier",
        ],
    );
}

/// It takes other options than the rest of them.
#[test]
fn imb_p2p() {
    let binary = venv().join("bin/IMB-P2P");
    let outcome = vmpirun("IMB-P2P", 6, 3).arg(&binary).args(["-iter", "5", "-msglog", "0:10"]).cwd(room("cwd")).run();
    succeeded("IMB-P2P", &outcome);
    let tables = outcome.stdout.lines().filter(|l| l.starts_with("# Benchmarking ")).count();
    // "Benchmark Stencil3D is invalid for 6 processes".
    assert_eq!(tables, 7, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("# All processes entering MPI_Finalize"), "{}", outcome.stdout);
}

#[test]
fn imb_nbc() {
    imb(
        "IMB-NBC",
        vmpirun("IMB-NBC", 6, 3),
        "6",
        &[
            "Ibcast",
            "Iallgather",
            "Iallgatherv",
            "Igather",
            "Igatherv",
            "Iscatter",
            "Iscatterv",
            "Ialltoall",
            "Ialltoallv",
            "Ireduce",
            "Iallreduce",
            "Ibarrier",
        ],
    );
}

#[test]
fn imb_rma() {
    imb(
        "IMB-RMA",
        vmpirun("IMB-RMA", 6, 3),
        "6",
        &[
            "Unidir_put",
            "Unidir_get",
            "Bidir_put",
            "Bidir_get",
            "One_put_all",
            "One_get_all",
            "All_put_all",
            "All_get_all",
            "Put_local",
            "Put_all_local",
            "Exchange_put",
            "Exchange_get",
            "Accumulate",
            "Get_accumulate",
            "Truly_passive_put",
        ],
    );
}

/// Several threads of each rank in MPI at once (MPI_THREAD_MULTIPLE); with `-check` the benchmarks compare what they receive.
#[test]
fn imb_mt() {
    for ranks in [2, 4, 6] {
        let outcome = vmpirun("IMB-MT", ranks, 3)
            .env("LD_LIBRARY_PATH", venv().join("lib"))
            .env("OMP_NUM_THREADS", "4")
            .arg(venv().join("bin/IMB-MT"))
            .args(["-thread_level", "multiple", "-check", "true", "-count", "1,64,1024,20000", "-repeat", "20"])
            .cwd(room("cwd"))
            .run();
        succeeded("IMB-MT", &outcome);
        assert!(!outcome.stdout.contains("CHECK FAILURES"), "{}", outcome.stdout);
        let lines = || outcome.stdout.lines();
        assert_eq!(lines().filter(|line| line.starts_with("# Benchmarking")).count(), 10, "{}", outcome.stdout);
        assert_eq!(lines().filter(|line| line.contains(&format!("#processes = {ranks} (threads: 4)"))).count(), 10);
    }
}

/// mpi4py's wheels choose their ABI at import time by `MPI4PY_MPIABI`; one that was built here has one only.
fn mpi4py(venv: &Path, abi: &str) {
    let python = venv.join("bin/python");
    let run = |name: &str, args: &[&str]| {
        let outcome = vmpirun(name, 6, 3)
            .env("MPI4PY_MPIABI", abi)
            .env("PATH", path_with(&venv.join("bin")))
            .arg(&python)
            .args(args)
            .cwd(room("cwd"))
            .run();
        succeeded(&format!("mpi4py {args:?} with MPI4PY_MPIABI={abi}"), &outcome);
        outcome.stdout
    };
    let hello = run("hello", &["-m", "mpi4py.bench", "helloworld"]);
    let mut greetings: Vec<&str> = hello.lines().map(|l| l.split(" on ").next().unwrap_or(l)).collect();
    greetings.sort_unstable();
    let wanted: Vec<String> = (0..6).map(|r| format!("Hello, World! I am process {r} of 6")).collect();
    assert_eq!(greetings, wanted);
    assert!(run("ringtest", &["-m", "mpi4py.bench", "ringtest", "-n", "1000", "-l", "20"]).contains("time for"));
    // Pickled objects of changing size, buffers, a reduction by a Python function, an intercommunicator.
    let script = "\
from mpi4py import MPI
import array
w = MPI.COMM_WORLD; r, n = w.rank, w.size
objects = w.alltoall([{'from': r, 'to': d, 'text': 'x' * (1 << (2 * d + r))} for d in range(n)])
assert all(o['from'] == s and o['to'] == r and len(o['text']) == 1 << (2 * r + s) for s, o in enumerate(objects))
a = array.array('d', range(r, r + 1000)); b = array.array('d', [0]) * 1000
w.Allreduce(a, b)
assert b[999] == sum(x + 999 for x in range(n))
def larger(x, y, t):
    i, o = memoryview(x).cast('i'), memoryview(y).cast('i')
    for k in range(len(i)): o[k] = max(i[k], o[k])
op = MPI.Op.Create(larger, commute=True)
c = array.array('i', [r, -r]); d = array.array('i', [0, 0])
w.Allreduce(c, d, op); op.Free()
assert list(d) == [n - 1, 0]
half = w.Split(r % 2); inter = half.Create_intercomm(0, w, 1 - r % 2)
assert sorted(inter.allgather(r)) == [x for x in range(n) if x % 2 != r % 2]
try:
    w.Send([a, MPI.DOUBLE], dest=n + 5)
    assert False
except MPI.Exception as e:
    assert e.Get_error_class() == MPI.ERR_RANK
q = [w.isend(('tag', k), (r + 1) % n, k) for k in range(20)]
assert [w.recv(source=(r - 1) % n, tag=k) for k in reversed(range(20))] == [('tag', k) for k in reversed(range(20))]
MPI.Request.waitall(q)
if r == 0: print('python agrees')
";
    assert_eq!(run("script", &["-c", script]), "python agrees\n");
}

#[test]
fn mpi4py_with_the_abi_of_openmpi() {
    mpi4py(&venv(), "openmpi");
}

#[test]
fn mpi4py_with_the_abi_of_mpich() {
    mpi4py(&venv(), "mpich");
}

/// Built from source with vmpicc, for libmpi_abi.so.1 (once: it takes minutes).
#[test]
fn mpi4py_with_the_standard_abi() {
    let turn = Turn::take();
    let dir = mpi4py_of_our_own();
    drop(turn);
    mpi4py(&dir, "mpiabi");
    let script = "from mpi4py import MPI; print(MPI.Get_version(), MPI.Get_library_version().split()[0])";
    let outcome = vmpirun("version", 1, 1).arg(dir.join("bin/python")).args(["-c", script]).run();
    succeeded("mpi4py built with vmpicc", &outcome);
    assert_eq!(outcome.stdout, "(5, 0) vmpi\n");
}

/// `ompi_info` is linked with the library whose place the face takes, and programs start it to ask for CUDA: as a rank, and as a rank's child.
#[test]
fn ompi_info_asks_open_mpis_own_library() {
    let own = Command::new("ompi_info").args(["--parsable", "--all"]).output().expect("openmpi-bin is installed");
    let wanted = String::from_utf8_lossy(&own.stdout);
    assert!(wanted.contains("mpi_built_with_cuda_support:value"), "{wanted}");
    for program in
        ["ompi_info --parsable --all", "sh -c 'ompi_info --parsable --all; true'", "env ompi_info --parsable --all"]
    {
        let outcome = vmpirun("ompi_info", 1, 1).args(["sh", "-c", &format!("exec {program}")]).run();
        succeeded(program, &outcome);
        assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), (&*wanted, ""), "{program}");
    }
    let outcome = vmpirun("ompi_info", 1, 1).args(["ompi_info", "--parsable", "--all"]).run();
    succeeded("ompi_info", &outcome);
    assert_eq!(outcome.stdout, wanted);
}
