//! What only the daemon does to a core's ranks: it takes a core from one, has cores that nobody watches take ranks over, gives a leased core back, and
//! lets a core go on after a death.

use super::balance::{RESCUE, STEAL, could_steal};
use super::clocks::settle;
use super::dispatch::dispatch;
use super::release::leave_running;
use super::wake::{wake, wake_all_with_mail};
use super::{intent, outside, progress, run_queue};
use crate::clock;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::node::run_state::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD, holder_word};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// The daemon takes the core from a RUNNING rank (asleep in the kernel, or past its quantum). False if it is not RUNNING.
pub fn take_core(node: &NodeSegment, rank: u32) -> bool {
    if node.state(rank) != RunState::Running {
        return false; // one that is AWAY already counts from when it was taken
    }
    // Before the state: the rank may see that it is away, and count the time, before this process gets any further.
    node.rank(rank).away_at.store(node.now(), RELAXED);
    let _step = intent::begin(node, node.core_of(rank));
    if !leave_running(node, rank, RunState::Away) {
        return false;
    }
    clock::wait_for_all_before(); // `settle` must not take a time from before that step
    settle(node, rank);
    let core = node.core_of(rank);
    if node.core(core).holder.compare_exchange(holder_word(rank), CLAIMED, SEQ, SEQ).is_ok() {
        dispatch(node, core);
    }
    true
}

/// The daemon found the process of `rank` gone: revoke its baton and let the next rank run.
pub fn rank_died(node: &NodeSegment, rank: u32) {
    let descriptor = node.rank(rank);
    let before = RunState::from_word(descriptor.state.swap(RunState::Dead.word(), SEQ)); // SYNC G
    // Who moves a rank changes its core and then looks whether it is dead.
    let core = descriptor.core.load(SEQ).min(node.header().cores - 1);
    progress::settle_dead(node, rank, before, core);
    outside::died(node, rank, before);
    run_queue::remove(node.ready(core), rank);
    let holder = &node.core(core).holder;
    // Whoever was to spin: the dead rank may have been about to tell another that it should.
    let spinning = holder.compare_exchange(SPINNING, CLAIMED, SEQ, SEQ).is_ok();
    if spinning {
        wake_all_with_mail(node, core);
        wake(node, node.core(core).spinner.load(SEQ).min(node.header().ranks - 1)); // SYNC H
    }
    let held = spinning || holder.compare_exchange(holder_word(rank), CLAIMED, SEQ, SEQ).is_ok();
    if held || holder.compare_exchange(OPEN, CLAIMED, SEQ, SEQ).is_ok() {
        // Nobody runs on a core that a dead rank held; it may have died before it counted itself out.
        node.core(core).running.store(0, SEQ);
        dispatch(node, core);
    }
}

/// For the daemon: idle cores on which nobody watches any more take over what has been READY for long.
pub fn assist(node: &NodeSegment) {
    if !matches!(node.header().balance, STEAL | RESCUE) {
        return;
    }
    for core in 0..node.header().own_cores {
        let holder = &node.core(core).holder;
        if holder.load(SEQ) == IDLE
            && could_steal(node, core)
            && holder.compare_exchange(IDLE, CLAIMED, SEQ, SEQ).is_ok()
        {
            dispatch(node, core);
        }
    }
}

/// Give a WITHHELD core back to the job; its next READY rank runs.
pub fn give(node: &NodeSegment, core: u32, lease: u32) {
    let descriptor = node.core(core);
    descriptor.lease.store(lease, SEQ);
    if descriptor.holder.compare_exchange(WITHHELD, CLAIMED, SEQ, SEQ).is_err() {
        return;
    }
    // What was idle time for the core's clocks was the other job's.
    let away = node.now().saturating_sub(descriptor.withheld_at.load(RELAXED));
    descriptor.withheld_ticks.store(descriptor.withheld_ticks.load(RELAXED).wrapping_add(away), RELAXED);
    descriptor.released_at.store(descriptor.released_at.load(RELAXED).saturating_add(away), RELAXED);
    dispatch(node, core);
}
