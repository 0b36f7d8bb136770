//! Cut ranks into groups of given sizes so that little goes between groups.
//!
//! Two beginnings, neighbours together and groups grown from the rank with the most to do, are each made better by exchanging pairs (Kernighan and Lin's
//! gain, greedily) until no exchange helps; the better of the two counts. So it is never worse than ranks in order.

use super::weights::Weights;
use std::collections::BTreeMap;

/// Passes over all ranks; each makes the cut smaller, and few do.
const MOST_PASSES: usize = 32;

/// `ranks` in groups of `sizes`, which add up to their number.
pub fn partition(weights: &Weights, ranks: &[usize], sizes: &[usize]) -> Vec<Vec<usize>> {
    debug_assert_eq!(ranks.len(), sizes.iter().sum::<usize>());
    if sizes.len() < 2 {
        return vec![ranks.to_vec()];
    }
    // Ranks by their place in `ranks` from here on.
    let local = Local::new(weights, ranks);
    let begins = [in_order(sizes), grown(&local, sizes)];
    let best = begins.into_iter().map(|begin| refined(&local, begin, sizes.len())).min_by_key(|group| local.cut(group));
    let mut groups = vec![Vec::new(); sizes.len()];
    for (place, group) in best.unwrap_or_default().into_iter().enumerate() {
        groups[group].push(ranks[place]);
    }
    groups
}

/// The weights among some ranks, by their places.
struct Local {
    of: Vec<Vec<(usize, u64)>>,
}

impl Local {
    fn new(weights: &Weights, ranks: &[usize]) -> Local {
        let place: BTreeMap<usize, usize> = ranks.iter().enumerate().map(|(at, rank)| (*rank, at)).collect();
        let of = |rank: &usize| weights.others(*rank).filter_map(|(b, w)| Some((*place.get(&b)?, w))).collect();
        Local { of: ranks.iter().map(of).collect() }
    }

    fn between(&self, a: usize, b: usize) -> u64 {
        self.of[a].iter().find(|(other, _)| *other == b).map_or(0, |(_, weight)| *weight)
    }

    fn cut(&self, group: &[usize]) -> u128 {
        let pairs = self.of.iter().enumerate().flat_map(|(a, others)| others.iter().map(move |(b, w)| (a, *b, *w)));
        pairs.filter(|(a, b, _)| group[*a] != group[*b]).map(|(.., weight)| u128::from(weight)).sum()
    }
}

fn in_order(sizes: &[usize]) -> Vec<usize> {
    sizes.iter().enumerate().flat_map(|(group, size)| std::iter::repeat_n(group, *size)).collect()
}

/// Each group begins with the rank that has most to do with others left, and takes the one that has most to do with it.
fn grown(local: &Local, sizes: &[usize]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let mut group = vec![NONE; local.of.len()];
    for (number, size) in sizes.iter().enumerate() {
        let mut pull = vec![0u64; local.of.len()];
        for taken in 0..*size {
            let free = (0..group.len()).filter(|rank| group[*rank] == NONE);
            let left = |rank: usize| {
                let others = local.of[rank].iter().filter(|(other, _)| group[*other] == NONE);
                others.fold(0u64, |sum, (_, weight)| sum.saturating_add(*weight))
            };
            // Of those that pull alike the one with less to do elsewhere; then the lowest.
            let next = if taken == 0 {
                free.min_by_key(|rank| (std::cmp::Reverse(left(*rank)), *rank))
            } else {
                free.min_by_key(|rank| (std::cmp::Reverse(pull[*rank]), left(*rank), *rank))
            };
            let Some(next) = next else { break };
            group[next] = number;
            for (other, weight) in &local.of[next] {
                pull[*other] = pull[*other].saturating_add(*weight);
            }
        }
    }
    group
}

/// Exchange pairs as long as that makes the cut smaller.
fn refined(local: &Local, mut group: Vec<usize>, groups: usize) -> Vec<usize> {
    // What each rank has to do with each group.
    let mut with = vec![vec![0i128; groups]; group.len()];
    for (a, others) in local.of.iter().enumerate() {
        others.iter().for_each(|(b, weight)| with[a][group[*b]] += i128::from(*weight));
    }
    for _ in 0..MOST_PASSES {
        let mut any = false;
        for a in 0..group.len() {
            let gain = |b: &usize| {
                let (from, to) = (group[a], group[*b]);
                let pair = i128::from(local.between(a, *b));
                with[a][to] - with[a][from] + with[*b][from] - with[*b][to] - 2 * pair
            };
            let others = (0..group.len()).filter(|b| group[*b] != group[a]);
            let Some(b) = others.max_by_key(|b| (gain(b), std::cmp::Reverse(*b))).filter(|b| gain(b) > 0) else {
                continue;
            };
            let (from, to) = (group[a], group[b]);
            for (mover, from, to) in [(a, from, to), (b, to, from)] {
                for (other, weight) in &local.of[mover] {
                    with[*other][from] -= i128::from(*weight);
                    with[*other][to] += i128::from(*weight);
                }
                group[mover] = to;
            }
            any = true;
        }
        if !any {
            break;
        }
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_found_whatever_their_numbers() {
        // Three clusters of five; rank r is in cluster r % 3, and a little goes between all.
        let mut weights = Weights::new(15);
        for a in 0..15 {
            for b in 0..a {
                weights.add(a, b, if a % 3 == b % 3 { 100 } else { 1 });
            }
        }
        let groups = partition(&weights, &(0..15).collect::<Vec<_>>(), &[5, 5, 5]);
        for group in groups {
            assert!(group.iter().all(|rank| rank % 3 == group[0] % 3), "{group:?}");
        }
    }

    #[test]
    fn sizes_are_kept_and_nothing_to_go_by_is_fine() {
        let weights = Weights::new(7);
        let groups = partition(&weights, &[6, 4, 2, 0, 1], &[2, 0, 3]);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0, 3]);
        assert_eq!(partition(&weights, &[3], &[1]), [[3]]);
    }

    #[test]
    fn a_thousand_ranks_take_no_time_to_speak_of() {
        let mut weights = Weights::new(1024);
        (0..1024).for_each(|rank| weights.add(rank, (rank * 37 + 1) % 1024, 10));
        let sizes = vec![32; 32];
        let groups = partition(&weights, &(0..1024).collect::<Vec<_>>(), &sizes);
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), 1024);
    }
}
