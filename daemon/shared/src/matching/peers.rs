//! Which process is behind a rank: the pid from shared memory, believed only of a process of this job.
//!
//! Copies go straight into and out of another process's memory. A pid that was scribbled over may be that of a rank of
//! another job, which must not come to harm (promise 5). So a pid is checked before its first use: the process is in this
//! process's group, as all ranks are that did not move, or was started with this job's key.

use crate::control::env;
use crate::mem::sync::{AtomicU64, Ordering};
use std::fs;

/// Peers remembered; a power of two.
const KNOWN: usize = 64;

/// (rank, pid) of peers that have been checked; private to this process.
pub struct Peers {
    known: [AtomicU64; KNOWN],
}

impl Default for Peers {
    fn default() -> Peers {
        Peers { known: std::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Peers {
    /// Is process `pid` one of this job's, so that it can be `rank`?
    #[inline]
    pub fn is_one(&self, rank: u32, pid: i32) -> bool {
        let word = u64::from(rank) << 32 | u64::from(pid as u32);
        let known = &self.known[rank as usize % KNOWN];
        if known.load(Ordering::Relaxed) == word && pid > 0 {
            return true;
        }
        let good = pid > 0 && belongs(pid);
        if good {
            known.store(word, Ordering::Relaxed);
        }
        good
    }
}

#[cold]
fn belongs(pid: i32) -> bool {
    // SAFETY: system calls on plain values.
    let same_group = unsafe { libc::getpgid(pid) == libc::getpgrp() };
    same_group || key_of("self").is_some_and(|key| key_of(&pid.to_string()) == Some(key))
}

/// The entry of a process's first environment that holds its job's key.
fn key_of(process: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let name = [env::KEY.as_bytes(), b"="].concat();
    environment.split(|byte| *byte == 0).find(|entry| entry.starts_with(&name)).map(<[u8]>::to_vec)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn only_processes_of_the_job_are_believed() {
        let peers = Peers::default();
        let mut friend = Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let mut stranger = Command::new("/bin/sleep").arg("100").process_group(0).spawn().unwrap();
        let (friendly, strange) = (friend.id() as i32, stranger.id() as i32);
        assert!(peers.is_one(3, friendly) && peers.is_one(3, friendly));
        assert!(!peers.is_one(3, strange) && !peers.is_one(4, 1) && !peers.is_one(0, 0) && !peers.is_one(0, -1));
        assert!(peers.is_one(3, friendly), "a wrong pid does not stick");
        for child in [&mut friend, &mut stranger] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
