//! Windows in virtual time (`vmpirun --simulate`).
//!
//! An operation travels to its target as a message of its bytes, is done when it is there, and is answered; no target takes part, as where the network does it.
//! What it does is done by its origin at that time (`simulate::operations`), so that nobody sees it earlier or later than the simulated machine would show it. Only
//! puts and gets that nobody else's access can meet (between fences, between MPI_Win_start and MPI_Win_complete, under an exclusive lock) are done at once:
//! they take their time all the same, and cost fewer switches.
//!
//! MPI_Win_post and MPI_Win_complete are messages without bytes. A lock is a word to its target and back, and is given in the order of virtual time (`locks`);
//! MPI_Win_lock_all is one to the first member.

#![allow(unsafe_code)]

mod locks;

use super::checked::Extent;
use super::epoch::{Access, Held};
use super::operation::Operation;
use super::place::Spot;
use super::step::{self, Basic, Operand};
use super::{Reach, Window};
use crate::calls::CALL_WINDOW;
use crate::comm::Communicator;
use crate::consts::{self, dt};
use crate::datatype;
use crate::errors::{Class, Result};
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::request;
use crate::rma::local::Local;
use crate::simulate::operations::{Deed, operate};
use crate::simulate::wait::eager_limit;
use locks::{ALL, Locks, Wish};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicU32;
use vmpi_cma::{Block, CopyError};
use vmpi_shared::endpoint::transfer::copy_blocks;
use vmpi_shared::matching::envelope::{FLAG_DONE, FLAG_UNANSWERED};
use vmpi_shared::simulate::Grant;
use vmpi_shared::window::Window as Control;

const TAG_POSTED: i32 = 1;
const TAG_COMPLETED: i32 = 2;

/// What a window has besides, in virtual time.
pub(super) struct Simulated {
    /// In the window's segment.
    locks: &'static [AtomicU32],
    /// Words of MPI_Win_complete that MPI_Win_wait waits for.
    exposed: RefCell<Vec<Slot>>,
    /// Words to others that may not have left.
    sent: RefCell<Vec<Slot>>,
}

/// Bytes of the window's segment for it, behind `data` of memory.
pub(super) fn segment_bytes(members: u32, data: u64) -> u64 {
    locks_at(data).saturating_add(4 * Locks::words(members) as u64)
}

fn locks_at(data: u64) -> u64 {
    data.checked_next_multiple_of(64).unwrap_or(u64::MAX)
}

impl Simulated {
    /// `data`: bytes of memory in the segment before.
    pub fn new(control: &Control, members: u32, data: u64) -> Simulated {
        let (at, words) = (control.data(locks_at(data)).cast::<AtomicU32>(), Locks::words(members));
        // SAFETY: `segment_bytes` has made room for as many words, which are zeros at first and used as atomics by all. The window stays until all its operations
        // are over, and nobody else uses them.
        let locks = unsafe { std::slice::from_raw_parts(at, words) };
        Simulated { locks, exposed: RefCell::default(), sent: RefCell::default() }
    }
}

/// Copy between this process and the target's blocks. What is wrong, as the system's error number.
///
/// # Safety
/// `here` is memory of this process, for writing where `to_target` is false.
unsafe fn copy(reach: Reach, here: Block, blocks: &[Block], to_target: bool) -> std::result::Result<(), i32> {
    let copied = match reach {
        Reach::Here { shift } => {
            let there: Vec<Block> =
                blocks.iter().map(|block| Block { addr: block.addr.wrapping_add(shift), len: block.len }).collect();
            // SAFETY: the caller's promise; the target's memory is there as its owner promised.
            unsafe {
                match to_target {
                    true => copy_blocks(&there, &[here]),
                    false => copy_blocks(&[here], &there),
                };
            }
            return Ok(());
        }
        // SAFETY: the caller's promise.
        Reach::Copy { pid } => unsafe {
            match to_target {
                true => vmpi_cma::write(pid, &[here], blocks),
                false => vmpi_cma::read(pid, &[here], blocks),
            }
        },
        Reach::Far | Reach::Ask => return Err(libc::EOPNOTSUPP),
    };
    copied.map(drop).map_err(|error| match error {
        CopyError::NoSuchProcess { .. } => libc::ESRCH,
        CopyError::Fault { .. } | CopyError::Impossible { .. } => libc::EFAULT,
        _ => libc::EIO,
    })
}

fn block_of(bytes: &mut [u8]) -> Block {
    Block { addr: bytes.as_mut_ptr() as u64, len: bytes.len() as u64 }
}

/// Nothing is granted by what only moves data; what was wrong is told with the answer.
fn told(errno: &Cell<i32>, done: std::result::Result<(), i32>) -> Vec<Grant> {
    errno.set(done.err().unwrap_or(0));
    Vec::new()
}

impl Window {
    pub(super) fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Can nobody else's access meet one of this member's in the memory of `target`?
    pub(super) fn is_alone_at(&self, target: u32) -> bool {
        match &self.epoch.borrow().access {
            Access::Fence { .. } | Access::Started { .. } => true,
            Access::Locks(held) => matches!(held.get(&target), Some(Held { exclusive: Some(true) })),
            Access::All { .. } | Access::None => false,
        }
    }

    /// Begin an operation. `deed`: what is to be done there, by its request and where it says what went wrong.
    fn begin_simulated(
        &self,
        target: u32,
        bytes: (u64, u64),
        flags: u8,
        left: bool,
        deed: impl FnOnce(u32, Rc<Cell<i32>>) -> Option<Deed>,
    ) -> Result<Rc<Operation>> {
        let to = self.comm.local.world_rank(target);
        let slot = match p2p::ask::open(to, false) {
            Err(error) if error.class == Class::NoMem => {
                self.finish(None, Extent::Target)?;
                // A lock is given back whatever else there is no room for.
                p2p::ask::open(to, false).or_else(|error| p2p::ask::open_spare(to).ok_or(error))?
            }
            slot => slot?,
        };
        let operation = Operation { left, ..Operation::new(target, slot, flags & FLAG_UNANSWERED != 0) };
        let deed = deed(slot.0, operation.errno.clone());
        operate(to, slot.0, bytes, flags, deed);
        self.under_way(operation)
    }

    /// So many bytes have been put to the target (or, `back`, got from there) already: that takes its time.
    pub(super) fn take_time(&self, target: u32, bytes: u64, back: bool) -> Result<()> {
        let bytes = if back { (0, bytes) } else { (bytes, 0) };
        self.begin_simulated(target, bytes, FLAG_DONE, !back, |_, _| None).map(drop)
    }

    fn grant(comm: &Communicator, wish: &Wish) -> Grant {
        let target = if wish.target == ALL { 0 } else { wish.target };
        let world = |member| comm.local.world_rank(member);
        Grant { target: world(target), to: world(wish.member), request: wish.request }
    }

    fn ask_for_lock(&self, simulated: &Simulated, target: u32, exclusive: bool) -> Result<()> {
        let (comm, words, member) = (self.comm.clone(), simulated.locks, self.rank());
        let to = if target == ALL { 0 } else { target };
        let asked = self.begin_simulated(to, (0, 0), FLAG_UNANSWERED, false, |request, _| {
            Some(Box::new(move || {
                let wish = Wish { member, target, exclusive, request };
                let is_held = Locks::new(words).acquire(wish);
                if is_held { vec![Self::grant(&comm, &wish)] } else { Vec::new() }
            }))
        })?;
        self.await_far(&[asked])
    }

    /// What has been begun there is over, and its answer come.
    fn release_lock(&self, simulated: &Simulated, target: u32, exclusive: bool) -> Result<()> {
        let (comm, words) = (self.comm.clone(), simulated.locks);
        let to = if target == ALL { 0 } else { target };
        let deed = move || Locks::new(words).release(target, exclusive).iter().map(|w| Self::grant(&comm, w)).collect();
        self.begin_simulated(to, (0, 0), 0, true, |_, _| Some(Box::new(deed))).map(drop)
    }
}

impl Simulated {
    /// MPI_Win_lock.
    pub fn lock(&self, window: &Window, target: u32, exclusive: bool) -> Result<()> {
        window.ask_for_lock(self, target, exclusive)
    }

    /// MPI_Win_unlock: everything at the target is over then, and the lock is on its way back.
    pub fn unlock(&self, window: &Window, target: u32, exclusive: bool) -> Result<()> {
        let settled = window.finish(Some(target), Extent::Target);
        settled.and(window.release_lock(self, target, exclusive))
    }

    pub fn lock_all(&self, window: &Window) -> Result<()> {
        window.ask_for_lock(self, ALL, false)
    }

    pub fn unlock_all(&self, window: &Window) -> Result<()> {
        let settled = window.finish(None, Extent::Target);
        settled.and(window.release_lock(self, ALL, false))
    }

    fn tell(&self, window: &Window, member: u32, tag: i32) -> Result<()> {
        self.sent.borrow_mut().retain(|slot| p2p::poll(*slot).is_none());
        let (ty, nothing) = (datatype::get(dt::BYTE)?, std::ptr::null());
        // SAFETY: no bytes.
        let sent =
            unsafe { p2p::start_send(&window.comm, Plane::User, nothing, 0, &ty, member as i32, tag, Mode::Standard)? };
        self.sent.borrow_mut().extend(sent);
        Ok(())
    }

    fn words_of(&self, window: &Window, members: &[u32], tag: i32) -> Result<Vec<Slot>> {
        let (ty, nothing) = (datatype::get(dt::BYTE)?, std::ptr::null_mut());
        // SAFETY: no bytes.
        let word =
            |member: &u32| unsafe { p2p::start_recv(&window.comm, Plane::User, nothing, 0, &ty, *member as i32, tag) };
        members.iter().map(word).collect()
    }

    /// MPI_Win_post.
    pub fn post(&self, window: &Window, origins: &[u32], assert: i32) -> Result<()> {
        *self.exposed.borrow_mut() = self.words_of(window, origins, TAG_COMPLETED)?;
        if assert & consts::MODE_NOCHECK != 0 {
            return Ok(());
        }
        origins.iter().try_for_each(|origin| self.tell(window, *origin, TAG_POSTED))
    }

    /// MPI_Win_start: with MPI_MODE_NOCHECK, which MPI_Win_post has then, too, there is nothing to wait for.
    pub fn start(&self, window: &Window, targets: &[u32], assert: i32) -> Result<()> {
        if assert & consts::MODE_NOCHECK != 0 {
            return Ok(());
        }
        await_words(&self.words_of(window, targets, TAG_POSTED)?)
    }

    /// MPI_Win_complete.
    pub fn complete(&self, window: &Window, targets: &[u32]) -> Result<()> {
        let settled = window.finish(None, Extent::Target);
        settled.and(targets.iter().try_for_each(|target| self.tell(window, *target, TAG_COMPLETED)))
    }

    /// MPI_Win_wait.
    pub fn wait(&self) -> Result<()> {
        await_words(&self.exposed.take())
    }

    /// Would that not wait? MPI_Win_test.
    pub fn is_completed(&self) -> bool {
        self.exposed.borrow().iter().all(|slot| p2p::is_over(*slot))
    }

    /// All that this member has told others has left.
    pub fn close(&self, window: &Window) -> Result<()> {
        window.finish(None, Extent::Target)?;
        await_words(&self.sent.take())
    }
}

fn await_words(slots: &[Slot]) -> Result<()> {
    request::wait_slots(slots, CALL_WINDOW);
    slots.iter().filter_map(|slot| p2p::poll(*slot)).try_for_each(|word| word.map(drop))
}

/// MPI_Put where others may access the same memory.
///
/// # Errors
/// What was wrong with operations before.
///
/// # Safety
/// `origin` holds its elements until the operation is complete here; the target's memory is there as its owner promised.
pub(super) unsafe fn put(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    let (window, target, reach) = (spot.window, spot.target, spot.reach());
    let limit = u64::from(eager_limit(window.comm.local.world_rank(target)));
    let blocks = spot.blocks(0, bytes);
    // A small message leaves its buffer at once; a large one of the program's is taken from there when it goes.
    let own = origin.dense().filter(|_| bytes > limit);
    let mut data = Vec::new();
    if own.is_none() {
        // SAFETY: the caller's promise.
        data = unsafe { origin.packed(0, bytes, &mut Vec::new()).to_vec() };
    }
    let own = own.map(|start| Block { addr: start as u64, len: bytes });
    window
        .begin_simulated(target, (bytes, 0), 0, own.is_none(), |_, errno| {
            Some(Box::new(move || {
                let from = own.unwrap_or_else(|| block_of(&mut data));
                // SAFETY: the caller's promise.
                told(&errno, unsafe { copy(reach, from, &blocks, true) })
            }))
        })
        .map(drop)
}

/// MPI_Get where others may access the same memory.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// `origin` has room for its elements until the operation is complete here; the target's memory is there as its owner promised.
pub(super) unsafe fn get(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    let (reach, origin) = (spot.reach(), origin.clone());
    let blocks = spot.blocks(0, bytes);
    spot.window
        .begin_simulated(spot.target, (0, bytes), 0, false, |_, errno| {
            Some(Box::new(move || {
                // SAFETY: the caller's promise.
                unsafe {
                    if let Some(to) = origin.dense() {
                        let to = Block { addr: to as u64, len: bytes };
                        return told(&errno, copy(reach, to, &blocks, false));
                    }
                    let mut room = vec![0; bytes as usize];
                    let copied = copy(reach, block_of(&mut room), &blocks, false);
                    if copied.is_ok() {
                        origin.unpack(0, &room);
                    }
                    told(&errno, copied)
                }
            }))
        })
        .map(drop)
}

/// MPI_Accumulate and MPI_Get_accumulate on `bytes` packed bytes.
///
/// # Errors
/// As [`put`]; `Class::Op` for what is no operation.
///
/// # Safety
/// The buffers hold, or have room for, their elements until the operation is complete here; the target's memory is there as its owner promised.
pub(super) unsafe fn combine(
    spot: &Spot,
    operand: &Operand,
    result: Option<&Local>,
    basic: &Basic,
    bytes: u64,
) -> Result<()> {
    let (reach, step, result, basic) = (spot.reach(), operand.step(basic), result.cloned(), basic.clone());
    let op = crate::op::built_in(step.op)?;
    let silent = step.moves_nothing();
    let blocks = spot.blocks(0, bytes);
    // SAFETY: the caller's promise.
    let data = if silent { Vec::new() } else { unsafe { operand.origin.packed(0, bytes, &mut Vec::new()).to_vec() } };
    let sizes = (if silent { 0 } else { bytes }, if result.is_some() { bytes } else { 0 });
    spot.window
        .begin_simulated(spot.target, sizes, 0, result.is_none(), |_, errno| {
            Some(Box::new(move || {
                let mut there = vec![0; bytes as usize];
                // SAFETY: the caller's promise.
                let done = unsafe {
                    copy(reach, block_of(&mut there), &blocks, false).and_then(|()| {
                        if let Some(result) = &result {
                            result.unpack(0, &there);
                        }
                        if silent {
                            return Ok(());
                        }
                        let mut room = Vec::new();
                        let input = step::in_memory(&basic, &data, &mut room);
                        step::apply_packed(&op, &basic, input, &mut there, &mut Vec::new());
                        copy(reach, block_of(&mut there), &blocks, true)
                    })
                };
                told(&errno, done)
            }))
        })
        .map(drop)
}

/// MPI_Compare_and_swap.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// `result` has room for an element until the operation is complete here; the target's memory is there as its owner promised.
pub(super) unsafe fn swap(spot: &Spot, new: &[u8], old: &[u8], result: *mut u8) -> Result<()> {
    let (reach, mut new, old) = (spot.reach(), new.to_vec(), old.to_vec());
    let len = new.len();
    let blocks = spot.blocks(0, len as u64);
    spot.window
        .begin_simulated(spot.target, (2 * len as u64, len as u64), 0, false, |_, errno| {
            Some(Box::new(move || {
                let mut there = vec![0; len];
                // SAFETY: the caller's promise.
                let done = unsafe {
                    copy(reach, block_of(&mut there), &blocks, false).and_then(|()| {
                        std::ptr::copy(there.as_ptr(), result, len);
                        if there == old { copy(reach, block_of(&mut new), &blocks, true) } else { Ok(()) }
                    })
                };
                told(&errno, done)
            }))
        })
        .map(drop)
}
