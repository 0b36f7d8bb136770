//! Finding the user's vmpid, or starting one for this job alone.
//!
//! A private daemon lives in a directory `job-PID-...` of the runtime directory; the directory and the daemon end with
//! the [`Daemon`] value. What killed ones left is swept by the next daemon, which tells the living by their locks.
#![allow(unsafe_code)]

mod condition;
mod lost;
mod private;

pub use condition::Patience;
pub use lost::{Loss, Orphans, end_job, kill_job};
pub use private::fallback_dirs;

use crate::failure::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use private::Private;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use vmpi_shared::control::{Connection, PROTOCOL, Reply, Request, SOCKET_NAME};
use vmpi_shared::runtime_dir;

/// This build's version; daemon and tools must agree.
pub use crate::version::VERSION;
/// A socket's path is at most so long (sun_path).
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// Where private directories go for which there is no room below the runtime directory.
const FALLBACK_DIR: &str = "/tmp";
/// A daemon must answer in this time, less that in which others had the CPUs.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// What ends by itself has ended in this time, less that in which others had the CPUs.
const LAST_STEPS: Duration = Duration::from_secs(2);

/// A connection that has said hello.
pub struct Daemon {
    pub connection: Connection,
    pub pid: i32,
    pub socket: PathBuf,
    /// Dropped after the connection, whose end tells the daemon to go.
    _private: Option<Private>,
}

/// Why no daemon answers at a socket.
#[derive(Debug, thiserror::Error)]
pub enum HelloError {
    #[error("nothing answers at {socket}: {error}")]
    Unreachable { socket: PathBuf, error: io::Error },
    #[error(
        "vmpid (pid {pid}) at {socket} is version {theirs}, protocol {protocol}; this is version {VERSION}, protocol {PROTOCOL}: \
         end that daemon (kill {pid}) or use the tools that belong to it"
    )]
    OtherVersion { socket: PathBuf, pid: i32, theirs: String, protocol: u32 },
    #[error("vmpid at {socket} refuses: {reason}")]
    Refused { socket: PathBuf, reason: String },
    #[error("vmpid (pid {pid}) at {socket} does not answer, though it has had {} s for that: {why}", PATIENCE.as_secs())]
    Silent { socket: PathBuf, pid: i32, why: String },
    #[error(
        "{path} belongs to user {owner}, not to user {}: it is not this user's vmpid, and nothing was asked; name another directory (VMPI_RUNTIME_DIR)",
        nix::unistd::geteuid()
    )]
    Stranger { path: PathBuf, owner: u32 },
    #[error("what answers at {socket} is no vmpid: {error}")]
    NotADaemon { socket: PathBuf, error: String },
    #[error("{path} is in the way: it is no socket; move it, or name another runtime directory (VMPI_RUNTIME_DIR)")]
    InTheWay { path: PathBuf },
}

/// Is it this user's runtime directory? `Ok(false)`: there is none.
///
/// # Errors
/// It is another user's.
pub fn is_own_dir(dir: &Path) -> Result<bool, HelloError> {
    let user = nix::unistd::geteuid().as_raw();
    match fs::symlink_metadata(dir) {
        Ok(meta) if meta.uid() != user => Err(HelloError::Stranger { path: dir.into(), owner: meta.uid() }),
        _ => Ok(runtime_dir::is_private(dir)),
    }
}

/// Connect to a socket of this user's and exchange hellos; whoever listens there is one of this user's processes.
pub fn hello(socket: &Path) -> Result<(Connection, i32), HelloError> {
    let unreachable = |error| HelloError::Unreachable { socket: socket.into(), error };
    let not_a_daemon = |error: String| HelloError::NotADaemon { socket: socket.into(), error };
    let user = nix::unistd::geteuid().as_raw();
    let stranger = |owner| HelloError::Stranger { path: socket.into(), owner };
    let meta = fs::symlink_metadata(socket).map_err(unreachable)?;
    if meta.uid() != user {
        return Err(stranger(meta.uid()));
    }
    if !meta.file_type().is_socket() {
        return Err(HelloError::InTheWay { path: socket.into() });
    }
    let stream = UnixStream::connect(socket).map_err(unreachable)?;
    let peer = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::PeerCredentials)
        .map_err(|errno| unreachable(errno.into()))?;
    if peer.uid() != user {
        return Err(stranger(peer.uid()));
    }
    let mut patience = Patience::new(peer.pid(), PATIENCE);
    let mut connection = Connection::new(stream);
    connection
        .send(&Request::Hello { version: VERSION.into(), protocol: PROTOCOL }, &[])
        .map_err(|e| not_a_daemon(e.to_string()))?;
    while !is_readable(connection.stream()) {
        if patience.is_over() {
            let why = condition::of(peer.pid()).map_or("it has ended".into(), |seen| seen.to_string());
            return Err(HelloError::Silent { socket: socket.into(), pid: peer.pid(), why });
        }
    }
    // An answer comes whole.
    connection.stream().set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
    match connection.receive::<Reply>() {
        Ok(Some((Reply::Hello { version, protocol, pid }, _))) if version == VERSION && protocol == PROTOCOL => {
            connection.stream().set_read_timeout(None).map_err(unreachable)?;
            Ok((connection, pid))
        }
        Ok(Some((Reply::Hello { version, protocol, pid }, _))) => {
            Err(HelloError::OtherVersion { socket: socket.into(), pid, theirs: version, protocol })
        }
        Ok(Some((Reply::Refused { reason, .. }, _))) => Err(HelloError::Refused { socket: socket.into(), reason }),
        Ok(Some(_)) => Err(not_a_daemon("it did not answer the greeting".into())),
        Ok(None) => Err(not_a_daemon("it closed the connection".into())),
        Err(e) => Err(not_a_daemon(e.to_string())),
    }
}

/// Wait a moment for something to read, or the end.
fn is_readable(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(Patience::LOOK).unwrap_or(PollTimeout::ZERO);
    poll(&mut fds, timeout).unwrap_or(0) > 0
}

/// The user's daemon if one answers, else a private one, `vmpid` from `exe_dir`.
///
/// # Errors
/// 125: a daemon of another version, or none can be started.
pub fn connect(exe_dir: &Path) -> Result<Daemon, Failure> {
    let base = runtime_dir::default_path();
    if let Some((parent, owner)) = runtime_dir::foreign_parent(&base) {
        return Err(Failure::own(format!(
            "the runtime directory {} lies in {}, which belongs to user {owner}, who could put another in its place; name one in a directory of \
             root's (VMPI_RUNTIME_DIR)",
            base.display(),
            parent.display()
        )));
    }
    let socket = base.join(SOCKET_NAME);
    if runtime_dir::is_private(&base) && socket.exists() {
        match hello(&socket) {
            Ok((connection, pid)) => return Ok(Daemon { connection, pid, socket: real(socket), _private: None }),
            // A daemon that died left it; the next daemon replaces it.
            Err(HelloError::Unreachable { .. }) => {}
            Err(why) => return Err(Failure::own(why.to_string())),
        }
    }
    start_private(exe_dir, &base)
}

/// The path as the daemon and its ranks know it.
fn real(socket: PathBuf) -> PathBuf {
    fs::canonicalize(&socket).unwrap_or(socket)
}

fn start_private(exe_dir: &Path, base: &Path) -> Result<Daemon, Failure> {
    let program = exe_dir.join("vmpid");
    if !program.is_file() {
        return Err(Failure::own(format!(
            "no vmpid answers at {} and there is none to start at {}; install vmpid beside vmpirun",
            base.join(SOCKET_NAME).display(),
            program.display()
        )));
    }
    let mut private = private::make_dir(base)?;
    let socket = private.dir.join(SOCKET_NAME);
    let mut command = Command::new(&program);
    command.arg("--one-job").arg("--runtime-dir").arg(&private.dir).stdin(Stdio::null()).stdout(Stdio::null());
    // Its own session: the terminal's Ctrl-C goes to vmpirun alone, which ends the job in order.
    let setsid = || nix::unistd::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: between fork and exec only setsid is called, which is async-signal-safe and allocates nothing.
    unsafe { command.pre_exec(setsid) };
    let child = command.spawn().map_err(|e| {
        let why = match Path::new("/dev/null").exists() {
            true => e.to_string(),
            false => "there is no /dev/null; mount or make /dev in this container or chroot".into(),
        };
        Failure::own(format!("cannot start {}: {why}", program.display()))
    })?;
    let child = private.child.insert(child);
    let mut patience = Patience::with_children(child.id() as i32, PATIENCE);
    let mut pause = Duration::from_micros(500);
    loop {
        match hello(&socket) {
            Ok((connection, pid)) => {
                return Ok(Daemon { connection, pid, socket: real(socket), _private: Some(private) });
            }
            Err(HelloError::Unreachable { .. }) => {}
            // The keeper of a daemon that died ends a moment after it.
            Err(HelloError::NotADaemon { .. }) if ends_soon(child) => {}
            Err(why) => return Err(Failure::own(why.to_string())),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Failure::own(format!("{} ended before it answered ({status})", program.display())));
        }
        if patience.is_over() {
            let pid = child.id() as i32;
            let why = condition::of(pid).map_or(String::new(), |seen| format!(": {seen}"));
            return Err(Failure::own(format!(
                "{} (pid {pid}) does not listen at {}{why}",
                program.display(),
                socket.display()
            )));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Does a process that is about to end do so, and its children? It has the time that it needs as long as it gets on.
fn ends_soon(child: &mut Child) -> bool {
    let mut patience = Patience::with_children(child.id() as i32, LAST_STEPS);
    let mut pause = Duration::from_micros(500);
    while matches!(child.try_wait(), Ok(None)) {
        if patience.is_over() {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    true
}

impl Daemon {
    /// A daemon already connected to: that of several nodes, or a test's.
    pub fn with_connection(connection: Connection, pid: i32, socket: PathBuf) -> Daemon {
        Daemon { connection, pid, socket, _private: None }
    }

    /// Is it the coordinator of several nodes' daemons?
    pub fn is_of_several_nodes(&self) -> bool {
        self.socket.as_os_str().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_versions_and_strangers_are_told_apart() {
        let socket = std::env::temp_dir().join(format!("vmpi-hello-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let answer = std::thread::spawn(move || {
            let mut connection = Connection::new(listener.accept().unwrap().0);
            let _: Option<(Request, _)> = connection.receive().unwrap();
            connection.send(&Reply::Hello { version: "9.9".into(), protocol: 77, pid: 5 }, &[]).unwrap();
            drop(listener.accept().unwrap());
            // Taken, and nothing said until the other is gone.
            let mut silent = listener.accept().unwrap().0;
            let _ = io::copy(&mut silent, &mut io::sink());
        });
        let why = hello(&socket).err().unwrap().to_string();
        assert!(why.contains("9.9") && why.contains("kill 5"), "{why}");
        assert!(matches!(hello(&socket), Err(HelloError::NotADaemon { .. })));
        assert!(matches!(hello(&socket), Err(HelloError::Silent { .. })));
        answer.join().unwrap();
        assert!(matches!(hello(&socket), Err(HelloError::Unreachable { .. })));
        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "").unwrap();
        assert!(matches!(hello(&socket), Err(HelloError::InTheWay { .. })));
        fs::remove_file(socket).unwrap();
    }
}
