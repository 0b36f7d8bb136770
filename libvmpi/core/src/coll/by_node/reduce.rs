//! Reduce: each node combines what its members have, and the nodes' results are combined on the way to the root.
//!
//! A node's members must follow one another in rank order if the operation does not commute.

use super::parts_in;
use crate::coll::algo::{gather_linear, reduce_scatter_direct};
use crate::coll::choose;
use crate::coll::layout::{Layout, Leaders};
use crate::coll::plan::{Data, Plan};

/// `send`: this rank's contribution, only written if it is `recv`, which is there at the root only.
pub fn build(plan: &mut Plan, layout: &Layout, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    let leaders = layout.leaders(root);
    let partial = within(plan, layout, &leaders, send, recv, commutative);
    if let Some(partial) = partial {
        across(plan, layout, &leaders, partial, recv, commutative);
    }
}

/// What the members of this node have, combined at the one that speaks for it: where it is then.
fn within(
    plan: &mut Plan,
    layout: &Layout,
    leaders: &Leaders,
    send: Data,
    recv: Option<Data>,
    commutative: bool,
) -> Option<Data> {
    let leads = leaders.leads(layout);
    if leads && layout.local().len() == 1 {
        return Some(send);
    }
    let partial = leads.then(|| recv.unwrap_or_else(|| plan.temp(send.elem, send.count)));
    layout.phase(plan, |plan, ranks| choose::reduce(plan, ranks, send, partial, leaders.place, commutative));
    partial
}

/// The part of those that speak for their nodes, whose results are in `partial`.
pub fn across(
    plan: &mut Plan,
    layout: &Layout,
    leaders: &Leaders,
    partial: Data,
    recv: Option<Data>,
    commutative: bool,
) {
    layout.across(plan, &leaders.ranks, |plan, ranks| {
        choose::reduce(plan, ranks, partial, recv, leaders.top, commutative);
    });
}

/// Of much data: the members of a node combine a part each, the members at the same place of all nodes combine that
/// part at the root's, and the root gathers the parts from its neighbours.
pub fn by_parts(plan: &mut Plan, layout: &Layout, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    let (top, top_place) = layout.locate(root);
    let parts = parts_in(layout, send);
    let mine = parts.get(layout.place() as usize);
    let partial = plan.temp(send.elem, mine.count);
    layout.phase(plan, |plan, ranks| reduce_scatter_direct::build(plan, ranks, &parts, partial, false));
    let at_top = layout.here() == top;
    let result = (at_top && mine.count > 0).then(|| plan.temp(send.elem, mine.count));
    if mine.count > 0 {
        let lane = layout.lane();
        layout.across(plan, &lane, |plan, ranks| {
            choose::reduce(plan, ranks, partial, result, top as u32, commutative);
        });
    }
    if at_top {
        let results = recv.map(|recv| parts_in(layout, recv));
        let own = result.unwrap_or(partial);
        layout.phase(plan, |plan, ranks| gather_linear::build(plan, ranks, Some(own), results.as_ref(), top_place));
    }
}
