//! Leaving a core and coming back: out of RUNNING, the clocks stopped, the core passed on, and the wait for the next turn.
//!
//! SYNC S is explained in `regrant`.

use super::carrier_bell::hurry_carrier;
use super::clocks::{add, end_away, resume_at, settle_both};
use super::dispatch::{dispatch, hand_over, take_next};
use super::lease::{REVOKED, vacate};
use super::park::{await_permit, open};
use super::permit::{Permit, Release, tell_to_watch};
use super::watch::{Idle, expected_next, spin};
use super::{affinity, balance, intent};
use crate::mem::sync::{Ordering, may_die, yield_cpu};
use crate::node::run_state::{CLAIMED, RunState, SPINNING};
use crate::node::{CoreDescriptor, NodeSegment, RankDescriptor};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Change a rank's state from RUNNING to `to`. False if it is not RUNNING (the daemon or the rank was faster).
#[inline]
pub(super) fn leave_running(node: &NodeSegment, rank: u32, to: RunState) -> bool {
    leave_running_of(node, node.rank(rank), to)
}

#[inline]
pub(super) fn leave_running_of(node: &NodeSegment, rank: &RankDescriptor, to: RunState) -> bool {
    hurry_carrier(node);
    rank.state.compare_exchange(RunState::Running.word(), to.word(), SEQ, SEQ).is_ok()
}

/// Change this rank's state, in MPI, to `to`. False if it has no core to leave: the daemon has taken it since the last scheduling point.
#[inline]
pub(super) fn leave(node: &NodeSegment, me: u32, rank: &RankDescriptor, to: RunState) -> bool {
    loop {
        if leave_running_of(node, rank, to) {
            return true;
        }
        if leave_away(node, me, to) {
            return false;
        }
    }
}

/// The same of a rank that has found itself without a core. False if it has one after all: the daemon has just given it one (`regrant`).
#[cold]
pub(super) fn leave_away(node: &NodeSegment, me: u32, to: RunState) -> bool {
    const RUNNING: u32 = RunState::Running as u32;
    const ADOPTED: u32 = RunState::Adopted as u32;
    let state = &node.rank(me).state;
    loop {
        match state.load(SEQ) {
            RUNNING => return false,
            ADOPTED => yield_cpu(), // SYNC S
            before => {
                if state.compare_exchange(before, to.word(), SEQ, SEQ).is_ok() {
                    end_away(node, me);
                    return true;
                }
            }
        }
    }
}

/// The rank has left RUNNING: stop its clocks, pass its core on, wait for its own turn.
///
/// `core` is the one that it holds, if any. From the moment that it is READY another core may take it over; it gives up its own one
/// all the same, and a core that it is told to watch is its own one, since nobody takes ranks over from a core that is watched.
#[inline(always)]
pub(super) fn leave_and_wait(
    node: &NodeSegment,
    me: u32,
    rank: &RankDescriptor,
    core: Option<u32>,
    idle: &mut Idle<'_>,
) {
    let mut how = Release::Alone;
    let left = if let Some(core) = core {
        let descriptor = node.core(core);
        let (left, ran) = settle_both(node, (me, rank), (core, descriptor));
        how = release(node, me, (core, descriptor), ran, idle);
        left
    } else {
        rank.away_at.load(RELAXED) // until then it was away
    };
    while how != Release::Back && await_permit(node, me, rank, how) == Permit::Spin {
        how = spin(node, me, node.core_in(rank), idle);
    }
    let now = node.now();
    let ready_at = rank.ready_at.load(RELAXED).clamp(left, now.max(left));
    add(&rank.wait_ticks, ready_at - left);
    run_in(node, me, rank, now);
}

/// The rank has its core, which may be another one than before.
pub(super) fn run_at(node: &NodeSegment, me: u32, now: u64) {
    run_in(node, me, node.rank(me), now);
}

#[inline(always)]
fn run_in(node: &NodeSegment, me: u32, rank: &RankDescriptor, now: u64) {
    resume_at(node, me, rank, now);
    if node.header().balance != 0 {
        affinity::settle_in(node, me);
    }
}

/// Pass the core, on which this rank ran for `ran` ticks, to the next READY rank (which may be this one), or leave it idle.
pub(super) fn release_core(node: &NodeSegment, me: u32, core: u32, ran: u64, idle: &mut Idle<'_>) -> Release {
    release(node, me, (core, node.core(core)), ran, idle)
}

/// As `release_core`. What most hand-overs are, leaving the core OPEN, stands where it is needed; all else is a call.
#[inline(always)]
pub(super) fn release(
    node: &NodeSegment,
    me: u32,
    (core, descriptor): (u32, &CoreDescriptor),
    ran: u64,
    idle: &mut Idle<'_>,
) -> Release {
    let step = intent::begin(node, core);
    if descriptor.lease.load(SEQ) == REVOKED {
        vacate(node, core);
        return Release::Alone;
    }
    descriptor.granted_at.store(descriptor.released_at.load(RELAXED), RELAXED);
    match open(node, me, (core, descriptor), ran) {
        Some(left) => left,
        None => pass_on(node, me, core, step, idle),
    }
}

/// Give the core to the next READY rank, or leave it idle, watched or not.
fn pass_on(node: &NodeSegment, me: u32, core: u32, step: intent::Intent<'_>, idle: &mut Idle<'_>) -> Release {
    let descriptor = node.core(core);
    let holder = &descriptor.holder;
    while let Some(next) = take_next(node, core) {
        if hand_over(node, core, next) {
            return if next == me { Release::Alone } else { Release::Passed };
        }
    }
    balance::core_goes_idle(node, core);
    // Only a rank that waits watches: one that has finished, only lets others run or moves has nothing to tend with.
    let waits = matches!(node.state(me), RunState::Suspended | RunState::Tended);
    if node.header().spin_ticks == 0 || !waits {
        holder.store(CLAIMED, SEQ);
        may_die();
        dispatch(node, core);
        return Release::Alone;
    }
    // Nobody spins in a job that survives deaths.
    drop(step);
    descriptor.idler.store(me, RELAXED);
    if let Some(expected_next) = expected_next(node, me, core) {
        descriptor.spinner.store(expected_next, SEQ);
        // From here on only the spinner gives the core away; should this process die before the next step, rank_died does.
        holder.store(SPINNING, SEQ);
        tell_to_watch(node, expected_next);
        return Release::Passed;
    }
    descriptor.spinner.store(me, SEQ);
    holder.store(SPINNING, SEQ);
    spin(node, me, core, idle)
}
