//! The wait-for graph: an edge leads from a rank that waits to one that could end the wait.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vmpi_shared::waits::{JobWaits, RankWait, Unasked, WaitKind, WaitOn};

/// `from` waits for `to`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Edge {
    pub from: u32,
    pub to: u32,
}

/// A collective call to which some members have come and others have not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Absence {
    pub context: u32,
    pub present: Vec<u32>,
    pub absent: Vec<u32>,
}

/// A message that lies unasked for at a rank which waits for a similar one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stray {
    pub rank: u32,
    pub message: Unasked,
    /// What is wanted instead.
    pub wanted: WaitOn,
    pub tag_differs: bool,
    pub source_differs: bool,
    pub communicator_differs: bool,
}

/// What follows from a job's waits.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub edges: Vec<Edge>,
    /// Circles of ranks each of which waits for the next one, the shortest of each knot, from its lowest rank on.
    pub cycles: Vec<Vec<u32>>,
    pub absences: Vec<Absence>,
    pub strays: Vec<Stray>,
}

impl Graph {
    pub fn of(waits: &JobWaits) -> Graph {
        let mut edges: Vec<Edge> = Vec::new();
        for rank in &waits.ranks {
            let behind = rank.waits.iter().flat_map(|wait| &wait.ranks);
            edges.extend(
                behind.filter(|to| **to != rank.rank || !can_be_any(rank)).map(|to| Edge { from: rank.rank, to: *to }),
            );
        }
        edges.sort_unstable();
        edges.dedup();
        let cycles = cycles(&edges);
        let strays = waits.ranks.iter().flat_map(strays_of).collect();
        Graph { edges, cycles, absences: absences(waits), strays }
    }
}

/// A wait for any source names all members of the communicator, the rank itself too, which cannot send while it waits.
fn can_be_any(rank: &RankWait) -> bool {
    rank.waits.iter().any(|wait| wait.peer == -1)
}

fn absences(waits: &JobWaits) -> Vec<Absence> {
    let mut present: BTreeMap<(u32, &[u32]), Vec<u32>> = BTreeMap::new();
    for rank in &waits.ranks {
        for wait in rank.waits.iter().filter(|wait| wait.kind == WaitKind::Collective && !wait.ranks.is_empty()) {
            present.entry((wait.context, &wait.ranks)).or_default().push(rank.rank);
        }
    }
    let absence = |((context, absent), mut present): ((u32, &[u32]), Vec<u32>)| {
        // Over several nodes one member speaks for others, by messages.
        let spread = waits.ranks.iter().filter(|rank| !rank.node.is_empty() && rank.is_in_collective(context));
        present.extend(spread.map(|rank| rank.rank).filter(|rank| !absent.contains(rank)));
        present.sort_unstable();
        present.dedup();
        Absence { context, present, absent: absent.to_vec() }
    };
    present.into_iter().map(absence).collect()
}

/// Set in the tag that the program has given to a constructor of communicators (`vmpi_core::plane`).
pub const USER_TAG_BIT: i32 = 1 << 30;

/// Messages here that differ in one respect from one that is wanted.
fn strays_of(rank: &RankWait) -> Vec<Stray> {
    let mut strays = Vec::new();
    for wanted in rank.waits.iter().filter(|wait| matches!(wait.kind, WaitKind::Receive | WaitKind::Probe)) {
        for message in &rank.unexpected {
            let tag_differs = wanted.tag != -2 && wanted.tag != message.tag;
            let source_differs = wanted.peer != -1 && wanted.peer != message.source;
            let communicator_differs = wanted.context != message.context;
            let differences = [tag_differs, source_differs, communicator_differs].iter().filter(|d| **d).count();
            // What vmpi's ranks say to each other is no clue, but for a tag that the program has given.
            let own = (wanted.context | message.context) & 1 == 1;
            let given = tag_differs && wanted.tag & message.tag & USER_TAG_BIT != 0;
            if differences == 1 && (given || !own) {
                let (message, wanted) = (message.clone(), wanted.clone());
                strays.push(Stray {
                    rank: rank.rank,
                    message,
                    wanted,
                    tag_differs,
                    source_differs,
                    communicator_differs,
                });
            }
        }
    }
    strays
}

/// The shortest circle of each strongly connected part.
fn cycles(edges: &[Edge]) -> Vec<Vec<u32>> {
    let mut next: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    edges.iter().for_each(|edge| next.entry(edge.from).or_default().push(edge.to));
    let knots = knots(&next);
    let mut found = Vec::new();
    for knot in knots {
        let shortest = knot.iter().filter_map(|start| circle_through(*start, &next, &knot)).min_by_key(Vec::len);
        found.extend(shortest);
    }
    found
}

/// The strongly connected parts that hold a circle (Tarjan's algorithm, without recursion).
fn knots(next: &BTreeMap<u32, Vec<u32>>) -> Vec<BTreeSet<u32>> {
    struct Visit {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut visits: BTreeMap<u32, Visit> = BTreeMap::new();
    let (mut stack, mut found, none) = (Vec::new(), Vec::new(), Vec::new());
    for &root in next.keys() {
        if visits.contains_key(&root) {
            continue;
        }
        let mut path = vec![(root, 0usize)];
        while let Some(&(node, at)) = path.last() {
            if at == 0 {
                let index = visits.len();
                visits.insert(node, Visit { index, low: index, on_stack: true });
                stack.push(node);
            }
            let targets = next.get(&node).unwrap_or(&none);
            if let Some(&to) = targets.get(at) {
                path.last_mut().expect("not empty").1 += 1;
                match visits.get(&to).map(|visit| (visit.index, visit.on_stack)) {
                    None => path.push((to, 0)),
                    Some((index, true)) => {
                        let visit = visits.get_mut(&node).expect("visited");
                        visit.low = visit.low.min(index);
                    }
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            let (index, low) = (visits[&node].index, visits[&node].low);
            if let Some((parent, _)) = path.last() {
                let visit = visits.get_mut(parent).expect("visited");
                visit.low = visit.low.min(low);
            }
            if index == low {
                let mut knot = BTreeSet::new();
                while let Some(member) = stack.pop() {
                    visits.get_mut(&member).expect("visited").on_stack = false;
                    knot.insert(member);
                    if member == node {
                        break;
                    }
                }
                if knot.len() > 1 || targets.contains(&node) {
                    found.push(knot);
                }
            }
        }
    }
    found.sort();
    found
}

/// The shortest way from `start` back to it inside its knot.
fn circle_through(start: u32, next: &BTreeMap<u32, Vec<u32>>, knot: &BTreeSet<u32>) -> Option<Vec<u32>> {
    let mut before: BTreeMap<u32, u32> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for &to in next.get(&node).into_iter().flatten().filter(|to| knot.contains(to)) {
            if to == start {
                let mut way = vec![node];
                while let Some(previous) = before.get(way.last().expect("not empty")) {
                    way.push(*previous);
                }
                way.reverse();
                return Some(way);
            }
            if to != start && !before.contains_key(&to) {
                before.insert(to, node);
                queue.push_back(to);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(u32, u32)]) -> Vec<Edge> {
        pairs.iter().map(|(from, to)| Edge { from: *from, to: *to }).collect()
    }

    #[test]
    fn circles() {
        assert_eq!(cycles(&edges(&[(0, 1), (1, 0)])), [[0, 1]]);
        assert_eq!(cycles(&edges(&[(0, 1), (1, 2), (2, 3)])), Vec::<Vec<u32>>::new());
        assert_eq!(cycles(&edges(&[(3, 3)])), [[3]]);
        // Two knots; of the first the shorter circle.
        let both = edges(&[(0, 1), (1, 2), (2, 0), (2, 1), (2, 5), (5, 6), (6, 5)]);
        assert_eq!(cycles(&both), [vec![1, 2], vec![5, 6]]);
    }

    /// Every circle that is named is one, and a graph in which everybody waits has one: by exhaustion over small graphs.
    #[test]
    fn a_graph_in_which_everybody_waits_has_a_circle() {
        for choice in 0..4u32.pow(4) {
            let to = |rank: u32| choice / 4u32.pow(rank) % 4;
            let all: Vec<(u32, u32)> = (0..4).map(|rank| (rank, to(rank))).collect();
            let found = cycles(&edges(&all));
            assert!(!found.is_empty(), "{all:?}");
            for circle in &found {
                for (at, rank) in circle.iter().enumerate() {
                    assert_eq!(to(*rank), circle[(at + 1) % circle.len()], "{all:?}: {circle:?}");
                }
            }
        }
    }

    fn waiting(rank: u32, waits: Vec<WaitOn>, unexpected: Vec<Unasked>) -> RankWait {
        RankWait { rank, call: "receive".into(), waits, unexpected, ..RankWait::default() }
    }

    #[test]
    fn a_stray_differs_in_one_respect() {
        let wanted = WaitOn { kind: WaitKind::Receive, peer: 0, tag: 8, ranks: vec![0], ..WaitOn::default() };
        let message = |source, tag, context| Unasked { source, tag, context, ..Unasked::default() };
        let here = vec![message(0, 7, 0), message(2, 7, 0), message(2, 8, 0), message(0, 8, 4), message(1, 1, 1)];
        let waits = JobWaits { ranks: vec![waiting(1, vec![wanted], here)], ..JobWaits::default() };
        let strays = Graph::of(&waits).strays;
        let what: Vec<_> = strays.iter().map(|s| (s.tag_differs, s.source_differs, s.communicator_differs)).collect();
        assert_eq!(what, [(true, false, false), (false, true, false), (false, false, true)]);
    }

    #[test]
    fn vmpis_own_messages_are_no_strays() {
        let strays = |wanted: i32, got: i32| {
            let wanted =
                WaitOn { kind: WaitKind::Receive, context: 1, tag: wanted, ranks: vec![0], ..WaitOn::default() };
            let here = vec![Unasked { tag: got, context: 1, ..Unasked::default() }];
            Graph::of(&JobWaits { ranks: vec![waiting(1, vec![wanted], here)], ..JobWaits::default() }).strays.len()
        };
        assert_eq!((strays(3, 4), strays(3, USER_TAG_BIT | 4), strays(USER_TAG_BIT | 3, USER_TAG_BIT | 4)), (0, 0, 1));
    }

    #[test]
    fn who_is_absent_from_a_collective() {
        let barrier = WaitOn { kind: WaitKind::Collective, peer: -1, tag: -2, ranks: vec![3], ..WaitOn::default() };
        let mut ranks: Vec<RankWait> = (0..3).map(|rank| waiting(rank, vec![barrier.clone()], vec![])).collect();
        let receive = WaitOn { kind: WaitKind::Receive, peer: 0, tag: 1, ranks: vec![0], ..WaitOn::default() };
        ranks.push(waiting(3, vec![receive], vec![]));
        let graph = Graph::of(&JobWaits { ranks, ..JobWaits::default() });
        assert_eq!(graph.absences, [Absence { context: 0, present: vec![0, 1, 2], absent: vec![3] }]);
        assert_eq!(graph.cycles, [[0, 3]]);
    }
}
