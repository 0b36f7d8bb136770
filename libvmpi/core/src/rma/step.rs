//! The step of an accumulation: what is done to elements of a predefined type, and the lock under which.
//!
//! The step is taken under a lock in the target's part of the control block, for whole pieces of elements at a time,
//! whatever their type. A member that finds it taken gives its core up. A holder's death ends the job,
//! or the waits of the others with an error.

#![allow(unsafe_code)]

use crate::consts::dt;
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use crate::handle::Datatype;
use crate::lock as entry_lock;
use crate::op::{self, Builtin, Operation};
use crate::process::endpoint;
use crate::rma::Window;
use crate::rma::local::Local;
use crate::rma::wait::For;
use std::rc::Rc;
use vmpi_cma::Block;
use vmpi_shared::endpoint::transfer::copy_blocks;
use vmpi_shared::mem::sync::{spin_loop, yield_cpu};

/// Looks at the lock before the core is given up.
const LOOKS: u32 = 100;

/// Holds a member's lock.
pub(super) struct Moment<'a> {
    window: &'a Window,
    target: u32,
}

impl<'a> Moment<'a> {
    #[inline]
    pub(super) fn take(window: &'a Window, target: u32) -> Result<Moment<'a>> {
        let lock = &window.control.member(target).moment;
        let me = window.rank();
        if window.is_far(target) {
            window.take_far_moment(target)?;
        } else if !lock.take(me) {
            Self::await_turn(window, target)?;
        }
        Ok(Moment { window, target })
    }

    /// That of this member, for its helper. Nobody keeps it but for a computation: where there are helpers, all who cannot reach the memory ask. So
    /// the holder runs, or wants a core, and the helper, within whose call others are under way, must not be suspended.
    pub(super) fn take_own(window: &'a Window) -> Moment<'a> {
        let me = window.rank();
        while !window.control.member(me).moment.take(me) {
            if !endpoint().yield_core() {
                yield_cpu();
            }
        }
        Moment { window, target: me }
    }

    #[cold]
    fn await_turn(window: &Window, target: u32) -> Result<()> {
        let lock = &window.control.member(target).moment;
        let me = window.rank();
        for _ in 0..LOOKS {
            spin_loop();
            if lock.take(me) {
                return Ok(());
            }
        }
        // The last look comes after saying that this member waits: who gives the lock back then sees that (SYNC W). Once
        // taken, it is not to be taken again.
        let mut taken = false;
        window.wait_until(For::Moment { target }, || {
            while !taken {
                taken = lock.take(me);
                if !taken && lock.contend() {
                    return false;
                }
            }
            true
        })
    }
}

impl Drop for Moment<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.window.is_far(self.target) {
            self.window.give_far_moment(self.target);
        } else if self.window.control.member(self.target).moment.give() {
            for member in self.window.control.waiting_for(self.target) {
                self.window.wake(member);
            }
            entry_lock::note_change();
        }
    }
}

/// A predefined datatype that elements are made of.
#[derive(Clone)]
pub(super) struct Basic {
    pub(super) handle: Datatype,
    pub ty: Rc<Type>,
    /// Its elements look the same packed and in memory.
    pub plain: bool,
}

impl Basic {
    fn of(handle: Datatype) -> Result<Basic> {
        let ty = datatype::get(handle)?;
        let plain = ty.is_dense() && ty.true_lb() == 0 && ty.extent() as u64 == ty.size();
        Ok(Basic { handle, ty, plain })
    }

    /// Bytes of `packed` packed bytes in memory.
    fn memory_bytes(&self, packed: u64) -> u64 {
        packed / self.ty.size() * self.ty.extent() as u64
    }
}

/// The predefined datatype that all of a type is made of.
fn leaf(ty: &Type) -> Option<Datatype> {
    if let Some(named) = ty.named() {
        return Some(named);
    }
    let mut leaves = ty.recipe().children().iter().filter(|child| child.size() > 0).map(|child| leaf(child));
    let first = leaves.next()??;
    leaves.all(|other| other == Some(first)).then_some(first)
}

/// The elements that the operation works on.
///
/// # Errors
/// `Class::Type` if the types are made of different predefined ones, `Class::Op` if it is not defined on them.
pub(super) fn basic_of(op: &Operation, target: &Type, origin: Option<&Type>, nothing: bool) -> Result<Basic> {
    let moves = matches!(op.builtin(), Some(Builtin::Replace | Builtin::NoOp));
    if op.builtin().is_none() {
        return fail(Class::Op, "accumulation takes predefined operations only");
    }
    let found = leaf(target);
    let same = |other: &Type| other.size() == 0 || leaf(other) == found;
    let basic = match found {
        Some(found) if origin.is_none_or(same) => Basic::of(found)?,
        // What is only moved needs no meaning.
        _ if moves || nothing => Basic::of(dt::BYTE)?,
        None => return fail(Class::Type, "the target datatype is not made of one predefined datatype"),
        Some(_) => return fail(Class::Type, "the origin and target datatypes are made of different predefined ones"),
    };
    if !nothing {
        op.check_accumulate(basic.handle, &basic.ty)?;
    }
    Ok(basic)
}

/// The operand of an accumulation.
pub struct Operand<'a> {
    pub origin: &'a Local,
    pub op: &'a Operation,
}

/// `target = target op input`, of packed elements and of elements as they lie in memory.
///
/// # Safety
/// Both hold the same number of whole elements of `basic`.
pub(super) unsafe fn apply_packed(op: &Operation, basic: &Basic, input: &[u8], target: &mut [u8], room: &mut Vec<u8>) {
    let elements = target.len() as u64 / basic.ty.size().max(1);
    let input = input.as_ptr().cast();
    // SAFETY: the caller's promise; the room has as many elements' memory.
    unsafe {
        if basic.plain {
            return op.apply(input, target.as_mut_ptr().cast(), elements, basic.handle, &basic.ty);
        }
        room.resize(basic.memory_bytes(target.len() as u64) as usize, 0);
        let memory = room.as_mut_ptr();
        datatype::unpack(&basic.ty, elements, memory, 0, target);
        op.apply(input, memory.cast(), elements, basic.handle, &basic.ty);
        datatype::pack(&basic.ty, elements, memory, 0, target);
    }
}

/// What a member asks the helper of another one to do.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub op: Builtin,
    /// Of the elements.
    pub datatype: Datatype,
}

impl Step {
    /// Only what is there is asked for.
    pub(super) fn moves_nothing(self) -> bool {
        self.op == Builtin::NoOp
    }
}

impl Operand<'_> {
    pub(super) fn step(&self, basic: &Basic) -> Step {
        Step { op: self.op.builtin().unwrap_or(Builtin::NoOp), datatype: basic.handle }
    }
}

/// In the target's helper: `blocks = blocks op data` of this process's memory, for packed elements; what was there before.
///
/// # Errors
/// `Class::Type` for what is no datatype, `Class::Op` for an operation that is not defined on it.
///
/// # Safety
/// The blocks are memory of the window; `data` has as many bytes, or none for MPI_NO_OP.
pub(super) unsafe fn combine_here(window: &Window, step: Step, blocks: &[Block], data: &[u8]) -> Result<Vec<u8>> {
    let basic = Basic::of(step.datatype)?;
    let op = op::built_in(step.op)?;
    op.check_accumulate(basic.handle, &basic.ty)?;
    let mut before = vec![0; blocks.iter().map(|block| block.len as usize).sum()];
    let mut room = Vec::new();
    let _moment = Moment::take_own(window);
    // SAFETY: the caller's promise.
    unsafe {
        copy_blocks(&[room_of(&mut before)], blocks);
        if step.op != Builtin::NoOp {
            let mut after = before.clone();
            apply_packed(&op, &basic, in_memory(&basic, data, &mut room), &mut after, &mut Vec::new());
            copy_blocks(blocks, &[Block::of(&after)]);
        }
    }
    Ok(before)
}

fn room_of(bytes: &mut [u8]) -> Block {
    Block { addr: bytes.as_mut_ptr() as u64, len: bytes.len() as u64 }
}

/// In the target's helper: write the first half of `data` to the block if it holds the second; what was there before.
///
/// # Safety
/// The block is memory of the window, and half as long as `data`.
pub(super) unsafe fn swap_here(window: &Window, block: Block, data: &[u8]) -> Vec<u8> {
    let mut before = vec![0; block.len as usize];
    let (new, old) = data.split_at(before.len());
    let _moment = Moment::take_own(window);
    // SAFETY: the caller's promise.
    unsafe {
        copy_blocks(&[room_of(&mut before)], &[block]);
        if before == old {
            copy_blocks(&[block], &[Block::of(new)]);
        }
    }
    before
}

/// Packed elements of a predefined type as they lie in memory.
pub(super) fn in_memory<'a>(basic: &Basic, packed: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    if basic.plain {
        return packed;
    }
    room.resize(basic.memory_bytes(packed.len() as u64) as usize, 0);
    let elements = packed.len() as u64 / basic.ty.size();
    // SAFETY: the room has as many elements' memory.
    unsafe { datatype::unpack(&basic.ty, elements, room.as_mut_ptr(), 0, packed) };
    room
}
