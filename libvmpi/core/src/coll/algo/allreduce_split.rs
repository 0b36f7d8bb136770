//! Allreduce of much data: each rank reduces one part of it, then all collect the parts (Rabenseifner's idea). Each
//! part is computed by one rank only, so all get the same bits.

use super::{allgather_ring, allgather_spread, reduce_scatter_direct, split};
use crate::coll::plan::{Data, Plan, Ranks};

/// `send` may be `recv` (in place). `ring`: collect around a ring.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, recv: Data, ring: bool) {
    let results = split(recv, ranks.size, 1);
    let into = results.get(ranks.rank as usize);
    reduce_scatter_direct::build(plan, ranks, &split(send, ranks.size, 1), into, send.at == recv.at);
    if ring {
        allgather_ring::build(plan, ranks, &results);
    } else {
        allgather_spread::build(plan, ranks, None, &results);
    }
}
