//! Scatter of small blocks down a binomial tree, packed on the way: the root sends log n messages, not n.

use super::{children, rank_at, rank_from, subtree};
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// As `scatter_linear`; all blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<&Regions>, recv: Option<Data>, root: u32, bytes: u64) {
    let place = rank_from(root, ranks.rank, ranks.size);
    let mine = subtree(place, ranks.size);
    let parent = |place: u32| rank_at(root, place & (place.wrapping_sub(1)), ranks.size);
    if let (1, true, Some(recv)) = (mine, place != 0, recv) {
        plan.recv(ranks, parent(place), recv);
        plan.fence();
        return;
    }
    let temp = plan.temp_bytes(u64::from(mine) * bytes);
    if let (0, Some(send)) = (place, send) {
        for place in 1..ranks.size {
            let rank = rank_at(root, place, ranks.size);
            plan.copy(send.get(rank as usize), temp.slice(u64::from(place) * bytes, bytes));
        }
        if let Some(recv) = recv {
            plan.copy(send.get(root as usize), recv);
        }
    } else {
        plan.recv(ranks, parent(place), temp);
        plan.fence();
    }
    for distance in children(place, ranks.size).rev() {
        let child = place + distance;
        let blocks = temp.slice(u64::from(distance) * bytes, u64::from(subtree(child, ranks.size)) * bytes);
        plan.send(ranks, rank_at(root, child, ranks.size), blocks);
    }
    if let (true, Some(recv)) = (place != 0, recv) {
        plan.copy(temp.slice(0, bytes), recv);
    }
    plan.fence();
}
