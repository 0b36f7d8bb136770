//! Cartesian topologies: grids of ranks in row-major order.

use super::{Topology, with_cart};
use crate::comm::Communicator;
use crate::comm::topology::Cart;
use crate::construct;
use crate::consts;
use crate::errors::Result;
use crate::group::Members;
use std::rc::Rc;

/// The first ranks of `comm` as a grid; `None` for a rank outside it (MPI_Cart_create).
///
/// # Errors
/// `Class::Arg` if the grid has more nodes than `comm` ranks; `Class::Dims`.
pub fn create(comm: &Rc<Communicator>, dims: &[i32], periodic: &[bool]) -> Result<Option<Rc<Communicator>>> {
    let cart = Cart::new(dims, periodic)?;
    let nodes = cart.check_fits(comm.size())?;
    let created = construct::derive(comm, first_ranks(comm, nodes))?;
    if let Some(created) = &created {
        created.set_topology(Some(Rc::new(Topology::Cart(cart))));
    }
    Ok(created)
}

/// The first `count` members of `comm`.
pub(super) fn first_ranks(comm: &Communicator, count: u32) -> Rc<Members> {
    if count == comm.size() {
        return comm.local.clone();
    }
    Rc::new(Members::list((0..count).map(|rank| comm.local.world_rank(rank)).collect()))
}

/// The subgrids of the dimensions with `keep`, each a communicator of its own (MPI_Cart_sub).
///
/// # Errors
/// `Class::Topology` without a Cartesian topology.
pub fn sub(comm: &Rc<Communicator>, keep: &[bool]) -> Result<Rc<Communicator>> {
    let (part, color, key) = with_cart(comm, |cart| {
        let coords = cart.coords(comm.rank as i32)?;
        Ok((cart.keep(keep), cart.partial_rank(&coords, keep, false), cart.partial_rank(&coords, keep, true)))
    })?;
    let created = construct::split(comm, color, key)?.expect("the color is not UNDEFINED");
    created.set_topology(Some(Rc::new(Topology::Cart(part))));
    Ok(created)
}

/// The rank that this one would get in such a grid, `UNDEFINED` if none (MPI_Cart_map).
///
/// # Errors
/// As [`create`].
pub fn map(comm: &Communicator, dims: &[i32], periodic: &[bool]) -> Result<i32> {
    let nodes = Cart::new(dims, periodic)?.check_fits(comm.size())?;
    Ok(if comm.rank < nodes { comm.rank as i32 } else { consts::UNDEFINED })
}
