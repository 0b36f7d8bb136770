//! Collect ended children, and find processes of a job that left its process group.
//!
//! The daemon is a child subreaper, so every process that a job ever started stays a descendant of the daemon: what was
//! orphaned becomes its child. Hence no descendant is left when waitpid says ECHILD, and a walk over /proc finds the others.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_shared::control::{Ended, env};
use vmpi_shared::proc;

/// Make this process the parent of its descendants' orphans.
pub fn become_subreaper() {
    // SAFETY: prctl with constants.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// One ended child, or none.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reaped {
    Child(i32, Ended),
    /// Children are left, none has ended.
    NoneEnded,
    /// This process has no descendants.
    NoChildren,
}

/// Collect one child that has ended; never blocks.
pub fn reap_one() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: waitpid writes only `status`. (nix's waitpid would lose a child killed by a real-time signal.)
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        match pid {
            0 => return Reaped::NoneEnded,
            -1 if Errno::last() == Errno::EINTR => {}
            -1 => return Reaped::NoChildren,
            pid if libc::WIFEXITED(status) => return Reaped::Child(pid, Ended::Exited(libc::WEXITSTATUS(status))),
            pid if libc::WIFSIGNALED(status) => return Reaped::Child(pid, Ended::Signaled(libc::WTERMSIG(status))),
            _ => {}
        }
    }
}

/// Has a signal ended the process that nothing in vmpi or in an MPI program raises over the death of another?
pub fn is_from_outside(ended: Ended) -> bool {
    const SIGNALS: [Signal; 5] = [Signal::SIGKILL, Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGILL, Signal::SIGFPE];
    SIGNALS.iter().any(|signal| ended == Ended::Signaled(*signal as i32))
}

/// A descriptor that becomes readable when the process ends, child or not.
///
/// # Errors
/// ESRCH: no such process.
pub fn pidfd_open(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: a system call on plain values; the new descriptor is owned by nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as i32)) }
    }
}

/// The parent of a process, its parent, and so on, as far as they are seen and are not this one.
pub fn ancestors(pid: i32) -> impl Iterator<Item = i32> {
    const MOST: usize = 256;
    let parent = |pid: &i32| {
        let seen = proc::seen_as(*pid)?;
        let stat = procfs::process::Process::new(seen).ok()?.stat().ok()?;
        proc::pid_of(&stat.ppid.to_string()).filter(|parent| *parent > 1 && *parent != std::process::id() as i32)
    };
    std::iter::successors(parent(&pid), parent).take(MOST)
}

/// A process below this one.
#[derive(Clone, Debug)]
pub struct Descendant {
    pub pid: i32,
    /// Its number under /proc, and its parent's (`vmpi_shared::proc`).
    seen: i32,
    parent: i32,
    /// When it began, in ticks since the system did: with the pid it names the process for ever.
    pub began: u64,
    pub name: String,
}

/// Processes that jobs have left running after a good end, by pid, with when they began: nobody ends them.
pub type Left = HashMap<i32, u64>;

/// All processes below this one that have not ended, parents before their children.
fn descendants() -> Vec<Descendant> {
    let mut children: HashMap<i32, Vec<Descendant>> = HashMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat()
            && !matches!(stat.state, 'Z' | 'X')
        {
            let (seen, parent, began) = (stat.pid, stat.ppid, stat.starttime);
            let process = Descendant { pid: seen, seen, parent, began, name: stat.comm };
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents: Vec<i32> = proc::seen_as(std::process::id() as i32).into_iter().collect();
    while let Some(parent) = parents.pop() {
        for mut child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.seen);
            if let Some(pid) = proc::pid_of(&child.seen.to_string()) {
                child.pid = pid;
                found.push(child);
            }
        }
    }
    found
}

/// What a job has left behind, wherever it moved.
///
/// A descendant belongs to the job that its nearest known ancestor belongs to (`job_of`: the job of a rank's process), else
/// to the one that its environment names, else to any job that ends while no other runs (`is_only_job`). What is `left` by a
/// job that is over belongs to none.
pub fn leftovers(job: u32, is_only_job: bool, job_of: impl Fn(i32) -> Option<u32>, left: &Left) -> Vec<Descendant> {
    // `None`: nobody.
    let mut owner: HashMap<i32, Option<u32>> = HashMap::new();
    let mut found = Vec::new();
    for process in descendants() {
        let inherited = owner.get(&process.parent).copied();
        let its_job = match (left.get(&process.pid) == Some(&process.began), inherited) {
            (true, _) | (_, Some(None)) => None,
            (false, inherited) => {
                let its_job = job_of(process.pid)
                    .or(inherited.flatten())
                    .or_else(|| job_in_environment(process.seen))
                    .or(is_only_job.then_some(job));
                if its_job.is_none() {
                    continue;
                }
                its_job
            }
        };
        owner.insert(process.seen, its_job);
        if its_job == Some(job) {
            found.push(process);
        }
    }
    found
}

/// Kill processes.
pub fn kill_each<'a>(processes: impl IntoIterator<Item = &'a Descendant>) {
    for process in processes {
        let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
    }
}

/// Is it one of vmpi's own, a carrier?
pub fn is_own(process: &Descendant) -> bool {
    let file = |name: &str| std::fs::metadata(format!("/proc/{name}/exe")).ok().map(|meta| (meta.dev(), meta.ino()));
    file(&process.seen.to_string()).is_some_and(|exe| file("self") == Some(exe))
}

/// Forget what is not there any more.
pub fn forget_ended(left: &mut Left) {
    let process = |pid: i32| procfs::process::Process::new(proc::seen_as(pid)?).ok();
    let began = |pid: i32| process(pid)?.stat().ok().map(|stat| stat.starttime);
    left.retain(|pid, since| began(*pid) == Some(*since));
}

/// The job that the process with this number under /proc was started for, by its environment.
fn job_in_environment(seen: i32) -> Option<u32> {
    let environment = procfs::process::Process::new(seen).ok()?.environ().ok()?;
    environment.get(OsStr::new(env::JOBID))?.to_str()?.parse().ok()
}

/// Kill everything below this process, but what is `left` and what that has started, and wait until nothing else is there; blocks.
pub fn kill_all_descendants(left: &Left) {
    let mut pause_ms = 1;
    loop {
        // No job has the number 0: what is nobody's is its.
        let found = leftovers(0, true, |_| Some(0), left);
        kill_each(&found);
        loop {
            match reap_one() {
                Reaped::Child(..) => {}
                Reaped::NoneEnded if found.is_empty() => return,
                Reaped::NoneEnded => break,
                Reaped::NoChildren => return,
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(100);
    }
}
