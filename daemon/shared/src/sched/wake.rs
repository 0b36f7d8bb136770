//! Waits end: a suspended rank becomes READY, by whoever has pushed what it waits for, matched on its behalf, or asks it to look again.
//!
//! SYNC A: suspend against tend; SYNC F: a wake-up against the end of tending; SYNC H: see `watch`.

use super::dispatch::{dispatch, queue, queue_of};
use super::{intent, policy, run_queue};
use crate::mem::sync::{Ordering, fence, may_die};
use crate::node::run_state::{CLAIMED, RunState, SPINNING};
use crate::node::{NodeSegment, RankDescriptor};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

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
    let _step = intent::begin(node, node.core_of(rank));
    if try_tend(node, rank) {
        may_die();
        make_ready(node, rank);
    }
}

/// The wait of a TENDED rank is over: put it in its core's run queue, and give it the core if that is idle.
#[inline]
pub fn make_ready(node: &NodeSegment, rank: u32) {
    let _step = intent::begin(node, node.core_of(rank));
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

/// A rank that has been told to spin where it cannot (it was taken from its core, and waits to get it back): the core goes to
/// whoever is READY.
#[cold]
pub(super) fn decline_spin(node: &NodeSegment, me: u32) {
    let core = node.core_of(me);
    let descriptor = node.core(core);
    if descriptor.spinner.load(SEQ) == me && descriptor.holder.compare_exchange(SPINNING, CLAIMED, SEQ, SEQ).is_ok() {
        wake_all_with_mail(node, core); // SYNC H
        dispatch(node, core);
    }
}

/// Nobody tends for the ranks that have got mail: let them look for themselves.
pub(super) fn wake_all_with_mail(node: &NodeSegment, core: u32) {
    let mail = node.mail(core);
    while let Some(rank) = run_queue::next_from(mail, 0) {
        if run_queue::remove(mail, rank) && rank < node.header().ranks {
            wake(node, rank);
        }
    }
}
