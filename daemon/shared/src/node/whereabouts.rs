//! Where a rank's process is to be found, in its own words: what `node::peer_pids` looks for, and how files are passed on.
//!
//! Ranks of one node may live in namespaces of their own (a container for each). Pids and /proc mean something else there than to the daemon, so each says what
//! it sees, and nobody believes a number that has not been tried.

use super::NodeSegment;
use crate::mem::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;

/// What a rank tells of its process. Cleared by the daemon before another process becomes the rank.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Whereabouts {
    /// A number that no other process has; 0: nothing has been told yet. Written last.
    pub word: AtomicU64,
    /// The address in its process at which it shows that.
    pub at: AtomicU64,
    /// Its pid as it sees that itself.
    pub own_pid: AtomicI32,
    reserved: AtomicI32,
    /// What it sees of others under /proc: those of the same view, if it is not 0, see each other there by the daemon's pids.
    pub view: AtomicU64,
    /// The mark of the file of `RankDescriptor::heap_fd`.
    pub heap_file: AtomicU64,
    /// The call that it has left behind and waits for (`report::LEFT_CALLS`), and where that has returned to; written before it waits.
    pub left_at: AtomicU64,
    pub left_call: AtomicU32,
}

/// What this process shows to those who read its memory.
static SHOWN: LazyLock<u64> = LazyLock::new(|| std::hash::RandomState::new().hash_one(std::process::id()) | 1);

impl NodeSegment {
    /// This process is `rank`: tell the others how to find it.
    pub fn introduce(&self, rank: u32) {
        let whereabouts = self.whereabouts(rank);
        whereabouts.own_pid.store(std::process::id() as i32, Ordering::Relaxed);
        whereabouts.view.store(view(self.pid(rank)), Ordering::Relaxed);
        whereabouts.at.store(&raw const *SHOWN as u64, Ordering::Relaxed);
        whereabouts.word.store(*SHOWN, Ordering::Release);
    }

    /// Do these ranks of this node see each other's descriptors under /proc by the daemon's pids? Both have told what they see.
    pub fn see_each_other(&self, one: u32, other: u32) -> bool {
        let view = |rank: u32| self.whereabouts(rank).view.load(Ordering::Relaxed);
        one == other || (view(one) != 0 && view(one) == view(other))
    }

    /// Memory of `rank`, this process, lies in `file` from now on.
    ///
    /// # Errors
    /// That cannot be looked at.
    pub fn lay_open(&self, rank: u32, file: impl AsFd) -> io::Result<()> {
        use std::os::fd::AsRawFd;
        let mark = mark_of(&file)?;
        self.whereabouts(rank).heap_file.store(mark, Ordering::Relaxed);
        self.rank(rank).heap_fd.store(file.as_fd().as_raw_fd() as u32 + 1, Ordering::Release);
        Ok(())
    }
}

impl Whereabouts {
    /// Another process becomes the rank.
    pub(super) fn clear(&self) {
        for word in [&self.word, &self.at, &self.view, &self.heap_file, &self.left_at] {
            word.store(0, Ordering::SeqCst);
        }
        self.own_pid.store(0, Ordering::SeqCst);
        self.left_call.store(0, Ordering::SeqCst);
    }
}

/// Which file it is: alike for all descriptors of one, and never 0.
///
/// # Errors
/// It cannot be looked at.
pub fn mark_of(file: &impl AsFd) -> io::Result<u64> {
    let stat = nix::sys::stat::fstat(file.as_fd())?;
    Ok((stat.st_dev.rotate_left(40) ^ stat.st_ino).max(1))
}

/// What this process, which the daemon knows by `pid`, sees under /proc; 0: not itself by that number.
fn view(pid: i32) -> u64 {
    let sees_itself = fs::read_link("/proc/self").is_ok_and(|link| link.to_str() == Some(&pid.to_string()));
    let namespace = |name: &str| fs::metadata(format!("/proc/self/ns/{name}")).map_or(0, |found| found.ino());
    if sees_itself { namespace("user").rotate_left(32) ^ namespace("pid") | 1 << 63 } else { 0 }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::NodeConfig;
    use nix::sys::memfd::{MFdFlags, memfd_create};

    #[test]
    fn a_file_is_known_by_its_mark() {
        let [one, other] = [0, 1].map(|_| memfd_create("test", MFdFlags::MFD_CLOEXEC).unwrap());
        let again = one.try_clone().unwrap();
        assert_eq!(mark_of(&one).unwrap(), mark_of(&again).unwrap());
        assert_ne!(mark_of(&one).unwrap(), mark_of(&other).unwrap());
    }

    #[test]
    fn only_those_of_one_view_see_each_other() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 4)).unwrap();
        (0..3).for_each(|rank| node.set_pid(rank, std::process::id() as i32));
        node.set_pid(3, std::process::id() as i32 + 1);
        [0, 1, 3].iter().for_each(|rank| node.introduce(*rank));
        assert!(node.see_each_other(0, 1) && node.see_each_other(2, 2));
        assert!(!node.see_each_other(0, 2), "it has said nothing");
        assert!(!node.see_each_other(0, 3) && !node.see_each_other(3, 2), "its pid is another one here");
        node.set_pid(1, std::process::id() as i32);
        assert!(!node.see_each_other(0, 1), "another process is that rank");
    }
}
