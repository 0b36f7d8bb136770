//! Sending: which peer, how large, which way.

use super::slot::{self, Data, Local, Slot};
use super::{Mode, buffered, checked};
use crate::chance;
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use crate::failure;
use crate::memory::{self, huge};
use crate::monitor;
use crate::p2p::protocol::{gains_by_being_open, is_eager_to};
use crate::p2p::take_in;
use crate::plane::{Plane, USER_TAG_BIT};
use crate::process::endpoint;
use crate::simulate;
use crate::tool::event;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::matching::envelope::{Envelope, FLAG_ELEMENTS, FLAG_MAPPED, FLAG_SYNC, INLINE_BYTES, kind};
use vmpi_shared::matching::request::{self, state};
use vmpi_shared::mem::short_copy::short_copy;
use vmpi_shared::mem::slab::{LARGEST_BYTES, PART_BYTES};

/// What is sent: `count` elements of `ty` at `at`, `bytes` in all.
#[derive(Copy, Clone)]
struct Buffer<'a> {
    at: *const c_void,
    count: u64,
    ty: &'a Rc<Type>,
    bytes: u64,
}

impl Buffer<'_> {
    /// Where the first byte is.
    fn start(&self) -> u64 {
        (self.at as u64).wrapping_add_signed(self.ty.true_lb())
    }
}

/// Start a send to `dest` (rank in `comm.peers()`, or PROC_NULL). `None`: already complete.
///
/// # Errors
/// `Class::Buffer` if a buffered send finds no room in the attached buffer; `Class::NoMem` if too many are under way.
///
/// # Safety
/// `buf` must hold `count` elements and stay unchanged until the slot completes.
#[allow(clippy::too_many_arguments)]
pub unsafe fn start_send(
    comm: &Communicator,
    plane: Plane,
    buf: *const c_void,
    count: u64,
    ty: &Rc<Type>,
    dest: i32,
    tag: i32,
    mut mode: Mode,
) -> Result<Option<Slot>> {
    let endpoint = endpoint();
    let peers = comm.peers();
    if dest as u32 >= peers.size() {
        return to_no_rank(comm, dest).map(|()| None);
    }
    let to = peers.world_rank(dest as u32);
    endpoint.expect(to);
    take_in::look();
    if let Some(outcome) = failure::doomed_send(&comm.health, plane, tag, to)? {
        return slot::failed_send(outcome, to).map(Some);
    }
    let total = count * ty.size();
    let data = Buffer { at: buf, count, ty, bytes: total };
    let owner = if mode == Mode::Buffered { Some(buffered::reserve(comm, total)?) } else { None };
    let mut envelope = Envelope::EMPTY;
    envelope.context = comm.context + plane as u32;
    envelope.from = endpoint.me;
    envelope.source = comm.rank as i32;
    envelope.tag = tag;
    envelope.len = total;
    let statistics = endpoint.node.rank(endpoint.me);
    slot::add(&statistics.sent_messages, 1);
    slot::add(&statistics.sent_bytes, total);
    envelope.trace = monitor::sent(statistics, comm, plane, tag, to, total);
    if event::is_wanted() {
        mode = checked::sending(plane, &mut envelope, (buf, count, ty), dest, mode);
        mode = sending(mode, plane, (dest, to), tag, total);
    }

    // SAFETY: the caller's buffer, as promised.
    if unsafe { eager(&mut envelope, to, data, mode != Mode::Buffered) } {
        if mode == Mode::Buffered {
            endpoint.deliver(to, &envelope);
        } else if mode >= Mode::Synchronous || !endpoint.deliver_unless_crowded(to, &envelope) {
            // Where memory for unexpected messages ends a receiver makes its senders wait until theirs is matched.
            return acknowledged(comm, &mut envelope, to, mode).map(Some);
        }
        return Ok(None);
    }
    // SAFETY: as above.
    unsafe { send_announced(comm, &mut envelope, to, data, (mode, owner)) }
}

/// A message is sent, and somebody wants to know that, or has a word in how.
#[cold]
fn sending(mode: Mode, plane: Plane, (dest, to): (i32, u32), tag: i32, bytes: u64) -> Mode {
    event::message(event::SENT, dest, tag, bytes);
    if plane == Plane::User && chance::is_on() {
        chance::before_sending(to);
    }
    let left_open = mode == Mode::Standard && plane == Plane::User && tag & USER_TAG_BIT == 0;
    if left_open && chance::wishes_synchronous() { Mode::Synchronous } else { mode }
}

/// Send what does not go at once.
///
/// # Safety
/// As `start_send`.
#[inline(never)]
unsafe fn send_announced(
    comm: &Communicator,
    envelope: &mut Envelope,
    to: u32,
    buffer: Buffer<'_>,
    (mode, owner): (Mode, Option<buffered::Owner>),
) -> Result<Option<Slot>> {
    let endpoint = endpoint();
    // SAFETY: as promised.
    let data = unsafe { announce(envelope, to, buffer, owner.is_some()) };
    simulate::wait::may_wait(!is_eager_to(buffer.bytes, to));
    if mode == Mode::Synchronous {
        envelope.flags |= FLAG_SYNC;
    }
    let slot = open(comm, envelope, to, data)?;
    let queues = endpoint.queues();
    let shared = &mut queues.slots[slot.0 as usize];
    (shared.addr, shared.blocks, shared.capacity) = (envelope.addr(), envelope.blocks(), buffer.bytes);
    if envelope.flags & FLAG_ELEMENTS != 0 {
        shared.flags |= request::FLAG_ELEMENTS;
    }
    if buffer.bytes <= PART_BYTES
        && mode != Mode::Synchronous
        && endpoint.job.chunks().is_scarce()
        && is_eager_to(buffer.bytes, to)
    {
        // No memory was left to copy it to.
        shared.flags |= request::FLAG_CROWDED;
    }
    endpoint.deliver(to, envelope);
    if let Some(owner) = owner {
        buffered::detach(owner, slot, buffer.bytes);
        return Ok(None);
    }
    Ok(Some(slot))
}

/// A send to PROC_NULL, or to a rank that there is not.
#[cold]
fn to_no_rank(comm: &Communicator, dest: i32) -> Result<()> {
    if dest == consts::PROC_NULL {
        take_in::look();
        return comm.health.check();
    }
    fail(Class::Rank, format!("destination {dest} is not a rank of a group of {}", comm.peers().size()))
}

/// Deliver a small message whose receiver says when it has taken it.
#[cold]
fn acknowledged(comm: &Communicator, envelope: &mut Envelope, to: u32, mode: Mode) -> Result<Slot> {
    if mode == Mode::Noted && endpoint().deliver_unless_crowded(to, envelope) {
        return slot::sent(to).inspect(|slot| checked::opened(*slot));
    }
    simulate::wait::may_wait(mode == Mode::Synchronous);
    let slot = open(comm, envelope, to, Data::User)?;
    let shared = &mut endpoint().queues().slots[slot.0 as usize];
    // For who asks what it waits for.
    shared.capacity = envelope.len;
    if mode != Mode::Synchronous {
        shared.flags |= request::FLAG_CROWDED;
    }
    envelope.flags |= FLAG_SYNC;
    endpoint().deliver(to, envelope);
    Ok(slot)
}

/// The request of a send that waits for an answer; the envelope names it.
fn open(comm: &Communicator, envelope: &mut Envelope, to: u32, data: Data) -> Result<Slot> {
    let slot = slot::take(Local { data, health: Some(comm.health.clone()), ..Local::default() })?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.state = state::SENT;
    (shared.context, shared.from, shared.tag) = (envelope.context, to, envelope.tag);
    envelope.request = slot.0;
    if event::is_wanted() {
        checked::opened(slot);
    }
    Ok(slot)
}

/// Is it copied once all the same, because the others reach the buffer by themselves? It is noted where that would pay.
#[inline]
fn is_open(envelope: &mut Envelope, to: u32, buffer: Buffer<'_>) -> bool {
    if !gains_by_being_open(buffer.bytes) || !buffer.ty.is_dense() || endpoint().node.is_remote(to) {
        return false;
    }
    if memory::holds(buffer.start(), buffer.bytes) {
        envelope.flags |= FLAG_MAPPED;
        return true;
    }
    huge::note_copied(buffer.start(), buffer.bytes);
    false
}

/// Is it packed and unpacked whichever way it goes on this node? A slab block then saves the copy between the two, and the handshake.
#[cold]
fn is_packed_anyway(to: u32, buffer: Buffer<'_>) -> bool {
    !simulate::is_on() && !endpoint().node.is_remote(to) && slot::is_scattered(buffer.ty, buffer.count, buffer.bytes)
}

/// Put a small payload into the envelope or a slab block. False if it is too large or there is no block. `may_stay`: the buffer is kept until the message is complete.
///
/// # Safety
/// `buffer` holds what it says.
#[inline(always)]
unsafe fn eager(envelope: &mut Envelope, to: u32, buffer: Buffer<'_>, may_stay: bool) -> bool {
    if buffer.bytes > 16 || !buffer.ty.is_dense() {
        // SAFETY: as promised.
        return unsafe { eager_any(envelope, to, buffer, may_stay) };
    }
    envelope.kind = kind::INLINE;
    let from = buffer.at.cast::<u8>().wrapping_offset(buffer.ty.true_lb() as isize);
    // SAFETY: the body has room for so many bytes; the source is the caller's.
    unsafe { short_copy(from, envelope.body.as_mut_ptr(), buffer.bytes as usize) };
    true
}

/// As `eager`, for what is more than a number or two.
#[inline(never)]
unsafe fn eager_any(envelope: &mut Envelope, to: u32, buffer: Buffer<'_>, may_stay: bool) -> bool {
    let Buffer { at, count, ty, bytes } = buffer;
    let endpoint = endpoint();
    let target = if bytes <= INLINE_BYTES as u64 {
        envelope.kind = kind::INLINE;
        envelope.body.as_mut_ptr()
    } else if is_eager_to(bytes, to) && !(may_stay && is_open(envelope, to, buffer))
        || (bytes <= LARGEST_BYTES && is_packed_anyway(to, buffer))
    {
        let slab = endpoint.job.slab(endpoint.me);
        let Some(block) = slab.take_or_put(endpoint.me, bytes) else { return false };
        envelope.kind = kind::SLAB;
        envelope.set_addr(block);
        endpoint.warmth.written(bytes);
        slab.block(block, bytes).expect("own block")
    } else {
        return false;
    };
    if bytes == 0 {
        return true;
    }
    // SAFETY: the target has room for `bytes` bytes; the source is the caller's.
    unsafe {
        if ty.is_dense() {
            let from = at.cast::<u8>().offset(ty.true_lb() as isize);
            std::ptr::copy_nonoverlapping(from, target, bytes as usize);
        } else {
            datatype::pack(ty, count, at.cast(), 0, std::slice::from_raw_parts_mut(target, bytes as usize));
        }
    }
    true
}

/// Describe where a large payload lies; if it is scattered into small pieces, only this rank knows that, or it is packed first. `must_copy`: the buffer is not kept.
///
/// # Safety
/// `buffer` holds what it says.
unsafe fn announce(envelope: &mut Envelope, to: u32, buffer: Buffer<'_>, must_copy: bool) -> Data {
    let Buffer { at, count, ty, bytes } = buffer;
    envelope.kind = kind::RTS;
    if !must_copy {
        if ty.is_dense() {
            envelope.set_addr(buffer.start());
            if envelope.flags & FLAG_MAPPED == 0 {
                if memory::holds(envelope.addr(), bytes) {
                    envelope.flags |= FLAG_MAPPED;
                } else {
                    huge::note(envelope.addr(), bytes);
                }
            }
            return Data::User;
        }
        if let Some(blocks) = slot::blocks_to_send(ty, count, at, bytes) {
            envelope.set_addr(blocks.as_ptr() as u64);
            envelope.set_blocks(blocks.len() as u32);
            return Data::Blocks(blocks);
        }
        if slot::goes_by_elements() && !endpoint().node.is_remote(to) {
            envelope.flags |= FLAG_ELEMENTS;
            return Data::Elements(ty.clone(), count, at);
        }
    }
    let mut packed = Box::new_uninit_slice(bytes as usize);
    // SAFETY: the caller's buffer, as promised.
    unsafe { datatype::pack_to(ty, count, at.cast(), 0, packed.as_mut_ptr().cast(), packed.len()) };
    envelope.set_addr(packed.as_ptr() as u64);
    Data::Packed(packed)
}
