//! Broadcast of much data: scatter it down a binomial tree, then everyone collects all parts around a ring
//! (van de Geijn). No rank sends more than about twice the data, where a binomial root sends it log n times.

use super::{allgather_ring, children, rank_at, rank_from, split, subtree};
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// Parts are whole numbers of cache lines where possible.
const PART_MIN_BYTES: u64 = 64;

pub fn build(plan: &mut Plan, ranks: Ranks, data: Data, root: u32) {
    let place = rank_from(root, ranks.rank, ranks.size);
    let packed = match data.packed() {
        Some(packed) => packed,
        None => {
            let temp = plan.temp_bytes(data.bytes());
            if place == 0 {
                plan.copy(data, temp);
            }
            temp
        }
    };
    let parts = split(packed, ranks.size, PART_MIN_BYTES);
    let run = |first: u32, len: u32| {
        let start = parts.get(first as usize);
        let count = (first..first + len).map(|i| parts.get(i as usize).count).sum();
        Data { count, ..start }
    };

    if place != 0 {
        let parent = place & (place - 1);
        plan.recv_some(ranks, rank_at(root, parent, ranks.size), run(place, subtree(place, ranks.size)));
        plan.fence();
    }
    for distance in children(place, ranks.size).rev() {
        let child = place + distance;
        plan.send_some(ranks, rank_at(root, child, ranks.size), run(child, subtree(child, ranks.size)));
    }
    plan.fence();

    let by_rank = (0..ranks.size).map(|rank| parts.get(rank_from(root, rank, ranks.size) as usize)).collect();
    allgather_ring::build(plan, ranks, &Regions::Listed(by_rank));
    if place != 0 {
        plan.copy(packed, if data.elem.dense { packed } else { data });
    }
}
