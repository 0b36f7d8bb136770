//! The supervisor: the daemon's parent, which cleans up after it whatever kills it.
//!
//! `vmpid` forks at once; the child is the daemon, the parent sleeps in sigwait until the child ends. It is a subreaper: when
//! the daemon is killed, its ranks die by PR_SET_PDEATHSIG, and what they had started (which that signal
//! does not reach) becomes the supervisor's, which kills it and removes the socket and the status page. Death of the supervisor
//! sends TERM to the daemon, which then drains as for any TERM. It costs one process of some 100 KiB private memory.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, pipe, setsid};

use vmpi_shared::leftovers;

use crate::{log, reap, runtime_dir};

/// Told to whoever started a background daemon: it listens, or it failed with an exit code.
pub struct Readiness(Option<OwnedFd>);

impl Readiness {
    /// The daemon listens: let go of the caller's terminal and tell the caller.
    pub fn tell(&mut self) {
        let Some(pipe) = self.0.take() else { return };
        let_go_of_terminal();
        let _ = std::fs::File::from(pipe).write_all(b"+");
    }
}

/// stdout and stderr to /dev/null, so that whoever reads the caller's output sees its end.
fn let_go_of_terminal() {
    let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") else { return };
    for fd in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        if !(fd == libc::STDERR_FILENO && log::is_debug()) {
            // SAFETY: dup2 between open descriptors; nobody holds stdout or stderr as an OwnedFd.
            unsafe { libc::dup2(null.as_raw_fd(), fd) };
        }
    }
}

/// How `vmpid` was started.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The calling process ends as soon as the daemon listens.
    Background,
    /// By a user at a terminal, whose signals are for the daemon.
    Foreground,
    /// By a launcher, which alone gets the terminal's signals and says what they mean.
    ByLauncher,
}

/// Split into supervisor and daemon; returns in the daemon only.
///
/// Must run while the process has one thread.
pub fn split(dir: &Path, start: Start) -> Readiness {
    let mut readiness = Readiness(None);
    if start == Start::ByLauncher {
        let _ = setsid();
    }
    if start == Start::Background {
        let Ok((read, write)) = pipe() else { die("cannot make a pipe") };
        // SAFETY: the process has one thread.
        match unsafe { fork() } {
            Err(errno) => die(&format!("cannot fork: {errno}")),
            Ok(ForkResult::Parent { child }) => {
                drop(write);
                wait_until_ready(read, child);
            }
            Ok(ForkResult::Child) => {
                drop(read);
                let _ = setsid();
                readiness = Readiness(Some(write));
            }
        }
    }
    // The handlers of the daemon's signals are not installed yet; none may be lost or kill the supervisor.
    let mut signals = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        signals.add(signal);
    }
    let mut before = SigSet::empty();
    let _ = sigprocmask(SigmaskHow::SIG_BLOCK, Some(&signals), Some(&mut before));
    reap::become_subreaper();
    let supervisor = nix::unistd::getpid();
    // SAFETY: the process has one thread.
    match unsafe { fork() } {
        Err(errno) => die(&format!("cannot fork: {errno}")),
        Ok(ForkResult::Parent { child }) => {
            drop(readiness);
            if start == Start::Background {
                let_go_of_terminal();
            }
            keep(child, &signals, dir, start)
        }
        Ok(ForkResult::Child) => {
            // Away from the terminal's signals: ^C is for the launcher, or for the supervisor in the foreground.
            let _ = setsid();
            // SAFETY: prctl with constants.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) };
            if nix::unistd::getppid() != supervisor {
                std::process::exit(125);
            }
            let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
            readiness
        }
    }
}

fn die(sentence: &str) -> ! {
    log::line(sentence);
    std::process::exit(125);
}

/// The caller's process: end with 0 when the daemon listens, with its code if it ends before.
fn wait_until_ready(read: OwnedFd, supervisor: Pid) -> ! {
    let mut byte = [0];
    let ready = matches!(std::fs::File::from(read).read(&mut byte), Ok(1));
    if ready {
        std::process::exit(0);
    }
    match waitpid(supervisor, None) {
        Ok(WaitStatus::Exited(_, code)) => std::process::exit(code),
        _ => std::process::exit(125),
    }
}

/// The supervisor's life: pass signals on, wait for the daemon, clean up.
fn keep(daemon: Pid, signals: &SigSet, dir: &Path, start: Start) -> ! {
    let status = loop {
        match waitpid(daemon, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => {}
            Ok(status) => break Some(status),
            Err(nix::errno::Errno::EINTR) => continue,
            Err(_) => break None,
        }
        match signals.wait() {
            Ok(Signal::SIGCHLD) | Err(_) => {}
            Ok(signal) => {
                let signal = if signal == Signal::SIGQUIT { Signal::SIGTERM } else { signal };
                let _ = kill(daemon, signal);
            }
        }
    };
    // A daemon that ends in order leaves only what is to stay.
    if !matches!(status, Some(WaitStatus::Exited(_, 0))) {
        reap::kill_all_descendants(&reap::Left::new());
    }
    match status {
        Some(WaitStatus::Exited(_, code)) => std::process::exit(code),
        Some(WaitStatus::Signaled(_, signal, _)) => {
            // Only after a violent end: an orderly daemon removes its files. A new daemon would hold the lock by now.
            if start == Start::ByLauncher {
                runtime_dir::remove_launched(dir);
            }
            if let Some(lock) = leftovers::lock_of_dead(dir) {
                leftovers::remove_daemon(dir, &lock);
            }
            log::line(&format!(
                "the daemon (pid {daemon}) was ended by {signal}; its ranks were killed and its files removed"
            ));
            std::process::exit(128 + signal as i32);
        }
        _ => std::process::exit(125),
    }
}

/// Make descriptors 0, 1 and 2 exist, 0 as /dev/null, so that descriptors received later are above them.
pub fn secure_standard_streams() {
    let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") else { return };
    for fd in 0..=2 {
        // SAFETY: fcntl and dup2 on small constant descriptors, before anything owns them.
        unsafe {
            if fd == 0 || libc::fcntl(fd, libc::F_GETFD) < 0 {
                libc::dup2(null.as_fd().as_raw_fd(), fd);
            }
        }
    }
}
