//! Reduce: each node combines what its members have, and the nodes' results are combined on the way to the root.
//!
//! A node's members must follow one another in rank order if the operation does not commute.

use crate::coll::algo::reduce_binomial;
use crate::coll::by_node::order::all_of;
use crate::coll::choose;
use crate::coll::plan::{Data, Plan, Ranks};
use crate::comm::layout::{Layout, Leaders};

/// `send`: this rank's contribution, only written if it is `recv`, which is there at the root only.
///
/// One tree: who speaks for a node has the children that it has within the node and those that it has among the nodes,
/// and waits for all of them at once.
pub fn build(plan: &mut Plan, layout: &Layout, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    let ranks = all_of(layout);
    // One that does not commute goes to the first rank first, as the first node's contribution is the first.
    let top = if commutative { root } else { 0 };
    let leaders = layout.leaders(top);
    let named = |(parent, children): (Option<u32>, Vec<u32>), names: &[u32]| {
        let name = |number: u32| names[number as usize];
        (parent.map(name), children.into_iter().map(name).collect::<Vec<u32>>())
    };
    let here = Ranks { rank: layout.place(), size: layout.local().len() as u32, ..ranks };
    let (mut parent, mut children) = named(reduce_binomial::tree(here, leaders.place), layout.local());
    if leaders.leads(layout) {
        let across = Ranks { rank: layout.here() as u32, size: layout.nodes() as u32, ..ranks };
        let (above, below) = named(reduce_binomial::tree(across, leaders.top), &leaders.ranks);
        parent = above;
        children.extend(below);
    }
    let parent = parent.or((ranks.rank == top && top != root).then_some(root));
    reduce_binomial::up(plan, ranks, send, recv.filter(|_| ranks.rank == top), parent, &children);
    if let (true, Some(recv)) = (top != root && ranks.rank == root, recv) {
        plan.recv(ranks, top, recv);
        plan.fence();
    }
}

/// The part of those that speak for their nodes, with what each node's members come to, if the operation commutes.
pub fn across(plan: &mut Plan, layout: &Layout, leaders: &Leaders, partial: Data, recv: Option<Data>) {
    plan.across(layout, &leaders.ranks, |plan, ranks| {
        let (parent, children) = reduce_binomial::tree(ranks, leaders.top);
        reduce_binomial::up(plan, ranks, partial, recv, parent, &children);
    });
}

/// Of much data: each node by itself, as `within` does it (`recv` at the root only), then the nodes.
pub fn in_turn(
    plan: &mut Plan,
    layout: &Layout,
    send: Data,
    recv: Option<Data>,
    root: u32,
    commutative: bool,
    within: impl FnOnce(&mut Plan, Ranks, Data, Option<Data>, u32),
) {
    let leaders = layout.leaders(root);
    let leads = leaders.leads(layout);
    let partial = match leads && layout.local().len() > 1 {
        true => recv.unwrap_or_else(|| plan.temp(send.elem, send.count)),
        false => send,
    };
    plan.within(layout, |plan, ranks| {
        if ranks.size > 1 {
            within(plan, ranks, send, leads.then_some(partial), leaders.place);
        }
    });
    plan.across(layout, &leaders.ranks, |plan, ranks| {
        choose::reduce(plan, ranks, partial, recv, leaders.top, commutative);
    });
}
