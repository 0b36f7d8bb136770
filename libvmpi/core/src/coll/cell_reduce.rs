//! Reductions through a cell: each rank leaves its contribution there, and the last one to arrive combines them; in a scan each adds its own to
//! what the rank before it has left. How many bytes each has lies beside them, so that ranks that disagree hear of it.

use super::cells::{Visit, disagree};
use super::plan::Data;
use super::wire::Kit;
use crate::errors::Result;
use vmpi_shared::cell::{DATA_BYTES, DISAGREED};

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_BYTES: u64 = 4096;
/// How many bytes a contribution has.
const HEAD: usize = size_of::<u64>();

/// How much of the cell of so many members a reduction of `data` takes, if it may go through it.
pub(super) fn room(data: &Data, kit: &Kit, members: u32) -> Option<usize> {
    let (ty, bytes) = (&kit.types[data.elem.id as usize], data.bytes());
    let predefined = || kit.reduction.as_ref().is_some_and(|reduction| reduction.op.builtin().is_some());
    let room = || (members as usize + 1) * (HEAD + stride(bytes));
    let fits = bytes <= MAX_BYTES && room() <= DATA_BYTES;
    (fits && ty.is_dense() && ty.true_lb() == 0 && predefined()).then(room)
}

fn stride(bytes: u64) -> usize {
    bytes.next_multiple_of(8) as usize
}

/// The contributions in a lane: how many bytes each has, then they themselves, the result last.
#[derive(Copy, Clone)]
struct Slots {
    data: *mut u8,
    size: u32,
    bytes: u64,
}

impl Slots {
    fn of(visit: &Visit<'_>, bytes: u64) -> Slots {
        let (cell, turn) = visit.cell();
        Slots { data: cell.data(&turn), size: visit.size(), bytes }
    }

    /// Of the member at `place`; the result's is behind those of all.
    fn at(&self, place: u32) -> *mut u8 {
        debug_assert!(place <= self.size);
        // SAFETY: within the operation's room.
        unsafe { self.data.add((self.size as usize + 1) * HEAD + place as usize * stride(self.bytes)) }
    }

    fn head(&self, place: u32) -> *mut u64 {
        // SAFETY: as above.
        unsafe { self.data.cast::<u64>().add(place as usize) }
    }
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
    let slots = Slots::of(&visit, send.bytes());
    // SAFETY: the caller's contract.
    unsafe { leave(&visit, slots, send) };
    let mut there = slots.bytes;
    let take = |said: u64| {
        there = said;
        if let Some(recv) = recv.filter(|_| said == slots.bytes) {
            // SAFETY: the result is posted; `recv` is the caller's buffer of as many bytes.
            unsafe { copy(slots.at(slots.size), recv.at, slots.bytes) };
        }
    };
    // SAFETY: all have arrived.
    visit.reduce(root, slots.bytes as usize, || unsafe { merge(slots, send, kit) }, take)?;
    if there == slots.bytes { Ok(()) } else { disagree(there, slots.bytes) }
}

/// Reduce, and give each member as many elements of the result as `counts` says.
///
/// # Safety
/// As [`combine`]; `recv` has this member's part.
pub(super) unsafe fn parts(visit: Visit<'_>, send: &Data, recv: &Data, counts: &[u64], kit: &Kit) -> Result<()> {
    let slots = Slots::of(&visit, send.bytes());
    // SAFETY: the caller's contract.
    unsafe { leave(&visit, slots, send) };
    let bytes_of = |counts: &[u64]| counts.iter().sum::<u64>() * send.elem.size;
    let before = bytes_of(&counts[..visit.place() as usize]);
    let last = |visit: &Visit<'_>| {
        visit.count_taken(slots.bytes as usize);
        (0..visit.size()).zip(counts).for_each(|(to, count)| visit.count_given(Some(to), bytes_of(&[*count]) as usize));
        // SAFETY: all have arrived.
        unsafe { merge(slots, send, kit) }
    };
    let mut there = slots.bytes;
    let take = |said: u64| {
        there = said;
        if said == slots.bytes {
            // SAFETY: the result is posted, and has this part; `recv` is the caller's buffer for it.
            unsafe { copy(slots.at(slots.size).add(before as usize), recv.at, recv.bytes()) };
        }
    };
    visit.meet(None, last, take)?;
    if there == slots.bytes { Ok(()) } else { disagree(there, slots.bytes) }
}

/// Leave `send` in the cell.
///
/// # Safety
/// As [`combine`]; this rank has not arrived.
unsafe fn leave(visit: &Visit<'_>, slots: Slots, send: &Data) {
    // SAFETY: this rank's slot is its own until it arrives.
    unsafe {
        slots.head(visit.place()).write(slots.bytes);
        copy(send.at, slots.at(visit.place()), slots.bytes);
    }
}

/// Combine what all have left, in rank order from the last to the first; how many bytes that is, or [`DISAGREED`].
///
/// # Safety
/// All have left theirs, and wait.
unsafe fn merge(slots: Slots, send: &Data, kit: &Kit) -> u64 {
    let (result, last) = (slots.at(slots.size), slots.size - 1);
    // SAFETY: the slots are this rank's to read and the result its to write.
    unsafe {
        if (0..=last).any(|place| slots.head(place).read() != slots.bytes) {
            return DISAGREED;
        }
        copy(slots.at(last), result, slots.bytes);
        (0..last).rev().for_each(|place| apply(kit, send.elem.id, slots.at(place), result, send.count));
    }
    slots.bytes
}

/// Give this member what it and those before it come to, or, if not `inclusive`, those before it (the first one nothing).
///
/// # Safety
/// As [`combine`].
pub(super) unsafe fn scan(visit: Visit<'_>, send: &Data, recv: &Data, inclusive: bool, kit: &Kit) -> Result<()> {
    let ((cell, turn), place) = (visit.cell(), visit.place());
    let slots = Slots::of(&visit, send.bytes());
    let (own, bytes) = (slots.at(place), slots.bytes);
    let mut there = bytes;
    // SAFETY: this rank's slot is its own until it passes it on, that of the one before is whole when that one has; the buffers are the caller's.
    unsafe {
        copy(send.at, own, bytes);
        if let Some(before) = place.checked_sub(1) {
            visit.wait(|| cell.has_passed(&turn, before))?;
            there = slots.head(before).read();
            if there == bytes {
                if !inclusive {
                    copy(slots.at(before), recv.at, bytes);
                }
                apply(kit, send.elem.id, slots.at(before), own, send.count);
            }
        }
        if inclusive && there == bytes {
            copy(own, recv.at, bytes);
        }
        // Those behind hear of it, too.
        slots.head(place).write(if there == bytes { bytes } else { DISAGREED });
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
