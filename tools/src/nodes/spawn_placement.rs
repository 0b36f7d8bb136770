//! Where ranks go that a job of several nodes spawns, and what their numbers are. Pure.
//!
//! Each goes to the node with the fewest ranks for its cores; where several have, to the one that asks, then to the first. Those of one program that
//! share a node have neighbouring ranks there. A number that has been used is used again on its own node only, those never used come first.

use std::collections::VecDeque;
use vmpi_shared::dynamic::SpawnApp;
use vmpi_shared::spawn_protocol::{Birth, choose_counts};

#[derive(Clone, Debug)]
struct Room {
    cores: u64,
    /// Ranks that live there.
    living: u64,
    /// Numbers of ranks that have ended there, the longest ended first.
    vacant: VecDeque<u32>,
}

/// All nodes of a job.
#[derive(Clone, Debug)]
pub struct Rooms {
    nodes: Vec<Room>,
    /// The first number never used, and how many there are.
    fresh: u32,
    capacity: u32,
}

/// It does not fit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} more processes do not fit: the job has room for {capacity} ranks, of which {used} are in use{elsewhere}; let spawned ones end \
     first, or spawn fewer"
)]
pub struct Full {
    wanted: u64,
    capacity: u32,
    used: u32,
    elsewhere: &'static str,
}

impl Rooms {
    /// `cores`: of each node; `of_rank`: the node of each rank that has been started; `capacity`: room for so many ranks.
    pub fn new(cores: &[u32], of_rank: &[u32], capacity: u32) -> Rooms {
        let room = |(node, cores): (u32, &u32)| Room {
            cores: u64::from(*cores).max(1),
            living: of_rank.iter().filter(|of| **of == node).count() as u64,
            vacant: VecDeque::new(),
        };
        let fresh = of_rank.len() as u32;
        Rooms { nodes: (0..).zip(cores).map(room).collect(), fresh, capacity: capacity.max(fresh) }
    }

    fn left(&self) -> u32 {
        self.capacity - self.fresh + self.nodes.iter().map(|room| room.vacant.len() as u32).sum::<u32>()
    }

    /// A rank of this node is no more. `vacant`: its number may be used again.
    pub fn ended(&mut self, node: u32, vacant: Option<u32>) {
        if let Some(room) = self.nodes.get_mut(node as usize) {
            room.living = room.living.saturating_sub(1);
            room.vacant.extend(vacant);
        }
    }

    /// How many processes of each program, and all of them in order. Nodes that a program does not allow get none of it; `home` asks.
    ///
    /// # Errors
    /// They do not fit.
    pub fn deal(&mut self, apps: &[SpawnApp], home: u32) -> Result<(Vec<u32>, Vec<Birth>), Full> {
        let left = self.left();
        // Where programs are bound to nodes fewer may fit than there is room for.
        let dealt = (0..=left).rev().find_map(|left| {
            let counts = choose_counts(apps, left)?;
            let mut after = self.clone();
            let births = after.try_to_deal(apps, &counts, home)?;
            Some((counts, births, after))
        });
        let Some((counts, births, after)) = dealt else {
            let wanted = apps.iter().filter_map(|app| app.counts.first()).map(|n| u64::from(*n)).sum();
            let elsewhere =
                if wanted <= u64::from(left) { " (numbers of ranks that have ended stay on their nodes)" } else { "" };
            return Err(Full { wanted, capacity: self.capacity, used: self.capacity - left, elsewhere });
        };
        *self = after;
        Ok((counts, births))
    }

    fn try_to_deal(&mut self, apps: &[SpawnApp], counts: &[u32], home: u32) -> Option<Vec<Birth>> {
        let mut births = Vec::new();
        for ((app, wanted), count) in (0..).zip(apps).zip(counts) {
            let first = births.len();
            for _ in 0..*count {
                let node = self.choose(&wanted.nodes, home)?;
                let (rank, again) = self.number(node)?;
                births.push(Birth { rank, node: node as u32, app, again });
            }
            let mine = &mut births[first..];
            mine.sort_by_key(|birth| birth.node);
            // New numbers in order.
            let new = || mine.iter().filter(|birth| !birth.again).map(|birth| birth.rank);
            let from = new().min().unwrap_or(0);
            mine.iter_mut().filter(|birth| !birth.again).zip(from..).for_each(|(birth, rank)| birth.rank = rank);
        }
        Some(births)
    }

    /// The node for one more process.
    fn choose(&self, allowed: &[u32], home: u32) -> Option<usize> {
        let fits = |node: &usize| {
            let allowed = allowed.is_empty() || allowed.contains(&(*node as u32));
            allowed && (self.fresh < self.capacity || !self.nodes[*node].vacant.is_empty())
        };
        // With one more there, for each core: as a fraction.
        let load = |node: usize| ((self.nodes[node].living + 1) << 32) / self.nodes[node].cores;
        (0..self.nodes.len()).filter(fits).min_by_key(|node| (load(*node), *node != home as usize, *node))
    }

    /// A number for a rank of this node, and whether it has been used.
    fn number(&mut self, node: usize) -> Option<(u32, bool)> {
        self.nodes[node].living += 1;
        if self.fresh < self.capacity {
            self.fresh += 1;
            return Some((self.fresh - 1, false));
        }
        self.nodes[node].vacant.pop_front().map(|rank| (rank, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(counts: &[u32], nodes: &[u32]) -> SpawnApp {
        SpawnApp {
            candidates: vec!["/x".into()],
            argv: vec![],
            cwd: "/".into(),
            nodes: nodes.to_vec(),
            env: vec![],
            counts: counts.to_vec(),
        }
    }

    fn told(births: &[Birth]) -> Vec<(u32, u32, bool)> {
        births.iter().map(|birth| (birth.rank, birth.node, birth.again)).collect()
    }

    #[test]
    fn the_node_with_the_fewest_ranks_for_its_cores_gets_the_next() {
        let mut rooms = Rooms::new(&[1, 1], &[0, 0, 1], 100);
        let (counts, births) = rooms.deal(&[app(&[3], &[])], 0).unwrap();
        assert_eq!((counts, told(&births)), (vec![3], vec![(3, 0, false), (4, 1, false), (5, 1, false)]));
        // Three and three: the one that asks, then the other one.
        assert_eq!(told(&rooms.deal(&[app(&[1], &[])], 1).unwrap().1), [(6, 1, false)]);
        assert_eq!(told(&rooms.deal(&[app(&[1], &[])], 1).unwrap().1), [(7, 0, false)]);
        let mut wide = Rooms::new(&[4, 2, 2], &[0, 1, 2], 100);
        let (_, births) = wide.deal(&[app(&[5], &[])], 0).unwrap();
        assert_eq!(births.iter().map(|birth| birth.node).collect::<Vec<_>>(), [0, 0, 0, 1, 2]);
    }

    #[test]
    fn programs_go_where_they_may() {
        let mut rooms = Rooms::new(&[1, 1, 1], &[0, 1, 2], 100);
        let (counts, births) = rooms.deal(&[app(&[2], &[2]), app(&[2], &[0, 1])], 0).unwrap();
        assert_eq!(counts, [2, 2]);
        assert_eq!(births.iter().map(|b| (b.node, b.app)).collect::<Vec<_>>(), [(2, 0), (2, 0), (0, 1), (1, 1)]);
        assert_eq!(births.iter().map(|b| b.rank).collect::<Vec<_>>(), [3, 4, 5, 6]);
    }

    #[test]
    fn a_number_stays_on_its_node() {
        let mut rooms = Rooms::new(&[1, 1], &[0, 1], 4);
        assert_eq!(told(&rooms.deal(&[app(&[2], &[])], 0).unwrap().1), [(2, 0, false), (3, 1, false)]);
        let full = rooms.deal(&[app(&[1], &[])], 0).unwrap_err();
        assert!(full.to_string().starts_with("1 more processes do not fit: the job has room for 4 ranks, of which 4"));
        rooms.ended(1, Some(3));
        // Node 0 would be asked first, but has no number.
        assert!(rooms.deal(&[app(&[1], &[0])], 0).unwrap_err().to_string().contains("stay on their nodes"));
        assert_eq!(told(&rooms.deal(&[app(&[2, 1], &[])], 0).unwrap().1), [(3, 1, true)]);
        rooms.ended(0, Some(2));
        rooms.ended(1, Some(3));
        let (counts, births) = rooms.deal(&[app(&[5, 2], &[]), app(&[1, 0], &[0])], 0).unwrap();
        assert_eq!((counts, told(&births)), (vec![2, 0], vec![(2, 0, true), (3, 1, true)]));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let mut rooms = Rooms::new(&[1, 3], &[0, 1], 10);
        let before = format!("{rooms:?}");
        assert!(rooms.deal(&[app(&[9], &[])], 0).is_err() && rooms.deal(&[app(&[u32::MAX], &[])], 0).is_err());
        assert!(rooms.deal(&[app(&[1], &[7])], 0).is_err(), "there is no such node");
        assert_eq!(format!("{rooms:?}"), before);
    }

    /// Whatever comes and goes: no number is twice in use, each keeps its node, and none is lost.
    #[test]
    fn numbers_are_never_lost_nor_given_twice() {
        let mut seed = 11u64;
        let mut draw = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut rooms = Rooms::new(&[1, 2, 1], &[0, 1, 1, 2], 24);
        let (mut living, mut homes) = (Vec::<Birth>::new(), std::collections::BTreeMap::new());
        for _ in 0..20_000 {
            if draw(2) == 0 && !living.is_empty() {
                let gone = living.swap_remove(draw(living.len()));
                rooms.ended(gone.node, Some(gone.rank));
            } else if let Ok((counts, births)) = rooms.deal(&[app(&[draw(5) as u32 + 1], &[])], draw(3) as u32) {
                assert_eq!(births.len() as u32, counts[0]);
                for birth in births {
                    assert!(birth.rank >= 4 && birth.rank < 24 && living.iter().all(|other| other.rank != birth.rank));
                    let known = homes.insert(birth.rank, birth.node);
                    assert_eq!(known.is_some(), birth.again);
                    assert!(known.is_none_or(|node| node == birth.node));
                    living.push(birth);
                }
            }
            assert_eq!(rooms.left() as usize + living.len(), 20);
        }
    }
}
