//! Barrier by dissemination: in round k everyone tells the rank 2^k further on.

use crate::coll::plan::{Data, Plan, Ranks};

pub fn build(plan: &mut Plan, ranks: Ranks) {
    let mut distance = 1;
    while distance < ranks.size {
        plan.recv(ranks, ranks.before(distance), Data::EMPTY);
        plan.send(ranks, ranks.after(distance), Data::EMPTY);
        plan.fence();
        distance = distance.saturating_mul(2);
    }
}
