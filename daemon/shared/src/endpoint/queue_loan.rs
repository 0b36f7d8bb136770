//! A rank that computes lends its queues: others match for it meanwhile, and it takes them back when it comes into MPI (`offer_queues` says when).

use super::proxy::wake_space_waiters;
use super::transfer::RankMover;
use crate::job::JobSegment;
use crate::matching::queues::Outgoing;
use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use crate::node::NodeSegment;
use crate::sched::{self, RunState};

pub(super) const SEQ: Ordering = Ordering::SeqCst;

/// The rank has its queues itself.
pub(super) const KEPT: u32 = 0;

/// Nobody has them.
pub(super) const LENT: u32 = 1;

/// A deliverer matches.
pub(super) const TAKEN: u32 = 2;

/// Looks at queues that a deliverer has before the rank lets others use the CPU between two.
pub(super) const QUICK_LOOKS: u32 = 1000;

/// Lend the queues of `rank`, which is this one and had them.
#[inline]
pub(super) fn offer_queues(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P: before it looks into its inbox
}

/// Take lent queues back, unless a deliverer has them right now.
pub(super) fn try_reclaim_queues(node: &NodeSegment, rank: u32) -> bool {
    node.rank(rank).lent.compare_exchange(LENT, KEPT, SEQ, SEQ).is_ok()
}

/// Take lent queues back; while a deliverer matches, wait for it.
#[inline]
pub(super) fn reclaim_queues(node: &NodeSegment, rank: u32) {
    let mut looks = 0;
    while !try_reclaim_queues(node, rank) {
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
    let computes = matches!(node.state(rank), RunState::Running | RunState::Away | RunState::Adopted);
    node.rank(rank).lent.load(SEQ) == LENT && computes
}

/// As a deliverer: take the queues of `rank` if it lends them (SYNC P).
pub(super) fn try_take(node: &NodeSegment, rank: u32) -> bool {
    is_lent(node, rank) && node.rank(rank).lent.compare_exchange(LENT, TAKEN, SEQ, SEQ).is_ok()
}

/// As a deliverer: give them back; the caller then looks into the inbox once more.
pub(super) fn give_back(node: &NodeSegment, rank: u32) {
    node.rank(rank).lent.store(LENT, SEQ); // SYNC P
}

/// What may be in the inbox of a rank that is about to compute.
pub(super) enum Remaining {
    /// Whatever has come.
    Unknown,
    /// What there is no room for.
    Stuck,
    /// Large messages of these ranks, who do not wait; so many envelopes had come when they were looked at.
    Of(Vec<u32>, u64),
}

/// If `rank` computes and lends its queues, match for it, and move the payloads of rank `me`. False: it has mail that only itself can take.
pub(super) fn progress_for_offerer(
    node: &NodeSegment,
    job: &JobSegment,
    me: u32,
    rank: u32,
    out: &mut Outgoing,
) -> bool {
    let inbox = job.inbox(rank);
    while try_take(node, rank) {
        let tail = inbox.ends.tail.load(Ordering::Relaxed);
        let any = inbox.has_mail();
        let mut mover = RankMover { node, job, me, on: rank };
        let mut others = Vec::new();
        // SAFETY: lent by their owner and taken by this process.
        let mut queues = unsafe { job.queues(rank) };
        queues.drain(&mut mover, out);
        queues.push_for(me, &mut mover, out, |sender| others.push(sender));
        wake_space_waiters(node, job, rank);
        let moved = inbox.ends.tail.load(Ordering::Relaxed) != tail;
        give_back(node, rank);
        if moved {
            // If one of these waits, it has looked before its message was matched here, or while this process had the queues.
            others
                .into_iter()
                .filter(|sender| *sender < node.header().ranks)
                .for_each(|sender| sched::wake(node, sender));
        } else if any {
            return false;
        }
        if inbox.is_quiet() {
            break;
        }
        if !any {
            // The oldest is being written; its sender may need this CPU.
            yield_cpu();
        }
    }
    true
}
