//! MPI_Accumulate and its relatives: read, compute and write back as one step for each element.
//!
//! The step is taken under a lock in the target's part of the control block, for whole pieces of elements at a time,
//! whatever their type. A member that finds it taken gives its core up. A holder's death ends the job,
//! or the waits of the others with an error.

#![allow(unsafe_code)]

use super::place::{Place, Spot};
use super::transfer::{Local, check_fits};
use super::wait::For;
use super::{Window, far, polled, remote};
use crate::consts::dt;
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use crate::handle::Datatype;
use crate::lock as entry_lock;
use crate::monitor;
use crate::op::{self, Builtin, Operation};
use crate::process::endpoint;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_cma::Block;
use vmpi_shared::matching::transfer::copy_blocks;
use vmpi_shared::mem::sync::{spin_loop, yield_cpu};
use vmpi_shared::monitor::Flow;

/// Packed bytes that are worked on while the lock is held.
const PIECE: u64 = 32 << 10;
/// Looks at the lock before the core is given up.
const LOOKS: u32 = 100;

/// Holds a member's lock.
struct Moment<'a> {
    window: &'a Window,
    target: u32,
}

impl<'a> Moment<'a> {
    #[inline]
    fn take(window: &'a Window, target: u32) -> Result<Moment<'a>> {
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
    fn take_own(window: &'a Window) -> Moment<'a> {
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
    handle: Datatype,
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
fn basic_of(op: &Operation, target: &Type, origin: Option<&Type>, nothing: bool) -> Result<Basic> {
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

/// `target = target op origin`, element by element (MPI_Accumulate). Complete on return, but for a target on another node.
///
/// # Errors
/// Those of the target ([`Window::locate`]), `Class::Op`, `Class::Type`, `Class::Truncate`.
///
/// # Safety
/// The buffer holds its elements; the target's memory is there as its owner promised.
pub unsafe fn accumulate(window: &Window, operand: &Operand, place: &Place) -> Result<()> {
    if operand.op.builtin() == Some(Builtin::NoOp) {
        return fail(Class::Op, "MPI_NO_OP is for operations that fetch");
    }
    // SAFETY: the caller's promise.
    unsafe { combine(window, operand, None, place) }
}

/// As [`accumulate`], and what was there before goes to `result` (MPI_Get_accumulate).
///
/// # Errors
/// As [`accumulate`].
///
/// # Safety
/// As [`accumulate`]; `result` has room for its elements.
pub unsafe fn get_accumulate(window: &Window, operand: &Operand, result: &Local, place: &Place) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { combine(window, operand, Some(result), place)? };
    polled(1);
    Ok(())
}

/// # Safety
/// As [`get_accumulate`].
unsafe fn combine(window: &Window, operand: &Operand, result: Option<&Local>, place: &Place) -> Result<()> {
    let (origin, op) = (operand.origin, operand.op);
    let silent = op.builtin() == Some(Builtin::NoOp);
    // Nothing may be of any type.
    let nothing = if silent { place.count == 0 } else { origin.bytes() == 0 };
    let basic = basic_of(op, &place.ty, (!silent).then_some(&*origin.ty), nothing)?;
    let Some(spot) = window.locate(place)? else { return Ok(()) };
    // MPI_NO_OP has no operand: what is there is all.
    let bytes = if silent { spot.bytes() } else { origin.bytes() };
    check_fits(bytes, spot.bytes())?;
    if let Some(result) = result {
        check_fits(bytes, result.bytes())?;
        monitor::one_sided(Flow::Got, &window.comm, spot.target, bytes);
    }
    if !silent {
        monitor::one_sided(Flow::Put, &window.comm, spot.target, bytes);
    }
    if spot.is_far() && far::combines(operand, &basic) {
        // SAFETY: the caller's promise.
        return unsafe { far::combine(&spot, operand, result, &basic, bytes) };
    }
    if spot.is_asked() {
        // SAFETY: the caller's promise.
        return unsafe { remote::combine(&spot, operand, result, &basic, bytes) };
    }
    let unit = basic.ty.size().max(1);
    let piece = (PIECE / unit).max(1) * unit;
    let mut rooms = Rooms::default();
    let mut from = 0;
    while from < bytes {
        let len = (bytes - from).min(piece);
        // SAFETY: the caller's promise; the pieces are inside all buffers, as checked above.
        unsafe { combine_piece(&spot, operand, result, &basic, silent, from, len, &mut rooms)? };
        from += len;
    }
    Ok(())
}

/// Buffers that are used again for each piece.
#[derive(Default)]
struct Rooms {
    operand: Vec<u8>,
    operand_memory: Vec<u8>,
    target: Vec<u8>,
    target_memory: Vec<u8>,
}

/// # Safety
/// As [`get_accumulate`]; `[from, from + len)` is inside the packed bytes of all sides and whole elements of `basic`.
#[allow(clippy::too_many_arguments)]
unsafe fn combine_piece(
    spot: &Spot,
    operand: &Operand,
    result: Option<&Local>,
    basic: &Basic,
    silent: bool,
    from: u64,
    len: u64,
    rooms: &mut Rooms,
) -> Result<()> {
    let (origin, op) = (operand.origin, operand.op);
    // SAFETY: the caller's promise.
    unsafe {
        let input = match silent {
            true => &[][..],
            false => {
                let packed = origin.packed(from, len, &mut rooms.operand);
                in_memory(basic, packed, &mut rooms.operand_memory)
            }
        };
        let _moment = Moment::take(spot.window, spot.target)?;
        if let (Some(start), true) = (spot.dense_here(), basic.plain) {
            let memory = start.add(from as usize);
            if let Some(result) = result {
                result.unpack(from, std::slice::from_raw_parts(memory, len as usize));
            }
            if !silent {
                let elements = len / basic.ty.size().max(1);
                op.apply(input.as_ptr().cast(), memory.cast(), elements, basic.handle, &basic.ty);
            }
            return Ok(());
        }
        rooms.target.resize(len as usize, 0);
        spot.read(from, &mut rooms.target)?;
        if let Some(result) = result {
            result.unpack(from, &rooms.target);
        }
        if silent {
            return Ok(());
        }
        apply_packed(op, basic, input, &mut rooms.target, &mut rooms.target_memory);
        spot.write(from, &rooms.target)
    }
}

/// `target = target op input`, of packed elements and of elements as they lie in memory.
///
/// # Safety
/// Both hold the same number of whole elements of `basic`.
unsafe fn apply_packed(op: &Operation, basic: &Basic, input: &[u8], target: &mut [u8], room: &mut Vec<u8>) {
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
fn in_memory<'a>(basic: &Basic, packed: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    if basic.plain {
        return packed;
    }
    room.resize(basic.memory_bytes(packed.len() as u64) as usize, 0);
    let elements = packed.len() as u64 / basic.ty.size();
    // SAFETY: the room has as many elements' memory.
    unsafe { datatype::unpack(&basic.ty, elements, room.as_mut_ptr(), 0, packed) };
    room
}

/// [`get_accumulate`] of one element of a predefined type (MPI_Fetch_and_op).
///
/// # Errors
/// As [`get_accumulate`]; `Class::Type` for a derived type.
///
/// # Safety
/// `origin` (unless the operation is MPI_NO_OP) and `result` are one element each.
pub unsafe fn fetch_and_op(
    window: &Window,
    origin: *const c_void,
    result: *mut c_void,
    place: &Place,
    op: &Operation,
) -> Result<()> {
    if place.ty.named().is_none() {
        return fail(Class::Type, "MPI_Fetch_and_op takes predefined datatypes only");
    }
    let local = |buf: *mut c_void| Local { buf, count: 1, ty: place.ty.clone() };
    let operand = Operand { origin: &local(origin.cast_mut()), op };
    // SAFETY: the caller's promise.
    unsafe { get_accumulate(window, &operand, &local(result), place) }
}

/// Types that MPI_Compare_and_swap takes: integers, logicals, multi-language types and bytes.
fn is_comparable(handle: Datatype) -> bool {
    matches!(
        handle,
        dt::CHAR
            | dt::SIGNED_CHAR
            | dt::UNSIGNED_CHAR
            | dt::WCHAR
            | dt::SHORT
            | dt::INT
            | dt::LONG
            | dt::LONG_LONG
            | dt::UNSIGNED_SHORT
            | dt::UNSIGNED
            | dt::UNSIGNED_LONG
            | dt::UNSIGNED_LONG_LONG
            | dt::INT8_T
            | dt::INT16_T
            | dt::INT32_T
            | dt::INT64_T
            | dt::UINT8_T
            | dt::UINT16_T
            | dt::UINT32_T
            | dt::UINT64_T
            | dt::INTEGER
            | dt::INTEGER1
            | dt::INTEGER2
            | dt::INTEGER4
            | dt::INTEGER8
            | dt::INTEGER16
            | dt::LOGICAL
            | dt::LOGICAL1
            | dt::LOGICAL2
            | dt::LOGICAL4
            | dt::LOGICAL8
            | dt::LOGICAL16
            | dt::C_BOOL
            | dt::CXX_BOOL
            | dt::AINT
            | dt::OFFSET
            | dt::COUNT
            | dt::BYTE
            | dt::CHARACTER
    )
}

/// Replace one element by `origin` if it equals `compare`; what was there goes to `result` (MPI_Compare_and_swap).
///
/// # Errors
/// Those of the target, `Class::Type` for a type that is no integer, logical or byte.
///
/// # Safety
/// The three buffers are one element each.
pub unsafe fn compare_and_swap(
    window: &Window,
    origin: *const c_void,
    compare: *const c_void,
    result: *mut c_void,
    place: &Place,
) -> Result<()> {
    if !place.ty.named().is_some_and(is_comparable) {
        return fail(Class::Type, "MPI_Compare_and_swap takes integer, logical and byte datatypes only");
    }
    let Some(spot) = window.locate(place)? else { return Ok(()) };
    let len = spot.bytes() as usize;
    for flow in [Flow::Put, Flow::Got] {
        monitor::one_sided(flow, &window.comm, spot.target, len as u64);
    }
    let mut memory = [0u8; 16];
    let memory = &mut memory[..len];
    // SAFETY: the caller's promise.
    unsafe {
        let (origin, compare) = (
            std::slice::from_raw_parts(origin.cast::<u8>(), len),
            std::slice::from_raw_parts(compare.cast::<u8>(), len),
        );
        if spot.is_far() {
            return far::swap(&spot, origin, compare, result.cast());
        }
        if spot.is_asked() {
            remote::swap(&spot, origin, compare, memory)?;
            std::ptr::copy(memory.as_ptr(), result.cast::<u8>(), len);
            return Ok(());
        }
        let moment = Moment::take(window, spot.target)?;
        spot.read(0, memory)?;
        if memory == compare {
            spot.write(0, origin)?;
        }
        drop(moment);
        std::ptr::copy(memory.as_ptr(), result.cast::<u8>(), len);
    }
    polled(1);
    Ok(())
}
