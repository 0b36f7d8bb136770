//! Where the parts of the segment lie.

use super::last_words::LastWords;
use super::{CarrierWords, CoreDescriptor, Life, NodeHeader, RankDescriptor, Whereabouts};
use crate::mem::segment::{Head, Segment, layout_hash};
use crate::mem::sync::AtomicU64;
use std::mem::size_of;

#[cfg(not(feature = "model"))]
const _: () = {
    assert!(size_of::<CoreDescriptor>() == 256);
    assert!(size_of::<CarrierWords>() == 64);
    assert!(size_of::<Life>() == 128);
    assert!(POST_AT >= HEADER_AT + size_of::<NodeHeader>() as u64 && POST_AT + 64 <= CORES_AT);
    assert!(std::mem::offset_of!(CoreDescriptor, running) == 64);
    assert!(size_of::<RankDescriptor>() == 256);
    assert!(size_of::<Whereabouts>() == 64);
    assert!(std::mem::offset_of!(RankDescriptor, r) == 64);
    assert!(std::mem::offset_of!(RankDescriptor, call) == 128);
};

const VERSION: u64 = 16;
pub(super) const LAYOUT: u64 = layout_hash(&[
    VERSION,
    size_of::<NodeHeader>() as u64,
    size_of::<CoreDescriptor>() as u64,
    size_of::<RankDescriptor>() as u64,
    size_of::<LastWords>() as u64,
    size_of::<Life>() as u64,
]);
pub(super) const HEADER_AT: u64 = size_of::<Head>() as u64;
const POST_AT: u64 = 2048;
/// Where the cores are described in the segment, one `CoreDescriptor` after the other.
pub const CORES_AT: u64 = 4096;
pub(super) const HEAD_WORDS: usize = (size_of::<Head>() + size_of::<NodeHeader>()) / 8;
/// Words of a set of ranks: whole cache lines.
pub(super) const fn ready_words(ranks: u32) -> u32 {
    ranks.div_ceil(512) * 8
}

/// Sets of ranks: two of each core, and two of the node.
pub(super) const fn sets(cores: u32) -> u32 {
    2 * cores + 2
}

/// Where the ranks are described in the segment of so many cores and ranks, one `RankDescriptor` after the other.
pub const fn ranks_at(cores: u32, ranks: u32) -> u64 {
    CORES_AT
        + (cores as usize * size_of::<CoreDescriptor>()) as u64
        + sets(cores) as u64 * ready_words(ranks) as u64 * 8
}

/// All that the segment has of a rank.
const RANK_BYTES: u64 =
    (size_of::<RankDescriptor>() + size_of::<LastWords>() + size_of::<Life>() + size_of::<Whereabouts>()) as u64;

/// Size of the segment.
pub(super) fn bytes_for(header: &NodeHeader) -> u64 {
    let cores = u64::from(header.cores);
    let bytes = CORES_AT
        + cores * size_of::<CoreDescriptor>() as u64
        + u64::from(sets(header.cores)) * u64::from(header.ready_words) * 8
        + u64::from(header.ranks) * RANK_BYTES;
    bytes.next_multiple_of(4096)
}

/// The parts of a mapped segment, each an array but for the last one.
#[derive(Copy, Clone)]
pub(super) struct Parts {
    pub(super) cores: *const CoreDescriptor,
    pub(super) ready: *const AtomicU64,
    pub(super) ranks: *const RankDescriptor,
    pub(super) last_words: *const LastWords,
    pub(super) lives: *const Life,
    pub(super) whereabouts: *const Whereabouts,
    pub(super) post: *const CarrierWords,
}

impl Parts {
    /// # Panics
    /// The segment is smaller than `header` says.
    pub(super) fn of(segment: &Segment, header: &NodeHeader) -> Parts {
        let cores = header.cores as usize;
        let words = sets(header.cores) as usize * header.ready_words as usize;
        let ready_at = CORES_AT + (cores * size_of::<CoreDescriptor>()) as u64;
        let ranks_at = ranks_at(header.cores, header.ranks);
        let rank_bytes = header.ranks as usize * size_of::<RankDescriptor>();
        let words_at = ranks_at + rank_bytes as u64;
        let lives_at = words_at + u64::from(header.ranks) * size_of::<LastWords>() as u64;
        let whereabouts_at = lives_at + u64::from(header.ranks) * size_of::<Life>() as u64;
        Parts {
            cores: segment.at(CORES_AT, cores * size_of::<CoreDescriptor>()).as_ptr().cast(),
            ready: segment.at(ready_at, words * 8).as_ptr().cast(),
            ranks: segment.at(ranks_at, rank_bytes).as_ptr().cast(),
            last_words: segment.at(words_at, header.ranks as usize * size_of::<LastWords>()).as_ptr().cast(),
            lives: segment.at(lives_at, header.ranks as usize * size_of::<Life>()).as_ptr().cast(),
            whereabouts: segment.at(whereabouts_at, header.ranks as usize * size_of::<Whereabouts>()).as_ptr().cast(),
            post: segment.at(POST_AT, size_of::<CarrierWords>()).as_ptr().cast(),
        }
    }

    /// Private ones, never given back.
    pub(super) fn leaked(header: &NodeHeader) -> Parts {
        fn leak<T: Default>(n: usize) -> *const T {
            Box::leak((0..n).map(|_| T::default()).collect::<Vec<_>>().into_boxed_slice()).as_ptr()
        }
        Parts {
            cores: leak::<CoreDescriptor>(header.cores as usize),
            ready: leak::<AtomicU64>(sets(header.cores) as usize * header.ready_words as usize),
            ranks: leak::<RankDescriptor>(header.ranks as usize),
            last_words: leak::<LastWords>(header.ranks as usize),
            lives: leak::<Life>(header.ranks as usize),
            whereabouts: leak::<Whereabouts>(header.ranks as usize),
            post: leak::<CarrierWords>(1),
        }
    }
}
