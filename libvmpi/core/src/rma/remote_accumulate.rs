//! Accumulations that the target computes, asked by messages (`remote`).

#![allow(unsafe_code)]

use crate::errors::Result;
use crate::rma::local::Local;
use crate::rma::place::Spot;
use crate::rma::remote::{COMBINE, FETCH, MOST_BLOCKS, MOST_BYTES, NO_STEP, SWAP, ask, encode};
use crate::rma::step::{Basic, Operand};
use vmpi_shared::arith::Builtin;

/// Elements of an accumulation in one question, where they are scattered: each has no more than four blocks.
const MOST_SCATTERED: u64 = MOST_BLOCKS as u64 / 4;

/// MPI_Accumulate and MPI_Get_accumulate on `bytes` packed bytes, by the target.
///
/// # Errors
/// Those of the messages.
///
/// # Safety
/// The buffers hold, or have room for, their elements.
pub(super) unsafe fn combine(
    spot: &Spot,
    operand: &Operand,
    result: Option<&Local>,
    basic: &Basic,
    bytes: u64,
) -> Result<()> {
    let step = operand.step(basic);
    let unit = basic.ty.size().max(1);
    let most = if spot.ty.is_dense() { MOST_BYTES / unit } else { MOST_SCATTERED };
    let kind = if result.is_some() { FETCH } else { COMBINE };
    let (mut from, mut room) = (0, Vec::new());
    while from < bytes {
        let len = (bytes - from).min(most * unit);
        let data = match step.op {
            Builtin::NoOp => &[][..],
            // SAFETY: the caller's promise.
            _ => unsafe { operand.origin.packed(from, len, &mut room) },
        };
        let mut before = vec![0; if result.is_some() { len as usize } else { 0 }];
        let question = encode(kind, step, &spot.blocks(from, from + len), data);
        ask(&spot.window.comm, spot.target, &question, &mut before)?;
        if let Some(result) = result {
            // SAFETY: the caller's promise.
            unsafe { result.unpack(from, &before) };
        }
        from += len;
    }
    Ok(())
}

/// MPI_Compare_and_swap, by the target; `before` gets what was there.
///
/// # Errors
/// Those of the messages.
pub(super) fn swap(spot: &Spot, new: &[u8], old: &[u8], before: &mut [u8]) -> Result<()> {
    let blocks = spot.blocks(0, new.len() as u64);
    ask(&spot.window.comm, spot.target, &encode(SWAP, NO_STEP, &blocks, &[new, old].concat()), before)
}
