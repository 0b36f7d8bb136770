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
    let (parent, children) = tree(ranks, top);
    let parent = parent.or((ranks.rank == top && top != root).then_some(root));
    up(plan, ranks, send, recv.filter(|_| ranks.rank == top), parent, &children);
    if let (true, Some(recv)) = (top != root && ranks.rank == root, recv) {
        plan.recv(ranks, top, recv);
        plan.fence();
    }
}

/// This rank's parent and children in the tree below `top`, in the order in which the children's results follow its own.
pub fn tree(ranks: Ranks, top: u32) -> (Option<u32>, Vec<u32>) {
    let place = rank_from(top, ranks.rank, ranks.size);
    let at = |place| rank_at(top, place, ranks.size);
    let parent = (place != 0).then(|| at(place & (place - 1)));
    (parent, children(place, ranks.size).map(|distance| at(place + distance)).collect())
}

/// Combine `send` with what the children have, in this order, and send it to the parent; where there is none, it goes
/// to `recv` (which may be `send`).
pub fn up(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, parent: Option<u32>, children: &[u32]) {
    let target = recv.filter(|recv| parent.is_none() && recv.at != send.at);
    let at_once = send.bytes() * children.len() as u64 <= AT_ONCE_BYTES;
    let mut spare: Vec<Data> = Vec::new();
    let mut result = send;
    let mut arrived = Vec::new();
    for (i, child) in children.iter().enumerate() {
        // The last contribution is where the result ends up: receive it there.
        let into = match target.filter(|_| i + 1 == children.len()) {
            Some(target) => target,
            None => spare.pop().unwrap_or_else(|| plan.temp(send.elem, send.count)),
        };
        plan.recv(ranks, *child, into);
        arrived.push(into);
        if !at_once {
            plan.fence();
            fold(plan, &mut result, &mut arrived, send, &mut spare);
        }
    }
    plan.fence();
    fold(plan, &mut result, &mut arrived, send, &mut spare);
    match (parent, recv) {
        (Some(parent), _) => plan.send(ranks, parent, result),
        (None, Some(recv)) => plan.copy(result, recv),
        (None, None) => {}
    }
    plan.fence();
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
