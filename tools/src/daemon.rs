//! Finding the user's vmpid, or starting one for this job alone.
//!
//! A private daemon lives in a directory `job-PID-...` of the runtime directory; the directory and the daemon end with
//! the [`Daemon`] value. What killed ones left is swept by the next daemon, which tells the living by their locks.
#![allow(unsafe_code)]

use crate::failure::Failure;
use crate::status_page;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use vmpi_shared::control::{
    self, Connection, LAUNCHER_LOCK_NAME, NEW_LAUNCHER_LOCK_NAME, PRIVATE_PREFIX, PROTOCOL, Reply, Request,
    SOCKET_NAME, STATUS_FLINK_NAME,
};

/// This build's version; daemon and tools must agree.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// A socket's path is at most so long (sun_path).
const MAX_SOCKET_PATH_BYTES: usize = 107;
/// Where private directories go for which there is no room below the runtime directory.
const FALLBACK_DIR: &str = "/tmp";
/// A daemon must answer in this time.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });

/// What ends by itself has ended in this time.
const LAST_STEPS: Duration = Duration::from_secs(2);

/// A connection that has said hello.
pub struct Daemon {
    pub connection: Connection,
    pub pid: i32,
    pub socket: PathBuf,
    /// Dropped after the connection, whose end tells the daemon to go.
    _private: Option<Private>,
}

/// A daemon of one job, its process and its directory.
struct Private {
    dir: PathBuf,
    child: Option<Child>,
    /// Tells sweepers that this process lives.
    _lock: Option<Flock<File>>,
    /// The runtime directory, if this process made it.
    base: Option<PathBuf>,
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
    #[error(
        "vmpid at {socket} has said nothing for {} s: it is stopped (kill -CONT), or this machine has too much to do",
        PATIENCE.as_secs()
    )]
    Silent { socket: PathBuf },
    #[error("what answers at {socket} is no vmpid: {error}")]
    NotADaemon { socket: PathBuf, error: String },
}

/// Where the user's daemon lives: $VMPI_RUNTIME_DIR, else $XDG_RUNTIME_DIR/vmpi, else /tmp/vmpi-UID.
pub fn runtime_dir() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(control::env::RUNTIME_DIR)
        .or_else(|| set("XDG_RUNTIME_DIR").map(|dir| dir.join("vmpi")))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/vmpi-{}", nix::unistd::geteuid())))
}

/// Connect to a socket and exchange hellos.
pub fn hello(socket: &Path) -> Result<(Connection, i32), HelloError> {
    let unreachable = |error| HelloError::Unreachable { socket: socket.into(), error };
    let not_a_daemon = |error: String| HelloError::NotADaemon { socket: socket.into(), error };
    let stream = UnixStream::connect(socket).map_err(unreachable)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(unreachable)?;
    let mut connection = Connection::new(stream);
    connection
        .send(&Request::Hello { version: VERSION.into(), protocol: PROTOCOL }, &[])
        .map_err(|e| not_a_daemon(e.to_string()))?;
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
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            Err(HelloError::Silent { socket: socket.into() })
        }
        Err(e) => Err(not_a_daemon(e.to_string())),
    }
}

/// The user's daemon if one answers, else a private one, `vmpid` from `exe_dir`.
///
/// # Errors
/// 125: a daemon of another version, or none can be started.
pub fn connect(exe_dir: &Path) -> Result<Daemon, Failure> {
    let base = runtime_dir();
    let socket = base.join(SOCKET_NAME);
    if owned(&base) && socket.exists() {
        match hello(&socket) {
            Ok((connection, pid)) => return Ok(Daemon { connection, pid, socket, _private: None }),
            // A daemon that died left it; the next daemon replaces it.
            Err(HelloError::Unreachable { .. }) => {}
            Err(why) => return Err(Failure::own(why.to_string())),
        }
    }
    start_private(exe_dir, &base)
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
    let mut private = make_dir(base)?;
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
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        match hello(&socket) {
            Ok((connection, pid)) => return Ok(Daemon { connection, pid, socket, _private: Some(private) }),
            Err(HelloError::Unreachable { .. }) => {}
            // The keeper of a daemon that died ends a moment after it.
            Err(HelloError::NotADaemon { .. }) if ends_within(child, LAST_STEPS) => {}
            Err(why) => return Err(Failure::own(why.to_string())),
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(Failure::own(format!("{} ended before it answered ({status})", program.display())));
        }
        if start.elapsed() > PATIENCE {
            return Err(Failure::own(format!(
                "{} (pid {}) did not listen at {} within {} s",
                program.display(),
                child.id(),
                socket.display(),
                PATIENCE.as_secs()
            )));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Kill the children of a keeper that does not end: a daemon that is stopped or hangs. The keeper cleans up after it.
fn kill_children(keeper: u32) {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap_or_default();
    for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
    }
}

/// Does the process end in this time?
fn ends_within(child: &mut Child, time: Duration) -> bool {
    let end = Instant::now() + time;
    while matches!(child.try_wait(), Ok(None)) {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Make the private directory: below the runtime directory, or in /tmp where that is not ours or its path too long.
fn make_dir(base: &Path) -> Result<Private, Failure> {
    let nonce = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    let name = format!("{PRIVATE_PREFIX}{}-{nonce:08x}", std::process::id());
    let fits = base.join(&name).join(SOCKET_NAME).as_os_str().len() <= MAX_SOCKET_PATH_BYTES;
    let mut last = None;
    // Another vmpirun may remove an empty runtime directory just now: try again.
    for _ in 0..if fits { 3 } else { 0 } {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(base).is_ok_and(|()| owned(base));
        if !made {
            break;
        }
        match DirBuilder::new().mode(0o700).create(base.join(&name)) {
            Ok(()) => return Ok(Private::new(base.join(name), Some(base.into()))),
            Err(e) => last = Some(e),
        }
    }
    let dir = Path::new(FALLBACK_DIR).join(fallback_name(&name));
    DirBuilder::new().mode(0o700).create(&dir).map_err(|e| {
        let first = last.map_or(String::new(), |e| format!(", nor one in {} ({e})", base.display()));
        Failure::own(format!(
            "cannot make the runtime directory {}: {e}{first}; name a directory of yours that is writable (VMPI_RUNTIME_DIR)",
            dir.display()
        ))
    })?;
    Ok(Private::new(dir, None))
}

/// The private directories of this user that lie in /tmp, because there was no room for them below the runtime directory.
pub fn fallback_dirs() -> Vec<PathBuf> {
    let prefix = format!("{FALLBACK_DIR}/{}", fallback_name(PRIVATE_PREFIX));
    let all = fs::read_dir(FALLBACK_DIR).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = all.filter(|dir| dir.to_str().is_some_and(|path| path.starts_with(&prefix)) && owned(dir));
    let mut dirs: Vec<PathBuf> = own.collect();
    dirs.sort();
    dirs
}

/// What a private directory is called there.
fn fallback_name(name: &str) -> String {
    format!("vmpi-{}-{name}", nix::unistd::geteuid())
}

/// A directory of this user that nobody else can enter.
fn owned(dir: &Path) -> bool {
    fs::symlink_metadata(dir)
        .is_ok_and(|meta| meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o077 == 0)
}

fn remove_dir(dir: &Path) {
    status_page::unlink_stale(&dir.join(STATUS_FLINK_NAME));
    let _ = fs::remove_dir_all(dir);
}

impl Daemon {
    /// A daemon already connected to: that of several nodes, or a test's.
    pub fn with_connection(connection: Connection, pid: i32, socket: PathBuf) -> Daemon {
        Daemon { connection, pid, socket, _private: None }
    }

    /// Is it the conductor of several nodes' daemons?
    pub fn is_of_several_nodes(&self) -> bool {
        self.socket.as_os_str().is_empty()
    }

    /// After the daemon died: remove what it left in /dev/shm and its socket.
    pub fn remove_leftovers(&self) {
        if let Some(dir) = self.socket.parent() {
            status_page::unlink_stale(&dir.join(STATUS_FLINK_NAME));
            let _ = fs::remove_file(&self.socket);
        }
    }
}

impl Private {
    /// The directory has just been made.
    fn new(dir: PathBuf, base: Option<PathBuf>) -> Private {
        // Without the lock (a full file system) sweepers ask whether this process lives.
        let new = dir.join(NEW_LAUNCHER_LOCK_NAME);
        let lock = File::create(&new)
            .ok()
            .and_then(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock).ok())
            .filter(|_| fs::rename(&new, dir.join(LAUNCHER_LOCK_NAME)).is_ok());
        Private { dir, child: None, _lock: lock, base }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && !ends_within(child, LAST_STEPS)
        {
            kill_children(child.id());
            if !ends_within(child, LAST_STEPS) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        remove_dir(&self.dir);
        if let Some(base) = &self.base {
            // Only an empty one goes: no other job, no user's daemon.
            let _ = fs::remove_dir(base);
        }
    }
}

/// Kill what a dead daemon left running of a job: `pids`, and every process that has the job in its environment.
pub fn kill_job(socket: &Path, job: u32, pids: &[i32]) {
    let marks = [
        format!("{}={}", control::env::SOCKET, socket.display()).into_bytes(),
        format!("{}={job}", control::env::JOBID).into_bytes(),
    ];
    let of_job = |pid: i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| marks.iter().all(|mark| environ.split(|byte| *byte == 0).any(|word| word == mark)))
    };
    let own = std::process::id() as i32;
    let running = fs::read_dir("/proc").into_iter().flatten().flatten();
    let running = running.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in pids.iter().copied().chain(running).filter(|pid| *pid != own) {
        if of_job(pid) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_directory_goes_with_its_owner() {
        let base = std::env::temp_dir().join(format!("vmpi-base-{}", std::process::id()));
        let private = make_dir(&base).unwrap();
        let dir = private.dir.clone();
        assert!(dir.starts_with(&base) && owned(&dir));
        let lock = File::open(dir.join(LAUNCHER_LOCK_NAME)).unwrap();
        assert!(Flock::lock(lock, FlockArg::LockExclusiveNonblock).is_err(), "this process lives");
        drop(private);
        assert!(!dir.exists() && !base.exists());
    }

    #[test]
    fn a_long_or_foreign_base_is_avoided() {
        let private = make_dir(&PathBuf::from(format!("/tmp/{}", "x".repeat(120)))).unwrap();
        assert!(private.dir.starts_with("/tmp") && private.base.is_none());
        assert!(fallback_dirs().contains(&private.dir), "vmpictl finds it");
        assert!(!owned(Path::new("/tmp")));
    }

    #[test]
    fn other_versions_and_strangers_are_told_apart() {
        let socket = std::env::temp_dir().join(format!("vmpi-hello-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let answer = std::thread::spawn(move || {
            let mut connection = Connection::new(listener.accept().unwrap().0);
            let _: Option<(Request, _)> = connection.receive().unwrap();
            connection.send(&Reply::Hello { version: "9.9".into(), protocol: 77, pid: 5 }, &[]).unwrap();
            drop(listener.accept().unwrap());
            // Taken, and nothing said.
            let silent = listener.accept().unwrap();
            std::thread::sleep(2 * PATIENCE);
            drop(silent);
        });
        let why = hello(&socket).err().unwrap().to_string();
        assert!(why.contains("9.9") && why.contains("kill 5"), "{why}");
        assert!(matches!(hello(&socket), Err(HelloError::NotADaemon { .. })));
        assert!(matches!(hello(&socket), Err(HelloError::Silent { .. })));
        answer.join().unwrap();
        assert!(matches!(hello(&socket), Err(HelloError::Unreachable { .. })));
        fs::remove_file(socket).unwrap();
    }
}
