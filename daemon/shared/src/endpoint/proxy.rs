//! Acting for a rank that is suspended: matching for it, and ending its waits. Free functions over the two segments; no `Endpoint`.

use super::inspect;
use super::transfer::RankMover;
use crate::job::JobSegment;
use crate::matching::inbox::Full;
use crate::matching::queues::{Outgoing, Verdict};
use crate::mem::sync::{Ordering, fence};
use crate::node::NodeSegment;
use crate::sched::{self, Wait, carrier_bell, policy, wake};

/// If `rank` is suspended, match for it as rank `me`; make it READY if that ended its wait. Answers go to `out`.
pub(super) fn progress_for(node: &NodeSegment, job: &JobSegment, me: u32, rank: u32, out: &mut Outgoing) {
    if node.header().recovery != 0 {
        // A death in the middle of this would damage the queues: their owner matches itself.
        return wake::ready_if_suspended(node, rank);
    }
    while sched::try_tend(node, rank) {
        let mut mover = RankMover { node, job, me, on: rank };
        // SAFETY: TENDED by this process.
        let mut queues = unsafe { job.queues(rank) };
        let verdict = queues.drain(&mut mover, out);
        wake_space_waiters(node, job, rank);
        if verdict == Verdict::Ready && (queues.can_take() || !waits_for_room(node, rank)) {
            policy::note_answering(node, rank, queues.only_answers());
            sched::make_ready(node, rank);
            return;
        }
        if wake::end_tend(node, rank) || !job.inbox(rank).has_mail() || inspect::is_stuck(job, rank) {
            return;
        }
    }
}

/// Does `rank` wait for room in another's inbox? Whatever else has come about is noted, and not what it waits for: two ranks whose own messages find no memory would
/// wake each other for ever. What only the rank itself may take out of its inbox it must, or others wait for room there.
fn waits_for_room(node: &NodeSegment, rank: u32) -> bool {
    node.rank(rank).wait_kind.load(Ordering::Relaxed) == Wait::Space as u32
}

/// What a rank that spins on its idle core does for the others of that core: tend, and pass the answers on. It cannot
/// wait for room in an inbox there: answers that find none are left in `out`, and the rank is woken to deliver them.
pub(super) fn spinner<'a>(
    node: &'a NodeSegment,
    job: &'a JobSegment,
    me: u32,
    out: &'a mut Outgoing,
) -> impl FnMut(u32) + 'a {
    move |rank| {
        progress_for(node, job, me, rank, out);
        while let Some((to, envelope)) = out.last() {
            let to = *to;
            if job.inbox(to).push(envelope) == Err(Full) {
                sched::wake(node, me);
                return;
            }
            out.pop();
            if node.is_remote(to) {
                carrier_bell::call(node, to);
            } else {
                progress_for(node, job, me, to, out);
            }
        }
    }
}

/// Room has been made in the inbox of `rank`: wake those who wait for it.
#[inline]
pub(super) fn wake_space_waiters(node: &NodeSegment, job: &JobSegment, rank: u32) {
    if job.inbox(rank).is_room_wanted() {
        wake_waiters_for_space(node, job, rank);
    }
}

#[cold]
pub(super) fn wake_waiters_for_space(node: &NodeSegment, job: &JobSegment, rank: u32) {
    let ends = job.inbox(rank).ends;
    if !job.inbox(rank).has_space() {
        return;
    }
    ends.space_wanted.store(0, Ordering::SeqCst);
    fence(Ordering::SeqCst); // SYNC A: the room before the look at the states
    for waiter in 0..job.ranks_in_use() {
        wake_waiter(node, waiter, Wait::Space, rank);
    }
}

/// Wake `waiter` if this is what it waits for.
#[inline]
pub(super) fn wake_waiter(node: &NodeSegment, waiter: u32, wait: Wait, operand: u32) {
    let descriptor = node.rank(waiter);
    if descriptor.wait_kind.load(Ordering::SeqCst) == wait as u32
        && descriptor.wait_operand.load(Ordering::SeqCst) == operand
    {
        sched::wake(node, waiter);
    }
}
