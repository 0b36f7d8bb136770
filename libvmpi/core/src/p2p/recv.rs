//! Posting and cancelling receives.

use super::Plane;
use super::slot::{self, Data, Local, Slot};
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::Type;
use crate::errors::{Class, Result, fail};
use crate::process::endpoint;
use crate::tool::event;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::matching::envelope::Envelope;

/// Start a receive from `source` (rank in `comm.peers()`, ANY_SOURCE or PROC_NULL) with `tag` (or ANY_TAG).
///
/// # Errors
/// `Class::NoMem` if too many messages are under way.
///
/// # Safety
/// `buf` must have room for `count` elements until the slot completes.
pub unsafe fn start_recv(
    comm: &Communicator,
    plane: Plane,
    buf: *mut c_void,
    count: u64,
    ty: &Rc<Type>,
    source: i32,
    tag: i32,
) -> Result<Slot> {
    if source == consts::PROC_NULL {
        return slot::null_receive();
    }
    let peers = comm.peers();
    if source != consts::ANY_SOURCE && (source < 0 || source as u32 >= peers.size()) {
        return fail(Class::Rank, format!("source {source} is not a rank of a group of {}", peers.size()));
    }
    let slot = prepare(buf, count, ty)?;
    let endpoint = endpoint();
    let queues = endpoint.queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.context = comm.context + plane as u32;
    shared.source = source;
    shared.tag = tag;
    if event::is_wanted() {
        note_if_unexpected(comm.context + plane as u32, source, tag);
    }
    endpoint.post(slot.0);
    Ok(slot)
}

/// Raise the event if the message that a receive will take is here already.
#[cold]
fn note_if_unexpected(context: u32, source: i32, tag: i32) {
    let endpoint = endpoint();
    endpoint.progress();
    let queues = endpoint.queues();
    if let Some(entry) = queues.find_unexpected(context, source, tag) {
        let envelope = &queues.unexpected[entry as usize].envelope;
        event::message(event::UNEXPECTED, envelope.source, envelope.tag, envelope.len);
    }
}

/// Start a receive of the message that a matched probe has taken.
///
/// # Safety
/// As `start_recv`.
pub(super) unsafe fn start_matched(envelope: &Envelope, buf: *mut c_void, count: u64, ty: &Rc<Type>) -> Result<Slot> {
    let slot = prepare(buf, count, ty)?;
    endpoint().assign(slot.0, envelope);
    Ok(slot)
}

/// A slot with its buffer described.
fn prepare(buf: *mut c_void, count: u64, ty: &Rc<Type>) -> Result<Slot> {
    let capacity = count * ty.size();
    let mut data = Data::User;
    let (mut addr, mut blocks) = ((buf as u64).wrapping_add_signed(ty.true_lb()), 0);
    if !ty.is_dense() && capacity > 0 {
        match slot::block_list(ty, count, buf, capacity) {
            Some(list) => {
                (addr, blocks) = (list.as_ptr() as u64, list.len() as u32);
                data = Data::Blocks(list);
            }
            None => {
                let packed = vec![0u8; capacity as usize];
                addr = packed.as_ptr() as u64;
                data = Data::Packed(packed);
            }
        }
    }
    let slot = slot::take(Local { receive: Some((ty.clone(), count, buf)), data })?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.addr = addr;
    shared.blocks = blocks;
    shared.capacity = capacity;
    Ok(slot)
}

/// Take a receive back if it has not matched yet; it then completes as cancelled.
pub fn cancel(slot: Slot) {
    let endpoint = endpoint();
    endpoint.progress();
    if slot::with_local(slot, |local| local.receive.is_some()) {
        endpoint.queues().cancel(slot.0);
    }
}
