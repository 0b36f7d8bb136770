//! Which rank sits where: `--map-by node`, `random:SEED` and `affinity:FILE`, and `vmpictl matrix JOB --place`.
//!
//! [`crate::plan`] and [`crate::nodes::place`] say which seats there are (so many on each core of each node), in the order in which neighbours take them;
//! this says who takes which. Reading order: `seats` -> `weights` (what went from rank to rank) -> `partition` (whom to put together).

mod partition;
mod seats;
pub mod threads;
mod weights;

use crate::cli::MapBy;
use crate::failure::Failure;
use vmpi_shared::monitor::Matrix;

pub use seats::{Seat, rearrange};
pub use weights::Weights;

/// The seat of each rank, as an index in `seats`; `None`: each rank keeps the seat of its own number.
///
/// # Errors
/// Exit code 2: the file of `affinity:FILE` cannot be read, or is of a job with more ranks.
pub fn order(how: &MapBy, seats: &[Seat]) -> Result<Option<Vec<usize>>, Failure> {
    Ok(match how {
        MapBy::Block | MapBy::RoundRobin | MapBy::Each(_) => None,
        MapBy::Node => Some(seats::round_the_nodes(seats)),
        MapBy::Random(seed) => Some(seats::shuffled(seats, *seed)),
        MapBy::Affinity(path) => Some(by_affinity(&Weights::read(path, seats.len())?, seats)),
    })
}

/// Ranks that send each other much sit together: on a node first, then on a core of it (as TreeMatch does, from the top of the tree).
pub fn by_affinity(weights: &Weights, seats: &[Seat]) -> Vec<usize> {
    let all: Vec<usize> = (0..seats.len()).collect();
    let mut seat_of = vec![0; seats.len()];
    let nodes = seats::groups(&all, |seat| seats[seat].node);
    let ranks_of_nodes = partition::partition(weights, &all, &nodes.iter().map(Vec::len).collect::<Vec<_>>());
    for (ranks, node) in ranks_of_nodes.iter().zip(nodes) {
        let cores = seats::groups(&node, |seat| seats[seat].core);
        let ranks_of_cores = partition::partition(weights, ranks, &cores.iter().map(Vec::len).collect::<Vec<_>>());
        for (mut ranks, core) in ranks_of_cores.into_iter().zip(cores) {
            ranks.sort_unstable();
            ranks.into_iter().zip(core).for_each(|(rank, seat)| seat_of[rank] = seat);
        }
    }
    seat_of
}

/// What goes between nodes, and between cores of one, when rank r has seat `seat_of[r]`.
pub fn cut(weights: &Weights, seats: &[Seat], seat_of: &[usize]) -> (u64, u64) {
    let (mut nodes, mut cores) = (0, 0);
    for (a, b, weight) in weights.pairs() {
        let (a, b) = (seats[seat_of[a]], seats[seat_of[b]]);
        if a.node != b.node {
            nodes += weight;
        } else if a.core != b.core {
            cores += weight;
        }
    }
    (nodes, cores)
}

/// For `vmpictl matrix JOB --place`: where the ranks of a job would better sit, on the seats that it has.
pub fn advice(matrix: &Matrix) -> String {
    let node = |rank: usize| matrix.nodes.get(rank).copied().unwrap_or(0);
    let seats: Vec<Seat> =
        matrix.placement.iter().enumerate().map(|(rank, core)| Seat { node: node(rank), core: *core }).collect();
    let weights = Weights::of(matrix, seats.len());
    let now: Vec<usize> = (0..seats.len()).collect();
    let better = by_affinity(&weights, &seats);
    let (before, after) = (cut(&weights, &seats, &now), cut(&weights, &seats, &better));
    let mut text = format!(
        "weight between nodes {} -> {}, between cores of a node {} -> {} (bytes, and {} for each message)\n",
        before.0,
        after.0,
        before.1,
        after.1,
        weights::MESSAGE_BYTES
    );
    if after >= before {
        return text + "The ranks sit well as they are.\n";
    }
    text += "For the next run: vmpirun --map-by affinity:FILE, with FILE from vmpirun --matrix or vmpictl matrix --output\n";
    let mut table = crate::table::Table::new(&["NODE", "CORE", "RANKS"]);
    for core in seats::groups(&now, |seat| (seats[seat].node, seats[seat].core)) {
        let mut ranks: Vec<usize> = now.iter().copied().filter(|rank| core.contains(&better[*rank])).collect();
        ranks.sort_unstable();
        let seat = seats[core[0]];
        let ranks = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
        table.row(vec![seat.node.to_string(), seat.core.to_string(), ranks]);
    }
    text + &table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `nodes` nodes of `cores` cores with `v` seats each.
    pub fn room(nodes: u32, cores: u32, v: usize) -> Vec<Seat> {
        let all = (0..nodes).flat_map(|node| (0..cores).map(move |core| Seat { node, core: node * cores + core }));
        all.flat_map(|seat| std::iter::repeat_n(seat, v)).collect()
    }

    /// A stencil of side x side ranks, whose numbers are dealt out by `name`.
    fn stencil(side: usize, name: impl Fn(usize) -> usize) -> Weights {
        let mut weights = Weights::new(side * side);
        for i in 0..side {
            for j in 0..side {
                let me = name(i * side + j);
                if i + 1 < side {
                    weights.add(me, name((i + 1) * side + j), 1000);
                }
                if j + 1 < side {
                    weights.add(me, name(i * side + j + 1), 1000);
                }
            }
        }
        weights
    }

    #[test]
    fn a_scattered_stencil_is_put_together() {
        let seats = room(2, 2, 4);
        let scattered = stencil(4, |rank| rank * 7 % 16);
        let now: Vec<usize> = (0..16).collect();
        let better = by_affinity(&scattered, &seats);
        let (before, after) = (cut(&scattered, &seats, &now), cut(&scattered, &seats, &better));
        // Two halves of 2 x 4, each of two squares.
        assert_eq!(after, (4000, 4000), "before {before:?}");
        assert!(before.0 > 8000);
    }

    #[test]
    fn every_seat_is_taken_once_and_nothing_is_worse_than_neighbours() {
        let mut chance = fastrand::Rng::with_seed(1);
        for _ in 0..300 {
            let seats = room(chance.u32(1..=3), chance.u32(1..=3), chance.usize(1..=4));
            let count = seats.len();
            let mut weights = Weights::new(count);
            for _ in 0..chance.usize(..=3 * count) {
                weights.add(chance.usize(..count), chance.usize(..count), chance.u64(1..=1000));
            }
            let hows = [MapBy::Node, MapBy::Random(chance.u64(..99))];
            let mut orders: Vec<_> = hows.iter().map(|how| order(how, &seats).unwrap().unwrap()).collect();
            orders.push(by_affinity(&weights, &seats));
            let now: Vec<usize> = (0..count).collect();
            assert!(cut(&weights, &seats, &orders[2]).0 <= cut(&weights, &seats, &now).0);
            for mut order in orders {
                order.sort_unstable();
                assert_eq!(order, now);
            }
        }
    }

    #[test]
    fn advice_names_the_ranks_of_each_core() {
        let matrix = crate::matrix::tests::ring(4);
        let matrix = Matrix { placement: vec![0, 1, 0, 1], nodes: vec![0, 1, 0, 1], ..matrix };
        let text = advice(&matrix);
        assert!(text.contains("For the next run") && text.contains("NODE  CORE  RANKS"), "{text}");
        let good = Matrix { placement: vec![0; 4], nodes: Vec::new(), ..matrix };
        assert!(advice(&good).contains("well as they are"));
    }
}
