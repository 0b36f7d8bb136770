//! Virtual topologies (MPI 4.1 chapter 8). (Floor 9.)
//!
//! A topology is a value attached to a communicator ([`Topology`]): `cart` and `graph` make and question them, `dims`
//! chooses the shape of a grid. Ranks are never reordered.

pub mod cart;
pub mod dims;
pub mod graph;

use crate::comm::Communicator;
use crate::comm::topology::Topology;
use crate::errors::{Class, Result, fail};

pub use crate::comm::topology::{Cart, Distributed, Edge, Graph, kind};

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
