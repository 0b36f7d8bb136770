//! Collectives. (Owner: coll helper; the signatures here are the contract.)

use crate::comm::Communicator;
use crate::errors::Result;

/// Broadcast raw bytes from `root` (for communicator construction and the like).
pub fn bcast_bytes(comm: &Communicator, bytes: &mut [u8], root: u32) -> Result<()> {
    let _ = (comm, bytes, root);
    todo!()
}

/// Gather `mine` of every rank, in rank order, into `all` (`size * mine.len()` bytes).
pub fn allgather_bytes(comm: &Communicator, mine: &[u8], all: &mut [u8]) -> Result<()> {
    let _ = (comm, mine, all);
    todo!()
}

/// All ranks of an intracommunicator have arrived.
pub fn barrier(comm: &Communicator) -> Result<()> {
    let _ = comm;
    todo!()
}
