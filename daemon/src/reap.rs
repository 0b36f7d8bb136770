//! Collect ended children, and find processes of a job that left its process group.
//!
//! The daemon is a child subreaper, so every process that a job ever started stays a descendant of the daemon: what was
//! orphaned becomes its child. Hence no descendant is left when waitpid says ECHILD, and a walk over /proc finds the others.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_shared::control::{Ended, env};

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

/// A process below this one.
#[derive(Clone, Debug)]
struct Descendant {
    pid: i32,
    parent: i32,
}

/// All processes below this one that have not ended, parents before their children.
fn descendants() -> Vec<Descendant> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for process in procfs::process::all_processes().into_iter().flatten().flatten() {
        if let Ok(stat) = process.stat()
            && !matches!(stat.state, 'Z' | 'X')
        {
            children.entry(stat.ppid).or_default().push(stat.pid);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![std::process::id() as i32];
    while let Some(parent) = parents.pop() {
        for pid in children.remove(&parent).unwrap_or_default() {
            found.push(Descendant { pid, parent });
            parents.push(pid);
        }
    }
    found
}

/// Kill what a job left behind, wherever it moved; returns how many processes were found.
///
/// A descendant belongs to the job that its nearest known ancestor belongs to (`job_of`: the job of a rank's process), else
/// to the one that its environment names, else to any job that ends while no other runs (`is_only_job`).
pub fn kill_leftovers(job: u32, is_only_job: bool, job_of: impl Fn(i32) -> Option<u32>) -> usize {
    let mut owner: HashMap<i32, u32> = HashMap::new();
    let mut count = 0;
    for process in descendants() {
        let inherited = || owner.get(&process.parent).copied();
        let Some(its_job) = job_of(process.pid)
            .or_else(inherited)
            .or_else(|| job_in_environment(process.pid))
            .or(is_only_job.then_some(job))
        else {
            continue;
        };
        owner.insert(process.pid, its_job);
        if its_job == job {
            count += 1;
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
    }
    count
}

/// The job that a process was started for, by its environment.
fn job_in_environment(pid: i32) -> Option<u32> {
    let environment = procfs::process::Process::new(pid).ok()?.environ().ok()?;
    environment.get(OsStr::new(env::JOBID))?.to_str()?.parse().ok()
}

/// Kill everything below this process and wait until nothing is left; blocks.
pub fn kill_all_descendants() {
    let mut pause_ms = 1;
    loop {
        for process in descendants() {
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        loop {
            match reap_one() {
                Reaped::Child(..) => {}
                Reaped::NoneEnded => break,
                Reaped::NoChildren => return,
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        pause_ms = (pause_ms * 2).min(100);
    }
}
