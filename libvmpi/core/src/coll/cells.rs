//! Fast paths through shared memory, for ranks that share a node.
//!
//! Barrier, small broadcasts, reductions and scans with predefined operations (`cell_reduce`), and small blocks from and for each rank (`cell_blocks`; `cell_lists`
//! where each has a count of its own), go
//! through the communicator's collective cell (`vmpi_shared::cell`): no message, and every rank is switched in once, or once for several operations if it need
//! not wait for the others. All ranks of the communicator decide alike, because they decide by what MPI makes equal on all of them (size, type signature, operation).
//!
//! A context names its communicator's cell in a job of one node. Where there are several, each node's members have a cell of their own
//! beside the context (`draw`); what of an operation crosses between nodes is in `far_cells`.

use super::algo::bcast_binomial;
use super::layout::Layout;
use super::plan::{Data, Elem, Plan};
use super::wire::{self, Kit, Tags};
use super::work::Work;
use super::{cell_blocks, cell_lists, cell_reduce};
use crate::comm::Communicator;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use crate::lock;
use crate::monitor;
use crate::simulate;
use crate::process::{self, endpoint};
use crate::request;
use crate::tool::event;
use std::rc::Rc;
use vmpi_shared::cell::{Cell, DATA_BYTES, DISAGREED, GROUPS, Groups, Turn};
use vmpi_shared::mem::sync::Ordering;

/// Broadcasts of more bytes than this go by messages (single copy, pipelined).
const MAX_BCAST_BYTES: usize = 16384;

/// A communicator's cell, as those of its members see it that share it: all, or those of this rank's node.
pub struct Members {
    groups: Groups,
    /// This rank's place among them, and how many they are.
    place: u32,
    size: u32,
    /// Two or more of them share each core, on average.
    crowded: bool,
    /// Job ranks of the other members of this rank's group.
    mine: Box<[u32]>,
    /// A job rank of each other group, which wakes the others there.
    delegates: Box<[u32]>,
}

impl Members {
    fn of(comm: &Communicator) -> Members {
        let home = |rank: u32| process::node().home_of(rank);
        let ranks = || sharers(comm).map(|rank| comm.local.world_rank(rank));
        let me = process::endpoint_rank();
        let own = Groups::of_core(home(me));
        let mut first = [None; GROUPS];
        let mut mine = Vec::new();
        for rank in ranks() {
            let group = Groups::of_core(home(rank));
            first[group].get_or_insert(rank);
            if group == own && rank != me {
                mine.push(rank);
            }
        }
        first[own] = None;
        let mut cores: Vec<u32> = ranks().map(home).collect();
        cores.sort_unstable();
        cores.dedup();
        Members {
            groups: Groups::new(home(me), ranks().map(home)),
            place: comm.layout().map_or(comm.rank, Layout::place),
            size: sharing(comm),
            crowded: sharing(comm) as usize >= 2 * cores.len(),
            mine: mine.into(),
            delegates: first.into_iter().flatten().collect(),
        }
    }
}

/// How many members share a cell with this rank.
fn sharing(comm: &Communicator) -> u32 {
    comm.layout().map_or(comm.size(), |layout| layout.local().len() as u32)
}

/// Which ones, by their ranks, in order.
pub(crate) fn sharers(comm: &Communicator) -> impl Iterator<Item = u32> {
    (0..sharing(comm)).map(|place| sharer(comm, place))
}

fn sharer(comm: &Communicator, place: u32) -> u32 {
    comm.layout().map_or(place, |layout| layout.local()[place as usize])
}

/// Are this communicator's members all on one node, and can they use a cell?
#[inline]
pub fn serve(comm: &Communicator) -> bool {
    if comm.is_inter() || comm.size() < 2 {
        return false;
    }
    match comm.layout() {
        // In virtual time collectives are made of messages.
        None => !simulate::is_on() && endpoint().job.cell_number(comm.context).is_some(),
        Some(layout) => layout.nodes() == 1,
    }
}

/// The number of the cell that this rank shares with other members, if there is one. All who would share it must ask, in a collective call
/// that has these tags; in the first one they may have to tell each other.
pub(super) fn number(comm: &Communicator, tags: Tags) -> Result<Option<u32>> {
    match (comm.layout(), comm.drawn_cell.get()) {
        (None, _) => Ok(endpoint().job.cell_number(comm.context)),
        (_, Some(drawn)) => Ok(*drawn),
        (Some(layout), None) => draw(comm, layout, tags),
    }
}

/// The first of the members on this node takes a cell of this node's segment and tells the others. MPI_COMM_WORLD's is always the same.
///
/// Death story: that of any message within a plan.
#[cold]
fn draw(comm: &Communicator, layout: &Layout, tags: Tags) -> Result<Option<u32>> {
    let job = &endpoint().job;
    let mut word = [0u8; 4];
    if comm.context != 0 {
        if layout.place() == 0 {
            word = job.take_cell().map_or(0, |number| number + 1).to_ne_bytes();
        }
        let data = Data { at: word.as_mut_ptr(), count: word.len() as u64, elem: Elem::BYTE };
        let mut plan = Plan::default();
        layout.phase(&mut plan, |plan, ranks| bcast_binomial::build(plan, ranks, data, 0));
        // SAFETY: the word outlives the plan's one execution.
        unsafe { wire::execute(comm, plan, Rc::new(Kit::bytes()?), tags)? };
    }
    let drawn = match (comm.context, u32::from_ne_bytes(word)) {
        (0, _) => Some(0),
        (_, word) => word.checked_sub(1),
    };
    let drawn = drawn.filter(|number| job.has_cell(*number));
    if let Some(roster) = drawn.and_then(|number| job.roster_at(number, comm.context)) {
        roster.enroll(comm.rank, comm.size(), process::endpoint_rank());
        // Who is missing has not enrolled.
        if layout.place() == 0 {
            comm.local.iter().zip(0..).for_each(|(member, rank)| roster.enroll(rank, comm.size(), member));
        }
        let name = comm.name();
        if !name.is_empty() {
            roster.rename(&name);
        }
    }
    Ok(*comm.drawn_cell.get_or_init(|| drawn))
}

/// The communicator is gone for this member: the last one gives a cell back that was drawn for it.
pub(crate) fn give_back(comm: &Communicator) {
    if let Some(Some(number)) = comm.drawn_cell.get()
        && comm.context != 0
    {
        endpoint().job.release_cell(*number, sharing(comm));
    }
}

/// How the members that share this communicator's cell are spread.
fn members(comm: &Communicator) -> &Members {
    comm.cell_members.get_or_init(|| Members::of(comm))
}

/// The barrier of a blocking call, where [`serve`] says so. `None`: there is no cell after all.
pub fn barrier(comm: &Communicator, tags: Tags) -> Option<Result<()>> {
    let number = number(comm, tags).transpose()?;
    Some(number.and_then(|number| Visit::start(comm, number, 0)?.reduce(None, 0, || 0, |_| ())))
}

/// May so small a broadcast go through a cell?
pub(super) fn fits_bcast(bytes: usize) -> bool {
    bytes <= MAX_BCAST_BYTES.min(DATA_BYTES)
}

/// How much of the communicator's cell `work` takes, if it may go through it; the same at all its ranks.
fn room(comm: &Communicator, work: &Work, kit: &Kit) -> Option<usize> {
    let size = comm.size();
    match work {
        Work::Bcast { data, .. } => Some(data.bytes() as usize).filter(|bytes| fits_bcast(*bytes)),
        Work::Allreduce { send, .. } | Work::Reduce { send, .. } | Work::ReduceScatter { send, .. } => {
            cell_reduce::room(send, kit, size)
        }
        // One after the other, which takes longer than by messages where each rank has a core of its own.
        Work::Scan { send, .. } | Work::Exscan { send, .. } if members(comm).crowded => {
            cell_reduce::room(send, kit, size)
        }
        Work::Gather { send, recv, even: true, .. } => {
            let block = recv.as_ref().map(|recv| recv.get(0)).or(*send)?;
            cell_blocks::room(block.bytes(), size)
        }
        Work::Scatter { send, recv, even: true, .. } => {
            let block = send.as_ref().map(|send| send.get(0)).or(*recv)?;
            cell_blocks::room(block.bytes(), size)
        }
        Work::Allgather { recv, .. } => cell_blocks::room_for(recv, size),
        Work::Alltoall { recv, even: true, .. } => cell_blocks::room(recv.bytes(), size),
        Work::Gather { even: false, .. } | Work::Scatter { even: false, .. } => cell_lists::room_for_one(size),
        Work::Alltoall { send: Some(_), even: false, .. } => cell_lists::room_for_all(size),
        Work::Alltoall { send: None, .. } | Work::Barrier | Work::Neighbor { .. } => None,
        Work::Scan { .. } | Work::Exscan { .. } => None,
    }
}

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer), and say what has become of it and what is left to be done with messages. `None`: the caller executes a plan
/// of all.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit, tags: Tags) -> Option<(Result<()>, Plan)> {
    if !serve(comm) {
        return None;
    }
    let bytes = room(comm, work, kit)?;
    let number = number(comm, tags).transpose()?;
    let visit = match number.and_then(|number| Visit::start(comm, number, bytes)) {
        Ok(visit) => visit,
        Err(error) => return Some((Err(error), Plan::default())),
    };
    // SAFETY: the caller's contract; a lane has room for what `room` says.
    let done = unsafe {
        match work {
            Work::Gather { send, recv, root, even: false } => {
                return Some(cell_lists::gather(visit, *send, recv.as_ref(), *root as u32, kit));
            }
            Work::Scatter { send, recv, root, even: false } => {
                return Some(cell_lists::scatter(visit, send.as_ref(), *recv, *root as u32, kit));
            }
            Work::Alltoall { send: Some(send), recv, even: false } => {
                return Some(cell_lists::alltoall(visit, send, recv, kit));
            }
            Work::Bcast { data, root } => visit.bcast(data, *root as u32, false, kit),
            Work::Allreduce { send, recv, .. } => cell_reduce::combine(visit, send, Some(recv), None, kit),
            Work::Reduce { send, recv, root, .. } => {
                cell_reduce::combine(visit, send, recv.as_ref(), Some(*root as u32), kit)
            }
            Work::ReduceScatter { send, recv, counts, .. } => cell_reduce::parts(visit, send, recv, counts, kit),
            Work::Scan { send, recv } => cell_reduce::scan(visit, send, recv, true, kit),
            Work::Exscan { send, recv } => cell_reduce::scan(visit, send, recv, false, kit),
            Work::Gather { send, recv, root, .. } => {
                cell_blocks::gather(visit, *send, recv.as_ref(), *root as u32, kit)
            }
            Work::Scatter { send, recv, root, .. } => {
                cell_blocks::scatter(visit, send.as_ref(), *recv, *root as u32, kit)
            }
            Work::Allgather { send, recv, .. } => cell_blocks::allgather(visit, *send, recv, kit),
            Work::Alltoall { send, recv, .. } => cell_blocks::alltoall(visit, send.as_ref(), recv, kit),
            Work::Barrier | Work::Neighbor { .. } => return None,
        }
    };
    Some((done, Plan::default()))
}

/// This rank has `bytes`, and was told of so many.
#[cold]
pub(super) fn disagree(there: u64, bytes: u64) -> Result<()> {
    let of_others =
        if there == DISAGREED { "other ranks have another number".into() } else { format!("the root has {there}") };
    fail(Class::Truncate, format!("this rank has {bytes} bytes of data, {of_others}; MPI demands the same of all"))
}

/// One operation of one rank in a cell.
pub(super) struct Visit<'a> {
    comm: &'a Communicator,
    cell: Cell<'a>,
    cell_number: u32,
    turn: Turn,
}

impl<'a> Visit<'a> {
    /// The next operation in the communicator's cell of this number, with so many bytes of data in all; waits until there is room for it.
    pub fn start(comm: &'a Communicator, cell_number: u32, bytes: usize) -> Result<Visit<'a>> {
        let cell = endpoint().job.cell(cell_number, &members(comm).groups);
        let number = comm.cell_operations.get();
        comm.cell_operations.set(number + 1);
        let turn = Turn::new(number, bytes);
        let visit = Visit { comm, cell, cell_number, turn };
        if turn.may_start(comm.cell_left.get()) || cell.is_free(&turn) {
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
            monitor::in_cell(visit.comm, true, root.map(|root| sharer(visit.comm, root)), bytes);
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
            self.comm.cell_left.set(turn.number());
        } else if waits {
            self.wait(|| cell.is_posted(&turn))?;
            if root.is_none() {
                self.tell_group();
            }
            self.comm.cell_left.set(turn.number());
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
        monitor::in_cell(self.comm, false, to.map(|place| sharer(self.comm, place)), bytes);
    }

    /// This rank takes so many bytes of each other member.
    pub fn count_taken(&self, bytes: usize) {
        monitor::in_cell(self.comm, true, Some(self.comm.rank), bytes);
    }

    pub(super) fn leave(&self) {
        if self.cell.leave(&self.turn) {
            self.wake_all();
        }
    }

    fn members(&self) -> &'a Members {
        self.comm.cell_members.get().expect("made when the visit began")
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
                    request::block(seen, request::CALL_COLLECTIVE, -1, -1);
                }
                threads.fetch_sub(1, Ordering::SeqCst);
            } else {
                event::around(-1, -1, || {
                    endpoint().suspend_for_cell(self.cell_number, request::CALL_COLLECTIVE, &over);
                });
            }
        }
    }
}
