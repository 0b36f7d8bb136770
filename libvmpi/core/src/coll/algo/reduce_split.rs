//! Reduce of much data: each rank reduces one part of it, and the root gathers the parts.

use super::{gather_linear, reduce_scatter_direct, split};
use crate::coll::plan::{Data, Plan, Ranks};

/// `send` is `recv` if in place; `recv`: at the root only.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, root: u32) {
    let parts = split(send, ranks.size, 1);
    let results = recv.map(|recv| split(recv, ranks.size, 1));
    match (&results, recv) {
        (Some(results), Some(recv)) if ranks.rank == root => {
            let into = results.get(root as usize);
            reduce_scatter_direct::build(plan, ranks, &parts, into, send.at == recv.at);
            gather_linear::build(plan, ranks, None, Some(results), root);
        }
        _ => {
            let into = plan.temp(send.elem, parts.get(ranks.rank as usize).count);
            reduce_scatter_direct::build(plan, ranks, &parts, into, false);
            gather_linear::build(plan, ranks, Some(into), None, root);
        }
    }
}
