//! Allreduce: each node combines what its members have, the nodes' results are combined, and each node tells its members.
//!
//! A node's members must follow one another in rank order if the operation does not commute.

use super::parts_in;
use crate::coll::algo::{allgather_spread, reduce_scatter_direct};
use crate::coll::choose;
use crate::coll::layout::Layout;
use crate::coll::plan::{Data, Plan};

/// `send` may be `recv` (in place).
pub fn build(plan: &mut Plan, layout: &Layout, send: Data, recv: Data, commutative: bool) {
    let leads = layout.place() == 0;
    layout.phase(plan, |plan, ranks| {
        choose::reduce(plan, ranks, send, leads.then_some(recv), 0, commutative);
    });
    across(plan, layout, recv);
    layout.phase(plan, |plan, ranks| choose::bcast(plan, ranks, recv, 0));
}

/// The part of the nodes' first members, whose results are in `recv`, and get there.
pub fn across(plan: &mut Plan, layout: &Layout, recv: Data) {
    layout.across(plan, &layout.leaders(0).ranks, |plan, ranks| choose::allreduce(plan, ranks, recv, recv));
}

/// Of much data: the members of a node combine a part each, the members at the same place of all nodes combine that
/// part, and the members of a node collect the parts.
pub fn by_parts(plan: &mut Plan, layout: &Layout, send: Data, recv: Data) {
    let results = parts_in(layout, recv);
    let mine = results.get(layout.place() as usize);
    let parts = parts_in(layout, send);
    layout.phase(plan, |plan, ranks| {
        reduce_scatter_direct::build(plan, ranks, &parts, mine, send.at == recv.at);
    });
    if mine.count > 0 {
        let lane = layout.lane();
        layout.across(plan, &lane, |plan, ranks| choose::allreduce(plan, ranks, mine, mine));
    }
    layout.phase(plan, |plan, ranks| allgather_spread::build(plan, ranks, None, &results));
}
