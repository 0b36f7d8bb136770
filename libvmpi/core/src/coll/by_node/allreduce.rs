//! Allreduce: each node combines what its members have, the nodes' results are combined, and each node tells its members.
//!
//! A node's members must follow one another in rank order if the operation does not commute.
//!
//! Much data, too, crosses in one message. Cut into a part for each member of a node, who exchange it with their like on the other
//! nodes, it was no faster at any size and slower at most (two nodes of a core with 2, 4, 8 ranks; of the time of the
//! flat plan, 16 KiB: 0.4, 1.0, 0.6 by parts, 0.5, 0.4, 0.2 by one; 1 MiB: 0.4, 1.1, 0.9 and 0.3, 0.5, 0.5).

use crate::coll::algo::allreduce_doubling;
use crate::coll::plan::{Data, Plan};
use crate::coll::{by_core, choose};
use crate::comm::layout::Layout;

/// Two nodes swap less than this, since each by parts would wait twice: 256 KiB took 1.4 times as long, 1 MiB 0.85.
const SPLIT_MIN_BYTES: u64 = 512 * 1024;

/// `send` may be `recv` (in place). `cores`: how the members here share cores, if that matters.
pub fn build(plan: &mut Plan, layout: &Layout, cores: Option<&Layout>, send: Data, recv: Data, commutative: bool) {
    let leads = layout.place() == 0;
    plan.within(layout, |plan, ranks| {
        by_core::reduce(plan, ranks, cores, send, leads.then_some(recv), 0, commutative);
    });
    across(plan, layout, recv);
    plan.within(layout, |plan, ranks| choose::bcast(plan, ranks, recv, 0));
}

/// The part of the nodes' first members, whose results are in `recv`, and get there.
pub fn across(plan: &mut Plan, layout: &Layout, recv: Data) {
    plan.across(layout, &layout.leaders(0).ranks, |plan, ranks| {
        match recv.bytes() < SPLIT_MIN_BYTES && ranks.size == 2 {
            true => allreduce_doubling::build(plan, ranks, recv, recv),
            false => choose::allreduce(plan, ranks, recv, recv),
        }
    });
}
