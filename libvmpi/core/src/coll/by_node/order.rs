//! The blocks of all ranks, node by node.

use crate::coll::plan::{Data, Plan, Ranks, Regions, Via};
use crate::comm::layout::Layout;

/// Are contributions combined in rank order node by node, if that matters?
pub fn keeps_order(layout: &Layout, commutative: bool) -> bool {
    commutative || layout.is_ordered()
}

/// Is there a block at each rank of one size, known to all: that of this rank's own, or of the root's others?
pub(crate) fn block_bytes(own: Option<Data>, all: Option<&Regions>) -> u64 {
    own.map(|own| own.bytes()).or(all.map(|all| all.get(0).bytes())).unwrap_or(0)
}

/// All ranks, and this one.
pub(crate) fn all_of(layout: &Layout) -> Ranks {
    let size = (0..layout.nodes()).map(|node| layout.members(node).len() as u32).sum();
    Ranks { rank: layout.local()[layout.place() as usize], size, via: Via::Main }
}

/// The blocks of all ranks as they travel: packed, node by node.
pub(crate) struct ByNode {
    /// By node, in the order of its members.
    blocks: Vec<Vec<Data>>,
    whole: Data,
    /// This is where the blocks are anyway.
    ready: bool,
}

impl ByNode {
    /// Memory for `blocks`, which are given by rank: their own, if they lie there in this order.
    pub(crate) fn new(plan: &mut Plan, layout: &Layout, blocks: &Regions) -> ByNode {
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

    pub(crate) fn whole(&self) -> Data {
        self.whole
    }

    /// All blocks of a node.
    pub(crate) fn node(&self, node: usize) -> Data {
        let blocks = &self.blocks[node];
        Data { count: blocks.iter().map(|block| block.count).sum(), ..blocks[0] }
    }

    /// The blocks of a node's members.
    pub(crate) fn of(&self, node: usize) -> Regions {
        Regions::Listed(self.blocks[node].clone())
    }

    /// Between here and `there`, the same blocks by rank: those of the nodes that `wanted` names.
    pub(crate) fn each(
        &self,
        layout: &Layout,
        there: &Regions,
        wanted: impl Fn(usize) -> bool,
        mut copy: impl FnMut(Data, Data),
    ) {
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
