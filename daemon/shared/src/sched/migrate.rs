//! A rank moves itself, or lets one of another core run in its place: see `balance` for who may.

use super::affinity;
use super::balance::{RESCUE, STARVED_S, STEAL, is_time, may_take, patience, relocate, ticks, victims, waiting};
use super::clocks::settle_on;
use super::dispatch::{fetch_home, queue, steal_from};
use super::park::await_core;
use super::release::{leave_running, release_core, run_at};
use super::run_queue;
use super::watch::unwatched;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::node::run_state::{IDLE, RunState, SPINNING};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// The caller, a rank of `core`, has nothing to do and is about to let others run: among them one that waits much longer for another core
/// than they do for this one.
#[inline]
pub(super) fn offer(node: &NodeSegment, core: u32) {
    if matches!(node.header().balance, STEAL | RESCUE) {
        offer_turn(node, core);
    }
}

#[inline(never)]
fn offer_turn(node: &NodeSegment, core: u32) {
    let now = node.now();
    // Who polls does so all the time, and these looks are at what other cores write.
    if !is_time(node, core, now) || !may_take(node, core) {
        return;
    }
    let longest = waiting(node, core).map(|rank| now.saturating_sub(node.rank(rank).ready_at.load(RELAXED))).max();
    let patience = longest.map_or(patience(node), |longest| longest.saturating_mul(2).max(ticks(node, STARVED_S)));
    let starved = || victims(node, core).find_map(|from| steal_from(node, from, core, patience));
    if let Some(rank) = fetch_home(node, core).or_else(starved) {
        queue(node, rank);
    }
}

/// This rank, RUNNING and in MPI, has been told to move: it leaves its core and asks for the other one. Who was rescued goes home, once that core has
/// nothing to do: else one move at a bad moment leaves a job, spread evenly before, with five ranks here and three there for good.
#[cold]
pub(super) fn move_self(node: &NodeSegment, me: u32) {
    let rank = node.rank(me);
    let home = node.home_of(me).min(node.header().cores - 1);
    let idle = || matches!(node.core(home).holder.load(RELAXED), IDLE | SPINNING);
    if node.header().balance == RESCUE && !(idle() && run_queue::is_empty(node.ready(home))) {
        return;
    }
    let Some(to) = rank.target.swap(0, SEQ).checked_sub(1) else { return };
    let from = node.core_of(me);
    let own = node.header().own_cores;
    if to == from || to >= own || from >= own || !affinity::is_ours(node, me, from) {
        return;
    }
    if !leave_running(node, me, RunState::Ready) {
        return; // taken from its core just now
    }
    if node.core_of(me) != from {
        // Taken just now, and given another one: nobody has this rank in hand, which runs on there.
        let _ = node.rank(me).state.compare_exchange(RunState::Ready.word(), RunState::Running.word(), SEQ, SEQ);
        return;
    }
    let (left, ran) = settle_on(node, me, from);
    unwatched(|idle| release_core(node, me, from, ran, idle));
    relocate(node, me, from, to);
    affinity::settle(node, me);
    // It could run all the time.
    rank.ready_at.store(left, RELAXED);
    queue(node, me);
    await_core(node, me);
    run_at(node, me, node.now());
}
