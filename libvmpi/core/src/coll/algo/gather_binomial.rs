//! Gather of small blocks up a binomial tree, packed on the way: the root gets log n messages, not n.

use super::{children, rank_at, rank_from, subtree};
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// As `gather_linear`; all blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: Option<&Regions>, root: u32, bytes: u64) {
    let place = rank_from(root, ranks.rank, ranks.size);
    let mine = subtree(place, ranks.size);
    let parent = |place: u32| rank_at(root, place & (place.wrapping_sub(1)), ranks.size);
    if let (1, true, Some(send)) = (mine, place != 0, send) {
        plan.send(ranks, parent(place), send);
        plan.fence();
        return;
    }
    let temp = plan.temp_bytes(u64::from(mine) * bytes);
    for distance in children(place, ranks.size) {
        let child = place + distance;
        let blocks = temp.slice(u64::from(distance) * bytes, u64::from(subtree(child, ranks.size)) * bytes);
        plan.recv(ranks, rank_at(root, child, ranks.size), blocks);
    }
    if let (0, Some(recv)) = (place, recv) {
        plan.fence();
        if let Some(send) = send {
            plan.copy(send, recv.get(root as usize));
        }
        for place in 1..ranks.size {
            let rank = rank_at(root, place, ranks.size);
            plan.copy(temp.slice(u64::from(place) * bytes, bytes), recv.get(rank as usize));
        }
    } else if let Some(send) = send {
        plan.copy(send, temp.slice(0, bytes));
        plan.fence();
        plan.send(ranks, parent(place), temp);
    }
    plan.fence();
}
