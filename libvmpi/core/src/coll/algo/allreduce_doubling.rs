//! Allreduce by recursive doubling: log n rounds in which pairs of ranks swap and combine all they have.
//!
//! Both of a pair combine (lower op higher), so all ranks compute the same bits. With a number of ranks that is not a
//! power of two, the first ranks pair up before and after, neighbours with neighbours so that rank order holds.

use crate::coll::plan::{Data, Plan, Ranks};

/// `send` may be `recv` (in place).
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, recv: Data) {
    let power = 1 << ranks.size.ilog2();
    let extra = ranks.size - power;
    let rank = ranks.rank;
    // Of the first 2 * extra ranks, the odd ones stand in for a pair.
    if rank < 2 * extra && rank.is_multiple_of(2) {
        plan.send(ranks, rank + 1, send);
        plan.fence();
        plan.recv(ranks, rank + 1, recv);
        plan.fence();
        return;
    }
    plan.copy(send, recv);
    let mut mine = recv;
    let mut theirs = plan.temp(recv.elem, recv.count);
    if rank < 2 * extra {
        plan.recv(ranks, rank - 1, theirs);
        plan.fence();
        plan.reduce(theirs, mine);
    }
    let place = if rank < 2 * extra { rank / 2 } else { rank - extra };
    let rank_of = |place: u32| if place < extra { 2 * place + 1 } else { place + extra };
    let mut distance = 1;
    while distance < power {
        let partner = rank_of(place ^ distance);
        plan.recv(ranks, partner, theirs);
        plan.send(ranks, partner, mine);
        plan.fence();
        if partner < rank {
            plan.reduce(theirs, mine);
        } else {
            plan.reduce(mine, theirs);
            std::mem::swap(&mut mine, &mut theirs);
        }
        distance *= 2;
    }
    plan.copy(mine, recv);
    if rank < 2 * extra {
        plan.send(ranks, rank - 1, mine);
    }
    plan.fence();
}
