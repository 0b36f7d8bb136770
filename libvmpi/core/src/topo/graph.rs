//! Graph topologies: the whole graph on every rank, or each rank's own edges (distributed graphs).

use super::Topology;
use super::cart::first_ranks;
use crate::comm::{self, Communicator};
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::{coll, handle::Handle};
use std::rc::Rc;

/// The graph of MPI_Graph_create: neighbours of node i are `edges[index[i - 1] .. index[i]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    pub index: Vec<i32>,
    pub edges: Vec<i32>,
}

impl Graph {
    /// Check and copy a graph; `edges(n)` gives the first n edges once it is known how many there are.
    ///
    /// # Errors
    /// `Class::Arg` for an index that decreases or an edge to a node that does not exist.
    pub fn new<'a>(index: &[i32], edges: impl FnOnce(usize) -> Result<&'a [i32]>) -> Result<Graph> {
        let mut last = 0;
        for (node, &end) in index.iter().enumerate() {
            if end < last {
                return fail(Class::Arg, format!("index[{node}] is {end}, below {last}"));
            }
            last = end;
        }
        let edges = edges(last as usize)?;
        if let Some(at) = edges.iter().position(|&node| node < 0 || node as usize >= index.len()) {
            return fail(Class::Arg, format!("edges[{at}] is {}, not a node of {}", edges[at], index.len()));
        }
        Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
    }

    /// Neighbours of `rank` in the order of the edges.
    ///
    /// # Errors
    /// `Class::Rank`.
    pub fn neighbours(&self, rank: i32) -> Result<&[i32]> {
        let Some(node) = usize::try_from(rank).ok().filter(|&node| node < self.index.len()) else {
            return fail(
                Class::Rank,
                format!("rank {rank} is not a node of the graph, which has {}", self.index.len()),
            );
        };
        let start = if node == 0 { 0 } else { self.index[node - 1] };
        Ok(&self.edges[start as usize..self.index[node] as usize])
    }

    fn check_fits(&self, comm: &Communicator) -> Result<u32> {
        let nodes = self.index.len();
        match u32::try_from(nodes) {
            Ok(nodes) if nodes <= comm.size() => Ok(nodes),
            _ => fail(Class::Arg, format!("a graph of {nodes} nodes does not fit {} ranks", comm.size())),
        }
    }
}

/// This rank's edges of a distributed graph. Without weights the weight lists are empty and `weighted` is false.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Distributed {
    pub sources: Vec<i32>,
    pub source_weights: Vec<i32>,
    pub destinations: Vec<i32>,
    pub destination_weights: Vec<i32>,
    pub weighted: bool,
}

/// One edge of a distributed graph.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub source: i32,
    pub destination: i32,
    pub weight: i32,
}

const EDGE_BYTES: usize = 12;

impl Edge {
    fn to_bytes(self) -> [u8; EDGE_BYTES] {
        let mut bytes = [0; EDGE_BYTES];
        for (at, value) in bytes.chunks_exact_mut(4).zip([self.source, self.destination, self.weight]) {
            at.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Edge {
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Edge { source: word(0), destination: word(4), weight: word(8) }
    }
}

impl Distributed {
    /// The part of `edges` that touches `rank`, in their order.
    pub fn from_edges(edges: impl Iterator<Item = Edge>, rank: i32, weighted: bool) -> Distributed {
        let mut graph = Distributed { weighted, ..Distributed::default() };
        for edge in edges {
            if edge.destination == rank {
                graph.sources.push(edge.source);
                graph.source_weights.extend(weighted.then_some(edge.weight));
            }
            if edge.source == rank {
                graph.destinations.push(edge.destination);
                graph.destination_weights.extend(weighted.then_some(edge.weight));
            }
        }
        graph
    }
}

/// Are `ranks` all ranks of `comm`? `what` names the argument.
///
/// # Errors
/// `Class::Rank`.
pub fn check_ranks(comm: &Communicator, ranks: &[i32], what: &str) -> Result<()> {
    match ranks.iter().position(|&rank| rank < 0 || rank as u32 >= comm.size()) {
        None => Ok(()),
        Some(at) => fail(Class::Rank, format!("{what}[{at}] is {}, the ranks are 0 to {}", ranks[at], comm.size() - 1)),
    }
}

/// The first ranks of `comm` as a graph; `None` for a rank outside it (MPI_Graph_create).
///
/// # Errors
/// `Class::Arg` if the graph has more nodes than `comm` ranks.
pub fn create(comm: &Rc<Communicator>, graph: Graph) -> Result<Option<Rc<Communicator>>> {
    let nodes = graph.check_fits(comm)?;
    if nodes == 0 {
        return Ok(None);
    }
    let created = comm::derive(comm, first_ranks(comm, nodes))?;
    if let Some(created) = &created {
        created.set_topology(Some(Rc::new(Topology::Graph(graph))));
    }
    Ok(created)
}

/// The rank that this one would get in such a graph, `UNDEFINED` if none (MPI_Graph_map).
///
/// # Errors
/// As [`create`].
pub fn map(comm: &Communicator, graph: &Graph) -> Result<i32> {
    let nodes = graph.check_fits(comm)?;
    Ok(if comm.rank < nodes { comm.rank as i32 } else { consts::UNDEFINED })
}

/// A communicator where each rank has stated its own edges (MPI_Dist_graph_create_adjacent).
///
/// # Errors
/// `Class::Rank` for a neighbour that does not exist.
pub fn create_adjacent(comm: &Rc<Communicator>, graph: Distributed) -> Result<Rc<Communicator>> {
    check_ranks(comm, &graph.sources, "sources")?;
    check_ranks(comm, &graph.destinations, "destinations")?;
    attach(comm, graph)
}

fn attach(comm: &Rc<Communicator>, graph: Distributed) -> Result<Rc<Communicator>> {
    let created = comm::derive(comm, comm.local.clone())?.expect("every rank is a member");
    debug_assert!(!created.handle.is_null());
    created.set_topology(Some(Rc::new(Topology::Distributed(graph))));
    Ok(created)
}

/// A communicator where any rank may state any edge (MPI_Dist_graph_create); `mine` has been checked.
///
/// # Errors
/// Those of the messages needed.
pub fn create_distributed(comm: &Rc<Communicator>, mine: &[Edge], weighted: bool) -> Result<Rc<Communicator>> {
    let edges = gather_edges(comm, mine)?;
    attach(comm, Distributed::from_edges(edges.into_iter(), comm.rank as i32, weighted))
}

/// Every rank's edges that touch this rank, by the rank that stated them.
///
/// Even contributions go in one allgather, padded to the longest; uneven ones (one rank states the whole graph) in a
/// broadcast from each rank that has any, so that padding never more than doubles the bytes.
fn gather_edges(comm: &Communicator, mine: &[Edge]) -> Result<Vec<Edge>> {
    let size = comm.size() as usize;
    let mut counts = vec![0; 4 * size];
    coll::allgather_bytes(comm, &(mine.len() as u32).to_ne_bytes(), &mut counts)?;
    let counts: Vec<usize> =
        counts.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]) as usize).collect();
    let longest = counts.iter().copied().max().unwrap_or(0);
    let total: usize = counts.iter().sum();
    let rank = comm.rank as i32;
    let touching = |bytes: &[u8]| -> Vec<Edge> {
        let edges = bytes.chunks_exact(EDGE_BYTES).map(Edge::from_bytes);
        edges.filter(|edge| edge.source == rank || edge.destination == rank).collect()
    };
    let mut bytes: Vec<u8> = mine.iter().flat_map(|edge| edge.to_bytes()).collect();
    let mut edges = Vec::new();
    if total == 0 {
        return Ok(edges);
    }
    if longest * size <= 2 * total {
        let block = longest * EDGE_BYTES;
        bytes.resize(block, 0);
        let mut all = vec![0; block * size];
        coll::allgather_bytes(comm, &bytes, &mut all)?;
        for (block, count) in all.chunks_exact(block).zip(counts) {
            edges.extend(touching(&block[..count * EDGE_BYTES]));
        }
    } else {
        for (root, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let mut theirs = if root == comm.rank as usize { bytes.clone() } else { vec![0; count * EDGE_BYTES] };
            coll::bcast_bytes(comm, &mut theirs, root as u32)?;
            edges.extend(touching(&theirs));
        }
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_a_graph() {
        // The example of MPI 4.1 section 8.5.3.
        let edges = [1, 3, 0, 3, 0, 2];
        let graph = Graph::new(&[2, 3, 4, 6], |count| Ok(&edges[..count])).unwrap();
        assert_eq!(graph.neighbours(0).unwrap(), [1, 3]);
        assert_eq!(graph.neighbours(1).unwrap(), [0]);
        assert_eq!(graph.neighbours(3).unwrap(), [0, 2]);
        assert_eq!(graph.neighbours(4).unwrap_err().class, Class::Rank);
        assert_eq!(Graph::new(&[2, 1], |count| Ok(&edges[..count])).unwrap_err().class, Class::Arg);
        assert_eq!(Graph::new(&[1, 2], |_| Ok(&[0, 2])).unwrap_err().class, Class::Arg);
    }

    #[test]
    fn edges_survive_the_journey_and_find_their_ranks() {
        let edge = Edge { source: 3, destination: -1, weight: i32::MAX };
        assert_eq!(Edge::from_bytes(&edge.to_bytes()), edge);
        let all = [(0, 1, 5), (1, 0, 6), (1, 1, 7), (0, 1, 8)].map(|(source, destination, weight)| Edge {
            source,
            destination,
            weight,
        });
        let graph = Distributed::from_edges(all.into_iter(), 1, true);
        assert_eq!(graph.sources, [0, 1, 0]);
        assert_eq!(graph.source_weights, [5, 7, 8]);
        assert_eq!(graph.destinations, [0, 1]);
        assert_eq!(graph.destination_weights, [6, 7]);
        assert!(Distributed::from_edges(all.into_iter(), 1, false).source_weights.is_empty());
    }
}
