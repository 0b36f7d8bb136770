//! Finding one of very many unexpected messages, whatever it is asked for by.
//!
//! From the first message on that lies in a chunk of the job, until a quarter is left of what the rank has room for itself, all hang in four tables instead of
//! the rank's bins and its list of arrivals: by (context, source, tag), by (context, tag), by (context, source) and by context, each in order of arrival. So a
//! receive or a probe, with wildcards or without, looks at few messages that are not for it. If there is no chunk for the tables it is done without them.

use super::unexpected::{CONTEXT, EXACT, Link, SOURCE, TABLES, TAG, Unexpected};
use super::{List, QueueHead, Queues, Store};
use crate::matching::request::{ANY_SOURCE, ANY_TAG, accepts};
use crate::mem::chunks::{CHUNK_BYTES, Purpose};

/// Lists of each table (powers of two), in the order of their numbers.
const SIZES: [usize; TABLES] = [32768, 8192, 4096, 4096];

const _: () = assert!((SIZES[0] + SIZES[1] + SIZES[2] + SIZES[3]) * size_of::<List>() == CHUNK_BYTES as usize);

/// Where in the chunk the list for a key lies.
fn place(table: usize, context: u32, source: i32, tag: i32) -> usize {
    let (source, tag) = match table {
        EXACT => (source as u32, tag as u32),
        TAG => (0, tag as u32),
        SOURCE => (source as u32, 0),
        _ => (0, 0),
    };
    let mut mix = (u64::from(context) << 40) ^ (u64::from(source) << 20) ^ u64::from(tag);
    mix = (mix ^ (mix >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let before: usize = SIZES[..table].iter().sum();
    before + (mix >> 40) as usize % SIZES[table]
}

impl Queues<'_> {
    fn list_at(&self, place: usize) -> *mut List {
        self.unexpected.chunks().address(self.head.index - 1).cast::<List>().wrapping_add(place)
    }

    fn indexed(&mut self, place: usize) -> &mut List {
        // SAFETY: inside the chunk, which these queues own; plain integers.
        unsafe { &mut *self.list_at(place) }
    }

    /// Use tables from now on, if there is a chunk for them.
    #[cold]
    pub(super) fn begin_index(&mut self) {
        let Some(chunk) = self.unexpected.chunks().take(self.head.rank, Purpose::Index) else { return };
        self.head.index = chunk + 1;
        self.head.chunks += 1;
        self.bins.iter_mut().for_each(|bin| bin.unexpected = List::default());
        let mut at = std::mem::take(&mut self.head.arrived).first;
        while at != 0 {
            let next = self.unexpected[at as usize - 1].links[CONTEXT].next;
            self.link_indexed(at - 1);
            at = next;
        }
    }

    /// Few are left: back to bins and the list of arrivals. The order among contexts means nothing.
    #[cold]
    fn end_index(&mut self) {
        let firsts: Vec<u32> = contexts().map(|place| self.indexed(place).first).filter(|first| *first != 0).collect();
        let chunk = std::mem::take(&mut self.head.index) - 1;
        for mut at in firsts {
            while at != 0 {
                let next = self.unexpected[at as usize - 1].links[CONTEXT].next;
                self.link_plain(at - 1);
                at = next;
            }
        }
        self.head.chunks -= 1;
        self.unexpected.chunks().give(chunk);
    }

    #[cold]
    pub(super) fn link_indexed(&mut self, number: u32) {
        let envelope = &self.unexpected[number as usize].envelope;
        let (context, source, tag) = (envelope.context, envelope.source, envelope.tag);
        for table in 0..TABLES {
            let place = place(table, context, source, tag);
            let last = std::mem::replace(&mut self.indexed(place).last, number + 1);
            self.unexpected[number as usize].links[table] = Link { next: 0, prev: last };
            match last {
                0 => self.indexed(place).first = number + 1,
                last => self.unexpected[last as usize - 1].links[table].next = number + 1,
            }
        }
    }

    #[cold]
    pub(super) fn unlink_indexed(&mut self, number: u32) {
        let Unexpected { envelope, links } = self.unexpected[number as usize];
        for (table, Link { next, prev }) in links.into_iter().enumerate() {
            let place = place(table, envelope.context, envelope.source, envelope.tag);
            match prev {
                0 => self.indexed(place).first = next,
                prev => self.unexpected[prev as usize - 1].links[table].next = next,
            }
            match next {
                0 => self.indexed(place).last = prev,
                next => self.unexpected[next as usize - 1].links[table].prev = prev,
            }
        }
        // This one is counted still.
        if (self.head.unexpected_count - 1) as usize <= self.unexpected.own_room() / 4 {
            self.end_index();
        }
    }

    #[cold]
    pub(super) fn find_indexed(&self, context: u32, source: i32, tag: i32) -> Option<u32> {
        let table = match (source, tag) {
            (ANY_SOURCE, ANY_TAG) => CONTEXT,
            (ANY_SOURCE, _) => TAG,
            (_, ANY_TAG) => SOURCE,
            _ => EXACT,
        };
        // SAFETY: as in `indexed`.
        let mut at = unsafe { (*self.list_at(place(table, context, source, tag))).first };
        while at != 0 {
            let Unexpected { envelope, links } = &self.unexpected[at as usize - 1];
            if envelope.context == context && accepts(source, tag, envelope.source, envelope.tag) {
                return Some(at - 1);
            }
            at = links[table].next;
        }
        None
    }
}

/// The lists of the last table.
fn contexts() -> std::ops::Range<usize> {
    let before: usize = SIZES[..CONTEXT].iter().sum();
    before..before + SIZES[CONTEXT]
}

/// For who does not own the queues: look at each message, the oldest of each context first, until `look` says false. What is read may be changing, or written
/// over: numbers are checked, and a list that has become a ring ends when it comes round (Brent), so that nobody is held up by a count of 2^32.
pub(crate) fn each_unexpected(head: &QueueHead, store: &Store<'_>, mut look: impl FnMut(&Unexpected) -> bool) {
    let mut left = (head.unexpected_count as usize).min(store.places());
    let mut walk = |first: u32| {
        let (mut at, mut met, mut steps, mut again) = (first, 0, 0, 1);
        while at != 0 && at != met && left != 0 && store.is_place(at as usize - 1) {
            if steps == again {
                (met, steps, again) = (at, 0, again * 2);
            }
            // SAFETY: a place of the store, which is mapped; plain integers.
            let entry: Unexpected = unsafe { store.at(at as usize - 1).read_volatile() };
            (left, steps) = (left - 1, steps + 1);
            if !look(&entry) {
                return false;
            }
            at = entry.links[CONTEXT].next;
        }
        true
    };
    match head.index.checked_sub(1).filter(|chunk| *chunk < store.chunks().count()) {
        None => _ = walk(head.arrived.first),
        Some(chunk) => {
            let lists = store.chunks().address(chunk).cast::<List>();
            for place in contexts() {
                // SAFETY: inside the chunk; plain integers.
                let list = unsafe { lists.add(place).read_volatile() };
                if !walk(list.first) {
                    return;
                }
            }
        }
    }
}
