//! Allgather around a ring: each rank passes on to the next what the one before it passed to it, so that all traffic
//! is between neighbours (who usually share a node). For much data on many ranks.

use crate::coll::plan::{Plan, Ranks, Regions};

/// This rank's block is already in `blocks`. The blocks may differ in size.
pub fn build(plan: &mut Plan, ranks: Ranks, blocks: &Regions) {
    for step in 0..ranks.size.saturating_sub(1) {
        plan.recv_some(ranks, ranks.before(1), blocks.get(ranks.before(step + 1) as usize));
        plan.send_some(ranks, ranks.after(1), blocks.get(ranks.before(step) as usize));
        plan.fence();
    }
}
