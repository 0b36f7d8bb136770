//! Scatter of blocks of one size: each node's blocks leave the root in one message.

use crate::coll::algo::scatter_linear;
use crate::coll::by_node::order::{self, ByNode};
use crate::coll::plan::{Data, Plan, Regions};
use crate::comm::layout::Layout;

/// `send`: all blocks, at the root only; `recv`: this rank's block (`None` at a root whose block stays in place); all
/// blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, layout: &Layout, send: Option<&Regions>, recv: Option<Data>, root: u32, bytes: u64) {
    let leaders = layout.leaders(root);
    let ranks = order::all_of(layout);
    if let (true, Some(send)) = (ranks.rank == root, send) {
        let all = ByNode::new(plan, layout, send);
        let here = layout.here();
        all.each(layout, send, |node| node != here, |to, from| plan.copy(from, to));
        for node in (0..layout.nodes()).filter(|node| *node != layout.here()) {
            plan.send(ranks, leaders.ranks[node], all.node(node));
        }
        let local = Regions::Listed(layout.local().iter().map(|rank| send.get(*rank as usize)).collect());
        plan.within(layout, |plan, ranks| scatter_linear::build(plan, ranks, Some(&local), recv, leaders.place));
        return;
    }
    let Some(recv) = recv else { return };
    let count = layout.local().len() as u64;
    let is_leader = leaders.leads(layout);
    if is_leader && layout.here() as u32 != leaders.top {
        if count == 1 {
            plan.recv(ranks, root, recv);
            plan.fence();
            return;
        }
        let temp = plan.temp_bytes(count * bytes);
        plan.recv(ranks, root, temp);
        plan.fence();
        let local = Regions::Even { first: temp.slice(0, bytes), blocks: count as usize };
        plan.within(layout, |plan, ranks| scatter_linear::build(plan, ranks, Some(&local), Some(recv), leaders.place));
    } else {
        plan.within(layout, |plan, ranks| scatter_linear::build(plan, ranks, None, Some(recv), leaders.place));
    }
}
