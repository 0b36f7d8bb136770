//! Large reductions of ranks that share cores: first those of each core, then one of each core.
//!
//! Sharing the arithmetic among ranks of one core gains nothing and takes as many messages as there are pairs of ranks.

use super::algo::reduce_linear;
use super::by_node::order;
use super::by_node::reduce::in_turn;
use super::choose;
use super::plan::{Data, Plan, Ranks};
use super::work::Work;
use crate::comm::layout::Layout;

/// From this many bytes on.
/// Reduce: from this many bytes on. Of the time of the flat plan on one core / two cores, medians: 64 KiB at n=4 1.1 / 1.2, at n=8 0.6 / 0.6; 1 MiB 0.5 / 0.9 and 0.6 / 0.6.
const REDUCE_MIN_BYTES: u64 = 64 * 1024;
/// Allreduce: 64 KiB at n=4 1.2 / 2.9, at n=8 0.8 / 1.1; 256 KiB 1.1 / 0.9 and 0.7 / 0.6; 1 MiB 0.8 / 1.0 and 0.7 / 0.8.
const ALLREDUCE_MIN_BYTES: u64 = 256 * 1024;

/// Is `work` of a kind and size to be done core by core, if the ranks are so?
pub fn wants(work: &Work) -> bool {
    match work {
        Work::Reduce { send, .. } => send.bytes() >= REDUCE_MIN_BYTES,
        Work::Allreduce { send, .. } => send.bytes() >= ALLREDUCE_MIN_BYTES,
        _ => false,
    }
}

/// Append this rank's steps of `work` if it is better done core by core; else false. The same at all ranks.
pub fn build(plan: &mut Plan, cores: &Layout, work: &Work) -> bool {
    match work {
        Work::Reduce { commutative, .. } | Work::Allreduce { commutative, .. } if !pays(cores, *commutative) => false,
        Work::Reduce { send, recv, root, commutative } => {
            reduce_in_turn(plan, cores, *send, *recv, *root as u32, *commutative);
            true
        }
        Work::Allreduce { send, recv, .. } => {
            let first = cores.place() == 0;
            plan.within(cores, |plan, ranks| within(plan, ranks, *send, first.then_some(*recv), 0));
            plan.across(cores, &cores.leaders(0).ranks, |plan, ranks| choose::allreduce(plan, ranks, *recv, *recv));
            plan.within(cores, |plan, ranks| choose::bcast(plan, ranks, *recv, 0));
            true
        }
        _ => false,
    }
}

/// Reduce within `ranks`, who are all on one node; `cores`: how they share its cores, if that matters.
pub fn reduce(
    plan: &mut Plan,
    ranks: Ranks,
    cores: Option<&Layout>,
    send: Data,
    recv: Option<Data>,
    root: u32,
    commutative: bool,
) {
    match cores.filter(|cores| pays(cores, commutative)) {
        Some(cores) => reduce_in_turn(plan, cores, send, recv, root, commutative),
        None => choose::reduce(plan, ranks, send, recv, root, commutative),
    }
}

fn reduce_in_turn(plan: &mut Plan, cores: &Layout, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    in_turn(plan, cores, send, recv, root, commutative, within);
}

fn within(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, root: u32) {
    if ranks.size > 1 {
        reduce_linear::build(plan, ranks, send, recv, root);
    } else if let Some(recv) = recv {
        plan.copy(send, recv);
    }
}

/// Do ranks share a core, and are their contributions combined in rank order core by core, if that matters?
fn pays(cores: &Layout, commutative: bool) -> bool {
    cores.most_members() > 1 && order::keeps_order(cores, commutative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::sim::{Buffer, Op, compose, sum};
    use crate::coll::tests::{contribution, elem, intra, reduced, roots};

    /// The core of each rank.
    const CORES: &[&[u32]] =
        &[&[0, 0], &[0, 0, 0], &[0, 0, 1, 1], &[1, 0, 1, 0], &[0, 0, 0, 1, 2], &[2, 0, 0, 0, 0, 0, 0]];

    #[test]
    fn results_are_those_of_all_ranks_in_their_order() {
        let mut refused = 0;
        for cores in CORES {
            let n = cores.len();
            let layout = |rank: u32| Layout::new(rank, cores.iter().copied());
            // The last in two pieces; the simulator takes long for it.
            for length in [1, 3, 17_000].into_iter().filter(|length| *length < 1000 || matches!(n, 3 | 4)) {
                for (op, commutative, in_place) in
                    [(sum as Op, true, false), (sum, true, true), (compose, false, false), (compose, false, true)]
                {
                    if !commutative && !layout(0).is_ordered() {
                        let Buffer { data, .. } = Buffer::blank(elem(n), length);
                        let work = Work::Allreduce { send: data, recv: data, commutative };
                        assert!(!build(&mut Plan::default(), &layout(0), &work));
                        refused += 1;
                        continue;
                    }
                    let want = reduced(op, 0..n, length);
                    for root in roots(n).map(Some).chain([None]).filter(|root| length < 1000 || *root != Some(0)) {
                        let gets = |rank: usize| root.is_none_or(|root| rank == root);
                        let setup = |ranks: Ranks, plan: &mut Plan| {
                            let rank = ranks.rank as usize;
                            let own = Buffer::new(elem(n), &contribution(rank, length));
                            let result = (gets(rank) && !in_place).then(|| Buffer::blank(elem(n), length));
                            let (send, into) = (own.data, result.as_ref().map_or(own.data, |result| result.data));
                            let work = match root {
                                Some(root) => {
                                    let recv = gets(rank).then_some(into);
                                    Work::Reduce { send, recv, root: root as i32, commutative }
                                }
                                None => Work::Allreduce { send, recv: into, commutative },
                            };
                            assert!(build(plan, &layout(ranks.rank), &work));
                            (own, result)
                        };
                        intra(n, op, setup, |rank, (own, result)| {
                            if gets(rank) {
                                assert_eq!(result.as_ref().unwrap_or(own).values(), want, "root {root:?} of {cores:?}");
                            }
                            if !gets(rank) || !in_place {
                                assert_eq!(own.values(), contribution(rank, length), "send buffer changed");
                            }
                        });
                    }
                }
            }
        }
        assert!(refused > 0);
    }

    #[test]
    fn only_what_gains_goes_core_by_core() {
        let Buffer { data, .. } = Buffer::blank(elem(0), 100_000);
        let work = Work::Allreduce { send: data, recv: data, commutative: true };
        assert!(wants(&work));
        assert!(!wants(&Work::Barrier));
        assert!(!wants(&Work::Allreduce { send: data.slice(0, 9), recv: data.slice(0, 9), commutative: true }));
        for cores in [&[0u32, 1, 2][..], &[4]] {
            let mut plan = Plan::default();
            assert!(!build(&mut plan, &Layout::new(0, cores.iter().copied()), &work) && plan.steps.is_empty());
        }
    }
}
