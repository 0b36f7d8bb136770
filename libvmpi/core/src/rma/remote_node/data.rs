//! Put, get and the accumulations, to and from members of other nodes.

#![allow(unsafe_code)]

use super::pieces::Pieces;
use super::{Carries, ROOM};
use crate::errors::Result;
use crate::op::{self, Builtin};
use crate::rma::Operand;
use crate::rma::local::Local;
use crate::rma::place::Spot;
use crate::rma::step::Basic;
use std::rc::Rc;
use vmpi_shared::arith::kernel;
use vmpi_shared::ask::{Ask, BLOCK_BYTES, What};

/// From here on data is fetched out of this rank's memory by its carrier, instead of going through a slab block.
const LARGE_BYTES: u64 = 64 << 10;

/// MPI_Put to a member of another node.
///
/// # Errors
/// `Class::NoMem` if too much is under way; what was wrong with earlier operations.
///
/// # Safety
/// `origin` holds its elements until the operation is complete here.
pub(in crate::rma) unsafe fn put(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    let (window, target) = (spot.window, spot.target);
    let blocks = spot.blocks(0, bytes);
    let mut room = Vec::new();
    // SAFETY: the caller's promise.
    let data = unsafe { origin.packed(0, bytes, &mut room) };
    if bytes < LARGE_BYTES {
        return window.write_far(target, &blocks, data);
    }
    let data: *const [u8] = data;
    // A buffer of the program's is its until the operation is complete; what was packed is kept as long.
    let keep = origin.dense().is_none().then(|| Rc::new(room));
    let mut pieces = Pieces::of(&blocks);
    let mut from = 0u64;
    while !pieces.is_over() {
        let place = pieces.place();
        let (piece, len) = pieces.take(u64::MAX, ROOM / BLOCK_BYTES);
        let ask = Ask {
            bytes: len,
            blocks: piece.len() as u32,
            offset: (data.cast::<u8>() as u64).wrapping_add(from),
            ..window.ask(What::Bring, target)
        };
        if window.launched(&ask, &piece, &[], keep.clone())?.is_none() {
            // No block for the list: what is left goes in smaller pieces.
            pieces.back_to(place);
            let mut rest = Vec::new();
            while !pieces.is_over() {
                rest.extend(pieces.take(u64::MAX, usize::MAX).0);
            }
            // SAFETY: the caller's promise, or what was packed here.
            return window.write_far(target, &rest, unsafe { &(&(*data))[from as usize..] });
        }
        from += len;
    }
    Ok(())
}

/// MPI_Get from a member of another node.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// `origin` has room for its elements until the operation is complete here.
pub(in crate::rma) unsafe fn get(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    let (window, target) = (spot.window, spot.target);
    let blocks = spot.blocks(0, bytes);
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(to) = origin.dense() {
            return window.read_far(target, &blocks, to).map(drop);
        }
        let mut room = vec![0; bytes as usize];
        window.read_far_now(target, &blocks, &mut room)?;
        origin.unpack(0, &room);
    }
    Ok(())
}

/// Can the carrier of the target's node do the operation itself?
pub(in crate::rma) fn combines(operand: &Operand, basic: &Basic) -> bool {
    match operand.op.builtin() {
        Some(Builtin::Replace | Builtin::NoOp) => true,
        Some(op) if basic.plain => op::element_of(&basic.ty)
            .is_some_and(|element| element.bytes() as u64 == basic.ty.size() && kernel(op, element).is_some()),
        _ => false,
    }
}

/// MPI_Accumulate and MPI_Get_accumulate on `bytes` packed bytes of a member of another node, by its carrier.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// The buffers hold, or have room for, their elements until the operation is complete here.
pub(in crate::rma) unsafe fn combine(
    spot: &Spot,
    operand: &Operand,
    result: Option<&Local>,
    basic: &Basic,
    bytes: u64,
) -> Result<()> {
    let (window, target) = (spot.window, spot.target);
    let op = operand.op.builtin().unwrap_or(Builtin::NoOp);
    let silent = op == Builtin::NoOp;
    let blocks = spot.blocks(0, bytes);
    let mut pieces = Pieces::of(&blocks);
    let (mut room, mut from) = (Vec::new(), 0u64);
    // What is fetched goes where it belongs, or is unpacked from here.
    let mut scattered = vec![0u8; if result.is_some_and(|r| r.dense().is_none()) { bytes as usize } else { 0 }];
    let to = result.map(|result| result.dense().unwrap_or(scattered.as_mut_ptr()) as u64);
    let mut begun = Vec::new();
    while !pieces.is_over() {
        window.cut(&mut pieces, Carries::Data, |piece, len| {
            // SAFETY: the caller's promise; the piece is inside.
            let data = if silent { &[][..] } else { unsafe { operand.origin.packed(from, len, &mut room) } };
            let what = if to.is_some() { What::Fetch } else { What::Combine };
            let ask = Ask {
                op: op as u8,
                element: op::element_of(&basic.ty).map_or(0, |element| element as u8),
                bytes: len,
                blocks: piece.len() as u32,
                offset: to.map_or(0, |to| to.wrapping_add(from)),
                ..window.ask(what, target)
            };
            let sent = match to {
                None => window.send(&ask, None, piece, &[data]),
                Some(_) => {
                    let operation = window.launched(&ask, piece, &[data], None)?;
                    begun.extend(operation.iter().cloned());
                    operation.is_some()
                }
            };
            from += if sent { len } else { 0 };
            Ok(sent)
        })?;
    }
    if let Some(result) = result.filter(|_| !scattered.is_empty()) {
        window.await_far(&begun)?;
        // SAFETY: the caller's promise.
        unsafe { result.unpack(0, &scattered) };
    }
    Ok(())
}

/// MPI_Compare_and_swap with a member of another node.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// `result` has room for an element until the operation is complete here.
pub(in crate::rma) unsafe fn swap(spot: &Spot, new: &[u8], old: &[u8], result: *mut u8) -> Result<()> {
    let (window, target) = (spot.window, spot.target);
    let blocks = spot.blocks(0, new.len() as u64);
    let ask = Ask {
        bytes: new.len() as u64,
        blocks: blocks.len() as u32,
        offset: result as u64,
        ..window.ask(What::Swap, target)
    };
    let launched = window.launched(&ask, &blocks, &[new, old], None)?;
    debug_assert!(launched.is_some(), "a block and two elements fit into the envelope");
    Ok(())
}
