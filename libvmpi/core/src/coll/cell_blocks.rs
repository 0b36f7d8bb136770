//! Small blocks from all members to all through a cell: each leaves what it gives there, and once all have arrived each takes its own.
//!
//! The last one to arrive has nothing to combine. Each member's slot begins with how many bytes lie there, so that ranks that disagree are told.

use super::cells::Visit;
use super::plan::{Data, Regions};
use super::wire::Kit;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use vmpi_shared::cell::Cell;

/// More bytes than this from each member go by messages.
const MAX_BYTES: usize = 4096;
/// The number of bytes that a slot begins with.
const HEAD: usize = size_of::<u64>();

/// May `bytes` of each of so many members go through a cell?
pub(super) fn fit(bytes: u64, members: u32) -> bool {
    let most = Cell::slot_bytes(members).saturating_sub(HEAD).min(MAX_BYTES);
    bytes > 0 && bytes <= most as u64
}

/// # Safety
/// `send` and `recv` are the caller's buffers; the block of `recv` [`fit`]s.
pub(super) unsafe fn allgather(visit: Visit<'_>, send: Option<Data>, recv: &Regions, kit: &Kit) -> Result<()> {
    let block = recv.get(visit.place() as usize);
    let own = send.unwrap_or(block);
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, std::iter::once(own), (own.bytes(), block.bytes()), 0, recv, kit) }
}

/// # Safety
/// As above, for all blocks of `recv` together.
pub(super) unsafe fn alltoall(visit: Visit<'_>, send: Option<&Regions>, recv: &Regions, kit: &Kit) -> Result<()> {
    let (send, me, size) = (send.unwrap_or(recv), visit.place() as usize, visit.size() as usize);
    let mine = me * recv.get(0).bytes() as usize;
    let blocks = (0..size).map(|to| send.get(to));
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, blocks, (send.bytes(), recv.bytes()), mine, recv, kit) }
}

/// Leave `blocks`, and take of each member's bytes the block that begins at `mine`. `bytes`: so many are given, and by MPI's rule as many by each other
/// member.
///
/// # Safety
/// As above.
unsafe fn exchange(
    visit: Visit<'_>,
    blocks: impl Iterator<Item = Data>,
    (given, bytes): (u64, u64),
    mine: usize,
    recv: &Regions,
    kit: &Kit,
) -> Result<()> {
    let (me, size) = (visit.place(), visit.size());
    let (cell, number) = visit.cell();
    let slot = |place: u32| cell.slot(number, place, HEAD + bytes as usize);
    // SAFETY: this rank's slot is its own until it arrives, and has room for `bytes`.
    unsafe {
        let own = slot(me);
        own.cast::<u64>().write(given);
        let mut at = own.add(HEAD);
        for data in blocks.filter(|_| given == bytes) {
            at = at.add(leave(&data, at, kit));
        }
    }
    visit.count_given(recv.get(me as usize).bytes() as usize);
    let mut disagreement = None;
    let take_all = || {
        for place in 0..size {
            let (from, into) = (slot(place), recv.get(place as usize));
            // SAFETY: all have arrived and left their bytes; a slot with as many as are wanted is whole.
            unsafe {
                let there = from.cast::<u64>().read();
                if there == bytes {
                    take(&into, from.add(HEAD + mine), kit);
                } else {
                    disagreement.get_or_insert((place, there));
                }
            }
        }
    };
    visit.meet(None, |_| (), take_all)?;
    match disagreement {
        None => Ok(()),
        Some((place, there)) => fail(
            Class::Truncate,
            format!(
                "rank {place} gives {there} bytes, but this rank wants {bytes} of each; MPI demands the same of all"
            ),
        ),
    }
}

/// Pack `data` to `at`; how many bytes that were.
///
/// # Safety
/// There is room for them.
#[inline]
unsafe fn leave(data: &Data, at: *mut u8, kit: &Kit) -> usize {
    let bytes = data.bytes() as usize;
    // SAFETY: as promised.
    unsafe {
        match data.packed() {
            Some(block) => std::ptr::copy_nonoverlapping(block.at.cast_const(), at, bytes),
            None => {
                let into = std::slice::from_raw_parts_mut(at, bytes);
                datatype::pack(&kit.types[data.elem.id as usize], data.count, data.at.cast_const(), 0, into);
            }
        }
    }
    bytes
}

/// Unpack `into` from `at`.
///
/// # Safety
/// So many bytes lie there.
#[inline]
unsafe fn take(into: &Data, at: *const u8, kit: &Kit) {
    let bytes = into.bytes() as usize;
    // SAFETY: as promised.
    unsafe {
        match into.packed() {
            Some(block) => std::ptr::copy_nonoverlapping(at, block.at, bytes),
            None => {
                let data = std::slice::from_raw_parts(at, bytes);
                datatype::unpack(&kit.types[into.elem.id as usize], into.count, into.at, 0, data);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits() {
        assert!(fit(8, 2) && fit(MAX_BYTES as u64, 2) && !fit(MAX_BYTES as u64 + 1, 2));
        assert!(!fit(0, 2), "nothing to move");
        assert!(fit(8, 1000) && !fit(64, 1000) && !fit(8, 4000), "a cell has room for so much");
    }
}
