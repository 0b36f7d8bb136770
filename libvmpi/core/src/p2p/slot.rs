//! A message under way: the request slot in the job segment, and what this process alone knows about it.

use super::huge;
use crate::consts;
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result};
use crate::ft::{self, Health};
use crate::giant::Giant;
use crate::monitor;
use crate::process::endpoint;
use crate::request;
use crate::status::Status;
use crate::tool::event;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_cma::Block;
use vmpi_shared::matching::envelope::INLINE_BYTES;
use vmpi_shared::matching::request::{FLAG_MAPPED, outcome, state};

/// One message under way, sent or to be received: a request slot in the job segment, owned by this rank.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

/// Where the data of a message lies while it is under way.
#[derive(Default)]
pub(super) enum Data {
    /// In the user's buffer, in one block.
    #[default]
    User,
    /// In the user's buffer, in these blocks; the slot points to the list.
    #[expect(dead_code, reason = "held for its address, which the slot or the envelope names")]
    Blocks(Box<[Block]>),
    /// Packed here.
    Packed(Vec<u8>),
}

/// What only this process knows about a slot.
#[derive(Default)]
pub(super) struct Local {
    pub receive: Option<(Rc<Type>, u64, *mut c_void)>,
    pub data: Data,
    /// Of its communicator.
    pub health: Option<Rc<Health>>,
}

/// By slot index.
static LOCALS: Giant<Vec<Local>> = Giant::new(Vec::new());

/// Messages with more blocks than this, or smaller ones on average, are packed instead.
const MAX_BLOCKS: usize = 4096;
const MIN_BLOCK_BYTES: u64 = 256;

/// The largest block list worth publishing for single copy, or none.
pub(super) fn block_list(ty: &Type, count: u64, buf: *const c_void, total: u64) -> Option<Box<[Block]>> {
    let mut blocks = Vec::new();
    ty.blocks(count, &mut |offset, len| {
        blocks.push(Block { addr: (buf as u64).wrapping_add_signed(offset), len });
        blocks.len() <= MAX_BLOCKS
    });
    (blocks.len() <= MAX_BLOCKS && blocks.len() as u64 * MIN_BLOCK_BYTES <= total).then(|| blocks.into_boxed_slice())
}

/// Take a request slot and remember `local` for it.
pub(super) fn take(local: Local) -> Result<Slot> {
    let Some(index) = endpoint().queues().take_slot() else {
        let limit = endpoint().job.config().slots - 1;
        return Err(Error::new(
            Class::NoMem,
            format!("{limit} messages are under way already, which is the limit of one rank"),
        ));
    };
    Ok(remember(index, local))
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
            locals.resize_with(index as usize + 1, Local::default);
        }
        locals[index as usize] = local;
    });
    Slot(index)
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

/// Is the operation over? Its slot stays taken until `poll`.
#[inline]
pub fn is_over(slot: Slot) -> bool {
    endpoint().queues().is_over(slot.0)
}

/// Completed? Then the slot is freed and the data is in place. An error is the operation's (truncation, ...).
pub fn poll(slot: Slot) -> Option<Result<Status>> {
    let endpoint = endpoint();
    let queues = endpoint.queues();
    if !queues.is_over(slot.0) {
        return None;
    }
    let shared = &queues.slots[slot.0 as usize];
    let (what, outcome) = (shared.state, shared.outcome);
    let local = LOCALS.with(|locals| std::mem::take(&mut locals[slot.0 as usize]));
    let mut result = match (&local.receive, what) {
        (None, _) if shared.matched_source == consts::PROC_NULL => Ok(Status::PROC_NULL),
        (None, _) => Ok(Status::EMPTY),
        (Some(_), state::CANCELLED) => Ok(Status { cancelled: true, ..Status::EMPTY }),
        (Some((ty, count, buf)), _) => {
            let bytes = shared.len.min(shared.capacity);
            let status =
                Status { source: shared.matched_source, tag: shared.matched_tag, error: 0, bytes, cancelled: false };
            let (from, block, len) = (shared.from, shared.remote, shared.len);
            let arrived = what == state::ARRIVED;
            if arrived {
                let data = if block == 0 {
                    Some(shared.inline.as_ptr())
                } else {
                    endpoint.job.block(from, block, len).map(|p| p.cast_const())
                };
                if let Some(data) = data {
                    // SAFETY: `data` holds the payload; the receive buffer is the user's to keep valid until now.
                    unsafe { place(ty, *count, *buf, std::slice::from_raw_parts(data, bytes as usize)) };
                }
                if block != 0 {
                    endpoint.job.slab(from).give(block, len);
                }
            } else if let Data::Packed(packed) = &local.data {
                // SAFETY: as above.
                unsafe { place(ty, *count, *buf, &packed[..bytes as usize]) };
            } else if ty.is_dense() && shared.flags & FLAG_MAPPED == 0 {
                huge::note((*buf as u64).wrapping_add_signed(ty.true_lb()), bytes);
            }
            let statistics = endpoint.node.rank(endpoint.me);
            add(&statistics.received_messages, 1);
            add(&statistics.received_bytes, bytes);
            monitor::received(statistics, shared.trace, from, shared.context, status.tag, bytes);
            event::message(event::RECEIVED, status.source, status.tag, bytes);
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
                ft::check_received(shared.flags, shared.context, shared.matched_tag, local.health.as_ref())
                    .map(|()| status)
            }
        }
    };
    if let Some(error) = ft::error_of(outcome, shared.from) {
        result = Err(error);
    } else if outcome != outcome::GOOD {
        let given_up = local.health.as_ref().and_then(|h| ft::check_copied(shared.context, shared.tag, h).err());
        if let Some(error) = given_up {
            endpoint.queues().release_slot(slot.0);
            return Some(Err(error));
        }
        let errno = std::io::Error::from_raw_os_error((outcome & 0xffff) as i32);
        result = Err(Error::new(Class::Other, format!("the data could not be copied between the two ranks: {errno}")));
    }
    endpoint.queues().release_slot(slot.0);
    Some(result)
}

/// Put received bytes where they belong.
///
/// # Safety
/// `buf` has room for `count` elements.
#[inline]
unsafe fn place(ty: &Type, count: u64, buf: *mut c_void, data: &[u8]) {
    if ty.is_dense() {
        // SAFETY: dense means one block from true_lb on; `data` is no longer than the buffer.
        unsafe {
            let to = buf.cast::<u8>().offset(ty.true_lb() as isize);
            std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len());
        }
    } else {
        // SAFETY: passed on.
        unsafe { datatype::unpack(ty, count, buf.cast(), 0, data) };
    }
}

/// A receive from MPI_PROC_NULL: complete at once.
pub(super) fn null_receive() -> Result<Slot> {
    let slot = take(Local { receive: None, ..Local::default() })?;
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.state = state::COMPLETE;
    shared.matched_source = consts::PROC_NULL;
    Ok(slot)
}

/// Suspend until every slot is complete (for blocking code that is not a schedule); frees them; first error.
pub fn wait_all(slots: &[Slot]) -> Result<()> {
    request::wait_slots(slots, request::CALL_COLLECTIVE);
    let mut result = Ok(());
    for slot in slots {
        if let Some(Err(error)) = poll(*slot)
            && result.is_ok()
        {
            result = Err(error);
        }
    }
    result
}

/// Add to a counter that only this rank writes.
#[inline]
pub(super) fn add(counter: &std::sync::atomic::AtomicU64, amount: u64) {
    use std::sync::atomic::Ordering::Relaxed;
    counter.store(counter.load(Relaxed) + amount, Relaxed);
}

const _: () = assert!(INLINE_BYTES >= 64);
