//! Alltoall (and v, w): everyone sends each rank its block, nearest ranks first, a window of messages at a time.

use crate::coll::plan::{Plan, Ranks, Regions};

/// Messages posted in each direction before waiting. With 1 this is the classic pairwise exchange; more let a rank do
/// its part of many exchanges each time it has the core.
pub const WINDOW: u32 = 32;

pub fn build(plan: &mut Plan, ranks: Ranks, send: &Regions, recv: &Regions) {
    plan.copy(send.get(ranks.rank as usize), recv.get(ranks.rank as usize));
    for distance in 1..ranks.size {
        let (from, to) = (ranks.before(distance), ranks.after(distance));
        plan.recv_some(ranks, from, recv.get(from as usize));
        plan.send_some(ranks, to, send.get(to as usize));
        if distance % WINDOW == 0 {
            plan.fence();
        }
    }
    plan.fence();
}

/// A packed copy of all blocks in `blocks`, made when the plan runs: what an in-place exchange sends from.
pub fn copy_of(plan: &mut Plan, blocks: &Regions) -> Regions {
    let temp = plan.temp_bytes(blocks.bytes());
    match blocks {
        Regions::Even { first, blocks } => {
            plan.copy(first.slice(0, first.count * *blocks as u64), temp);
            Regions::Even { first: temp.slice(0, first.bytes()), blocks: *blocks }
        }
        Regions::Listed(list) => {
            let mut at = 0;
            let copies = list.iter().map(|block| {
                let copy = temp.slice(at, block.bytes());
                at += block.bytes();
                plan.copy(*block, copy);
                copy
            });
            Regions::Listed(copies.collect())
        }
    }
}
