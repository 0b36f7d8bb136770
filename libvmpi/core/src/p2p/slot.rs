//! A message under way: the request slot in the job segment, and what this process alone knows about it.

use crate::chance;
use crate::consts;
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result};
use crate::failure::{self, Health};
use crate::guarded::EntryGuarded;
use crate::memory::huge;
use crate::monitor;
use crate::p2p::checked;
use crate::p2p::protocol::gains_by_being_open;
use crate::process::endpoint;
use crate::simulate;
use crate::status::Status;
use crate::tool::event;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::rc::Rc;
use vmpi_cma::Block;
use vmpi_shared::matching::elements::{LEAST_BLOCK_BYTES, Reach};
use vmpi_shared::matching::envelope::INLINE_BYTES;
use vmpi_shared::matching::request::{FLAG_MAPPED, outcome, state};
use vmpi_shared::mem::checker;
use vmpi_shared::mem::short_copy::short_copy;

/// One message under way, sent or to be received: a request slot in the job segment, owned by this rank.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

/// Where the data of a message lies while it is under way.
#[derive(Default)]
pub(super) enum Data {
    /// In the user's buffer, in one block.
    #[default]
    User,
    /// In the user's buffer, in these blocks; the slot or the envelope points to the list.
    Blocks(Box<[Block]>),
    /// In the user's buffer, scattered: packed part by part as they go (`elements`).
    Elements(Rc<Type>, u64, *const c_void),
    /// Packed here, or to be packed here by who brings it.
    Packed(Box<[MaybeUninit<u8>]>),
}

/// What a slot receives into.
#[derive(Default)]
pub(super) enum Receive {
    /// Nothing: it is no receive.
    #[default]
    No,
    /// One block of memory, where the slot says.
    Dense,
    /// Elements of a type.
    Elements(Rc<Type>, u64, *mut c_void),
}

/// What only this process knows about a slot.
#[derive(Default)]
pub(super) struct Local {
    pub receive: Receive,
    pub data: Data,
    /// Of its communicator.
    pub health: Option<Rc<Health>>,
}

/// By slot index.
static LOCALS: EntryGuarded<Vec<Local>> = EntryGuarded::new(Vec::new());

/// Within this process the kernel finds the blocks of a receive by itself, but a list costs something, too.
const LEAST_OWN_BLOCK_BYTES: u64 = 256;
/// The longest list.
const MAX_BLOCKS: u64 = 4096;

/// Do elements lie in pieces so small that they are to be packed, whoever copies them then?
#[inline]
pub(super) fn is_scattered(ty: &Type, count: u64, total: u64) -> bool {
    !ty.is_dense() && blocks_of(ty, count, 0, total / LEAST_BLOCK_BYTES).is_none()
}

/// May messages go part by part, with a word from both ends? In a job that survives deaths, or is simulated, they are packed first.
pub(super) fn goes_by_elements() -> bool {
    let header = endpoint().node.header();
    header.recovery == 0 && header.simulated == 0
}

/// Where the data of a send lies, for others to copy; `None`: it is to be packed.
pub(super) fn blocks_to_send(ty: &Type, count: u64, buf: *const c_void, total: u64) -> Option<Box<[Block]>> {
    blocks_of(ty, count, buf as u64, MAX_BLOCKS.min(total / LEAST_BLOCK_BYTES))
}

/// Where the data of a receive is to go; `None`: it comes packed, and is unpacked then.
pub(super) fn blocks_to_fill(ty: &Type, count: u64, buf: *const c_void, total: u64) -> Option<Box<[Block]>> {
    blocks_of(ty, count, buf as u64, MAX_BLOCKS.min(total / LEAST_OWN_BLOCK_BYTES))
}

/// The blocks of the elements at `at`, if they are no more than `most`.
fn blocks_of(ty: &Type, count: u64, at: u64, most: u64) -> Option<Box<[Block]>> {
    let mut blocks = Vec::new();
    ty.blocks(count, &mut |offset, len| {
        blocks.push(Block { addr: at.wrapping_add_signed(offset), len });
        blocks.len() as u64 <= most
    });
    (blocks.len() as u64 <= most).then(|| blocks.into_boxed_slice())
}

/// Take a request slot and remember `local` for it.
#[inline]
pub(super) fn take(local: Local) -> Result<Slot> {
    match endpoint().queues().take_slot() {
        Some(index) => Ok(remember(index, local)),
        None => too_many(),
    }
}

#[cold]
fn too_many<T>() -> Result<T> {
    let limit = endpoint().job.config().slots - 1;
    Err(Error::new(Class::NoMem, format!("{limit} messages are under way already, which is the limit of one rank")))
}

/// Take a request slot for a receive into one block of memory.
#[inline]
pub(super) fn take_dense(health: &Rc<Health>) -> Result<Slot> {
    let Some(index) = endpoint().queues().take_slot() else { return too_many() };
    LOCALS.with(|locals| {
        if locals.len() <= index as usize {
            make_room(locals, index);
        }
        // Nothing is left of the message before: `poll_any` takes all of it, and before `poll_eager` there was no more than this.
        let local = &mut locals[index as usize];
        debug_assert!(matches!(local.data, Data::User));
        local.receive = Receive::Dense;
        local.health = Some(health.clone());
    });
    Ok(Slot(index))
}

/// The slot for what must go although there is no other; `None`: it is in use, too.
pub(super) fn take_spare(local: Local) -> Option<Slot> {
    let index = endpoint().queues().take_spare()?;
    Some(remember(index, local))
}

#[inline]
fn remember(index: u32, local: Local) -> Slot {
    LOCALS.with(|locals| {
        if locals.len() <= index as usize {
            make_room(locals, index);
        }
        locals[index as usize] = local;
    });
    Slot(index)
}

#[cold]
fn make_room(locals: &mut Vec<Local>, index: u32) {
    locals.resize_with(index as usize + 1, Local::default);
}

/// How the queues reach elements of this process.
pub(crate) const REACH: Reach = Reach { pack: pack_part, unpack: unpack_part };

/// # Safety
/// `to` has room for `room` bytes.
unsafe fn pack_part(slot: u32, from: u64, to: *mut u8, room: usize) -> bool {
    let sent = LOCALS.with(|locals| match &locals.get(slot as usize)?.data {
        Data::Elements(ty, count, buf) => Some((ty.clone(), *count, *buf)),
        _ => None,
    });
    let Some((ty, count, buf)) = sent else { return false };
    // SAFETY: the send's buffer, which stays until it is complete; the rest is passed on.
    unsafe { datatype::pack_to(&ty, count, buf.cast(), from, to, room) };
    true
}

/// # Safety
/// `from` holds `len` bytes.
unsafe fn unpack_part(slot: u32, at: u64, from: *const u8, len: usize) -> bool {
    let received = LOCALS.with(|locals| match &locals.get(slot as usize)?.receive {
        Receive::Elements(ty, count, buf) => Some((ty.clone(), *count, *buf)),
        _ => None,
    });
    let Some((ty, count, buf)) = received else { return false };
    // SAFETY: the receive's buffer, which stays until it is complete; the rest is passed on.
    unsafe { datatype::unpack(&ty, count, buf.cast(), at, std::slice::from_raw_parts(from, len)) };
    true
}

/// Where the bytes of a send lie.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// In one block of the program's memory.
    Dense,
    /// In several.
    Scattered,
    /// In a copy.
    Packed,
}

pub(crate) fn source_of(slot: Slot) -> Source {
    with_local(slot, |local| match local.data {
        Data::User => Source::Dense,
        Data::Packed(_) => Source::Packed,
        Data::Blocks(_) | Data::Elements(..) => Source::Scattered,
    })
}

/// Does it receive into one block of memory?
pub(crate) fn is_dense_receive(slot: Slot) -> bool {
    with_local(slot, |local| matches!(local.receive, Receive::Dense))
}

/// Change what is remembered for a slot.
pub(super) fn with_local<R>(slot: Slot, f: impl FnOnce(&mut Local) -> R) -> R {
    LOCALS.with(|locals| f(&mut locals[slot.0 as usize]))
}

/// What deaths and revocations mean for the slot's communicator.
pub(crate) fn health_of(slot: Slot) -> Option<Rc<Health>> {
    LOCALS.with(|locals| locals.get(slot.0 as usize)?.health.clone())
}

/// A send to a process that has failed.
pub(super) fn failed_send(outcome: u32, to: u32) -> Result<Slot> {
    let slot = take(Local::default())?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    (shared.state, shared.outcome, shared.from) = (state::COMPLETE, outcome, to);
    Ok(slot)
}

/// A send that is over, and has a request all the same.
pub(super) fn sent(to: u32) -> Result<Slot> {
    failed_send(outcome::GOOD, to)
}

/// Is the operation over? Its slot stays taken until `poll`.
#[inline]
pub fn is_over(slot: Slot) -> bool {
    endpoint().queues().is_over(slot.0)
}

/// Completed? Then the slot is freed and the data is in place. An error is the operation's (truncation, ...).
#[inline]
pub fn poll(slot: Slot) -> Option<Result<Status>> {
    match poll_eager(slot) {
        Some(status) => Some(Ok(status)),
        None => poll_any(slot),
    }
}

/// As `poll`, for most receives: of a message that came with its data and fits into one block of memory. `None`: it is something else.
#[inline]
pub fn poll_eager(slot: Slot) -> Option<Status> {
    let endpoint = endpoint();
    let mut queues = endpoint.queues();
    let shared = &queues.slots[slot.0 as usize];
    let (from, context, bytes, trace) = (shared.from, shared.context, shared.len, shared.trace);
    let (source, tag) = (shared.matched_source, shared.matched_tag);
    if shared.state != state::ARRIVED || shared.outcome != outcome::GOOD || bytes > shared.capacity {
        return None;
    }
    let dense = LOCALS.with(|locals| {
        let local = &mut locals[slot.0 as usize];
        let dense = matches!(local.receive, Receive::Dense);
        if dense {
            // The rest of it is nothing: what is dense needs no list of blocks.
            local.receive = Receive::No;
            local.health = None;
        }
        dense
    });
    if !dense {
        return None;
    }
    let into = shared.addr as *mut u8;
    match shared.remote {
        // SAFETY: the slot holds so many bytes, and the receive buffer, which is the user's to keep valid until now, has room for them.
        0 => unsafe { short_copy(shared.inline.as_ptr(), into, (bytes as usize).min(INLINE_BYTES)) },
        block => {
            if let Some(data) = endpoint.job.block(from, block, bytes) {
                // SAFETY: as above, for a slab block.
                unsafe { std::ptr::copy_nonoverlapping(data.cast_const(), into, bytes as usize) };
            }
            endpoint.job.slab(from).give(block, bytes);
        }
    }
    queues.release_slot(slot.0);
    let statistics = endpoint.node.rank(endpoint.me);
    add(&statistics.received_messages, 1);
    add(&statistics.received_bytes, bytes);
    monitor::received(statistics, trace, from, context, tag, bytes);
    if event::is_wanted() {
        received(slot, context, from, (source, tag), bytes);
        checked::received(slot, trace, from, (tag, bytes, bytes));
    }
    Some(Status { source, tag, error: 0, bytes, cancelled: false })
}

/// A message of the job's rank `from` has been received, and somebody wants to know that.
#[cold]
fn received(slot: Slot, context: u32, from: u32, (source, tag): (i32, i32), bytes: u64) {
    simulate::wait::received(from, bytes);
    chance::received(slot.0, context, source, tag);
    event::message(event::RECEIVED, source, tag, bytes);
}

/// As `poll`, for all others.
#[inline(never)]
fn poll_any(slot: Slot) -> Option<Result<Status>> {
    let endpoint = endpoint();
    let queues = endpoint.queues();
    if !queues.is_over(slot.0) {
        return None;
    }
    let shared = &queues.slots[slot.0 as usize];
    let (what, outcome) = (shared.state, shared.outcome);
    let local = LOCALS.with(|locals| std::mem::take(&mut locals[slot.0 as usize]));
    let mut result = match (&local.receive, what) {
        (Receive::No, _) if shared.matched_source == consts::PROC_NULL => Ok(Status::PROC_NULL),
        (Receive::No, _) => Ok(Status::EMPTY),
        (_, state::CANCELLED) => {
            chance::cancelled(slot.0);
            Ok(Status { cancelled: true, ..Status::EMPTY })
        }
        (receive, _) => {
            let bytes = shared.len.min(shared.capacity);
            let status =
                Status { source: shared.matched_source, tag: shared.matched_tag, error: 0, bytes, cancelled: false };
            let (from, block, len) = (shared.from, shared.remote, shared.len);
            if what == state::ARRIVED {
                let data = if block == 0 {
                    Some(shared.inline.as_ptr())
                } else {
                    endpoint.job.block(from, block, len).map(|p| p.cast_const())
                };
                if let Some(data) = data {
                    // SAFETY: `data` holds the payload; the receive buffer is the user's to keep valid until now.
                    unsafe { place(receive, shared.addr, std::slice::from_raw_parts(data, bytes as usize)) };
                    if matches!(receive, Receive::Dense)
                        && shared.flags & FLAG_MAPPED == 0
                        && gains_by_being_open(bytes)
                    {
                        huge::note_copied(shared.addr, bytes);
                    }
                }
                if block != 0 {
                    endpoint.job.slab(from).give(block, len);
                }
            } else if let Data::Packed(packed) = &local.data
                && outcome == outcome::GOOD
            {
                checker::written(packed.as_ptr() as u64, bytes);
                // SAFETY: as above; so many bytes have been brought.
                unsafe { place(receive, shared.addr, packed[..bytes as usize].assume_init_ref()) };
            } else if outcome == outcome::GOOD {
                brought(receive, &local.data, shared.addr, bytes);
            }
            if what != state::ARRIVED && matches!(receive, Receive::Dense) && shared.flags & FLAG_MAPPED == 0 {
                huge::note(shared.addr, bytes);
            }
            let statistics = endpoint.node.rank(endpoint.me);
            add(&statistics.received_messages, 1);
            add(&statistics.received_bytes, bytes);
            monitor::received(statistics, shared.trace, from, shared.context, status.tag, bytes);
            if event::is_wanted() {
                received(slot, shared.context, from, (status.source, status.tag), bytes);
                checked::received(slot, shared.trace, from, (status.tag, bytes, len));
            }
            if len > shared.capacity {
                Err(Error::new(
                    Class::Truncate,
                    format!(
                        "the message from rank {} with tag {} has {len} bytes, the receive buffer has {}",
                        status.source, status.tag, shared.capacity
                    ),
                )
                .of_receive(status))
            } else {
                failure::check_received(shared.flags, shared.context, shared.matched_tag, local.health.as_ref())
                    .map(|()| status)
            }
        }
    };
    if event::is_wanted() {
        checked::ended(slot);
    }
    if let Some(error) = failure::error_of(outcome, shared.from) {
        result = Err(error);
    } else if outcome != outcome::GOOD {
        let given_up = local.health.as_ref().and_then(|h| failure::check_copied(shared.context, shared.tag, h).err());
        if let Some(error) = given_up {
            endpoint.queues().release_slot(slot.0);
            return Some(Err(error));
        }
        let errno = std::io::Error::from_raw_os_error(failure::errno_of(outcome));
        result = Err(Error::new(Class::Other, format!("the data could not be copied between the two ranks: {errno}")));
    }
    endpoint.queues().release_slot(slot.0);
    Some(result)
}

/// Tell that so many bytes are in the program's buffer now, whoever has written them.
fn brought(receive: &Receive, data: &Data, addr: u64, bytes: u64) {
    match (receive, data) {
        (Receive::Dense, _) => checker::written(addr, bytes),
        (_, Data::Blocks(blocks)) => {
            let mut left = bytes;
            for block in blocks {
                checker::written(block.addr, block.len.min(left));
                left = left.saturating_sub(block.len);
            }
        }
        // This rank has unpacked them.
        _ => {}
    }
}

/// Put received bytes where they belong; `addr`: where the slot says.
///
/// # Safety
/// The receive's buffer has room for them.
unsafe fn place(receive: &Receive, addr: u64, data: &[u8]) {
    match receive {
        Receive::No => {}
        // SAFETY: as promised.
        Receive::Dense => unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), addr as *mut u8, data.len()) },
        // SAFETY: passed on.
        Receive::Elements(ty, count, buf) => unsafe {
            datatype::unpack(ty, *count, buf.cast(), 0, data);
        },
    }
}

/// A receive from MPI_PROC_NULL: complete at once.
pub(super) fn null_receive() -> Result<Slot> {
    let slot = take(Local::default())?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.state = state::COMPLETE;
    shared.matched_source = consts::PROC_NULL;
    Ok(slot)
}

/// Add to a counter that only this rank writes.
#[inline]
pub(super) fn add(counter: &std::sync::atomic::AtomicU64, amount: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    counter.store(counter.load(Relaxed) + amount, Relaxed);
}

const _: () = assert!(INLINE_BYTES >= 64);
