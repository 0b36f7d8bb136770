//! A rank has failed in a job that goes on without it: the daemon tells the others.
//!
//! The daemon publishes, then wakes; a rank looks at `JobSegment::changes` each time it looks whether its wait is over, and a request to
//! wake it that comes before it is suspended keeps it from that (SYNC A, SYNC F). So whoever waits for the dead one looks again.
//! By then everything that the dead one had sent is in the inboxes: it is gone, and what it was in the middle of has been published. Of a job on
//! several nodes each node's daemon publishes its own, and the carriers bring the news to the others, behind what the dead one had sent there.

use super::{recover, wake};
use crate::job::JobSegment;
use crate::mem::sync::{Ordering, fence};
use crate::node::NodeSegment;

/// The process of `rank` has been reaped and its baton revoked (`rank_died`): it has failed. Returns the core that it has left half-done.
pub fn publish(node: &NodeSegment, job: &JobSegment, rank: u32) -> Option<u32> {
    node.rank(rank).pid.store(0, Ordering::SeqCst);
    for other in 0..job.ranks_in_use().min(node.header().ranks) {
        job.inbox(other).void(rank);
    }
    job.bury(rank);
    let undone = recover::left_undone(node, rank);
    tell(node, job, rank);
    undone
}

/// `rank`, which lives on another node, has failed, and all that it had sent has been delivered here. The carrier calls this.
pub fn publish_elsewhere(node: &NodeSegment, job: &JobSegment, rank: u32) {
    tell(node, job, rank);
}

fn tell(node: &NodeSegment, job: &JobSegment, rank: u32) {
    job.count_failure(|number| node.rank(rank).failed.store(number, Ordering::SeqCst));
    job.note_change();
    fence(Ordering::SeqCst); // SYNC A
    wake_all(node, job);
}

/// Everybody who waits looks again.
pub fn wake_all(node: &NodeSegment, job: &JobSegment) {
    for rank in 0..job.ranks_in_use().min(node.header().ranks) {
        wake::wake(node, rank);
    }
}
