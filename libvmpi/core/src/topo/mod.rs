//! Virtual topologies. (Owner: comm helper; the signatures here are the contract.)

use crate::comm::Communicator;
use crate::errors::Result;

/// The neighbours of this rank for neighbourhood collectives, PROC_NULL included: (sources, destinations), in MPI's order.
pub fn neighbours(comm: &Communicator) -> Result<(Vec<i32>, Vec<i32>)> {
    let _ = comm;
    todo!()
}
