//! A rank's side of the baton, the right to run on a core, which is passed from rank to rank: it asks for its core, suspends, lets others run, comes back.
//!
//! Orderings: every step on `state`, `holder` and the run queue is sequentially consistent, and each "publish, then look"
//! has a fence between the two; partners are named SYNC A (suspend against tend), SYNC B (release of a core against
//! make_ready), SYNC F (a wake-up against the end of tending), SYNC G (a core handed to a rank as it dies); SYNC H is explained in `watch`,
//! SYNC I and J in `lease`, SYNC K in `intent`, SYNC M in `park`, where ranks wait for their cores, SYNC S in `regrant`.

use super::clocks::settle;
use super::dispatch::queue;
use super::lease::REVOKED;
use super::migrate::{move_self, offer};
use super::park::await_core;
use super::release::{leave, leave_and_wait, leave_away, release_core, run_at};
use super::watch::{Idle, runs_next_itself, unwatched, watch_running};
use super::{intent, outside, run_queue};
use crate::mem::sync::{Ordering, fence_behind_step, may_die, spin_loop};
use crate::node::run_state::{RunState, Wait};
use crate::node::{NodeSegment, RankDescriptor, recording};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// The end of MPI_Init: ask for the core, wait for it.
pub fn enter(node: &NodeSegment, me: u32) {
    let step = intent::begin(node, node.core_of(me));
    let now = node.now();
    outside::entered(node, me, now);
    node.rank(me).state.store(RunState::Ready.word(), SEQ);
    ask_for_core(node, me, step, now);
}

/// READY since then, in no queue, and without a core: get one.
fn ask_for_core(node: &NodeSegment, me: u32, step: intent::Intent<'_>, since: u64) {
    node.rank(me).ready_at.store(since, RELAXED);
    may_die();
    queue(node, me);
    drop(step);
    await_core(node, me);
    run_at(node, me, node.now());
}

/// Suspend until somebody makes this rank READY and it gets its core. `over` tells whether the wait is over by itself;
/// it is asked after the rank has become SUSPENDED, which closes the race with deliverers that found it RUNNING.
/// Returns false if the rank did not have to leave its core.
pub fn suspend(node: &NodeSegment, me: u32, wait: Wait, operand: u32, mut over: impl FnMut() -> bool) -> bool {
    suspend_tending(node, me, wait, operand, node.header().spin_ticks, &mut over, &mut |_| {})
}

/// As `suspend`; while this rank spins on its idle core, for `patience` ticks at most, it calls `tend` for ranks of the core that have
/// got mail from another core, so that their queues stay in this core's cache.
pub fn suspend_tending(
    node: &NodeSegment,
    me: u32,
    wait: Wait,
    operand: u32,
    mut patience: u64,
    mut over: &mut dyn FnMut() -> bool,
    mut tend: &mut dyn FnMut(u32),
) -> bool {
    let rank = node.rank(me);
    move_if_told(node, me, rank);
    if patience > 0 && runs_next_itself(node, me) {
        if watch_running(node, me, patience, over) {
            return false;
        }
        patience = 0;
    }
    leave_until(node, me, rank, (wait, operand), patience, &mut over, &mut tend)
}

/// Suspend for one message, of a context and of the peer and tag in the descriptor; whoever pushes it makes this rank READY, if need be without
/// tending. Otherwise as `suspend_tending`, for a rank that has watched already, if it was to. In one piece from here to the kernel and back.
#[inline(always)]
pub fn suspend_for_message(
    node: &NodeSegment,
    me: u32,
    context: u32,
    patience: u64,
    mut over: impl FnMut() -> bool,
    mut tend: impl FnMut(u32),
) {
    let rank = node.rank(me);
    move_if_told(node, me, rank);
    leave_until(node, me, rank, (Wait::Message, context), patience, &mut over, &mut tend);
}

#[inline]
fn move_if_told(node: &NodeSegment, me: u32, rank: &RankDescriptor) {
    if rank.target.load(RELAXED) != 0 {
        move_self(node, me);
    }
}

/// Leave the core until somebody makes this rank READY and it gets a core again. Returns false if it did not have to leave.
#[inline(always)]
fn leave_until(
    node: &NodeSegment,
    me: u32,
    rank: &RankDescriptor,
    (wait, operand): (Wait, u32),
    patience: u64,
    over: &mut impl FnMut() -> bool,
    tend: &mut impl FnMut(u32),
) -> bool {
    rank.wait_kind.store(wait as u32, RELAXED);
    rank.wait_operand.store(operand, RELAXED);
    let on_core = leave(node, me, rank, RunState::Suspended);
    let core = node.core_in(rank);
    fence_behind_step(); // SYNC A: with the fence in try_tend's callers, between their push and their look at the state.
    if (over() || rank.wake.load(SEQ) != 0) && stay(node, me, on_core) {
        end_wait(rank);
        return false;
    }
    leave_and_wait(node, me, rank, on_core.then_some(core), &mut Idle { over, tend, patience });
    end_wait(rank);
    true
}

/// The wait of a rank that has just become SUSPENDED is over already: take the queues back, unless someone tends; then wait for the
/// outcome, which is near. False: it is READY, in the run queue or with the core given to it already.
#[cold]
fn stay(node: &NodeSegment, me: u32, on_core: bool) -> bool {
    let rank = node.rank(me);
    let back = if on_core { RunState::Running } else { RunState::Away };
    // What the step itself found, and not what is there a moment later: who tends may have just given the queues back.
    while let Err(found) = rank.state.compare_exchange(RunState::Suspended.word(), back.word(), SEQ, SEQ) {
        if found != RunState::Tended.word() {
            return false;
        }
        spin_loop();
    }
    if !on_core {
        reacquire(node, me);
    }
    true
}

/// The rank looks again for what it waits for; a request to wake it from before that is answered with this.
fn end_wait(rank: &RankDescriptor) {
    rank.wait_kind.store(Wait::None as u32, RELAXED);
    if rank.wake.load(SEQ) != 0 {
        rank.wake.store(0, SEQ);
    }
}

/// This rank has nothing to do: let the other READY ranks of this core run, or another job that waits for it, or a rank that starves on another core, and
/// come back in turn. False if there is none.
pub fn yield_core(node: &NodeSegment, me: u32) -> bool {
    offer(node, node.core_of(me));
    pass_turn(node, me)
}

/// The same of a rank that has work: no others come to its core.
pub fn pass_turn(node: &NodeSegment, me: u32) -> bool {
    let rank = node.rank(me);
    let core = node.core_of(me);
    if run_queue::is_empty(node.ready(core)) && node.core(core).lease.load(SEQ) != REVOKED {
        return false;
    }
    let (core, on_core) = {
        let _step = intent::begin(node, core);
        let on_core = leave(node, me, rank, RunState::Ready);
        let core = node.core_of(me);
        rank.ready_at.store(node.now(), RELAXED);
        may_die();
        queue(node, me);
        (core, on_core)
    };
    unwatched(|idle| leave_and_wait(node, me, rank, on_core.then_some(core), idle));
    true
}

/// This rank comes into MPI. If its core was given away while it was outside, it waits for it.
#[inline]
pub fn scheduling_point(node: &NodeSegment, me: u32) {
    if matches!(node.state(me), RunState::Away | RunState::Adopted) {
        reacquire(node, me);
    }
}

/// The core was given away: wait for one.
#[cold]
fn reacquire(node: &NodeSegment, me: u32) {
    let step = intent::begin(node, node.core_of(me));
    if leave_away(node, me, RunState::Ready) {
        // Until then it was away.
        ask_for_core(node, me, step, node.rank(me).away_at.load(RELAXED));
    }
}

/// The end of MPI_Finalize: leave the core for good.
pub fn finish(node: &NodeSegment, me: u32) {
    let on_core = leave(node, me, node.rank(me), RunState::Finalized);
    let now = if on_core { settle(node, me).0 } else { node.rank(me).away_at.load(RELAXED) };
    outside::left(node, me, now);
    if on_core {
        if recording::is_on(node, me) {
            recording::ended(node, now);
        }
        unwatched(|idle| release_core(node, me, node.core_of(me), u64::MAX, idle));
    }
}
