//! The algorithms, one per file, each a pure function that appends steps to a plan.
//!
//! Every rank of a phase must call the same algorithm with matching sizes; `choose` sees to that. Reductions combine
//! contributions in rank order, whatever the operation: lower ranks are always the left operand.

pub mod allgather_bruck;
pub mod allgather_ring;
pub mod allgather_spread;
pub mod allreduce_doubling;
pub mod allreduce_split;
pub mod alltoall_bruck;
pub mod alltoall_spread;
pub mod barrier_dissemination;
pub mod barrier_linear;
pub mod bcast_binomial;
pub mod bcast_split;
pub mod gather_binomial;
pub mod gather_linear;
pub mod reduce_binomial;
pub mod reduce_linear;
pub mod reduce_scatter_direct;
pub mod reduce_scatter_rooted;
pub mod reduce_split;
pub mod scan_doubling;
pub mod scatter_binomial;
pub mod scatter_linear;

use super::plan::{Data, Regions};

/// Place of `rank` when the ranks are renumbered so that `root` is 0.
fn rank_from(root: u32, rank: u32, size: u32) -> u32 {
    if rank >= root { rank - root } else { rank + size - root }
}

/// The rank whose place from `root` is `place`.
fn rank_at(root: u32, place: u32, size: u32) -> u32 {
    ((u64::from(root) + u64::from(place)) % u64::from(size)) as u32
}

/// Number of places in the binomial subtree of `place`: its children are at `place + 1, + 2, + 4 ...` below that.
fn subtree(place: u32, size: u32) -> u32 {
    if place == 0 { size } else { (1 << place.trailing_zeros()).min(size - place) }
}

/// Distances from a binomial tree's node to its children, nearest (smallest subtree) first.
fn children(place: u32, size: u32) -> impl DoubleEndedIterator<Item = u32> {
    let subtree = subtree(place, size);
    (0..subtree.next_power_of_two().trailing_zeros()).map(|bit| 1 << bit)
}

/// `data` cut into `parts` runs of whole elements, as even as they go, at least `min` elements each (the last ones of
/// a small buffer are empty).
fn split(data: Data, parts: u32, min: u64) -> Regions {
    let each = data.count.div_ceil(u64::from(parts)).max(min);
    Regions::Listed((0..u64::from(parts)).map(|i| run(data, each, i)).collect())
}

/// Run `i` of `data` in runs of `each` elements; the last one may be shorter, and those behind it are empty.
fn run(data: Data, each: u64, i: u64) -> Data {
    let first = (i * each).min(data.count);
    data.slice(first, each.min(data.count - first))
}

/// Elements of a piece, where much data is combined piece by piece while it is in the cache: `PIECE_BYTES` at least, `most` pieces at most.
fn piece(data: Data, most: u64) -> u64 {
    /// Other sizes have not been tried.
    const PIECE_BYTES: u64 = 128 * 1024;
    data.count.div_ceil(data.bytes().div_ceil(PIECE_BYTES).clamp(1, most))
}
