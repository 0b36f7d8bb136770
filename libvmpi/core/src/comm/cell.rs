//! A communicator's collective cell, as its members share it: all, or those of this rank's node. What they do in it is `coll`'s affair.

use crate::comm::Communicator;
use crate::comm::layout::Layout;
use crate::process::{self, endpoint};
use std::cell::{Cell, OnceCell};
use vmpi_shared::cell::{GROUPS, Groups};

/// A member's share in the cell.
#[derive(Default)]
pub(crate) struct CellShare {
    /// Numbers of operations that the cell has had ([`vmpi_shared::cell::Turn`]).
    pub operations: Cell<u64>,
    /// All members are known to have left those before this one.
    pub left: Cell<u64>,
    sharers: OnceCell<Sharers>,
    /// In a job of several nodes: the cell of the members on this node, once they have looked for one.
    pub drawn: OnceCell<Option<u32>>,
}

/// A communicator's cell, as those of its members see it that share it: all, or those of this rank's node.
pub struct Sharers {
    pub(crate) groups: Groups,
    /// This rank's place among them, and how many they are.
    pub(crate) place: u32,
    pub(crate) size: u32,
    /// Two or more of them share each core, on average.
    pub(crate) crowded: bool,
    /// Job ranks of the other members of this rank's group.
    pub(crate) mine: Box<[u32]>,
    /// A job rank of each other group, which wakes the others there.
    pub(crate) delegates: Box<[u32]>,
}

impl Sharers {
    fn of(comm: &Communicator) -> Sharers {
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
        Sharers {
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
#[inline]
fn sharing(comm: &Communicator) -> u32 {
    comm.layout().map_or(comm.size(), |layout| layout.local().len() as u32)
}

/// Which ones, by their ranks, in order.
#[inline]
pub(crate) fn sharers(comm: &Communicator) -> impl Iterator<Item = u32> {
    (0..sharing(comm)).map(|place| sharer(comm, place))
}

#[inline]
pub(crate) fn sharer(comm: &Communicator, place: u32) -> u32 {
    comm.layout().map_or(place, |layout| layout.local()[place as usize])
}

/// The communicator is gone for this member: the last one gives a cell back that was drawn for it.
pub(crate) fn give_back(comm: &Communicator) {
    if let Some(Some(number)) = comm.cell.drawn.get()
        && comm.context != 0
    {
        endpoint().job.release_cell(*number, sharing(comm));
    }
}

/// How the members that share this communicator's cell are spread.
#[inline]
pub(crate) fn members(comm: &Communicator) -> &Sharers {
    comm.cell.sharers.get_or_init(|| Sharers::of(comm))
}
