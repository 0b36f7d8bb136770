//! Scatter: the root sends each rank its block. Also the v form, and the phase of others.

use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// `send`: all blocks, at the root only; `recv`: this rank's block (`None` at a root whose block stays in place).
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<&Regions>, recv: Option<Data>, root: u32) {
    if let (true, Some(send)) = (ranks.rank == root, send) {
        for to in (0..ranks.size).filter(|&rank| rank != root) {
            plan.send_some(ranks, to, send.get(to as usize));
        }
        if let Some(recv) = recv {
            plan.copy(send.get(root as usize), recv);
        }
    } else if let Some(recv) = recv {
        plan.recv_some(ranks, root, recv);
    }
    plan.fence();
}
