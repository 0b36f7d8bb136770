//! Ranks that end badly: what vmpirun tells of each kind of death, and that nothing else about it changes.

use nix::sys::resource::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::{Turn, top, venv};
use vmpi_tests::scratch::Scratch;

fn built(name: &str, mpi: Mpi) -> PathBuf {
    Turn::beside_others();
    let _turn = Turn::take();
    program(name, mpi)
}

/// `ranks` ranks of `name`, of which `which` (or "all") die as `what` says.
fn death(name: &str, mpi: Mpi, ranks: u32, flags: &[&str], what: &str, which: &str) -> Outcome {
    let binary = built(name, mpi);
    let run = Vmpirun::new("crash").args(["-n", &ranks.to_string()]).args(flags);
    let outcome = run.arg(binary).args([what, which]).run();
    assert!(!outcome.stdout.contains("alive"), "{what}: {outcome:?}");
    outcome
}

fn assert_says(outcome: &Outcome, code: i32, sentences: &[&str]) {
    assert_eq!(outcome.code, code, "{}", outcome.stderr);
    for sentence in sentences {
        assert!(outcome.stderr.contains(sentence), "\"{sentence}\" is missing in\n{}", outcome.stderr);
    }
}

/// What is told of rank 1's death in C: the reason, the frames, the last sentence.
#[test]
fn each_signal_is_told_with_its_stack() {
    let cases: [(&str, i32, &[&str]); 10] = [
        ("null", 139, &["got signal 11 (SIGSEGV", "a null pointer: address 0x0", "null_pointer at crash.c:"]),
        ("stack", 139, &["its stack is used up", "deeper at crash.c:", "times)"]),
        ("divide", 136, &["an integer divided by zero", "divide at crash.c:"]),
        ("divide-double", 136, &["a floating-point number divided by zero", "divide_double at crash.c:"]),
        ("abort", 134, &["got signal 6 (SIGABRT", "  #", "main at crash.c:"]),
        ("assert", 134, &["Assertion `zero == 1' failed", "check at crash.c:"]),
        ("call", 139, &["a null pointer", "#1  call_nothing at crash.c:"]),
        ("bus", 135, &["signal 7 (SIGBUS", "is too short", "beyond_the_file at crash.c:"]),
        ("illegal", 132, &["signal 4 (SIGILL", "main at crash.c:"]),
        ("raise", 139, &["got signal 11 (SIGSEGV", "main at crash.c:"]),
    ];
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        for (what, code, says) in cases {
            let outcome = death("crash.c", mpi, 3, &[], what, "1");
            assert_says(&outcome, code, says);
            assert_says(
                &outcome,
                code,
                &["vmpirun: rank 1 (pid ", "was killed by signal", "the other ranks were ended"],
            );
            assert!(!outcome.stderr.contains("__libc_start"), "what starts a program is left out: {}", outcome.stderr);
            // A neighbour of which libc says where it is, in the place of functions that have no name.
            assert!(!outcome.stderr.contains("__sched_cpufree"), "{}", outcome.stderr);
            assert_eq!(outcome.stderr.matches(", here:").count(), 1, "{}", outcome.stderr);
        }
    }
}

#[test]
fn a_thread_and_a_death_within_mpi_are_told() {
    let outcome = death("crash.c", Mpi::Openmpi, 2, &[], "thread", "1");
    assert_says(&outcome, 139, &["rank 1 (pid ", ", thread ", "#1  in_thread at crash.c:"]);
    let outcome = death("crash.c", Mpi::Mpich, 2, &[], "buffer", "1");
    assert_says(&outcome, 139, &["#0  MPI_Send in vmpi\n", "bad_buffer at crash.c:", "calling MPI_Send at crash.c:"]);
}

#[test]
fn mpi_errors_aborts_and_exits_name_the_line() {
    let outcome = death("crash.c", Mpi::Openmpi, 2, &[], "error", "1");
    assert_says(
        &outcome,
        6,
        &["ended the job in MPI_Send", ", calling MPI_Send at crash.c:", "(bad_rank): MPI_Send failed"],
    );
    let outcome = death("crash.c", Mpi::Mpich, 2, &[], "mpi-abort", "1");
    assert_says(&outcome, 9, &["aborted the job with code 9, calling MPI_Abort at crash.c:", "(main)"]);
    let outcome = death("crash.c", Mpi::Openmpi, 2, &[], "exit", "1");
    assert_says(
        &outcome,
        3,
        &[
            "called exit with code 3 before MPI_Finalize",
            "exited with code 3 without calling MPI_Finalize, at crash.c:",
            "(give_up)",
        ],
    );
}

/// Ranks that fail in the same place are told once, with their list.
#[test]
fn the_same_stack_of_many_ranks_is_told_once() {
    let outcome = death("crash.c", Mpi::Openmpi, 4, &["-V", "2", "--cores", "0,1"], "null", "all");
    assert_says(&outcome, 139, &["vmpirun: ranks 0-3 got signal 11", "null_pointer at crash.c:"]);
    assert_eq!(outcome.stderr.matches("null_pointer at crash.c:").count(), 1, "{}", outcome.stderr);
}

#[test]
fn the_programs_own_handlers_come_first() {
    let outcome = death("crash.c", Mpi::Openmpi, 2, &[], "own-handler", "1");
    assert_says(&outcome, 7, &["own handler"]);
    assert!(!outcome.stderr.contains("got signal"), "{}", outcome.stderr);
}

/// A child that a rank has forked dies for itself.
#[test]
fn a_childs_death_is_no_ranks() {
    let binary = built("crash.c", Mpi::Openmpi);
    let outcome = Vmpirun::new("crash-fork").args(["-n", "2"]).arg(binary).args(["fork", "1"]).run();
    assert!(outcome.code == 0 && !outcome.stderr.contains("got signal"), "{outcome:?}");
}

#[test]
fn nothing_is_told_if_nothing_is_wanted() {
    let outcome = death("crash.c", Mpi::Openmpi, 2, &["--on-crash", "none"], "null", "1");
    assert_says(&outcome, 139, &["was killed by signal 11"]);
    assert!(!outcome.stderr.contains("crash.c:"), "{}", outcome.stderr);
}

/// In a job that survives deaths the same is told, and it goes on.
#[test]
fn a_job_that_goes_on_tells_too() {
    let binary = built("crash.c", Mpi::Openmpi);
    let run = Vmpirun::new("crash-recovery").args(["-n", "3", "--enable-recovery"]);
    let outcome = run.arg(binary).args(["null", "1"]).run();
    // The others learn of it in their barrier, where errors are fatal.
    assert!(
        outcome.stderr.contains("rank 1 (pid ") && outcome.stderr.contains("null_pointer at crash.c:"),
        "{outcome:?}"
    );
    assert!(outcome.stderr.contains("in MPI_Barrier"), "{outcome:?}");
}

#[test]
fn exceptions_of_c_plus_plus_are_told() {
    for (what, says) in [
        ("throw", &["what():  no such value: 4", "refuse at crash.cc:", "main at crash.cc:"][..]),
        ("range", &["std::out_of_range", "beyond at crash.cc:", " at crash.cc:13 (beyond)"]),
    ] {
        let outcome = death("crash.cc", Mpi::Mpich, 2, &[], what, "1");
        assert_says(&outcome, 134, says);
        assert_says(&outcome, 134, &["got signal 6 (SIGABRT", "or an uncaught C++ exception"]);
    }
}

/// libgfortran's own words come, too.
#[test]
fn deaths_of_fortran_programs_are_told() {
    let checked = Scratch::new("crash-checked");
    let binary = checked.path().join("crash");
    let source = top().join("tests/programs/crash.f90");
    let flags = ["-g", "-O1", "-cpp", "-fcheck=bounds", "-ffpe-trap=zero", "-w", "-o"];
    let made = Command::new("mpif90.mpich").args(flags).arg(&binary).arg(source).status();
    assert!(made.is_ok_and(|status| status.success()), "mpif90.mpich: run `cargo xtask setup` first");
    let cases: [(&str, i32, &[&str]); 6] = [
        ("null", 139, &["Program received signal SIGSEGV", "got signal 11", "die at crash.f90:"]),
        (
            "fpe",
            136,
            &["Program received signal SIGFPE", "a floating-point number divided by zero", "die at crash.f90:25"],
        ),
        (
            "bounds",
            2,
            &[
                "Index '5' of dimension 1 of array 'values' above upper bound",
                "called exit with code 2",
                "die at crash.f90:30",
            ],
        ),
        ("stop", 4, &["STOP 4", "called exit with code 4 before MPI_Finalize", "die at crash.f90:"]),
        ("error-stop", 5, &["ERROR STOP 5", "called exit with code 5", "die at crash.f90:"]),
        ("mpi", 6, &["calling ", " at crash.f90:"]),
    ];
    for (what, code, says) in cases {
        let outcome = Vmpirun::new("crash-fortran").args(["-n", "2"]).arg(&binary).arg(what).run();
        assert_says(&outcome, code, says);
        assert_says(&outcome, code, &["vmpirun: rank 1 (pid "]);
    }
}

/// Open MPI's mpi_f08 module calls through a library of its own, MPICH's has one name for all: the call is named as the standard writes it, with its line.
#[test]
fn calls_through_mpi_f08_are_told_with_their_lines() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        let binary = built("where_f08.f90", mpi);
        let run = Vmpirun::new("crash-f08").args(["-n", "2", "-V", "2", "--on-deadlock", "abort"]);
        let outcome = run.arg(binary).run();
        assert_says(&outcome, 123, &["rank 1 waits in MPI_Recv at where_f08.f90:14 (ring) on MPI_COMM_WORLD"]);
    }
}

/// Python prints the traceback itself; it comes whole, and the others are told of.
#[test]
fn a_python_exception_comes_whole() {
    let script = "
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
def refuse(value):
    raise ValueError(f'no such value: {value}')
def last_of(rank):
    if rank == comm.size - 1:
        refuse(4)
last_of(comm.rank)
comm.Barrier()
";
    // As mpi4py advises, so that an exception of one rank ends the job.
    let run = Vmpirun::new("crash-python").args(["-n", "3", "-prepend-rank"]);
    let outcome = run.arg(venv().join("bin/python")).args(["-m", "mpi4py", "-c", script]).run();
    let lines = [
        "[2] Traceback (most recent call last):\n",
        "in last_of\n",
        "in refuse\n",
        "[2] ValueError: no such value: 4\n",
    ];
    assert_says(&outcome, 1, &lines);
    assert_says(&outcome, 1, &["rank 2 (pid ", "aborted the job with code 1", "calling MPI_Abort at "]);
    let traceback: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("[2] ")).collect();
    assert!(traceback[0].ends_with("Traceback (most recent call last):"), "{outcome:?}");
    assert!(traceback.iter().any(|line| line.ends_with("ValueError: no such value: 4")), "{outcome:?}");
}

/// Of a rank that has been killed it is known whether the kernel did it for want of memory.
#[test]
fn a_lack_of_memory_is_told_for_certain() {
    let outcome = death("crash.c", Mpi::Openmpi, 2, &[], "kill", "1");
    assert_says(&outcome, 137, &["was killed by signal 9 (SIGKILL): "]);
    let (v1, v2) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
    let (root, limit) = if v1.is_dir() { (v1, "memory.limit_in_bytes") } else { (v2, "memory.max") };
    let group = root.join(format!("vmpi-test-{}", std::process::id()));
    if fs::create_dir(&group).is_err() || fs::write(group.join(limit), "300000000").is_err() {
        let _ = fs::remove_dir(&group);
        eprintln!("skipped: no control group with a memory limit can be made in {}", root.display());
        return;
    }
    let binary = built("crash.c", Mpi::Openmpi);
    let enter = ["-c", "echo $$ > $0/cgroup.procs && exec \"$@\"", group.to_str().expect("a plain path")];
    let outcome = Vmpirun::wrapped("crash-oom", "sh", &enter).args(["-n", "2"]).arg(binary).args(["memory", "1"]).run();
    fs::remove_dir(&group).expect("no process is left in it");
    assert_says(
        &outcome,
        137,
        &[
            "was killed by signal 9 (SIGKILL): by the kernel's out-of-memory killer, which has ended 1 process of the control group",
            "(limit 286 MiB)",
        ],
    );
}

/// Where the hard limit allows one, `--on-crash core` lets a rank write a core dump, with the stack that it died with.
#[test]
fn a_core_dump_is_what_it_was() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).expect("limits can be read");
    if pattern.trim() != "core" || hard < 1 << 30 {
        eprintln!("skipped: core dumps go to {} (/proc/sys/kernel/core_pattern), hard limit {hard}", pattern.trim());
        return;
    }
    let binary = built("crash.c", Mpi::Openmpi);
    let keep = Scratch::new("crash-core-kept");
    let run = Vmpirun::new("crash-core").args(["-n", "2", "--on-crash", "core"]).cwd(keep.path());
    let outcome = run.arg(&binary).args(["null", "1"]).run();
    assert_says(&outcome, 139, &["null_pointer at crash.c:"]);
    let mut cores = fs::read_dir(keep.path()).expect("it is there").flatten().map(|entry| entry.path());
    let core = cores.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core")));
    let core = core.unwrap_or_else(|| panic!("no core dump: {outcome:?}"));
    let gdb = Command::new("gdb").args(["-batch", "-ex", "bt 1"]).arg(&binary).arg(&core).output();
    let Ok(gdb) = gdb else { return eprintln!("skipped: no gdb to read the core dump") };
    let text = String::from_utf8_lossy(&gdb.stdout);
    assert!(
        text.contains(" in null_pointer () at ") || text.contains("#0  null_pointer () at "),
        "the innermost frame is not the program's: {text}"
    );
}
