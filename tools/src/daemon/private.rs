//! A daemon of this job alone: its directory and its process, which end with the job.

use super::{FALLBACK_DIR, MAX_SOCKET_PATH_BYTES, ends_soon};
use crate::failure::Failure;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use vmpi_shared::control::{LAUNCHER_LOCK_NAME, NEW_LAUNCHER_LOCK_NAME, PRIVATE_PREFIX, SOCKET_NAME, env};
use vmpi_shared::leftovers;
use vmpi_shared::runtime_dir::is_private;

/// A daemon of one job, its process and its directory.
pub struct Private {
    pub dir: PathBuf,
    pub child: Option<Child>,
    /// Tells sweepers that this process lives.
    _lock: Option<Flock<File>>,
    /// The runtime directory, if it goes with the last job in it.
    base: Option<PathBuf>,
}

/// Make the private directory: below the runtime directory, or in /tmp where that is not ours or its path too long.
pub fn make_dir(base: &Path) -> Result<Private, Failure> {
    let nonce = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.subsec_nanos());
    let name = format!("{PRIVATE_PREFIX}{}-{nonce:08x}", std::process::id());
    let fits = base.join(&name).join(SOCKET_NAME).as_os_str().len() <= MAX_SOCKET_PATH_BYTES;
    let mut last = None;
    let mut made = is_named_by_vmpi(base);
    // Another vmpirun may remove an empty runtime directory just now: try again.
    for _ in 0..if fits { 3 } else { 0 } {
        let parents =
            base.parent().map_or(Ok(()), |parent| DirBuilder::new().mode(0o700).recursive(true).create(parent));
        made |= parents.is_ok() && DirBuilder::new().mode(0o700).create(base).is_ok();
        if !is_private(base) {
            break;
        }
        match DirBuilder::new().mode(0o700).create(base.join(&name)) {
            Ok(()) => return Ok(Private::new(base.join(name), made.then(|| base.into()))),
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

/// Is the runtime directory the default one, which is called so by vmpi and nobody else? One that the user names may be the user's own.
fn is_named_by_vmpi(base: &Path) -> bool {
    let is_set = std::env::var_os(env::RUNTIME_DIR).is_some_and(|value| !value.is_empty());
    !is_set && base == vmpi_shared::runtime_dir::default_path()
}

/// The private directories of this user that lie in /tmp, because there was no room for them below the runtime directory.
pub fn fallback_dirs() -> Vec<PathBuf> {
    let prefix = format!("{FALLBACK_DIR}/{}", fallback_name(PRIVATE_PREFIX));
    let all = fs::read_dir(FALLBACK_DIR).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = all.filter(|dir| dir.to_str().is_some_and(|path| path.starts_with(&prefix)) && is_private(dir));
    let mut dirs: Vec<PathBuf> = own.collect();
    dirs.sort();
    dirs
}

/// What a private directory is called there.
fn fallback_name(name: &str) -> String {
    format!("vmpi-{}-{name}", nix::unistd::geteuid())
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
            && !ends_soon(child)
        {
            kill_children(child.id());
            if !ends_soon(child) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        // Held by a daemon that no signal reaches: the next daemon sweeps.
        if let Some(lock) = leftovers::lock_of_dead(&self.dir) {
            leftovers::remove_private_dir(&self.dir, &lock);
        }
        if let Some(base) = &self.base {
            // Only an empty one goes: no other job, no user's daemon.
            let _ = fs::remove_dir(base);
        }
    }
}

/// Kill the children of a keeper that does not end: a daemon that is stopped or hangs. The keeper cleans up after it.
fn kill_children(keeper: u32) {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children")).unwrap_or_default();
    for pid in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
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
        assert!(dir.starts_with(&base) && is_private(&dir));
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
        assert!(!is_private(Path::new("/tmp")));
    }
}
