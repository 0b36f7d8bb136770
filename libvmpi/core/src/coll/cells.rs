//! Fast paths through shared memory, for ranks that share a node.
//!
//! Barrier, small broadcasts, reductions and scans with predefined operations (`cell_reduce`), and small blocks from and for each rank (`cell_blocks`; `cell_lists`
//! where each has a count of its own), go
//! through the communicator's collective cell (`vmpi_shared::cell`): no message, and every rank is switched in once, or once for several operations if it need
//! not wait for the others. All ranks of the communicator decide alike, because they decide by what MPI makes equal on all of them (size, type signature, operation).
//!
//! A context names its communicator's cell in a job of one node. Where there are several, each node's members have a cell of their own
//! beside the context (`draw`); what of an operation crosses between nodes is in `far_cells`.

use super::algo::bcast_binomial;
use super::p2p_machine::{self, Kit, Tags};
use super::plan::{Data, Elem, Plan};
use super::work::Work;
use super::{cell_blocks, cell_lists, cell_reduce};
use crate::coll::cell_operation::CellOperation;
use crate::comm::Communicator;
use crate::comm::cell::members;
use crate::comm::layout::Layout;
use crate::errors::Result;
use crate::process::{self, endpoint};
use crate::simulate;
use std::rc::Rc;
use vmpi_shared::cell::DATA_BYTES;

/// Broadcasts of more bytes than this go by messages (single copy, pipelined).
const MAX_BCAST_BYTES: usize = 16384;

/// Are this communicator's members all on one node, and can they use a cell?
#[inline]
pub fn serve(comm: &Communicator) -> bool {
    if comm.is_inter() || comm.size() < 2 {
        return false;
    }
    match comm.layout() {
        // In virtual time collectives are made of messages.
        None => !simulate::is_on() && endpoint().job.cell_number(comm.context).is_some(),
        Some(layout) => layout.nodes() == 1,
    }
}

/// The number of the cell that this rank shares with other members, if there is one. All who would share it must ask, in a collective call
/// that has these tags; in the first one they may have to tell each other.
pub(super) fn number(comm: &Communicator, tags: Tags) -> Result<Option<u32>> {
    match (comm.layout(), comm.cell.drawn.get()) {
        (None, _) => Ok(endpoint().job.cell_number(comm.context)),
        (_, Some(drawn)) => Ok(*drawn),
        (Some(layout), None) => draw(comm, layout, tags),
    }
}

/// The first of the members on this node takes a cell of this node's segment and tells the others. MPI_COMM_WORLD's is always the same.
///
/// Death story: that of any message within a plan.
#[cold]
fn draw(comm: &Communicator, layout: &Layout, tags: Tags) -> Result<Option<u32>> {
    let job = &endpoint().job;
    let mut word = [0u8; 4];
    if comm.context != 0 {
        if layout.place() == 0 {
            word = job.take_cell().map_or(0, |number| number + 1).to_ne_bytes();
        }
        let data = Data { at: word.as_mut_ptr(), count: word.len() as u64, elem: Elem::BYTE };
        let mut plan = Plan::default();
        plan.within(layout, |plan, ranks| bcast_binomial::build(plan, ranks, data, 0));
        // SAFETY: the word outlives the plan's one execution.
        unsafe { p2p_machine::execute(comm, plan, Rc::new(Kit::bytes()?), tags)? };
    }
    let drawn = match (comm.context, u32::from_ne_bytes(word)) {
        (0, _) => Some(0),
        (_, word) => word.checked_sub(1),
    };
    let drawn = drawn.filter(|number| job.has_cell(*number));
    if let Some(roster) = drawn.and_then(|number| job.roster_at(number, comm.context)) {
        roster.enroll(comm.rank, comm.size(), process::endpoint_rank());
        // Who is missing has not enrolled.
        if layout.place() == 0 {
            comm.local.iter().zip(0..).for_each(|(member, rank)| roster.enroll(rank, comm.size(), member));
        }
        let name = comm.name();
        if !name.is_empty() {
            roster.rename(&name);
        }
    }
    Ok(*comm.cell.drawn.get_or_init(|| drawn))
}

/// The barrier of a blocking call, where [`serve`] says so. `None`: there is no cell after all.
pub fn barrier(comm: &Communicator, tags: Tags) -> Option<Result<()>> {
    let number = number(comm, tags).transpose()?;
    Some(number.and_then(|number| CellOperation::start(comm, number, 0)?.reduce(None, 0, || 0, |_| ())))
}

/// May so small a broadcast go through a cell?
pub(super) fn fits_bcast(bytes: usize) -> bool {
    bytes <= MAX_BCAST_BYTES.min(DATA_BYTES)
}

/// How much of the communicator's cell `work` takes, if it may go through it; the same at all its ranks.
fn room(comm: &Communicator, work: &Work, kit: &Kit) -> Option<usize> {
    let size = comm.size();
    match work {
        Work::Bcast { data, .. } => Some(data.bytes() as usize).filter(|bytes| fits_bcast(*bytes)),
        Work::Allreduce { send, .. } | Work::Reduce { send, .. } | Work::ReduceScatter { send, .. } => {
            cell_reduce::room(send, kit, size)
        }
        // One after the other, which takes longer than by messages where each rank has a core of its own.
        Work::Scan { send, .. } | Work::Exscan { send, .. } if members(comm).crowded => {
            cell_reduce::room(send, kit, size)
        }
        Work::Gather { send, recv, even: true, .. } => {
            let block = recv.as_ref().map(|recv| recv.get(0)).or(*send)?;
            cell_blocks::room(block.bytes(), size)
        }
        Work::Scatter { send, recv, even: true, .. } => {
            let block = send.as_ref().map(|send| send.get(0)).or(*recv)?;
            cell_blocks::room(block.bytes(), size)
        }
        Work::Allgather { recv, .. } => cell_blocks::room_for(recv, size),
        Work::Alltoall { recv, even: true, .. } => cell_blocks::room(recv.bytes(), size),
        Work::Gather { even: false, .. } | Work::Scatter { even: false, .. } => cell_lists::room_for_one(size),
        Work::Alltoall { send: Some(_), even: false, .. } => cell_lists::room_for_all(size),
        Work::Alltoall { send: None, .. } | Work::Barrier | Work::Neighbor { .. } => None,
        Work::Scan { .. } | Work::Exscan { .. } => None,
    }
}

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer), and say what has become of it and what is left to be done with messages. `None`: the caller executes a plan
/// of all.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit, tags: Tags) -> Option<(Result<()>, Plan)> {
    if !serve(comm) {
        return None;
    }
    let bytes = room(comm, work, kit)?;
    let number = number(comm, tags).transpose()?;
    let visit = match number.and_then(|number| CellOperation::start(comm, number, bytes)) {
        Ok(visit) => visit,
        Err(error) => return Some((Err(error), Plan::default())),
    };
    // SAFETY: the caller's contract; a lane has room for what `room` says.
    let done = unsafe {
        match work {
            Work::Gather { send, recv, root, even: false } => {
                return Some(cell_lists::gather(visit, *send, recv.as_ref(), *root as u32, kit));
            }
            Work::Scatter { send, recv, root, even: false } => {
                return Some(cell_lists::scatter(visit, send.as_ref(), *recv, *root as u32, kit));
            }
            Work::Alltoall { send: Some(send), recv, even: false } => {
                return Some(cell_lists::alltoall(visit, send, recv, kit));
            }
            Work::Bcast { data, root } => visit.bcast(data, *root as u32, false, kit),
            Work::Allreduce { send, recv, .. } => cell_reduce::combine(visit, send, Some(recv), None, kit),
            Work::Reduce { send, recv, root, .. } => {
                cell_reduce::combine(visit, send, recv.as_ref(), Some(*root as u32), kit)
            }
            Work::ReduceScatter { send, recv, counts, .. } => cell_reduce::parts(visit, send, recv, counts, kit),
            Work::Scan { send, recv } => cell_reduce::scan(visit, send, recv, true, kit),
            Work::Exscan { send, recv } => cell_reduce::scan(visit, send, recv, false, kit),
            Work::Gather { send, recv, root, .. } => {
                cell_blocks::gather(visit, *send, recv.as_ref(), *root as u32, kit)
            }
            Work::Scatter { send, recv, root, .. } => {
                cell_blocks::scatter(visit, send.as_ref(), *recv, *root as u32, kit)
            }
            Work::Allgather { send, recv, .. } => cell_blocks::allgather(visit, *send, recv, kit),
            Work::Alltoall { send, recv, .. } => cell_blocks::alltoall(visit, send.as_ref(), recv, kit),
            Work::Barrier | Work::Neighbor { .. } => return None,
        }
    };
    Some((done, Plan::default()))
}
