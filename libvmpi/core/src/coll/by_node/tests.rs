//! Every algorithm against the naive result, on nodes of many kinds, and what of it crosses between them.

use super::*;
use crate::coll::plan::{Elem, Step};
use crate::coll::sim::{Buffer, Op, Shape, compose, execute_with, sum};
use crate::coll::tests::{contribution, elem, even, listed, reduced, roots};
use std::collections::HashMap;

/// The node of each rank: blocks, uneven ones, round the nodes, one alone, mixed, many.
const NODES: &[&[u32]] = &[
    &[0, 0, 1, 1],
    &[0, 0, 0, 1],
    &[0, 1, 1, 1, 1],
    &[0, 1, 0, 1, 0, 1],
    &[5, 3, 5, 3, 5],
    &[0, 0, 0, 1, 1, 2, 2, 2],
    &[2, 0, 1, 1, 0, 2, 2, 0, 1],
    &[0, 1, 2, 3, 4, 0],
    &[0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    &[0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0],
    &[0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1],
];

/// Messages and bytes by sender's and receiver's node.
type Crossings = HashMap<(u32, u32), (usize, u64)>;

fn crossings(nodes: &[u32], plans: &[Plan]) -> Crossings {
    let mut seen = Crossings::new();
    for (plan, from) in plans.iter().zip(nodes) {
        for step in &plan.steps {
            if let Step::Send { data, to, .. } = step
                && nodes[*to as usize] != *from
            {
                let (messages, bytes) = seen.entry((*from, nodes[*to as usize])).or_default();
                (*messages, *bytes) = (*messages + 1, *bytes + data.bytes());
            }
        }
    }
    seen
}

fn count(nodes: &[u32]) -> usize {
    layout(nodes, 0).nodes()
}

/// Two neighbours of each node share a core.
fn build(plan: &mut Plan, layout: &Layout, work: &Work) -> bool {
    let cores = Layout::new(layout.place(), (0..layout.local().len() as u32).map(|place| place / 2));
    super::build(plan, layout, Some(&cores), work)
}

fn layout(nodes: &[u32], rank: usize) -> Layout {
    Layout::new(rank as u32, nodes.iter().copied())
}

/// Build every rank's plan, execute them, eagerly and by rendezvous, check each rank's state; what crosses.
fn run<T>(
    nodes: &[u32],
    op: Op,
    setup: impl Fn(usize, &Layout, &mut Plan) -> T,
    check: impl Fn(usize, &T),
) -> Crossings {
    let mut seen = Crossings::new();
    for eager in [false, true] {
        let build = |rank| {
            let mut plan = Plan::default();
            (setup(rank, &layout(nodes, rank), &mut plan), plan)
        };
        let (state, plans): (Vec<T>, Vec<Plan>) = (0..nodes.len()).map(build).unzip();
        seen = crossings(nodes, &plans);
        execute_with(Shape::Intra(nodes.len()), op, plans, 1, eager, None);
        state.iter().enumerate().for_each(|(rank, state)| check(rank, state));
    }
    seen
}

/// At most so many messages cross from any node to any other, and so many in all.
#[track_caller]
fn bound(seen: &Crossings, each: usize, all: usize) {
    assert!(seen.values().all(|(messages, _)| *messages <= each), "more than {each} between two nodes: {seen:?}");
    let messages: usize = seen.values().map(|(messages, _)| messages).sum();
    assert!(messages <= all, "{messages} messages cross, more than {all}: {seen:?}");
}

#[test]
fn a_barrier_holds_everyone_back_and_crosses_log_n_times_per_node() {
    for nodes in NODES {
        for late in roots(nodes.len()) {
            let plan = |rank| {
                let mut plan = Plan::default();
                assert!(build(&mut plan, &layout(nodes, rank), &Work::Barrier));
                plan
            };
            let plans: Vec<Plan> = (0..nodes.len()).map(plan).collect();
            let n = count(nodes);
            bound(&crossings(nodes, &plans), 1, n * n.next_power_of_two().ilog2() as usize);
            let early = execute_with(Shape::Intra(nodes.len()), sum, plans, 1, true, Some(late));
            assert!(early.is_empty(), "{early:?} of {nodes:?} did not wait for {late}");
        }
    }
}

#[test]
fn a_broadcast_reaches_each_node_once() {
    for nodes in NODES {
        for root in roots(nodes.len()) {
            for length in [1, 64, 700] {
                let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                    let buffer = match rank == root {
                        true => Buffer::new(elem(rank), &contribution(root, length)),
                        false => Buffer::blank(elem(rank), length),
                    };
                    assert!(build(plan, layout, &Work::Bcast { data: buffer.data, root: root as i32 }));
                    buffer
                };
                let seen = run(nodes, sum, setup, |_, buffer| assert_eq!(buffer.values(), contribution(root, length)));
                bound(&seen, 1, count(nodes) - 1);
            }
        }
    }
}

#[test]
fn gather_and_scatter_take_a_message_per_node() {
    for nodes in NODES {
        let n = nodes.len();
        for (root, (length, in_place)) in roots(n).flat_map(|root| [(1, false), (3, true)].map(|how| (root, how))) {
            let all: Vec<u64> = (0..n).flat_map(|rank| contribution(rank, length)).collect();
            for layouts in [0, 1] {
                // All dense, or each its own.
                let elem = |i: usize| elem(if layouts == 0 { 0 } else { i });
                let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                    let send = Buffer::new(elem(rank), &contribution(rank, length));
                    let recv = Buffer::blank(elem(rank + 1), if rank == root { n * length } else { 0 });
                    let blocks = (rank == root).then(|| even(&recv, n));
                    let own = (!(in_place && rank == root)).then_some(send.data);
                    if let (None, Some(blocks)) = (own, &blocks) {
                        plan.copy(send.data, blocks.get(root));
                    }
                    gather::build(plan, layout, own, blocks.as_ref(), root as u32, 8 * length as u64);
                    (send, recv)
                };
                let seen = run(nodes, sum, setup, |rank, (_, recv)| {
                    assert_eq!(recv.values(), if rank == root { all.clone() } else { vec![] });
                });
                bound(&seen, 1, count(nodes) - 1);

                let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                    let send = Buffer::new(elem(rank), if rank == root { &all } else { &[] });
                    let recv = Buffer::blank(elem(rank + 1), length);
                    let blocks = (rank == root).then(|| even(&send, n));
                    let own = (!(in_place && rank == root)).then_some(recv.data);
                    if let (None, Some(blocks)) = (own, &blocks) {
                        plan.copy(blocks.get(root), recv.data);
                    }
                    scatter::build(plan, layout, blocks.as_ref(), own, root as u32, 8 * length as u64);
                    (send, recv)
                };
                let seen = run(nodes, sum, setup, |rank, (_, recv)| {
                    assert_eq!(recv.values(), contribution(rank, length));
                });
                bound(&seen, 1, count(nodes) - 1);
            }
        }
    }
}

/// All dense or not, in place or not, dealt out or not.
fn ways(layouts: usize) -> impl Iterator<Item = (usize, bool, bool)> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter().map(move |(a, b)| (layouts, a, b))
}

#[test]
fn allgather_sends_each_block_once_to_each_node() {
    for nodes in NODES {
        let n = nodes.len();
        for (lengths, is_even) in [(vec![2; n], true), ((0..n).map(|rank| rank * 5 % 4).collect::<Vec<_>>(), false)] {
            // `listed` stores blocks backwards.
            let total: usize = lengths.iter().sum();
            let forwards: Vec<u64> = (0..n).flat_map(|rank| contribution(rank, lengths[rank])).collect();
            let backwards: Vec<u64> = (0..n).rev().flat_map(|rank| contribution(rank, lengths[rank])).collect();
            for (layouts, in_place, dealt) in [0, 1].into_iter().flat_map(ways) {
                let elem = |i: usize| elem(if layouts == 0 { 0 } else { i });
                let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                    let send = Buffer::new(elem(rank), &contribution(rank, lengths[rank]));
                    let recv = Buffer::blank(elem(rank + 1), total);
                    let blocks = if is_even { even(&recv, n) } else { listed(&recv, &lengths) };
                    if in_place {
                        plan.copy(send.data, blocks.get(rank));
                    }
                    let own = (!in_place).then_some(send.data);
                    let build = if dealt { allgather::dealt_out } else { allgather::build };
                    build(plan, layout, own, &blocks);
                    (send, recv)
                };
                let seen = run(nodes, sum, setup, |_, (_, recv)| {
                    assert_eq!(&recv.values(), if is_even { &forwards } else { &backwards });
                });
                for ((from, _), (messages, bytes)) in &seen {
                    let members = (0..n).filter(|rank| nodes[*rank] == *from);
                    assert!(*messages <= if dealt { members.clone().count() } else { 1 }, "{seen:?}");
                    assert_eq!(*bytes, members.map(|rank| 8 * lengths[rank] as u64).sum::<u64>(), "{seen:?}");
                }
            }
        }
    }
}

#[test]
fn alltoall_sends_a_message_from_node_to_node() {
    for nodes in NODES {
        let n = nodes.len();
        for (length, in_place) in [(1, false), (1, true), (5, false)] {
            let want = |rank: usize| -> Vec<u64> {
                (0..n).flat_map(|from| contribution(from, n * length)[rank * length..][..length].to_vec()).collect()
            };
            let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                let mine = contribution(rank, n * length);
                let send = Buffer::new(elem(rank), &mine);
                let recv = match in_place {
                    true => Buffer::new(elem(rank + 1), &mine),
                    false => Buffer::blank(elem(rank + 1), n * length),
                };
                let from = (!in_place).then(|| even(&send, n));
                let to = even(&recv, n);
                alltoall::build(plan, layout, from.as_ref().unwrap_or(&to), &to, 8 * length as u64);
                (send, recv)
            };
            let seen = run(nodes, sum, setup, |rank, (_, recv)| assert_eq!(recv.values(), want(rank)));
            bound(&seen, 1, usize::MAX);
            assert!(seen.iter().all(|((from, to), (_, bytes))| {
                let members = |node| nodes.iter().filter(|other| **other == node).count();
                *bytes == (8 * length * members(*from) * members(*to)) as u64
            }));
        }
    }
}

#[test]
fn reductions_cross_once_per_node_in_the_order_of_the_ranks() {
    let mut refused = 0;
    for nodes in NODES {
        let n = nodes.len();
        let elem: Elem = elem(n);
        // The last beyond all thresholds.
        for length in [1, 3, 9000].into_iter().filter(|length| length * n < 60_000) {
            for (op, commutative, in_place) in
                [(sum as Op, true, false), (sum, true, true), (compose, false, false), (compose, false, true)]
            {
                let want = reduced(op, 0..n, length);
                if !commutative && !layout(nodes, 0).is_ordered() {
                    let buffer = Buffer::blank(elem, length);
                    let (send, recv) = (buffer.data, buffer.data);
                    assert!(!build(
                        &mut Plan::default(),
                        &layout(nodes, 0),
                        &Work::Allreduce { send, recv, commutative }
                    ));
                    refused += 1;
                    continue;
                }
                for root in roots(n).filter(|root| length < 9000 || *root == n / 2) {
                    let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                        let send = Buffer::new(elem, &contribution(rank, length));
                        let recv = (rank == root && !in_place).then(|| Buffer::blank(elem, length));
                        let into = (rank == root).then_some(recv.as_ref().map_or(send.data, |recv| recv.data));
                        let work = Work::Reduce { send: send.data, recv: into, root: root as i32, commutative };
                        assert!(build(plan, layout, &work));
                        (send, recv)
                    };
                    let seen = run(nodes, op, setup, |rank, (send, recv)| {
                        if rank == root {
                            assert_eq!(recv.as_ref().unwrap_or(send).values(), want);
                        }
                        if rank != root || !in_place {
                            assert_eq!(send.values(), contribution(rank, length), "send buffer changed");
                        }
                    });
                    // One that does not commute goes to the first node first.
                    let detour = usize::from(!commutative && root > 0);
                    let split = if length > 8192 { 2 } else { 1 };
                    bound(&seen, split, usize::MAX);
                    if split == 1 {
                        bound(&seen, 1, count(nodes) - 1 + detour);
                    }
                }
                let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                    let send = Buffer::new(elem, &contribution(rank, length));
                    let recv = (!in_place).then(|| Buffer::blank(elem, length));
                    let into = recv.as_ref().map_or(send.data, |recv| recv.data);
                    assert!(build(plan, layout, &Work::Allreduce { send: send.data, recv: into, commutative }));
                    (send, recv)
                };
                let seen = run(nodes, op, setup, |_, (send, recv)| {
                    assert_eq!(recv.as_ref().unwrap_or(send).values(), want);
                });
                // Much data of three nodes and more in parts again: twice between each two of them.
                bound(&seen, if length > 1000 { 2 } else { 1 }, usize::MAX);
                let most = seen.values().map(|(_, bytes)| *bytes).max().unwrap_or(0);
                assert!(most <= 8 * length as u64 + 64, "{most} bytes of {length} values from one node to another");
            }
        }
    }
    assert!(refused > 0);
}

#[test]
fn what_has_nothing_to_gain_is_left_alone() {
    for nodes in [&[3, 3, 3][..], &[0, 1, 2], &[9]] {
        let mut plan = Plan::default();
        assert!(!build(&mut plan, &layout(nodes, 0), &Work::Barrier) && plan.steps.is_empty());
    }
}

/// A plan of many phases started over and over, by ranks at their own pace, keeps its messages apart.
#[test]
fn plans_can_be_executed_again() {
    for nodes in NODES {
        for eager in [false, true] {
            let n = nodes.len();
            let built = (0..n).map(|rank| {
                let mut plan = Plan::default();
                let layout = layout(nodes, rank);
                let send = Buffer::new(elem(0), &contribution(rank, 2 * n));
                let (recv, total) = (Buffer::blank(elem(0), 2 * n), Buffer::blank(elem(0), 2 * n));
                let work = Work::Alltoall { send: Some(even(&send, n)), recv: even(&recv, n), even: true };
                build(&mut plan, &layout, &work);
                build(&mut plan, &layout, &Work::Barrier);
                build(&mut plan, &layout, &Work::Allreduce { send: send.data, recv: total.data, commutative: true });
                build(&mut plan, &layout, &Work::Bcast { data: total.data, root: n as i32 - 1 });
                ((send, recv, total), plan)
            });
            let (buffers, plans): (Vec<_>, Vec<_>) = built.unzip();
            execute_with(Shape::Intra(n), sum, plans, 5, eager, None);
            for (_, _, total) in &buffers {
                assert_eq!(total.values(), reduced(sum, 0..n, 2 * n));
            }
        }
    }
}

/// Whatever is chosen is chosen by all ranks, whatever their layouts, below and above every threshold.
#[test]
fn chosen_algorithms_agree() {
    let choose = |plan: &mut Plan, layout: &Layout, work: &Work| {
        if !build(plan, layout, work) {
            choose::build(plan, all_of(layout), work);
        }
    };
    for nodes in NODES {
        let n = nodes.len();
        for count in [0, 1, 40, 150, 2000].into_iter().filter(|count| count * n < 20_000) {
            let root = n - 1;
            let setup = |rank: usize, layout: &Layout, plan: &mut Plan| {
                let data = Buffer::new(elem(rank), &contribution(0, count));
                let all = Buffer::blank(elem(rank + 1), n * count);
                let back = Buffer::blank(elem(rank + 2), n * count);
                let (result, sums) = (Buffer::blank(elem(rank), count), Buffer::blank(elem(rank), count));
                let at_root = |blocks: &Buffer| (rank == root).then(|| even(blocks, n));
                choose(plan, layout, &Work::Bcast { data: data.data, root: root as i32 });
                let recv = at_root(&all);
                choose(plan, layout, &Work::Gather { send: Some(data.data), recv, root: root as i32, even: true });
                let recv = Some(result.data);
                choose(plan, layout, &Work::Scatter { send: at_root(&all), recv, root: root as i32, even: true });
                let (send, recv) = (Some(result.data), even(&all, n));
                choose(plan, layout, &Work::Allgather { send, recv, even: true });
                let (send, recv) = (Some(even(&all, n)), even(&back, n));
                choose(plan, layout, &Work::Alltoall { send, recv, even: true });
                let (send, recv) = (data.data, sums.data);
                choose(plan, layout, &Work::Allreduce { send, recv, commutative: true });
                let recv = (rank == root).then_some(result.data);
                choose(plan, layout, &Work::Reduce { send, recv, root: root as i32, commutative: true });
                (data, all, back, result, sums)
            };
            run(nodes, sum, setup, |rank, (data, all, back, result, sums)| {
                let once = contribution(0, count);
                let times_n: Vec<u64> = once.iter().map(|value| value.wrapping_mul(n as u64)).collect();
                assert_eq!(data.values(), once);
                assert_eq!((all.values(), back.values()), (once.repeat(n), once.repeat(n)));
                assert_eq!(sums.values(), times_n);
                assert_eq!(result.values(), if rank == root { times_n } else { once });
            });
        }
    }
}
