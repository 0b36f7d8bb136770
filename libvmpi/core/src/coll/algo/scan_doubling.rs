//! Inclusive and exclusive prefix reductions in log n rounds: in round k each rank hands what it has (the last 2^k
//! contributions) to the rank 2^k further on.

use crate::coll::plan::{Data, Plan, Ranks};

/// Scan; `send` may be `recv` (in place).
pub fn inclusive(plan: &mut Plan, ranks: Ranks, send: Data, recv: Data) {
    plan.copy(send, recv);
    prefix(plan, ranks, 0, recv);
}

/// Exscan: an inclusive scan, among ranks 1 and up, of the contribution of the rank before. Rank 0's `recv` is left alone.
pub fn exclusive(plan: &mut Plan, ranks: Ranks, send: Data, recv: Data) {
    let value = if send.at == recv.at { plan.temp(recv.elem, recv.count) } else { recv };
    if ranks.rank > 0 {
        plan.recv(ranks, ranks.rank - 1, value);
    }
    if ranks.rank + 1 < ranks.size {
        plan.send(ranks, ranks.rank + 1, send);
    }
    plan.fence();
    if ranks.rank > 0 {
        prefix(plan, ranks, 1, value);
        plan.copy(value, recv);
    }
}

/// `value` becomes the reduction of the values of ranks `first` to this one.
fn prefix(plan: &mut Plan, ranks: Ranks, first: u32, value: Data) {
    let place = ranks.rank - first;
    let lower = if place > 0 { plan.temp(value.elem, value.count) } else { value };
    let mut distance = 1;
    while distance < ranks.size - first {
        if place >= distance {
            plan.recv(ranks, ranks.rank - distance, lower);
        }
        if distance < ranks.size - ranks.rank {
            plan.send(ranks, ranks.rank + distance, value);
        }
        plan.fence();
        if place >= distance {
            plan.reduce(lower, value);
        }
        distance = distance.saturating_mul(2);
    }
}
