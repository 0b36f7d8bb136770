//! What dead daemons and launchers left: status pages in /dev/shm, private runtime directories. Every daemon sweeps once.
//!
//! A killed daemon's supervisor cleans up, and a killed launcher's daemon. This is for when all were killed at once (the
//! out-of-memory killer, `kill -9` of a group, a container's end). Who lives holds a lock, and the kernel drops it whatever
//! ends the owner: a daemon locks its runtime directory and its status page, a launcher the marker in the private
//! directory that it makes. The sweeper takes the lock, looks whether the name is still that of what it has locked, and
//! removes while it holds the lock; owners look in the same way after they have got theirs. What is vmpi's, and what only
//! is called so: `vmpi_shared::leftovers`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_shared::control::{PRIVATE_PREFIX, SOCKET_NAME, env};
use vmpi_shared::{leftovers, proc, runtime_dir};

use crate::log::debug;

/// So often a swept job's processes are looked for, and so long apart: they may start others meanwhile.
const ROUNDS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Where private directories lie for which there is no room below the runtime directory.
const FALLBACK_DIR: &str = "/tmp";

/// Sweep where daemons of this user live: /dev/shm, /tmp, the `default` place and the place of `own`, this daemon's directory.
pub fn sweep(own: &Path, default: &Path) {
    let user = nix::unistd::geteuid().as_raw();
    sweep_pages(Path::new(leftovers::SHM_DIR), user);
    // A launcher's directory lies in the runtime directory, or in /tmp.
    let base = own.parent().filter(|_| leftovers::is_marked(own)).unwrap_or(own);
    let mut bases = vec![default, base];
    bases.dedup();
    // Nobody makes private directories where others can look in, or in a directory of somebody else's.
    for base in bases.into_iter().filter(|base| runtime_dir::is_private(base)) {
        bury(base, &leftovers::remove_dead_below(base, Some(own)));
    }
    let fallback = Path::new(FALLBACK_DIR);
    bury(fallback, &leftovers::remove_dead(fallback, &format!("vmpi-{user}-{PRIVATE_PREFIX}"), Some(own)));
    // The directory itself stays: it may be one that the user made and works in.
    if default != own
        && runtime_dir::is_private(default)
        && let Some(lock) = leftovers::lock_of_dead(default)
    {
        leftovers::remove_daemon(default, &lock);
    }
}

/// Directories of jobs whose launcher, supervisor and daemon were all killed have been swept: what their ranks have started in sessions of
/// its own may have survived, since no signal of the parent's death goes there.
fn bury(base: &Path, swept: &[String]) {
    let base = fs::canonicalize(base).unwrap_or_else(|_| base.to_owned());
    for name in swept {
        let dir = base.join(name);
        debug!("swept {}", dir.display());
        for _ in 0..ROUNDS {
            let left = processes_of(&dir.join(SOCKET_NAME));
            if left.is_empty() {
                break;
            }
            for pid in left {
                debug!("killing process {pid}, which a job has left whose vmpid was in {}", dir.display());
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Those that have this daemon's socket in their environment. Its directory was one job's, with a name that there is only once.
fn processes_of(socket: &Path) -> Vec<i32> {
    let mark = format!("{}={}", env::SOCKET, socket.display()).into_bytes();
    let running = fs::read_dir("/proc").into_iter().flatten().flatten();
    let running = running.filter_map(|entry| entry.file_name().into_string().ok());
    let of_job = running.filter(|seen| {
        seen.bytes().all(|byte| byte.is_ascii_digit())
            && fs::read(format!("/proc/{seen}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|word| word == mark))
    });
    of_job.filter_map(|seen| proc::pid_of(&seen)).filter(|pid| *pid != std::process::id() as i32).collect()
}

fn sweep_pages(shm: &Path, user: u32) {
    let names =
        fs::read_dir(shm).into_iter().flatten().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| name.starts_with(&leftovers::page_prefix(user))) {
        // A daemon older than the lock may still live.
        if !leftovers::page_owner(&name).is_some_and(is_vmpid) && leftovers::remove_page(&shm.join(&name)) {
            debug!("swept {}", shm.join(&name).display());
        }
    }
}

fn is_vmpid(pid: i32) -> bool {
    let name = proc::directory(pid).and_then(|process| fs::read_to_string(process.join("comm")).ok());
    name.is_some_and(|name| name.trim_end() == "vmpid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_dir::RuntimeDir;
    use nix::fcntl::{Flock, FlockArg};
    use std::fs::File;
    use std::os::unix::fs::DirBuilderExt;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use vmpi_shared::control::{LAUNCHER_LOCK_NAME, NEW_LAUNCHER_LOCK_NAME};

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
        let prefix = leftovers::page_prefix(user());
        let page = |rest: &str| shm.join(format!("{prefix}{rest}"));
        let (dead, locked) = (page("999999999-a"), page("999999998-b"));
        let (foreign, other, text) = (shm.join("other"), page("999999999-results"), page("999999999-c"));
        for (file, content) in [(&dead, ""), (&locked, "VMPISTAT"), (&foreign, ""), (&other, ""), (&text, "my results")]
        {
            fs::write(file, content).unwrap();
        }
        let lock = Flock::lock(File::open(&locked).unwrap(), FlockArg::LockExclusive).unwrap();
        sweep_pages(&shm, user());
        assert!(!dead.exists() && [&locked, &foreign, &other, &text].iter().all(|file| file.exists()));
        drop(lock);
        sweep_pages(&shm, user());
        assert!(!locked.exists());
        fs::remove_dir_all(shm).unwrap();
    }

    fn make_dir(base: &Path, name: &str) -> PathBuf {
        let dir = base.join(name);
        fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        dir
    }

    /// As a launcher and its daemon that were killed leave it.
    fn make_left(base: &Path, name: &str, marker: &str) -> PathBuf {
        let dir = make_dir(base, name);
        drop(UnixListener::bind(dir.join("vmpid.sock")).unwrap());
        fs::write(dir.join(marker), "").unwrap();
        dir
    }

    #[test]
    fn private_directories_go_when_launcher_and_daemon_are_dead() {
        let base = scratch("base");
        let make = |name: &str| make_left(&base, name, LAUNCHER_LOCK_NAME);
        let make_new = |name: &str| make_left(&base, name, NEW_LAUNCHER_LOCK_NAME);
        let own = make("job-999999999-own");
        let (dead, before) = (make("job-999999999-dead"), make_new("job-999999999-before"));
        let fresh = make_new(&format!("job-{}-fresh", std::process::id()));
        let (served, waiting, full) =
            (make("job-999999999-served"), make("job-999999999-waiting"), make("job-999999999-full"));
        let nested = make_left(&dead, "job-999999998-nested", LAUNCHER_LOCK_NAME);
        let daemon = RuntimeDir::open(&served).unwrap();
        let launcher = File::open(waiting.join(LAUNCHER_LOCK_NAME)).unwrap();
        let launcher = Flock::lock(launcher, FlockArg::LockExclusive).unwrap();
        fs::write(full.join("precious"), "").unwrap();
        leftovers::remove_dead_below(&base, Some(&own));
        assert!(!dead.exists() && !before.exists() && !nested.exists(), "nobody holds it");
        assert!([&own, &fresh, &served, &waiting].iter().all(|dir| dir.join("vmpid.sock").exists()));
        assert!(full.join("precious").exists() && !full.join("vmpid.sock").exists(), "only what vmpi puts there goes");
        drop((daemon, launcher));
        leftovers::remove_dead_below(&base, Some(&own));
        assert!(!served.exists() && !waiting.exists() && own.exists());
        fs::remove_dir_all(base).unwrap();
    }

    /// Directories and files of the user's that are called as vmpi's are.
    #[test]
    fn what_is_the_users_stays() {
        let base = scratch("mine");
        let mine = make_dir(&base, "job-4711-results");
        for name in ["status", "launcher", "launcher.new", "vmpid.sock"] {
            fs::write(mine.join(name), "mine").unwrap();
        }
        let empty = make_dir(&base, "job-4711-empty");
        // Marked, and what lies there is not what vmpi puts there all the same.
        let marked = make_dir(&base, "job-999999999-marked");
        fs::write(marked.join(LAUNCHER_LOCK_NAME), "").unwrap();
        fs::write(marked.join("vmpid.sock"), "mine").unwrap();
        nix::unistd::mkfifo(&marked.join("status"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        leftovers::remove_dead_below(&base, None);
        let lock = leftovers::lock_of_dead(&base).unwrap();
        for name in ["status", ".vmpi-launcher.new", "vmpid.sock"] {
            fs::write(base.join(name), "/vmpi-status-0-1-x").unwrap();
        }
        leftovers::remove_daemon(&base, &lock);
        assert_eq!(fs::read_dir(&mine).unwrap().count(), 4);
        assert!(empty.exists() && marked.join("vmpid.sock").exists() && marked.join("status").exists());
        assert!(base.join("status").exists() && base.join("vmpid.sock").exists(), "neither flink nor socket");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let base = scratch("links");
        let target = make_left(&base, "target", LAUNCHER_LOCK_NAME);
        std::os::unix::fs::symlink(&target, base.join("job-999999999-link")).unwrap();
        leftovers::remove_dead_below(&base, None);
        assert!(target.join("vmpid.sock").exists());
        fs::remove_dir_all(base).unwrap();
    }
}
