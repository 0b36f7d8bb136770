//! Fast paths through shared memory, for ranks that share a node.
//!
//! Barrier, and small broadcasts, reductions and allreductions with predefined operations, go through the communicator's
//! collective cell (`vmpi_shared::cell`): no message, and every rank is switched in once. All ranks of the communicator
//! decide alike, because they decide by what MPI makes equal on all of them (size, type signature, operation).

use super::plan::Data;
use super::wire::Kit;
use super::work::Work;
use crate::comm::Communicator;
use crate::datatype;
use crate::errors::Result;
use crate::lock;
use crate::monitor;
use crate::process::{self, endpoint};
use crate::request;
use crate::tool::event;
use vmpi_shared::cell::{Cell, GROUPS, Groups, HALF_BYTES};
use vmpi_shared::mem::sync::Ordering;

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_REDUCE_BYTES: usize = 4096;
/// Broadcasts of more bytes than this go by messages (single copy, pipelined).
const MAX_BCAST_BYTES: usize = 16384;

/// A communicator's cell, as its members see it.
pub struct Members {
    groups: Groups,
    /// Job ranks of the other members of this rank's group.
    mine: Box<[u32]>,
    /// A job rank of each other group, which wakes the others there.
    delegates: Box<[u32]>,
}

impl Members {
    fn of(comm: &Communicator) -> Members {
        let home = |rank: u32| process::node().home_of(rank);
        let ranks = || (0..comm.size()).map(|rank| comm.local.world_rank(rank));
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
            mine: mine.into(),
            delegates: first.into_iter().flatten().collect(),
        }
    }
}

/// Is there a cell for this communicator? Nobody on another node would see it.
#[inline]
pub fn serve(comm: &Communicator) -> bool {
    !comm.is_inter() && comm.size() >= 2 && !process::is_spread() && endpoint().job.cell_number(comm.context).is_some()
}

/// The barrier of a blocking call, where [`serve`] says so.
pub fn barrier(comm: &Communicator) -> Result<()> {
    Visit::start(comm)?.reduce(None, 0, |_| (), || ())
}

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer). `None`: the caller executes a plan.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit) -> Option<Result<()>> {
    if !serve(comm) {
        return None;
    }
    let bytes = |data: &Data| (data.count * kit.types[data.elem.id as usize].size()) as usize;
    let reducible = |data: &Data| {
        let reduction = kit.reduction.as_ref()?;
        let ty = &kit.types[data.elem.id as usize];
        let fits = bytes(data) <= Cell::slot_bytes(comm.size()).min(MAX_REDUCE_BYTES);
        (fits && ty.is_dense() && ty.true_lb() == 0 && reduction.op.builtin().is_some()).then_some(())
    };
    match work {
        Work::Bcast { data, root } if bytes(data) <= MAX_BCAST_BYTES.min(HALF_BYTES) => {
            // SAFETY: the caller's contract.
            Some(Visit::start(comm).and_then(|visit| unsafe { visit.bcast(data, *root as u32, kit, bytes(data)) }))
        }
        Work::Allreduce { send, recv, .. } => {
            reducible(send)?;
            // SAFETY: the caller's contract.
            Some(
                Visit::start(comm)
                    .and_then(|visit| unsafe { combine(visit, send, Some(recv), None, kit, bytes(send)) }),
            )
        }
        Work::Reduce { send, recv, root, .. } => {
            reducible(send)?;
            // SAFETY: the caller's contract.
            Some(
                Visit::start(comm).and_then(|visit| unsafe {
                    combine(visit, send, recv.as_ref(), Some(*root as u32), kit, bytes(send))
                }),
            )
        }
        _ => None,
    }
}

/// Reduce through the cell.
///
/// # Safety
/// `send` and `recv` are the caller's buffers, dense, of `bytes` bytes.
unsafe fn combine(
    visit: Visit<'_>,
    send: &Data,
    recv: Option<&Data>,
    root: Option<u32>,
    kit: &Kit,
    bytes: usize,
) -> Result<()> {
    let (cell, number, me, size) = (visit.cell, visit.number, visit.comm.rank, visit.comm.size());
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
struct Visit<'a> {
    comm: &'a Communicator,
    cell: Cell<'a>,
    cell_number: u32,
    /// Number of the operation.
    number: u64,
}

impl<'a> Visit<'a> {
    /// The next operation in the communicator's cell, which there is; waits until its half is free.
    fn start(comm: &'a Communicator) -> Result<Visit<'a>> {
        let job = &endpoint().job;
        let cell_number = job.cell_number(comm.context).expect("asked by serve");
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

    /// All arrive, the last one merges, then everyone (or only `root`) takes the result.
    fn reduce(self, root: Option<u32>, bytes: usize, merge: impl FnOnce(&Cell<'_>), take: impl FnOnce()) -> Result<()> {
        let (cell, number) = (self.cell, self.number);
        if cell.arrive(number) {
            merge(&cell);
            monitor::in_cell(self.comm, true, root, bytes);
            cell.post(number);
            match root {
                Some(root) => self.wake_one(root),
                None => self.wake_group_by_group(),
            }
            self.comm.cell_arrived.set(number + 1);
        } else if root.is_none_or(|root| root == self.comm.rank) {
            self.wait(|| cell.is_posted(number))?;
            if root.is_none() {
                self.tell_group();
            }
            self.comm.cell_arrived.set(number + 1);
        }
        take();
        self.leave();
        Ok(())
    }

    /// The root writes, the others wait and read.
    ///
    /// # Safety
    /// `data` is the caller's buffer.
    unsafe fn bcast(self, data: &Data, root: u32, kit: &Kit, bytes: usize) -> Result<()> {
        let (cell, number) = (self.cell, self.number);
        let ty = &kit.types[data.elem.id as usize];
        // SAFETY: the half is free (root), or posted (others); it has room for `bytes`.
        unsafe {
            if self.comm.rank == root {
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

    fn wake_one(&self, rank: u32) {
        self.wake(std::iter::once(self.comm.local.world_rank(rank)));
    }

    fn wake_all(&self) {
        let local = &self.comm.local;
        self.wake((0..local.size()).map(|rank| local.world_rank(rank)));
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
