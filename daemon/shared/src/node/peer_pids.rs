//! Which process is behind a rank: found by what it shows, not believed by its number.
//!
//! Copies go straight into and out of another process's memory. The pids are the daemon's (`node::Pids`), which no rank can write; in a PID namespace of a rank's own
//! they are nobody's, or somebody else's, and there each rank says by which number it is seen. That may have been scribbled over, and be the number of a rank
//! of another job, which must not come to harm (SPECIFICATION 4.1). So a process is
//! tried before its first use: it is the rank if the rank's number is read in its memory, where the rank says that it shows it
//! (`node::Whereabouts`), and then it can be copied from and to.
//! Where the kernel allows nobody to read, a process of this one's group, or that was started for this job, may still be moved to another CPU.

use crate::control::env;
use crate::mem::sync::{AtomicU64, Ordering};
use crate::node::Whereabouts;
use std::fs;
use vmpi_cma::{Block, CopyError};

/// Peers remembered; a power of two.
const KNOWN: usize = 256;
/// Pids have fewer bits (PID_MAX_LIMIT is 2^22): above them, in a word, is how a process stands.
const PID_BITS: u32 = 30;
const STANDING: u64 = 3 << PID_BITS;

/// How a peer's process stands to this one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Peer {
    /// No process that this one sees, or one that cannot be told from others.
    Unseen,
    /// It is of this job, and its memory is out of reach.
    Known(i32),
    /// Its memory can be copied from and to.
    Reached(i32),
}

const UNSEEN: u64 = 0;
const KNOWN_ONLY: u64 = 1;
/// By the daemon's pid, or by its own.
const REACHED: u64 = 2;
const REACHED_BY_OWN: u64 = 3;

/// How the peers that have been tried stand: rank, standing and the daemon's pid; private to this process.
pub struct PeerPids {
    known: [AtomicU64; KNOWN],
    /// Of those that are reached by a pid of their own: rank, and that. As it was when it was tried, whatever is written over it later.
    own: [AtomicU64; KNOWN],
    /// The daemon's pids mean the same here: who says another number is not believed.
    by_told_pids: bool,
}

impl Default for PeerPids {
    fn default() -> PeerPids {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        PeerPids { known: words(), own: words(), by_told_pids: false }
    }
}

impl PeerPids {
    /// Believe no rank that says by which number it is seen.
    pub fn trust_told_pids(&mut self) {
        self.by_told_pids = true;
    }

    /// The process of `rank`, which is `pid` to the daemon.
    #[inline]
    pub fn find(&self, rank: u32, pid: i32, whereabouts: &Whereabouts) -> Peer {
        if pid <= 0 || pid >> PID_BITS != 0 {
            return Peer::Unseen;
        }
        let known = &self.known[rank as usize % KNOWN];
        let (key, word) = (u64::from(rank) << 32 | u64::from(pid as u32), known.load(Ordering::Relaxed));
        let standing = if word & !STANDING == key {
            (word & STANDING) >> PID_BITS
        } else {
            let Some((found, own)) = self.try_process(pid, whereabouts) else { return Peer::Unseen };
            self.own[rank as usize % KNOWN].store(u64::from(rank) << 32 | u64::from(own as u32), Ordering::Relaxed);
            known.store(key | found << PID_BITS, Ordering::Release);
            found
        };
        match standing {
            UNSEEN => Peer::Unseen,
            KNOWN_ONLY => Peer::Known(pid),
            REACHED => Peer::Reached(pid),
            _ => match self.own[rank as usize % KNOWN].load(Ordering::Relaxed) {
                own if own >> 32 == u64::from(rank) => Peer::Reached(own as u32 as i32),
                _ => {
                    // Another thread has just tried another rank: this one is tried again the next time.
                    known.store(0, Ordering::Relaxed);
                    Peer::Unseen
                }
            },
        }
    }

    /// How the process stands, and its own pid; `None` if it has not said yet what it shows.
    #[cold]
    fn try_process(&self, pid: i32, whereabouts: &Whereabouts) -> Option<(u64, i32)> {
        let word = Some(whereabouts.word.load(Ordering::Acquire)).filter(|word| *word != 0)?;
        let (at, own) = (whereabouts.at.load(Ordering::Relaxed), whereabouts.own_pid.load(Ordering::Relaxed));
        let seen = shown(pid, at);
        let may_say = !self.by_told_pids && own > 0 && own != pid;
        let standing = match seen {
            Ok(seen) if seen == word => REACHED,
            // Ranks of one container may see each other by other numbers than the daemon.
            _ if may_say && shown(own, at) == Ok(word) => REACHED_BY_OWN,
            Err(CopyError::Refused { .. } | CopyError::Unsupported) if self.by_told_pids || belongs(pid) => KNOWN_ONLY,
            _ => UNSEEN,
        };
        Some((standing, own))
    }
}

/// What process `pid` has at `addr`.
fn shown(pid: i32, addr: u64) -> Result<u64, CopyError> {
    let mut word = 0u64;
    let into = Block { addr: &raw mut word as u64, len: size_of::<u64>() as u64 };
    // SAFETY: eight bytes of this function's own are written, with plain bytes.
    unsafe { vmpi_cma::read(pid, &[into], &[Block { addr, ..into }])? };
    Ok(word)
}

#[cold]
fn belongs(pid: i32) -> bool {
    // SAFETY: system calls on plain values.
    let (its_group, group) = unsafe { (libc::getpgid(pid), libc::getpgrp()) };
    // 0: led by a process outside this PID namespace, as may be others'.
    its_group == group && group != 0 || job_of("self").is_some_and(|job| job_of(&pid.to_string()) == Some(job))
}

/// The entry of a process's first environment that says which job it was started for.
fn job_of(process: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let name = [env::JOB.as_bytes(), b"="].concat();
    environment.split(|byte| *byte == 0).find(|entry| entry.starts_with(&name)).map(<[u8]>::to_vec)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::{NodeConfig, NodeSegment};
    use std::process::Command;

    /// A rank that is this process, and what is found of it under these pids: the daemon's, and its own.
    fn found(pid: i32, own: i32) -> (Peer, NodeSegment) {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).unwrap();
        node.set_pid(0, pid);
        assert_eq!(node.peer(0), Peer::Unseen, "it has said nothing yet");
        node.introduce(0);
        node.whereabouts(0).own_pid.store(own, Ordering::Relaxed);
        (node.peer(0), node)
    }

    /// A rank of another job, or vmpid itself: what a rank that scribbles may name, before it has been tried or after.
    #[test]
    fn who_names_another_process_is_not_believed() {
        let mut other = Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let (pid, me) = (other.id() as i32, std::process::id() as i32);
        let mut node = NodeSegment::create(&NodeConfig::on_one_core(0, 2)).unwrap();
        node.set_pids(crate::node::Pids::create(2).unwrap());
        for rank in 0..2 {
            node.set_pid(rank, me);
            node.introduce(rank);
        }
        assert_eq!(node.copy_pid(0), Some(me));
        for rank in 0..2 {
            node.rank(rank).pid.store(pid, Ordering::SeqCst);
            node.whereabouts(rank).own_pid.store(pid, Ordering::SeqCst);
            assert_eq!((node.copy_pid(rank), node.pid(rank)), (Some(me), me), "by the daemon's word");
        }
        node.end_pid(0);
        assert_eq!((node.copy_pid(0), node.pid(0)), (None, me), "its number may be another one's now");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_number_of_its_own_is_good_as_it_was_tried() {
        let mut other = Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let (pid, me) = (other.id() as i32, std::process::id() as i32);
        let (peer, mut node) = found(i32::MAX / 4, me);
        assert_eq!(peer, Peer::Reached(me));
        node.whereabouts(0).own_pid.store(pid, Ordering::SeqCst);
        assert_eq!(node.peer(0), Peer::Reached(me), "not as it is written over");
        node.own.peers = PeerPids::default();
        assert_eq!(node.peer(0), Peer::Unseen);
        node.whereabouts(0).own_pid.store(me, Ordering::SeqCst);
        node.own.peers = PeerPids::default();
        node.find_by_told_pids();
        assert_eq!(node.peer(0), Peer::Unseen, "whose child one is, of that one the pids are good here");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_process_is_known_by_what_it_shows() {
        let me = std::process::id() as i32;
        assert_eq!(found(me, 0).0, Peer::Reached(me));
        assert_eq!(found(me, me).0, Peer::Reached(me));
        let (peer, node) = found(i32::MAX / 4, me);
        assert_eq!(peer, Peer::Reached(me), "the daemon's pid means nothing here");
        assert_eq!(node.peer(0), peer, "and that is remembered");
        for nobody in [0, -1, i32::MAX, i32::MAX / 4] {
            assert_eq!(found(nobody, nobody).0, Peer::Unseen);
        }
    }

    /// Of this process's group, started for the same job, and all the same not the rank.
    #[test]
    fn another_process_under_the_same_number_is_not_taken_for_it() {
        let mut other = Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let (pid, me) = (other.id() as i32, std::process::id() as i32);
        let (peer, node) = found(pid, pid);
        assert_eq!(peer, Peer::Unseen);
        assert_eq!((node.peer_pid(0), node.copy_pid(0)), (None, None));
        node.whereabouts(0).own_pid.store(me, Ordering::Relaxed);
        assert_eq!(node.peer(0), Peer::Unseen, "it was tried once");
        node.set_pid(0, me);
        node.introduce(0);
        assert_eq!((node.peer_pid(0), node.copy_pid(0)), (Some(me), Some(me)), "another process is tried anew");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
