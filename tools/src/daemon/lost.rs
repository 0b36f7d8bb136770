//! The end of a connection to a daemon whose job has not ended: what is left of the job is killed from here, and it is said what has become of the
//! daemon. One that lives goes on, with its socket and all its other jobs: nothing of it is removed.

use super::LAST_STEPS;
use super::condition::{self, Condition};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use vmpi_shared::control::env;
use vmpi_shared::leftovers;

/// Killed processes are gone after so long, unless no signal reaches them; or after so long on a machine that has too much to do.
const DEATH: Duration = Duration::from_secs(1);
const SLOW_DEATH: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);
/// So many are named that do not end.
const MOST_NAMED: usize = 4;

/// How the connection ended.
#[derive(Debug)]
pub enum Loss {
    /// By the daemon.
    Closed,
    Broken(io::Error),
    /// The daemon was told to end the job, and has not.
    Silent,
}

impl Loss {
    /// Reading failed; a connection that is reset was closed.
    pub fn of(error: io::Error) -> Loss {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Loss::Closed,
            _ => Loss::Broken(error),
        }
    }
}

/// A job, as its launcher knows it.
pub struct Orphans<'a> {
    pub job: u32,
    /// Number of each rank and the process that was started for it.
    pub ranks: &'a [(u32, i32)],
}

/// Kill what is left of a job whose daemon (`pid`, at `socket`) does not see to it any more, and say why that is.
pub fn end_job(socket: &Path, pid: i32, loss: &Loss, orphans: &Orphans) -> String {
    let ranks: Vec<i32> = orphans.ranks.iter().map(|(_, pid)| *pid).collect();
    let killed = kill_job(socket, orphans.job, &ranks);
    let Some(dir) = socket.parent().filter(|dir| !dir.as_os_str().is_empty()) else {
        return match loss {
            Loss::Silent => {
                "the daemons of its nodes have not ended the job; `vmpictl ps` there shows what is left of it".into()
            }
            Loss::Closed => "the connection to the daemons of its nodes broke".into(),
            Loss::Broken(error) => format!("the connection to the daemons of its nodes broke: {error}"),
        };
    };
    if is_dead(dir, pid, loss) {
        return format!("vmpid (pid {pid}) died; the ranks of its job were killed");
    }
    let stuck = outlive(&killed);
    let why = condition::of(pid).filter(|seen| !matches!(seen, Condition::Other { .. }));
    let why = why.map_or(String::new(), |seen| format!(": {seen}"));
    let head = match loss {
        Loss::Silent if !stuck.is_empty() && why.is_empty() => format!("vmpid (pid {pid}) cannot end the job"),
        Loss::Silent => format!("vmpid (pid {pid}) does not answer{why}"),
        Loss::Closed => format!("vmpid (pid {pid}) has closed the connection{why}"),
        Loss::Broken(error) => format!("the connection to vmpid (pid {pid}) broke: {error}{why}"),
    };
    match stuck.is_empty() {
        true => format!("{head}; the ranks of its job were killed from here"),
        false => format!("{head}; what was killed from here and does not end: {}", named(&stuck, orphans)),
    }
}

/// The daemon holds the lock of its directory until it ends. What it has left there goes on this occasion.
fn is_dead(dir: &Path, pid: i32, loss: &Loss) -> bool {
    // A daemon that is ending closes its connections first, one by one, and who sweeps holds the lock for a moment.
    let patience = if matches!(loss, Loss::Silent) { LAST_STEPS / 20 } else { LAST_STEPS };
    let begin = Instant::now();
    loop {
        if let Some(lock) = leftovers::lock_of_dead(dir) {
            leftovers::remove_daemon(dir, &lock);
            return true;
        }
        if !dir.exists() && condition::of(pid).is_none() {
            return true;
        }
        if begin.elapsed() > patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kill every process that has the job in its environment, `pids` among them. Returns whom.
pub fn kill_job(socket: &Path, job: u32, pids: &[i32]) -> Vec<i32> {
    let marks =
        [format!("{}={}", env::SOCKET, socket.display()).into_bytes(), format!("{}={job}", env::JOBID).into_bytes()];
    let of_job = |pid: i32| {
        fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environ| marks.iter().all(|mark| environ.split(|byte| *byte == 0).any(|word| word == mark)))
    };
    let own = std::process::id() as i32;
    let running = fs::read_dir("/proc").into_iter().flatten().flatten();
    let running = running.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut all: Vec<i32> = pids.iter().copied().chain(running).filter(|pid| *pid != own).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|pid| of_job(*pid));
    for pid in &all {
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(*pid), nix::sys::signal::Signal::SIGKILL);
    }
    all
}

/// Who of those that were killed does not end, and why.
fn outlive(killed: &[i32]) -> Vec<(i32, Condition)> {
    let begin = Instant::now();
    loop {
        let left: Vec<(i32, Condition)> =
            killed.iter().filter_map(|pid| condition::of(*pid).map(|seen| (*pid, seen))).collect();
        let hopeless = left.iter().all(|(_, seen)| !matches!(seen, Condition::Other { .. }));
        if begin.elapsed() > if hopeless { DEATH } else { SLOW_DEATH } || left.is_empty() {
            return left;
        }
        std::thread::sleep(PAUSE);
    }
}

fn named(stuck: &[(i32, Condition)], orphans: &Orphans) -> String {
    let name = |(pid, seen): &(i32, Condition)| match orphans.ranks.iter().find(|(_, of_rank)| of_rank == pid) {
        Some((rank, _)) => format!("rank {rank} (pid {pid}): {seen}"),
        None => format!("process {pid}: {seen}"),
    };
    let mut names: Vec<String> = stuck.iter().take(MOST_NAMED).map(name).collect();
    if stuck.len() > MOST_NAMED {
        names.push(format!("{} more", stuck.len() - MOST_NAMED));
    }
    names.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use vmpi_shared::control::SOCKET_NAME;

    /// Whoever holds the lock lives, whatever the connection looks like; then everything stays.
    #[test]
    fn nothing_of_a_living_daemon_is_removed() {
        let dir = std::env::temp_dir().join(format!("vmpi-lost-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let socket = dir.join(SOCKET_NAME);
        drop(UnixListener::bind(&socket).unwrap());
        let lock = leftovers::lock_of_dead(&dir).unwrap();
        let own = std::process::id() as i32;
        let said = |loss| end_job(&socket, own, &loss, &Orphans { job: 4711, ranks: &[] });
        let lives = [said(Loss::Silent), said(Loss::Closed), said(Loss::Broken(io::ErrorKind::InvalidData.into()))];
        assert!(socket.exists());
        for (sentence, part) in lives.iter().zip(["does not answer", "has closed", "broke: invalid data"]) {
            assert!(sentence.contains(part) && !sentence.contains("died"), "{sentence}");
        }
        drop(lock);
        assert!(said(Loss::Closed).contains("died") && !socket.exists());
        fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn ranks_that_do_not_end_are_named() {
        let frozen = Condition::Frozen { state: 'D', group: "/jobs".into() };
        let stuck = [(7, frozen), (8, Condition::Uninterruptible { wchan: None })];
        let text = named(&stuck, &Orphans { job: 1, ranks: &[(0, 6), (1, 7)] });
        assert!(
            text.starts_with("rank 1 (pid 7): it is in state D, frozen with its cgroup /jobs; process 8: it is in"),
            "{text}"
        );
        let many = vec![stuck[0].clone(); 9];
        assert!(named(&many, &Orphans { job: 1, ranks: &[] }).ends_with("; 5 more"));
    }
}
