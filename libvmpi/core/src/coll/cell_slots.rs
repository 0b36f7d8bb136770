//! What the members leave in a cell for one operation: a word from each, and their data.
//!
//! The words lie where their number alone puts them, so that members which are wrong about the amount of data find each other's all the same.

use crate::coll::cell_operation::CellOperation;
use vmpi_shared::cell::{Cell, DATA_BYTES, Turn};

const WORD: usize = size_of::<u64>();

/// How much of a cell the words of so many members and so many bytes of data take, if it has room for that.
pub(super) fn room(members: u32, bytes: usize) -> Option<usize> {
    let all = members as usize * WORD + bytes;
    (all <= DATA_BYTES).then_some(all)
}

/// Bytes from one member's data to the next one's.
pub(super) fn stride(bytes: u64) -> usize {
    bytes.next_multiple_of(WORD as u64) as usize
}

/// The members' part of an operation.
#[derive(Copy, Clone)]
pub(super) struct Slots<'a> {
    cell: Cell<'a>,
    turn: Turn,
    size: u32,
}

impl<'a> Slots<'a> {
    pub fn of(visit: &CellOperation<'a>) -> Slots<'a> {
        let (cell, turn) = visit.cell();
        Slots { cell, turn, size: visit.size() }
    }

    /// The word of the member at `place`.
    pub fn word(&self, place: u32) -> *mut u64 {
        debug_assert!(place < self.size);
        // SAFETY: within the room for the words of all.
        unsafe { self.cell.data(&self.turn, self.bytes(0)).cast::<u64>().add(place as usize) }
    }

    /// What the words and so many bytes of data take together.
    pub fn bytes(&self, data: usize) -> usize {
        self.size as usize * WORD + data
    }

    /// Byte `at` of the data, if those are `bytes` in all.
    pub fn data(&self, bytes: usize, at: usize) -> *mut u8 {
        debug_assert!(at <= bytes);
        // SAFETY: within the room of the operation.
        unsafe { self.cell.data(&self.turn, self.bytes(bytes)).add(self.bytes(at)) }
    }
}
