//! The runtime directory: private to the user, holds the socket and the status page's flink, one daemon each.
//!
//! The daemon holds a `flock` on the directory itself, so that two daemons that start at one time cannot both replace a
//! stale socket, and so that a lock needs no file of its own to be left behind.

use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use vmpi_shared::control::{self, Connection, LAUNCHER_LOCK_NAME, Reply, Request, SOCKET_NAME, STATUS_FLINK_NAME};
use vmpi_shared::leftovers;
use vmpi_shared::runtime_dir::foreign_parent;

/// Longest path that fits in a Unix socket address.
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// So often the lock is tried before whoever holds it is taken for a daemon, and so long apart.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

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
    #[error(
        "the runtime directory {path} lies in {parent}, which belongs to user {owner}, who could put another in its place; choose one in a \
         directory of root's with --runtime-dir or VMPI_RUNTIME_DIR"
    )]
    ForeignParent { path: PathBuf, parent: PathBuf, owner: u32 },
    #[error("the socket's path {path} is longer than {MAX_SOCKET_PATH_BYTES} bytes; choose a shorter --runtime-dir")]
    TooLong { path: PathBuf },
    #[error("a vmpid (pid {pid}) already serves {path}; use it, or end it with: kill {pid}")]
    Alive { path: PathBuf, pid: i32 },
    #[error("another vmpid is starting or ending in {path}; try again in a moment")]
    Busy { path: PathBuf },
    #[error(
        "{path} is in the way: it is nothing that vmpid has left; move it, or choose another directory with --runtime-dir or VMPI_RUNTIME_DIR"
    )]
    InTheWay { path: PathBuf },
}

/// A directory that is ours alone, locked while this lives.
pub struct RuntimeDir {
    path: PathBuf,
    /// A launcher has made it.
    launched: bool,
    /// The socket, when it listens.
    bound: Option<Metadata>,
    lock: Flock<File>,
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
        if let Some((parent, owner)) = foreign_parent(path) {
            return Err(RuntimeDirError::ForeignParent { path: path.to_owned(), parent, owner });
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
        let lock = match lock_soon(dir) {
            Ok(lock) => lock,
            Err(_) => {
                return Err(match live_daemon(&path.join(SOCKET_NAME)) {
                    Some(pid) => RuntimeDirError::Alive { path, pid },
                    None => RuntimeDirError::Busy { path },
                });
            }
        };
        let launched = leftovers::is_marked(&path);
        Ok(leftovers::is_still_named(&opened, &path).then_some(RuntimeDir { path, launched, bound: None, lock }))
    }

    /// Did a launcher make this directory that lives?
    pub fn has_launcher(&self) -> bool {
        self.launched && !self.is_orphaned()
    }

    /// Did a launcher make this directory that has ended without removing it?
    pub fn is_orphaned(&self) -> bool {
        let lock = self.path.join(LAUNCHER_LOCK_NAME);
        self.launched && (!lock.exists() || leftovers::lock_of_dead(&lock).is_some())
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
    /// Something alive listens on the socket, or there is something else of that name.
    pub fn clear(&self) -> Result<(), RuntimeDirError> {
        let socket = self.socket();
        leftovers::remove_daemon(&self.path, &self.lock);
        match fs::symlink_metadata(&socket) {
            Err(_) => Ok(()),
            Ok(meta) if meta.file_type().is_socket() && leftovers::is_listening(&socket) => {
                let pid = live_daemon(&socket).unwrap_or(0);
                Err(RuntimeDirError::Alive { path: self.path.clone(), pid })
            }
            Ok(_) => Err(RuntimeDirError::InTheWay { path: socket }),
        }
    }

    /// Listen on the socket (mode 0600).
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn listen(&mut self) -> Result<UnixListener, RuntimeDirError> {
        let socket = self.socket();
        let io_error = |source| RuntimeDirError::Io { path: socket.clone(), source };
        let listener = UnixListener::bind(&socket).map_err(io_error)?;
        self.bound = fs::symlink_metadata(&socket).ok();
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
        if let Some(bound) = &self.bound
            && leftovers::is_still_named(bound, &self.socket())
        {
            let _ = fs::remove_file(self.socket());
        }
    }
}

/// A sweeper holds the lock for a moment only.
fn lock_soon(mut dir: File) -> Result<Flock<File>, File> {
    for _ in 0..LOOKS {
        match Flock::lock(dir, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((back, _)) => dir = back,
        }
        std::thread::sleep(PAUSE);
    }
    Err(dir)
}

/// Remove a one-job daemon's directory, if its launcher made it, for that alone; the launcher may have died without removing it.
pub fn remove_launched(dir: &Path) {
    if leftovers::is_marked(dir)
        && let Some(lock) = leftovers::lock_of_dead(dir)
    {
        leftovers::remove_private_dir(dir, &lock);
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
    fn it_is_orphaned_when_its_launcher_ends() {
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
        fs::remove_file(path.join(LAUNCHER_LOCK_NAME)).unwrap();
        assert!(dir.is_orphaned());
        drop(dir);
        fs::remove_dir(&path).unwrap();
    }

    /// A file of the user's that is called as the socket is.
    #[test]
    fn what_is_no_socket_is_in_the_way_and_stays() {
        let path = scratch("way");
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        let file = path.join(SOCKET_NAME);
        fs::write(&file, "mine").unwrap();
        let mut dir = RuntimeDir::open(&path).unwrap();
        assert!(matches!(dir.clear(), Err(RuntimeDirError::InTheWay { .. })));
        drop(dir);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        fs::remove_file(&file).unwrap();
        dir = RuntimeDir::open(&path).unwrap();
        drop(dir.listen().unwrap());
        assert!(dir.clear().is_ok(), "a dead daemon's");
        drop(dir.listen().unwrap());
        drop(dir);
        fs::remove_dir(&path).unwrap();
    }

    #[test]
    fn a_long_path_is_told() {
        let path = scratch(&"x".repeat(120));
        assert!(matches!(RuntimeDir::open(&path), Err(RuntimeDirError::TooLong { .. })));
    }
}
