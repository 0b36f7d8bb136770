//! Which job a core belongs to while several jobs share it; the daemon's side of it, core by core.
//!
//! Each job passes a core among its own ranks by the baton. Between jobs the daemon moves it: at any time at most one of
//! the jobs on a CPU has a holder word other than WITHHELD there. A job that has the core learns from `CoreDescriptor::lease` what
//! the daemon wants; a job that has not rings the daemon when a rank becomes READY, and one that gives the core up rings too.
//! No job maps another's segment, so nothing here depends on what other jobs write.
//!
//! SYNC I: the daemon changes the lease and then looks at the holder; who leaves a core IDLE does that and then looks at the
//! lease. SYNC J: who makes a rank READY does that and then looks at the holder; who makes a core WITHHELD rings afterwards, and
//! the daemon looks at the READY ranks after each ring. Death story: a rank that dies between its step and its ring is reaped, and the
//! daemon looks at all leases after each death.

use super::run_queue;
use crate::mem::sync::{Ordering, fence};
use crate::node::NodeSegment;
use crate::node::run_state::{CLAIMED, IDLE, SPINNING, WITHHELD, holder_rank};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Lease: no other job wants the core.
pub const ALONE: u32 = 0;

/// Lease: another job wants the core when this one has no use for it.
pub const CONTESTED: u32 = 1;

/// Lease: another job is to have the core; give it up at the next scheduling point.
pub const REVOKED: u32 = 2;

/// Does this job have the core?
pub fn is_held(node: &NodeSegment, core: u32) -> bool {
    node.core(core).holder.load(SEQ) != WITHHELD
}

/// Has this job use for the core: a rank that runs on it, is ready for it, or has just suspended there and watches for mail?
pub fn is_wanted(node: &NodeSegment, core: u32) -> bool {
    let holder = node.core(core).holder.load(SEQ);
    !run_queue::is_empty(node.ready(core)) || holder == SPINNING || holder == CLAIMED || holder_rank(holder).is_some()
}

/// Does somebody wait for the core whom whoever has it keeps from it: a READY rank, or another job?
pub fn is_awaited(node: &NodeSegment, core: u32) -> bool {
    !run_queue::is_empty(node.ready(core)) || node.core(core).lease.load(RELAXED) != ALONE
}

/// Before any rank runs: the core is another job's.
pub fn begin_withheld(node: &NodeSegment, core: u32) {
    let descriptor = node.core(core);
    descriptor.withheld_at.store(node.now(), RELAXED);
    descriptor.holder.store(WITHHELD, SEQ);
}

/// Tell the job that has the core how it stands. True if that made the core free at once, because nobody was on it.
pub fn set(node: &NodeSegment, core: u32, lease: u32) -> bool {
    let descriptor = node.core(core);
    descriptor.lease.store(lease, SEQ);
    fence(SEQ); // SYNC I
    if lease == ALONE || descriptor.holder.compare_exchange(IDLE, WITHHELD, SEQ, SEQ).is_err() {
        return false;
    }
    descriptor.withheld_at.store(node.now(), RELAXED);
    true
}

/// The job did not give the core up, though it no longer runs there as far as one can tell: its segment is damaged, or a process of
/// it was stopped in the middle of a step. Count the core as given up.
pub fn force(node: &NodeSegment, core: u32) {
    node.core(core).withheld_at.store(node.now(), RELAXED);
    node.core(core).holder.store(WITHHELD, SEQ);
}

/// The core, which is the caller's to give, goes to the daemon.
#[cold]
pub(super) fn vacate(node: &NodeSegment, core: u32) {
    node.core(core).withheld_at.store(node.now(), RELAXED);
    node.core(core).holder.store(WITHHELD, SEQ);
    fence(SEQ); // SYNC J
    node.ring();
}
