//! The end of communicators that lead to other worlds (MPI_Comm_disconnect, and MPI_Finalize without it).
//!
//! Everybody tells everybody else of the communicator that nothing more will come, and MPI_Comm_disconnect waits until all
//! others have said so. Who finalizes says it of all such communicators that are left, and does not wait: MPI asks programs to
//! disconnect first, but a parent whose children just end must get on (Open MPI's does). A member that dies ends the job, or, with
//! `--enable-recovery`, the waiting.

use crate::comm::{self, Communicator, get};
use crate::consts::dt;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use crate::failure;
use crate::group::Members;
use crate::handle::{Comm, Handle};
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::process::{self, endpoint};
use crate::{coll, request};
use std::rc::Rc;
use vmpi_shared::sched::RunState;

/// Of the messages that say so; no collective has it.
const FAREWELL: i32 = i32::MIN + 1;

/// MPI_Comm_disconnect.
///
/// # Errors
/// `Class::Comm` for a predefined communicator.
pub fn disconnect(handle: Comm) -> Result<()> {
    let comm = get(handle)?;
    if handle.dynamic_index().is_none() {
        return fail(Class::Comm, format!("{} cannot be disconnected", comm.describe()));
    }
    request::finish_on(comm.context);
    // Those who are left need not wait for each other.
    failure::tolerate(if leads_outside(&comm) { farewell(&comm) } else { coll::barrier(&comm) })?;
    crate::construct::free(handle)
}

fn farewell(comm: &Rc<Communicator>) -> Result<()> {
    let mut slots = await_others(comm)?;
    slots.extend(say(comm)?);
    request::wait_all(&slots)
}

/// MPI_Finalize: say it of all that are left.
///
/// # Errors
/// `Class::NoMem` if too many messages are under way.
pub fn say_all() -> Result<()> {
    for comm in comm::created().iter().filter(|comm| leads_outside(comm)) {
        // What is not taken at once is nobody's concern any more.
        say(comm)?;
    }
    Ok(())
}

/// Is a member not of this rank's world?
fn leads_outside(comm: &Communicator) -> bool {
    let world = process::world_members();
    let outside = |members: &Members| (0..members.size()).any(|rank| !world.contains(&members.world_rank(rank)));
    outside(&comm.local) || outside(comm.peers())
}

/// All others: the communicator over which they are reached, and their rank in it.
fn others(comm: &Rc<Communicator>) -> Vec<(Rc<Communicator>, u32)> {
    let local = comm.local_phase();
    let mine = (0..local.size()).filter(|&rank| rank != local.rank).map(|rank| (local.clone(), rank));
    let theirs = 0..if comm.is_inter() { comm.peers().size() } else { 0 };
    mine.chain(theirs.map(|rank| (comm.clone(), rank))).collect()
}

/// Tell all others who are still there.
fn say(comm: &Rc<Communicator>) -> Result<Vec<Slot>> {
    let byte = datatype::get(dt::BYTE)?;
    let mut slots = Vec::new();
    for (over, rank) in others(comm) {
        let state = endpoint().node.state(over.peers().world_rank(rank));
        if matches!(state, RunState::Finalized | RunState::Dead) {
            continue;
        }
        let (plane, mode) = (Plane::Collective, Mode::Standard);
        // SAFETY: there are no bytes.
        let slot = unsafe { p2p::start_send(&over, plane, std::ptr::null(), 0, &byte, rank as i32, FAREWELL, mode)? };
        slots.extend(slot);
    }
    Ok(slots)
}

/// Receives of what the others say.
fn await_others(comm: &Rc<Communicator>) -> Result<Vec<Slot>> {
    let byte = datatype::get(dt::BYTE)?;
    let mut slots = Vec::new();
    for (over, rank) in others(comm) {
        let null = std::ptr::null_mut();
        // SAFETY: there are no bytes.
        slots.push(unsafe { p2p::start_recv(&over, Plane::Collective, null, 0, &byte, rank as i32, FAREWELL)? });
    }
    Ok(slots)
}
