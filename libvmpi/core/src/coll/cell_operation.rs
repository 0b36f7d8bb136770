//! One operation of one rank in its communicator's cell: arriving, waiting, being told, leaving.

use crate::calls;
use crate::coll::p2p_machine::Kit;
use crate::coll::plan::Data;
use crate::comm::Communicator;
use crate::comm::cell::{Sharers, members, sharer, sharers};
use crate::datatype;
use crate::errors::{Class, Result, fail};
use crate::lock;
use crate::monitor;
use crate::process::{self, endpoint};
use crate::request;
use crate::tool::event;
use vmpi_shared::cell::{Cell, DISAGREED, Turn};
use vmpi_shared::mem::sync::Ordering;
use vmpi_shared::monitor::Flow;

/// This rank has `bytes`, and was told of so many.
#[cold]
pub(super) fn disagree(there: u64, bytes: u64) -> Result<()> {
    let of_others =
        if there == DISAGREED { "other ranks have another number".into() } else { format!("the root has {there}") };
    fail(Class::Truncate, format!("this rank has {bytes} bytes of data, {of_others}; MPI demands the same of all"))
}

/// One operation of one rank in a cell.
pub(super) struct CellOperation<'a> {
    comm: &'a Communicator,
    cell: Cell<'a>,
    cell_number: u32,
    turn: Turn,
}

impl<'a> CellOperation<'a> {
    /// The next operation in the communicator's cell of this number, with so many bytes of data in all; waits until there is room for it.
    pub fn start(comm: &'a Communicator, cell_number: u32, bytes: usize) -> Result<CellOperation<'a>> {
        let cell = endpoint().job.cell(cell_number, &members(comm).groups);
        let number = comm.cell.operations.get();
        comm.cell.operations.set(number + 1);
        let turn = Turn::new(number, bytes);
        let visit = CellOperation { comm, cell, cell_number, turn };
        if turn.may_start(comm.cell.left.get()) || cell.is_free(&turn) {
            return Ok(visit);
        }
        visit.wait(|| cell.want(&turn)).map(|()| visit)
    }

    /// All arrive, the last one merges and says how many bytes that came to, then everyone (or only the member at place `root`) takes the result.
    pub fn reduce(
        self,
        root: Option<u32>,
        bytes: usize,
        merge: impl FnOnce() -> u64,
        take: impl FnOnce(u64),
    ) -> Result<()> {
        let last = |visit: &Self| {
            let said = merge();
            in_cell(visit.comm, true, root.map(|root| sharer(visit.comm, root)), bytes);
            said
        };
        self.meet(root, last, take)
    }

    /// All arrive, and the last one does `last`; then everyone (or only the member at place `root`) is told what it said.
    pub fn meet(self, root: Option<u32>, last: impl FnOnce(&Self) -> u64, then: impl FnOnce(u64)) -> Result<()> {
        let (cell, turn) = (self.cell, self.turn);
        let waits = root.is_none_or(|root| root == self.members().place);
        if cell.arrive(&turn) {
            let said = last(&self);
            cell.post(&turn, said);
            match root {
                Some(root) => self.wake_one(root),
                None => self.wake_group_by_group(),
            }
            self.comm.cell.left.set(turn.number());
        } else if waits {
            self.wait(|| cell.is_posted(&turn))?;
            if root.is_none() {
                self.tell_group();
            }
            self.comm.cell.left.set(turn.number());
        }
        if waits {
            then(cell.said(&turn));
        }
        self.leave();
        Ok(())
    }

    /// The member at place `root` writes `bytes` for each other one, and says so (or that they are not to be had: `spoilt`); the others wait, and read as
    /// many as they are told.
    pub fn spread(
        self,
        root: u32,
        (bytes, spoilt): (u64, bool),
        write: impl FnOnce(),
        read: impl FnOnce(u64),
    ) -> Result<()> {
        let (cell, turn) = (self.cell, self.turn);
        if self.members().place == root {
            if !spoilt {
                write();
            }
            cell.post(&turn, if spoilt { DISAGREED } else { bytes });
            self.wake_all();
        } else {
            self.wait(|| cell.is_posted(&turn))?;
            read(cell.said(&turn));
        }
        self.leave();
        Ok(())
    }

    /// [`Self::spread`] the same data to all. `spoilt`: the root has none.
    ///
    /// # Safety
    /// `data` is the caller's buffer.
    pub unsafe fn bcast(self, data: &Data, root: u32, spoilt: bool, kit: &Kit) -> Result<()> {
        let (cell, turn, bytes) = (self.cell, self.turn, data.bytes());
        let ty = &kit.types[data.elem.id as usize];
        let write = || {
            // SAFETY: the slot is free, and has room for so many.
            let into = unsafe { std::slice::from_raw_parts_mut(cell.data(&turn, bytes as usize), bytes as usize) };
            // SAFETY: the caller's contract.
            unsafe { datatype::pack(ty, data.count, data.at.cast_const().cast(), 0, into) };
        };
        let mut there = bytes;
        let read = |said: u64| {
            there = said;
            if said == DISAGREED {
                return;
            }
            // SAFETY: they have been posted, and lie where so many lie.
            let from = unsafe {
                std::slice::from_raw_parts(cell.data(&turn, said as usize).cast_const(), bytes.min(said) as usize)
            };
            // SAFETY: the caller's contract.
            unsafe { datatype::unpack(ty, data.count, data.at.cast(), 0, from) };
        };
        if self.place() == root && !spoilt {
            self.count_given(None, bytes as usize);
        }
        self.spread(root, (bytes, spoilt), write, read)?;
        if there <= bytes { Ok(()) } else { disagree(there, bytes) }
    }

    /// This rank's place among those who share the cell, and how many they are.
    pub fn place(&self) -> u32 {
        self.members().place
    }

    pub fn size(&self) -> u32 {
        self.members().size
    }

    /// The cell, and this operation in it.
    pub fn cell(&self) -> (Cell<'a>, Turn) {
        (self.cell, self.turn)
    }

    /// This rank gives each other member, or the one at this place, so many bytes.
    pub fn count_given(&self, to: Option<u32>, bytes: usize) {
        in_cell(self.comm, false, to.map(|place| sharer(self.comm, place)), bytes);
    }

    /// This rank takes so many bytes of each other member.
    pub fn count_taken(&self, bytes: usize) {
        in_cell(self.comm, true, Some(self.comm.rank), bytes);
    }

    pub(super) fn leave(&self) {
        if self.cell.leave(&self.turn) {
            self.wake_all();
        }
    }

    fn members(&self) -> &'a Sharers {
        members(self.comm)
    }

    fn wake(&self, ranks: impl Iterator<Item = u32>) {
        endpoint().wake_cell(self.cell_number, ranks);
    }

    pub(super) fn wake_one(&self, place: u32) {
        self.wake(std::iter::once(self.comm.local.world_rank(sharer(self.comm, place))));
    }

    fn wake_all(&self) {
        self.wake(sharers(self.comm).map(|rank| self.comm.local.world_rank(rank)));
    }

    /// All wait, or are about to look: wake those of this core, and one of each other core, who wakes the others there. So a rank's
    /// descriptor stays with its core.
    fn wake_group_by_group(&self) {
        if endpoint().node.header().recovery != 0 {
            // The one might die.
            return self.wake_all();
        }
        let members = self.members();
        self.wake(members.delegates.iter().copied());
        self.tell_group();
    }

    /// The operation is over: the first of each group to see that wakes the others of it.
    fn tell_group(&self) {
        let mine = &self.members().mine;
        if !mine.is_empty() && self.cell.tells(&self.turn) {
            self.wake(mine.iter().copied());
        }
    }

    /// Suspend until `over`, or until a failure or a revocation makes that impossible; what has come about before counts.
    pub(super) fn wait(&self, over: impl Fn() -> bool) -> Result<()> {
        loop {
            if over() {
                return Ok(());
            }
            let seen = request::progress();
            if over() {
                return Ok(());
            }
            self.comm.health.check_all()?;
            let threads = &process::node().rank(process::endpoint_rank()).cell_threads;
            if lock::is_threaded() {
                threads.fetch_add(1, Ordering::SeqCst);
                if !over() {
                    request::block(seen, calls::CALL_COLLECTIVE, -1, -1);
                }
                threads.fetch_sub(1, Ordering::SeqCst);
            } else {
                event::around(-1, -1, || {
                    endpoint().suspend_for_cell(self.cell_number, calls::CALL_COLLECTIVE, &over);
                });
            }
        }
    }
}

/// This rank has done the work of an operation in a collective cell: it has taken `bytes` from each other member that shares it
/// (`takes`) and hands as much to each of them, or to `root` only.
#[inline]
fn in_cell(comm: &Communicator, takes: bool, root: Option<u32>, bytes: usize) {
    if monitor::is_on() {
        count_cell(comm, takes, root, bytes as u64);
    }
}

#[cold]
fn count_cell(comm: &Communicator, takes: bool, root: Option<u32>, bytes: u64) {
    for member in sharers(comm).filter(|member| *member != comm.rank) {
        let peer = comm.local.world_rank(member);
        if takes {
            monitor::count(Flow::Gathered, peer, bytes);
        }
        if root.is_none_or(|root| root == member) {
            monitor::count(Flow::Collective, peer, bytes);
        }
    }
}
