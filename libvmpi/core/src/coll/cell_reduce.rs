//! Reductions through a cell: each rank leaves its contribution there, and the last one to arrive combines them; in a scan each adds its own to
//! what the rank before it has left. Each one's word is how many bytes it has, so that ranks that disagree hear of it.

use super::cell_slots::{Slots, room as room_for, stride};
use super::p2p_machine::Kit;
use super::plan::Data;
use crate::coll::cell_operation::{CellOperation, disagree};
use crate::errors::Result;
use vmpi_shared::cell::DISAGREED;

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_BYTES: u64 = 4096;

/// How much of the cell of so many members a reduction of `data` takes, if it may go through it.
pub(super) fn room(data: &Data, kit: &Kit, members: u32) -> Option<usize> {
    let (ty, bytes) = (&kit.types[data.elem.id as usize], data.bytes());
    let predefined = || kit.reduction.as_ref().is_some_and(|reduction| reduction.op.builtin().is_some());
    (bytes <= MAX_BYTES && ty.is_dense() && ty.true_lb() == 0 && predefined())
        .then(|| room_for(members, (members as usize + 1) * stride(bytes)))
        .flatten()
}

/// The contributions, the result last.
#[derive(Copy, Clone)]
struct Parts<'a> {
    slots: Slots<'a>,
    size: u32,
    bytes: u64,
}

impl<'a> Parts<'a> {
    fn of(visit: &CellOperation<'a>, bytes: u64) -> Parts<'a> {
        Parts { slots: Slots::of(visit), size: visit.size(), bytes }
    }

    /// Of the member at `place`; the result's is behind those of all.
    fn at(&self, place: u32) -> *mut u8 {
        let stride = stride(self.bytes);
        self.slots.data((self.size as usize + 1) * stride, place as usize * stride)
    }

    fn result(&self) -> *mut u8 {
        self.at(self.size)
    }

    fn word(&self, place: u32) -> *mut u64 {
        self.slots.word(place)
    }
}

/// Reduce to the member at place `root`, or to all.
///
/// # Safety
/// `send` and `recv` are the caller's buffers, dense, of the same size; the visit has [`room`] for them.
pub(super) unsafe fn combine(
    visit: CellOperation<'_>,
    send: &Data,
    recv: Option<&Data>,
    root: Option<u32>,
    kit: &Kit,
) -> Result<()> {
    let parts = Parts::of(&visit, send.bytes());
    // SAFETY: the caller's contract.
    unsafe { deposit(&visit, parts, send) };
    let mut there = parts.bytes;
    let take = |said: u64| {
        there = said;
        if let Some(recv) = recv.filter(|_| said == parts.bytes) {
            // SAFETY: the result is posted; `recv` is the caller's buffer of as many bytes.
            unsafe { copy(parts.result(), recv.at, parts.bytes) };
        }
    };
    // SAFETY: all have arrived.
    visit.reduce(root, parts.bytes as usize, || unsafe { merge(parts, send, kit) }, take)?;
    if there == parts.bytes { Ok(()) } else { disagree(there, parts.bytes) }
}

/// Reduce, and give each member as many elements of the result as `counts` says.
///
/// # Safety
/// As [`combine`]; `recv` has this member's part.
pub(super) unsafe fn parts(
    visit: CellOperation<'_>,
    send: &Data,
    recv: &Data,
    counts: &[u64],
    kit: &Kit,
) -> Result<()> {
    let parts = Parts::of(&visit, send.bytes());
    // SAFETY: the caller's contract.
    unsafe { deposit(&visit, parts, send) };
    let bytes_of = |counts: &[u64]| counts.iter().sum::<u64>() * send.elem.size;
    let before = bytes_of(&counts[..visit.place() as usize]);
    let last = |visit: &CellOperation<'_>| {
        visit.count_taken(parts.bytes as usize);
        (0..visit.size()).zip(counts).for_each(|(to, count)| visit.count_given(Some(to), bytes_of(&[*count]) as usize));
        // SAFETY: all have arrived.
        unsafe { merge(parts, send, kit) }
    };
    let mut there = parts.bytes;
    let take = |said: u64| {
        there = said;
        if said == parts.bytes {
            // SAFETY: the result is posted, and has this part; `recv` is the caller's buffer for it.
            unsafe { copy(parts.result().add(before as usize), recv.at, recv.bytes()) };
        }
    };
    visit.meet(None, last, take)?;
    if there == parts.bytes { Ok(()) } else { disagree(there, parts.bytes) }
}

/// Leave `send` in the cell.
///
/// # Safety
/// As [`combine`]; this rank has not arrived.
unsafe fn deposit(visit: &CellOperation<'_>, parts: Parts<'_>, send: &Data) {
    // SAFETY: this rank's slot is its own until it arrives.
    unsafe {
        parts.word(visit.place()).write(parts.bytes);
        copy(send.at, parts.at(visit.place()), parts.bytes);
    }
}

/// Combine what all have left, in rank order from the last to the first; how many bytes that is, or [`DISAGREED`].
///
/// # Safety
/// All have left theirs, and wait.
unsafe fn merge(parts: Parts<'_>, send: &Data, kit: &Kit) -> u64 {
    let (result, last) = (parts.result(), parts.size - 1);
    // SAFETY: the slots are this rank's to read and the result its to write.
    unsafe {
        if (0..=last).any(|place| parts.word(place).read() != parts.bytes) {
            return DISAGREED;
        }
        copy(parts.at(last), result, parts.bytes);
        (0..last).rev().for_each(|place| apply(kit, send.elem.id, parts.at(place), result, send.count));
    }
    parts.bytes
}

/// Give this member what it and those before it come to, or, if not `inclusive`, those before it (the first one nothing).
///
/// # Safety
/// As [`combine`].
pub(super) unsafe fn scan(
    visit: CellOperation<'_>,
    send: &Data,
    recv: &Data,
    inclusive: bool,
    kit: &Kit,
) -> Result<()> {
    let ((cell, turn), place) = (visit.cell(), visit.place());
    let parts = Parts::of(&visit, send.bytes());
    let (own, bytes) = (parts.at(place), parts.bytes);
    let mut there = bytes;
    // SAFETY: this rank's slot is its own until it passes it on, that of the one before is whole when that one has; the buffers are the caller's.
    unsafe {
        copy(send.at, own, bytes);
        if let Some(before) = place.checked_sub(1) {
            visit.wait(|| cell.has_passed(&turn, before))?;
            there = parts.word(before).read();
            if there == bytes {
                if !inclusive {
                    copy(parts.at(before), recv.at, bytes);
                }
                apply(kit, send.elem.id, parts.at(before), own, send.count);
            }
        }
        if inclusive && there == bytes {
            copy(own, recv.at, bytes);
        }
        // Those behind hear of it, too.
        parts.word(place).write(if there == bytes { bytes } else { DISAGREED });
    }
    let next = place + 1;
    if next < visit.size() {
        visit.count_given(Some(next), bytes as usize);
        cell.pass(&turn, place);
        visit.wake_one(next);
    }
    visit.leave();
    if there == bytes { Ok(()) } else { disagree(DISAGREED, bytes) }
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
