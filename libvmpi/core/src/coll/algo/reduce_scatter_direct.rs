//! Reduce-scatter: every rank receives all contributions to its part and combines them itself, in rank order.
//!
//! Contributions are sent straight from the senders' buffers and none waits for another's arithmetic; a ring or
//! recursive halving sends as much, but in rounds that depend on one another. Sources take turns in batches, highest
//! ranks first, so that temporary memory is bounded.

use crate::coll::plan::{Data, Plan, Ranks, Regions};

/// Sources that send at the same time, and so parts held in temporary memory.
const BATCH: u32 = 32;

/// `parts`: this rank's contributions to each rank's part; `into`: where its own part's result goes. `in_place`:
/// `into` overlaps `parts`. All messages are complete at the end.
pub fn build(plan: &mut Plan, ranks: Ranks, parts: &Regions, into: Data, in_place: bool) {
    let own = parts.get(ranks.rank as usize);
    let sum = if in_place { plan.temp(into.elem, into.count) } else { into };
    let mut memory: Vec<Data> = Vec::new();
    let mut high = ranks.size;
    while high > 0 {
        let low = high.saturating_sub(BATCH);
        let mut contributions = Vec::with_capacity((high - low) as usize);
        let mut used = 0;
        for source in (low..high).rev() {
            if source == ranks.rank {
                contributions.push(own);
                for distance in 1..ranks.size {
                    let to = ranks.after(distance);
                    plan.send_some(ranks, to, parts.get(to as usize));
                }
            } else if source == ranks.size - 1 {
                contributions.push(sum);
                plan.recv_some(ranks, source, sum);
            } else {
                if used == memory.len() {
                    memory.push(plan.temp(into.elem, into.count));
                }
                contributions.push(memory[used]);
                plan.recv_some(ranks, source, memory[used]);
                used += 1;
            }
        }
        plan.fence();
        for (source, contribution) in (low..high).rev().zip(contributions) {
            if source == ranks.size - 1 {
                plan.copy(contribution, sum);
            } else {
                plan.reduce(contribution, sum);
            }
        }
        high = low;
    }
    plan.copy(sum, into);
}
