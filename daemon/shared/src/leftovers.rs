//! What vmpi puts into runtime directories and /dev/shm: how it is told from files of the user's that are called the same, and its removal.
//!
//! A name proves nothing: `status` or `job-17-...` may be anybody's. Removed is only what proves to be vmpi's, and only by who holds the lock of
//! the process that it belonged to, which the kernel drops when that process ends. Proofs: a private directory holds the marker
//! [`LAUNCHER_LOCK_NAME`]; a flink is a small file that holds the name of a status page of this user; a socket is one on which
//! nobody listens. No symbolic link is followed, nothing here blocks (a FIFO may lie there), and all reads are bounded.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use crate::control::{
    LAUNCHER_LOCK_NAME, NEW_FLINK_NAME, NEW_LAUNCHER_LOCK_NAME, PRIVATE_PREFIX, SOCKET_NAME, STATUS_FLINK_NAME,
};
use crate::runtime_dir::is_private;

/// Where status pages lie (shm_open(3)).
pub const SHM_DIR: &str = "/dev/shm";
/// What a status page begins with: "VMPISTAT" in ASCII.
pub const PAGE_MAGIC: u64 = u64::from_le_bytes(*b"VMPISTAT");
/// Every page's name in /dev/shm begins so.
const PAGE_PREFIX: &str = "vmpi-status-";
/// More than any page's name, with its slash.
const MOST_NAME_BYTES: usize = 96;

fn user() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// What the names of a user's pages in /dev/shm begin with; the daemon's pid and a nonce follow.
pub fn page_prefix(user: u32) -> String {
    format!("{PAGE_PREFIX}{user}-")
}

/// The pid of the daemon whose page of this user is called so; `None`: it is not the name of one.
pub fn page_owner(name: &str) -> Option<i32> {
    let (pid, nonce) = name.strip_prefix(&page_prefix(user()))?.split_once('-')?;
    let is_nonce = !nonce.is_empty() && nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    (is_nonce && is_pid).then(|| pid.parse().ok())?
}

/// Open what is of this user, without waiting or following a link.
fn open_own(path: &Path) -> Option<(File, Metadata)> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    (meta.uid() == user()).then_some((file, meta))
}

/// The first bytes of a regular file of this user, at most `most`.
pub fn head_of(path: &Path, most: usize) -> Option<Vec<u8>> {
    // Opening a device may do something already.
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let (file, meta) = open_own(path)?;
    let mut head = Vec::new();
    (meta.is_file() && file.take(most as u64).read_to_end(&mut head).is_ok()).then_some(head)
}

/// The name in /dev/shm of the status page of this user to which a flink points; `None`: it is no flink of vmpi's.
pub fn page_of(flink: &Path) -> Option<String> {
    let text = String::from_utf8(head_of(flink, MOST_NAME_BYTES)?).ok()?;
    let name = text.strip_prefix('/')?;
    page_owner(name).map(|_| name.to_owned())
}

/// Has a launcher made this directory for its job?
pub fn is_marked(dir: &Path) -> bool {
    let has = |name| fs::symlink_metadata(dir.join(name)).is_ok_and(|meta| meta.is_file() && meta.uid() == user());
    is_private(dir) && (has(LAUNCHER_LOCK_NAME) || has(NEW_LAUNCHER_LOCK_NAME))
}

/// Is the file that was opened still the one of this name?
pub fn is_still_named(opened: &Metadata, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino()))
}

/// The lock on a file or directory of this user that no living process holds.
pub fn lock_of_dead(path: &Path) -> Option<Flock<File>> {
    let kind = fs::symlink_metadata(path).ok()?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return None;
    }
    let (file, meta) = open_own(path)?;
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    is_still_named(&meta, path).then_some(lock)
}

/// Does something listen on a socket? Asked without waiting for its answer.
pub fn is_listening(path: &Path) -> bool {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let Ok(asking) = socket(AddressFamily::Unix, SockType::Stream, flags, None) else { return true };
    let Ok(address) = UnixAddr::new(path) else { return false };
    match connect(asking.as_raw_fd(), &address) {
        // With a full queue it lives, too.
        Ok(()) | Err(Errno::EAGAIN | Errno::EINPROGRESS | Errno::EINTR) => true,
        Err(_) => false,
    }
}

/// Unlink the status page to which a flink points, if its daemon is dead, and the flink.
fn remove_flink(flink: &Path) {
    let Some(name) = page_of(flink) else { return };
    remove_page(&Path::new(SHM_DIR).join(name));
    let _ = fs::remove_file(flink);
}

/// Unlink a status page whose daemon is dead; was it one?
pub fn remove_page(page: &Path) -> bool {
    let Some(_lock) = page.file_name().and_then(|name| page_owner(name.to_str()?)).and_then(|_| lock_of_dead(page))
    else {
        return false;
    };
    let magic = PAGE_MAGIC.to_le_bytes();
    // A daemon may have been killed before it wrote the magic.
    let is_page = head_of(page, magic.len()).is_some_and(|head| head == magic || head.iter().all(|byte| *byte == 0));
    is_page && fs::remove_file(page).is_ok()
}

/// Remove what the daemon that died in `dir` has left there: its socket, its status page and the page's flink. The caller holds the directory's lock.
pub fn remove_daemon(dir: &Path, _lock: &Flock<File>) {
    remove_flink(&dir.join(STATUS_FLINK_NAME));
    remove_own_file(&dir.join(NEW_FLINK_NAME));
    let path = dir.join(SOCKET_NAME);
    let is_own = fs::symlink_metadata(&path).is_ok_and(|meta| meta.file_type().is_socket() && meta.uid() == user());
    if is_own && !is_listening(&path) {
        let _ = fs::remove_file(path);
    }
}

/// Remove what its launcher and the daemon have put into a private directory, and the directory if nothing else is in it. The caller
/// holds its lock, and it is the launcher itself, or knows from `is_launcher_dead` or the launcher that this is one.
pub fn remove_private_dir(dir: &Path, lock: &Flock<File>) {
    remove_daemon(dir, lock);
    // Those of what ranks have started.
    remove_dead_below(dir, None);
    for name in [LAUNCHER_LOCK_NAME, NEW_LAUNCHER_LOCK_NAME] {
        remove_own_file(&dir.join(name));
    }
    let _ = fs::remove_dir(dir);
}

/// Remove the private directories in `base` in which nobody lives any more, but `spared`.
pub fn remove_dead_below(base: &Path, spared: Option<&Path>) -> Vec<String> {
    remove_dead(base, PRIVATE_PREFIX, spared)
}

/// As [`remove_dead_below`], of directories whose names begin with `prefix`, the launcher's pid behind. Returns what they were called.
pub fn remove_dead(base: &Path, prefix: &str, spared: Option<&Path>) -> Vec<String> {
    let names = fs::read_dir(base).into_iter().flatten().flatten();
    let mut removed = Vec::new();
    for name in names.filter_map(|entry| entry.file_name().into_string().ok()) {
        let launcher = name.strip_prefix(prefix).and_then(|rest| rest.split('-').next()?.parse().ok());
        let dir = base.join(&name);
        if let Some(launcher) = launcher
            && spared != Some(&dir)
            && is_launcher_dead(&dir, launcher)
            && let Some(lock) = lock_of_dead(&dir)
        {
            remove_private_dir(&dir, &lock);
            removed.push(name);
        }
    }
    removed
}

/// Is it a directory that a launcher made, which has died?
fn is_launcher_dead(dir: &Path, pid: i32) -> bool {
    if !is_marked(dir) {
        return false;
    }
    let marker = dir.join(LAUNCHER_LOCK_NAME);
    if fs::symlink_metadata(&marker).is_ok() {
        return lock_of_dead(&marker).is_some();
    }
    // Just made: then there is only the pid to ask. A lookup of a pid that is not there fails, also where /proc shows another namespace.
    !crate::proc::directory(pid).is_some_and(|process| process.exists())
        && lock_of_dead(&dir.join(NEW_LAUNCHER_LOCK_NAME)).is_some()
}

/// Remove a regular file of this user, with a name that nobody but vmpi gives.
fn remove_own_file(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file() && meta.uid() == user()) {
        let _ = fs::remove_file(path);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn names_of_pages() {
        let name = |rest: &str| format!("{}{rest}", page_prefix(user()));
        assert_eq!(page_owner(&name("4711-18af")), Some(4711));
        for other in
            ["4711", "4711-", "-18af", "4711-18af.txt", "results-18af", "4711-1/../2", "+1-18af", "99999999999-1"]
        {
            assert_eq!(page_owner(&name(other)), None, "{other}");
        }
        assert_eq!(page_owner(&format!("{}4711-18af", page_prefix(user() + 1))), None, "another user's");
        assert_eq!(page_of(Path::new("/nowhere/status")), None);
        assert_eq!(head_of(Path::new("/dev/zero"), 8), None);
    }
}
