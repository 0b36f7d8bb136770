//! Allgather: each block goes once to each other node. The blocks may differ in size.

use crate::coll::algo::{allgather_spread, gather_linear};
use crate::coll::by_node::order::{ByNode, all_of};
use crate::coll::choose;
use crate::coll::plan::{Data, Plan, Regions};
use crate::comm::layout::Layout;

/// Each node's first member gathers its blocks, these exchange them, and send each member all. `send`: this rank's block,
/// `None` if it is in place in `recv`.
pub fn build(plan: &mut Plan, layout: &Layout, send: Option<Data>, recv: &Regions) {
    let own = layout.local()[layout.place() as usize] as usize;
    let mine = send.unwrap_or(recv.get(own));
    let all = ByNode::new(plan, layout, recv);
    let leads = layout.place() == 0;
    let local = all.of(layout.here());
    plan.within(layout, |plan, ranks| gather_linear::build(plan, ranks, Some(mine), leads.then_some(&local), 0));
    let nodes = Regions::Listed((0..layout.nodes()).map(|node| all.node(node)).collect());
    plan.across(layout, &layout.leaders(0).ranks, |plan, ranks| allgather_spread::build(plan, ranks, None, &nodes));
    plan.within(layout, |plan, ranks| choose::bcast(plan, ranks, all.whole(), 0));
    all.each(layout, recv, |_| true, |from, to| plan.copy(from, to));
}

/// Of so much data that another copy of all may not fit: each block goes straight to one member of each other node, who hands it to its neighbours. Blocks of
/// other nodes are dealt out among a node's members.
pub fn dealt_out(plan: &mut Plan, layout: &Layout, send: Option<Data>, recv: &Regions) {
    let local = layout.local();
    let (here, place) = (layout.here(), layout.place());
    let own = local[place as usize];
    let mine = send.unwrap_or(recv.get(own as usize));
    let others = || (0..layout.nodes()).filter(move |node| *node != here);
    // The member of this node to whom the block of the one at place `from` of another node goes.
    let taker = |from: usize| from as u32 % local.len() as u32;
    let dealt = |to: u32| {
        let blocks = others().flat_map(|node| layout.members(node).iter().enumerate());
        blocks.filter(move |(from, _)| taker(*from) == to).map(|(_, rank)| *rank)
    };
    let ranks = all_of(layout);
    for rank in dealt(place) {
        plan.recv_some(ranks, rank, recv.get(rank as usize));
    }
    for node in others() {
        let members = layout.members(node);
        plan.send_some(ranks, members[place as usize % members.len()], mine);
    }
    let neighbours = || (0..local.len() as u32).filter(move |other| *other != place);
    for other in neighbours() {
        let rank = local[other as usize];
        plan.recv_some(ranks, rank, recv.get(rank as usize));
        plan.send_some(ranks, rank, mine);
    }
    plan.fence();
    for other in neighbours() {
        let rank = local[other as usize];
        dealt(other).for_each(|block| plan.recv_some(ranks, rank, recv.get(block as usize)));
        dealt(place).for_each(|block| plan.send_some(ranks, rank, recv.get(block as usize)));
    }
    if let Some(send) = send {
        plan.copy(send, recv.get(own as usize));
    }
    plan.fence();
}
