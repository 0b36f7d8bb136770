//! How a rank waits for its core: awake for a few turns, or asleep on its permit; and cores that are left OPEN to whoever is awake.
//!
//! SYNC M: who leaves a core OPEN looks whether the rank whose turn it is has parked meanwhile; who parks looks whether the core is OPEN. Death
//! story: a rank that parks is woken by whoever grants its permit or leaves the core OPEN; when that process dies, the daemon sees its pidfd and ends the job, parked
//! ranks included. A core left OPEN to a rank that then dies is given on by the daemon (`rank_died`).

use super::dispatch::dispatch;
use super::permit::{GRANTED, NONE, PARKED, Permit, Release, SPIN};
use super::wake::{decline_spin, wake};
use super::{policy, run_queue};
use crate::mem::sync::{AtomicU32, Ordering, fence, fence_behind_step, futex_wait, futex_wake, yield_cpu};
use crate::node::run_state::{CLAIMED, OPEN, RunState, holder_word};
use crate::node::{CoreDescriptor, NodeSegment, RankDescriptor};
use std::sync::OnceLock;
use std::time::Duration;

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// A rank that looks up from its sleep, since its process may have something to do of which no other one knows.
pub struct LookUp {
    /// Is it to do so now?
    pub wanted: fn() -> bool,
    /// Is there something? Then its wait ends, if it is SUSPENDED.
    pub wakes: fn() -> bool,
}

/// This process's.
static LOOK_UP: OnceLock<LookUp> = OnceLock::new();
const LOOK_UP_EVERY: Duration = Duration::from_millis(5);

pub fn look_up_with(look_up: LookUp) {
    let _ = LOOK_UP.set(look_up);
}

/// After staying warm was in vain, a rank parks at once this many times before it tries again.
const COLD_SUSPENSIONS: u32 = 16;

/// Leave the choice to the kernel, if the rank whose turn it is has not parked: whichever such rank it runs first takes the core, and
/// nobody has to be woken. `None`: the core is still the caller's. A parked rank gets the core in its turn, so none starves.
///
/// After a short turn (`ran` ticks) several READY ranks that have parked are woken together: each must be woken anyway, and from then on
/// they go round without.
#[inline(always)]
pub(super) fn open(
    node: &NodeSegment,
    me: u32,
    (core, descriptor): (u32, &CoreDescriptor),
    ran: u64,
) -> Option<Release> {
    if node.header().recovery != 0 {
        return None;
    }
    let ranks = node.header().ranks;
    let next = policy::next(node, core).filter(|next| *next != me && *next < ranks)?;
    let (set, receiver) = (node.ready(core), node.rank(next));
    let others = run_queue::has_others(set, next);
    if others && !policy::kernel_may_choose(node, next) {
        return None;
    }
    let (holder, permit) = (&descriptor.holder, &receiver.permit);
    let among = others && ran < node.header().brisk_ticks;
    if among && permit.load(SEQ) == PARKED {
        rouse_all(node, core);
    }
    if permit.load(SEQ) != NONE {
        return None;
    }
    holder.store(OPEN, SEQ);
    fence_behind_step(); // SYNC M: with the parking in `await_permit`; SYNC G: with `rank_died`
    let takes = permit.load(SEQ) == NONE && receiver.state.load(SEQ) != RunState::Dead.word();
    if !takes && holder.compare_exchange(OPEN, CLAIMED, SEQ, SEQ).is_ok() {
        return None;
    }
    Some(if among { Release::Among } else { Release::Passed })
}

/// Wake the READY ranks of a core that have parked, to look whether it is OPEN.
#[inline(never)]
fn rouse_all(node: &NodeSegment, core: u32) {
    for rank in run_queue::members(node.ready(core)).filter(|rank| *rank < node.header().ranks) {
        let permit = &node.rank(rank).permit;
        if permit.compare_exchange(PARKED, NONE, SEQ, SEQ).is_ok() {
            futex_wake(permit, 1);
        }
    }
}

/// Take the core, if it is OPEN and this rank READY.
#[inline(always)]
fn take_open(node: &NodeSegment, me: u32, rank: &RankDescriptor) -> bool {
    let core = node.core_in(rank);
    let descriptor = node.core(core);
    let holder = &descriptor.holder;
    // It names itself at once. Until it is RUNNING that says no more than CLAIMED: it has no more than one step to go, or gives the core on.
    if holder.load(SEQ) != OPEN
        || rank.state.load(SEQ) != RunState::Ready.word()
        || holder.compare_exchange(OPEN, holder_word(me), SEQ, SEQ).is_err()
    {
        return false;
    }
    if !run_queue::remove(node.ready(core), me) {
        // About to be put in the queue by who has made it READY.
        give_on(node, me, core);
        return false;
    }
    descriptor.last.store(me, RELAXED);
    true
}

/// The core that this rank has taken is for another one after all.
#[cold]
fn give_on(node: &NodeSegment, me: u32, core: u32) {
    // Unless the daemon has found this process dead, and given the core on.
    if node.core(core).holder.compare_exchange(holder_word(me), CLAIMED, SEQ, SEQ).is_ok() {
        dispatch(node, core);
    }
}

/// Sleep until the permit changes, or this process has something to do of its own.
#[cold]
#[inline(never)]
fn sleep_looking_up(node: &NodeSegment, me: u32, permit: &AtomicU32, look_up: &LookUp) {
    let looks_up = (look_up.wanted)();
    futex_wait(permit, PARKED, looks_up.then_some(LOOK_UP_EVERY));
    if looks_up && permit.load(SEQ) != NONE && (look_up.wakes)() {
        wake(node, me);
    }
}

/// Wait for the core in the run queue.
pub(super) fn await_core(node: &NodeSegment, me: u32) {
    while await_permit(node, me, node.rank(me), Release::Alone) == Permit::Spin {
        decline_spin(node, me);
    }
}

/// Wait for the permit, or for a core that is OPEN. A rank that has just passed its core on stays awake for a few turns of sched_yield,
/// if that was of use lately or others are READY, too: a yield costs half of a futex hand-off or less. Where the ranks of a core wait for the
/// same thing (a barrier, neighbours), each is switched in once a round anyway; in a long ring the yields only go to ranks that wait as well.
#[inline(always)]
pub(super) fn await_permit(node: &NodeSegment, me: u32, rank: &RankDescriptor, how: Release) -> Permit {
    let permit = &rank.permit;
    let told = || matches!(permit.load(SEQ), GRANTED | SPIN);
    let mut awake = match how {
        Release::Among => true,
        Release::Passed => match rank.cold.load(RELAXED) {
            0 => true,
            cold => {
                rank.cold.store(cold - 1, RELAXED);
                if rank.state.load(SEQ) == RunState::Ready.word() {
                    // It only let the others go first.
                    yield_cpu();
                }
                false
            }
        },
        _ => false,
    };
    loop {
        if awake && !told() {
            for _ in 0..node.header().warm_yields {
                yield_cpu();
                if told() {
                    break;
                }
                if take_open(node, me, rank) {
                    return Permit::Run;
                }
            }
            if how == Release::Passed && !told() {
                rank.cold.store(COLD_SUSPENSIONS, RELAXED);
            }
        }
        match permit.compare_exchange(NONE, PARKED, SEQ, SEQ) {
            Err(GRANTED) => {
                // The next one comes only after this rank has left its core again.
                permit.store(NONE, Ordering::Release);
                return Permit::Run;
            }
            // Unless it has been granted the core meanwhile.
            Err(SPIN) if permit.compare_exchange(SPIN, NONE, SEQ, SEQ).is_ok() => return Permit::Spin,
            _ => {
                fence(SEQ); // SYNC M
                if take_open(node, me, rank) {
                    // Nobody grants what this rank holds; it may have been told to spin before.
                    let _ = permit.compare_exchange(PARKED, NONE, SEQ, SEQ);
                    return Permit::Run;
                }
                match LOOK_UP.get() {
                    None => futex_wait(permit, PARKED, None),
                    Some(look_up) => sleep_looking_up(node, me, permit, look_up),
                };
                awake = permit.load(SEQ) == NONE;
                if awake && take_open(node, me, rank) {
                    return Permit::Run;
                }
            }
        }
    }
}
