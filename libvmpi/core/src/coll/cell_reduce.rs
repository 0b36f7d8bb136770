//! Reductions through a cell: each rank leaves its contribution there, and the last one to arrive combines them; in a scan each adds its own to
//! what the rank before it has left.

use super::cells::Visit;
use super::plan::Data;
use super::wire::Kit;
use crate::errors::Result;
use vmpi_shared::cell::{Cell, DATA_BYTES};

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_BYTES: usize = 4096;

/// How much of the cell of so many members a reduction of `data` takes, if it may go through it.
pub(super) fn room(data: &Data, kit: &Kit, members: u32) -> Option<usize> {
    let (ty, bytes) = (&kit.types[data.elem.id as usize], data.bytes());
    let predefined = || kit.reduction.as_ref().is_some_and(|reduction| reduction.op.builtin().is_some());
    let fits = bytes <= MAX_BYTES as u64 && Cell::room(members, bytes as usize) <= DATA_BYTES;
    (fits && ty.is_dense() && ty.true_lb() == 0 && predefined()).then(|| Cell::room(members, bytes as usize))
}

/// Reduce to the member at place `root`, or to all.
///
/// # Safety
/// `send` and `recv` are the caller's buffers, dense, of the same size; the visit has [`room`] for them.
pub(super) unsafe fn combine(
    visit: Visit<'_>,
    send: &Data,
    recv: Option<&Data>,
    root: Option<u32>,
    kit: &Kit,
) -> Result<()> {
    // SAFETY: the caller's contract.
    let (merge, result) = unsafe { leave(&visit, send, kit) };
    let take = || {
        if let Some(recv) = recv {
            // SAFETY: the result is posted; `recv` is the caller's buffer of as many bytes.
            unsafe { copy(result, recv.at, send.bytes()) };
        }
    };
    visit.reduce(root, send.bytes() as usize, |_| merge(), take)
}

/// Reduce, and give each member as many elements of the result as `counts` says.
///
/// # Safety
/// As [`combine`]; `recv` has this member's part.
pub(super) unsafe fn parts(visit: Visit<'_>, send: &Data, recv: &Data, counts: &[u64], kit: &Kit) -> Result<()> {
    // SAFETY: the caller's contract.
    let (merge, result) = unsafe { leave(&visit, send, kit) };
    let bytes_of = |counts: &[u64]| counts.iter().sum::<u64>() * send.elem.size;
    let before = bytes_of(&counts[..visit.place() as usize]);
    let last = |visit: &Visit<'_>| {
        merge();
        visit.count_taken(send.bytes() as usize);
        (0..visit.size()).zip(counts).for_each(|(to, count)| visit.count_given(Some(to), bytes_of(&[*count]) as usize));
    };
    // SAFETY: the result is posted, and has this part; `recv` is the caller's buffer for it.
    visit.meet(None, last, || unsafe { copy(result.add(before as usize), recv.at, recv.bytes()) })
}

/// Leave `send` in the cell. Returns how to combine what all have left, and where the result will be.
///
/// # Safety
/// As [`combine`].
unsafe fn leave<'a>(visit: &Visit<'a>, send: &Data, kit: &'a Kit) -> (impl FnOnce() + use<'a>, *mut u8) {
    let ((cell, turn), size, bytes) = (visit.cell(), visit.size(), send.bytes() as usize);
    // SAFETY: this rank's slot is its own until it arrives.
    unsafe { copy(send.at, cell.slot(&turn, visit.place(), bytes), send.bytes()) };
    let result = cell.slot(&turn, size, bytes);
    let (count, elem) = (send.count, send.elem.id);
    let merge = move || {
        // In rank order from the last to the first: inout = input op inout.
        // SAFETY: all have arrived: the slots are the last one's to read and the result its to write.
        unsafe {
            copy(cell.slot(&turn, size - 1, bytes), result, bytes as u64);
            for rank in (0..size - 1).rev() {
                apply(kit, elem, cell.slot(&turn, rank, bytes), result, count);
            }
        }
    };
    (merge, result)
}

/// Give this member what it and those before it come to, or, if not `inclusive`, those before it (the first one nothing).
///
/// # Safety
/// As [`combine`].
pub(super) unsafe fn scan(visit: Visit<'_>, send: &Data, recv: &Data, inclusive: bool, kit: &Kit) -> Result<()> {
    let ((cell, turn), place, bytes) = (visit.cell(), visit.place(), send.bytes());
    let own = cell.slot(&turn, place, bytes as usize);
    // SAFETY: this rank's slot is its own until it passes it on, that of the one before is whole when that one has; the buffers are the caller's.
    unsafe {
        copy(send.at, own, bytes);
        if let Some(before) = place.checked_sub(1) {
            visit.wait(|| cell.has_passed(&turn, before))?;
            let before = cell.slot(&turn, before, bytes as usize);
            if !inclusive {
                copy(before, recv.at, bytes);
            }
            apply(kit, send.elem.id, before, own, send.count);
        }
        if inclusive {
            copy(own, recv.at, bytes);
        }
    }
    let next = place + 1;
    if next < visit.size() {
        visit.count_given(Some(next), bytes as usize);
        cell.pass(&turn, place);
        visit.wake_one(next);
    }
    visit.leave();
    Ok(())
}

/// # Safety
/// So many bytes are at both; they do not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, bytes: u64) {
    // SAFETY: as promised.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes as usize) };
}

/// `inout = input op inout`.
///
/// # Safety
/// Both have `count` elements of type `elem`.
unsafe fn apply(kit: &Kit, elem: u32, input: *const u8, inout: *mut u8, count: u64) {
    let reduction = kit.reduction.as_ref().expect("checked by `room`");
    // SAFETY: as promised.
    unsafe { reduction.op.apply(input.cast(), inout.cast(), count, reduction.datatype, &kit.types[elem as usize]) };
}
