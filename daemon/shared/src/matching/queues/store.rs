//! Where unexpected messages lie: in the rank's own array, and beyond that in chunks of the job.
//!
//! Numbers go on from the array into the chunks, which are one array, too. Only the owner of the queues takes and frees places; a chunk without messages
//! is the job's again.

use super::unexpected::{EXACT, Unexpected};
use super::{QueueHead, Queues};
use crate::mem::chunks::{CHUNK_BYTES, ChunkHead, Chunks, Purpose};
use crate::mem::slab::Regions;
use crate::mem::sync::{AtomicU32, Ordering};
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// Places of a chunk.
const PER_CHUNK: usize = CHUNK_BYTES as usize / size_of::<Unexpected>();

const _: () = assert!(PER_CHUNK * size_of::<Unexpected>() == CHUNK_BYTES as usize);

/// What is the same for all ranks of a job.
pub struct Reserve {
    pub regions: Regions,
    /// Places of each rank's own array.
    pub own: usize,
}

/// A rank's unexpected messages, by their numbers.
pub struct Store<'a> {
    own: *mut Unexpected,
    reserve: &'a Reserve,
    exclusive: PhantomData<&'a mut Unexpected>,
}

impl<'a> Store<'a> {
    /// # Safety
    /// `own` is a rank's array, as long as the reserve says; both outlive this. Who reads or writes by this owns the queues.
    #[inline(always)]
    pub unsafe fn new(own: *mut Unexpected, reserve: &'a Reserve) -> Store<'a> {
        Store { own, reserve, exclusive: PhantomData }
    }

    #[inline]
    pub(super) fn own_room(&self) -> usize {
        self.reserve.own
    }

    pub fn chunks(&self) -> &'a Chunks {
        &self.reserve.regions.chunks
    }

    /// Address of a place. It is not said that anything lies there.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub(crate) fn at(&self, number: usize) -> *mut Unexpected {
        // SAFETY: inside the array.
        if number < self.reserve.own { unsafe { self.own.add(number) } } else { self.far(number) }
    }

    #[cold]
    fn far(&self, number: usize) -> *mut Unexpected {
        let (chunk, place) = self.place(number);
        // SAFETY: inside the chunk.
        unsafe { self.chunks().address(chunk).cast::<Unexpected>().add(place) }
    }

    /// Chunk and place there of a number beyond the array.
    fn place(&self, number: usize) -> (u32, usize) {
        let beyond = number - self.reserve.own;
        ((beyond / PER_CHUNK) as u32, beyond % PER_CHUNK)
    }

    /// Places of the array and of all chunks.
    pub(crate) fn places(&self) -> usize {
        self.reserve.own + self.chunks().count() as usize * PER_CHUNK
    }

    /// May something lie there?
    pub(crate) fn is_place(&self, number: usize) -> bool {
        number < self.places()
    }
}

impl Index<usize> for Store<'_> {
    type Output = Unexpected;

    #[inline]
    fn index(&self, number: usize) -> &Unexpected {
        // SAFETY: a place, plain integers, and nobody else's.
        unsafe { &*self.at(number) }
    }
}

impl IndexMut<usize> for Store<'_> {
    #[inline]
    fn index_mut(&mut self, number: usize) -> &mut Unexpected {
        // SAFETY: as in `index`.
        unsafe { &mut *self.at(number) }
    }
}

fn get(word: &AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

fn set(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed);
}

fn is_full(chunk: &ChunkHead) -> bool {
    get(&chunk.free) == 0 && get(&chunk.used) as usize == PER_CHUNK
}

impl Queues<'_> {
    /// A free place; `None`: memory has ended.
    #[inline]
    pub(super) fn take_place(&mut self) -> Option<u32> {
        match self.head.unexpected_free {
            0 => {
                let number = self.head.unexpected_used;
                if number as usize >= self.unexpected.own_room() {
                    return self.take_place_in_chunk();
                }
                self.head.unexpected_used += 1;
                Some(number)
            }
            free => {
                self.head.unexpected_free = self.unexpected[free as usize - 1].links[EXACT].next;
                Some(free - 1)
            }
        }
    }

    #[inline]
    pub(super) fn free_place(&mut self, number: u32) {
        if number as usize >= self.unexpected.own_room() {
            return self.free_place_in_chunk(number);
        }
        self.unexpected[number as usize].links[EXACT].next = self.head.unexpected_free;
        self.head.unexpected_free = number + 1;
    }

    #[cold]
    fn take_place_in_chunk(&mut self) -> Option<u32> {
        if self.head.index == 0 {
            self.begin_index();
        }
        let chunks = self.unexpected.chunks();
        if self.head.roomy == 0 {
            let Some(fresh) = chunks.take(self.head.rank, Purpose::Entries) else { return self.decline() };
            self.head.chunks += 1;
            enlist(chunks, self.head, fresh);
        }
        let index = self.head.roomy - 1;
        let chunk = chunks.chunk(index);
        let place = match get(&chunk.free) {
            0 => {
                set(&chunk.used, get(&chunk.used) + 1);
                get(&chunk.used) - 1
            }
            free => free - 1,
        } as usize;
        let number = self.unexpected.own_room() + index as usize * PER_CHUNK + place;
        if get(&chunk.free) != 0 {
            set(&chunk.free, self.unexpected[number].links[EXACT].next);
        }
        set(&chunk.live, get(&chunk.live) + 1);
        if is_full(chunk) {
            delist(chunks, self.head, index);
        }
        Some(number as u32)
    }

    /// The rank must take some first, or others must: it looks at that once for each message, so that who comes again and again does not wake it for nothing.
    fn decline(&mut self) -> Option<u32> {
        let gone = self.inbox.gone() as u32;
        if self.head.declined == 0 || self.head.declined_at != gone {
            self.head.wake = 1;
        }
        self.head.declined = 1;
        self.head.declined_at = gone;
        self.unexpected.chunks().want();
        None
    }

    #[cold]
    fn free_place_in_chunk(&mut self, number: u32) {
        let chunks = self.unexpected.chunks();
        let (index, place) = self.unexpected.place(number as usize);
        let chunk = chunks.chunk(index);
        let was_full = is_full(chunk);
        set(&chunk.live, get(&chunk.live).saturating_sub(1));
        if get(&chunk.live) == 0 {
            if !was_full {
                delist(chunks, self.head, index);
            }
            self.head.chunks -= 1;
            chunks.give(index);
            return;
        }
        self.unexpected[number as usize].links[EXACT].next = get(&chunk.free);
        set(&chunk.free, place as u32 + 1);
        if was_full {
            enlist(chunks, self.head, index);
        }
    }

    /// Is there no room for one more?
    pub fn is_full(&self) -> bool {
        self.head.unexpected_free == 0
            && self.head.unexpected_used as usize >= self.unexpected.own_room()
            && self.head.roomy == 0
            && self.unexpected.chunks().is_exhausted()
    }
}

/// Chunk `index` has room.
fn enlist(chunks: &Chunks, head: &mut QueueHead, index: u32) {
    let chunk = chunks.chunk(index);
    set(&chunk.prev, 0);
    set(&chunk.next, head.roomy);
    if let Some(next) = head.roomy.checked_sub(1) {
        set(&chunks.chunk(next).prev, index + 1);
    }
    head.roomy = index + 1;
}

/// Chunk `index` has none any more, or is given back.
fn delist(chunks: &Chunks, head: &mut QueueHead, index: u32) {
    let chunk = chunks.chunk(index);
    let (next, prev) = (get(&chunk.next), get(&chunk.prev));
    match prev.checked_sub(1) {
        None => head.roomy = next,
        Some(prev) => set(&chunks.chunk(prev).next, next),
    }
    if let Some(next) = next.checked_sub(1) {
        set(&chunks.chunk(next).prev, prev);
    }
}
