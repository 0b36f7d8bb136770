//! Ranks by parts of the machine: so many on each socket, one on each in turn, or all of them spread.

use super::block;
use crate::cli::{BindTo, MapBy, Resource, RunOptions};
use crate::topology::Topology;

/// How ranks are dealt out to the parts of a node.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// `ppr:N:socket`: so many on the first, then on the next.
    Per(u32, Resource),
    /// `--map-by socket`: one on each in turn.
    Turns(Resource),
    /// In order, over all of them: of a part that ranks are bound to each is to have its share.
    Spread(Resource),
}

impl By {
    pub fn of(options: &RunOptions) -> Option<By> {
        match (options.ranks_per, &options.map_by, &options.bind_to) {
            (Some((n, resource)), ..) => Some(By::Per(n.max(1), resource)),
            (None, MapBy::Each(resource), _) => Some(By::Turns(*resource)),
            (None, MapBy::Block, Some(BindTo::To(resource, _))) if *resource != Resource::Hwthread => {
                Some(By::Spread(*resource))
            }
            _ => None,
        }
    }

    pub fn resource(self) -> Resource {
        let (By::Per(_, resource) | By::Turns(resource) | By::Spread(resource)) = self;
        resource
    }

    /// Ranks that are meant where nobody says how many, of so many parts.
    pub fn ranks(self, parts: usize) -> Option<u32> {
        match self {
            By::Per(n, _) => Some(n.saturating_mul(parts as u32)),
            _ => None,
        }
    }

    /// The part of each rank; `places`: how many each part has, none of them 0. `v`: ranks of a place.
    pub fn deal(self, ranks: u32, places: &[usize], v: u32) -> Vec<usize> {
        let parts = places.len() as u32;
        match self {
            By::Per(n, _) => {
                let n = n.max(ranks.div_ceil(parts));
                (0..ranks).map(|rank| (rank / n) as usize).collect()
            }
            By::Turns(_) => turns(ranks, places, v),
            By::Spread(_) => {
                let all: u32 = places.iter().map(|places| *places as u32).sum();
                // As few places as hold the ranks, as everywhere, but far from each other.
                let used = ranks.div_ceil(v.max(1)).min(all);
                let upto = |end: &mut usize, places: &usize| {
                    *end += places;
                    Some(*end)
                };
                let ends: Vec<usize> = places.iter().scan(0, upto).collect();
                let place =
                    |rank: u32| (u64::from(block(rank, ranks, used)) * u64::from(all) / u64::from(used)) as usize;
                (0..ranks).map(|rank| ends.partition_point(|end| *end <= place(rank))).collect()
            }
        }
    }
}

/// One on each part in turn, past those that are full.
fn turns(ranks: u32, places: &[usize], v: u32) -> Vec<usize> {
    let all: usize = places.iter().sum();
    let v = (v.max(1) as usize).max((ranks as usize).div_ceil(all));
    let mut room: Vec<usize> = places.iter().map(|places| places * v).collect();
    let mut dealt = Vec::new();
    let mut part = 0;
    while dealt.len() < ranks as usize {
        if room[part] > 0 {
            room[part] -= 1;
            dealt.push(part);
        }
        part = (part + 1) % places.len();
    }
    dealt
}

/// `cpus` in pieces of `size`, as few as possible of CPUs of more than one `part`, NUMA node or package; what does not fill a piece is left out.
pub fn pieces(cpus: &[u32], size: usize, part: Option<Resource>, topology: &Topology) -> Vec<Vec<u32>> {
    let levels = [Resource::Socket, Resource::Numa].into_iter().chain(part.filter(|_| size > 1)).collect::<Vec<_>>();
    // Single CPUs come as they are given: those that no other job has first.
    let levels = if size > 1 { &levels[..] } else { &[] };
    let (mut pieces, rest) = cut(cpus, size, levels, topology);
    pieces.extend(rest.chunks_exact(size).map(<[u32]>::to_vec));
    pieces
}

/// Whole pieces of parts, from within, and what is left over.
fn cut(cpus: &[u32], size: usize, levels: &[Resource], topology: &Topology) -> (Vec<Vec<u32>>, Vec<u32>) {
    let Some((level, levels)) = levels.split_first() else {
        let whole = cpus.chunks_exact(size);
        let rest = whole.remainder().to_vec();
        return (whole.map(<[u32]>::to_vec).collect(), rest);
    };
    let (mut pieces, mut rest) = (Vec::new(), Vec::new());
    for part in topology.parts(cpus, *level) {
        let (whole, left) = cut(&part, size, levels, topology);
        let left = left.chunks_exact(size);
        rest.extend(left.remainder());
        pieces.extend(whole.into_iter().chain(left.map(<[u32]>::to_vec)));
    }
    (pieces, rest)
}

/// For each place all CPUs of the `count` neighbouring parts that it lies in; none if that is no more than the places themselves.
pub fn masks(
    places: &[Vec<u32>],
    cpus: &[u32],
    (resource, count): (Resource, u32),
    topology: &Topology,
) -> Vec<Vec<u32>> {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let parts = topology.parts(&sorted, resource);
    let wide: Vec<Vec<u32>> = parts.chunks(count.max(1) as usize).map(<[Vec<u32>]>::concat).collect();
    let mask = |place: &Vec<u32>| {
        let mut mask: Vec<u32> = wide.iter().find(|wide| wide.contains(&place[0])).cloned().unwrap_or_default();
        mask.extend(place);
        mask.sort_unstable();
        mask.dedup();
        mask
    };
    let masks: Vec<Vec<u32>> = places.iter().map(mask).collect();
    let is_more = masks.iter().zip(places).any(|(mask, place)| mask.len() > place.len());
    if is_more { masks } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_dealt_out_to_parts() {
        let socket = Resource::Socket;
        assert_eq!(By::Per(2, socket).deal(4, &[4, 4], 1), [0, 0, 1, 1]);
        assert_eq!(By::Per(3, socket).deal(4, &[4, 4], 1), [0, 0, 0, 1]);
        assert_eq!(By::Per(1, socket).deal(4, &[4, 4], 1), [0, 0, 1, 1], "more than was said");
        assert_eq!(By::Turns(socket).deal(5, &[4, 4], 1), [0, 1, 0, 1, 0]);
        assert_eq!(By::Turns(socket).deal(5, &[1, 4], 1), [0, 1, 1, 1, 1]);
        assert_eq!(By::Turns(socket).deal(4, &[1, 4], 2), [0, 1, 0, 1]);
        assert_eq!(By::Turns(socket).deal(12, &[1, 4], 1).iter().filter(|part| **part == 0).count(), 3);
        assert_eq!(By::Spread(socket).deal(2, &[4, 4], 1), [0, 1]);
        assert_eq!(By::Spread(socket).deal(3, &[4, 4], 1), [0, 0, 1]);
        assert_eq!(By::Spread(socket).deal(6, &[2, 1], 1), [0, 0, 0, 0, 1, 1]);
        assert_eq!(By::Spread(socket).deal(4, &[1, 1, 1, 1], 2), [0, 0, 2, 2]);
    }

    #[test]
    fn places_lie_in_one_part_where_they_can() {
        let cpus: Vec<u32> = (0..12).collect();
        let of = |text: &str| Topology::synthetic(text).unwrap();
        let two = of("package:2 core:6");
        assert_eq!(pieces(&cpus, 4, None, &two), [[0, 1, 2, 3], [6, 7, 8, 9], [4, 5, 10, 11]]);
        assert_eq!(pieces(&[0, 6, 1, 7], 2, None, &two), [[0, 1], [6, 7]]);
        assert_eq!(pieces(&[0, 6, 1, 7], 1, None, &two), [[0], [6], [1], [7]]);
        assert_eq!(pieces(&cpus[..5], 2, None, &of("core:5")), [[0, 1], [2, 3]]);
        let four = of("package:2 numa:2 core:3");
        assert_eq!(pieces(&cpus, 2, None, &four), [[0, 1], [3, 4], [2, 5], [6, 7], [9, 10], [8, 11]]);
        let caches = of("package:1 l3:4 core:3");
        assert_eq!(pieces(&cpus, 3, Some(Resource::L3Cache), &caches).len(), 4);
        assert_eq!(pieces(&cpus[1..], 2, Some(Resource::L3Cache), &caches)[..2], [[1, 2], [3, 4]]);
    }

    #[test]
    fn masks_are_whole_parts() {
        let machine = Topology::synthetic("package:2 numa:2 core:2 pu:2").unwrap();
        let cpus = machine.cpus();
        let of = |places: &[Vec<u32>], to| masks(places, &cpus, to, &machine);
        assert_eq!(of(&[vec![0], vec![9]], (Resource::Numa, 1)), [vec![0, 1, 2, 3], vec![8, 9, 10, 11]]);
        assert_eq!(of(&[vec![5]], (Resource::Numa, 2)), [(0..8).collect::<Vec<_>>()]);
        assert_eq!(of(&[vec![5]], (Resource::Core, 1)), [[4, 5]]);
        assert_eq!(of(&[vec![4, 5]], (Resource::Core, 1)), Vec::<Vec<u32>>::new());
        assert_eq!(of(&[vec![3, 4]], (Resource::Core, 1)), [[2, 3, 4]], "a place keeps what it has");
    }
}
