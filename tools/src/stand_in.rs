//! `vmpirun --stand-in`: a rank's place, kept by vmpid, for a process that another MPI's launcher has started (`vmpi_shared::stand_in`); and
//! `vmpirun --detach`, by which the first of these processes starts vmpirun.

use crate::cpus;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vmpi_shared::control::{App, Connection, env};
use vmpi_shared::stand_in::{self, Place, Taken};

/// The word by which vmpirun is one; the program of the process stands behind it.
pub const FLAG: &str = "--stand-in";

/// The program that a rank runs: that of the process for which a stand-in is there.
pub fn program_of(app: &App) -> &str {
    match app.argv.as_slice() {
        [_, flag, program] if flag == FLAG => program,
        _ => &app.program,
    }
}

/// Lead the process to the place, and live as long as it; the exit code.
pub fn main() -> i32 {
    match lead() {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("vmpi: the process of rank {}: {why}", variable(env::RANK).unwrap_or_default());
            125
        }
    }
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not set: it is for vmpid to start"))
}

fn lead() -> Result<(), String> {
    let rank = variable(env::RANK)?.parse().map_err(|_| format!("{} is not a number", env::RANK))?;
    let socket = stand_in::socket(Path::new(&variable(stand_in::VARIABLE)?), rank);
    let stream =
        UnixStream::connect(&socket).map_err(|error| format!("it does not listen at {}: {error}", socket.display()))?;
    let peer = getsockopt(&stream, PeerCredentials).map_err(|error| error.to_string())?;
    if peer.uid() != nix::unistd::geteuid().as_raw() {
        return Err(format!("another user (uid {}) listens at {}", peer.uid(), socket.display()));
    }
    let place = Place {
        variables: std::env::vars()
            .filter(|(name, _)| name.starts_with("VMPI_") && name != stand_in::VARIABLE)
            .collect(),
        cpus: cpus::allowed().map_err(|why| why.sentence)?,
    };
    let mut connection = Connection::new(stream);
    connection.send(&place, &[]).map_err(|error| format!("it cannot be told: {error}"))?;
    let answer = connection.receive::<Taken>().map_err(|error| format!("it cannot be heard: {error}"))?;
    let Some((_, descriptors)) = answer else { return Err("it has ended before it was a rank".into()) };
    let process = descriptors.into_iter().next().ok_or("it has sent no descriptor of itself")?;
    // SIGTERM comes before the end of the job: the launcher, which sees the process end that is the cause, gets the time in between to say so.
    let asked = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(libc::SIGTERM, asked).map_err(|error| error.to_string())?;
    // Not until its connection is closed, which a child of its may have, too.
    let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    while poll(&mut fds, PollTimeout::NONE) == Err(nix::errno::Errno::EINTR) {}
    Ok(())
}

/// Start vmpirun with these arguments, on these CPUs, as nobody's child; the exit code.
pub fn detach(cpus: &str, args: &[String]) -> i32 {
    let mut set = CpuSet::new();
    let known = cpus::parse_list(cpus).unwrap_or_default();
    if known.iter().try_for_each(|cpu| set.set(*cpu as usize)).is_ok() && !known.is_empty() {
        // If it may not, it keeps what it has.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
    let started = std::env::current_exe().and_then(|own| Command::new(own).args(args).process_group(0).spawn());
    match started {
        Ok(_) => 0,
        Err(error) => {
            eprintln!("vmpirun: cannot start itself: {error}");
            125
        }
    }
}
