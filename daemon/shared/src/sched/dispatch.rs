//! Giving cores away: a READY rank goes into its core's set, and a core that is the caller's to give goes to the next one of it, or to one that another core
//! has kept waiting (`balance` chooses).
//!
//! SYNC B: release of a core against make_ready; SYNC G: a core handed to a rank as it dies.

use super::balance::{RESCUE, STEAL, homecomer, is_busy, is_time, may_take, oldest, patience, relocate, victims};
use super::idle_time::note_work;
use super::lease::{ALONE, REVOKED, vacate};
use super::permit::grant;
use super::{affinity, policy, run_queue};
use crate::mem::sync::{Ordering, fence_behind_step, may_die};
use crate::node::run_state::{CLAIMED, IDLE, RunState, WITHHELD, holder_word};
use crate::node::{NodeSegment, RankDescriptor};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Put a READY rank in its core's queue; give it the core if that is idle.
#[inline]
pub(super) fn queue(node: &NodeSegment, rank: u32) {
    queue_of(node, rank, node.rank(rank));
}

#[inline(always)]
pub(super) fn queue_of(node: &NodeSegment, rank: u32, descriptor: &RankDescriptor) {
    let core = node.core_in(descriptor);
    run_queue::insert(node.ready(core), rank);
    fence_behind_step(); // SYNC B: with the fence in dispatch, between its IDLE and its second look at the queue.
    let holder = &node.core(core).holder;
    loop {
        match holder.load(SEQ) {
            IDLE if holder.compare_exchange(IDLE, CLAIMED, SEQ, SEQ).is_ok() => {
                may_die();
                note_work(node, core);
                return dispatch(node, core);
            }
            IDLE => {}                      // no more
            WITHHELD => return node.ring(), // SYNC J
            _ => return,
        }
    }
}

/// Give a CLAIMED core to the next READY rank, or leave it idle, or to another job that waits for it.
pub(super) fn dispatch(node: &NodeSegment, core: u32) {
    let (holder, lease) = (&node.core(core).holder, &node.core(core).lease);
    // Each turn but the last takes out a rank that died, and those stay out. The bound is for a segment that is being
    // scribbled over: the daemon calls this too, and must come back (SPECIFICATION 4.1).
    for _ in 0..=2 * u64::from(node.header().ranks) {
        if lease.load(SEQ) == REVOKED {
            return vacate(node, core);
        }
        if let Some(next) = take_next(node, core) {
            node.core(core).granted_at.store(node.now(), RELAXED);
            if hand_over(node, core, next) {
                return;
            }
            continue;
        }
        holder.store(IDLE, SEQ);
        fence_behind_step(); // SYNC B, SYNC I
        let contested = lease.load(SEQ) != ALONE;
        if !contested && run_queue::is_empty(node.ready(core))
            || holder.compare_exchange(IDLE, CLAIMED, SEQ, SEQ).is_err()
        {
            return;
        }
        if contested && run_queue::is_empty(node.ready(core)) {
            return vacate(node, core);
        }
    }
    holder.store(IDLE, SEQ);
}

/// Take the next READY rank out of the queue; only the holder or claimer of the core calls this.
#[inline]
pub(super) fn take_next(node: &NodeSegment, core: u32) -> Option<u32> {
    let set = node.ready(core);
    // A proposal fails only if the daemon revokes that rank just now, or if the set was scribbled over: a bound for that.
    for _ in 0..=64 * set.len() {
        let Some(next) = policy::next(node, core) else { return steal(node, core) };
        if run_queue::remove(set, next) && next < node.header().ranks {
            node.core(core).last.store(next, RELAXED);
            may_die();
            return Some(next);
        }
    }
    None
}

/// Give a core, which is the caller's to give, to `next`. False if that rank has died and the core is still the caller's.
#[inline]
pub(super) fn hand_over(node: &NodeSegment, core: u32, next: u32) -> bool {
    let holder = &node.core(core).holder;
    holder.store(holder_word(next), SEQ);
    may_die();
    // SYNC G: the holder before the look at the state; rank_died changes the state and then looks at the holder. So one of
    // the two sees that a dead rank got the core, and takes it back.
    if node.rank(next).state.load(SEQ) == RunState::Dead.word() {
        return holder.compare_exchange(holder_word(next), CLAIMED, SEQ, SEQ).is_err();
    }
    grant(node, next);
    true
}

/// A READY rank of another core for `core`, which is the caller's to give and has none; it is the caller's now, to hand the core to.
#[inline]
fn steal(node: &NodeSegment, core: u32) -> Option<u32> {
    match node.header().balance {
        STEAL => steal_from_any(node, core),
        // A core that goes idle a million times a second looks at its own clock only.
        RESCUE if is_time(node, core, node.core(core).released_at.load(RELAXED)) => steal_from_any(node, core),
        _ => None,
    }
}

#[cold]
fn steal_from_any(node: &NodeSegment, core: u32) -> Option<u32> {
    if !may_take(node, core) {
        return None;
    }
    fetch_home(node, core).or_else(|| victims(node, core).find_map(|from| steal_from(node, from, core, patience(node))))
}

pub(super) fn fetch_home(node: &NodeSegment, core: u32) -> Option<u32> {
    homecomer(node, core).and_then(|(from, rank)| take(node, rank, from, core))
}

pub(super) fn steal_from(node: &NodeSegment, from: u32, to: u32, patience: u64) -> Option<u32> {
    oldest(node, from, patience).and_then(|rank| take(node, rank, from, to))
}

/// Take a READY rank over.
fn take(node: &NodeSegment, rank: u32, from: u32, to: u32) -> Option<u32> {
    if !run_queue::remove(node.ready(from), rank) {
        return None;
    }
    may_die();
    // In hand: nobody else gives it a core. But it may not have left its own one, or that one may be looking for a watcher.
    if node.core_of(rank) != from || !is_busy(node, from, Some(rank)) || !affinity::follow(node, rank, from, to) {
        queue(node, rank);
        return None;
    }
    relocate(node, rank, from, to);
    Some(rank)
}
