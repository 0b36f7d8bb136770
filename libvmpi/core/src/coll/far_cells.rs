//! Barrier and small allreduce of communicators whose members live on several nodes: a cell within each node, messages among the members
//! that speak for their nodes.
//!
//! A barrier is two operations in the cell: all report to the first member of the node (who is switched in by the last one), and,
//! once the first ones have met, it lets them go on. So each of the others is switched in once. Which of a node's members
//! use the cell is that node's affair: the messages between nodes are those of the plan (`by_node`), which a node
//! without a cell, or with one member, executes whole.
//!
//! Broadcast and reduce stay plans: a root, or a leaf, that need not wait runs ahead with messages, while the two halves of a cell hold
//! it up. One after the other on two nodes of 2, 4 and 8 ranks (8 bytes, roots in turn, us): broadcast 32 / 53 / 66 by plan, 64 /
//! 85 / 134 with cells; reduce 10 / 15 / 21 and 39 / 41 / 75.

use super::by_node;
use super::cell_reduce;
use super::cells::{self, Visit};
use super::layout::Layout;
use super::plan::{Data, Plan};
use super::wire::{self, Kit, Tags};
use super::work::Work;
use crate::comm::Communicator;
use crate::errors::Result;
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
        self.visit(0)?.reduce(Some(0), 0, |_| (), || ())?;
        // SAFETY: no data.
        unsafe {
            self.across(|plan| by_node::barrier::across(plan, self.layout))?;
            self.visit(0)?.bcast(&Data::EMPTY, 0, self.kit)
        }
    }

    /// # Safety
    /// `send` and `recv` are the caller's buffers, dense, of the same size; `room`: as [`cell_reduce::room`] says for them.
    unsafe fn allreduce(&self, send: &Data, recv: &Data, room: usize) -> Result<()> {
        let partial = (self.layout.place() == 0).then_some(recv);
        // SAFETY: the caller's contract.
        unsafe {
            cell_reduce::combine(self.visit(room)?, send, partial, Some(0), self.kit)?;
            self.across(|plan| by_node::allreduce::across(plan, self.layout, *recv))?;
            self.visit(recv.bytes() as usize)?.bcast(recv, 0, self.kit)
        }
    }

    fn visit(&self, bytes: usize) -> Result<Visit<'_>> {
        Visit::start(self.comm, self.number, bytes)
    }

    /// What the first member of a node does with those of others.
    ///
    /// # Safety
    /// The buffers in what is built must be valid.
    unsafe fn across(&self, build: impl FnOnce(&mut Plan)) -> Result<()> {
        if self.layout.place() != 0 {
            return Ok(());
        }
        let mut plan = Plan::default();
        build(&mut plan);
        // SAFETY: the caller's contract.
        unsafe { wire::execute(self.comm, plan, self.kit.clone(), self.tags) }
    }
}
