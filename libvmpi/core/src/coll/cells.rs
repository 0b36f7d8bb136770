//! Fast paths through shared memory, for ranks that share a node.
//!
//! Barrier, small broadcasts, reductions and allreductions with predefined operations, and small blocks of all for all (`cell_blocks`), go
//! through the communicator's collective cell (`vmpi_shared::cell`): no message, and every rank is switched in once. All ranks of the communicator
//! decide alike, because they decide by what MPI makes equal on all of them (size, type signature, operation).
//!
//! A context names its communicator's cell in a job of one node. Where there are several, each node's members have a cell of their own
//! beside the context (`draw`); what of an operation crosses between nodes is in `far_cells`.

use super::algo::bcast_binomial;
use super::cell_blocks;
use super::layout::Layout;
use super::plan::{Data, Elem, Plan};
use super::wire::{self, Kit, Tags};
use super::work::Work;
use crate::comm::Communicator;
use crate::datatype;
use crate::errors::Result;
use crate::lock;
use crate::monitor;
use crate::process::{self, endpoint};
use crate::request;
use crate::tool::event;
use std::rc::Rc;
use vmpi_shared::cell::{Cell, GROUPS, Groups, HALF_BYTES};
use vmpi_shared::mem::sync::Ordering;

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_REDUCE_BYTES: usize = 4096;
/// Broadcasts of more bytes than this go by messages (single copy, pipelined).
const MAX_BCAST_BYTES: usize = 16384;

/// A communicator's cell, as those of its members see it that share it: all, or those of this rank's node.
pub struct Members {
    groups: Groups,
    /// This rank's place among them, and how many they are.
    place: u32,
    size: u32,
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
        Members {
            groups: Groups::new(home(me), ranks().map(home)),
            place: comm.layout().map_or(comm.rank, Layout::place),
            size: sharing(comm),
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
        None => endpoint().job.cell_number(comm.context).is_some(),
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

/// The barrier of a blocking call, where [`serve`] says so. `None`: there is no cell after all.
pub fn barrier(comm: &Communicator, tags: Tags) -> Option<Result<()>> {
    let number = number(comm, tags).transpose()?;
    Some(number.and_then(|number| Visit::start(comm, number)?.reduce(None, 0, |_| (), || ())))
}

/// May so small a broadcast go through a cell?
pub(super) fn fits_bcast(bytes: usize) -> bool {
    bytes <= MAX_BCAST_BYTES.min(HALF_BYTES)
}

/// Can a cell of this many members reduce `data`?
pub(super) fn reduces(data: &Data, kit: &Kit, members: u32) -> bool {
    let ty = &kit.types[data.elem.id as usize];
    let fits = data.bytes() as usize <= Cell::slot_bytes(members).min(MAX_REDUCE_BYTES);
    let predefined = || kit.reduction.as_ref().is_some_and(|reduction| reduction.op.builtin().is_some());
    fits && ty.is_dense() && ty.true_lb() == 0 && predefined()
}

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer). `None`: the caller executes a plan.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit, tags: Tags) -> Option<Result<()>> {
    if !serve(comm) {
        return None;
    }
    match work {
        Work::Bcast { data, .. } if fits_bcast(data.bytes() as usize) => {}
        Work::Allreduce { send, .. } | Work::Reduce { send, .. } if reduces(send, kit, comm.size()) => {}
        Work::Allgather { recv, even: true, .. } if cell_blocks::fit(recv.get(0).bytes(), comm.size()) => {}
        Work::Alltoall { recv, even: true, .. } if cell_blocks::fit(recv.bytes(), comm.size()) => {}
        _ => return None,
    }
    let number = number(comm, tags).transpose()?;
    let visit = match number.and_then(|number| Visit::start(comm, number)) {
        Ok(visit) => visit,
        Err(error) => return Some(Err(error)),
    };
    // SAFETY: the caller's contract.
    unsafe {
        match work {
            Work::Bcast { data, root } => Some(visit.bcast(data, *root as u32, kit)),
            Work::Allreduce { send, recv, .. } => Some(combine(visit, send, Some(recv), None, kit)),
            Work::Reduce { send, recv, root, .. } => Some(combine(visit, send, recv.as_ref(), Some(*root as u32), kit)),
            Work::Allgather { send, recv, .. } => Some(cell_blocks::allgather(visit, *send, recv, kit)),
            Work::Alltoall { send, recv, .. } => Some(cell_blocks::alltoall(visit, send.as_ref(), recv, kit)),
            _ => None,
        }
    }
}

/// Reduce through the cell, to the member at place `root` or to all.
///
/// # Safety
/// `send` and `recv` are the caller's buffers, dense, of the same size.
pub(super) unsafe fn combine(
    visit: Visit<'_>,
    send: &Data,
    recv: Option<&Data>,
    root: Option<u32>,
    kit: &Kit,
) -> Result<()> {
    let (cell, number, bytes) = (visit.cell, visit.number, send.bytes() as usize);
    let (me, size) = (visit.members().place, visit.members().size);
    // SAFETY: this rank's slot is its own until it arrives.
    unsafe { std::ptr::copy_nonoverlapping(send.at.cast_const().cast::<u8>(), cell.slot(number, me, bytes), bytes) };
    let merge = |cell: &Cell<'_>| {
        let reduction = kit.reduction.as_ref().expect("checked by try_run");
        let ty = &kit.types[send.elem.id as usize];
        let result = cell.slot(number, size, bytes);
        // In rank order from the last to the first: inout = input op inout.
        // SAFETY: all have arrived: the slots are the last one's to read and the result its to write.
        unsafe {
            std::ptr::copy_nonoverlapping(cell.slot(number, size - 1, bytes), result, bytes);
            for rank in (0..size - 1).rev() {
                let input = cell.slot(number, rank, bytes).cast();
                reduction.op.apply(input, result.cast(), send.count, reduction.datatype, ty);
            }
        }
    };
    let take = || {
        if let Some(recv) = recv {
            // SAFETY: the result is posted; `recv` is the caller's buffer of as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(cell.slot(number, size, bytes), recv.at.cast::<u8>(), bytes) };
        }
    };
    visit.reduce(root, bytes, merge, take)
}

/// One operation of one rank in a cell.
pub(super) struct Visit<'a> {
    comm: &'a Communicator,
    cell: Cell<'a>,
    cell_number: u32,
    /// Number of the operation.
    number: u64,
}

impl<'a> Visit<'a> {
    /// The next operation in the communicator's cell of this number; waits until its half is free.
    pub fn start(comm: &'a Communicator, cell_number: u32) -> Result<Visit<'a>> {
        let job = &endpoint().job;
        let cell = job.cell(cell_number, &comm.cell_members.get_or_init(|| Members::of(comm)).groups);
        let number = comm.cell_operations.get();
        comm.cell_operations.set(number + 1);
        let visit = Visit { comm, cell, cell_number, number };
        // Who has arrived at the last operation has left the one before.
        if number < 2 || comm.cell_arrived.get() == number {
            return Ok(visit);
        }
        visit.wait(|| cell.is_free(number) || cell.want(number)).map(|()| visit)
    }

    /// All arrive, the last one merges, then everyone (or only the member at place `root`) takes the result.
    pub fn reduce(
        self,
        root: Option<u32>,
        bytes: usize,
        merge: impl FnOnce(&Cell<'_>),
        take: impl FnOnce(),
    ) -> Result<()> {
        let last = |visit: &Self| {
            merge(&visit.cell);
            monitor::in_cell(visit.comm, true, root.map(|root| sharer(visit.comm, root)), bytes);
        };
        self.meet(root, last, take)
    }

    /// All arrive, and the last one does `last`; then everyone (or only the member at place `root`) does `then`.
    pub fn meet(self, root: Option<u32>, last: impl FnOnce(&Self), then: impl FnOnce()) -> Result<()> {
        let (cell, number) = (self.cell, self.number);
        if cell.arrive(number) {
            last(&self);
            cell.post(number);
            match root {
                Some(root) => self.wake_one(root),
                None => self.wake_group_by_group(),
            }
            self.comm.cell_arrived.set(number + 1);
        } else if root.is_none_or(|root| root == self.members().place) {
            self.wait(|| cell.is_posted(number))?;
            if root.is_none() {
                self.tell_group();
            }
            self.comm.cell_arrived.set(number + 1);
        }
        then();
        self.leave();
        Ok(())
    }

    /// The member at place `root` writes, the others wait and read.
    ///
    /// # Safety
    /// `data` is the caller's buffer.
    pub unsafe fn bcast(self, data: &Data, root: u32, kit: &Kit) -> Result<()> {
        let (cell, number, bytes) = (self.cell, self.number, data.bytes() as usize);
        let ty = &kit.types[data.elem.id as usize];
        // SAFETY: the half is free (root), or posted (others); it has room for `bytes`.
        unsafe {
            if self.members().place == root {
                let into = std::slice::from_raw_parts_mut(cell.half(number), bytes);
                datatype::pack(ty, data.count, data.at.cast_const().cast(), 0, into);
                monitor::in_cell(self.comm, false, None, bytes);
                cell.post(number);
                self.wake_all();
            } else {
                self.wait(|| cell.is_posted(number))?;
                let from = std::slice::from_raw_parts(cell.half(number), bytes);
                datatype::unpack(ty, data.count, data.at.cast(), 0, from);
            }
        }
        self.leave();
        Ok(())
    }

    /// This rank's place among those who share the cell, and how many they are.
    pub fn place(&self) -> u32 {
        self.members().place
    }

    pub fn size(&self) -> u32 {
        self.members().size
    }

    /// The cell, and the number of this operation in it.
    pub fn cell(&self) -> (Cell<'a>, u64) {
        (self.cell, self.number)
    }

    /// This rank gives each other member so many bytes.
    pub fn count_given(&self, bytes: usize) {
        monitor::in_cell(self.comm, false, None, bytes);
    }

    fn leave(&self) {
        if self.cell.leave(self.number) {
            self.wake_all();
        }
    }

    fn members(&self) -> &'a Members {
        self.comm.cell_members.get().expect("made when the visit began")
    }

    fn wake(&self, ranks: impl Iterator<Item = u32>) {
        endpoint().wake_cell(self.cell_number, ranks);
    }

    fn wake_one(&self, place: u32) {
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
        if !mine.is_empty() && self.cell.tells(self.number) {
            self.wake(mine.iter().copied());
        }
    }

    /// Suspend until `over`, or until a failure or a revocation makes that impossible; what has come about before counts.
    fn wait(&self, over: impl Fn() -> bool) -> Result<()> {
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
