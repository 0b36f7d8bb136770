//! The signals that vmpirun gets: before there is a job, and while it runs.

use nix::sys::signal::Signal;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Signals that this process handles, each with its own socket that becomes readable.
pub struct Signals {
    list: Vec<(Signal, UnixStream)>,
}

const HANDLED: [Signal; 8] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// While there is no job yet, interrupts end this process, also where they were ignored at its start.
pub struct Early(Arc<AtomicBool>);

impl Early {
    /// Shells ignore an interrupt for `vmpirun ... &`, where `kill -INT` must still end what is about to be a job.
    ///
    /// # Errors
    /// As sigaction(2).
    pub fn heed_interrupts() -> io::Result<Early> {
        let ends = Arc::new(AtomicBool::new(true));
        for signal in [Signal::SIGINT, Signal::SIGQUIT].into_iter().filter(|signal| is_ignored(*signal)) {
            signal_hook::flag::register_conditional_default(signal as i32, ends.clone())?;
        }
        Ok(Early(ends))
    }
}

impl Signals {
    /// From now on these signals come here. A hang-up that was ignored at the start (nohup) stays ignored.
    ///
    /// # Errors
    /// No descriptors, or as sigaction(2).
    pub fn register(early: Early) -> io::Result<Signals> {
        let mut list = Vec::new();
        for signal in HANDLED {
            if signal == Signal::SIGHUP && is_ignored(signal) {
                continue;
            }
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal as i32, write)?;
            list.push((signal, read));
        }
        early.0.store(false, Ordering::Relaxed);
        Ok(Signals { list })
    }

    /// What becomes readable when a signal comes.
    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().map(|(_, socket)| socket.as_fd())
    }

    /// The signals that have come since the last call.
    pub fn take(&mut self) -> Vec<Signal> {
        let mut bytes = [0u8; 64];
        let mut came = |socket: &mut UnixStream| socket.read(&mut bytes).is_ok_and(|n| n > 0);
        self.list.iter_mut().filter_map(|(signal, socket)| came(socket).then_some(*signal)).collect()
    }
}

/// SigIgn of proc_pid_status(5).
fn is_ignored(signal: Signal) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal as i32 - 1) & 1 == 1
}
