//! Posting and cancelling receives.

use super::slot::{self, Data, Local, Receive, Slot};
use crate::calls;
use crate::chance;
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::Type;
use crate::errors::{Class, Result, fail};
use crate::failure::Health;
use crate::fast_path::collectives_under_way;
use crate::lock;
use crate::memory::{self, huge};
use crate::monitor;
use crate::p2p::protocol::may_be_announced;
use crate::p2p::{checked, failed, take_in};
use crate::plane::Plane;
use crate::process::endpoint;
use crate::simulate;
use crate::status::Status;
use crate::tool::event;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::endpoint::Want;
use vmpi_shared::matching::cooperative_copy;
use vmpi_shared::matching::envelope::Envelope;
use vmpi_shared::matching::request::{FLAG_ELEMENTS, FLAG_MAPPED, NOBODY};

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
    take_in::look();
    comm.health.check()?;
    let peers = comm.peers();
    let from = if (source as u32) < peers.size() {
        peers.world_rank(source as u32)
    } else if source == consts::ANY_SOURCE {
        NOBODY
    } else {
        return from_no_rank(comm, source);
    };
    let slot = prepare(&comm.health, buf, count, ty, from)?;
    let endpoint = endpoint();
    let queues = endpoint.queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.context = comm.context + plane as u32;
    shared.source = source;
    shared.tag = tag;
    shared.from = from;
    if event::is_wanted() {
        checked::posting(slot, plane, (buf, count, ty), source, tag);
        before_posting(comm, plane, slot, source, tag);
    }
    endpoint.post(slot.0);
    failed::check_posted(slot);
    Ok(slot)
}

/// Before a receive from PROC_NULL, which is complete at once.
///
/// # Errors
/// `Class::Revoked`.
#[inline]
pub fn start_null_recv(comm: &Communicator) -> Result<()> {
    take_in::look();
    comm.health.check()
}

/// A receive from PROC_NULL, or from a rank that there is not.
#[cold]
fn from_no_rank(comm: &Communicator, source: i32) -> Result<Slot> {
    if source == consts::PROC_NULL {
        return slot::null_receive();
    }
    fail(Class::Rank, format!("source {source} is not a rank of a group of {}", comm.peers().size()))
}

/// The short way of a blocking receive, without a request: see `Endpoint::take`. `None`: use `start_recv`.
///
/// # Safety
/// As `start_recv`.
#[inline(always)]
pub unsafe fn take(
    comm: &Communicator,
    buf: *mut c_void,
    count: u64,
    ty: &Type,
    source: i32,
    tag: i32,
) -> Option<Status> {
    if !ty.is_dense() || source == consts::PROC_NULL || lock::is_threaded() || collectives_under_way() {
        return None;
    }
    if event::is_wanted() {
        // SAFETY: passed on.
        return unsafe { take_noted(comm, buf, count, ty, (source, tag)) };
    }
    take_in::look();
    comm.health.check().ok()?;
    let endpoint = endpoint();
    let into = buf.cast::<u8>().wrapping_offset(ty.true_lb() as isize);
    let want = Want { context: comm.context + Plane::User as u32, source, tag, call: calls::CALL_RECV };
    // SAFETY: a dense type: `count` elements are so many bytes from there.
    let taken = unsafe { endpoint.take(&want, into, count * ty.size()) }?;
    let statistics = endpoint.node.rank(endpoint.me);
    slot::add(&statistics.received_messages, 1);
    slot::add(&statistics.received_bytes, taken.len);
    monitor::received(statistics, taken.trace, taken.from, want.context, taken.tag, taken.len);
    Some(Status { source: taken.source, tag: taken.tag, error: 0, bytes: taken.len, cancelled: false })
}

/// The same where the program is checked, or where its choices are written down or those of a record. Others are to know of the receive before its message is taken.
///
/// # Safety
/// As `take`.
#[cold]
unsafe fn take_noted(
    comm: &Communicator,
    buf: *mut c_void,
    count: u64,
    ty: &Type,
    asked: (i32, i32),
) -> Option<Status> {
    if event::has_listeners() || simulate::is_on() {
        return None;
    }
    take_in::look();
    comm.health.check().ok()?;
    let wanted = chance::taking(comm, asked.0, asked.1)?;
    let endpoint = endpoint();
    let into = buf.cast::<u8>().wrapping_offset(ty.true_lb() as isize);
    let context = comm.context + Plane::User as u32;
    let want = Want { context, source: wanted.source, tag: wanted.tag, call: calls::CALL_RECV };
    let room = count * ty.size();
    // SAFETY: a dense type: `count` elements are so many bytes from there.
    let taken = unsafe { endpoint.take_unexpected(&want, into, room).or_else(|| endpoint.take(&want, into, room)) }?;
    let statistics = endpoint.node.rank(endpoint.me);
    slot::add(&statistics.received_messages, 1);
    slot::add(&statistics.received_bytes, taken.len);
    monitor::received(statistics, taken.trace, taken.from, context, taken.tag, taken.len);
    chance::took(asked.0, asked.1, (taken.source, taken.tag));
    checked::taken(ty, (room, asked), &taken);
    Some(Status { source: taken.source, tag: taken.tag, error: 0, bytes: taken.len, cancelled: false })
}

/// A receive is about to be posted, and somebody wants to know that: raise the event if the message that it will take is here already.
#[cold]
fn before_posting(comm: &Communicator, plane: Plane, slot: Slot, source: i32, tag: i32) {
    let context = comm.context + plane as u32;
    simulate::wait::posting(slot.0);
    if chance::is_on() {
        return chance::posting(comm, plane, slot.0);
    }
    if !event::has_listeners() && !simulate::is_on() {
        return;
    }
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
pub(crate) unsafe fn start_matched(
    health: Rc<Health>,
    envelope: &Envelope,
    buf: *mut c_void,
    count: u64,
    ty: &Rc<Type>,
) -> Result<Slot> {
    let slot = prepare(&health, buf, count, ty, envelope.from)?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    (shared.context, shared.source, shared.tag, shared.from) =
        (envelope.context, envelope.source, envelope.tag, envelope.from);
    simulate::wait::posting(slot.0);
    checked::posting(slot, Plane::User, (buf, count, ty), envelope.source, envelope.tag);
    endpoint().assign(slot.0, envelope);
    failed::check_posted(slot);
    Ok(slot)
}

/// A slot with its buffer described, for a message of `from`, if that is known.
#[inline(always)]
fn prepare(health: &Rc<Health>, buf: *mut c_void, count: u64, ty: &Rc<Type>, from: u32) -> Result<Slot> {
    let capacity = count * ty.size();
    if !ty.is_dense() {
        return prepare_elements(health, buf, count, ty, capacity);
    }
    let addr = (buf as u64).wrapping_add_signed(ty.true_lb());
    let flags = if may_be_announced(capacity, from) { flags_of_large(addr, capacity) } else { 0 };
    let slot = slot::take_dense(health)?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.flags |= flags;
    (shared.addr, shared.capacity) = (addr, capacity);
    Ok(slot)
}

/// The flags of a receive into one block of memory, for a message that may be announced.
#[inline(never)]
fn flags_of_large(addr: u64, capacity: u64) -> u32 {
    if !memory::is_wanted() {
        return 0;
    }
    huge::catch_up();
    // This rank fetches by itself what has come, and has help with large ones only.
    if capacity < cooperative_copy::LEAST_BYTES && endpoint().inbox().has_mail() {
        return 0;
    }
    if memory::holds(addr, capacity) { FLAG_MAPPED } else { 0 }
}

/// As `prepare`, for a type whose elements are more than one block of memory.
#[cold]
fn prepare_elements(health: &Rc<Health>, buf: *mut c_void, count: u64, ty: &Rc<Type>, capacity: u64) -> Result<Slot> {
    let mut data = Data::User;
    let (mut addr, mut blocks, mut flags) = ((buf as u64).wrapping_add_signed(ty.true_lb()), 0, 0);
    if capacity > 0 {
        match slot::blocks_to_fill(ty, count, buf, capacity) {
            Some(list) => {
                (addr, blocks) = (list.as_ptr() as u64, list.len() as u32);
                data = Data::Blocks(list);
            }
            None if slot::goes_by_elements() && endpoint().node.header().spread == 0 => flags = FLAG_ELEMENTS,
            None => {
                let packed = Box::new_uninit_slice(capacity as usize);
                addr = packed.as_ptr() as u64;
                data = Data::Packed(packed);
            }
        }
    }
    let slot =
        slot::take(Local { receive: Receive::Elements(ty.clone(), count, buf), data, health: Some(health.clone()) })?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.flags |= flags;
    (shared.addr, shared.blocks, shared.capacity) = (addr, blocks, capacity);
    Ok(slot)
}

/// Take a receive back that has not matched, and forget it.
pub(crate) fn abandon(slot: Slot) {
    if endpoint().queues().cancel(slot.0) {
        let _ = slot::poll(slot);
    }
}

/// Take a receive back if it has not matched yet; it then completes as cancelled.
pub fn cancel(slot: Slot) {
    take_in::take_in_now();
    let endpoint = endpoint();
    endpoint.progress();
    if chance::keeps(slot.0) {
        return;
    }
    if slot::with_local(slot, |local| !matches!(local.receive, Receive::No)) {
        endpoint.queues().cancel(slot.0);
    }
}
