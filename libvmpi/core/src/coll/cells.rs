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
use vmpi_shared::cell::{Cell, HALF_BYTES};
use vmpi_shared::mem::sync::Ordering;

/// Reductions of more bytes than this are faster when all ranks take part in the arithmetic.
const MAX_REDUCE_BYTES: usize = 4096;
/// Broadcasts of more bytes than this go by messages (single copy, pipelined).
const MAX_BCAST_BYTES: usize = 16384;

/// Do `work` of a blocking call without messages, if this communicator and this work allow it (all ranks of the
/// communicator must come to the same answer). `None`: the caller executes a plan.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Kit) -> Option<Result<()>> {
    if comm.is_inter() || comm.size() < 2 {
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
        Work::Barrier => Some(Visit::start(comm)?.and_then(|visit| visit.reduce(None, 0, |_| (), || ()))),
        Work::Bcast { data, root } if bytes(data) <= MAX_BCAST_BYTES.min(HALF_BYTES) => {
            let visit = Visit::start(comm)?;
            // SAFETY: the caller's contract.
            Some(visit.and_then(|visit| unsafe { visit.bcast(data, *root as u32, kit, bytes(data)) }))
        }
        Work::Allreduce { send, recv } => {
            reducible(send)?;
            // SAFETY: the caller's contract.
            Some(
                Visit::start(comm)?
                    .and_then(|visit| unsafe { combine(visit, send, Some(recv), None, kit, bytes(send)) }),
            )
        }
        Work::Reduce { send, recv, root, .. } => {
            reducible(send)?;
            // SAFETY: the caller's contract.
            Some(
                Visit::start(comm)?.and_then(|visit| unsafe {
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
    unsafe { std::ptr::copy_nonoverlapping(send.at.cast_const().cast::<u8>(), cell.slot(number, me), bytes) };
    let merge = |cell: &Cell<'_>| {
        let reduction = kit.reduction.as_ref().expect("checked by try_run");
        let ty = &kit.types[send.elem.id as usize];
        let result = cell.slot(number, size);
        // In rank order from the last to the first: inout = input op inout.
        // SAFETY: all have arrived: the slots are the last one's to read and the result its to write.
        unsafe {
            std::ptr::copy_nonoverlapping(cell.slot(number, size - 1), result, bytes);
            for rank in (0..size - 1).rev() {
                let input = cell.slot(number, rank).cast();
                reduction.op.apply(input, result.cast(), send.count, reduction.datatype, ty);
            }
        }
    };
    let take = || {
        if let Some(recv) = recv {
            // SAFETY: the result is posted; `recv` is the caller's buffer of as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(cell.slot(number, size), recv.at.cast::<u8>(), bytes) };
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
    /// The next operation in the communicator's cell; waits until its half is free. `None`: no cell.
    fn start(comm: &'a Communicator) -> Option<Result<Visit<'a>>> {
        let job = &endpoint().job;
        let (cell, cell_number) = (job.cell(comm.context, comm.size())?, job.cell_number(comm.context)?);
        let number = comm.cell_operations.get();
        comm.cell_operations.set(number + 1);
        let visit = Visit { comm, cell, cell_number, number };
        Some(visit.wait(|| cell.is_free(number) || cell.want(number)).map(|()| visit))
    }

    /// All arrive, the last one merges, then everyone (or only `root`) takes the result.
    fn reduce(self, root: Option<u32>, bytes: usize, merge: impl FnOnce(&Cell<'_>), take: impl FnOnce()) -> Result<()> {
        let (cell, number) = (self.cell, self.number);
        if cell.arrive(number) {
            merge(&cell);
            monitor::in_cell(self.comm, true, root, bytes);
            cell.post(number);
            self.wake();
        } else if root.is_none_or(|root| root == self.comm.rank) {
            self.wait(|| cell.is_posted(number))?;
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
                self.wake();
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
            self.wake();
        }
    }

    fn wake(&self) {
        let members = &self.comm.local;
        endpoint().wake_cell(self.cell_number, (0..members.size()).map(|rank| members.world_rank(rank)));
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
