//! Barrier: each node's members report to its first one, these meet, and each lets its own go on.

use crate::coll::algo::{barrier_dissemination, barrier_linear};
use crate::coll::plan::Plan;
use crate::comm::layout::Layout;

pub fn build(plan: &mut Plan, layout: &Layout) {
    plan.within(layout, barrier_linear::report);
    across(plan, layout);
    plan.within(layout, barrier_linear::release);
}

/// The part of the nodes' first members.
pub fn across(plan: &mut Plan, layout: &Layout) {
    plan.across(layout, &layout.leaders(0).ranks, barrier_dissemination::build);
}
