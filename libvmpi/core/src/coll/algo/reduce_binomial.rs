//! Reduce up a binomial tree.

use super::{children, rank_at, rank_from};
use crate::coll::plan::{Data, Plan, Ranks};

/// Children's contributions up to this many bytes are all received at once, so that a rank waits only once.
const AT_ONCE_BYTES: u64 = 256 * 1024;

/// `send`: this rank's contribution (the root's receive buffer if in place), never written unless it is `recv`;
/// `recv`: where the result goes, at the root only. A tree over renumbered ranks would break rank order, so a
/// non-commutative operation goes up to rank 0 first.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    let top = if commutative { root } else { 0 };
    let place = rank_from(top, ranks.rank, ranks.size);
    let target = recv.filter(|recv| place == 0 && recv.at != send.at);

    let distances: Vec<u32> = children(place, ranks.size).collect();
    let at_once = send.bytes() * distances.len() as u64 <= AT_ONCE_BYTES;
    let mut spare: Vec<Data> = Vec::new();
    let mut result = send;
    let mut arrived = Vec::new();
    for (i, distance) in distances.iter().enumerate() {
        // The last contribution is where the result ends up: receive it there.
        let into = match target.filter(|_| i + 1 == distances.len()) {
            Some(target) => target,
            None => spare.pop().unwrap_or_else(|| plan.temp(send.elem, send.count)),
        };
        plan.recv(ranks, rank_at(top, place + distance, ranks.size), into);
        arrived.push(into);
        if !at_once {
            plan.fence();
            fold(plan, &mut result, &mut arrived, send, &mut spare);
        }
    }
    plan.fence();
    fold(plan, &mut result, &mut arrived, send, &mut spare);

    if place != 0 {
        plan.send(ranks, rank_at(top, place & (place - 1), ranks.size), result);
    } else if ranks.rank != root {
        plan.send(ranks, root, result);
    } else if let Some(recv) = recv {
        plan.copy(result, recv);
    }
    plan.fence();
    if let (true, Some(recv)) = (top != root && ranks.rank == root, recv) {
        plan.recv(ranks, top, recv);
        plan.fence();
    }
}

/// Combine `result` (lower ranks) with what has arrived, in order; the result moves to the arrival's memory.
fn fold(plan: &mut Plan, result: &mut Data, arrived: &mut Vec<Data>, send: Data, spare: &mut Vec<Data>) {
    for into in arrived.drain(..) {
        plan.reduce(*result, into);
        let freed = std::mem::replace(result, into);
        if freed.at != send.at {
            spare.push(freed);
        }
    }
}
