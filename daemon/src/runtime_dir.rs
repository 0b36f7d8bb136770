//! The runtime directory: private to the user, holds the socket and the status page's flink, one daemon each.
//!
//! The daemon holds a `flock` on the directory itself, so that two daemons that start at one time cannot both replace a
//! stale socket, and so that a lock needs no file of its own to be left behind.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use vmpi_shared::control::{
    self, Connection, LAUNCHER_LOCK_NAME, NEW_LAUNCHER_LOCK_NAME, Reply, Request, SOCKET_NAME, STATUS_FLINK_NAME,
};

/// Longest path that fits in a Unix socket address.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// Why a runtime directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeDirError {
    #[error("cannot use the runtime directory {path}: {source}; choose another with --runtime-dir or VMPI_RUNTIME_DIR")]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the runtime directory {path} is not a directory (or is a symbolic link); choose another with --runtime-dir"
    )]
    NotADirectory { path: PathBuf },
    #[error(
        "the runtime directory {path} belongs to user {owner}, not to user {user}; choose another with --runtime-dir"
    )]
    WrongOwner { path: PathBuf, owner: u32, user: u32 },
    #[error(
        "the runtime directory {path} has mode {mode:04o}, so others could reach the daemon; run: chmod 700 {path}"
    )]
    WrongMode { path: PathBuf, mode: u32 },
    #[error("the socket's path {path} is longer than {MAX_SOCKET_PATH_BYTES} bytes; choose a shorter --runtime-dir")]
    TooLong { path: PathBuf },
    #[error("a vmpid (pid {pid}) already serves {path}; use it, or end it with: kill {pid}")]
    Alive { path: PathBuf, pid: i32 },
    #[error("another vmpid is starting or ending in {path}; try again in a moment")]
    Busy { path: PathBuf },
}

/// A directory that is ours alone, locked while this lives.
pub struct RuntimeDir {
    path: PathBuf,
    /// A launcher has made it.
    launched: bool,
    _lock: Flock<File>,
}

impl RuntimeDir {
    /// Create the directory if need be, check owner and mode, and lock it.
    ///
    /// # Errors
    /// A directory of somebody else or open to others, or one that a live daemon serves.
    pub fn open(path: &Path) -> Result<RuntimeDir, RuntimeDirError> {
        // A sweeper may remove it between our look and our lock.
        for _ in 0..3 {
            if let Some(dir) = RuntimeDir::try_open(path)? {
                return Ok(dir);
            }
        }
        Err(RuntimeDirError::Busy { path: path.to_owned() })
    }

    /// `None`: it was removed before it was locked.
    fn try_open(path: &Path) -> Result<Option<RuntimeDir>, RuntimeDirError> {
        let io_error = |source| RuntimeDirError::Io { path: path.to_owned(), source };
        if path.join(SOCKET_NAME).as_os_str().len() > MAX_SOCKET_PATH_BYTES {
            return Err(RuntimeDirError::TooLong { path: path.join(SOCKET_NAME) });
        }
        match DirBuilder::new().mode(0o700).recursive(true).create(path) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(io_error(e)),
            _ => {}
        }
        let meta = fs::symlink_metadata(path).map_err(io_error)?;
        if !meta.is_dir() {
            return Err(RuntimeDirError::NotADirectory { path: path.to_owned() });
        }
        let user = nix::unistd::geteuid().as_raw();
        if meta.uid() != user {
            return Err(RuntimeDirError::WrongOwner { path: path.to_owned(), owner: meta.uid(), user });
        }
        if meta.mode() & 0o077 != 0 {
            return Err(RuntimeDirError::WrongMode { path: path.to_owned(), mode: meta.mode() & 0o7777 });
        }
        let path = match fs::canonicalize(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            path => path.map_err(io_error)?,
        };
        let dir = match File::open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir.map_err(io_error)?,
        };
        let opened = dir.metadata().map_err(io_error)?;
        let lock = match Flock::lock(dir, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err(_) => {
                return Err(match live_daemon(&path.join(SOCKET_NAME)) {
                    Some(pid) => RuntimeDirError::Alive { path, pid },
                    None => RuntimeDirError::Busy { path },
                });
            }
        };
        let launched = path.join(LAUNCHER_LOCK_NAME).exists();
        Ok(is_still_named(&opened, &path).then_some(RuntimeDir { path, launched, _lock: lock }))
    }

    /// Did a launcher make this directory that has ended without removing it? Its lock may be gone by now (`clear`).
    pub fn is_orphaned(&self) -> bool {
        let lock = self.path.join(LAUNCHER_LOCK_NAME);
        self.launched && (!lock.exists() || crate::sweep::is_unlocked(&lock))
    }

    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET_NAME)
    }

    pub fn flink(&self) -> PathBuf {
        self.path.join(STATUS_FLINK_NAME)
    }

    /// Remove what a dead daemon left here.
    ///
    /// # Errors
    /// Something alive listens on the socket.
    pub fn clear(&self) -> Result<(), RuntimeDirError> {
        let socket = self.socket();
        if UnixStream::connect(&socket).is_ok() {
            let pid = live_daemon(&socket).unwrap_or(0);
            return Err(RuntimeDirError::Alive { path: self.path.clone(), pid });
        }
        remove_leftovers(&self.path);
        Ok(())
    }

    /// Listen on the socket (mode 0600).
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn listen(&self) -> Result<UnixListener, RuntimeDirError> {
        let socket = self.socket();
        let io_error = |source| RuntimeDirError::Io { path: socket.clone(), source };
        let listener = UnixListener::bind(&socket).map_err(io_error)?;
        // Nobody else can reach into the directory meanwhile.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600)).map_err(io_error)?;
        // std listens with a backlog of 128 (or -1); ranks of a large job connect all at once.
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::MAXCONN).map_err(|e| io_error(e.into()))?;
        listener.set_nonblocking(true).map_err(io_error)?;
        Ok(listener)
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.socket());
    }
}

/// Is the file that was opened still the one of this name?
pub fn is_still_named(opened: &fs::Metadata, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino()))
}

/// Remove a one-job daemon's directory, which its launcher made for it alone and may have died without removing.
pub fn remove_private(dir: &Path) {
    let _ = fs::remove_file(dir.join(LAUNCHER_LOCK_NAME));
    remove_if_empty(dir);
}

/// Remove a directory, but never one that still holds something.
pub fn remove_if_empty(dir: &Path) {
    let _ = fs::remove_dir(dir);
}

/// Remove what a daemon that died in `dir` left: its socket, its status page and the page's flink, its launcher's lock.
pub fn remove_leftovers(dir: &Path) {
    crate::status_page::unlink_stale(&dir.join(STATUS_FLINK_NAME));
    let _ = fs::remove_file(dir.join(SOCKET_NAME));
    let _ = fs::remove_file(dir.join(NEW_LAUNCHER_LOCK_NAME));
    if crate::sweep::is_unlocked(&dir.join(LAUNCHER_LOCK_NAME)) {
        let _ = fs::remove_file(dir.join(LAUNCHER_LOCK_NAME));
    }
}

/// Where the daemon lives unless told: $VMPI_RUNTIME_DIR, else $XDG_RUNTIME_DIR/vmpi, else /tmp/vmpi-UID.
pub fn default_path() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set(control::env::RUNTIME_DIR) {
        return path;
    }
    match set("XDG_RUNTIME_DIR") {
        Some(base) => base.join("vmpi"),
        None => PathBuf::from(format!("/tmp/vmpi-{}", nix::unistd::geteuid())),
    }
}

/// The pid of the daemon that answers at `socket` within a second.
fn live_daemon(socket: &Path) -> Option<i32> {
    let stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut connection = Connection::new(stream);
    let hello = Request::Hello { version: env!("CARGO_PKG_VERSION").into(), protocol: control::PROTOCOL };
    connection.send(&hello, &[]).ok()?;
    match connection.receive::<Reply>() {
        Ok(Some((Reply::Hello { pid, .. }, _))) => Some(pid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("vmpid-test-{}-{name}", std::process::id()))
    }

    #[test]
    fn others_must_not_reach_it() {
        let path = scratch("mode");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(RuntimeDir::open(&path), Err(RuntimeDirError::WrongMode { mode: 0o755, .. })));
        fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn a_symbolic_link_or_a_file_is_refused() {
        let (path, target) = (scratch("link"), scratch("link-target"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(RuntimeDir::open(&path), Err(RuntimeDirError::NotADirectory { .. })));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        assert!(RuntimeDir::open(&path).is_err());
        fs::remove_file(&path).unwrap();
        fs::remove_dir(&target).unwrap();
    }

    #[test]
    fn one_daemon_at_a_time() {
        let path = scratch("lock");
        let first = RuntimeDir::open(&path).unwrap();
        assert!(matches!(RuntimeDir::open(&path), Err(RuntimeDirError::Busy { .. })));
        drop(first);
        drop(RuntimeDir::open(&path).unwrap());
        fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn it_is_orphaned_when_its_launcher_ends_though_its_lock_is_cleared_away() {
        let path = scratch("orphan");
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        assert!(!RuntimeDir::open(&path).unwrap().is_orphaned(), "nobody's");
        let launcher = File::create(path.join(LAUNCHER_LOCK_NAME)).unwrap();
        let launcher = Flock::lock(launcher, FlockArg::LockExclusive).unwrap();
        let dir = RuntimeDir::open(&path).unwrap();
        dir.clear().unwrap();
        assert!(!dir.is_orphaned());
        drop(launcher);
        assert!(dir.is_orphaned());
        dir.clear().unwrap();
        assert!(!path.join(LAUNCHER_LOCK_NAME).exists() && dir.is_orphaned());
        drop(dir);
        fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn a_long_path_is_told() {
        let path = scratch(&"x".repeat(120));
        assert!(matches!(RuntimeDir::open(&path), Err(RuntimeDirError::TooLong { .. })));
    }
}
