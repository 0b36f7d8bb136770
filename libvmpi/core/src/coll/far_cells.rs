//! Barrier and small broadcasts and reductions of communicators whose members live on several nodes: a cell within each node, messages among the members
//! that speak for their nodes.
//!
//! A barrier is two operations in the cell: all report to the first member of the node (who is switched in by the last one), and,
//! once the first ones have met, it lets them go on. So each of the others is switched in once. A broadcast is the messages, then an operation in the cell;
//! a reduction the other way round; the root speaks for its node. Which of a node's members
//! use the cell is that node's affair: the messages between nodes are those of the plan (`by_node`), which a node
//! without a cell, or with one member, executes whole.
//!
//! On two nodes of one core, 8 and 16 ranks, 8 bytes, us, by plan / with cells, one run: broadcasts from rank 0 20 / 12, 26 / 19 (of 1 KiB 28 / 17, 34 / 30), roots in turn 30 / 28, 51 / 48
//! (1 KiB 47 / 28, 62 / 58); reductions to rank 0 14 / 11, 29 / 21, roots in turn 14 / 14, 24 / 19; of 4 ranks 10 / 8, roots in turn 10 / 14.

use super::by_node;
use super::cell_reduce;
use super::cells;
use super::p2p_machine::{self, Kit, Tags};
use super::plan::{Data, Plan};
use super::work::Work;
use crate::coll::cell_operation::CellOperation;
use crate::comm::Communicator;
use crate::comm::layout::Layout;
use crate::errors::Result;
use crate::failure;
use std::rc::Rc;

/// Do `work` of a blocking call, if this communicator and this work allow it. `None`: the caller executes the plan.
///
/// # Safety
/// The buffers in `work` must be valid.
pub unsafe fn try_run(comm: &Communicator, work: &Work, kit: &Rc<Kit>, tags: Tags) -> Option<Result<()>> {
    let layout = comm.layout().filter(|layout| !comm.is_inter() && layout.is_deep() && layout.local().len() > 1)?;
    let here = || {
        let number = cells::number(comm, tags).transpose()?;
        Some(number.map(|number| Here { comm, layout, number, kit, tags }))
    };
    match work {
        Work::Barrier => Some(here()?.and_then(|here| here.barrier())),
        Work::Allreduce { send, recv, commutative: true } if send.bytes() > 0 => {
            let room = cell_reduce::room(send, kit, layout.local().len() as u32)?;
            // SAFETY: the caller's contract.
            Some(here()?.and_then(|here| unsafe { here.allreduce(send, recv, room) }))
        }
        Work::Bcast { data, root } if data.bytes() > 0 && cells::fits_bcast(data.bytes() as usize) => {
            // SAFETY: the caller's contract.
            Some(here()?.and_then(|here| unsafe { here.bcast(data, *root as u32) }))
        }
        Work::Reduce { send, recv, root, commutative: true } if send.bytes() > 0 => {
            let room = cell_reduce::room(send, kit, layout.local().len() as u32)?;
            // SAFETY: the caller's contract.
            Some(here()?.and_then(|here| unsafe { here.reduce(send, *recv, *root as u32, room) }))
        }
        _ => None,
    }
}

/// A call as one member sees it.
struct Here<'a> {
    comm: &'a Communicator,
    layout: &'a Layout,
    /// The cell's.
    number: u32,
    kit: &'a Rc<Kit>,
    tags: Tags,
}

impl Here<'_> {
    fn barrier(&self) -> Result<()> {
        self.visit(0)?.reduce(Some(0), 0, || 0, |_| ())?;
        // SAFETY: no data.
        unsafe {
            let leads = self.layout.place() == 0;
            let met = self.across(leads, Ok(()), |plan| by_node::barrier::across(plan, self.layout));
            self.hand_out(&Data::EMPTY, 0, met)
        }
    }

    /// # Safety
    /// `send` and `recv` are the caller's buffers, dense, of the same size; `room`: as [`cell_reduce::room`] says for them.
    unsafe fn allreduce(&self, send: &Data, recv: &Data, room: usize) -> Result<()> {
        let leads = self.layout.place() == 0;
        // SAFETY: the caller's contract.
        unsafe {
            let combined = cell_reduce::combine(self.visit(room)?, send, leads.then_some(recv), Some(0), self.kit);
            let met = self.across(leads, combined, |plan| by_node::allreduce::across(plan, self.layout, *recv));
            self.hand_out(recv, 0, met)
        }
    }

    /// # Safety
    /// `data` is the caller's buffer.
    unsafe fn bcast(&self, data: &Data, root: u32) -> Result<()> {
        let leaders = self.layout.leaders(root);
        let leads = leaders.leads(self.layout);
        // SAFETY: the caller's contract.
        unsafe {
            let come = self.across(leads, Ok(()), |plan| by_node::bcast::across(plan, self.layout, &leaders, *data));
            self.hand_out(data, leaders.place, come)
        }
    }

    /// # Safety
    /// As [`Self::allreduce`]; `recv` is there at the root.
    unsafe fn reduce(&self, send: &Data, recv: Option<Data>, root: u32, room: usize) -> Result<()> {
        let leaders = self.layout.leaders(root);
        let leads = leaders.leads(self.layout);
        let mut memory = vec![0u64; if leads && recv.is_none() { (send.bytes() as usize).div_ceil(8) } else { 0 }];
        let partial = recv.unwrap_or(Data { at: memory.as_mut_ptr().cast(), ..*send });
        // SAFETY: the caller's contract; the memory outlives the plan.
        unsafe {
            let to = leads.then_some(&partial);
            let combined = cell_reduce::combine(self.visit(room)?, send, to, Some(leaders.place), self.kit);
            self.across(leads, combined, |plan| {
                by_node::reduce::across(plan, self.layout, &leaders, partial, recv);
            })
        }
    }

    /// Give `data`, which the member at place `from` has, to the others of this node; or, after an error that is not a rank's failure, word that there is none.
    ///
    /// # Safety
    /// `data` is the caller's buffer.
    unsafe fn hand_out(&self, data: &Data, from: u32, had: Result<()>) -> Result<()> {
        if had.as_ref().is_err_and(failure::is_failure) {
            return had;
        }
        // SAFETY: the caller's contract.
        let handed = unsafe { self.visit(data.bytes() as usize)?.bcast(data, from, had.is_err(), self.kit) };
        had.and(handed)
    }

    fn visit(&self, bytes: usize) -> Result<CellOperation<'_>> {
        CellOperation::start(self.comm, self.number, bytes)
    }

    /// What the member that speaks for this node (is it this rank?) does with those of others, who hear of it if what was done `before` has failed.
    ///
    /// # Safety
    /// The buffers in what is built must be valid.
    unsafe fn across(&self, leads: bool, before: Result<()>, build: impl FnOnce(&mut Plan)) -> Result<()> {
        if !leads || before.as_ref().is_err_and(failure::is_failure) {
            return before;
        }
        let mut plan = Plan::default();
        build(&mut plan);
        // SAFETY: the caller's contract.
        unsafe { p2p_machine::execute_after(before, None, self.comm, plan, self.kit.clone(), self.tags) }
    }
}
