//! How the members of a communicator are spread over nodes: the same at all of them, but for whose view it is.

/// The members of a communicator, node by node, as one of them sees them.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The members of each node in rank order; the nodes in the order of their first members.
    nodes: Box<[Box<[u32]>]>,
    /// This rank's node.
    here: usize,
    /// This rank's place among the members of its node.
    place: u32,
    /// All members of a node come before those of the next one.
    ordered: bool,
}

/// A member of each node that speaks for it, as one member sees them.
pub struct Leaders {
    pub ranks: Vec<u32>,
    /// The node that the root lives on: its place among the leaders.
    pub top: u32,
    /// The place of this rank's leader among the members of its node.
    pub place: u32,
}

impl Layout {
    /// As member `rank` sees it, given the node of each member in rank order.
    pub fn new(rank: u32, node_of: impl Iterator<Item = u32>) -> Layout {
        let mut numbers: Vec<u32> = Vec::new();
        let mut nodes: Vec<Vec<u32>> = Vec::new();
        for (member, node) in (0..).zip(node_of) {
            // Members of a node are often neighbours: look at the last one first.
            let index = numbers.iter().rposition(|number| *number == node).unwrap_or_else(|| {
                numbers.push(node);
                nodes.push(Vec::new());
                numbers.len() - 1
            });
            nodes[index].push(member);
        }
        let (here, place) = locate(&nodes, rank);
        let ordered = nodes.iter().flatten().zip(0..).all(|(member, position)| *member == position);
        Layout { nodes: nodes.into_iter().map(Vec::into_boxed_slice).collect(), here, place, ordered }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The members of node `node`.
    pub fn members(&self, node: usize) -> &[u32] {
        &self.nodes[node]
    }

    /// This rank's node.
    pub fn here(&self) -> usize {
        self.here
    }

    /// The members of this rank's node.
    pub fn local(&self) -> &[u32] {
        &self.nodes[self.here]
    }

    /// This rank's place among them.
    pub fn place(&self) -> u32 {
        self.place
    }

    /// Does every node's members follow one another in rank order, so that node by node is rank by rank?
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Is there anything to be had from going node by node: several nodes, and one with several members?
    pub fn is_deep(&self) -> bool {
        self.nodes() > 1 && self.nodes.iter().any(|members| members.len() > 1)
    }

    /// Members of the node that has most.
    pub fn most_members(&self) -> usize {
        self.nodes.iter().map(|members| members.len()).max().unwrap_or(0)
    }

    /// The node of member `rank`, and its place there.
    pub fn locate(&self, rank: u32) -> (usize, u32) {
        locate(&self.nodes, rank)
    }

    /// The first member of each node; `root` for its own.
    pub fn leaders(&self, root: u32) -> Leaders {
        let (top, top_place) = self.locate(root);
        let ranks = self.nodes.iter().enumerate().map(|(node, members)| if node == top { root } else { members[0] });
        let place = if top == self.here { top_place } else { 0 };
        Leaders { ranks: ranks.collect(), top: top as u32, place }
    }
}

impl Leaders {
    /// Is the leader of the node whose view this is the member with this place?
    pub fn leads(&self, layout: &Layout) -> bool {
        self.place == layout.place()
    }
}

fn locate(nodes: &[impl AsRef<[u32]>], rank: u32) -> (usize, u32) {
    let found = nodes.iter().enumerate().find_map(|(node, members)| {
        let place = members.as_ref().binary_search(&rank).ok()?;
        Some((node, place as u32))
    });
    found.expect("a member of the communicator")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(layout: &Layout) -> Vec<Vec<u32>> {
        layout.nodes.iter().map(|members| members.to_vec()).collect()
    }

    #[test]
    fn members_are_told_apart_by_node() {
        let blocks = Layout::new(3, [7, 7, 2, 2, 2].into_iter());
        assert_eq!((told(&blocks), blocks.here(), blocks.place()), (vec![vec![0, 1], vec![2, 3, 4]], 1, 1));
        assert!(blocks.is_ordered() && blocks.is_deep());
        let round = Layout::new(0, [1, 0, 1, 0].into_iter());
        assert_eq!((told(&round), round.here(), round.place()), (vec![vec![0, 2], vec![1, 3]], 0, 0));
        assert!(!round.is_ordered() && round.is_deep());
        assert_eq!((round.leaders(3).ranks, round.leaders(3).top, round.leaders(3).place), (vec![0, 3], 1, 0));
        assert_eq!((round.leaders(2).ranks, round.leaders(2).top, round.leaders(2).place), (vec![2, 1], 0, 1));
        assert!(!Layout::new(1, [4, 4].into_iter()).is_deep());
        assert!(!Layout::new(1, [4, 5, 6].into_iter()).is_deep());
    }
}
