//! What went from which rank to which: messages, bytes and a histogram of sizes, after collectives have been decomposed.
//!
//! Each rank has a row in its area of the job segment, which it alone writes, and only while `RankDescriptor::monitor` is not 0; so memory
//! is used for pairs that communicate while somebody counts. The daemon reads. A bitmap tells which pairs were ever touched, because
//! reading a page of the segment that nobody has touched would allocate it.
//!
//! What is counted is what really moves: a message once, when it is sent; an operation in a collective cell by the rank that does the
//! work (the last to arrive takes the others' values and hands out the result; the root of a broadcast hands it out); one-sided
//! transfers by their origin, as the data flows.

use crate::mem::sync::{AtomicU64, Ordering::Relaxed};
use serde::{Deserialize, Serialize};

/// Buckets of the histogram: 0 bytes, then [2^(n-1), 2^n), the last one without an upper bound.
pub const BUCKETS: usize = 30;
/// `RankDescriptor::monitor`: counted for the job (vmpirun --matrix, vmpictl matrix).
pub const FOR_JOB: u32 = 1;
/// Counted for a tool in the process (MPI_T), of which there may be several: added for each.
pub const FOR_TOOL: u32 = 1 << 8;

/// Which kind of transfer, and which way seen from the rank that counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Flow {
    /// A message that the program sends (external).
    Message = 0,
    /// Sent by a collective operation, or by vmpi for itself (internal).
    Collective = 1,
    /// Put or accumulated.
    Put = 2,
    /// A value that this rank took from another one in a collective cell: from the peer to it.
    Gathered = 3,
    /// Got: from the peer to it.
    Got = 4,
}

const FLOWS: usize = 5;
const ALL: [Flow; FLOWS] = [Flow::Message, Flow::Collective, Flow::Put, Flow::Gathered, Flow::Got];

/// One pair and flow. Written by the row's rank, read by the daemon: relaxed counters, each right for itself.
#[repr(C, align(64))]
pub struct Pair {
    messages: AtomicU64,
    bytes: AtomicU64,
    sizes: [AtomicU64; BUCKETS],
}

const _: () = assert!(cfg!(feature = "model") || size_of::<Pair>() == 256);

/// Words of the bitmap of a row for `ranks` ranks.
fn words(ranks: u32) -> usize {
    FLOWS * (ranks as usize).div_ceil(64)
}

/// Bytes of a row.
pub(crate) fn bytes_for(ranks: u32) -> u64 {
    (8 * words(ranks) as u64).next_multiple_of(64) + (FLOWS * ranks as usize * size_of::<Pair>()) as u64
}

/// A rank's row.
#[derive(Copy, Clone)]
pub struct Row<'a> {
    ranks: u32,
    touched: &'a [AtomicU64],
    pairs: &'a [Pair],
}

/// The bucket of a size.
#[inline]
pub fn bucket(bytes: u64) -> usize {
    ((u64::BITS - bytes.leading_zeros()) as usize).min(BUCKETS - 1)
}

#[inline]
fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(amount), Relaxed);
}

impl<'a> Row<'a> {
    /// # Safety
    /// `at` is the address of `bytes_for(ranks)` bytes of shared memory, aligned to 64.
    pub(crate) unsafe fn at(at: *const u8, ranks: u32) -> Row<'a> {
        let words = words(ranks);
        // SAFETY: the caller's promise; atomics only.
        unsafe {
            let pairs = at.add((8 * words).next_multiple_of(64)).cast::<Pair>();
            Row {
                ranks,
                touched: std::slice::from_raw_parts(at.cast(), words),
                pairs: std::slice::from_raw_parts(pairs, FLOWS * ranks as usize),
            }
        }
    }

    fn index(&self, flow: Flow, peer: u32) -> usize {
        flow as usize * self.ranks as usize + peer as usize
    }

    /// Count one transfer. Only the row's own rank calls this.
    #[inline]
    pub fn count(&self, flow: Flow, peer: u32, bytes: u64) {
        let Some(pair) = self.pairs.get(self.index(flow, peer)).filter(|_| peer < self.ranks) else { return };
        let messages = pair.messages.load(Relaxed);
        if messages == 0 {
            self.touch(flow, peer);
        }
        pair.messages.store(messages.wrapping_add(1), Relaxed);
        add(&pair.bytes, bytes);
        add(&pair.sizes[bucket(bytes)], 1);
    }

    /// The pair is counted for the first time: the daemon may read it.
    #[cold]
    fn touch(&self, flow: Flow, peer: u32) {
        let word = flow as usize * (self.ranks as usize).div_ceil(64) + peer as usize / 64;
        self.touched[word].store(self.touched[word].load(Relaxed) | 1 << (peer % 64), Relaxed);
    }

    /// What has been counted for one flow and peer: messages, bytes and sizes.
    pub fn pair(&self, flow: Flow, peer: u32) -> Counts {
        let word = flow as usize * (self.ranks as usize).div_ceil(64) + peer as usize / 64;
        if peer >= self.ranks || self.touched[word].load(Relaxed) >> (peer % 64) & 1 == 0 {
            return Counts::default();
        }
        let pair = &self.pairs[self.index(flow, peer)];
        let mut sizes: Vec<u64> = pair.sizes.iter().map(|count| count.load(Relaxed)).collect();
        sizes.truncate(sizes.iter().rposition(|count| *count != 0).map_or(0, |last| last + 1));
        Counts { messages: pair.messages.load(Relaxed), bytes: pair.bytes.load(Relaxed), sizes }
    }

    /// All that has been counted in this row of `rank`, as entries of the matrix.
    fn entries(&self, rank: u32) -> impl Iterator<Item = Entry> + '_ {
        let per_flow = (self.ranks as usize).div_ceil(64);
        ALL.into_iter().flat_map(move |flow| {
            let bitmap = &self.touched[flow as usize * per_flow..][..per_flow];
            let peers = bitmap.iter().zip(0u32..).flat_map(|(word, at)| {
                let word = word.load(Relaxed);
                (0..64u32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit)
            });
            peers.filter(|peer| *peer < self.ranks).map(move |peer| {
                let counts = self.pair(flow, peer);
                let (kind, inward) = match flow {
                    Flow::Message => (Transfer::PointToPoint, false),
                    Flow::Collective => (Transfer::Collective, false),
                    Flow::Put => (Transfer::Put, false),
                    Flow::Gathered => (Transfer::Collective, true),
                    Flow::Got => (Transfer::Get, true),
                };
                let (from, to) = if inward { (peer, rank) } else { (rank, peer) };
                Entry { kind, from, to, counts }
            })
        })
    }
}

/// What an entry of the matrix counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transfer {
    /// Messages that the program sends (external).
    PointToPoint,
    /// What collective operations and vmpi itself send (internal).
    Collective,
    /// One-sided: put and accumulate.
    Put,
    /// One-sided: get, and the results of fetching operations.
    Get,
}

impl Transfer {
    pub const ALL: [Transfer; 4] = [Transfer::PointToPoint, Transfer::Collective, Transfer::Put, Transfer::Get];

    /// As JSON and CSV write it.
    pub fn name(self) -> &'static str {
        match self {
            Transfer::PointToPoint => "point_to_point",
            Transfer::Collective => "collective",
            Transfer::Put => "put",
            Transfer::Get => "get",
        }
    }
}

/// Messages, bytes, and how many messages of each size (`BUCKETS`; zeros at the end are left out).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub messages: u64,
    pub bytes: u64,
    pub sizes: Vec<u64>,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.messages = self.messages.wrapping_add(other.messages);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        if self.sizes.len() < other.sizes.len() {
            self.sizes.resize(other.sizes.len(), 0);
        }
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(size, more)| *size = size.wrapping_add(*more));
    }
}

/// What went from one rank of the job to another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: Transfer,
    pub from: u32,
    pub to: u32,
    #[serde(flatten)]
    pub counts: Counts,
}

/// What has been counted in a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    pub job: u32,
    pub ranks: u32,
    /// It is being counted now.
    pub on: bool,
    /// The core of each rank.
    pub placement: Vec<u32>,
    /// The node of each rank; empty in a job of one node.
    #[serde(default)]
    pub nodes: Vec<u32>,
    /// In order of kind, sender and receiver; pairs between which nothing went are left out.
    pub entries: Vec<Entry>,
}

impl Matrix {
    /// Gather the rows of `rows` (one per rank).
    pub fn gather<'a>(job: u32, on: bool, placement: Vec<u32>, rows: impl Iterator<Item = Row<'a>>) -> Matrix {
        let mut ranks = 0;
        let mut all = Vec::new();
        for (row, rank) in rows.zip(0..) {
            ranks = rank + 1;
            all.extend(row.entries(rank));
        }
        all.retain(|entry| entry.from < ranks && entry.to < ranks);
        Matrix { job, ranks, on, placement, nodes: Vec::new(), entries: summed(all) }
    }

    /// Together with what was counted on another node of the job.
    pub fn with(mut self, other: Matrix) -> Matrix {
        self.entries.extend(other.entries);
        self.entries = summed(self.entries);
        self
    }

    /// The sum over all pairs.
    pub fn total(&self, kind: Transfer) -> Counts {
        let mut total = Counts::default();
        self.entries.iter().filter(|entry| entry.kind == kind).for_each(|entry| total.add(&entry.counts));
        total
    }
}

/// In order, what is of one kind and pair added up.
fn summed(mut all: Vec<Entry>) -> Vec<Entry> {
    all.sort_by_key(|entry| (entry.kind, entry.from, entry.to));
    let mut entries: Vec<Entry> = Vec::new();
    for entry in all {
        match entries.last_mut() {
            Some(last) if (last.kind, last.from, last.to) == (entry.kind, entry.from, entry.to) => {
                last.counts.add(&entry.counts);
            }
            _ => entries.push(entry),
        }
    }
    entries
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_their_buckets() {
        for (bytes, expected) in
            [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11), (1 << 28, 29), (u64::MAX, 29)]
        {
            assert_eq!(bucket(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn what_is_counted_is_found_at_its_place() {
        let ranks = 70;
        let room: Vec<[u64; 8]> = vec![[0; 8]; 2 * bytes_for(ranks).div_ceil(64) as usize];
        let start = room.as_ptr().cast::<u8>();
        let start = start.wrapping_add(start.align_offset(64));
        // SAFETY: the room is twice as large as needed, so that it is large enough from any aligned place near its start.
        let row = unsafe { Row::at(start, ranks) };
        row.count(Flow::Message, 69, 1000);
        row.count(Flow::Message, 69, 3);
        row.count(Flow::Collective, 2, 8);
        row.count(Flow::Gathered, 2, 8);
        row.count(Flow::Got, 5, 0);
        row.count(Flow::Put, 70, 1); // There is no such rank.
        let mut found: Vec<Entry> = row.entries(7).collect();
        found.sort_by_key(|entry| (entry.kind, entry.from));
        let brief: Vec<_> = found.iter().map(|e| (e.kind, e.from, e.to, e.counts.messages, e.counts.bytes)).collect();
        assert_eq!(
            brief,
            [
                (Transfer::PointToPoint, 7, 69, 2, 1003),
                (Transfer::Collective, 2, 7, 1, 8),
                (Transfer::Collective, 7, 2, 1, 8),
                (Transfer::Get, 5, 7, 1, 0),
            ]
        );
        assert_eq!(found[0].counts.sizes, [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
