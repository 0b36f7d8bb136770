//! Barrier: each node's members report to its first one, these meet, and each lets its own go on.

use crate::coll::algo::{barrier_dissemination, bcast_binomial};
use crate::coll::layout::Layout;
use crate::coll::plan::{Data, Plan};

pub fn build(plan: &mut Plan, layout: &Layout) {
    layout.phase(plan, |plan, ranks| {
        // Straight to the first one: up a tree some would have to wait twice.
        match ranks.rank {
            0 => (1..ranks.size).for_each(|from| plan.recv(ranks, from, Data::EMPTY)),
            _ => plan.send(ranks, 0, Data::EMPTY),
        }
        plan.fence();
    });
    across(plan, layout);
    layout.phase(plan, |plan, ranks| bcast_binomial::build(plan, ranks, Data::EMPTY, 0));
}

/// The part of the nodes' first members.
pub fn across(plan: &mut Plan, layout: &Layout) {
    layout.across(plan, &layout.leaders(0).ranks, barrier_dissemination::build);
}
