//! Collective calls of a program that is checked (`vmpirun --check`): are they the same at all ranks?
//!
//! The members of a communicator that are on one node compare through `vmpi_shared::check`, before any of them waits: who comes first leaves what its call is, the
//! others look. Who comes first on its node tells the communicator's first rank if that is on another one (`check::far`).

use super::call::{Block, Call, Many, Operands, Parts, Types};
use crate::check::calls::{self, Amount, LISTED_SHIFT, Seen, What};
use crate::check::{self, board, far, made, signature, sites, tell};
use crate::comm::Communicator;
use crate::comm::layout::Layout;
use crate::consts;
use crate::datatype;
use crate::handle::{Handle, Op, Request};
use vmpi_shared::check::{Arrival, Key};
use vmpi_shared::control::FindingKind;
use vmpi_shared::trace::called;

/// Blocking calls are counted apart from others, as tags are.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum How {
    Blocking,
    Nonblocking,
    Persistent,
}

fn in_place(addr: *mut std::ffi::c_void) -> bool {
    addr.addr() == consts::IN_PLACE
}

fn amount(count: i64, ty: crate::handle::Datatype) -> Option<Amount> {
    let ty = datatype::get(ty).ok()?;
    let bytes = u64::try_from(count).ok()?.checked_mul(ty.size())?;
    Some(Amount { bytes, code: signature::of(&ty, bytes) })
}

fn of_block(block: &Block) -> Option<Amount> {
    amount(block.count, block.ty)
}

/// Of one block of many that are even; `None`: they are listed.
fn of_many(many: &Many<'_>) -> Option<Amount> {
    match many {
        Many::Even(block) => of_block(block),
        Many::Listed { .. } => None,
    }
}

/// Of blocks of one type whose numbers all ranks list alike: all of them, and a hash over the numbers.
///
/// # Safety
/// `counts` has `size` entries.
unsafe fn of_list(counts: super::call::Counts, ty: crate::handle::Datatype, size: u32) -> Option<Amount> {
    let (mut sum, mut hash) = (0i64, 0xcbf2_9ce4u64);
    for rank in 0..size as usize {
        // SAFETY: the caller's promise.
        let count = unsafe { counts.get(rank) };
        sum = sum.checked_add(count)?;
        hash = (hash ^ count as u64).wrapping_mul(0x100_0000_01b3);
    }
    let whole = amount(sum, ty)?;
    // Counts in another order are another thing, whatever the type.
    let bytes = whole.bytes;
    Some(Amount { bytes: bytes.wrapping_add((hash >> 16) << LISTED_SHIFT), code: whole.code })
}

/// What is significant here, and alike at all ranks.
///
/// # Safety
/// As the call's own.
unsafe fn significant(comm: &Communicator, call: &Call) -> (u64, Option<i32>, Option<Op>, Option<Amount>) {
    let size = comm.size();
    let is_root = |root: i32| root == comm.rank as i32;
    let listed = |many: &Many<'_>| match many {
        Many::Even(_) => 0,
        Many::Listed { types: Types::One(_), .. } => 1,
        Many::Listed { types: Types::Each(_), .. } => 2,
    };
    let reduction = |kind: u64, operands: &Operands, count: i64, root| {
        (kind << 2, root, Some(operands.op), amount(count, operands.ty))
    };
    match *call {
        Call::Barrier => (1 << 2, None, None, None),
        Call::Bcast { data, root } => (2 << 2, Some(root), None, of_block(&data)),
        Call::Gather { send, recv, root } => {
            let even = matches!(recv, Many::Even(_));
            let own = if is_root(root) { of_many(&recv) } else { of_block(&send) };
            (3 << 2 | listed(&recv), Some(root), None, own.filter(|_| even))
        }
        Call::Scatter { send, recv, root } => {
            let even = matches!(send, Many::Even(_));
            let own = if is_root(root) { of_many(&send) } else { of_block(&recv) };
            (4 << 2 | listed(&send), Some(root), None, own.filter(|_| even))
        }
        Call::Allgather { recv, .. } => {
            let all = match recv {
                // SAFETY: the caller's promise.
                Many::Listed { counts, types: Types::One(ty), .. } => unsafe { of_list(counts, ty, size) },
                recv => of_many(&recv),
            };
            (5 << 2 | listed(&recv), None, None, all)
        }
        Call::Alltoall { recv, .. } => (6 << 2 | listed(&recv), None, None, of_many(&recv)),
        Call::Reduce { operands, count, root } => reduction(7, &operands, count, Some(root)),
        Call::Allreduce { operands, count } => reduction(8, &operands, count, None),
        Call::ReduceScatter { operands, parts: Parts::Even(count) } => reduction(9, &operands, count, None),
        Call::ReduceScatter { operands, parts: Parts::Listed(counts) } => {
            // SAFETY: the caller's promise.
            (10 << 2, None, Some(operands.op), unsafe { of_list(counts, operands.ty, size) })
        }
        Call::Scan { operands, count } => reduction(11, &operands, count, None),
        Call::Exscan { operands, count } => reduction(12, &operands, count, None),
        Call::NeighborAllgather { ref recv, .. } => (13 << 2 | listed(recv), None, None, None),
        Call::NeighborAlltoall { ref recv, .. } => (14 << 2 | listed(recv), None, None, None),
    }
}

/// What this rank sends to itself, and what it receives that as, where both are in the call.
fn own_part(comm: &Communicator, call: &Call) -> Option<(Amount, Amount)> {
    let pair = |a: Option<Amount>, b: Option<Amount>| a.zip(b);
    match *call {
        Call::Allgather { send, recv } if !in_place(send.addr) => pair(of_block(&send), of_many(&recv)),
        Call::Alltoall { send, recv } if !in_place(send.addr()) => pair(of_many(&send), of_many(&recv)),
        Call::Gather { send, recv, root } if root == comm.rank as i32 && !in_place(send.addr) => {
            pair(of_block(&send), of_many(&recv))
        }
        Call::Scatter { send, recv, root } if root == comm.rank as i32 && !in_place(recv.addr) => {
            pair(of_many(&send), of_block(&recv))
        }
        _ => None,
    }
}

/// The program makes this call.
///
/// # Safety
/// As the call's own: its arrays of counts are read.
#[cold]
pub(super) unsafe fn begins(comm: &Communicator, call: &Call, how: How) {
    if !check::is_on() || comm.is_inter() || comm.size() == 1 {
        return;
    }
    // SAFETY: the caller's promise.
    let (kind, root, op, amount) = unsafe { significant(comm, call) };
    let what = What { kind: kind << 2 | how as u64, root, op, amount };
    if let Some((sent, received)) = own_part(comm, call)
        && !sent.fits(received)
    {
        let text = format!("this rank sends {}, and receives {}", sent.words(), received.words());
        tell::tell(FindingKind::CountMismatch, vec![tell::own(called().into(), sites::here())], text);
        return;
    }
    let class = u32::from(how != How::Blocking);
    let number = comm.calls_so_far()[class as usize];
    let key = Key { context: comm.context, class, number };
    let members = members_here(comm);
    let met = board::with(|board| board.arrive(key, members, &what.words(), || Seen::own(what).record()));
    if let Some(Arrival::Behind(record)) = met {
        calls::compare(&Seen::own(what), sites::here(), &Seen::of_record(&record));
    }
    if members < comm.size() {
        let home = (comm.peers().world_rank(0), comm.layout().map_or(1, Layout::nodes));
        far::called(key, home, &Seen::own(what), met == Some(Arrival::First));
    }
}

/// Members of a communicator on this node.
fn members_here(comm: &Communicator) -> u32 {
    comm.layout().map_or(comm.size(), |layout| layout.local().len() as u32)
}

/// The call that has just begun has this request.
pub(super) fn started(request: Request) {
    if check::is_on() {
        made::started(request.raw());
    }
}
