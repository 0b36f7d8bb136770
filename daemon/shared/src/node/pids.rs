//! Which process each rank is: as the daemon says, in memory that no rank can write.
//!
//! Whoever copies out of or into a rank's memory, or sends it a signal, goes by these numbers: what lies in the node segment a rank may have overwritten, by mistake
//! or not, and a process that is more than its ranks (the carrier of a vmpid of root's, whose ranks have given up their rights) would do there what it is told.
//!
//! The file cannot shrink, and once the daemon has mapped it nobody else can map it to write (F_SEAL_FUTURE_WRITE, Linux 5.1; before that only the descriptor that
//! is handed out does not allow it).

use super::NodeSegment;
use super::peer_pids::Peer;
use crate::mem::segment::SegmentError;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::Mode;
use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};

/// The pid of each rank: 0 before MPI_Init, negative once the process has ended.
pub struct Pids {
    words: NonNull<AtomicI32>,
    ranks: u32,
    /// To be handed out, by the daemon.
    fd: Option<OwnedFd>,
}

// SAFETY: atomics in shared memory.
unsafe impl Send for Pids {}
// SAFETY: as above.
unsafe impl Sync for Pids {}

fn bytes_for(ranks: u32) -> NonZeroUsize {
    let bytes = (ranks.max(1) as usize * size_of::<AtomicI32>()).next_multiple_of(4096);
    NonZeroUsize::new(bytes).unwrap_or(NonZeroUsize::MIN)
}

impl Pids {
    /// The daemon's end, which alone can be written.
    ///
    /// # Errors
    /// No memory or no descriptor is free.
    pub fn create(ranks: u32) -> Result<Pids, SegmentError> {
        let bytes = bytes_for(ranks);
        let failed = |errno: Errno| SegmentError::Create { bytes: bytes.get() as u64, source: errno.into() };
        let file = memfd_create("vmpi-pids", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).map_err(failed)?;
        // Who is another user, as a rank that gives up root's rights, cannot open it anew.
        nix::sys::stat::fchmod(&file, Mode::S_IRUSR).map_err(failed)?;
        nix::unistd::ftruncate(&file, bytes.get() as i64).map_err(failed)?;
        let seal = |seals| fcntl(&file, FcntlArg::F_ADD_SEALS(seals));
        seal(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW).map_err(failed)?;
        let words = map(&file, bytes, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE)?;
        let mut pids = Pids { words, ranks, fd: None };
        // A kernel may not know this one.
        let _ = seal(SealFlag::from_bits_retain(libc::F_SEAL_FUTURE_WRITE));
        let _ = seal(SealFlag::F_SEAL_SEAL);
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let readable = open(name.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(failed)?;
        pids.fd = Some(readable);
        Ok(pids)
    }

    /// The end that the daemon handed over, for a job with room for so many ranks.
    ///
    /// # Errors
    /// It is no such file.
    pub fn map(fd: impl AsFd, ranks: u32) -> Result<Pids, SegmentError> {
        let bytes = bytes_for(ranks);
        let stat = nix::sys::stat::fstat(&fd).map_err(|errno| SegmentError::Map { bytes: 0, errno })?;
        let (found, expected) = (stat.st_size as u64, bytes.get() as u64);
        let seals = fcntl(&fd, FcntlArg::F_GET_SEALS).unwrap_or(0);
        if found != expected || seals & libc::F_SEAL_SHRINK == 0 {
            return Err(SegmentError::Size { expected, found });
        }
        Ok(Pids { words: map(&fd, bytes, ProtFlags::PROT_READ)?, ranks, fd: None })
    }

    /// The descriptor to hand out; `None`: this is not the daemon's end.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    fn word(&self, rank: u32) -> Option<&AtomicI32> {
        // SAFETY: in range of the mapping, which lives as long as this; an atomic.
        (rank < self.ranks).then(|| unsafe { self.words.add(rank as usize).as_ref() })
    }

    /// The process of a rank, if it lives.
    #[inline]
    pub fn live(&self, rank: u32) -> Option<i32> {
        self.word(rank).map(|word| word.load(Ordering::Acquire)).filter(|pid| *pid > 0)
    }

    /// The process of a rank, which may have ended; 0 before MPI_Init.
    pub fn get(&self, rank: u32) -> i32 {
        self.word(rank).map_or(0, |word| word.load(Ordering::Acquire).saturating_abs())
    }

    /// The daemon's: this process is a rank now.
    pub(super) fn set(&self, rank: u32, pid: i32) {
        if self.fd.is_some()
            && let Some(word) = self.word(rank)
        {
            word.store(pid, Ordering::Release);
        }
    }

    /// The daemon's: the process of a rank has ended, and its number may be another one's soon.
    pub(super) fn end(&self, rank: u32) {
        self.set(rank, -self.get(rank));
    }
}

impl Drop for Pids {
    fn drop(&mut self) {
        // SAFETY: mapped by `create` or `map` with this length; no reference into it outlives this.
        let _ = unsafe { munmap(self.words.cast::<c_void>(), bytes_for(self.ranks).get()) };
    }
}

fn map(fd: impl AsFd, bytes: NonZeroUsize, access: ProtFlags) -> Result<NonNull<AtomicI32>, SegmentError> {
    // SAFETY: a fresh shared mapping at an address that the kernel chooses.
    let at = unsafe { mmap(None, bytes, access, MapFlags::MAP_SHARED, &fd, 0) };
    at.map(NonNull::cast).map_err(|errno| SegmentError::Map { bytes: bytes.get() as u64, errno })
}

impl NodeSegment {
    /// Go by these pids from now on, and not by those that ranks can write.
    pub fn set_pids(&mut self, pids: Pids) {
        self.own.pids = Some(pids);
    }

    /// The descriptor of the pids, to hand to ranks; only the daemon has it.
    pub fn pids_fd(&self) -> Option<BorrowedFd<'_>> {
        self.own.pids.as_ref().and_then(Pids::fd)
    }

    /// Process `pid` becomes `rank`, and has yet to say how it is found.
    pub fn set_pid(&self, rank: u32, pid: i32) {
        self.whereabouts(rank).clear();
        self.rank(rank).pid.store(pid, Ordering::Release);
        if let Some(pids) = &self.own.pids {
            pids.set(rank, pid);
        }
    }

    /// A process is to be started as `rank`: it is none yet.
    #[cfg(not(feature = "model"))]
    pub(super) fn clear_pid(&self, rank: u32) {
        if let Some(pids) = &self.own.pids {
            pids.set(rank, 0);
        }
    }

    /// The process that was `rank` has ended: nobody is to take another one of its number for it.
    pub fn end_pid(&self, rank: u32) {
        if let Some(pids) = &self.own.pids {
            pids.end(rank);
        }
    }

    /// The process behind a rank, which may have ended; 0 before MPI_Init.
    pub fn pid(&self, rank: u32) -> i32 {
        match &self.own.pids {
            Some(pids) => pids.get(rank),
            None => self.rank(rank).pid.load(Ordering::Acquire),
        }
    }

    /// The process behind a rank, if it lives.
    fn live_pid(&self, rank: u32) -> i32 {
        match &self.own.pids {
            Some(pids) => pids.live(rank).unwrap_or(0),
            None => self.rank(rank).pid.load(Ordering::Acquire),
        }
    }

    /// The process behind another rank, as far as this one sees it.
    #[inline]
    pub fn peer(&self, rank: u32) -> Peer {
        let pid = if self.failure(rank).is_some() { 0 } else { self.live_pid(rank) };
        self.own.peers.find(rank, pid, self.whereabouts(rank))
    }

    /// Go by the pids that the daemon has told alone: this process is its child, and they mean the same here.
    pub(crate) fn find_by_told_pids(&mut self) {
        self.own.peers.trust_told_pids();
    }

    /// The process behind another rank; `None` if this one sees none that is surely it.
    #[inline]
    pub fn peer_pid(&self, rank: u32) -> Option<i32> {
        match self.peer(rank) {
            Peer::Known(pid) | Peer::Reached(pid) => Some(pid),
            Peer::Unseen => None,
        }
    }

    /// The process behind another rank, to copy from and to; `None` if its memory is out of reach.
    #[inline]
    pub fn copy_pid(&self, rank: u32) -> Option<i32> {
        match self.peer(rank) {
            Peer::Reached(pid) => Some(pid),
            _ => None,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn the_daemon_writes_and_all_others_read() {
        let ours = Pids::create(1025).unwrap();
        let fd = ours.fd().unwrap().try_clone_to_owned().unwrap();
        let theirs = Pids::map(&fd, 1025).unwrap();
        ours.set(1024, 77);
        assert_eq!((theirs.get(1024), theirs.live(1024), theirs.live(0), theirs.get(1025)), (77, Some(77), None, 0));
        theirs.set(1024, 1);
        assert_eq!(ours.get(1024), 77, "who cannot write does not try to");
        ours.end(1024);
        assert_eq!((theirs.get(1024), theirs.live(1024)), (77, None));
        ours.set(1024, 0);
        assert_eq!((theirs.get(1024), theirs.live(1024)), (0, None));
        ours.set(5000, 1);
        assert!(Pids::map(&fd, 4000).is_err(), "another size");
    }

    #[test]
    fn the_file_cannot_be_written_or_cut() {
        let ours = Pids::create(8).unwrap();
        let fd = ours.fd().unwrap();
        let bytes = bytes_for(8);
        let write = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        assert!(map(fd, bytes, write).is_err());
        assert!(nix::unistd::ftruncate(fd, 0).is_err());
        let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
        if let Ok(again) = open(name.as_str(), OFlag::O_RDWR, Mode::empty()) {
            // Root may open everything.
            let seals = fcntl(fd, FcntlArg::F_GET_SEALS).unwrap();
            assert!(seals & libc::F_SEAL_FUTURE_WRITE == 0 || map(&again, bytes, write).is_err());
            assert!(nix::unistd::ftruncate(&again, 0).is_err());
        }
    }

    #[test]
    fn another_file_is_none() {
        let other = memfd_create("other", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap();
        nix::unistd::ftruncate(&other, 4096).unwrap();
        assert!(Pids::map(&other, 8).is_err(), "it can be cut");
    }
}
