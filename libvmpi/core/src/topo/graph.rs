//! Graph topologies: the whole graph on every rank, or each rank's own edges (distributed graphs).

use super::Topology;
use super::cart::first_ranks;
use crate::comm::Communicator;
pub(crate) use crate::comm::topology::{Distributed, EDGE_BYTES, Edge, Graph};
use crate::construct;
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::{coll, handle::Handle};
use std::rc::Rc;

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
    let nodes = graph.check_fits(comm.size())?;
    if nodes == 0 {
        return Ok(None);
    }
    let created = construct::derive(comm, first_ranks(comm, nodes))?;
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
    let nodes = graph.check_fits(comm.size())?;
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
    let created = construct::derive(comm, comm.local.clone())?.expect("every rank is a member");
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
