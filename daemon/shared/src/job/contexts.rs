//! Matching contexts, and what a communicator has in the segment by its context: a collective cell, a roster, an entry in the list of revoked ones.

use super::layout::{MAX_CELLS, revocations_at, rosters_at};
use super::{JobSegment, REVOCATIONS};
use crate::cell::{CELL_BYTES, Cell, CellHead, DATA_AT, Groups};
use crate::mem::sync::{AtomicU32, Ordering, may_die};
use crate::roster::{self, Roster, RosterHead};

/// A matching context names its communicator's collective cell: bit 0 is the plane, then the cell + 1 (0: none) in
/// `CELL_BITS` bits, then a serial number. MPI_COMM_WORLD is context 0 and has cell 0; MPI_COMM_SELF is context 2.
const CELL_BITS: u32 = 11;
const CELL_MASK: u32 = (1 << CELL_BITS) - 1;

impl JobSegment {
    /// Entry `index` of the list of revoked contexts, which grows at its end; `None` behind that.
    pub fn revocation(&self, index: usize) -> Option<u32> {
        if index >= REVOCATIONS {
            return None;
        }
        self.revocations()[index].load(Ordering::SeqCst).checked_sub(1)
    }

    /// Add a context to the list of revoked ones, whose first `seen` entries the caller knows. One atomic step, so that it is there for all or
    /// for none whenever the caller dies. False: the list is full.
    pub fn revoke(&self, context: u32, seen: usize) -> bool {
        let free =
            |entry: &AtomicU32| entry.compare_exchange(0, context + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        let added = self.revocations().iter().skip(seen).any(free);
        if added {
            may_die();
            self.note_change();
        }
        added
    }

    fn revocations(&self) -> &[AtomicU32] {
        let at = self.segment.at(revocations_at(&self.config), REVOCATIONS * size_of::<AtomicU32>());
        // SAFETY: inside the mapping, aligned; atomics only.
        unsafe { std::slice::from_raw_parts(at.cast::<AtomicU32>().as_ptr(), REVOCATIONS) }
    }

    /// This is the segment of node `node` of the job's `nodes`.
    pub fn set_node(&self, node: u32, nodes: u32) {
        self.header().nodes.store(node << 16 | nodes, Ordering::Relaxed);
    }

    /// A pair of matching contexts that no other living communicator has; the first one.
    pub fn new_context(&self) -> u32 {
        let cell = self.take_cell().map_or(0, |cell| cell + 1);
        self.new_context_without_cell() | (cell << 1)
    }

    /// As `new_context`, for a communicator whose collectives go by messages.
    pub fn new_context_without_cell(&self) -> u32 {
        let node = self.header().nodes.load(Ordering::Relaxed) >> 16;
        self.context_of(node, self.header().communicators.fetch_add(1, Ordering::Relaxed))
    }

    /// The context that each node of a job of several nodes knows by this number without asking another one.
    pub fn agreed_context(&self, number: u32) -> u32 {
        let nodes = self.header().nodes.load(Ordering::Relaxed) & 0xffff;
        self.context_of(nodes, number)
    }

    /// The context of this number of a node's own, or, with the number of nodes in its place, of those that all know.
    fn context_of(&self, node: u32, number: u32) -> u32 {
        // Serial numbers start at 1, so that none meets MPI_COMM_WORLD's or MPI_COMM_SELF's context.
        const SERIALS: u32 = (1 << (31 - CELL_BITS)) - 1;
        let kinds = (self.header().nodes.load(Ordering::Relaxed) & 0xffff) + 1;
        let serial = number % (SERIALS / kinds) * kinds + node + 1;
        serial << (CELL_BITS + 1)
    }

    /// All members of the communicator with this context have ended: its cell is as new.
    pub fn reclaim_context(&self, context: u32) {
        let Some(number) = self.cell_number(context) else { return };
        self.cell_at(number).0.reset();
        self.header().cells[number as usize / 64].fetch_and(!(1 << (number % 64)), Ordering::AcqRel);
    }

    /// A collective cell that no communicator has; `None` if all are taken. For members of a communicator whose context names none, because
    /// it has members on other nodes' segments, too.
    pub fn take_cell(&self) -> Option<u32> {
        let limit = self.config.cells.min(MAX_CELLS as u32);
        for (index, word) in self.header().cells.iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != u64::MAX {
                let bit = bits.trailing_ones();
                let cell = index as u32 * 64 + bit;
                if cell >= limit {
                    return None;
                }
                match word.compare_exchange(bits, bits | 1 << bit, Ordering::AcqRel, Ordering::Relaxed) {
                    Ok(_) => return Some(cell),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Collective cell `number`, as a member of a communicator whose ranks are spread like this sees it.
    #[inline]
    pub fn cell<'a>(&'a self, number: u32, groups: &'a Groups) -> Cell<'a> {
        let (head, data) = self.cell_at(number);
        Cell { head, data, groups }
    }

    #[inline]
    fn cell_at(&self, number: u32) -> (&CellHead, *mut u8) {
        let at = self.segment.at(4096 + u64::from(number) * CELL_BYTES, CELL_BYTES as usize);
        // SAFETY: inside the mapping, aligned; the head is atomics only; the data follows it.
        unsafe { (at.cast::<CellHead>().as_ref(), at.as_ptr().add(DATA_AT)) }
    }

    /// Is there a cell of this number?
    pub fn has_cell(&self, number: u32) -> bool {
        number < self.config.cells
    }

    /// The number of the cell of the communicator with this context, if it has one.
    #[inline]
    pub fn cell_number(&self, context: u32) -> Option<u32> {
        let number = if context == 0 { 0 } else { ((context >> 1) & CELL_MASK).checked_sub(1)? };
        (number < self.config.cells).then_some(number)
    }

    /// The roster of the communicator with this context, if it has a collective cell.
    pub fn roster(&self, context: u32) -> Option<Roster<'_>> {
        let context = context & !1;
        if context == 2 {
            // Every rank's MPI_COMM_SELF.
            return None;
        }
        self.roster_at(self.cell_number(context)?, context)
    }

    /// The roster of the communicator with this context, which may have drawn its cell later. For who looks from outside: takes its time.
    pub fn find_roster(&self, context: u32) -> Option<Roster<'_>> {
        let context = context & !1;
        let drawn = || {
            let taken = self.header().cells.iter().map(|word| word.load(Ordering::Relaxed));
            let numbers = taken
                .zip(0u32..)
                .flat_map(|(bits, at)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at * 64 + bit));
            let mut rosters = numbers.filter_map(|number| self.roster_at(number, context));
            rosters.find(|roster| roster.is_current())
        };
        self.roster(context).or_else(drawn)
    }

    /// The roster beside collective cell `number`, for the communicator with this context.
    pub fn roster_at(&self, number: u32, context: u32) -> Option<Roster<'_>> {
        if number >= self.config.cells {
            return None;
        }
        let bytes = roster::bytes_for(self.config.ranks);
        let start = rosters_at(&self.config) + u64::from(number) * bytes;
        let at = self.segment.at(start, bytes as usize).as_ptr();
        // SAFETY: inside the mapping, aligned; atomics only; the members' words follow the head.
        let (head, members) = unsafe {
            let words = at.add(size_of::<RosterHead>()).cast::<AtomicU32>();
            (&*at.cast::<RosterHead>(), std::slice::from_raw_parts(words, self.config.ranks as usize))
        };
        Some(Roster { context, head, members })
    }

    /// The roster of the communicator that uses a collective cell.
    pub fn roster_of_cell(&self, cell: u32) -> Option<Roster<'_>> {
        Some(self.roster_at(cell, 0)?.written())
    }

    /// A member frees its communicator of `members` processes; the last one gives the cell back.
    pub fn release_context(&self, context: u32, members: u32) {
        if let Some(number) = self.cell_number(context) {
            self.release_cell(number, members);
        }
    }

    /// One of the `members` processes that use a cell needs it no more; the last one gives it back.
    pub fn release_cell(&self, number: u32, members: u32) {
        if self.cell_at(number).0.release(members) {
            self.header().cells[number as usize / 64].fetch_and(!(1 << (number % 64)), Ordering::AcqRel);
        }
    }
}
