//! Allgather of small blocks in log n rounds, for any number of ranks (Bruck et al. 1997).

use super::rank_at;
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// `send`: this rank's block, `None` if it is in place in `recv`; all blocks have `bytes` packed bytes.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: &Regions, bytes: u64) {
    let own = recv.get(ranks.rank as usize);
    // Block i of `temp` is that of the rank i after this one.
    let temp = plan.temp_bytes(u64::from(ranks.size) * bytes);
    plan.copy(send.unwrap_or(own), temp.slice(0, bytes));
    let mut have = 1;
    while have < ranks.size {
        let more = have.min(ranks.size - have);
        let (have_bytes, more_bytes) = (u64::from(have) * bytes, u64::from(more) * bytes);
        plan.recv(ranks, ranks.after(have), temp.slice(have_bytes, more_bytes));
        plan.send(ranks, ranks.before(have), temp.slice(0, more_bytes));
        plan.fence();
        have += more;
    }
    if let Some(send) = send {
        plan.copy(send, own);
    }
    for place in 1..ranks.size {
        let rank = rank_at(ranks.rank, place, ranks.size);
        plan.copy(temp.slice(u64::from(place) * bytes, bytes), recv.get(rank as usize));
    }
}
