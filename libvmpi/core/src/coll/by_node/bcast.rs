//! Broadcast: the root sends to a member of each other node, and these, and the root, to those of their own.

use crate::coll::algo::bcast_binomial;
use crate::coll::choose;
use crate::coll::plan::{Data, Plan};
use crate::comm::layout::{Layout, Leaders};

pub fn build(plan: &mut Plan, layout: &Layout, data: Data, root: u32) {
    let leaders = layout.leaders(root);
    across(plan, layout, &leaders, data);
    plan.within(layout, |plan, ranks| choose::bcast(plan, ranks, data, leaders.place));
}

/// The part of those that speak for their nodes. What they send may still be under way.
pub fn across(plan: &mut Plan, layout: &Layout, leaders: &Leaders, data: Data) {
    plan.across(layout, &leaders.ranks, |plan, ranks| match choose::splits_bcast(ranks, data.bytes()) {
        true => choose::bcast(plan, ranks, data, leaders.top),
        false => bcast_binomial::start(plan, ranks, data, leaders.top),
    });
}
