//! What other MPIs do otherwise (findings/) is right here.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::bin_dir;

fn nothing_wrong(outcome: &Outcome, what: &str) {
    assert_eq!((outcome.code, outcome.stdout.trim(), outcome.stderr.as_str()), (0, "0 wrong", ""), "{what}");
}

#[test]
fn ranks_agree_on_what_no_comparison_can_tell_apart() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        for (ranks, v) in [(2, 1), (3, 3), (5, 3), (8, 4)] {
            let run = Vmpirun::new("agree").args(["-n", &format!("{ranks}"), "-V", &format!("{v}")]);
            let run = run.arg(program("surprises.c", mpi)).arg("agree").deadline(Duration::from_secs(300));
            nothing_wrong(&run.run(), &format!("{mpi:?}, {ranks} ranks"));
        }
    }
}

#[test]
fn ranks_of_two_nodes_agree_on_what_no_comparison_can_tell_apart() {
    let nodes = Nodes::new("agree");
    for ranks in ["3", "6"] {
        let run = nodes.vmpirun("agree").args(["-n", ranks]).arg(program("surprises.c", Mpi::Openmpi)).arg("agree");
        nothing_wrong(&run.deadline(Duration::from_secs(300)).run(), ranks);
    }
}

#[test]
fn dimensions_clocks_file_pointers_and_long_doubles_are_right() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        for what in ["dims", "pointer", "clock", "quad", "small", "attributes"] {
            let run = Vmpirun::new("surprises").args(["-n", "3", "-V", "3"]);
            let file = run.runtime_dir().join("file");
            let run = run.arg(program("surprises.c", mpi)).arg(what).arg(file);
            nothing_wrong(&run.deadline(Duration::from_secs(120)).run(), &format!("{mpi:?} {what}"));
        }
    }
}

/// `nohup vmpirun`: what it finds ignored it leaves alone, on one node and on several.
#[test]
fn nohup_keeps_a_job_from_dying_of_a_hang_up_also_on_two_nodes() {
    // The shell's trap is what nohup does.
    const IGNORES: [&str; 3] = ["-c", "trap '' HUP; exec \"$@\"", "sh"];
    let goes_on = |run: Vmpirun| {
        let shell = "echo ready $VMPI_RANK $$; sleep 3; echo done";
        let mut job = run.args(["-n", "2", "sh", "-c", shell]).start();
        job.ready(2);
        kill(Pid::from_raw(job.pid()), Signal::SIGHUP).expect("it lives");
        let outcome = job.finish();
        assert_eq!((outcome.code, outcome.stdout.matches("done").count()), (0, 2), "{outcome:?}");
    };
    goes_on(Vmpirun::wrapped("nohup", "sh", &IGNORES));
    let nodes = Nodes::new("nohup");
    let run = Vmpirun::by_on_node("nohup-two", &nodes.enter(), &nodes.a).arg("sh").args(IGNORES);
    let run = run.arg(bin_dir().join("vmpirun")).args(["--host", &format!("{},{}", nodes.a, nodes.b)]);
    goes_on(run.args(["-V", "1", "--map-by", "node", "--launcher-exec"]).arg(nodes.enter()));
}
