//! What /proc tells of a process that does not do what it should: why, and whether it does anything at all.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vmpi_shared::proc;

/// Why a process does not answer, or does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// By a signal or a debugger.
    Stopped { pid: i32 },
    /// By a freezer of cgroups.
    Frozen { state: char, group: String },
    /// In state D, where no signal reaches it; in this function of the kernel, if that is told.
    Uninterruptible { wchan: Option<String> },
    /// It has as many descriptors open as it may.
    NoDescriptors { limit: u64 },
    /// None of these: its state in one letter.
    Other { state: char },
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Stopped { pid } => write!(f, "it is stopped (kill -CONT {pid})"),
            Condition::Frozen { state, group } => write!(f, "it is in state {state}, frozen with its cgroup {group}"),
            Condition::Uninterruptible { wchan } => {
                let at = wchan.as_ref().map_or(String::new(), |name| format!(", in {name}"));
                write!(
                    f,
                    "it is in state D: it waits in the kernel{at}, for a file system or a device, and no signal reaches it"
                )
            }
            Condition::NoDescriptors { limit } => {
                write!(f, "it has all {limit} descriptors open that it may have (ulimit -n)")
            }
            Condition::Other { state } => write!(f, "it is in state {state}"),
        }
    }
}

/// How a process does; `None`: it has ended.
pub fn of(pid: i32) -> Option<Condition> {
    let process = proc::directory(pid)?;
    let state = state(&process)?;
    Some(match state {
        'Z' | 'X' => return None,
        'T' | 't' => Condition::Stopped { pid },
        _ => frozen(&process)
            .map(|group| Condition::Frozen { state, group })
            .or_else(|| (state == 'D').then(|| Condition::Uninterruptible { wchan: wchan(&process) }))
            .or_else(|| no_descriptors(&process))
            .unwrap_or(Condition::Other { state }),
    })
}

/// One letter, as in ps(1).
fn state(process: &Path) -> Option<char> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Where in the kernel it waits; hidden from most.
fn wchan(process: &Path) -> Option<String> {
    let name = fs::read_to_string(process.join("wchan")).ok()?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    is_name.then(|| name.trim_end().to_owned())
}

/// The cgroup that is frozen: of the version 1 freezer, or of version 2.
fn frozen(process: &Path) -> Option<String> {
    let groups = fs::read_to_string(process.join("cgroup")).ok()?;
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let inside = |mount: &str, file: &str| {
            fs::read_to_string(PathBuf::from(format!("/sys/fs/cgroup/{mount}{group}")).join(file)).unwrap_or_default()
        };
        let is_frozen = match controllers {
            "" => ["", "unified"]
                .iter()
                .any(|mount| inside(mount, "cgroup.events").lines().any(|line| line == "frozen 1")),
            _ if controllers.split(',').any(|name| name == "freezer") => {
                matches!(inside(controllers, "freezer.state").trim_end(), "FROZEN" | "FREEZING")
            }
            _ => false,
        };
        is_frozen.then(|| group.to_owned())
    })
}

fn no_descriptors(process: &Path) -> Option<Condition> {
    let limits = fs::read_to_string(process.join("limits")).ok()?;
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let limit = limit.split_whitespace().next()?.parse().ok()?;
    let open = fs::read_dir(process.join("fd")).ok()?.count() as u64;
    (open >= limit).then_some(Condition::NoDescriptors { limit })
}

/// What a process has done so far.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct Progress {
    cpu: Duration,
    /// It waited for a CPU so long.
    delayed: Duration,
    slices: u64,
    /// It waits for one now.
    is_runnable: bool,
}

impl Progress {
    fn add(&mut self, more: Progress) {
        self.cpu += more.cpu;
        self.delayed += more.delayed;
        self.slices += more.slices;
        self.is_runnable |= more.is_runnable;
    }
}

fn progress(pid: i32, with_children: bool) -> Option<Progress> {
    let process = proc::directory(pid)?;
    let mut sum = progress_of(&process)?;
    let children = fs::read_to_string(process.join(format!("task/{}/children", process.file_name()?.to_str()?)));
    for child in children.unwrap_or_default().split_whitespace().filter(|_| with_children) {
        sum.add(progress_of(&Path::new("/proc").join(child)).unwrap_or_default());
    }
    Some(sum)
}

/// That of all its threads.
fn progress_of(process: &Path) -> Option<Progress> {
    let mut sum = None;
    for thread in fs::read_dir(process.join("task")).ok()?.flatten() {
        let Some(more) = progress_of_thread(&thread.path()) else { continue };
        let sum: &mut Progress = sum.get_or_insert_default();
        sum.add(more);
    }
    sum
}

fn progress_of_thread(process: &Path) -> Option<Progress> {
    let text = fs::read_to_string(process.join("schedstat")).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    let (cpu, delayed, slices) = (Duration::from_nanos(next()), Duration::from_nanos(next()), next());
    Some(Progress { cpu, delayed, slices, is_runnable: state(process) == Some('R') })
}

/// How long a process may take to answer, by what it does and not by the clock: on a machine that has too much to do it gets all the time that it
/// needs, as long as it gets on.
#[derive(Debug)]
pub struct Patience {
    pid: i32,
    with_children: bool,
    most: Duration,
    begin: Instant,
    first: Option<Progress>,
    last: Option<Progress>,
    looked: Instant,
    idle: Duration,
}

impl Patience {
    /// Looks are this far apart.
    pub const LOOK: Duration = Duration::from_millis(200);
    /// Longer than so many times `most` nobody waits.
    const LIMIT: u32 = 30;

    /// `pid` may do nothing for so long, and compute for so long.
    pub fn new(pid: i32, most: Duration) -> Patience {
        Patience::begin(pid, false, most)
    }

    /// The same of a process and its children together.
    pub fn with_children(pid: i32, most: Duration) -> Patience {
        Patience::begin(pid, true, most)
    }

    fn begin(pid: i32, with_children: bool, most: Duration) -> Patience {
        let (now, first) = (Instant::now(), progress(pid, with_children));
        Patience { pid, with_children, most, begin: now, first, last: first, looked: now, idle: Duration::ZERO }
    }

    /// Look at it again: has it had its time?
    pub fn is_over(&mut self) -> bool {
        let (now, seen) = (Instant::now(), progress(self.pid, self.with_children));
        self.note(seen, now - self.looked);
        self.looked = now;
        self.has_had(seen) || now - self.begin >= self.most * Patience::LIMIT
    }

    fn note(&mut self, seen: Option<Progress>, since: Duration) {
        let gets_on = seen.is_some_and(|seen| seen.is_runnable || Some(seen) != self.last);
        if !gets_on {
            self.idle += since;
        }
        self.last = seen;
    }

    fn has_had(&self, seen: Option<Progress>) -> bool {
        let cpu = |progress: Option<Progress>| progress.map_or(Duration::ZERO, |progress| progress.cpu);
        self.idle >= self.most || cpu(seen).saturating_sub(cpu(self.first)) >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_stopped_process_is_told_from_one_that_has_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        let process = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGSTOP).unwrap();
        while of(pid).is_some_and(|seen| matches!(seen, Condition::Other { .. })) {}
        assert_eq!(of(pid), Some(Condition::Stopped { pid }));
        child.kill().unwrap();
        let begin = Instant::now();
        while of(pid).is_some() && begin.elapsed() < Duration::from_secs(60) {}
        assert_eq!(of(pid), None, "a zombie");
        child.wait().unwrap();
        assert_eq!(of(pid), None);
    }

    #[test]
    fn patience_is_for_who_gets_on() {
        let second = Duration::from_secs(1);
        let begin = Instant::now();
        let mut seen = Progress::default();
        let mut patience = Patience {
            pid: 0,
            with_children: false,
            most: 10 * second,
            begin,
            first: Some(seen),
            last: Some(seen),
            looked: begin,
            idle: Duration::ZERO,
        };
        // Hardly ever on a CPU, for a hundred seconds.
        for _ in 0..100 {
            seen.is_runnable = true;
            patience.note(Some(seen), second);
            seen = Progress { delayed: seen.delayed + second, slices: seen.slices + 1, is_runnable: false, ..seen };
            patience.note(Some(seen), second / 10);
            assert!(!patience.has_had(Some(seen)));
        }
        // Asleep, or stopped.
        for _ in 0..9 {
            patience.note(Some(seen), second);
        }
        assert!(!patience.has_had(Some(seen)));
        patience.note(Some(seen), second);
        assert!(patience.has_had(Some(seen)));
        // Busy with something else than the answer.
        patience.idle = Duration::ZERO;
        assert!(patience.has_had(Some(Progress { cpu: 10 * second, ..seen })));
    }
}
