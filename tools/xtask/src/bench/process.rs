//! One run of a benchmark: a process group under a deadline, its lines, its CPU time; nothing of it is left afterwards.
//!
//! This process adopts what its descendants leave behind (a subreaper), so it can wait for all of them: that makes
//! the CPU time whole, and no daemon of a peer outlives its run.

use crate::Result;
use crate::shell::shown;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::time::TimeValLike;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How often a wait looks for ^C.
const LOOK: Duration = Duration::from_millis(50);
/// What is told to end has this long before it is killed.
const GRACE: Duration = Duration::from_secs(2);
/// Output that comes after the end of the process that was started is waited for this long.
const REST: Duration = Duration::from_millis(500);
/// Ranks that have said that they are about to wait do so after this.
const SETTLING: Duration = Duration::from_millis(300);
/// The lines of standard error that a report of failure keeps.
const SAID: usize = 6;
/// What a program prints when all of its ranks are about to wait for ever.
pub const SITTING: &str = "! sitting";

/// A series of runs: knows whether it has been interrupted.
pub struct Series {
    interrupted: Arc<AtomicBool>,
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Done,
    Failed(String),
    TooLong,
    Interrupted,
}

/// What a run was.
pub struct Finished {
    pub outcome: Outcome,
    pub lines: Vec<String>,
    pub wall_s: f64,
    /// Of all its processes that have ended.
    pub cpu_s: f64,
    pub sitting: Option<Sitting>,
}

/// What ranks that only wait use.
pub struct Sitting {
    /// CPU seconds of all processes of the job, launcher and daemons included, during the time looked at.
    pub cpu_s: f64,
    /// Mean proportional set size of a rank; None if no rank was found.
    pub pss_kb: Option<f64>,
}

enum Event {
    Line(String),
    Said(String),
    Closed,
    Ended(std::io::Result<ExitStatus>, Instant),
}

impl Series {
    pub fn begin() -> Result<Series> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, interrupted.clone()).map_err(|e| format!("signal {signal}: {e}"))?;
        }
        nix::sys::prctl::set_child_subreaper(true).map_err(|e| format!("PR_SET_CHILD_SUBREAPER: {e}"))?;
        Ok(Series { interrupted })
    }

    pub fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Run to the end or for `limit`. With `sit`, the program prints [`SITTING`] and waits for ever; it is looked at for that
    /// long, then ended.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn run(&self, command: &mut Command, limit: Duration, sit: Option<(Duration, &Path)>) -> Result<Finished> {
        let backing = Backing::make()?;
        for name in ["OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"] {
            command.env(name, &backing.0);
        }
        let before = children_cpu_s();
        let start = Instant::now();
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{} does not start: {e}", shown(command)))?;
        let group = Pid::from_raw(child.id() as i32);
        let (sender, events) = channel();
        read(child.stdout.take(), sender.clone(), Event::Line);
        read(child.stderr.take(), sender.clone(), Event::Said);
        std::thread::spawn(move || {
            let status = child.wait();
            let _ = sender.send(Event::Ended(status, Instant::now()));
        });
        let mut run = Finished { outcome: Outcome::Done, lines: Vec::new(), wall_s: 0.0, cpu_s: 0.0, sitting: None };
        let mut said: Vec<String> = Vec::new();
        let mut told_to_end: Option<Instant> = None;
        let mut open = 2;
        let mut ended: Option<Instant> = None;
        while ended.is_none() || open > 0 {
            match self.next(&events, &mut run, start + limit, told_to_end.is_some() || ended.is_some()) {
                Some(Event::Line(line)) if line == SITTING && sit.is_some() => {
                    run.sitting = sit.and_then(|(time, program)| self.look(time, program));
                    told_to_end = Some(end_group(group));
                }
                Some(Event::Line(line)) => run.lines.push(line),
                Some(Event::Said(line)) => {
                    said.push(line);
                    if said.len() > SAID {
                        said.remove(0);
                    }
                }
                Some(Event::Closed) => open -= 1,
                Some(Event::Ended(status, at)) => {
                    ended = Some(at);
                    run.wall_s = (at - start).as_secs_f64();
                    let fine = told_to_end.is_some() || status.as_ref().is_ok_and(ExitStatus::success);
                    if !fine && run.outcome == Outcome::Done {
                        let how = status.map_or_else(|e| e.to_string(), |status| status.to_string());
                        run.outcome = Outcome::Failed(how);
                    }
                }
                None => {}
            }
            if run.outcome != Outcome::Done && told_to_end.is_none() && ended.is_none() {
                told_to_end = Some(end_group(group));
            }
            if told_to_end.is_some_and(|at| at.elapsed() > GRACE) && ended.is_none() {
                let _ = killpg(group, Signal::SIGKILL);
            }
            if ended.is_some_and(|at| at.elapsed() > REST) {
                break;
            }
        }
        leave_nothing(group);
        run.cpu_s = children_cpu_s() - before;
        if let Outcome::Failed(how) = &mut run.outcome
            && !said.is_empty()
        {
            *how = format!("{how}: {}", said.join(" / "));
        }
        Ok(run)
    }

    /// The next event, or what the clock and ^C say about the run.
    fn next(&self, events: &Receiver<Event>, run: &mut Finished, deadline: Instant, ending: bool) -> Option<Event> {
        match events.recv_timeout(LOOK) {
            Ok(event) => return Some(event),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
        if self.interrupted() {
            run.outcome = Outcome::Interrupted;
        } else if !ending && Instant::now() > deadline {
            run.outcome = Outcome::TooLong;
        }
        None
    }

    /// What all processes below this one use during `time`.
    fn look(&self, time: Duration, program: &Path) -> Option<Sitting> {
        self.sleep(SETTLING);
        let before: BTreeMap<i32, f64> = descendants().into_iter().map(|pid| (pid, cpu_s(pid))).collect();
        self.sleep(time);
        let after = descendants();
        let cpu_s = after.iter().map(|pid| cpu_s(*pid) - before.get(pid).copied().unwrap_or(0.0)).sum();
        let ranks = after.iter().filter(|pid| runs(**pid, program));
        let sizes: Vec<f64> = ranks.filter_map(|pid| pss_kb(*pid)).collect();
        let pss_kb = (!sizes.is_empty()).then(|| sizes.iter().sum::<f64>() / sizes.len() as f64);
        (!self.interrupted()).then_some(Sitting { cpu_s, pss_kb })
    }

    fn sleep(&self, time: Duration) {
        let end = Instant::now() + time;
        while !self.interrupted() && Instant::now() < end {
            std::thread::sleep(LOOK.min(end.saturating_duration_since(Instant::now())));
        }
    }
}

/// Tell a group to end; when that was.
fn end_group(group: Pid) -> Instant {
    let _ = killpg(group, Signal::SIGTERM);
    Instant::now()
}

fn read(stream: Option<impl Read + Send + 'static>, sender: Sender<Event>, event: fn(String) -> Event) {
    std::thread::spawn(move || {
        for line in stream.into_iter().flat_map(|stream| BufReader::new(stream).split(b'\n')) {
            let Ok(line) = line else { break };
            if sender.send(event(String::from_utf8_lossy(&line).trim_end().to_string())).is_err() {
                return;
            }
        }
        let _ = sender.send(Event::Closed);
    });
}

/// Where Open MPI's ranks lay their shared memory: gone with the run, also when that is given up and they remove nothing.
struct Backing(PathBuf);

impl Backing {
    fn make() -> Result<Backing> {
        let path = PathBuf::from(format!("/dev/shm/vmpi-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| format!("{} cannot be made: {e}", path.display()))?;
        Ok(Backing(path))
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The rest of a group, and the descendants that have left it: wait a moment, then kill. All are reaped.
fn leave_nothing(group: Pid) {
    let start = Instant::now();
    loop {
        while matches!(waitpid(Pid::from_raw(-1), Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        let left = descendants();
        if left.is_empty() || start.elapsed() > 4 * GRACE {
            return;
        }
        if start.elapsed() > GRACE {
            let _ = killpg(group, Signal::SIGKILL);
            for pid in left {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// CPU time of all descendants that have been waited for.
fn children_cpu_s() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0.0 };
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 / 1e6
}

/// All processes below this one.
fn descendants() -> Vec<i32> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut next = vec![getpid().as_raw()];
    while let Some(pid) = next.pop() {
        let below = children.remove(&pid).unwrap_or_default();
        found.extend(&below);
        next.extend(below);
    }
    found
}

/// The parent in a line of /proc/PID/stat; the name before it may hold anything.
fn parent(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// CPU time of a process so far, 0 if it is gone.
fn cpu_s(pid: i32) -> f64 {
    let clock = nix::time::clock_getcpuclockid(Pid::from_raw(pid));
    clock.and_then(|clock| clock.now()).map_or(0.0, |time| time.num_nanoseconds() as f64 / 1e9)
}

/// Does the process execute this file?
fn runs(pid: i32, program: &Path) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program)
}

fn pss_kb(pid: i32) -> Option<f64> {
    pss_of(&std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn pss_of(rollup: &str) -> Option<f64> {
    rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// One test, since the runs of a process go one after the other.
    #[test]
    fn a_run_is_timed_read_and_cleaned_up() {
        let series = Series::begin().unwrap();
        let second = Duration::from_secs(1);
        let done = series.run(&mut shell("echo @ a 1 2; echo no >&2"), second * 20, None).unwrap();
        assert_eq!((done.outcome, done.lines), (Outcome::Done, vec!["@ a 1 2".to_string()]));

        let failed = series.run(&mut shell("echo because >&2; exit 3"), second * 20, None).unwrap();
        assert_eq!(failed.outcome, Outcome::Failed("exit status: 3: because".into()));

        // What came before the deadline counts; a process in a session of its own, which ignores signals, is ended too.
        let script = "echo first; setsid sh -c 'trap \"\" TERM; sleep 600 & wait' & sleep 600";
        let late = series.run(&mut shell(script), second, None).unwrap();
        assert_eq!((late.outcome, late.lines), (Outcome::TooLong, vec!["first".to_string()]));
        assert_eq!(descendants(), Vec::<i32>::new());

        // Whoever sits is looked at and ended; the CPU time of a grandchild is counted.
        let busy = "echo '! sitting'; sh -c 'while :; do :; done' & wait";
        let shell_path = std::fs::canonicalize("/bin/sh").unwrap();
        let sat = series.run(&mut shell(busy), second * 20, Some((second, &shell_path))).unwrap();
        let sitting = sat.sitting.unwrap();
        assert_eq!(sat.outcome, Outcome::Done);
        assert!(sitting.cpu_s > 0.05, "{}", sitting.cpu_s);
        assert!(sitting.pss_kb.unwrap() > 10.0);
        assert!(sat.cpu_s >= sitting.cpu_s * 0.9);
        assert!(series.run(&mut Command::new("/nonexistent/program"), second, None).is_err());
    }

    #[test]
    fn lines_of_proc() {
        assert_eq!(parent("12 (a) b)) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (sh"), None);
        assert_eq!(pss_of("55-66 rw [rollup]\nRss: 1 kB\nPss:   812 kB\nPss_Dirty: 5 kB\n"), Some(812.0));
        assert_eq!(pss_of("Rss: 1 kB\n"), None);
    }
}
