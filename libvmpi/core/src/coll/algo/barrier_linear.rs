//! Barrier through the first rank: all report to it, and it lets all go on in one go.
//!
//! For ranks that share cores. Nobody's leaving waits for a rank that has yet to get its core, and all can leave from the same moment on: programs
//! tell their rounds apart by a nonblocking barrier (NBX: MPI_Issend, MPI_Iprobe, MPI_Ibarrier) and take what comes before they see its end for
//! this round's, so a rank that leaves long before another one sends it the next round's messages too early.

use crate::coll::plan::{Data, Plan, Ranks};

pub fn build(plan: &mut Plan, ranks: Ranks) {
    report(plan, ranks);
    release(plan, ranks);
}

/// All tell the first one that they have come: straight, since up a tree some would have to wait twice.
pub fn report(plan: &mut Plan, ranks: Ranks) {
    match ranks.rank {
        0 => (1..ranks.size).for_each(|from| plan.recv(ranks, from, Data::EMPTY)),
        _ => plan.send(ranks, 0, Data::EMPTY),
    }
    plan.fence();
}

/// The first one tells all.
pub fn release(plan: &mut Plan, ranks: Ranks) {
    match ranks.rank {
        0 => (1..ranks.size).for_each(|to| plan.send(ranks, to, Data::EMPTY)),
        _ => plan.recv(ranks, 0, Data::EMPTY),
    }
    plan.fence();
}
