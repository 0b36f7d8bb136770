//! Blocks of different sizes from and for each member through a cell: gather, scatter and alltoall where each block has a count of its own.
//!
//! Only its two ends know how long a block is. So its giver decides: as long as there is room, blocks lie in the giver's row of the cell, and the others go as messages. A word
//! for each block says which, and how long it is: so all ends of an operation agree, also where the program is wrong about a size. What a row
//! has room for depends on the number of members alone.

use super::cell_blocks::{deposit, disagree, take};
use super::p2p_machine::Kit;
use super::plan::{Data, Plan, Ranks, Regions, Via};
use crate::coll::cell_operation::CellOperation;
use crate::errors::Result;
use vmpi_shared::cell::SIZES;

/// More members than these go by messages, in an alltoall: rows would have room for hardly more than the words.
const MOST_SWAPPING: u32 = 32;
/// The same for gather and scatter.
const MOST_MEMBERS: u32 = 512;
const WORD: usize = size_of::<u64>();
/// Bits of a word for where the block lies.
const PLACE_BITS: u32 = 20;

/// How much of a cell a gather or a scatter takes, if it may go through it: of the smallest slots there are most, so that a root or a leaf runs ahead by most.
pub(super) fn room_for_one(members: u32) -> Option<usize> {
    (members <= MOST_MEMBERS).then_some(SIZES[if members <= 32 { 0 } else { 2 }].0)
}

/// How much of a cell an alltoall takes, if it may go through it.
pub(super) fn room_for_all(members: u32) -> Option<usize> {
    (members <= MOST_SWAPPING).then_some(SIZES[2].0)
}

/// What a word says of a block.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Said {
    bytes: u64,
    /// Where in the row it lies; `None`: it comes as a message, if there is anything.
    at: Option<usize>,
}

impl Said {
    fn word(self) -> u64 {
        self.bytes << PLACE_BITS | self.at.map_or(0, |at| at as u64 + 1)
    }

    fn of(word: u64) -> Said {
        Said { bytes: word >> PLACE_BITS, at: ((word & ((1 << PLACE_BITS) - 1)) as usize).checked_sub(1) }
    }
}

/// What one member gives: words, and behind them blocks.
struct Row {
    base: *mut u8,
    bytes: usize,
    /// Where the next block begins.
    end: usize,
}

impl Row {
    /// Row `number` of so many, each with so many words, in what an operation takes of the cell.
    fn of(visit: &CellOperation<'_>, room: usize, (number, rows): (u32, u32), words: u32) -> Row {
        let (cell, turn) = visit.cell();
        let bytes = room / rows as usize / WORD * WORD;
        // SAFETY: within the room of the operation.
        let base = unsafe { cell.data(&turn, room).add(number as usize * bytes) };
        Row { base, bytes, end: words as usize * WORD }
    }

    /// Give `data` as block `number`. False: it must go as a message.
    ///
    /// # Safety
    /// The row is this rank's until it arrives; `data` is the caller's.
    unsafe fn give(&mut self, number: u32, data: &Data, kit: &Kit) -> bool {
        let bytes = data.bytes();
        let fits = bytes > 0 && bytes <= (self.bytes - self.end) as u64;
        let at = fits.then_some(self.end);
        // SAFETY: the words come first, and there is room for what fits behind them.
        unsafe {
            self.base.cast::<u64>().add(number as usize).write(Said { bytes, at }.word());
            if fits {
                deposit(data, self.base.add(self.end), kit);
                self.end = (self.end + bytes as usize).next_multiple_of(WORD);
            }
        }
        fits || bytes == 0
    }

    /// Take block `number` into `into`, or plan to receive it from its giver, the member at place `from`; or note that this one gives more than is wanted.
    ///
    /// # Safety
    /// Its giver has arrived; `into` is the caller's.
    unsafe fn take(&self, number: u32, into: Data, from: u32, rest: &mut Rest, kit: &Kit) {
        // SAFETY: within the row.
        let said = Said::of(unsafe { self.base.cast::<u64>().add(number as usize).read() });
        match said.at {
            None if said.bytes == 0 => {}
            None => rest.plan.recv(rest.ranks, from, into),
            Some(at) if said.bytes <= into.bytes() && at as u64 + said.bytes <= self.bytes as u64 => {
                // SAFETY: so many bytes lie there.
                unsafe { take(&into, self.base.add(at), said.bytes as usize, kit) };
            }
            Some(_) => {
                rest.wrong.get_or_insert((from, said.bytes, into.bytes()));
            }
        }
    }
}

/// What is left when all has been taken from the cell.
struct Rest {
    ranks: Ranks,
    plan: Plan,
    sends: Vec<(u32, Data)>,
    /// Who gives how much more than is wanted.
    wrong: Option<(u32, u64, u64)>,
}

impl Rest {
    fn of(visit: &CellOperation<'_>) -> Rest {
        let ranks = Ranks { rank: visit.place(), size: visit.size(), via: Via::Main };
        Rest { ranks, plan: Plan::default(), sends: Vec::new(), wrong: None }
    }

    /// This rank's own block.
    fn copy(&mut self, from: Data, to: Data) {
        match (from.packed(), to.packed()) {
            (Some(from), Some(to)) if from.bytes() == to.bytes() => {
                // SAFETY: both are the caller's, who keeps them apart unless they are the same.
                unsafe { std::ptr::copy(from.at.cast_const(), to.at, to.bytes() as usize) };
            }
            _ => self.plan.copy(from, to),
        }
    }

    /// What has become of it so far, and what is to be done by messages.
    fn end(mut self, met: Result<()>) -> (Result<()>, Plan) {
        if met.is_err() {
            return (met, Plan::default());
        }
        for (to, data) in self.sends {
            self.plan.send(self.ranks, to, data);
        }
        if !self.plan.steps.is_empty() {
            self.plan.fence();
        }
        (self.wrong.map_or(Ok(()), |(place, there, wanted)| disagree(place, there, wanted)), self.plan)
    }
}

/// # Safety
/// `send` and `recv` are the caller's buffers, `recv` at the root, `send` at the others; the visit has [`room_for_one`].
pub(super) unsafe fn gather(
    visit: CellOperation<'_>,
    send: Option<Data>,
    recv: Option<&Regions>,
    root: u32,
    kit: &Kit,
) -> (Result<()>, Plan) {
    let (me, size) = (visit.place(), visit.size());
    let room = room_for_one(size).expect("asked before");
    let mut rest = Rest::of(&visit);
    let row = |place: u32| Row::of(&visit, room, (place, size), 1);
    let rows: Option<Vec<Row>> = (me == root).then(|| (0..size).map(row).collect());
    if let Some(own) = send {
        match recv.filter(|_| me == root) {
            Some(recv) => rest.copy(own, recv.get(me as usize)),
            // SAFETY: the caller's contract.
            None if unsafe { row(me).give(0, &own, kit) } => visit.count_given(Some(root), own.bytes() as usize),
            None => rest.sends.push((root, own)),
        }
    }
    let met = visit.meet(
        Some(root),
        |_| 0,
        |_| {
            let (Some(rows), Some(recv)) = (rows, recv) else { return };
            for (place, row) in (0..size).zip(rows).filter(|(place, _)| *place != root) {
                // SAFETY: all have arrived.
                unsafe { row.take(0, recv.get(place as usize), place, &mut rest, kit) };
            }
        },
    );
    rest.end(met)
}

/// # Safety
/// As [`gather`], the other way.
pub(super) unsafe fn scatter(
    visit: CellOperation<'_>,
    send: Option<&Regions>,
    recv: Option<Data>,
    root: u32,
    kit: &Kit,
) -> (Result<()>, Plan) {
    let (me, size) = (visit.place(), visit.size());
    let room = room_for_one(size).expect("asked before");
    let mut rest = Rest::of(&visit);
    let mut row = Row::of(&visit, room, (0, 1), size);
    if let Some(send) = send.filter(|_| me == root) {
        for to in (0..size).filter(|to| *to != root) {
            let data = send.get(to as usize);
            // SAFETY: the slot is the root's until it posts it.
            match unsafe { row.give(to, &data, kit) } {
                true => visit.count_given(Some(to), data.bytes() as usize),
                false => rest.sends.push((to, data)),
            }
        }
        if let Some(own) = recv {
            rest.copy(send.get(me as usize), own);
        }
    }
    let met = visit.spread(
        root,
        (0, false),
        || {},
        |_| {
            if let Some(into) = recv {
                // SAFETY: the root has left all.
                unsafe { row.take(me, into, root, &mut rest, kit) };
            }
        },
    );
    rest.end(met)
}

/// # Safety
/// As [`gather`], with [`room_for_all`].
pub(super) unsafe fn alltoall(
    visit: CellOperation<'_>,
    send: &Regions,
    recv: &Regions,
    kit: &Kit,
) -> (Result<()>, Plan) {
    let (me, size) = (visit.place(), visit.size());
    let room = room_for_all(size).expect("asked before");
    let mut rest = Rest::of(&visit);
    let mut rows: Vec<Row> = (0..size).map(|place| Row::of(&visit, room, (place, size), size)).collect();
    for to in (0..size).filter(|to| *to != me) {
        let data = send.get(to as usize);
        // SAFETY: the row is this rank's until it arrives.
        match unsafe { rows[me as usize].give(to, &data, kit) } {
            true => visit.count_given(Some(to), data.bytes() as usize),
            false => rest.sends.push((to, data)),
        }
    }
    rest.copy(send.get(me as usize), recv.get(me as usize));
    let met = visit.meet(
        None,
        |_| 0,
        |_| {
            for (place, row) in (0..size).zip(rows).filter(|(place, _)| *place != me) {
                // SAFETY: all have arrived.
                unsafe { row.take(me, recv.get(place as usize), place, &mut rest, kit) };
            }
        },
    );
    rest.end(met)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for said in [
            Said { bytes: 0, at: None },
            Said { bytes: 1 << 40, at: None },
            Said { bytes: 8, at: Some(0) },
            Said { bytes: 4096, at: Some(65535) },
        ] {
            assert_eq!(Said::of(said.word()), said);
        }
    }

    #[test]
    fn rows_have_room_for_their_words_and_more() {
        for members in 2..=MOST_SWAPPING {
            let row = room_for_all(members).unwrap() / members as usize;
            assert!(row >= members as usize * (WORD + 56), "{members} members: {row}");
        }
        assert!(room_for_all(MOST_SWAPPING + 1).is_none() && room_for_one(MOST_MEMBERS + 1).is_none());
        let row = room_for_one(MOST_MEMBERS).unwrap() / MOST_MEMBERS as usize;
        assert!(row >= WORD + 120 && room_for_one(32).unwrap() / 32 >= WORD + 56);
    }
}
