//! Reduce-scatter of little data on many ranks: reduce all of it to rank 0, which scatters the parts.

use super::{reduce_binomial, scatter_linear};
use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// `send`: this rank's whole contribution (`recv` of the call if in place); `counts`: elements of each rank's part;
/// `into`: where this rank's part goes.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, counts: &[u64], into: Data, commutative: bool) {
    let whole = (ranks.rank == 0).then(|| plan.temp(send.elem, send.count));
    reduce_binomial::build(plan, ranks, send, whole, 0, commutative);
    let parts = whole.map(|whole| parts_of(whole, counts));
    scatter_linear::build(plan, ranks, parts.as_ref(), Some(into), 0);
}

/// The parts of `whole` that have `counts` elements each, one after another.
pub fn parts_of(whole: Data, counts: &[u64]) -> Regions {
    let mut first = 0;
    let parts = counts.iter().map(|&count| {
        let part = whole.slice(first, count);
        first += count;
        part
    });
    Regions::Listed(parts.collect())
}
