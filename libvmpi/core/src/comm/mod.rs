//! Communicators. (Owner: comm helper; the signatures here are the contract, private fields and more may be added.)

use crate::errors::Result;
use crate::group::Members;
use crate::handle::Comm;
use std::cell::Cell;
use std::rc::Rc;

/// A communicator.
pub struct Communicator {
    pub handle: Comm,
    /// Matching context of point-to-point messages (even); collectives use `context + 1`.
    pub context: u32,
    /// My rank in the local group.
    pub rank: u32,
    pub local: Rc<Members>,
    /// The remote group of an intercommunicator.
    pub remote: Option<Rc<Members>>,
    /// For an intercommunicator: a private intracommunicator over the local group, for the local phases.
    pub local_comm: Option<Rc<Communicator>>,
    /// Collectives started so far on this communicator (their tag).
    pub collectives: Cell<u32>,
    /// Index of the shared-memory collective cell of this communicator, `u32::MAX` for none (set by the lead's code).
    pub cell: Cell<u32>,
}

impl Communicator {
    pub fn size(&self) -> u32 {
        self.local.size()
    }
    pub fn is_inter(&self) -> bool {
        self.remote.is_some()
    }
    /// The group that ranks in point-to-point calls refer to: the remote one of an intercommunicator.
    pub fn peers(&self) -> &Rc<Members> {
        self.remote.as_ref().unwrap_or(&self.local)
    }
}

/// The communicator behind a handle; `Class::Comm` if there is none.
pub fn get(handle: Comm) -> Result<Rc<Communicator>> {
    todo!("{handle:?}")
}

/// Called once by MPI_Init: make MPI_COMM_WORLD (context 0) and MPI_COMM_SELF (context 2).
pub fn init_world(rank: u32, size: u32) {
    todo!("{rank}{size}")
}
