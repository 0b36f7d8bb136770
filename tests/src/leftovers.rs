//! What a job left behind: processes (known by their environment) and files in /dev/shm.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A process of a job.
#[derive(Clone, Debug)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub name: String,
    /// One letter, as in ps.
    pub state: char,
    pub wchan: String,
    /// User and system time, clock ticks.
    pub cpu_ticks: u64,
    pub command: String,
}

/// Every process whose environment names this runtime directory. Zombies have no environment and are not found.
pub fn processes_of(runtime_dir: &Path) -> Vec<Process> {
    let wanted = format!("VMPI_RUNTIME_DIR={}", runtime_dir.display()).into_bytes();
    // Ranks may see a directory below it.
    let below = [wanted.clone(), b"/".to_vec()].concat();
    let Ok(dir) = fs::read_dir("/proc") else { return Vec::new() };
    dir.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != std::process::id() as i32)
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|&b| b == 0).any(|entry| entry == wanted || entry.starts_with(&below))
        })
        .filter_map(describe)
        .collect()
}

/// `None` if it is gone or a zombie.
pub fn describe(pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = tail.split_whitespace().collect();
    let state = fields.first()?.chars().next()?;
    let number = |i: usize| fields.get(i).and_then(|f| f.parse::<u64>().ok()).unwrap_or(0);
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    (state != 'Z').then(|| Process {
        pid,
        parent: number(1) as i32,
        name: head.split_once('(').map_or("", |(_, name)| name).into(),
        state,
        wchan: fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default(),
        cpu_ticks: number(11) + number(12),
        command: String::from_utf8_lossy(&command).replace('\0', " "),
    })
}

/// What a process has used so far.
#[derive(Copy, Clone, Debug)]
pub struct Load {
    /// CPU time of all threads, nanoseconds (the scheduler's own count).
    pub cpu_ns: u64,
    /// Times that a thread went to sleep of its own will.
    pub sleeps: u64,
}

/// `None` if it is gone.
pub fn load(pid: i32) -> Option<Load> {
    let mut sum = Load { cpu_ns: 0, sleeps: 0 };
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let schedstat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        sum.cpu_ns += schedstat.split_whitespace().next()?.parse::<u64>().ok()?;
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        sum.sleeps += sleeps.trim().parse::<u64>().ok()?;
    }
    Some(sum)
}

/// Names in /dev/shm that no living daemon answers for, except those of the real MPIs, which run beside us.
pub fn orphaned_shared_memory() -> BTreeSet<String> {
    shared_memory_files().into_iter().filter(|name| !has_living_daemon(name)).collect()
}

/// Names in /dev/shm, except those of the real MPIs.
pub fn shared_memory_files() -> BTreeSet<String> {
    names_in_shared_memory(false)
}

/// Those of the real MPIs, or the others.
fn names_in_shared_memory(of_peers: bool) -> BTreeSet<String> {
    let peers = ["vader_segment", "mpich", "psm", "sm_segment", "sem.", "Intel", "ucx_shm"];
    let Ok(dir) = fs::read_dir("/dev/shm") else { return BTreeSet::new() };
    dir.filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| peers.iter().any(|peer| name.starts_with(peer)) == of_peers)
        .filter(|name| !is_a_benchmarks(name))
        .collect()
}

/// Is it that of a `cargo xtask bench` that runs elsewhere on the machine? No job makes one.
fn is_a_benchmarks(name: &str) -> bool {
    let pid = name.strip_prefix("vmpi-bench-").and_then(|pid| pid.parse().ok());
    pid.is_some_and(|pid: i32| describe(pid).is_some())
}

/// Files in /dev/shm that a real MPI makes from now on, and leaves if it is ended: removed when this is dropped. For a test that nobody runs beside.
pub struct PeersFiles(BTreeSet<String>);

impl PeersFiles {
    pub fn note() -> PeersFiles {
        PeersFiles(names_in_shared_memory(true))
    }
}

impl Drop for PeersFiles {
    fn drop(&mut self) {
        for name in names_in_shared_memory(true).difference(&self.0) {
            let _ = fs::remove_file(std::path::Path::new("/dev/shm").join(name));
        }
    }
}

/// The status page `vmpi-status-UID-PID-...` of another user's or session's daemon that is at work right now.
fn has_living_daemon(name: &str) -> bool {
    let pid = name.strip_prefix("vmpi-status-").and_then(|rest| rest.split('-').nth(1)?.parse().ok());
    pid.is_some_and(|pid| describe(pid).is_some_and(|p| p.name.starts_with("vmpid")))
}

/// Ask again until the answer is yes or the time is over.
pub fn eventually(within: Duration, mut question: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + within;
    loop {
        if question() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_benchmark_that_runs_elsewhere_leaves_nothing_behind() {
        let mut ended = std::process::Command::new("true").spawn().expect("it starts");
        ended.wait().expect("it is our child");
        assert!(is_a_benchmarks(&format!("vmpi-bench-{}", std::process::id())));
        assert!(!is_a_benchmarks(&format!("vmpi-bench-{}", ended.id())));
        assert!(!is_a_benchmarks(&format!("vmpi-status-0-{}", std::process::id())) && !is_a_benchmarks("vmpi-bench-"));
    }
}
