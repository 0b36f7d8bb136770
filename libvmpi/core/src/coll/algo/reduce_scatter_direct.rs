//! Reduce-scatter: every rank receives all contributions to its part and combines them itself, in rank order.
//!
//! Contributions are sent straight from the senders' buffers and none waits for another's arithmetic; a ring or
//! recursive halving sends as much, but in rounds that depend on one another. Sources take turns in batches, highest
//! ranks first, so that temporary memory is bounded, and large parts come piece by piece, so that what is combined is still in the cache.

use super::{piece, run};
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// Sources that send at the same time, and so pieces held in temporary memory.
const BATCH: u32 = 32;
/// Pieces of a part at most.
const MOST_PIECES: u64 = 64;

/// `parts`: this rank's contributions to each rank's part; `into`: where its own part's result goes. `in_place`:
/// `into` overlaps `parts`. All messages are complete at the end.
pub fn build(plan: &mut Plan, ranks: Ranks, parts: &Regions, into: Data, in_place: bool) {
    let part = |rank: u32| parts.get(rank as usize);
    let pieces = |data: Data| data.count.div_ceil(piece(data, MOST_PIECES).max(1));
    let most = (0..ranks.size).map(|rank| pieces(part(rank))).max().unwrap_or(0);
    let piece_of = |data: Data, number: u64| run(data, piece(data, MOST_PIECES), number);
    let own = part(ranks.rank);
    let longest = piece_of(own, 0).count;
    let aside = in_place.then(|| plan.temp(into.elem, longest));
    let mut memory: Vec<Data> = Vec::new();
    for number in 0..most {
        let (own, into) = (piece_of(own, number), piece_of(into, number));
        let sum = aside.map_or(into, |aside| aside.slice(0, into.count));
        let mut high = ranks.size;
        while high > 0 {
            let low = high.saturating_sub(BATCH);
            let mut contributions = Vec::with_capacity((high - low) as usize);
            let mut used = 0;
            for source in (low..high).rev() {
                if source == ranks.rank {
                    contributions.push(own);
                    for distance in 1..ranks.size {
                        let to = ranks.after(distance);
                        plan.send_some(ranks, to, piece_of(part(to), number));
                    }
                } else if source == ranks.size - 1 {
                    contributions.push(sum);
                    plan.recv_some(ranks, source, sum);
                } else {
                    if used == memory.len() {
                        memory.push(plan.temp(into.elem, longest));
                    }
                    let room = memory[used].slice(0, into.count);
                    contributions.push(room);
                    plan.recv_some(ranks, source, room);
                    used += 1;
                }
            }
            plan.fence();
            for (source, contribution) in (low..high).rev().zip(contributions) {
                if source == ranks.size - 1 {
                    plan.copy(contribution, sum);
                } else {
                    plan.reduce(contribution, sum);
                }
            }
            high = low;
        }
        plan.copy(sum, into);
    }
}
