//! Other ranks' memory that lies in a memory file (`VMPI_MAP_MEMORY`; `vmpi_core::memory` is the owner's side): mapped here, a piece at a time.
//!
//! The file's page at offset A is what its owner has at address A. Whether a buffer lies in the file the owner has said of each
//! message, in its envelope or its request; a rank that lies can harm its own job only: pids are those of `peers`, the file is the one with the mark that its owner
//! has told (a pid may be another process's under the /proc that this one sees), and it is sealed against shrinking.

use crate::mem::HUGE_PAGE_BYTES;
use crate::mem::checker::Shared;
use crate::mem::sync::Ordering;
use crate::node::{NodeSegment, mark_of};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::collections::HashMap;
use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Pieces begin at multiples of this and are as long, or as long as a message needs.
const PIECE_BYTES: u64 = 64 << 20;
/// Pieces mapped at a time: address space, and page tables of what is used. A rank has its heap in one and its large blocks in another; a carrier reaches all
/// ranks of its node.
const PIECES: usize = 256;

struct Piece {
    pid: i32,
    len: usize,
    /// When it was used last.
    used: u64,
    /// The file from `start` on is mapped at its aligned address.
    room: Room,
    _shared: Shared,
}

/// Addresses of this process with room for a mapping that begins at a multiple of `HUGE_PAGE_BYTES`: huge pages of the file
/// (`vmpi_core::memory::huge`) are of use to no other.
struct Room {
    at: NonNull<c_void>,
    len: NonZeroUsize,
}

// SAFETY: addresses that nothing else uses.
unsafe impl Send for Room {}

impl Room {
    fn take(len: NonZeroUsize) -> Option<Room> {
        let len = len.checked_add(HUGE_PAGE_BYTES as usize)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let at = unsafe { mmap_anonymous(None, len, ProtFlags::PROT_NONE, flags) }.ok()?;
        Some(Room { at, len })
    }

    fn aligned(&self) -> NonNull<c_void> {
        let before = self.at.addr().get().wrapping_neg() % HUGE_PAGE_BYTES as usize;
        // SAFETY: less than the room was made larger by.
        unsafe { self.at.byte_add(before) }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: `PeerMemory` gives out addresses until its next call only, and drops pieces in such.
        let _ = unsafe { munmap(self.at, self.len.get()) };
    }
}

/// By rank and start, and how often one has been used.
#[derive(Default)]
struct Pieces {
    mapped: HashMap<(u32, u64), Piece>,
    uses: u64,
}

/// Private to this process.
#[derive(Default)]
pub struct PeerMemory {
    pieces: Mutex<Pieces>,
}

impl PeerMemory {
    /// Where `len` bytes at address `addr` of rank `rank` are in this process; good until the next call.
    pub fn reach(&self, node: &NodeSegment, rank: u32, addr: u64, len: u64) -> Option<*mut u8> {
        let pid = node.peer_pid(rank)?;
        let start = addr / PIECE_BYTES * PIECE_BYTES;
        let end = addr.checked_add(len)?;
        let mut pieces = self.pieces.lock().unwrap();
        let Pieces { mapped, uses } = &mut *pieces;
        *uses += 1;
        let good = |piece: &&mut Piece| piece.pid == pid && end <= start + piece.len as u64;
        if mapped.get_mut(&(rank, start)).filter(good).is_none() {
            let piece = map(node, rank, pid, start, end)?;
            mapped.remove(&(rank, start));
            if mapped.len() >= PIECES
                && let Some(oldest) = mapped.iter().min_by_key(|(_, piece)| piece.used).map(|(key, _)| *key)
            {
                mapped.remove(&oldest);
            }
            mapped.insert((rank, start), piece);
        }
        let piece = mapped.get_mut(&(rank, start))?;
        piece.used = *uses;
        let offset = (addr - start) as usize;
        // SAFETY: inside the piece.
        Some(unsafe { piece.room.aligned().as_ptr().cast::<u8>().add(offset) })
    }

    /// Of a rank that has ended, whose memory would stay as long as it is mapped.
    pub fn forget(&self, rank: u32) {
        self.pieces.lock().unwrap().mapped.retain(|(owner, _), _| *owner != rank);
    }
}

#[cold]
fn map(node: &NodeSegment, rank: u32, pid: i32, start: u64, end: u64) -> Option<Piece> {
    let fd = node.heap_fd(rank)?;
    // O_NONBLOCK: it may be any file until the mark has been seen.
    let mut options = File::options();
    let file =
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(format!("/proc/{pid}/fd/{fd}")).ok()?;
    if mark_of(&file).ok()? != node.whereabouts(rank).heap_file.load(Ordering::Relaxed) {
        return None;
    }
    // A memory file that nobody can cut: who touched what is no more would get a SIGBUS.
    let seals = fcntl(&file, FcntlArg::F_GET_SEALS).unwrap_or(0);
    if seals & libc::F_SEAL_SHRINK == 0 {
        return None;
    }
    let len = NonZeroUsize::new((end - start).checked_next_multiple_of(PIECE_BYTES)? as usize)?;
    if file.metadata().ok()?.len() < start.checked_add(len.get() as u64)? {
        return None;
    }
    let (prot, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE);
    let room = Room::take(len)?;
    // SAFETY: it takes the place of a part of the room, which nothing else uses.
    unsafe { mmap(Some(room.aligned().addr()), len, prot, flags | MapFlags::MAP_FIXED, &file, start as libc::off_t) }
        .ok()?;
    let _shared = Shared::new(room.aligned().as_ptr().cast(), len.get());
    Some(Piece { pid, len: len.get(), used: 0, room, _shared })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::NodeConfig;
    use nix::fcntl::SealFlag;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::unix::fs::FileExt;

    fn file() -> File {
        File::from(memfd_create("test", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap())
    }

    #[test]
    fn a_file_that_can_be_cut_is_not_mapped() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).unwrap();
        node.set_pid(0, std::process::id() as i32);
        node.introduce(0);
        let named = std::env::temp_dir().join(format!("vmpi-heap-{}", std::process::id()));
        let cut = File::options().create(true).truncate(true).read(true).write(true).open(&named).unwrap();
        std::fs::remove_file(named).unwrap();
        for (file, good) in [(cut, false), (file(), false), (file(), true)] {
            file.set_len(1 << 40).unwrap();
            if good {
                fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
            }
            node.lay_open(0, &file).unwrap();
            assert_eq!(PeerMemory::default().reach(&node, 0, 8, 8).is_some(), good);
            assert!(PeerMemory::default().reach(&node, 0, u64::MAX - 8, 8).is_none(), "no file is so long");
        }
    }

    #[test]
    fn what_is_used_stays_mapped_and_what_is_not_comes_back() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).unwrap();
        node.set_pid(0, std::process::id() as i32);
        node.introduce(0);
        let file = file();
        file.set_len(1 << 40).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
        node.lay_open(0, &file).unwrap();
        let heaps = PeerMemory::default();
        let at = |piece: u64| heaps.reach(&node, 0, piece * PIECE_BYTES + 8, 8).unwrap();
        let first = at(0);
        for piece in 1..=PIECES as u64 + 1 {
            file.write_all_at(&piece.to_ne_bytes(), piece * PIECE_BYTES + 8).unwrap();
            // SAFETY: eight bytes are mapped there.
            assert_eq!(unsafe { at(piece).cast::<u64>().read_unaligned() }, piece);
            assert_eq!(at(0), first, "used all the time");
        }
        assert_eq!(heaps.pieces.lock().unwrap().mapped.len(), PIECES);
        // SAFETY: as above.
        assert_eq!(unsafe { at(1).cast::<u64>().read_unaligned() }, 1);
        assert!(heaps.reach(&node, 0, (1 << 40) - 4, 8).is_none(), "the file ends there");
        let other = memfd_create("other", MFdFlags::MFD_CLOEXEC).unwrap();
        node.whereabouts(0).heap_file.store(mark_of(&other).unwrap(), Ordering::Relaxed);
        assert!(PeerMemory::default().reach(&node, 0, 8, 8).is_none(), "it is another file");
        heaps.forget(1);
        assert_eq!(heaps.pieces.lock().unwrap().mapped.len(), PIECES);
        heaps.forget(0);
        assert!(heaps.pieces.lock().unwrap().mapped.is_empty());
    }

    #[test]
    fn there_is_room_at_a_multiple_of_huge_pages() {
        // The first one moves where the next would lie, if the kernel had aligned it.
        for pages in 1..4 {
            let len = NonZeroUsize::new(pages * 4096).unwrap();
            let room = Room::take(len).unwrap();
            let (at, end) = (room.aligned().addr().get(), room.at.addr().get() + room.len.get());
            assert!(at.is_multiple_of(HUGE_PAGE_BYTES as usize) && at >= room.at.addr().get());
            assert!(at + len.get() <= end);
            std::mem::forget(room);
        }
    }
}
