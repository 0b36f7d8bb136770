//! Several jobs of one daemon share the cores of the node: each gets the right answers, none holds up the others.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::leftovers::{eventually, processes_of};
use vmpi_tests::place::{Turn, bin_dir};
use vmpi_tests::report;

/// A daemon started by hand, as an administrator or a user with several jobs does.
struct Daemon {
    keeper: Child,
    dir: PathBuf,
    _turn: Turn,
}

impl Daemon {
    fn start(name: &str) -> Daemon {
        let turn = Turn::take();
        let dir = std::env::temp_dir().join(format!("vmpi-test-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let keeper = Command::new(bin_dir().join("vmpid"))
            .arg("--foreground")
            .env("VMPI_RUNTIME_DIR", &dir)
            .stdin(Stdio::null())
            .spawn()
            .expect("vmpid starts");
        assert!(eventually(Duration::from_secs(10), || dir.join("vmpid.sock").exists()), "vmpid makes its socket");
        Daemon { keeper, dir, _turn: turn }
    }

    fn vmpirun(&self, args: &[&str], binary: &std::path::Path, of_program: &[&str]) -> Child {
        Command::new("timeout")
            .args(["-k", "5", "120"])
            .arg(bin_dir().join("vmpirun"))
            .args(args)
            .arg("--report=full")
            .arg(binary)
            .args(of_program)
            .env("VMPI_RUNTIME_DIR", &self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("vmpirun starts")
    }

    /// The program's processes of any job of this daemon.
    fn ranks(&self, program: &str) -> Vec<i32> {
        processes_of(&self.dir).iter().filter(|p| p.name.starts_with(program)).map(|p| p.pid).collect()
    }

    /// SIGTERM; nothing may be left.
    fn stop(mut self) {
        let pid = Pid::from_raw(self.keeper.id() as i32);
        kill(pid, Signal::SIGTERM).expect("the daemon lives");
        self.keeper.wait().expect("it is our child");
        let left = || processes_of(&self.dir);
        assert!(eventually(Duration::from_secs(5), || left().is_empty()), "{:?}", left());
    }
}

impl Drop for Daemon {
    /// Also when a test has failed: with its keeper the daemon ends, and with that all jobs.
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The seconds that the column OTHER-JOBS of the report shows, summed over the cores.
fn lent_seconds(stderr: &str) -> f64 {
    let mut lines = stderr.lines().skip_while(|line| !line.starts_with("CPU "));
    let names: Vec<&str> = lines.next().expect("a report").split_whitespace().collect();
    let column = names.iter().position(|name| *name == "OTHER-JOBS").expect("the column OTHER-JOBS");
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .take_while(|cells| cells.len() == names.len())
        .map(|cells| cells[column].trim_end_matches('s').parse::<f64>().expect("seconds"))
        .sum()
}

/// It ended well and at most one of its ranks was RUNNING on a core. The output as text.
fn right(what: &str, job: Child) -> (String, String) {
    let Output { status, stdout, stderr } = job.wait_with_output().expect("vmpirun can be waited for");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&stdout).into_owned(), String::from_utf8_lossy(&stderr).into_owned());
    assert!(status.success(), "{what}: {status}\n{stdout}\n{stderr}");
    let cores = report::cores(&stderr);
    assert!(!cores.is_empty(), "{what}: no report in {stderr}");
    assert!(cores.iter().all(|core| core.violations == 0 && core.max_running <= 1), "{what}: {cores:?}");
    (stdout, stderr)
}

#[test]
fn two_jobs_get_the_cores_in_turn() {
    let daemon = Daemon::start("share");
    let traffic = program("traffic.c", Mpi::Openmpi);
    let other = program("traffic.c", Mpi::Mpich);
    let jobs = [
        daemon.vmpirun(&["-n", "6"], &traffic, &["300", "7"]),
        daemon.vmpirun(&["-n", "4"], &other, &["300", "11"]),
        daemon.vmpirun(&["-n", "5"], &traffic, &["300", "13"]),
    ];
    let mut lent = 0.0;
    for (number, job) in jobs.into_iter().enumerate() {
        let (stdout, stderr) = right(&format!("job {number}"), job);
        assert!(stdout.contains("all checks hold"), "{stdout}");
        lent += lent_seconds(&stderr);
    }
    assert!(lent > 0.0, "the jobs ran at the same time and no core ever went from one to the other");
    daemon.stop();
}

/// A job that never calls MPI after its start and one whose ranks are asleep do not hold up another.
#[test]
fn a_job_that_computes_or_waits_holds_up_nobody() {
    let daemon = Daemon::start("hold");
    let (deaths, work) = (program("deaths.c", Mpi::Openmpi), program("traffic.c", Mpi::Openmpi));
    let mut others: Vec<Child> =
        ["compute", "recv"].map(|how| daemon.vmpirun(&["-n", "4"], &deaths, &[how, "0"])).into_iter().collect();
    assert!(eventually(Duration::from_secs(20), || daemon.ranks("deaths").len() >= 8), "all ranks are there");
    let started = Instant::now();
    let (stdout, _) = right("the job beside them", daemon.vmpirun(&["-n", "4"], &work, &["20", "3"]));
    assert!(stdout.contains("all checks hold"), "{stdout}");
    eprintln!("took {:?}", started.elapsed());
    for other in &mut others {
        assert!(other.try_wait().expect("our child").is_none(), "the other jobs go on");
        kill(Pid::from_raw(other.id() as i32), Signal::SIGTERM).expect("it lives");
        other.wait().expect("our child");
    }
    daemon.stop();
}

/// kill -9 of ranks of one job, again and again: the other gets its cores and its right answers.
#[test]
fn a_dying_job_leaves_its_cores_to_the_other() {
    let daemon = Daemon::start("dies");
    let (deaths, work) = (program("deaths.c", Mpi::Openmpi), program("traffic.c", Mpi::Openmpi));
    let steady = daemon.vmpirun(&["-n", "6"], &work, &["300", "5"]);
    for how in ["compute", "recv", "init", "compute", "recv"] {
        let mut job = daemon.vmpirun(&["-n", "4"], &deaths, &[how, "0"]);
        assert!(eventually(Duration::from_secs(20), || daemon.ranks("deaths").len() >= 4), "all ranks are there");
        let victim = daemon.ranks("deaths")[1];
        kill(Pid::from_raw(victim), Signal::SIGKILL).expect("the victim lives");
        assert!(!job.wait().expect("our child").success(), "{how}: a killed rank is no success");
        assert!(eventually(Duration::from_secs(10), || daemon.ranks("deaths").is_empty()), "{how}: no survivor");
    }
    let (stdout, _) = right("the steady job", steady);
    assert!(stdout.contains("all checks hold"), "{stdout}");
    daemon.stop();
}
