//! Alltoall of small blocks in log n rounds (Bruck et al. 1997): a block that has to go a distance d travels by the
//! powers of two in d, together with all others that take the same hop.

use super::rank_at;
use crate::coll::plan::{Plan, Ranks, Regions};

/// All blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, ranks: Ranks, send: &Regions, recv: &Regions, bytes: u64) {
    let size = ranks.size;
    // Block i of `temp` has i - (hops so far) still to go.
    let temp = plan.temp_bytes(u64::from(size) * bytes);
    let block = |i: u32| temp.slice(u64::from(i) * bytes, bytes);
    for i in 0..size {
        plan.copy(send.get(rank_at(ranks.rank, i, size) as usize), block(i));
    }
    let outgoing = plan.temp_bytes(u64::from(size.div_ceil(2)) * bytes);
    let incoming = plan.temp_bytes(u64::from(size.div_ceil(2)) * bytes);
    let mut hop = 1;
    while hop < size {
        let travelling = || (0..size).filter(|i| i & hop != 0);
        let len = travelling().count() as u64 * bytes;
        for (slot, i) in (0..).zip(travelling()) {
            plan.copy(block(i), outgoing.slice(slot * bytes, bytes));
        }
        plan.recv(ranks, ranks.before(hop), incoming.slice(0, len));
        plan.send(ranks, ranks.after(hop), outgoing.slice(0, len));
        plan.fence();
        for (slot, i) in (0..).zip(travelling()) {
            plan.copy(incoming.slice(slot * bytes, bytes), block(i));
        }
        hop *= 2;
    }
    for i in 0..size {
        plan.copy(block(i), recv.get(ranks.before(i) as usize));
    }
}
