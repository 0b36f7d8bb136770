//! Seats for ranks, and ways to deal them out that need to know nothing of the program.

/// A place for a rank: the node, and the core as an index in the cores of all nodes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Seat {
    pub node: u32,
    pub core: u32,
}

/// `seats` by `key`, each group in order, groups in order of their first.
pub fn groups<K: PartialEq>(seats: &[usize], key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut groups: Vec<(K, Vec<usize>)> = Vec::new();
    for seat in seats {
        let its = key(*seat);
        match groups.iter_mut().find(|(known, _)| *known == its) {
            Some((_, group)) => group.push(*seat),
            None => groups.push((its, vec![*seat])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// One rank to each node in turn, as long as it has seats.
pub fn round_the_nodes(seats: &[Seat]) -> Vec<usize> {
    let all: Vec<usize> = (0..seats.len()).collect();
    let nodes = groups(&all, |seat| seats[seat].node);
    let longest = nodes.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| nodes.iter().filter_map(move |node| node.get(turn).copied())).collect()
}

/// The same order for the same seed, everywhere.
pub fn shuffled(seats: &[Seat], seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..seats.len()).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    order
}

/// `of_seat`, which was said of each seat, for each rank instead.
pub fn rearrange(of_seat: &mut Vec<u32>, seat_of: &[usize]) {
    *of_seat = seat_of.iter().map(|seat| of_seat[*seat]).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_go_round_the_nodes_until_they_are_full() {
        let seats: Vec<Seat> = [0, 0, 0, 1].map(|node| Seat { node, core: node }).to_vec();
        let order = round_the_nodes(&seats);
        assert_eq!(order, [0, 3, 1, 2]);
        let mut nodes = vec![0, 0, 0, 1];
        rearrange(&mut nodes, &order);
        assert_eq!(nodes, [0, 1, 0, 0]);
    }

    /// Whoever has noted a seed finds the order again with another version of vmpi.
    #[test]
    fn seeds_give_different_orders_of_the_same() {
        let seats = vec![Seat { node: 0, core: 0 }; 20];
        assert_eq!(shuffled(&seats[..8], 1), [5, 2, 1, 4, 0, 6, 7, 3]);
        assert_ne!(shuffled(&seats, 1), shuffled(&seats, 2));
    }
}
