//! Which algorithm when, on an intracommunicator (or within one group of an intercommunicator).
//!
//! A choice may depend only on what all ranks know alike: the number of ranks and the packed sizes, never on layouts.
//! The cost that counts here is how often a rank must wait (each wait hands its core on) and how many bytes are moved
//! in all; ranks outnumber cores, so a shorter critical path alone wins little. The figures are first guesses, to be
//! replaced by measured ones.

use super::algo::*;
use super::neighbor;
use super::plan::{Data, Plan, Ranks, Regions};
use super::work::Work;

/// Broadcast: scatter and collect from this many bytes and ranks on, else a binomial tree.
const BCAST_SPLIT_MIN_BYTES: u64 = 1024 * 1024;
const BCAST_SPLIT_MIN_RANKS: u32 = 16;
/// Gather and scatter: a tree for blocks up to this size from this many ranks on, else straight from or to the root.
const TREE_MAX_BLOCK_BYTES: u64 = 1024;
const TREE_MIN_RANKS: u32 = 32;
/// Allgather: Bruck for blocks up to this size, from this many ranks on.
const ALLGATHER_BRUCK_MAX_BLOCK_BYTES: u64 = 512;
const ALLGATHER_BRUCK_MIN_RANKS: u32 = 8;
/// Allgather: a ring from this many ranks and bytes (of all blocks) on, else everyone to everyone.
const RING_MIN_RANKS: u32 = 64;
const RING_MIN_BYTES: u64 = 1024 * 1024;
/// Alltoall: Bruck for blocks up to this size, from this many ranks on.
const ALLTOALL_BRUCK_MAX_BLOCK_BYTES: u64 = 128;
const ALLTOALL_BRUCK_MIN_RANKS: u32 = 16;
/// Reduce and allreduce: by parts from this many bytes and ranks on, else tree or recursive doubling.
const REDUCE_SPLIT_MIN_BYTES: u64 = 64 * 1024;
const ALLREDUCE_SPLIT_MIN_BYTES: u64 = 16 * 1024;
const SPLIT_MIN_RANKS: u32 = 3;
/// Allreduce of two ranks: by parts from this many bytes on. Swapping all of it means that both combine all of it.
const ALLREDUCE_SPLIT_PAIR_MIN_BYTES: u64 = 32 * 1024;
/// Reduce-scatter: through rank 0 from this many ranks on if parts are smaller than this on average.
const REDUCE_SCATTER_ROOTED_MIN_RANKS: u32 = 32;
const REDUCE_SCATTER_ROOTED_MAX_PART_BYTES: u64 = 1024;

/// Append this rank's steps of `work`. Roots are valid ranks.
pub fn build(plan: &mut Plan, ranks: Ranks, work: &Work) {
    match work {
        Work::Barrier => barrier_dissemination::build(plan, ranks),
        Work::Bcast { data, root } => bcast(plan, ranks, *data, *root as u32),
        Work::Gather { send, recv, root, even } => gather(plan, ranks, *send, recv.as_ref(), *root as u32, *even),
        Work::Scatter { send, recv, root, even } => scatter(plan, ranks, send.as_ref(), *recv, *root as u32, *even),
        Work::Allgather { send, recv, even } => allgather(plan, ranks, *send, recv, *even),
        Work::Alltoall { send, recv, even } => alltoall(plan, ranks, send.as_ref(), recv, *even),
        Work::Reduce { send, recv, root, commutative } => {
            reduce(plan, ranks, *send, *recv, *root as u32, *commutative);
        }
        Work::Allreduce { send, recv, .. } => allreduce(plan, ranks, *send, *recv),
        Work::ReduceScatter { send, recv, counts, in_place, commutative } => {
            reduce_scatter(plan, ranks, *send, *recv, counts, *in_place, *commutative);
        }
        Work::Scan { send, recv } if recv.bytes() > 0 => scan_doubling::inclusive(plan, ranks, *send, *recv),
        Work::Exscan { send, recv } if recv.bytes() > 0 => scan_doubling::exclusive(plan, ranks, *send, *recv),
        Work::Scan { .. } | Work::Exscan { .. } => {}
        Work::Neighbor { sends, recvs } => neighbor::build(plan, ranks, sends, recvs),
    }
}

/// Is a broadcast of so many bytes scattered first?
pub fn splits_bcast(ranks: Ranks, bytes: u64) -> bool {
    bytes >= BCAST_SPLIT_MIN_BYTES && ranks.size >= BCAST_SPLIT_MIN_RANKS
}

/// Broadcast within `ranks`.
pub fn bcast(plan: &mut Plan, ranks: Ranks, data: Data, root: u32) {
    if data.bytes() == 0 {
        return;
    }
    if splits_bcast(ranks, data.bytes()) {
        bcast_split::build(plan, ranks, data, root);
    } else {
        bcast_binomial::build(plan, ranks, data, root);
    }
}

fn use_tree(ranks: Ranks, even: bool, bytes: u64) -> bool {
    even && bytes > 0 && bytes <= TREE_MAX_BLOCK_BYTES && ranks.size >= TREE_MIN_RANKS
}

fn gather(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: Option<&Regions>, root: u32, even: bool) {
    let bytes = send.map(|send| send.bytes()).or(recv.map(|recv| recv.get(root as usize).bytes())).unwrap_or(0);
    if use_tree(ranks, even, bytes) {
        gather_binomial::build(plan, ranks, send, recv, root, bytes);
    } else {
        gather_linear::build(plan, ranks, send, recv, root);
    }
}

fn scatter(plan: &mut Plan, ranks: Ranks, send: Option<&Regions>, recv: Option<Data>, root: u32, even: bool) {
    let bytes = recv.map(|recv| recv.bytes()).or(send.map(|send| send.get(root as usize).bytes())).unwrap_or(0);
    if use_tree(ranks, even, bytes) {
        scatter_binomial::build(plan, ranks, send, recv, root, bytes);
    } else {
        scatter_linear::build(plan, ranks, send, recv, root);
    }
}

fn allgather(plan: &mut Plan, ranks: Ranks, send: Option<Data>, recv: &Regions, even: bool) {
    let block = recv.get(ranks.rank as usize).bytes();
    if even && block > 0 && block <= ALLGATHER_BRUCK_MAX_BLOCK_BYTES && ranks.size >= ALLGATHER_BRUCK_MIN_RANKS {
        allgather_bruck::build(plan, ranks, send, recv, block);
    } else if use_ring(ranks, recv.bytes()) {
        if let Some(send) = send {
            plan.copy(send, recv.get(ranks.rank as usize));
        }
        allgather_ring::build(plan, ranks, recv);
    } else {
        allgather_spread::build(plan, ranks, send, recv);
    }
}

fn use_ring(ranks: Ranks, bytes: u64) -> bool {
    ranks.size >= RING_MIN_RANKS && bytes >= RING_MIN_BYTES
}

fn alltoall(plan: &mut Plan, ranks: Ranks, send: Option<&Regions>, recv: &Regions, even: bool) {
    let block = recv.get(0).bytes();
    if even && block > 0 && block <= ALLTOALL_BRUCK_MAX_BLOCK_BYTES && ranks.size >= ALLTOALL_BRUCK_MIN_RANKS {
        return alltoall_bruck::build(plan, ranks, send.unwrap_or(recv), recv, block);
    }
    match send {
        Some(send) => alltoall_spread::build(plan, ranks, send, recv),
        None if ranks.size == 1 => {}
        None => {
            let send = alltoall_spread::copy_of(plan, recv);
            alltoall_spread::build(plan, ranks, &send, recv);
        }
    }
}

/// Is a reduction of so many bytes done by parts?
pub fn splits_reduce(ranks: Ranks, bytes: u64) -> bool {
    bytes >= REDUCE_SPLIT_MIN_BYTES && ranks.size >= SPLIT_MIN_RANKS
}

/// Reduce within `ranks`; `send` is the root's `recv` if in place.
pub fn reduce(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, root: u32, commutative: bool) {
    if send.bytes() == 0 {
        return;
    }
    if splits_reduce(ranks, send.bytes()) {
        reduce_split::build(plan, ranks, send, recv, root);
    } else {
        reduce_binomial::build(plan, ranks, send, recv, root, commutative);
    }
}

/// Allreduce within `ranks`; `send` may be `recv`.
pub fn allreduce(plan: &mut Plan, ranks: Ranks, send: Data, recv: Data) {
    if send.bytes() == 0 {
        return;
    }
    let least = if ranks.size >= SPLIT_MIN_RANKS { ALLREDUCE_SPLIT_MIN_BYTES } else { ALLREDUCE_SPLIT_PAIR_MIN_BYTES };
    if send.bytes() >= least && ranks.size > 1 {
        allreduce_split::build(plan, ranks, send, recv, use_ring(ranks, send.bytes()));
    } else {
        allreduce_doubling::build(plan, ranks, send, recv);
    }
}

fn reduce_scatter(
    plan: &mut Plan,
    ranks: Ranks,
    send: Data,
    recv: Data,
    counts: &[u64],
    in_place: bool,
    commutative: bool,
) {
    if send.bytes() == 0 {
        return;
    }
    let small = send.bytes() / u64::from(ranks.size) <= REDUCE_SCATTER_ROOTED_MAX_PART_BYTES;
    if small && ranks.size >= REDUCE_SCATTER_ROOTED_MIN_RANKS {
        reduce_scatter_rooted::build(plan, ranks, send, counts, recv, commutative);
    } else {
        let parts = reduce_scatter_rooted::parts_of(send, counts);
        reduce_scatter_direct::build(plan, ranks, &parts, recv, in_place);
    }
}
