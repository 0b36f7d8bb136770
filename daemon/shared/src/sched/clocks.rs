//! The clocks of ranks and cores (listings 2 and 3 of the EuroMPI'20 paper), at each change of who runs.
//!
//! A counter has one writer at a time: the rank that holds the core, or whoever has just won its way out of RUNNING.

use crate::mem::sync::{AtomicU64, Ordering, spin_loop, yield_cpu};
use crate::node::run_state::{RunState, holder_word};
use crate::node::{CoreDescriptor, NodeSegment, RankDescriptor, counting, recording};
use crate::trace::Turn;

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;
const ACQUIRE: Ordering = Ordering::Acquire;
const RELEASE: Ordering = Ordering::Release;

/// Account for the time since the core was taken away.
pub(super) fn end_away(node: &NodeSegment, me: u32) {
    let rank = node.rank(me);
    let now = node.now();
    let taken = rank.away_at.load(RELAXED);
    add(&rank.away_ticks, now.saturating_sub(taken));
    rank.away_at.store(now, RELAXED);
    if recording::is_on(node, me) {
        recording::away(node, taken, now);
    }
}

/// The rank has its core: RUNNING, clocks on.
#[cfg(feature = "measure")]
pub(super) fn resume(node: &NodeSegment, me: u32) {
    resume_at(node, me, node.rank(me), node.now());
}

/// The rank has its core at this time: RUNNING, clocks on.
#[inline]
pub(super) fn resume_at(node: &NodeSegment, me: u32, rank: &RankDescriptor, now: u64) {
    let core = node.core(node.core_in(rank));
    count_in(core);
    // Only READY becomes RUNNING: a rank declared dead stays so.
    let _ = rank.state.compare_exchange(RunState::Ready.word(), RunState::Running.word(), SEQ, SEQ);
    let ready = rank.ready_at.load(RELAXED);
    add(&rank.ready_ticks, now.saturating_sub(ready));
    let left = rank.t.load(RELAXED);
    let (granted, released) = start(core, rank, now);
    if rank.follower.load(RELAXED) != 0 {
        // Of the turn before: nobody has been made READY in this one.
        rank.follower.store(0, RELAXED);
    }
    if recording::records(rank) {
        let left = left.min(now);
        let (ready, clock, core) = (ready.clamp(left, now), rank.r.load(RELAXED), node.core_of(me) as u16);
        recording::turn(node, me, Turn { core, left, ready, run: now, granted, released, clock, ..Turn::default() });
    }
}

/// One more runs on the core: the only one.
#[inline(always)]
pub(super) fn count_in(core: &CoreDescriptor) {
    let running = core.running.fetch_add(1, SEQ) + 1;
    if running > core.max_running.load(RELAXED) {
        core.max_running.store(running, RELAXED);
    }
    if running > 1 {
        core.violations.fetch_add(1, RELAXED);
    }
}

/// A turn of the rank on the core begins: its clocks go on, and the core's time until now is accounted for. When the core was granted and released.
#[inline(always)]
pub(super) fn start(core: &CoreDescriptor, rank: &RankDescriptor, now: u64) -> (u64, u64) {
    rank.t.store(now, RELAXED);
    if rank.m.load(RELAXED) != 0 {
        rank.m.store(now, RELAXED);
    }
    let granted = core.granted_at.load(RELAXED).min(now);
    let released = core.released_at.load(RELAXED).min(granted);
    add(&core.idle_ticks, granted - released);
    add(&core.handoff_ticks, now - granted);
    add(&core.handoffs, 1);
    add(&rank.switches, 1);
    (granted, released)
}

/// Count the rank out of its core; listings 2 and 3, on suspend: advance R, and C if the rank is in a metered section.
/// Called by whoever won the rank's way out of RUNNING, before the core is passed on.
/// Returns the time, and for how many ticks the rank ran.
pub(super) fn settle(node: &NodeSegment, rank: u32) -> (u64, u64) {
    settle_on(node, rank, node.core_of(rank))
}

/// As `settle`, for a rank that others may have taken over to another core meanwhile: `core` is the one that it leaves.
pub(super) fn settle_on(node: &NodeSegment, rank: u32, core: u32) -> (u64, u64) {
    settle_both(node, (rank, node.rank(rank)), (core, node.core(core)))
}

/// As `settle_on`, with both descriptors at hand.
#[inline(always)]
pub(super) fn settle_both(
    node: &NodeSegment,
    (rank, descriptor): (u32, &RankDescriptor),
    (core, on): (u32, &CoreDescriptor),
) -> (u64, u64) {
    if let Some(meter) = node.meter() {
        counting::settle(node, meter, rank, core);
    }
    let core = on;
    core.running.fetch_sub(1, SEQ);
    let now = node.now();
    let ran = now.saturating_sub(descriptor.t.load(RELAXED));
    add(&descriptor.r, ran);
    add(&core.running_ticks, ran);
    let m = descriptor.m.load(RELAXED);
    if m != 0 {
        add(&core.ptime, now.saturating_sub(m));
    }
    core.released_at.store(now, RELAXED);
    descriptor.t.store(now, RELEASE); // after R: see `own_time`
    (now, ran)
}

/// The process-POV clock of a rank, ticks, as others see it: listing 2's R, and the stretch that it runs just now.
pub fn process_time(node: &NodeSegment, rank: u32, now: u64) -> u64 {
    let descriptor = node.rank(rank);
    let running = node.state(rank) == RunState::Running;
    let stretch = if running { now.saturating_sub(descriptor.t.load(RELAXED)) } else { 0 };
    descriptor.r.load(RELAXED).wrapping_add(stretch)
}

/// A rank's own process-POV clock, ticks. It never goes back, and stands still while the rank is AWAY: the core is another's then.
///
/// Who takes the core away changes the state, then R, then t, then the holder; who gives one back, outside MPI (`regrant`), t, then the holder, then the
/// state. So R, t and a time that were read before a RUNNING, and with no other t after it, belong
/// together; and a rank that finds itself AWAY waits until the core is no longer its own (death story: these are a few steps of the daemon,
/// whose end ends the job).
pub fn own_time(node: &NodeSegment, me: u32) -> u64 {
    const AWAY: u32 = RunState::Away as u32;
    const ADOPTED: u32 = RunState::Adopted as u32;
    let rank = node.rank(me);
    loop {
        let (r, t, now) = (rank.r.load(ACQUIRE), rank.t.load(ACQUIRE), node.now_in_order());
        match rank.state.load(ACQUIRE) {
            AWAY if node.core(node.core_of(me)).holder.load(ACQUIRE) != holder_word(me) => return rank.r.load(RELAXED),
            AWAY => spin_loop(),
            ADOPTED => yield_cpu(), // SYNC S
            _ if rank.t.load(ACQUIRE) == t => return r.wrapping_add(now.saturating_sub(t)),
            _ => {}
        }
    }
}

/// The rank has watched since `start` without leaving its core: that was waiting, and the core idle, as if it had left.
///
/// If the daemon takes the core during the watch, it counts the stretch as running; if it does so between the look at the state and
/// the last of these steps, the stretch (at most the patience of a watch, 60 us) may be counted twice. A lock would cost every
/// message more than the error is worth.
pub(super) fn watched(node: &NodeSegment, me: u32, start: u64) {
    let (rank, core) = (node.rank(me), node.core(node.core_of(me)));
    let now = node.now();
    let watched = now.saturating_sub(start);
    if rank.state.load(SEQ) == RunState::Running.word() {
        add(&rank.wait_ticks, watched);
        add(&core.idle_ticks, watched);
        add(&rank.t, watched);
        if rank.m.load(RELAXED) != 0 {
            add(&rank.m, watched);
        }
        if recording::is_on(node, me) {
            recording::watched(node, me, start, now);
        }
    }
}

/// Add to a counter with one writer at a time.
#[inline]
pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(RELAXED).wrapping_add(amount), RELAXED);
}
