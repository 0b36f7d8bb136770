//! Queues that a computing rank lends out, so that messages are matched for it while it is outside MPI (strong progress).
//!
//! The run state says who owns the queues of a rank that waits; this word says it of one that is RUNNING or AWAY. As it leaves MPI with
//! receives of large messages posted, a rank lends its queues. A sender that can do nothing but wait for that rank takes them, matches, moves its
//! payload and gives them back; so does the carrier, which has messages from other nodes. The rank takes them back as it enters MPI again. Senders that
//! compute themselves do not: when both ranks are in MPI, both copy, which takes half the time.
//!
//! SYNC P: a sender is SUSPENDED and then looks whether its receiver lends; a receiver lends and then looks whether the sender of what it has not taken
//! is SUSPENDED. Jobs that survive deaths do not lend, since a death in the middle would damage the queues. Death story: a deliverer that dies with
//! queues in its hands ends the job, as with TENDED ones.

use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use crate::node::NodeSegment;
use crate::sched::RunState;

const SEQ: Ordering = Ordering::SeqCst;

/// The rank has its queues itself.
const KEPT: u32 = 0;
/// Nobody has them.
const LENT: u32 = 1;
/// A deliverer matches.
const TAKEN: u32 = 2;

/// Looks at queues that a deliverer has before the rank lets others use the CPU between two.
const QUICK_LOOKS: u32 = 1000;

/// Lend the queues of `rank`, which is this one and had them.
#[inline]
pub fn lend(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P: before it looks into its inbox
}

/// Take lent queues back, unless a deliverer has them right now.
pub fn try_take_back(node: &NodeSegment, rank: u32) -> bool {
    node.rank(rank).lent.compare_exchange(LENT, KEPT, SEQ, SEQ).is_ok()
}

/// Take lent queues back; while a deliverer matches, wait for it.
#[inline]
pub fn take_back(node: &NodeSegment, rank: u32) {
    let mut looks = 0;
    while !try_take_back(node, rank) {
        looks += 1;
        if looks < QUICK_LOOKS {
            spin_loop();
        } else {
            yield_cpu();
        }
    }
}

/// May a deliverer take the queues of `rank`?
#[inline]
pub fn is_lent(node: &NodeSegment, rank: u32) -> bool {
    node.rank(rank).lent.load(SEQ) == LENT && matches!(node.state(rank), RunState::Running | RunState::Away)
}

/// As a deliverer: take the queues of `rank` if it lends them (SYNC P).
pub fn try_take(node: &NodeSegment, rank: u32) -> bool {
    is_lent(node, rank) && node.rank(rank).lent.compare_exchange(LENT, TAKEN, SEQ, SEQ).is_ok()
}

/// As a deliverer: give them back; the caller then looks into the inbox once more.
pub fn give_back(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P
}
