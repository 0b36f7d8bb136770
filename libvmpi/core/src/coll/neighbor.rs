//! Neighbourhood collectives: who exchanges which block with whom, in the order that makes messages match.
//!
//! All messages of a call carry one tag and those between two ranks keep their order, so several edges between the
//! same two ranks match by position: the k-th edge to a rank, in destination order, with its k-th edge from us, in
//! source order (MPI 4.1 section 8.6). In a Cartesian topology what leaves in a dimension's negative direction arrives
//! from the positive one; where both neighbours are the same rank (a periodic dimension of size 1 or 2), the receives
//! of the two directions must therefore be posted the other way round.

use super::plan::{Data, Plan, Ranks, Regions};
use crate::comm::Communicator;
use crate::comm::topology::{self, Neighbours, Topology};
use crate::consts;
use crate::errors::{Class, Result, fail};

/// Has `comm` a Cartesian topology?
pub fn is_cartesian(comm: &Communicator) -> bool {
    topology::kind(comm) == consts::CART
}

/// Pair blocks with neighbours in posting order, without MPI_PROC_NULL. `cartesian`: swap directions (as above).
pub fn receives(sources: &[i32], blocks: &Regions, cartesian: bool) -> Vec<(i32, Data)> {
    let order = (0..sources.len()).map(|i| if cartesian { i ^ 1 } else { i });
    present(order.map(|i| (sources[i], blocks.get(i))))
}

/// As `receives`, for sends.
pub fn sends(destinations: &[i32], block: impl Fn(usize) -> Data) -> Vec<(i32, Data)> {
    present(destinations.iter().enumerate().map(|(i, &rank)| (rank, block(i))))
}

fn present(edges: impl ExactSizeIterator<Item = (i32, Data)>) -> Vec<(i32, Data)> {
    let mut present = Vec::with_capacity(edges.len());
    present.extend(edges.filter(|(rank, data)| *rank != consts::PROC_NULL && data.bytes() > 0));
    present
}

/// All messages at once.
pub fn build(plan: &mut Plan, ranks: Ranks, sends: &[(i32, Data)], recvs: &[(i32, Data)]) {
    plan.steps.reserve(recvs.len() + sends.len() + 1);
    for &(from, data) in recvs {
        plan.recv(ranks, from as u32, data);
    }
    for &(to, data) in sends {
        plan.send(ranks, to as u32, data);
    }
    plan.fence();
}

/// The neighbours of this rank for neighbourhood collectives, PROC_NULL included: (sources, destinations), in MPI's order.
pub fn neighbours(comm: &Communicator) -> Result<(Neighbours, Neighbours)> {
    match comm.topology().as_deref() {
        Some(Topology::Cart(cart)) => {
            let both = cart.neighbours(comm.rank as i32)?;
            Ok((both.clone(), both))
        }
        Some(Topology::Graph(graph)) => {
            let both = Neighbours::from_slice(graph.neighbours(comm.rank as i32)?);
            Ok((both.clone(), both))
        }
        Some(Topology::Distributed(graph)) => {
            Ok((Neighbours::from_slice(&graph.sources), Neighbours::from_slice(&graph.destinations)))
        }
        None => fail(Class::Topology, "the communicator has no topology"),
    }
}
