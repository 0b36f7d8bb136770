//! Processes under /proc, which may show another PID namespace than this process's: a container that was given the host's has pids of its own, and under /proc the same
//! numbers mean other processes.

use rustix::fs::{Mode, OFlags, RawDir, open};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::LazyLock;

/// If /proc shows an outer namespace: which of the numbers in a process's NSpid line, from there inwards, is the one in this process's namespace.
static DEPTH: LazyLock<Option<usize>> = LazyLock::new(|| {
    let own = fs::read_link("/proc/self").ok()?;
    let foreign = own.to_str() != Some(&std::process::id().to_string());
    if foreign { Some(numbers("/proc/self/status").len().saturating_sub(1)) } else { None }
});

/// The directory of process `pid` under /proc; `None` if it is not seen there.
pub fn directory(pid: i32) -> Option<PathBuf> {
    seen_as(pid).map(|seen| PathBuf::from(format!("/proc/{seen}")))
}

/// The number of process `pid` under /proc.
pub fn seen_as(pid: i32) -> Option<i32> {
    match *DEPTH {
        None => Some(pid),
        Some(_) if pid == std::process::id() as i32 => fs::read_link("/proc/self").ok()?.to_str()?.parse().ok(),
        Some(_) => look_up(pid),
    }
}

/// The pid of the process or thread that is `seen` under /proc (`N`, `N/task/T`); `None` if it has none in this namespace.
pub fn pid_of(seen: &str) -> Option<i32> {
    match *DEPTH {
        None => seen.rsplit('/').next()?.parse().ok(),
        Some(depth) => numbers(&format!("/proc/{seen}/status")).get(depth).copied(),
    }
}

/// How /proc calls the threads of the process that is `seen` there. Without opendir(3), which takes memory of malloc's: a rank may look in a signal's handler, which may
/// have come inside malloc, and the block that it would get may lie beside memory that must not be touched (`overlap` of vmpi-core).
pub fn threads_of(seen: i32) -> Vec<i32> {
    let mut threads = Vec::new();
    each_thread(&format!("/proc/{seen}/task"), |thread| threads.push(thread));
    threads
}

/// How many threads this process has; 0: not known. As `threads_of`.
pub fn own_threads() -> usize {
    let mut count = 0;
    each_thread("/proc/self/task", |_| count += 1);
    count
}

fn each_thread(directory: &str, mut found: impl FnMut(i32)) {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = open(directory, how, Mode::empty()) else { return };
    let mut room = [MaybeUninit::uninit(); 4096];
    let mut entries = RawDir::new(directory, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(thread) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) {
            found(thread);
        }
    }
}

/// A descriptor of a process, readable once it has ended (pidfd_open(2)).
///
/// # Errors
/// There is none, or no descriptor is left.
pub fn open_pid(pid: i32) -> std::io::Result<OwnedFd> {
    // SAFETY: a system call on plain values; nobody else owns the new descriptor.
    unsafe {
        let number = libc::syscall(libc::SYS_pidfd_open, pid, 0) as i32;
        if number < 0 { Err(std::io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(number)) }
    }
}

/// A descriptor of the process tells how /proc calls it.
#[cold]
fn look_up(pid: i32) -> Option<i32> {
    let process = open_pid(pid).ok()?;
    let told = fs::read_to_string(format!("/proc/self/fdinfo/{}", process.as_raw_fd())).ok()?;
    let seen = told.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()?;
    (seen > 0).then_some(seen)
}

/// The numbers of a process in the namespace that /proc shows, and from there inwards.
fn numbers(status: &str) -> Vec<i32> {
    let status = fs::read_to_string(status).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
    line.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn all_threads_are_found() {
        let own = std::process::id() as i32;
        let before = threads_of(own);
        // More than one page of names.
        let (held, go) = (std::sync::Mutex::new(()), std::sync::Barrier::new(301));
        let locked = held.lock().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..300 {
                scope.spawn(|| {
                    go.wait();
                    drop(held.lock().unwrap());
                });
            }
            go.wait();
            let found: std::collections::BTreeSet<i32> = threads_of(own).into_iter().collect();
            assert!(before.contains(&own) && found.len() > 300, "{before:?} {found:?}");
            drop(locked);
        });
        assert!(threads_of(i32::MAX).is_empty());
    }

    #[test]
    fn this_process_is_seen() {
        let me = std::process::id() as i32;
        assert_eq!(directory(me).map(|directory| directory.join("stat").exists()), Some(true));
        assert_eq!(pid_of("self"), DEPTH.map(|_| me), "a name, not a number");
        assert_eq!(pid_of(&seen_as(me).unwrap().to_string()), Some(me));
        assert_eq!(look_up(me), seen_as(me));
        assert_eq!(look_up(i32::MAX / 4), None);
        assert!(numbers("/proc/self/status").contains(&me));
    }
}
