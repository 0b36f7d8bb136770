//! Collectives of ranks on several nodes: node first, then one message per node.
//!
//! What ranks of one node tell each other costs a microsecond, what crosses the network much more, in time and in the
//! carriers' work. So little data goes to one member of each node, who speaks for it; of much data each byte crosses
//! once per node, and the members share the work. What is built of which phases is in `choose`'s hands again.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
pub mod gather;
pub mod reduce;
pub mod scatter;
#[cfg(test)]
mod tests;

use super::algo::split;
use super::layout::Layout;
use super::plan::{Data, Plan, Ranks, Regions, Via};
use super::work::Work;

/// Reduce and allreduce: by parts from this many bytes on.
const PARTS_MIN_BYTES: u64 = 16 * 1024;
/// Allgather: through one member of each node up to this many bytes (of all blocks), else dealt out among the members.
const ALLGATHER_LEADER_MAX_BYTES: u64 = 64 * 1024;
/// Gather and scatter: through one member of each node for blocks up to this size, else straight.
const ROOTED_MAX_BLOCK_BYTES: u64 = 4096;
/// Alltoall: through one member of each node for blocks up to this size, else straight.
const ALLTOALL_MAX_BLOCK_BYTES: u64 = 512;

/// Append this rank's steps of `work`, if it is better done node by node than by what is for one node; else false.
/// The same at all ranks, because it depends only on the layout, on packed sizes and on the operation.
pub fn build(plan: &mut Plan, layout: &Layout, work: &Work) -> bool {
    if !layout.is_deep() {
        return false;
    }
    match work {
        Work::Barrier => barrier::build(plan, layout),
        Work::Bcast { data, root } if data.bytes() > 0 => bcast::build(plan, layout, *data, *root as u32),
        Work::Gather { send, recv, root, even: true } => {
            let bytes = block_bytes(*send, recv.as_ref());
            if bytes == 0 || bytes > ROOTED_MAX_BLOCK_BYTES {
                return false;
            }
            gather::build(plan, layout, *send, recv.as_ref(), *root as u32, bytes);
        }
        Work::Scatter { send, recv, root, even: true } => {
            let bytes = block_bytes(*recv, send.as_ref());
            if bytes == 0 || bytes > ROOTED_MAX_BLOCK_BYTES {
                return false;
            }
            scatter::build(plan, layout, send.as_ref(), *recv, *root as u32, bytes);
        }
        Work::Allgather { send, recv, .. } if recv.bytes() > 0 => match recv.bytes() <= ALLGATHER_LEADER_MAX_BYTES {
            true => allgather::build(plan, layout, *send, recv),
            false => allgather::dealt_out(plan, layout, *send, recv),
        },
        Work::Alltoall { send, recv, even: true } => {
            let bytes = recv.get(0).bytes();
            if bytes == 0 || bytes > ALLTOALL_MAX_BLOCK_BYTES {
                return false;
            }
            alltoall::build(plan, layout, send.as_ref().unwrap_or(recv), recv, bytes);
        }
        Work::Reduce { send, recv, root, commutative } if send.bytes() > 0 => {
            if !*commutative && !layout.is_ordered() {
                return false;
            }
            let build = if by_parts(layout, send.bytes()) { reduce::by_parts } else { reduce::build };
            build(plan, layout, *send, *recv, *root as u32, *commutative);
        }
        Work::Allreduce { send, recv, commutative } if send.bytes() > 0 => {
            if !*commutative && !layout.is_ordered() {
                return false;
            }
            match by_parts(layout, send.bytes()) {
                true => allreduce::by_parts(plan, layout, *send, *recv),
                false => allreduce::build(plan, layout, *send, *recv, *commutative),
            }
        }
        _ => return false,
    }
    true
}

/// Is there a block at each rank of one size, known to all: that of this rank's own, or of the root's others?
fn block_bytes(own: Option<Data>, all: Option<&Regions>) -> u64 {
    own.map(|own| own.bytes()).or(all.map(|all| all.get(0).bytes())).unwrap_or(0)
}

/// Much data, and nodes that do not differ much, so that shared work is fairly shared.
fn by_parts(layout: &Layout, bytes: u64) -> bool {
    let (fewest, most) = layout.members_range();
    bytes >= PARTS_MIN_BYTES && fewest > 1 && most <= 2 * fewest
}

/// `data` in parts, one for each place that every node has, and nothing for the others of this node.
fn parts_in(layout: &Layout, data: Data) -> Regions {
    let (fewest, _) = layout.members_range();
    let parts = split(data, fewest, 1);
    let part = |place| if place < fewest as usize { parts.get(place) } else { data.slice(0, 0) };
    Regions::Listed((0..layout.local().len()).map(part).collect())
}

/// All ranks, and this one.
fn all_of(layout: &Layout) -> Ranks {
    let size = (0..layout.nodes()).map(|node| layout.members(node).len() as u32).sum();
    Ranks { rank: layout.local()[layout.place() as usize], size, via: Via::Main }
}

/// The blocks of all ranks as they travel: packed, node by node.
struct ByNode {
    /// By node, in the order of its members.
    blocks: Vec<Vec<Data>>,
    whole: Data,
    /// This is where the blocks are anyway.
    ready: bool,
}

impl ByNode {
    /// Memory for `blocks`, which are given by rank: their own, if they lie there in this order.
    fn new(plan: &mut Plan, layout: &Layout, blocks: &Regions) -> ByNode {
        let ready = in_order(layout, blocks);
        let whole = ready.unwrap_or_else(|| plan.temp_bytes(blocks.bytes()));
        let mut first = 0;
        let mut block = |rank: &u32| {
            let bytes = blocks.get(*rank as usize).bytes();
            first += bytes;
            whole.slice(first - bytes, bytes)
        };
        let blocks = (0..layout.nodes()).map(|node| layout.members(node).iter().map(&mut block).collect());
        ByNode { blocks: blocks.collect(), whole, ready: ready.is_some() }
    }

    fn whole(&self) -> Data {
        self.whole
    }

    /// All blocks of a node.
    fn node(&self, node: usize) -> Data {
        let blocks = &self.blocks[node];
        Data { count: blocks.iter().map(|block| block.count).sum(), ..blocks[0] }
    }

    /// The blocks of a node's members.
    fn of(&self, node: usize) -> Regions {
        Regions::Listed(self.blocks[node].clone())
    }

    /// Between here and `there`, the same blocks by rank: those of the nodes that `wanted` names.
    fn each(&self, layout: &Layout, there: &Regions, wanted: impl Fn(usize) -> bool, mut copy: impl FnMut(Data, Data)) {
        if self.ready {
            return;
        }
        for node in (0..layout.nodes()).filter(|node| wanted(*node)) {
            let ranks = layout.members(node).iter();
            self.blocks[node].iter().zip(ranks).for_each(|(block, rank)| copy(*block, there.get(*rank as usize)));
        }
    }
}

/// All of `blocks`, which are given by rank, if they lie packed one after another, node by node.
fn in_order(layout: &Layout, blocks: &Regions) -> Option<Data> {
    if !layout.is_ordered() {
        return None;
    }
    match blocks {
        Regions::Even { first, blocks } => first.slice(0, first.count * *blocks as u64).packed(),
        Regions::Listed(list) => {
            let mut list = list.iter().filter(|block| block.bytes() > 0);
            let mut whole = list.next()?.packed()?;
            for block in list {
                let block = block.packed()?;
                if block.at != whole.slice(whole.count, 0).at {
                    return None;
                }
                whole.count += block.count;
            }
            Some(whole)
        }
    }
}
