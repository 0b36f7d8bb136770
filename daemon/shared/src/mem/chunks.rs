//! A job's memory beyond its ranks' own parts: chunks that whoever runs out of room takes, and gives back.
//!
//! They hold unexpected messages and the lists to find these by (`matching::queues`), and small payloads for which no slab block was left (`mem::slab`). All of
//! them together are the job's limit on this node (`VMPI_UNEXPECTED_BYTES`). They are addresses at first; memory is used as it is touched, and given back.
//!
//! Death story: a chunk is taken and given by one step on its owner's word, so it is somebody's or free, whoever dies. What a dead rank had taken for its
//! queues is given by whoever renews or buries it ([`Chunks::forget`]). A wish of a dead rank costs the daemon one look in vain. Payloads stay until their receivers give them, as slab blocks do.

use super::segment::Apart;
use super::sync::{AtomicU32, Ordering};
use std::ptr::NonNull;

/// Room for 2,048 unexpected messages.
pub const CHUNK_BYTES: u64 = 384 << 10;
/// 384 GiB: entries are numbered by 32 bits.
pub const MOST_CHUNKS: u32 = 1 << 20;
/// So many free chunks keep their memory: to give it back and to get it anew costs more than to write it.
const MOST_WARM: u32 = 16;

/// Owner's word of a free chunk whose memory is there, with anything in it.
const WARM: u32 = u32::MAX;
/// In `ChunkHead::live`: its sender goes on filling it.
const HELD: u32 = 1 << 31;

/// What a chunk is taken for: bits of the owner's word beside the rank + 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    Entries = 0,
    Index = 1 << 30,
    Payload = 1 << 31,
}

const RANK_BITS: u32 = (1 << 30) - 1;

/// What is said of all chunks; hints, each written by whoever takes or gives.
#[repr(C, align(64))]
#[derive(Default)]
pub struct ChunksHead {
    /// Where to look for a free one first.
    next: AtomicU32,
    /// Free ones that have memory.
    warm: AtomicU32,
    /// So few are left that senders are to wait for their receivers.
    scarce: AtomicU32,
    /// Somebody found none; taken by the daemon, which tells of it when there are some again.
    wanted: AtomicU32,
    reserved: [u32; 12],
}

/// One chunk.
#[repr(C)]
#[derive(Default)]
pub struct ChunkHead {
    /// 0: free, and without memory.
    owner: AtomicU32,
    /// Things in it; payloads: counted down by receivers.
    pub live: AtomicU32,
    // The rest is the owner's of the queues whose entries lie here.
    /// Places ever used since it was taken.
    pub used: AtomicU32,
    /// Free ones among these, + 1.
    pub free: AtomicU32,
    /// Links among the chunks of these queues that have room; index + 1.
    pub next: AtomicU32,
    pub prev: AtomicU32,
    reserved: [u32; 2],
}

#[cfg(not(feature = "model"))]
const _: () = assert!(size_of::<ChunksHead>() == 64 && size_of::<ChunkHead>() == 32);

/// What a sender fills: the chunk + 1, and its bytes in use. In its slab's head; the slab's owner.
#[repr(C)]
#[derive(Default)]
pub struct Filling {
    chunk: AtomicU32,
    used: AtomicU32,
}

/// All chunks of a job on this node.
pub struct Chunks {
    head: NonNull<ChunksHead>,
    heads: NonNull<ChunkHead>,
    count: u32,
    /// From this one on they are scarce.
    scarce_from: u32,
    memory: Apart,
    /// Offset of the first one in the segment.
    start: u64,
}

// SAFETY: what it points to is shared memory, and atomic; of the chunks' contents their users say who may touch them.
unsafe impl Send for Chunks {}
// SAFETY: as above.
unsafe impl Sync for Chunks {}

/// Bytes of the heads of `count` chunks.
pub fn heads_bytes(count: u32) -> u64 {
    (size_of::<ChunksHead>() + count as usize * size_of::<ChunkHead>()) as u64
}

impl Chunks {
    /// # Safety
    /// The heads of `count` chunks lie at `heads`, aligned, as long as this lives; `memory` is the chunks', from offset `start` of the segment on.
    pub unsafe fn new(heads: NonNull<u8>, count: u32, memory: Apart, start: u64) -> Chunks {
        let scarce_from = (count / 8 * 7).max(count.min(1));
        // SAFETY: as promised.
        let first = unsafe { heads.add(size_of::<ChunksHead>()) };
        Chunks { head: heads.cast(), heads: first.cast(), count, scarce_from, memory, start }
    }

    /// The model checker's atomics are not all-zero when new.
    #[cfg(feature = "model")]
    pub fn fill_model(&self) {
        // SAFETY: inside the fresh mapping, aligned, not yet shared.
        unsafe {
            self.head.write(ChunksHead::default());
            (0..self.count as usize).for_each(|at| self.heads.add(at).write(ChunkHead::default()));
        }
    }

    fn head(&self) -> &ChunksHead {
        // SAFETY: there, as `new` was promised; atomics.
        unsafe { self.head.as_ref() }
    }

    /// # Panics
    /// If there is no such chunk.
    pub fn chunk(&self, index: u32) -> &ChunkHead {
        assert!(index < self.count, "chunk {index} of {} is damaged", self.count);
        // SAFETY: one of `count`; atomics.
        unsafe { self.heads.add(index as usize).as_ref() }
    }

    pub fn count(&self) -> u32 {
        self.count
    }

    /// Address of a chunk.
    ///
    /// # Panics
    /// If there is none, or if this process may not have so many addresses: who has not taken one cannot do without it.
    pub fn address(&self, index: u32) -> *mut u8 {
        assert!(index < self.count, "chunk {index} of {} is damaged", self.count);
        let base = self.memory.base().unwrap_or_else(|error| panic!("{error}, to reach unexpected messages"));
        // SAFETY: inside the mapping, which is as long as all chunks.
        unsafe { base.as_ptr().add(index as usize * CHUNK_BYTES as usize) }
    }

    /// Are so few left that senders are to wait until their receivers have taken something?
    pub fn is_scarce(&self) -> bool {
        self.head().scarce.load(Ordering::Relaxed) != 0
    }

    /// Is none left?
    #[cold]
    pub fn is_exhausted(&self) -> bool {
        !(0..self.count).any(|index| self.is_free(index))
    }

    fn is_free(&self, index: u32) -> bool {
        matches!(self.chunk(index).owner.load(Ordering::Relaxed), 0 | WARM)
    }

    /// A message waits until there is one again.
    #[cold]
    pub fn want(&self) {
        self.head().wanted.store(1, Ordering::Release); // SYNC U: what was left is noted before
    }

    /// Does a message wait for one? The daemon looks at this now and then.
    pub fn is_wanted(&self) -> bool {
        self.head().wanted.load(Ordering::Relaxed) != 0
    }

    /// As the daemon: was one wanted, and is there one now? Who wants one after that says so again.
    pub fn answer_wish(&self) -> bool {
        self.is_wanted() && !self.is_exhausted() && self.head().wanted.swap(0, Ordering::Acquire) != 0 // SYNC U: before the look at who left something
    }

    /// Bytes in use, and bytes that may be. For who tells of it: it looks at each chunk.
    pub fn used_bytes(&self) -> (u64, u64) {
        let used = (0..self.count).filter(|index| !self.is_free(*index)).count() as u64;
        (used * CHUNK_BYTES, u64::from(self.count) * CHUNK_BYTES)
    }

    /// A chunk for `rank`; `None` if there is none for this purpose. Only messages themselves may take the last ones, so that those of senders that wait
    /// already find room. Contents are anything; an index is zero.
    #[cold]
    pub fn take(&self, rank: u32, purpose: Purpose) -> Option<u32> {
        if self.count == 0 || (purpose != Purpose::Entries && self.is_scarce()) || self.memory.base().is_err() {
            return None;
        }
        let head = self.head();
        let start = head.next.load(Ordering::Relaxed).min(self.count);
        for index in (start..self.count).chain(0..start) {
            let chunk = self.chunk(index);
            let was = chunk.owner.load(Ordering::Relaxed);
            let mine = (rank + 1) | purpose as u32;
            // SYNC Q: with `give`'s release.
            if !matches!(was, 0 | WARM)
                || chunk.owner.compare_exchange(was, mine, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                continue;
            }
            // Unless somebody has given one meanwhile.
            let _ = head.next.compare_exchange(start, index + 1, Ordering::Relaxed, Ordering::Relaxed);
            if was == WARM {
                head.warm.fetch_sub(1, Ordering::Relaxed);
                if purpose == Purpose::Index {
                    self.empty(index);
                }
            }
            if index >= self.scarce_from {
                head.scarce.store(1, Ordering::Relaxed);
            }
            for word in [&chunk.live, &chunk.used, &chunk.free, &chunk.next, &chunk.prev] {
                word.store(0, Ordering::Relaxed);
            }
            return Some(index);
        }
        None
    }

    /// Nobody uses chunk `index` any more.
    #[cold]
    pub fn give(&self, index: u32) {
        let (head, chunk) = (self.head(), self.chunk(index));
        // Counted before it is WARM, so that who takes it finds it counted.
        let stays = head.warm.fetch_add(1, Ordering::Relaxed) < MOST_WARM;
        if !stays {
            head.warm.fetch_sub(1, Ordering::Relaxed);
            self.empty(index);
        }
        chunk.owner.store(if stays { WARM } else { 0 }, Ordering::Release); // SYNC Q
        head.next.fetch_min(index, Ordering::Relaxed);
        if index < self.scarce_from {
            head.scarce.store(0, Ordering::Relaxed);
        }
    }

    /// Give a chunk's memory back to the machine. If the kernel does not do that, contents are made zero.
    fn empty(&self, index: u32) {
        let address = self.address(index).cast::<libc::c_void>();
        // SAFETY: this process owns the chunk, of which nothing is used any more.
        unsafe {
            if libc::madvise(address, CHUNK_BYTES as usize, libc::MADV_REMOVE) != 0 {
                address.cast::<u8>().write_bytes(0, CHUNK_BYTES as usize);
            }
        }
    }

    /// `rank` is no more, and neither are its queues. What it has sent stays.
    pub fn forget(&self, rank: u32) {
        for index in 0..self.count {
            let owner = self.chunk(index).owner.load(Ordering::Relaxed);
            if owner != WARM && owner & Purpose::Payload as u32 == 0 && owner & RANK_BITS == rank + 1 {
                self.give(index);
            }
        }
    }

    /// Room for a payload of `len` bytes of `rank`, which fills `filling`: offset in the segment. By the slab's owner only.
    #[cold]
    pub fn put(&self, rank: u32, filling: &Filling, len: u64) -> Option<u64> {
        let len = len.max(1).next_multiple_of(64) as u32;
        let mut used = filling.used.load(Ordering::Relaxed);
        if let Some(index) = filling.chunk.load(Ordering::Relaxed).checked_sub(1)
            && u64::from(used + len) > CHUNK_BYTES
        {
            if self.chunk(index).live.load(Ordering::Acquire) != HELD {
                filling.chunk.store(0, Ordering::Relaxed);
                self.let_go(index, HELD);
            }
            // Else all that lay there has been received.
            used = 0;
        }
        let index = match filling.chunk.load(Ordering::Relaxed).checked_sub(1) {
            Some(index) => index,
            None => {
                let index = self.take(rank, Purpose::Payload)?;
                self.chunk(index).live.store(HELD, Ordering::Relaxed);
                filling.chunk.store(index + 1, Ordering::Relaxed);
                used = 0;
                index
            }
        };
        self.chunk(index).live.fetch_add(1, Ordering::Relaxed);
        filling.used.store(used + len, Ordering::Relaxed);
        Some(self.start + u64::from(index) * CHUNK_BYTES + u64::from(used))
    }

    /// The payload at `offset` has been received (anyone).
    ///
    /// # Panics
    /// If there is none.
    #[cold]
    pub fn received(&self, offset: u64) {
        let index = self.payload_chunk(offset, 0).unwrap_or_else(|| panic!("slab offset {offset} is damaged"));
        self.let_go(index, 1);
    }

    fn let_go(&self, index: u32, how_much: u32) {
        // Who sees nothing left is the only one.
        if self.chunk(index).live.fetch_sub(how_much, Ordering::AcqRel) == how_much {
            self.give(index);
        }
    }

    /// Address of a payload of `len` bytes at an offset; `None` if there is none.
    #[cold]
    pub fn payload(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let index = self.payload_chunk(offset, len)?;
        let within = (offset - self.start) % CHUNK_BYTES;
        Some(self.address(index).wrapping_add(within as usize))
    }

    fn payload_chunk(&self, offset: u64, len: u64) -> Option<u32> {
        let at = offset.checked_sub(self.start)?;
        let index = u32::try_from(at / CHUNK_BYTES).ok().filter(|index| *index < self.count)?;
        let owner = self.chunk(index).owner.load(Ordering::Relaxed);
        let is_payload = owner != WARM && owner & Purpose::Payload as u32 != 0;
        (is_payload && at % CHUNK_BYTES + len <= CHUNK_BYTES).then_some(index)
    }
}
