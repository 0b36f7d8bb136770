//! MPI_Accumulate and its relatives: read, compute and write back as one step for each element.
//!
//! The step itself, and the lock under which it is taken, are in `step`.

#![allow(unsafe_code)]

use super::place::{Place, Spot};
use super::{Window, checked, polled, remote_node, simulated};
use crate::consts::dt;
use crate::errors::{Class, Result, fail};
use crate::handle::Datatype;
use crate::monitor;
use crate::op::{Builtin, Operation};
use crate::rma::local::{Local, check_fits};
use crate::rma::remote_accumulate;
use crate::rma::step::{Basic, Moment, Operand, apply_packed, basic_of, in_memory};
use std::ffi::c_void;
use vmpi_shared::monitor::Flow;

/// Packed bytes that are worked on while the lock is held.
const PIECE: u64 = 32 << 10;

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
    if !window.is_simulated() {
        polled(1);
    }
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
    checked::begins(&spot, bytes, checked::accumulation(op, &basic), (!silent).then_some(origin));
    if window.is_simulated() {
        // SAFETY: the caller's promise.
        return unsafe { simulated::combine(&spot, operand, result, &basic, bytes) };
    }
    if spot.is_far() && remote_node::combines(operand, &basic) {
        // SAFETY: the caller's promise.
        return unsafe { remote_node::combine(&spot, operand, result, &basic, bytes) };
    }
    if spot.is_asked() {
        // SAFETY: the caller's promise.
        return unsafe { remote_accumulate::combine(&spot, operand, result, &basic, bytes) };
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
    checked::begins(&spot, len as u64, checked::SWAP, None);
    let mut memory = [0u8; 16];
    let memory = &mut memory[..len];
    // SAFETY: the caller's promise.
    unsafe {
        let (origin, compare) = (
            std::slice::from_raw_parts(origin.cast::<u8>(), len),
            std::slice::from_raw_parts(compare.cast::<u8>(), len),
        );
        if window.is_simulated() {
            return simulated::swap(&spot, origin, compare, result.cast());
        }
        if spot.is_far() {
            return remote_node::swap(&spot, origin, compare, result.cast());
        }
        if spot.is_asked() {
            remote_accumulate::swap(&spot, origin, compare, memory)?;
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
