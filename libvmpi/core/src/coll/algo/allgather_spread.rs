//! Allgather: everyone sends its block straight to everyone. No message waits for another, so a rank waits once per
//! window, where a ring makes it wait n - 1 times (and every wait is a change of rank on an oversubscribed core).

use super::alltoall_spread::WINDOW;
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// `send`: this rank's block, `None` if it is in place in `recv`. The blocks may differ in size.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: &Regions) {
    let own = recv.get(ranks.rank as usize);
    for distance in 1..ranks.size {
        let from = ranks.before(distance);
        plan.recv_some(ranks, from, recv.get(from as usize));
        plan.send_some(ranks, ranks.after(distance), send.unwrap_or(own));
        if distance % WINDOW == 0 {
            plan.fence();
        }
    }
    if let Some(send) = send {
        plan.copy(send, own);
    }
    plan.fence();
}
