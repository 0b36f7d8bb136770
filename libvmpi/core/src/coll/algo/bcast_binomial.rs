//! Broadcast down a binomial tree: each rank forwards as soon as it has the data, farthest subtree first.

use super::{children, rank_at, rank_from};
use crate::coll::plan::{Data, Plan, Ranks};

/// `data` may be empty (the tail of a barrier): messages are sent all the same.
pub fn build(plan: &mut Plan, ranks: Ranks, data: Data, root: u32) {
    start(plan, ranks, data, root);
    plan.fence();
}

/// As `build`; this rank's sends may still be under way at the end.
pub fn start(plan: &mut Plan, ranks: Ranks, data: Data, root: u32) {
    let place = rank_from(root, ranks.rank, ranks.size);
    if place != 0 {
        let parent = place & (place - 1);
        plan.recv(ranks, rank_at(root, parent, ranks.size), data);
        plan.fence();
    }
    for distance in children(place, ranks.size).rev() {
        plan.send(ranks, rank_at(root, place + distance, ranks.size), data);
    }
}
