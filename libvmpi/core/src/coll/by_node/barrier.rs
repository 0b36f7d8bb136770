//! Barrier: each node's members report to its first one, these meet, and each lets its own go on.

use crate::coll::algo::{barrier_dissemination, barrier_linear};
use crate::coll::layout::Layout;
use crate::coll::plan::Plan;

pub fn build(plan: &mut Plan, layout: &Layout) {
    layout.phase(plan, barrier_linear::report);
    across(plan, layout);
    layout.phase(plan, barrier_linear::release);
}

/// The part of the nodes' first members.
pub fn across(plan: &mut Plan, layout: &Layout) {
    layout.across(plan, &layout.leaders(0).ranks, barrier_dissemination::build);
}
