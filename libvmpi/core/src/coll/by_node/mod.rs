//! Collectives of ranks on several nodes: node first, then one message per node.
//!
//! What ranks of one node tell each other costs a microsecond or two, what crosses the network much more, in time and in the
//! carriers' work. So data goes to one member of each node, who speaks for it, and what crosses does so once for a node. What a
//! phase is built of is `choose`'s affair.
//!
//! Figures were measured on two nodes of one core, 2, 4 and 8 ranks each (network namespaces, TCP).

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
pub mod order;
pub mod reduce;
pub mod scatter;
#[cfg(test)]
mod tests;

use super::by_core;
use super::choose;
use super::plan::Plan;
use super::work::Work;
use crate::coll::by_node::order::{all_of, block_bytes, keeps_order};
use crate::comm::layout::Layout;

/// Allgather of little data, gather, scatter and alltoall: straight where there are fewer ranks than this, since few
/// messages that none waits for cost less than one more wait.
const ALLGATHER_MIN_RANKS: u32 = 6;
const MIN_RANKS: u32 = 12;
/// Allgather: node by node from this many bytes (of all blocks) on, however few ranks.
const ALLGATHER_MIN_BYTES: u64 = 64 * 1024;
/// Allgather: beyond this many bytes dealt out among the members, without temporary memory. Of less it is slower: blocks of 64 KiB took
/// 0.95, 0.8 and 0.4 of the straight plan's time, through one member of each node 0.7, 0.7 and 0.4.
const ALLGATHER_DEALT_MIN_BYTES: u64 = 16 * 1024 * 1024;
/// Gather and scatter: straight for blocks above this size, which the root takes no faster for being gathered.
const ROOTED_MAX_BLOCK_BYTES: u64 = 1024;
/// Alltoall: straight for blocks above this size.
const ALLTOALL_MAX_BLOCK_BYTES: u64 = 256;
/// Alltoall: straight where the member that speaks for a node has more blocks in hand than this.
const ALLTOALL_MAX_BLOCKS: u64 = 4096;

/// Append this rank's steps of `work`, if it is better done node by node than by what is for one node; else false.
/// The same at all ranks, because it depends only on the layout, on packed sizes and on the operation.
pub fn build(plan: &mut Plan, layout: &Layout, cores: Option<&Layout>, work: &Work) -> bool {
    if !layout.is_deep() {
        return false;
    }
    let size = all_of(layout).size;
    let small = |bytes: u64, most: u64| size >= MIN_RANKS && bytes > 0 && bytes <= most;
    match work {
        Work::Barrier => barrier::build(plan, layout),
        Work::Bcast { data, root } if data.bytes() > 0 => bcast::build(plan, layout, *data, *root as u32),
        Work::Gather { send, recv, root, even: true } => {
            let bytes = block_bytes(*send, recv.as_ref());
            if !small(bytes, ROOTED_MAX_BLOCK_BYTES) {
                return false;
            }
            gather::build(plan, layout, *send, recv.as_ref(), *root as u32, bytes);
        }
        Work::Scatter { send, recv, root, even: true } => {
            let bytes = block_bytes(*recv, send.as_ref());
            if !small(bytes, ROOTED_MAX_BLOCK_BYTES) {
                return false;
            }
            scatter::build(plan, layout, send.as_ref(), *recv, *root as u32, bytes);
        }
        Work::Allgather { send, recv, .. }
            if recv.bytes() >= ALLGATHER_MIN_BYTES || recv.bytes() > 0 && size >= ALLGATHER_MIN_RANKS =>
        {
            let build = match recv.bytes() < ALLGATHER_DEALT_MIN_BYTES {
                true => allgather::build,
                false => allgather::dealt_out,
            };
            build(plan, layout, *send, recv);
        }
        Work::Alltoall { send, recv, even: true }
            if small(recv.get(0).bytes(), ALLTOALL_MAX_BLOCK_BYTES)
                && u64::from(size) * layout.most_members() as u64 <= ALLTOALL_MAX_BLOCKS =>
        {
            alltoall::build(plan, layout, send.as_ref().unwrap_or(recv), recv, recv.get(0).bytes());
        }
        Work::Reduce { send, recv, root, commutative } if send.bytes() > 0 && keeps_order(layout, *commutative) => {
            let split = choose::splits_reduce(all_of(layout), send.bytes());
            let root = *root as u32;
            if split {
                reduce::in_turn(plan, layout, *send, *recv, root, *commutative, |plan, ranks, send, recv, root| {
                    by_core::reduce(plan, ranks, cores, send, recv, root, *commutative);
                });
            } else {
                reduce::build(plan, layout, *send, *recv, root, *commutative);
            }
        }
        Work::Allreduce { send, recv, commutative } if send.bytes() > 0 && keeps_order(layout, *commutative) => {
            allreduce::build(plan, layout, cores, *send, *recv, *commutative);
        }
        _ => return false,
    }
    true
}
