//! Neighbourhood collectives.

use super::*;
use crate::coll::neighbor;
use crate::consts::PROC_NULL;

/// Each rank sends block i to its i-th neighbour; what arrives is checked by direction.
fn neighbour_exchange(
    lists: &[(Vec<i32>, Vec<i32>)],
    cartesian: bool,
    want: &dyn Fn(usize, usize) -> Option<(usize, usize)>,
) {
    let setup = |ranks: Ranks, plan: &mut Plan| {
        let rank = ranks.rank as usize;
        let (sources, destinations) = &lists[rank];
        let send = Buffer::new(elem(rank), &contribution(rank, destinations.len()));
        let recv = Buffer::blank(elem(rank + 1), sources.len());
        let (from, to) = (even_or_none(&send, destinations.len()), even_or_none(&recv, sources.len()));
        let sends = neighbor::sends(destinations, |i| from.get(i));
        let recvs = neighbor::receives(sources, &to, cartesian);
        choose::build(plan, ranks, &Work::Neighbor { sends, recvs });
        (send, recv)
    };
    intra(lists.len(), sum, setup, |rank, (_, recv)| {
        for (i, got) in recv.values().into_iter().enumerate() {
            if let Some((from, block)) = want(rank, i) {
                assert_eq!(got, value(from, block), "rank {rank} block {i}");
            }
        }
    });
}

fn even_or_none(buffer: &Buffer, blocks: usize) -> Regions {
    if blocks == 0 { Regions::Listed(vec![]) } else { even(buffer, blocks) }
}

#[test]
fn neighbours_on_periodic_rings_match_by_direction() {
    for n in 1..6i32 {
        // Also a second, non-periodic dimension of size 1, and a third, periodic one of size 1.
        let lists: Vec<_> = (0..n)
            .map(|rank| {
                let both = vec![(rank + n - 1) % n, (rank + 1) % n, PROC_NULL, PROC_NULL, rank, rank];
                (both.clone(), both)
            })
            .collect();
        neighbour_exchange(&lists, true, &|rank, i| {
            let from = match i {
                0 => (rank + n as usize - 1) % n as usize,
                1 => (rank + 1) % n as usize,
                2 | 3 => return None,
                _ => rank,
            };
            // What arrives from the negative side left in the positive direction, and the other way round.
            Some((from, i ^ 1))
        });
    }
}

#[test]
fn repeated_edges_of_a_graph_match_in_order() {
    // 0 -> 1 twice, 1 -> 0 once, 0 -> 0 twice.
    let lists = vec![(vec![0, 1, 0], vec![1, 0, 1, 0]), (vec![0, 0], vec![0])];
    neighbour_exchange(&lists, false, &|rank, i| Some([[(0, 1), (1, 0), (0, 3)], [(0, 0), (0, 2), (9, 9)]][rank][i]));
}
