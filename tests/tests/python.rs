//! Scripts: what is told of them is told by their own lines, and what their processes start is no rank.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::venv;

/// A script of one kind of end, with its lines counted from 1.
const ENDS: &str = "\
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
def abort():
    if comm.rank == 1: comm.Abort(3)
    comm.recv(source=1)
def fatal():
    comm.Set_errhandler(MPI.ERRORS_ARE_FATAL)
    comm.Send(bytearray(8), 7)
def ring():
    comm.recv(source=(comm.rank + 1) % comm.size)
def leaves():
    if comm.rank == 0: comm.recv(source=1)
def main():
    globals()[sys.argv[1]]()
main()
";

fn script(name: &str, text: &str) -> Vmpirun {
    let run = Vmpirun::new(name).with_file(&format!("{name}.py"), text);
    run.args(["-n", "2", "-V", "2", "--on-deadlock", "abort"])
}

fn python(run: Vmpirun, name: &str, args: &[&str]) -> Vmpirun {
    let path = run.runtime_dir().join(format!("{name}.py"));
    run.arg(venv().join("bin/python")).arg(path).args(args)
}

fn assert_says(outcome: &Outcome, code: i32, sentences: &[&str]) {
    assert_eq!(outcome.code, code, "{outcome:?}");
    for sentence in sentences {
        assert!(outcome.stderr.contains(sentence), "\"{sentence}\" is missing in\n{}", outcome.stderr);
    }
}

#[test]
fn what_is_told_of_a_script_names_its_lines() {
    let cases: [(&str, i32, &[&str]); 4] = [
        (
            "abort",
            3,
            &[
                " mpi4py.MPI.Comm.Abort at ",
                " abort at ends.py:5\n",
                " main at ends.py:15\n",
                " <module> at ends.py:16\n",
                "calling MPI_Abort at ends.py:5 (abort)",
            ],
        ),
        ("fatal", 6, &[" fatal at ends.py:9\n", "at ends.py:9 (fatal): MPI_Send"]),
        ("ring", 123, &["rank 0 waits in MPI_", " at ends.py:11 (ring) on MPI_COMM_WORLD"]),
        (
            "leaves",
            123,
            &[" at ends.py:13 (leaves) on MPI_COMM_WORLD", "rank 1 waits in MPI_Finalize at the script's end"],
        ),
    ];
    for (what, code, says) in cases {
        let outcome = python(script("ends", ENDS), "ends", &[what]).run();
        assert_says(&outcome, code, says);
        assert!(!outcome.stderr.contains("_PyEval"), "{what}: frames of the interpreter:\n{}", outcome.stderr);
    }
}

#[test]
fn the_stacks_of_scripts_are_theirs() {
    let text = "\
import threading, time
from mpi4py import MPI
def sleeps():
    time.sleep(100)
threading.Thread(target=sleeps, daemon=True).start()
def waits():
    print('ready', flush=True)
    MPI.COMM_WORLD.recv(source=0)
if MPI.COMM_WORLD.rank == 0:
    sleeps()
waits()
";
    let mut job = python(script("stacks", text), "stacks", &[]).start();
    job.read_until(|text| text.contains("ready\n"));
    let told = job.vmpictl(&["stacks", "--threads"]);
    assert_eq!(told.code, 0, "{told:?}");
    for frame in [
        " waits at stacks.py:8\n",
        " <module> at stacks.py:11\n",
        " sleeps at stacks.py:4\n",
        " <module> at stacks.py:10\n",
    ] {
        assert!(told.stdout.contains(frame), "\"{frame}\" is missing in\n{}", told.stdout);
    }
    kill(Pid::from_raw(job.pid()), Signal::SIGINT).expect("it lives");
    assert_eq!(job.finish().code, 130);
}

/// A process that a rank starts has inherited all that says who the rank is. It is none itself.
#[test]
fn what_a_rank_starts_is_a_program_of_its_own() {
    let text = "\
import multiprocessing, os, sys
from mpi4py import MPI
def work():
    world = MPI.COMM_WORLD
    world.Barrier()
    os.write(1, f'child {world.rank} of {world.size}: {world.allreduce(5)} {world.bcast(\"x\")}\\n'.encode())
if __name__ == '__main__':
    for how in ['spawn', 'forkserver']:
        child = multiprocessing.get_context(how).Process(target=work)
        child.start()
        child.join()
        assert child.exitcode == 0, child.exitcode
    child = os.fork()
    if child == 0:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    world = MPI.COMM_WORLD
    os.write(1, f'rank {world.rank} of {world.size}: {world.allreduce(5)}\\n'.encode())
";
    for flags in [&["--check=cheap"][..], &["--chaos", "3"]] {
        let outcome = python(script("children", text).args(flags), "children", &[]).run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let mut lines: Vec<&str> = outcome.stdout.lines().collect();
        lines.sort_unstable();
        let child = "child 0 of 1: 5 x";
        assert_eq!(lines, [child, child, child, child, "rank 0 of 2: 10", "rank 1 of 2: 10"], "{outcome:?}");
    }
}

/// A script that needs 3.5 s to write its checkpoint.
const SAVES: &str = "\
import os, signal, time
def save(*_):
    for part in range(35):
        time.sleep(0.1)
    os.write(1, b'saved\\n')
    os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b'ready\\n')
time.sleep(100)
";

/// Exit code, ranks that have saved, and the time that it took, of a job of so many ranks that gets these signals, each so many ms after the one before.
fn saved(run: Vmpirun, ranks: usize, signals: &[(Signal, u64)]) -> (i32, usize, f64) {
    let mut job = run.start();
    job.read_until(|text| text.matches("ready\n").count() == ranks);
    let begun = Instant::now();
    for (signal, ms) in signals {
        std::thread::sleep(Duration::from_millis(*ms));
        kill(Pid::from_raw(job.pid()), *signal).expect("it lives");
    }
    let outcome = job.finish();
    (outcome.code, outcome.stdout.matches("saved\n").count(), begun.elapsed().as_secs_f64())
}

/// Batch systems, and timeout(1), which signals twice, announce the end by SIGTERM: a handler has the time to write a checkpoint.
#[test]
fn a_checkpoint_can_be_written_after_sigterm() {
    let save = |flags: &[&str], signals: &[(Signal, u64)]| {
        saved(python(script("saves", SAVES).args(flags), "saves", &[]), 2, signals)
    };
    let (term, int) = (Signal::SIGTERM, Signal::SIGINT);
    let (code, saved, _) = save(&[], &[(term, 0), (term, 1)]);
    assert_eq!((code, saved), (143, 2), "SIGTERM twice at once is one");
    let (code, saved, took) = save(&[], &[(term, 0), (term, 500)]);
    assert_eq!((code, saved), (143, 0), "a second one kills");
    assert!(took < 3.0, "{took}");
    let (code, saved, _) = save(&[], &[(int, 0)]);
    assert_eq!((code, saved), (130, 0), "after Ctrl-C two seconds are left");
    let (code, saved, _) = save(&["--kill-after", "20"], &[(int, 0)]);
    assert_eq!((code, saved), (130, 2), "or as many as were asked for");
}

#[test]
fn a_checkpoint_can_be_written_on_both_nodes_after_sigterm() {
    let nodes = Nodes::new("saves");
    let save = |flags: &[&str], signals: &[(Signal, u64)]| {
        let run = nodes.vmpirun("saves").with_file("saves.py", SAVES).args(["-n", "4"]).args(flags);
        saved(python(run, "saves", &[]), 4, signals)
    };
    let (term, int) = (Signal::SIGTERM, Signal::SIGINT);
    let (code, saved, took) = save(&[], &[(term, 0), (term, 1)]);
    assert_eq!((code, saved), (143, 4), "{took}");
    let (code, saved, _) = save(&[], &[(term, 0), (term, 500)]);
    assert_eq!((code, saved), (143, 0), "a second one kills on both");
    let (code, saved, _) = save(&["--kill-after", "20"], &[(int, 0)]);
    assert_eq!((code, saved), (130, 4), "as many as were asked for");
}
