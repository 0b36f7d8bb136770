//! What dead daemons and launchers left: status pages in /dev/shm, private runtime directories. Every daemon sweeps once.
//!
//! A killed daemon's keeper cleans up, and a killed launcher's daemon. This is for when all were killed at once (the
//! out-of-memory killer, `kill -9` of a group, a container's end). Who lives holds a lock, and the kernel drops it whatever
//! ends the owner: a daemon locks its runtime directory and its status page, a launcher the file `launcher` in the private
//! directory that it makes. The sweeper takes the lock, looks whether the name is still that of what it has locked, and
//! removes while it holds the lock; owners look in the same way after they have got theirs.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use vmpi_shared::control::{LAUNCHER_LOCK_NAME, PRIVATE_PREFIX};
use vmpi_shared::proc;

use crate::{debug, runtime_dir, status_page};

/// Sweep where daemons of this user live: /dev/shm, the default place and the place around `own`, this daemon's directory.
pub fn sweep(own: &Path) {
    let user = nix::unistd::geteuid().as_raw();
    sweep_pages(Path::new("/dev/shm"), user);
    let default = runtime_dir::default_path();
    let mut bases = vec![default.clone(), PathBuf::from("/tmp")];
    bases.extend(own.parent().map(Path::to_owned));
    bases.sort();
    bases.dedup();
    for base in bases {
        sweep_private_dirs(&base, own, user);
    }
    // The directory itself stays: it may be one that the user made and works in.
    if default != own
        && let Some(_lock) = lock_dead(&default, user)
    {
        runtime_dir::remove_leftovers(&default);
    }
}

fn sweep_pages(shm: &Path, user: u32) {
    let prefix = status_page::name_prefix(user);
    for name in names(shm).filter(|name| name.starts_with(&prefix)) {
        let path = shm.join(&name);
        if let Some(_lock) = lock_dead(&path, user)
            // A daemon older than the lock, which still lives.
            && !status_page::owner_in_name(&name).is_some_and(is_vmpid)
        {
            debug!("sweeping {}", path.display());
            let _ = fs::remove_file(&path);
        }
    }
}

/// Private directories are `job-PID-...` in a runtime directory and `vmpi-UID-job-PID-...` in /tmp.
fn sweep_private_dirs(base: &Path, own: &Path, user: u32) {
    let in_tmp = format!("vmpi-{user}-{PRIVATE_PREFIX}");
    for name in names(base) {
        let Some(rest) = name.strip_prefix(PRIVATE_PREFIX).or_else(|| name.strip_prefix(&in_tmp)) else { continue };
        let dir = base.join(&name);
        let launcher = rest.split('-').next().and_then(|pid| pid.parse().ok());
        if dir != own && launcher.is_some_and(|pid| is_launcher_dead(&dir, pid, user)) {
            remove_dead_dir(&dir, user);
        }
    }
}

fn is_launcher_dead(dir: &Path, pid: i32, user: u32) -> bool {
    let file = dir.join(LAUNCHER_LOCK_NAME);
    match fs::symlink_metadata(&file) {
        Ok(_) => lock_dead(&file, user).is_some(),
        // Just made, or without the file: then there is only the pid to ask.
        // A lookup of a pid that is not there fails, also where /proc shows another namespace.
        Err(_) => !proc::directory(pid).is_some_and(|process| process.exists()),
    }
}

/// Remove a daemon's directory if no daemon holds it; never what vmpi did not put there.
fn remove_dead_dir(dir: &Path, user: u32) {
    if let Some(_lock) = lock_dead(dir, user) {
        debug!("sweeping {}", dir.display());
        runtime_dir::remove_leftovers(dir);
        runtime_dir::remove_if_empty(dir);
    }
}

/// The lock on a file or directory of this user whose owner is dead.
fn lock_dead(path: &Path, user: u32) -> Option<Flock<File>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    if meta.uid() != user {
        return None;
    }
    let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).ok()?;
    runtime_dir::is_still_named(&meta, path).then_some(lock)
}

/// Is there such a file of this user, with nobody's lock on it?
pub fn is_unlocked(path: &Path) -> bool {
    lock_dead(path, nix::unistd::geteuid().as_raw()).is_some()
}

fn is_vmpid(pid: i32) -> bool {
    let name = proc::directory(pid).and_then(|process| fs::read_to_string(process.join("comm")).ok());
    name.is_some_and(|name| name.trim_end() == "vmpid")
}

fn names(dir: &Path) -> impl Iterator<Item = String> {
    fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_dir::RuntimeDir;
    use std::os::unix::fs::DirBuilderExt;

    fn user() -> u32 {
        nix::unistd::geteuid().as_raw()
    }

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("vmpid-sweep-{}-{name}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    }

    #[test]
    fn pages_of_the_dead_go_and_others_stay() {
        let shm = scratch("shm");
        let prefix = status_page::name_prefix(user());
        let (dead, locked, foreign) =
            (shm.join(format!("{prefix}999999999-a")), shm.join(format!("{prefix}999999998-b")), shm.join("other"));
        for file in [&dead, &locked, &foreign] {
            fs::write(file, "").unwrap();
        }
        let lock = Flock::lock(File::open(&locked).unwrap(), FlockArg::LockExclusive).unwrap();
        sweep_pages(&shm, user());
        assert!(!dead.exists() && locked.exists() && foreign.exists());
        drop(lock);
        sweep_pages(&shm, user());
        assert!(!locked.exists());
        fs::remove_dir_all(shm).unwrap();
    }

    #[test]
    fn private_directories_go_when_launcher_and_daemon_are_dead() {
        let base = scratch("base");
        let make = |name: &str| {
            let dir = base.join(name);
            fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
            fs::write(dir.join("vmpid.sock"), "").unwrap();
            dir
        };
        let own = make(&format!("job-999999999-{}", "own"));
        let (dead, fresh) = (make("job-999999999-dead"), make(&format!("job-{}-fresh", std::process::id())));
        let (served, waiting, full) =
            (make("job-999999999-served"), make("job-999999999-waiting"), make("job-999999999-full"));
        let daemon = RuntimeDir::open(&served).unwrap();
        let launcher = File::create(waiting.join(LAUNCHER_LOCK_NAME)).unwrap();
        let launcher = Flock::lock(launcher, FlockArg::LockExclusive).unwrap();
        fs::write(full.join("precious"), "").unwrap();
        sweep_private_dirs(&base, &own, user());
        assert!(!dead.exists(), "nobody holds it");
        assert!([&own, &fresh, &served, &waiting].iter().all(|dir| dir.join("vmpid.sock").exists()));
        assert!(full.join("precious").exists() && !full.join("vmpid.sock").exists(), "only what vmpi puts there goes");
        drop((daemon, launcher));
        sweep_private_dirs(&base, &own, user());
        assert!(!served.exists() && !waiting.exists() && own.exists());
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let base = scratch("links");
        let target = base.join("target");
        fs::DirBuilder::new().mode(0o700).create(&target).unwrap();
        fs::write(target.join("status"), "").unwrap();
        std::os::unix::fs::symlink(&target, base.join("job-999999999-link")).unwrap();
        sweep_private_dirs(&base, Path::new("/"), user());
        assert!(target.join("status").exists());
        fs::remove_dir_all(base).unwrap();
    }
}
