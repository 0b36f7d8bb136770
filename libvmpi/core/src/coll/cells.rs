//! Fast paths through shared memory, for ranks that share a node. (Filled in by the lead.)

use super::wire::Kit;
use super::work::Work;
use crate::comm::Communicator;
use crate::errors::Result;

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer). `None`: the caller executes a plan.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit) -> Option<Result<()>> {
    let _ = (comm, work, kit);
    None
}
