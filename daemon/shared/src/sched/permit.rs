//! The permit: the word by which a rank is told that it has its core, or is to watch it, and on which it sleeps until then (`park`).

use crate::mem::sync::{Ordering, futex_wake, may_die};
use crate::node::NodeSegment;

const SEQ: Ordering = Ordering::SeqCst;

/// Values of `RankDescriptor::permit`.
pub(super) const NONE: u32 = 0;
pub(super) const GRANTED: u32 = 1;
pub(super) const PARKED: u32 = 2;
/// Not to run, but to watch the idle core in place of the rank that ran last.
pub(super) const SPIN: u32 = 3;

/// What a rank was woken for.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Permit {
    Run,
    Spin,
}

/// How a rank has left its core, or is to come back.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Release {
    /// Nobody else got the core.
    Alone,
    /// Another rank of the core runs, or watches, now.
    Passed,
    /// As `Passed`, with more than one READY, after a short turn: the next turn is not far.
    Among,
    /// It found its own wait over while it watched: it has the core, and goes on.
    Back,
}

/// Let `rank` go on; wake it if it has parked.
#[inline]
pub(super) fn grant(node: &NodeSegment, rank: u32) {
    let permit = &node.rank(rank).permit;
    if permit.swap(GRANTED, SEQ) == PARKED {
        may_die();
        futex_wake(permit, 1);
    }
}

/// As `grant`, if it is certain that `rank` waits: for who mends what a dead rank has left half-done. False if it may be about to run.
pub(super) fn grant_parked(node: &NodeSegment, rank: u32) -> bool {
    let permit = &node.rank(rank).permit;
    let parked = permit.compare_exchange(PARKED, GRANTED, SEQ, SEQ);
    // It may sleep though it has been told: whoever told it died before the wake-up.
    let told = parked.is_ok() || parked == Err(GRANTED);
    if told {
        futex_wake(permit, 1);
    }
    told
}

/// Wake `rank`, if it has parked, to look again whether it has its core: nothing is lost if it has not.
pub fn rouse(node: &NodeSegment, rank: u32) {
    futex_wake(&node.rank(rank).permit, 1);
}

/// Have `rank` watch its idle core; wake it if it has parked.
#[inline]
pub(super) fn tell_to_watch(node: &NodeSegment, rank: u32) {
    let permit = &node.rank(rank).permit;
    if permit.swap(SPIN, SEQ) == PARKED {
        futex_wake(permit, 1);
    }
}
