//! Virtual topologies (MPI 4.1 chapter 8).
//!
//! A topology is a value attached to a communicator ([`Topology`]): `cart` and `graph` make and question them, `dims`
//! chooses the shape of a grid. Ranks are never reordered.

pub mod cart;
pub mod dims;
pub mod graph;

use crate::comm::Communicator;
use crate::consts;
use crate::errors::{Class, Result, fail};
use smallvec::SmallVec;

pub use cart::Cart;
pub use graph::{Distributed, Graph};

/// What MPI_Topo_test tells apart.
#[derive(Debug)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    Distributed(Distributed),
}

/// `consts::CART`, `GRAPH`, `DIST_GRAPH` or `UNDEFINED`.
pub fn kind(comm: &Communicator) -> i32 {
    match comm.topology().as_deref() {
        Some(Topology::Cart(_)) => consts::CART,
        Some(Topology::Graph(_)) => consts::GRAPH,
        Some(Topology::Distributed(_)) => consts::DIST_GRAPH,
        None => consts::UNDEFINED,
    }
}

macro_rules! with_topology {
    ($($(#[$doc:meta])* $name:ident: $variant:ident($ty:ty), $what:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Errors
        /// `Class::Topology` if the communicator has no topology of this kind; what `f` returns.
        pub fn $name<R>(comm: &Communicator, f: impl FnOnce(&$ty) -> Result<R>) -> Result<R> {
            match comm.topology().as_deref() {
                Some(Topology::$variant(topology)) => f(topology),
                _ => fail(Class::Topology, concat!("the communicator has no ", $what, " topology")),
            }
        }
    )*};
}

with_topology! {
    /// Question the Cartesian topology of `comm`.
    with_cart: Cart(Cart), "Cartesian";
    /// Question the graph topology of `comm`.
    with_graph: Graph(Graph), "graph";
    /// Question the distributed graph topology of `comm`.
    with_distributed: Distributed(Distributed), "distributed graph";
}

/// Ranks, or MPI_PROC_NULL. Those of a grid of up to four dimensions allocate nothing.
pub type Neighbours = SmallVec<[i32; 8]>;

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
