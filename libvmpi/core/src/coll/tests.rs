//! Every algorithm against the naive result, in the simulator.

use super::algo::*;
use super::choose;
use super::plan::{Data, Elem, Plan, Ranks, Regions, Via};
use super::sim::{Buffer, ELEMS, Op, Shape, compose, execute_with, sum};
use super::work::Work;

mod inter;
mod neighbor;

/// Numbers of ranks that matter: all small ones, then around the thresholds.
fn sizes() -> impl Iterator<Item = usize> {
    (1..=17).chain([33])
}

/// The first, the last and one in between, each once.
pub fn roots(n: usize) -> impl Iterator<Item = usize> {
    (0..n).filter(move |&root| root == 0 || root == n / 2 || root == n - 1)
}

/// Counts from nothing to beyond every threshold (64 KiB and 1 MiB of u64 in few ranks would take the simulator long).
const COUNTS: [usize; 5] = [0, 1, 3, 64, 2500];

pub fn value(rank: usize, i: usize) -> u64 {
    let x = (rank as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64 + 7).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    x ^ x >> 29
}

pub fn contribution(rank: usize, count: usize) -> Vec<u64> {
    (0..count).map(|i| value(rank, i)).collect()
}

/// Element-wise reduction of the contributions of `ranks`, in order.
pub fn reduced(op: Op, ranks: std::ops::Range<usize>, count: usize) -> Vec<u64> {
    (0..count).map(|i| ranks.clone().map(|r| value(r, i)).reduce(op).unwrap()).collect()
}

/// A layout that differs from rank to rank.
pub fn elem(i: usize) -> Elem {
    ELEMS[1 + i % 4]
}

pub fn main_ranks(rank: usize, size: usize) -> Ranks {
    Ranks { rank: rank as u32, size: size as u32, via: Via::Main }
}

pub fn even(buffer: &Buffer, blocks: usize) -> Regions {
    let count = buffer.data.count / blocks as u64;
    Regions::Even { first: Data { count, ..buffer.data }, blocks }
}

/// Blocks of the given counts, in reverse order in memory.
pub fn listed(buffer: &Buffer, counts: &[usize]) -> Regions {
    let mut end = buffer.data.count;
    Regions::Listed(
        counts
            .iter()
            .map(|&count| {
                end -= count as u64;
                buffer.data.slice(end, count as u64)
            })
            .collect(),
    )
}

/// Build every rank's plan and execute, eagerly and by rendezvous; `check` after each.
fn simulate<T>(shape: Shape, op: Op, setup: impl Fn(usize) -> (T, Plan), check: impl Fn(usize, &T)) {
    for eager in [false, true] {
        let (state, plans): (Vec<T>, Vec<Plan>) = (0..shape.total()).map(&setup).unzip();
        execute_with(shape, op, plans, 1, eager, None);
        state.iter().enumerate().for_each(|(rank, state)| check(rank, state));
    }
}

/// As `simulate`, on an intracommunicator, with a builder for the plan.
pub fn intra<T>(n: usize, op: Op, setup: impl Fn(Ranks, &mut Plan) -> T, check: impl Fn(usize, &T)) {
    let setup = |rank| {
        let mut plan = Plan::default();
        (setup(main_ranks(rank, n), &mut plan), plan)
    };
    simulate(Shape::Intra(n), op, setup, check);
}

#[test]
fn barrier_holds_everyone_back() {
    for n in sizes().filter(|&n| n > 1) {
        for (late, build) in [0, n / 2, n - 1].into_iter().flat_map(|late| {
            [barrier_dissemination::build as fn(&mut Plan, Ranks), barrier_linear::build].map(|build| (late, build))
        }) {
            let plans = (0..n).map(|rank| {
                let mut plan = Plan::default();
                build(&mut plan, main_ranks(rank, n));
                plan
            });
            let early = execute_with(Shape::Intra(n), sum, plans.collect(), 1, true, Some(late));
            assert!(early.is_empty(), "{early:?} of {n} did not wait for {late}");
        }
    }
}

#[test]
fn bcast() {
    for n in sizes() {
        for root in roots(n) {
            for count in COUNTS.into_iter().filter(|count| count * n < 20_000) {
                for split in [false, true] {
                    if split && count == 0 {
                        continue;
                    }
                    let setup = |ranks: Ranks, plan: &mut Plan| {
                        let rank = ranks.rank as usize;
                        let buffer = match rank == root {
                            true => Buffer::new(elem(rank), &contribution(root, count)),
                            false => Buffer::blank(elem(rank), count),
                        };
                        let build = if split { bcast_split::build } else { bcast_binomial::build };
                        build(plan, ranks, buffer.data, root as u32);
                        buffer
                    };
                    intra(n, sum, setup, |_, buffer| assert_eq!(buffer.values(), contribution(root, count)));
                }
            }
        }
    }
}

#[test]
fn gather_and_scatter() {
    for n in sizes() {
        for root in roots(n) {
            for (count, tree, in_place) in
                [(1, true, false), (3, true, true), (5, false, false), (64, false, true), (0, false, false)]
            {
                let bytes = count as u64 * 8;
                let all: Vec<u64> = (0..n).flat_map(|rank| contribution(rank, count)).collect();
                let setup = |ranks: Ranks, plan: &mut Plan| {
                    let rank = ranks.rank as usize;
                    let send = Buffer::new(elem(rank), &contribution(rank, count));
                    let recv = Buffer::new(elem(rank + 1), &vec![0; if rank == root { n * count } else { 0 }]);
                    let blocks = even(&recv, n);
                    let own = (!(in_place && rank == root)).then_some(send.data);
                    if own.is_none() {
                        plan.copy(send.data, blocks.get(root));
                    }
                    let blocks = (rank == root).then_some(&blocks);
                    if tree {
                        gather_binomial::build(plan, ranks, own, blocks, root as u32, bytes);
                    } else {
                        gather_linear::build(plan, ranks, own, blocks, root as u32);
                    }
                    (send, recv)
                };
                intra(n, sum, setup, |rank, (_, recv)| {
                    assert_eq!(recv.values(), if rank == root { all.clone() } else { vec![] });
                });

                let setup = |ranks: Ranks, plan: &mut Plan| {
                    let rank = ranks.rank as usize;
                    let send = Buffer::new(elem(rank), if rank == root { &all } else { &[] });
                    let recv = Buffer::blank(elem(rank + 1), count);
                    let blocks = even(&send, n);
                    let own = (!(in_place && rank == root)).then_some(recv.data);
                    if own.is_none() {
                        plan.copy(blocks.get(root), recv.data);
                    }
                    let blocks = (rank == root).then_some(&blocks);
                    if tree {
                        scatter_binomial::build(plan, ranks, blocks, own, root as u32, bytes);
                    } else {
                        scatter_linear::build(plan, ranks, blocks, own, root as u32);
                    }
                    (send, recv)
                };
                intra(n, sum, setup, |rank, (_, recv)| assert_eq!(recv.values(), contribution(rank, count)));
            }
        }
    }
}

#[test]
fn allgather() {
    for n in sizes() {
        for count in [1, 3, 64] {
            for (algorithm, in_place) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
                let all: Vec<u64> = (0..n).flat_map(|rank| contribution(rank, count)).collect();
                let setup = |ranks: Ranks, plan: &mut Plan| {
                    let rank = ranks.rank as usize;
                    let send = Buffer::new(elem(rank), &contribution(rank, count));
                    let recv = Buffer::blank(elem(rank + 1), n * count);
                    let blocks = even(&recv, n);
                    if in_place {
                        plan.copy(send.data, blocks.get(rank));
                    }
                    let own = (!in_place).then_some(send.data);
                    match algorithm {
                        0 => allgather_bruck::build(plan, ranks, own, &blocks, count as u64 * 8),
                        1 => allgather_spread::build(plan, ranks, own, &blocks),
                        _ => allgather_ring::build(plan, ranks, &blocks),
                    }
                    (send, recv)
                };
                intra(n, sum, setup, |_, (_, recv)| assert_eq!(recv.values(), all));
            }
        }
    }
}

#[test]
fn alltoall() {
    for n in sizes() {
        for (count, in_place) in [(1, false), (1, true), (20, false), (20, true)] {
            // Block from a to b is part b of what a contributes.
            let want = |rank: usize| -> Vec<u64> {
                (0..n).flat_map(|from| contribution(from, n * count)[rank * count..][..count].to_vec()).collect()
            };
            for chosen in [true, false] {
                let setup = |ranks: Ranks, plan: &mut Plan| {
                    let rank = ranks.rank as usize;
                    let mine = contribution(rank, n * count);
                    let send = Buffer::new(elem(rank), &mine);
                    let recv = match in_place {
                        true => Buffer::new(elem(rank + 1), &mine),
                        false => Buffer::blank(elem(rank + 1), n * count),
                    };
                    let (from, to) = (even(&send, n), even(&recv, n));
                    if chosen {
                        let send = (!in_place).then_some(from);
                        choose::build(plan, ranks, &Work::Alltoall { send, recv: to, even: true });
                    } else {
                        alltoall_bruck::build(plan, ranks, if in_place { &to } else { &from }, &to, count as u64 * 8);
                    }
                    (send, recv)
                };
                intra(n, sum, setup, |rank, (_, recv)| assert_eq!(recv.values(), want(rank)));
            }
        }
    }
}

#[test]
fn alltoallv_gatherv_allgatherv() {
    for n in sizes() {
        // Elements from a to b, some none.
        let count = |from: usize, to: usize| (from * 3 + to * 5) % 7;
        let symmetric = |a: usize, b: usize| count(a.min(b), a.max(b));
        let block =
            |from: usize, to: usize, len: usize| -> Vec<u64> { (0..len).map(|i| value(from, to * 10 + i)).collect() };
        for in_place in [false, true] {
            let len = |from, to| if in_place { symmetric(from, to) } else { count(from, to) };
            let setup = |ranks: Ranks, plan: &mut Plan| {
                let rank = ranks.rank as usize;
                let outgoing: Vec<usize> = (0..n).map(|to| len(rank, to)).collect();
                let incoming: Vec<usize> = (0..n).map(|from| len(from, rank)).collect();
                // `listed` stores blocks backwards.
                let out: Vec<u64> = (0..n).rev().flat_map(|to| block(rank, to, len(rank, to))).collect();
                let send = Buffer::new(elem(rank), &out);
                let recv = match in_place {
                    true => Buffer::new(elem(rank + 1), &out),
                    false => Buffer::blank(elem(rank + 1), incoming.iter().sum()),
                };
                let from = (!in_place).then(|| listed(&send, &outgoing));
                choose::build(plan, ranks, &Work::Alltoall { send: from, recv: listed(&recv, &incoming), even: false });
                (send, recv)
            };
            intra(n, sum, setup, |rank, (_, recv)| {
                let want: Vec<u64> = (0..n).rev().flat_map(|from| block(from, rank, len(from, rank))).collect();
                assert_eq!(recv.values(), want);
            });
        }

        let lens: Vec<usize> = (0..n).map(|rank| rank * 5 % 7).collect();
        let want: Vec<u64> = (0..n).rev().flat_map(|rank| contribution(rank, lens[rank])).collect();
        let total = want.len();
        let setup = |ranks: Ranks, plan: &mut Plan| {
            let rank = ranks.rank as usize;
            let send = Buffer::new(elem(rank), &contribution(rank, lens[rank]));
            let recv = Buffer::blank(elem(rank + 1), total);
            let blocks = listed(&recv, &lens);
            choose::build(plan, ranks, &Work::Allgather { send: Some(send.data), recv: blocks, even: false });
            let root = n as i32 / 2;
            let at_root = Buffer::blank(elem(rank + 2), total);
            let blocks = (ranks.rank as i32 == root).then(|| listed(&at_root, &lens));
            choose::build(plan, ranks, &Work::Gather { send: Some(send.data), recv: blocks, root, even: false });
            (send, recv, at_root)
        };
        intra(n, sum, setup, |rank, (_, recv, at_root)| {
            assert_eq!(recv.values(), want);
            if rank == n / 2 {
                assert_eq!(at_root.values(), want);
            }
        });
    }
}

#[test]
fn reduce() {
    for n in sizes() {
        for root in roots(n) {
            for count in [1, 3, 64, 9000] {
                if count * n > 20_000 {
                    continue;
                }
                for (op, commutative, split, in_place) in [
                    (sum as Op, true, false, false),
                    (sum, true, false, true),
                    (compose, false, false, false),
                    (compose, false, false, true),
                    (compose, false, true, false),
                    (compose, false, true, true),
                ] {
                    let want = reduced(op, 0..n, count);
                    let setup = |ranks: Ranks, plan: &mut Plan| {
                        let rank = ranks.rank as usize;
                        let send = Buffer::new(elem(n), &contribution(rank, count));
                        let recv = (rank == root && !in_place).then(|| Buffer::blank(elem(n), count));
                        let into = (rank == root).then_some(recv.as_ref().map_or(send.data, |recv| recv.data));
                        match split {
                            true => reduce_split::build(plan, ranks, send.data, into, root as u32),
                            false => reduce_binomial::build(plan, ranks, send.data, into, root as u32, commutative),
                        }
                        (send, recv)
                    };
                    intra(n, op, setup, |rank, (send, recv)| {
                        if rank == root {
                            assert_eq!(recv.as_ref().unwrap_or(send).values(), want);
                        }
                        if rank != root || !in_place {
                            assert_eq!(send.values(), contribution(rank, count), "send buffer changed");
                        }
                    });
                }
            }
        }
    }
}

#[test]
fn allreduce_and_scans() {
    for n in sizes() {
        for count in [1, 3, 50] {
            for in_place in [false, true] {
                for algorithm in 0..5 {
                    let setup = |ranks: Ranks, plan: &mut Plan| {
                        let rank = ranks.rank as usize;
                        let send = Buffer::new(elem(n), &contribution(rank, count));
                        let recv = match in_place {
                            true => Buffer::new(elem(n), &contribution(rank, count)),
                            false => Buffer::blank(elem(n), count),
                        };
                        let from = if in_place { recv.data } else { send.data };
                        match algorithm {
                            0 => allreduce_doubling::build(plan, ranks, from, recv.data),
                            1 => allreduce_split::build(plan, ranks, from, recv.data, false),
                            2 => allreduce_split::build(plan, ranks, from, recv.data, true),
                            3 => scan_doubling::inclusive(plan, ranks, from, recv.data),
                            _ => scan_doubling::exclusive(plan, ranks, from, recv.data),
                        }
                        (send, recv)
                    };
                    intra(n, compose, setup, |rank, (send, recv)| {
                        assert_eq!(send.values(), contribution(rank, count));
                        let want = match algorithm {
                            0..=2 => reduced(compose, 0..n, count),
                            3 => reduced(compose, 0..rank + 1, count),
                            _ if rank > 0 => reduced(compose, 0..rank, count),
                            _ if in_place => contribution(0, count),
                            _ => Buffer::blank(elem(n), count).values(),
                        };
                        assert_eq!(recv.values(), want, "algorithm {algorithm} rank {rank} of {n}");
                    });
                }
            }
        }
    }
}

#[test]
fn reduce_scatter() {
    for n in sizes().chain([70]) {
        let counts: Vec<u64> = (0..n as u64).map(|rank| rank * 5 % 4).collect();
        let total = counts.iter().sum::<u64>() as usize;
        let first = |rank: usize| counts[..rank].iter().sum::<u64>() as usize;
        for (rooted, in_place) in [(false, false), (false, true), (true, false), (true, true)] {
            let want = if total > 0 { reduced(compose, 0..n, total) } else { vec![] };
            let setup = |ranks: Ranks, plan: &mut Plan| {
                let rank = ranks.rank as usize;
                let send = Buffer::new(elem(n), &contribution(rank, total));
                let recv = Buffer::blank(elem(n), counts[rank] as usize);
                let into = if in_place { Data { count: counts[rank], ..send.data } } else { recv.data };
                if rooted {
                    reduce_scatter_rooted::build(plan, ranks, send.data, &counts, into, false);
                } else {
                    let parts = reduce_scatter_rooted::parts_of(send.data, &counts);
                    reduce_scatter_direct::build(plan, ranks, &parts, into, in_place);
                }
                (send, recv)
            };
            intra(n, compose, setup, |rank, (send, recv)| {
                let got = if in_place { send.values()[..counts[rank] as usize].to_vec() } else { recv.values() };
                assert_eq!(got, want[first(rank)..][..counts[rank] as usize]);
            });
        }
    }
}

/// The chooser's thresholds must lead all ranks to the same algorithm, whatever their layouts.
/// Parts so large that they come piece by piece, and one that is shorter than the others.
#[test]
fn parts_in_pieces() {
    for n in [2, 3] {
        let count = n * 17_000 - 1;
        for in_place in [false, true] {
            let setup = |ranks: Ranks, plan: &mut Plan| {
                let send = Buffer::new(elem(n), &contribution(ranks.rank as usize, count));
                let recv = (!in_place).then(|| Buffer::blank(elem(n), count));
                let into = recv.as_ref().map_or(send.data, |recv| recv.data);
                allreduce_split::build(plan, ranks, send.data, into, false);
                (send, recv)
            };
            intra(n, compose, setup, |_, (send, recv)| {
                assert_eq!(recv.as_ref().unwrap_or(send).values(), reduced(compose, 0..n, count));
            });
        }
    }
}

#[test]
fn chosen_algorithms_agree() {
    for n in [2, 5, 16, 33, 70] {
        for count in [0, 1, 64, 3000].into_iter().filter(|count| count * n < 10_000) {
            let setup = |ranks: Ranks, plan: &mut Plan| {
                let rank = ranks.rank as usize;
                let data = Buffer::new(elem(rank), &contribution(0, count));
                let all = Buffer::blank(elem(rank + 1), n * count);
                let result = Buffer::blank(elem(rank), count);
                let root = n as i32 - 1;
                choose::build(plan, ranks, &Work::Bcast { data: data.data, root });
                let recv = (ranks.rank as i32 == root).then(|| even(&all, n));
                choose::build(plan, ranks, &Work::Gather { send: Some(data.data), recv, root, even: true });
                let send = (ranks.rank as i32 == root).then(|| even(&all, n));
                choose::build(plan, ranks, &Work::Scatter { send, recv: Some(result.data), root, even: true });
                choose::build(
                    plan,
                    ranks,
                    &Work::Allgather { send: Some(result.data), recv: even(&all, n), even: true },
                );
                let sums = Buffer::blank(elem(rank), count);
                choose::build(plan, ranks, &Work::Allreduce { send: data.data, recv: sums.data, commutative: true });
                let recv = (ranks.rank as i32 == root).then_some(result.data);
                choose::build(plan, ranks, &Work::Reduce { send: data.data, recv, root, commutative: true });
                (data, all, result, sums)
            };
            intra(n, sum, setup, |rank, (data, all, result, sums)| {
                let once = contribution(0, count);
                let times_n: Vec<u64> = once.iter().map(|v| v.wrapping_mul(n as u64)).collect();
                assert_eq!(data.values(), once);
                assert_eq!(all.values(), once.repeat(n));
                assert_eq!(sums.values(), times_n);
                assert_eq!(result.values(), if rank == n - 1 { times_n } else { once });
            });
        }
    }
}

/// A persistent plan started over and over, by ranks at their own pace, keeps its messages apart.
#[test]
fn plans_can_be_executed_again() {
    for n in [2, 3, 5, 8, 17] {
        for eager in [false, true] {
            let built = (0..n).map(|rank| {
                let mut plan = Plan::default();
                let send = Buffer::new(elem(0), &contribution(rank, 4 * n));
                let recv = Buffer::blank(elem(0), 4 * n);
                let ranks = main_ranks(rank, n);
                let work = Work::Alltoall { send: Some(even(&send, n)), recv: even(&recv, n), even: true };
                choose::build(&mut plan, ranks, &work);
                let total = Buffer::blank(elem(0), 4 * n);
                choose::build(
                    &mut plan,
                    ranks,
                    &Work::Allreduce { send: send.data, recv: total.data, commutative: false },
                );
                ((send, recv, total), plan)
            });
            let (buffers, plans): (Vec<_>, Vec<_>) = built.unzip();
            execute_with(Shape::Intra(n), compose, plans, 5, eager, None);
            for (_, _, total) in &buffers {
                assert_eq!(total.values(), reduced(compose, 0..n, 4 * n));
            }
        }
    }
}
