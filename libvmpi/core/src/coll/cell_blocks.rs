//! Small blocks from and for each member through a cell. Gather, allgather, alltoall: each leaves what it gives there, and once all have arrived the root, or
//! each, takes its own; scatter: the root leaves all blocks.
//!
//! Each one's word is how many bytes it gives, and where they lie. So who gives less than is wanted is heard as with messages, and who gives more, or lays
//! them over another one's, is told of. (If what the one wants fits into a cell and what the other wants does not, they wait for each other as in a broadcast, which a deadlock's
//! report says.)

use super::cell_slots::{Slots, room as room_in_cell, stride};
use super::p2p_machine::Kit;
use super::plan::{Data, Regions};
use crate::coll::cell_operation::CellOperation;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use std::cell::Cell;
use vmpi_shared::cell::{DATA_BYTES, SIZES, size_for};

/// More bytes than this from each member go by messages.
const MAX_BYTES: u64 = 4096;

/// What a member says of what it leaves: so many bytes (as many as the word holds: or more), behind `before` bytes of others', in `all` bytes of data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Left {
    given: u64,
    before: usize,
    all: usize,
}

/// Bits of `before` and of `all` in a word, which are at most a cell's data.
const PLACE_BITS: u32 = 20;
const MOST_GIVEN: u64 = (1 << (u64::BITS - 2 * PLACE_BITS)) - 1;

impl Left {
    fn word(self) -> u64 {
        let place = (self.before as u64) << PLACE_BITS | self.all as u64;
        self.given.min(MOST_GIVEN) << (2 * PLACE_BITS) | place
    }

    fn of(word: u64) -> Left {
        let place = |word: u64| (word & ((1 << PLACE_BITS) - 1)) as usize;
        Left { given: word >> (2 * PLACE_BITS), before: place(word >> PLACE_BITS), all: place(word) }
    }

    fn end(&self) -> usize {
        self.before + self.given as usize
    }
}

/// How much of a cell `bytes` of each of so many members take, if they may go through it.
pub(super) fn room(bytes: u64, members: u32) -> Option<usize> {
    (bytes > 0 && bytes <= MAX_BYTES).then(|| room_in_cell(members, all_of(members, bytes))).flatten()
}

/// Data of so many members, if each leaves so many bytes.
fn all_of(members: u32, bytes: u64) -> usize {
    members as usize * stride(bytes)
}

/// As [`room`], for the blocks of an allgather, of which all members know all.
pub(super) fn room_for(blocks: &Regions, members: u32) -> Option<usize> {
    if let Regions::Even { first, .. } = blocks {
        return room(first.bytes(), members);
    }
    let (mut all, mut any) = (0, false);
    for place in 0..members {
        let bytes = blocks.get(place as usize).bytes();
        all += stride(bytes);
        any |= bytes > 0;
        if bytes > MAX_BYTES {
            return None;
        }
    }
    any.then(|| room_in_cell(members, all)).flatten()
}

/// # Safety
/// `send` and `recv` are the caller's buffers; the visit has [`room_for`] them.
pub(super) unsafe fn allgather(visit: CellOperation<'_>, send: Option<Data>, recv: &Regions, kit: &Kit) -> Result<()> {
    let me = visit.place() as usize;
    let own = send.unwrap_or_else(|| recv.get(me));
    visit.count_given(None, own.bytes() as usize);
    let wants = |place: u32| recv.get(place as usize).bytes();
    let behind = |place: usize| match recv {
        Regions::Even { first, .. } => place * stride(first.bytes()),
        Regions::Listed(list) => list[..place].iter().map(|block| stride(block.bytes())).sum(),
    };
    let left = Left { given: own.bytes(), before: behind(me), all: behind(visit.size() as usize) };
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, None, (left, std::iter::once(own)), wants, Taken::Whole, Some(recv), kit) }
}

/// # Safety
/// As above, with [`room`] for a block of each; `recv` is there at the root, `send` at the others.
pub(super) unsafe fn gather(
    visit: CellOperation<'_>,
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
    // As the others do it, who do not know how much the root wants.
    let left = Left { given: own.bytes(), before: me * stride(own.bytes()), all: all_of(visit.size(), own.bytes()) };
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, Some(root), (left, std::iter::once(own)), |_| wanted, Taken::Whole, recv, kit) }
}

/// # Safety
/// As above, for all blocks of `recv` together.
pub(super) unsafe fn alltoall(
    visit: CellOperation<'_>,
    send: Option<&Regions>,
    recv: &Regions,
    kit: &Kit,
) -> Result<()> {
    let (send, me, size) = (send.unwrap_or(recv), visit.place() as usize, visit.size() as usize);
    visit.count_given(None, send.get(0).bytes() as usize);
    let wanted = recv.bytes();
    let left = Left { given: send.bytes(), before: me * stride(wanted), all: all_of(visit.size(), wanted) };
    let blocks = (0..size).map(|to| send.get(to));
    // SAFETY: the caller's contract.
    unsafe { exchange(visit, None, (left, blocks), |_| wanted, Taken::Divided, Some(recv), kit) }
}

/// What of a member's bytes another one takes.
#[derive(Copy, Clone)]
enum Taken {
    Whole,
    /// There is a block for each, of which it takes its own.
    Divided,
}

/// Leave blocks as `left` says; the member at place `root`, or all, take what each member has left, of which they want as many bytes as `wants` says.
///
/// # Safety
/// As above.
unsafe fn exchange(
    visit: CellOperation<'_>,
    root: Option<u32>,
    (left, blocks): (Left, impl Iterator<Item = Data>),
    wants: impl Fn(u32) -> u64,
    taken: Taken,
    recv: Option<&Regions>,
    kit: &Kit,
) -> Result<()> {
    let (slots, me, size) = (Slots::of(&visit), visit.place(), visit.size());
    // SAFETY: this rank's word and bytes are its own until it arrives; there is room for what is wanted of it.
    unsafe {
        slots.word(me).write(left.word());
        if left.given <= wants(me) && left.end() <= left.all {
            let mut at = slots.data(left.all, left.before);
            for data in blocks {
                at = at.add(deposit(&data, at, kit));
            }
        }
    }
    let mut disagreement = None;
    let take_all = |_| {
        let Some(recv) = recv else { return };
        // Where the last one's bytes end, by the size of slot in which they lie.
        let mut ends = [0; SIZES.len()];
        for place in 0..size {
            // SAFETY: all have arrived.
            let there = Left::of(unsafe { slots.word(place).read() });
            let end = &mut ends[size_for(slots.bytes(there.all))];
            let lies = slots.bytes(there.all) <= DATA_BYTES && there.before >= *end && there.end() <= there.all;
            if there.given > wants(place) || !lies {
                disagreement.get_or_insert((place, there.given, wants(place)));
                continue;
            }
            *end = there.end();
            let (bytes, skip) = match taken {
                Taken::Whole => (there.given as usize, 0),
                Taken::Divided => (there.given as usize / size as usize, me as usize),
            };
            // SAFETY: so many bytes lie there, and nobody else's over them.
            unsafe { take(&recv.get(place as usize), slots.data(there.all, there.before + skip * bytes), bytes, kit) };
        }
    };
    visit.meet(root, |_| 0, take_all)?;
    match disagreement {
        None => Ok(()),
        Some((place, there, wanted)) => disagree(place, there, wanted),
    }
}

#[cold]
pub(super) fn disagree(place: u32, there: u64, bytes: u64) -> Result<()> {
    let of_others =
        if there > bytes { format!("this rank wants {bytes} of it") } else { "others another number".into() };
    fail(Class::Truncate, format!("rank {place} gives {there} bytes, but {of_others}; MPI demands the same of all"))
}

/// # Safety
/// As [`gather`], the other way.
pub(super) unsafe fn scatter(
    visit: CellOperation<'_>,
    send: Option<&Regions>,
    recv: Option<Data>,
    root: u32,
    kit: &Kit,
) -> Result<()> {
    let (slots, place, size) = (Slots::of(&visit), visit.place(), visit.size());
    let slot = |place: u32, bytes: u64| slots.data(all_of(size, bytes), place as usize * stride(bytes));
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
            // SAFETY: the slot is the root's until it posts it.
            unsafe { deposit(&send.get(to as usize), slot(to, given), kit) };
        }
        take_own(given);
    };
    if place == root {
        visit.count_given(None, given as usize);
    }
    visit.spread(root, (given, false), leave_all, take_own)?;
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
pub(super) unsafe fn deposit(data: &Data, at: *mut u8, kit: &Kit) -> usize {
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
pub(super) unsafe fn take(into: &Data, at: *const u8, bytes: usize, kit: &Kit) {
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
        assert_eq!(listed(&[0, 9, 1]), Some(3 * 8 + 24));
        assert!(listed(&[0, 0]).is_none() && listed(&[1, MAX_BYTES + 1]).is_none());
        assert!(listed(&[MAX_BYTES; 15]).is_some() && listed(&[MAX_BYTES; 16]).is_none());
        assert!(room(8, 4000).is_some() && room(64, 4000).is_none(), "a cell has room for so much");
    }

    #[test]
    fn words() {
        for left in [
            Left { given: 0, before: 0, all: 8 },
            Left { given: MOST_GIVEN, before: 65536, all: 65536 },
            Left { given: 4096, before: 8, all: 4104 },
        ] {
            assert_eq!(Left::of(left.word()), left);
        }
        assert_eq!(Left::of(Left { given: u64::MAX, before: 1, all: 2 }.word()).given, MOST_GIVEN);
    }
}
