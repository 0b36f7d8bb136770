//! Gather: everyone sends to the root, which has posted a receive for each. Also the v form, and the phase of others.

use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// `send`: this rank's block (`None` at a root whose block is in place); `recv`: all blocks, at the root only.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: Option<&Regions>, root: u32) {
    if let (true, Some(recv)) = (ranks.rank == root, recv) {
        for from in (0..ranks.size).filter(|&rank| rank != root) {
            plan.recv_some(ranks, from, recv.get(from as usize));
        }
        if let Some(send) = send {
            plan.copy(send, recv.get(root as usize));
        }
    } else if let Some(send) = send {
        plan.send_some(ranks, root, send);
    }
    plan.fence();
}
