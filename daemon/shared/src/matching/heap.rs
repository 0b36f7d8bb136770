//! Other ranks' memory that lies in a memory file (`VMPI_MAP_MEMORY`; `vmpi_core::p2p::heap` is the owner's side): mapped here, a piece at a time.
//!
//! The file's page at offset A is what its owner has at address A. Whether a buffer lies in the file the owner has said of each
//! message, in its envelope or its request; a rank that lies can harm its own job only: pids are those of `peers`, and the file cannot shrink.

use crate::node::NodeSegment;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::ptr::NonNull;
use std::sync::Mutex;

/// Pieces begin at multiples of this and are as long, or as long as a message needs.
const PIECE_BYTES: u64 = 64 << 20;
/// Pieces mapped at a time: address space, and page tables of what is used.
const PIECES: usize = 64;
/// Where the file has huge pages (`vmpi_core::p2p::huge`) they are of use only to a mapping whose addresses differ from the file's by a multiple of this.
const HUGE_BYTES: usize = 2 << 20;

struct Piece {
    rank: u32,
    pid: i32,
    start: u64,
    len: usize,
    at: NonNull<c_void>,
}

// SAFETY: an address of shared memory.
unsafe impl Send for Piece {}

impl Drop for Piece {
    fn drop(&mut self) {
        // SAFETY: mapped by `Heaps::map` and used nowhere else.
        let _ = unsafe { munmap(self.at, self.len) };
    }
}

/// Private to this process.
#[derive(Default)]
pub struct Heaps {
    pieces: Mutex<Vec<Piece>>,
}

impl Heaps {
    /// Where `len` bytes at address `addr` of rank `rank` are in this process; good until the next call.
    pub fn reach(&self, node: &NodeSegment, rank: u32, addr: u64, len: u64) -> Option<*mut u8> {
        let pid = node.peer_pid(rank)?;
        let start = addr / PIECE_BYTES * PIECE_BYTES;
        let end = addr.checked_add(len)?;
        let mut pieces = self.pieces.lock().unwrap();
        let known = |piece: &Piece| {
            (piece.rank, piece.pid, piece.start) == (rank, pid, start) && end <= start + piece.len as u64
        };
        let place = match pieces.iter().position(known) {
            Some(place) => place,
            None => {
                let piece = map(node, rank, pid, start, end)?;
                pieces.retain(|other| (other.rank, other.start) != (rank, start));
                if pieces.len() >= PIECES {
                    // The one that was mapped first.
                    pieces.remove(0);
                }
                pieces.push(piece);
                pieces.len() - 1
            }
        };
        let offset = (addr - start) as usize;
        // SAFETY: inside the piece.
        Some(unsafe { pieces[place].at.as_ptr().cast::<u8>().add(offset) })
    }
}

#[cold]
fn map(node: &NodeSegment, rank: u32, pid: i32, start: u64, end: u64) -> Option<Piece> {
    let fd = node.heap_fd(rank)?;
    let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}")).ok()?;
    let len = NonZeroUsize::new((end - start).next_multiple_of(PIECE_BYTES) as usize)?;
    if file.metadata().ok()?.len() < start + len.get() as u64 {
        return None;
    }
    let (prot, flags) = (ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED | MapFlags::MAP_NORESERVE);
    let room = Room::take(len)?;
    // SAFETY: a new mapping, inside the room, which nothing else uses.
    let at = unsafe {
        mmap(Some(room.aligned()), len, prot, flags | MapFlags::MAP_FIXED, &file, start as libc::off_t).ok()?
    };
    room.give_ends_back(len.get());
    Some(Piece { rank, pid, start, len: len.get(), at })
}

/// Addresses for a mapping at a multiple of `HUGE_BYTES`.
struct Room {
    at: NonNull<c_void>,
    len: NonZeroUsize,
}

impl Room {
    fn take(len: NonZeroUsize) -> Option<Room> {
        let len = len.checked_add(HUGE_BYTES)?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a new mapping.
        let at = unsafe { mmap_anonymous(None, len, ProtFlags::PROT_NONE, flags) }.ok()?;
        Some(Room { at, len })
    }

    fn aligned(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.at.addr().get().next_multiple_of(HUGE_BYTES)).expect("nothing is mapped at 0")
    }

    /// What lies before and behind the mapping of `len` bytes.
    fn give_ends_back(self, len: usize) {
        let before = self.aligned().get() - self.at.addr().get();
        let behind = self.len.get() - before - len;
        let room = std::mem::ManuallyDrop::new(self);
        for (offset, len) in [(0, before), (before + len, behind)] {
            if len > 0 {
                // SAFETY: of the room, and not of the mapping.
                let _ = unsafe { munmap(room.at.byte_add(offset), len) };
            }
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: as long as it is dropped nothing else has been mapped there.
        let _ = unsafe { munmap(self.at, self.len.get()) };
    }
}
