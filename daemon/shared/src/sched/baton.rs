//! The baton: the right to run on a core, passed from rank to rank.
//!
//! Orderings: every step on `state`, `holder` and the run queue is sequentially consistent, and each "publish, then look"
//! has a fence between the two; partners are named SYNC A (suspend against tend), SYNC B (release of a core against
//! make_ready), SYNC F (a wake-up against the end of tending), SYNC G (a core handed to a rank as it dies); SYNC H is explained in `watch`,
//! SYNC I and J in `lease`, SYNC K in `steps`, SYNC M in `permit`, where ranks wait for their cores, SYNC S in `adopt`.

use super::clocks::{add, end_away, resume_at, settle, settle_both};
use super::lease::{ALONE, REVOKED, vacate};
use super::permit::{Permit, await_core, await_permit, grant, open, tell_to_watch};
use super::run_state::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD, Wait, holder_word};
use super::watch::{
    Idle, heir, hurry_carrier, note_work, runs_next_itself, spin, unwatched, wake_all_with_mail, watch_running,
};
use super::{balance, outside, policy, progress, run_queue, steps};
use crate::clock;
use crate::mem::sync::{Ordering, fence, fence_behind_step, may_die, spin_loop, yield_cpu};
use crate::node::{CoreDescriptor, NodeSegment, RankDescriptor};
use crate::trace;

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// The end of MPI_Init: ask for the core, wait for it.
pub fn enter(node: &NodeSegment, me: u32) {
    let step = steps::begin(node, node.core_of(me));
    let now = node.now();
    outside::entered(node, me, now);
    node.rank(me).state.store(RunState::Ready.word(), SEQ);
    ask_for_core(node, me, step, now);
}

/// READY since then, in no queue, and without a core: get one.
fn ask_for_core(node: &NodeSegment, me: u32, step: steps::Step<'_>, since: u64) {
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
        balance::move_self(node, me);
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
    while rank.state.compare_exchange(RunState::Suspended.word(), back.word(), SEQ, SEQ).is_err() {
        if rank.state.load(SEQ) != RunState::Tended.word() {
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
    balance::offer(node, node.core_of(me));
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
        let _step = steps::begin(node, core);
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
    let step = steps::begin(node, node.core_of(me));
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
        if trace::is_on(node, me) {
            trace::ended(node, now);
        }
        unwatched(|idle| release_core(node, me, node.core_of(me), u64::MAX, idle));
    }
}

/// Take the queues of a SUSPENDED rank, to match on its behalf. The caller has pushed and then fenced (SYNC A).
#[inline]
pub fn try_tend(node: &NodeSegment, rank: u32) -> bool {
    let descriptor = node.rank(rank);
    descriptor.state.load(SEQ) == RunState::Suspended.word()
        && descriptor.state.compare_exchange(RunState::Suspended.word(), RunState::Tended.word(), SEQ, SEQ).is_ok()
}

/// Give the queues of a TENDED rank back without waking it, unless somebody asked for that meanwhile: then it becomes
/// READY, and the answer is true. Otherwise the caller looks for new messages.
#[inline]
pub fn end_tend(node: &NodeSegment, rank: u32) -> bool {
    let descriptor = node.rank(rank);
    // A compare-and-swap: the daemon may have declared the rank dead meanwhile.
    let _ = descriptor.state.compare_exchange(RunState::Tended.word(), RunState::Suspended.word(), SEQ, SEQ);
    fence(SEQ); // SYNC F: with wake, between its request and its look at the state
    if descriptor.wake.load(SEQ) != 0 && try_tend(node, rank) {
        make_ready(node, rank);
        return true;
    }
    false
}

/// Make a rank READY whose wait has ended by something else than a message. Nothing if it is not suspended (any more):
/// it looks for itself before it suspends. If another process tends it right now, that one makes it READY.
pub fn wake(node: &NodeSegment, rank: u32) {
    node.rank(rank).wake.store(1, SEQ);
    fence(SEQ); // SYNC F
    ready_if_suspended(node, rank);
}

/// Make a rank READY if it is suspended. The caller has published what it is to look at, and fenced (SYNC A).
pub fn ready_if_suspended(node: &NodeSegment, rank: u32) {
    if node.rank(rank).state.load(SEQ) != RunState::Suspended.word() {
        return;
    }
    let _step = steps::begin(node, node.core_of(rank));
    if try_tend(node, rank) {
        may_die();
        make_ready(node, rank);
    }
}

/// The wait of a TENDED rank is over: put it in its core's run queue, and give it the core if that is idle.
#[inline]
pub fn make_ready(node: &NodeSegment, rank: u32) {
    let _step = steps::begin(node, node.core_of(rank));
    let descriptor = node.rank(rank);
    descriptor.ready_at.store(node.now(), RELAXED);
    policy::note_ready(node, rank);
    if descriptor.state.compare_exchange(RunState::Tended.word(), RunState::Ready.word(), SEQ, SEQ).is_ok() {
        may_die();
        queue(node, rank);
    }
}

/// The caller has pushed what `rank` waits for with `Wait::Message`, and that rank takes it itself: make it READY without tending. False if it is not
/// SUSPENDED (any more). Should it wait for something else by now it only looks once in vain, as after `wake`.
///
/// Not in a job that survives deaths: there, nobody waits so.
#[inline(always)]
pub fn ready_untended(node: &NodeSegment, rank: u32, descriptor: &RankDescriptor) -> bool {
    if descriptor.state.compare_exchange(RunState::Suspended.word(), RunState::Ready.word(), SEQ, SEQ).is_err() {
        return false;
    }
    // READY and in no set: until it is, nobody gives it a core, and this process has it in hand.
    descriptor.ready_at.store(node.now(), RELAXED);
    policy::note_ready(node, rank);
    queue_of(node, rank, descriptor);
    true
}

/// The daemon takes the core from a RUNNING rank (asleep in the kernel, or past its quantum). False if it is not RUNNING.
pub fn take_core(node: &NodeSegment, rank: u32) -> bool {
    if node.state(rank) != RunState::Running {
        return false; // one that is AWAY already counts from when it was taken
    }
    // Before the state: the rank may see that it is away, and count the time, before this process gets any further.
    node.rank(rank).away_at.store(node.now(), RELAXED);
    let _step = steps::begin(node, node.core_of(rank));
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

/// Change a rank's state from RUNNING to `to`. False if it is not RUNNING (the daemon or the rank was faster).
#[inline]
pub(super) fn leave_running(node: &NodeSegment, rank: u32, to: RunState) -> bool {
    leave_running_of(node, node.rank(rank), to)
}

#[inline]
fn leave_running_of(node: &NodeSegment, rank: &RankDescriptor, to: RunState) -> bool {
    hurry_carrier(node);
    rank.state.compare_exchange(RunState::Running.word(), to.word(), SEQ, SEQ).is_ok()
}

/// Change this rank's state, in MPI, to `to`. False if it has no core to leave: the daemon has taken it since the last scheduling point.
#[inline]
fn leave(node: &NodeSegment, me: u32, rank: &RankDescriptor, to: RunState) -> bool {
    loop {
        if leave_running_of(node, rank, to) {
            return true;
        }
        if leave_away(node, me, to) {
            return false;
        }
    }
}

/// The same of a rank that has found itself without a core. False if it has one after all: the daemon has just given it one (`adopt`).
#[cold]
fn leave_away(node: &NodeSegment, me: u32, to: RunState) -> bool {
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

/// Put a READY rank in its core's queue; give it the core if that is idle.
#[inline]
pub(super) fn queue(node: &NodeSegment, rank: u32) {
    queue_of(node, rank, node.rank(rank));
}

#[inline(always)]
fn queue_of(node: &NodeSegment, rank: u32, descriptor: &RankDescriptor) {
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
    // scribbled over: the daemon calls this too, and must come back (promise 5).
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
        let Some(next) = policy::next(node, core) else { return balance::steal(node, core) };
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

/// How a rank has left its core, or is to come back.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Left {
    /// Nobody else got the core.
    Alone,
    /// Another rank of the core runs, or watches, now.
    Passed,
    /// As `Passed`, with more than one READY, after a short turn: the next turn is not far.
    Among,
    /// It found its own wait over while it watched: it has the core, and goes on.
    Back,
}

/// The rank has left RUNNING: stop its clocks, pass its core on, wait for its own turn.
///
/// `core` is the one that it holds, if any. From the moment that it is READY another core may take it over; it gives up its own one
/// all the same, and a core that it is told to watch is its own one, since nobody takes ranks over from a core that is watched.
#[inline(always)]
fn leave_and_wait(node: &NodeSegment, me: u32, rank: &RankDescriptor, core: Option<u32>, idle: &mut Idle<'_>) {
    let mut how = Left::Alone;
    let left = if let Some(core) = core {
        let descriptor = node.core(core);
        let (left, ran) = settle_both(node, (me, rank), (core, descriptor));
        how = release(node, me, (core, descriptor), ran, idle);
        left
    } else {
        rank.away_at.load(RELAXED) // until then it was away
    };
    while how != Left::Back && await_permit(node, me, rank, how) == Permit::Spin {
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
        balance::settle_in(node, me);
    }
}

/// Pass the core, on which this rank ran for `ran` ticks, to the next READY rank (which may be this one), or leave it idle.
pub(super) fn release_core(node: &NodeSegment, me: u32, core: u32, ran: u64, idle: &mut Idle<'_>) -> Left {
    release(node, me, (core, node.core(core)), ran, idle)
}

/// As `release_core`. What most hand-overs are, leaving the core OPEN, stands where it is needed; all else is a call.
#[inline(always)]
fn release(
    node: &NodeSegment,
    me: u32,
    (core, descriptor): (u32, &CoreDescriptor),
    ran: u64,
    idle: &mut Idle<'_>,
) -> Left {
    let step = steps::begin(node, core);
    if descriptor.lease.load(SEQ) == REVOKED {
        vacate(node, core);
        return Left::Alone;
    }
    descriptor.granted_at.store(descriptor.released_at.load(RELAXED), RELAXED);
    match open(node, me, (core, descriptor), ran) {
        Some(left) => left,
        None => pass_on(node, me, core, step, idle),
    }
}

/// Give the core to the next READY rank, or leave it idle, watched or not.
fn pass_on(node: &NodeSegment, me: u32, core: u32, step: steps::Step<'_>, idle: &mut Idle<'_>) -> Left {
    let descriptor = node.core(core);
    let holder = &descriptor.holder;
    while let Some(next) = take_next(node, core) {
        if hand_over(node, core, next) {
            return if next == me { Left::Alone } else { Left::Passed };
        }
    }
    balance::core_goes_idle(node, core);
    // Only a rank that waits watches: one that has finished, only lets others run or moves has nothing to tend with.
    let waits = matches!(node.state(me), RunState::Suspended | RunState::Tended);
    if node.header().spin_ticks == 0 || !waits {
        holder.store(CLAIMED, SEQ);
        may_die();
        dispatch(node, core);
        return Left::Alone;
    }
    // Nobody spins in a job that survives deaths.
    drop(step);
    descriptor.idler.store(me, RELAXED);
    if let Some(heir) = heir(node, me, core) {
        descriptor.spinner.store(heir, SEQ);
        // From here on only the spinner gives the core away; should this process die before the next step, rank_died does.
        holder.store(SPINNING, SEQ);
        tell_to_watch(node, heir);
        return Left::Passed;
    }
    descriptor.spinner.store(me, SEQ);
    holder.store(SPINNING, SEQ);
    spin(node, me, core, idle)
}
