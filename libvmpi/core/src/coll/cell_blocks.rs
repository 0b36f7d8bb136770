//! Small blocks from and for each member through a cell. Gather, allgather, alltoall: each leaves what it gives there, and once all have arrived the root, or
//! each, takes its own; scatter: the root leaves all blocks.
//!
//! How many bytes each gives, and where, lies before the blocks. So who gives less than is wanted is heard as with messages, and who gives more, or who thinks that the blocks lie
//! elsewhere, is told of. (If what the one wants fits into a cell and what the other wants does not, they wait for each other as in a broadcast, which a deadlock's report says.)

use super::cells::Visit;
use super::plan::{Data, Regions};
use super::wire::Kit;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use std::cell::Cell;
use vmpi_shared::cell::DATA_BYTES;

/// More bytes than this from each member go by messages.
const MAX_BYTES: u64 = 4096;

/// What a member says of its slot: how many bytes it gives (`u32::MAX`: or more), and how many of others' slots are before it.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Head {
    given: u32,
    before: u32,
}

const HEAD: usize = size_of::<Head>();

/// How much of a cell `bytes` of each of so many members take, if they may go through it.
pub(super) fn room(bytes: u64, members: u32) -> Option<usize> {
    let all = |bytes: u64| members as usize * (HEAD + stride(bytes));
    (bytes > 0 && bytes <= MAX_BYTES && all(bytes) <= DATA_BYTES).then(|| all(bytes))
}

/// As [`room`], for the blocks of an allgather, of which all members know all.
pub(super) fn room_for(blocks: &Regions, members: u32) -> Option<usize> {
    if let Regions::Even { first, .. } = blocks {
        return room(first.bytes(), members);
    }
    let (mut all, mut any) = (0, false);
    for place in 0..members {
        let bytes = blocks.get(place as usize).bytes();
        all += HEAD + stride(bytes);
        any |= bytes > 0;
        if bytes > MAX_BYTES || all > DATA_BYTES {
            return None;
        }
    }
    any.then_some(all)
}

fn stride(bytes: u64) -> usize {
    bytes.next_multiple_of(8) as usize
}

/// # Safety
/// `send` and `recv` are the caller's buffers; the visit has [`room_for`] them.
pub(super) unsafe fn allgather(visit: Visit<'_>, send: Option<Data>, recv: &Regions, kit: &Kit) -> Result<()> {
    let me = visit.place() as usize;
    let own = send.unwrap_or_else(|| recv.get(me));
    visit.count_given(None, own.bytes() as usize);
    let wants = |place: u32| recv.get(place as usize).bytes();
    let before = match recv {
        Regions::Even { first, .. } => me * stride(first.bytes()),
        Regions::Listed(list) => list[..me].iter().map(|block| stride(block.bytes())).sum(),
    };
    let given = Given { blocks: std::iter::once(own), bytes: own.bytes(), before };
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, None, given, wants, false, Some(recv), kit) }
}

/// # Safety
/// As above, with [`room`] for a block of each; `recv` is there at the root, `send` at the others.
pub(super) unsafe fn gather(
    visit: Visit<'_>,
    send: Option<Data>,
    recv: Option<&Regions>,
    root: u32,
    kit: &Kit,
) -> Result<()> {
    let me = visit.place() as usize;
    let block = recv.map(|recv| recv.get(me));
    let own = send.or(block).expect("only the root may leave out what it sends");
    visit.count_given(Some(root), own.bytes() as usize);
    let wanted = block.unwrap_or(own).bytes();
    let given = Given { blocks: std::iter::once(own), bytes: own.bytes(), before: me * stride(wanted) };
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, Some(root), given, |_| wanted, false, recv, kit) }
}

/// # Safety
/// As above, for all blocks of `recv` together.
pub(super) unsafe fn alltoall(visit: Visit<'_>, send: Option<&Regions>, recv: &Regions, kit: &Kit) -> Result<()> {
    let (send, me, size) = (send.unwrap_or(recv), visit.place() as usize, visit.size() as usize);
    visit.count_given(None, send.get(0).bytes() as usize);
    let wanted = recv.bytes();
    let given = Given { blocks: (0..size).map(|to| send.get(to)), bytes: send.bytes(), before: me * stride(wanted) };
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, None, given, |_| wanted, true, Some(recv), kit) }
}

/// What a member leaves in its slot: so many bytes, behind `before` bytes of others' slots.
struct Given<I> {
    blocks: I,
    bytes: u64,
    before: usize,
}

/// Leave what is given; the member at place `root`, or all, take each member's slot, of which they want as many bytes as `wants` says, or of slots that are `divided` into
/// blocks for all this member's.
///
/// # Safety
/// As above.
unsafe fn exchange(
    visit: Visit<'_>,
    root: Option<u32>,
    given: Given<impl Iterator<Item = Data>>,
    wants: impl Fn(u32) -> u64,
    divided: bool,
    recv: Option<&Regions>,
    kit: &Kit,
) -> Result<()> {
    let ((cell, turn), me, size) = (visit.cell(), visit.place(), visit.size());
    let data = cell.data(&turn);
    // SAFETY: within the room for so many members.
    let head = |place: u32| unsafe { data.cast::<Head>().add(place as usize) };
    // SAFETY: as above.
    let slots = unsafe { data.add(size as usize * HEAD) };
    // SAFETY: this rank's head and slot are its own until it arrives; the slot has room for what is wanted of it.
    unsafe {
        head(me).write(Head { given: u32::try_from(given.bytes).unwrap_or(u32::MAX), before: given.before as u32 });
        if given.bytes <= wants(me) {
            let mut at = slots.add(given.before);
            for data in given.blocks {
                at = at.add(leave(&data, at, kit));
            }
        }
    }
    let mut disagreement = None;
    let take_all = |_| {
        let Some(recv) = recv else { return };
        let mut before = 0;
        for place in 0..size {
            let wanted = wants(place);
            // SAFETY: all have arrived and left their bytes: as many as their heads say, if that is not too much.
            unsafe {
                let there = head(place).read();
                if u64::from(there.given) <= wanted && there.before as usize == before {
                    let (parts, mine) = if divided { (size, me) } else { (1, 0) };
                    let bytes = (there.given / parts) as usize;
                    take(&recv.get(place as usize), slots.add(before + mine as usize * bytes), bytes, kit);
                } else {
                    disagreement.get_or_insert((place, there.given.into(), wanted));
                }
            }
            before += stride(wanted);
        }
    };
    visit.meet(root, |_| 0, take_all)?;
    match disagreement {
        None => Ok(()),
        Some((place, there, wanted)) => disagree(place, there, wanted),
    }
}

#[cold]
fn disagree(place: u32, there: u64, bytes: u64) -> Result<()> {
    fail(
        Class::Truncate,
        format!("rank {place} gives {there} bytes, but this rank wants {bytes} of it; MPI demands the same of both"),
    )
}

/// # Safety
/// As [`gather`], the other way.
pub(super) unsafe fn scatter(
    visit: Visit<'_>,
    send: Option<&Regions>,
    recv: Option<Data>,
    root: u32,
    kit: &Kit,
) -> Result<()> {
    let ((cell, turn), place, size) = (visit.cell(), visit.place(), visit.size());
    let data = cell.data(&turn);
    // SAFETY: within the room for so many members.
    let slot = |place: u32, bytes: u64| unsafe { data.add(place as usize * stride(bytes)) };
    let given = send.map_or(0, |send| send.get(0).bytes());
    let there = Cell::new(given);
    let take_own = |said: u64| {
        there.set(said);
        if let Some(recv) = recv.filter(|recv| said <= recv.bytes()) {
            // SAFETY: the root has left all, and as much for each as it says.
            unsafe { take(&recv, slot(place, said), said as usize, kit) };
        }
    };
    let leave_all = || {
        let send = send.expect("the root has what it sends");
        for to in 0..size {
            // SAFETY: the lane is the root's until it posts it.
            unsafe { leave(&send.get(to as usize), slot(to, given), kit) };
        }
        take_own(given);
    };
    visit.spread(root, given, leave_all, take_own)?;
    match recv {
        Some(recv) if there.get() > recv.bytes() => disagree(root, there.get(), recv.bytes()),
        _ => Ok(()),
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

/// Unpack `bytes` bytes at `at` into `into`.
///
/// # Safety
/// So many lie there, and `into` has room for them.
#[inline]
unsafe fn take(into: &Data, at: *const u8, bytes: usize, kit: &Kit) {
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
        assert_eq!(room(5, 2), Some(32));
        assert!(room(MAX_BYTES, 2).is_some() && room(MAX_BYTES + 1, 2).is_none());
        assert_eq!(room(0, 2), None, "nothing to move");
        assert!(room(8, 64 * 8).is_some() && room(64 * 8, 64).is_some(), "an alltoall of words of 64 ranks, too");
        let listed = |counts: &[u64]| {
            let block = |count: &u64| Data { count: *count, ..Data::EMPTY };
            room_for(&Regions::Listed(counts.iter().map(block).collect()), counts.len() as u32)
        };
        assert_eq!(listed(&[0, 9, 1]), Some(3 * HEAD + 24));
        assert!(listed(&[0, 0]).is_none() && listed(&[1, MAX_BYTES + 1]).is_none());
        assert!(listed(&[MAX_BYTES; 15]).is_some() && listed(&[MAX_BYTES; 16]).is_none());
        assert!(room(8, 4000).is_some() && room(64, 4000).is_none(), "a cell has room for so much");
    }
}
