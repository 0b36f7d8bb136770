//! Gather of blocks of one size: each node's blocks go to the root in one message.

use crate::coll::algo::gather_linear;
use crate::coll::by_node::order::{self, ByNode};
use crate::coll::plan::{Data, Plan, Regions};
use crate::comm::layout::Layout;

/// `send`: this rank's block (`None` at a root whose block is in place); `recv`: all blocks, at the root only; all
/// blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, layout: &Layout, send: Option<Data>, recv: Option<&Regions>, root: u32, bytes: u64) {
    let leaders = layout.leaders(root);
    let ranks = order::all_of(layout);
    if let (true, Some(recv)) = (ranks.rank == root, recv) {
        let all = ByNode::new(plan, layout, recv);
        for node in (0..layout.nodes()).filter(|node| *node != layout.here()) {
            plan.recv(ranks, leaders.ranks[node], all.node(node));
        }
        let local = Regions::Listed(layout.local().iter().map(|rank| recv.get(*rank as usize)).collect());
        plan.within(layout, |plan, ranks| gather_linear::build(plan, ranks, send, Some(&local), leaders.place));
        let here = layout.here();
        all.each(layout, recv, |node| node != here, |from, to| plan.copy(from, to));
        return;
    }
    let Some(send) = send else { return };
    let count = layout.local().len() as u64;
    let is_leader = leaders.leads(layout);
    if is_leader && count == 1 {
        plan.send(ranks, root, send);
        plan.fence();
        return;
    }
    let temp = is_leader.then(|| plan.temp_bytes(count * bytes));
    let local = temp.map(|temp| Regions::Even { first: temp.slice(0, bytes), blocks: count as usize });
    plan.within(layout, |plan, ranks| gather_linear::build(plan, ranks, Some(send), local.as_ref(), leaders.place));
    if let Some(temp) = temp {
        plan.send(ranks, root, temp);
        plan.fence();
    }
}
