//! Fast paths of communicators whose members live on several nodes: a cell within each node, messages among the members that speak for
//! their nodes.
//!
//! A barrier is two operations in the cell: all report to the first member of the node (who is switched in by the last one), and,
//! once the first ones have met, it lets them go on. So each of the others is switched in once. Which of a node's members
//! use the cell is that node's affair: the messages between nodes are those of the plan (`by_node`), which a node
//! without a cell, or with one member, executes whole.

use super::by_node;
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
    let members = layout.local().len() as u32;
    match work {
        Work::Barrier => {}
        Work::Bcast { data, .. } if data.bytes() > 0 && cells::fits_bcast(data.bytes() as usize) => {}
        Work::Allreduce { send, commutative: true, .. } | Work::Reduce { send, commutative: true, .. }
            if send.bytes() > 0 && cells::reduces(send, kit, members) => {}
        _ => return None,
    }
    let number = cells::number(comm, tags).transpose()?;
    // SAFETY: the caller's contract.
    Some(number.and_then(|number| unsafe { Here { comm, layout, number, kit, tags }.run(work) }))
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
    /// # Safety
    /// The buffers in `work` must be valid.
    unsafe fn run(&self, work: &Work) -> Result<()> {
        let layout = self.layout;
        let is_first = layout.place() == 0;
        // SAFETY: the caller's contract.
        unsafe {
            match work {
                Work::Barrier => {
                    self.visit()?.reduce(Some(0), 0, |_| (), || ())?;
                    if is_first {
                        self.across(|plan| by_node::barrier::across(plan, layout))?;
                    }
                    self.visit()?.bcast(&Data::EMPTY, 0, self.kit)
                }
                Work::Bcast { data, root } => {
                    let leaders = layout.leaders(*root as u32);
                    let at_top = layout.here() as u32 == leaders.top;
                    // The root's neighbours need not wait for the network.
                    if at_top {
                        self.visit()?.bcast(data, leaders.place, self.kit)?;
                    }
                    if leaders.leads(layout) {
                        self.across(|plan| by_node::bcast::across(plan, layout, &leaders, *data))?;
                    }
                    match at_top {
                        true => Ok(()),
                        false => self.visit()?.bcast(data, leaders.place, self.kit),
                    }
                }
                Work::Allreduce { send, recv, .. } => {
                    cells::combine(self.visit()?, send, is_first.then_some(recv), Some(0), self.kit)?;
                    if is_first {
                        self.across(|plan| by_node::allreduce::across(plan, layout, *recv))?;
                    }
                    self.visit()?.bcast(recv, 0, self.kit)
                }
                Work::Reduce { send, recv, root, .. } => {
                    let leaders = layout.leaders(*root as u32);
                    if !leaders.leads(layout) {
                        return cells::combine(self.visit()?, send, None, Some(leaders.place), self.kit);
                    }
                    let mut plan = Plan::default();
                    let partial = recv.unwrap_or_else(|| plan.temp(send.elem, send.count));
                    cells::combine(self.visit()?, send, Some(&partial), Some(leaders.place), self.kit)?;
                    by_node::reduce::across(&mut plan, layout, &leaders, partial, *recv, true);
                    wire::execute(self.comm, plan, self.kit.clone(), self.tags)
                }
                _ => unreachable!("asked for by try_run"),
            }
        }
    }

    fn visit(&self) -> Result<Visit<'_>> {
        Visit::start(self.comm, self.number)
    }

    /// # Safety
    /// The buffers in what is built must be valid.
    unsafe fn across(&self, build: impl FnOnce(&mut Plan)) -> Result<()> {
        let mut plan = Plan::default();
        build(&mut plan);
        // SAFETY: the caller's contract.
        unsafe { wire::execute(self.comm, plan, self.kit.clone(), self.tags) }
    }
}
