//! Virtual topologies as values: what a communicator may have attached, and its arithmetic. `topo` makes and questions them.

use crate::comm::Communicator;
use crate::consts;
use crate::errors::{Class, Result, fail};
use smallvec::SmallVec;

/// What MPI_Topo_test tells apart.
#[derive(Debug)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    Distributed(Distributed),
}

/// `consts::CART`, `GRAPH`, `DIST_GRAPH` or `UNDEFINED`.
pub fn kind(comm: &Communicator) -> i32 {
    match comm.topology().as_deref() {
        Some(Topology::Cart(_)) => consts::CART,
        Some(Topology::Graph(_)) => consts::GRAPH,
        Some(Topology::Distributed(_)) => consts::DIST_GRAPH,
        None => consts::UNDEFINED,
    }
}

/// Ranks, or MPI_PROC_NULL. Those of a grid of up to four dimensions allocate nothing.
pub type Neighbours = SmallVec<[i32; 8]>;

/// The shape of a grid. With no dimensions it has one node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cart {
    pub dims: Vec<i32>,
    pub periodic: Vec<bool>,
}

impl Cart {
    /// A grid; both slices are equally long.
    ///
    /// # Errors
    /// `Class::Dims` for a dimension that is not positive.
    pub fn new(dims: &[i32], periodic: &[bool]) -> Result<Cart> {
        if let Some(index) = dims.iter().position(|&dim| dim <= 0) {
            return fail(Class::Dims, format!("dims[{index}] is {}, it must be positive", dims[index]));
        }
        Ok(Cart { dims: dims.to_vec(), periodic: periodic.to_vec() })
    }

    /// Number of nodes; saturates.
    pub fn nodes(&self) -> u64 {
        self.dims.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim as u64))
    }

    fn check(&self, rank: i32) -> Result<()> {
        if rank < 0 || rank as u64 >= self.nodes() {
            return fail(Class::Rank, format!("rank {rank} is not in the grid, which has {} nodes", self.nodes()));
        }
        Ok(())
    }

    /// Coordinates of `rank`.
    ///
    /// # Errors
    /// `Class::Rank`.
    pub fn coords(&self, rank: i32) -> Result<Vec<i32>> {
        self.check(rank)?;
        let mut rest = rank;
        let mut coords: Vec<i32> = (self.dims.iter().rev())
            .map(|&dim| {
                let coord = rest % dim;
                rest /= dim;
                coord
            })
            .collect();
        coords.reverse();
        Ok(coords)
    }

    /// Rank at `coords` (one for each dimension); periodic dimensions wrap around.
    ///
    /// # Errors
    /// `Class::Arg` for a coordinate outside a dimension that is not periodic.
    pub fn rank(&self, coords: &[i32]) -> Result<i32> {
        let mut rank: i32 = 0;
        for (index, (&coord, &dim)) in coords.iter().zip(&self.dims).enumerate() {
            if !self.periodic[index] && !(0..dim).contains(&coord) {
                return fail(Class::Arg, format!("coords[{index}] is {coord}, outside 0 to {}", dim - 1));
            }
            rank = rank * dim + coord.rem_euclid(dim);
        }
        Ok(rank)
    }

    /// (source, destination) of a shift of `rank` by `displacement` along a dimension; `PROC_NULL` outside the grid.
    ///
    /// # Errors
    /// `Class::Dims` for a dimension that does not exist.
    pub fn shift(&self, rank: i32, dimension: i32, displacement: i32) -> Result<(i32, i32)> {
        let Some(index) = usize::try_from(dimension).ok().filter(|&index| index < self.dims.len()) else {
            return fail(Class::Dims, format!("dimension {dimension} is not in 0 to {}", self.dims.len() as i64 - 1));
        };
        self.check(rank)?;
        let stride: i64 = self.dims[index + 1..].iter().map(|&dim| i64::from(dim)).product();
        let dim = i64::from(self.dims[index]);
        let coord = i64::from(rank) / stride % dim;
        let neighbour = |moved: i64| {
            let target = if self.periodic[index] { moved.rem_euclid(dim) } else { moved };
            if !(0..dim).contains(&target) {
                return consts::PROC_NULL;
            }
            (i64::from(rank) + (target - coord) * stride) as i32
        };
        let displacement = i64::from(displacement);
        Ok((neighbour(coord - displacement), neighbour(coord + displacement)))
    }

    /// For each dimension the neighbours at -1 and +1 (MPI 4.1 section 8.6).
    ///
    /// # Errors
    /// `Class::Rank`.
    pub fn neighbours(&self, rank: i32) -> Result<Neighbours> {
        let mut neighbours = Neighbours::new();
        for dimension in 0..self.dims.len() as i32 {
            let (below, above) = self.shift(rank, dimension, 1)?;
            neighbours.extend([below, above]);
        }
        Ok(neighbours)
    }

    /// The grid of the dimensions that are kept.
    pub(crate) fn keep(&self, keep: &[bool]) -> Cart {
        let kept = || keep.iter().enumerate().filter(|(_, keep)| **keep).map(|(index, _)| index);
        Cart {
            dims: kept().map(|index| self.dims[index]).collect(),
            periodic: kept().map(|index| self.periodic[index]).collect(),
        }
    }

    /// Rank of `coords` in the grid of only those dimensions whose `keep` is `which`.
    pub(crate) fn partial_rank(&self, coords: &[i32], keep: &[bool], which: bool) -> i32 {
        (coords.iter().zip(&self.dims).zip(keep))
            .filter(|(_, keep)| **keep == which)
            .fold(0, |rank, ((&coord, &dim), _)| rank * dim + coord)
    }

    /// Its nodes, if so many ranks are enough for it.
    ///
    /// # Errors
    /// `Class::Arg` if they are not.
    pub(crate) fn check_fits(&self, ranks: u32) -> Result<u32> {
        match u32::try_from(self.nodes()) {
            Ok(nodes) if nodes <= ranks => Ok(nodes),
            _ => fail(Class::Arg, format!("a grid of {} nodes does not fit {ranks} ranks", self.nodes())),
        }
    }
}

/// The graph of MPI_Graph_create: neighbours of node i are `edges[index[i - 1] .. index[i]]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Graph {
    pub index: Vec<i32>,
    pub edges: Vec<i32>,
}

impl Graph {
    /// Check and copy a graph; `edges(n)` gives the first n edges once it is known how many there are.
    ///
    /// # Errors
    /// `Class::Arg` for an index that decreases or an edge to a node that does not exist.
    pub fn new<'a>(index: &[i32], edges: impl FnOnce(usize) -> Result<&'a [i32]>) -> Result<Graph> {
        let mut last = 0;
        for (node, &end) in index.iter().enumerate() {
            if end < last {
                return fail(Class::Arg, format!("index[{node}] is {end}, below {last}"));
            }
            last = end;
        }
        let edges = edges(last as usize)?;
        if let Some(at) = edges.iter().position(|&node| node < 0 || node as usize >= index.len()) {
            return fail(Class::Arg, format!("edges[{at}] is {}, not a node of {}", edges[at], index.len()));
        }
        Ok(Graph { index: index.to_vec(), edges: edges.to_vec() })
    }

    /// Neighbours of `rank` in the order of the edges.
    ///
    /// # Errors
    /// `Class::Rank`.
    pub fn neighbours(&self, rank: i32) -> Result<&[i32]> {
        let Some(node) = usize::try_from(rank).ok().filter(|&node| node < self.index.len()) else {
            return fail(
                Class::Rank,
                format!("rank {rank} is not a node of the graph, which has {}", self.index.len()),
            );
        };
        let start = if node == 0 { 0 } else { self.index[node - 1] };
        Ok(&self.edges[start as usize..self.index[node] as usize])
    }

    /// Its nodes, if so many ranks are enough for it.
    ///
    /// # Errors
    /// `Class::Arg` if they are not.
    pub(crate) fn check_fits(&self, ranks: u32) -> Result<u32> {
        let nodes = self.index.len();
        match u32::try_from(nodes) {
            Ok(nodes) if nodes <= ranks => Ok(nodes),
            _ => fail(Class::Arg, format!("a graph of {nodes} nodes does not fit {ranks} ranks")),
        }
    }
}

/// This rank's edges of a distributed graph. Without weights the weight lists are empty and `weighted` is false.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Distributed {
    pub sources: Vec<i32>,
    pub source_weights: Vec<i32>,
    pub destinations: Vec<i32>,
    pub destination_weights: Vec<i32>,
    pub weighted: bool,
}

/// One edge of a distributed graph.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    pub source: i32,
    pub destination: i32,
    pub weight: i32,
}

pub(crate) const EDGE_BYTES: usize = 12;

impl Edge {
    pub(crate) fn to_bytes(self) -> [u8; EDGE_BYTES] {
        let mut bytes = [0; EDGE_BYTES];
        for (at, value) in bytes.chunks_exact_mut(4).zip([self.source, self.destination, self.weight]) {
            at.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Edge {
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Edge { source: word(0), destination: word(4), weight: word(8) }
    }
}

impl Distributed {
    /// The part of `edges` that touches `rank`, in their order.
    pub fn from_edges(edges: impl Iterator<Item = Edge>, rank: i32, weighted: bool) -> Distributed {
        let mut graph = Distributed { weighted, ..Distributed::default() };
        for edge in edges {
            if edge.destination == rank {
                graph.sources.push(edge.source);
                graph.source_weights.extend(weighted.then_some(edge.weight));
            }
            if edge.source == rank {
                graph.destinations.push(edge.destination);
                graph.destination_weights.extend(weighted.then_some(edge.weight));
            }
        }
        graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Cart {
        Cart::new(&[3, 4, 2], &[true, false, true]).unwrap()
    }

    #[test]
    fn ranks_and_coordinates_are_inverse() {
        let cart = grid();
        for rank in 0..24 {
            assert_eq!(cart.rank(&cart.coords(rank).unwrap()).unwrap(), rank);
        }
        assert_eq!(cart.coords(13).unwrap(), [1, 2, 1]);
        assert_eq!(cart.coords(24).unwrap_err().class, Class::Rank);
        assert_eq!(cart.rank(&[-1, 0, 5]).unwrap(), cart.rank(&[2, 0, 1]).unwrap());
        assert_eq!(cart.rank(&[0, 4, 0]).unwrap_err().class, Class::Arg);
    }

    #[test]
    fn shifts() {
        let cart = grid();
        assert_eq!(cart.shift(0, 0, 1).unwrap(), (16, 8));
        assert_eq!(cart.shift(0, 0, -4).unwrap(), (8, 16));
        assert_eq!(cart.shift(0, 1, 1).unwrap(), (consts::PROC_NULL, 2));
        assert_eq!(cart.shift(0, 1, 0).unwrap(), (0, 0));
        assert_eq!(cart.shift(0, 1, i32::MIN).unwrap(), (consts::PROC_NULL, consts::PROC_NULL));
        assert_eq!(cart.shift(0, 2, 1).unwrap(), (1, 1));
        assert_eq!(cart.shift(0, 3, 1).unwrap_err().class, Class::Dims);
        assert_eq!(cart.neighbours(0).unwrap()[..], [16, 8, consts::PROC_NULL, 2, 1, 1]);
    }

    #[test]
    fn subgrids() {
        let cart = grid();
        let keep = [true, false, true];
        assert_eq!(cart.keep(&keep).dims, [3, 2]);
        let coords = cart.coords(13).unwrap();
        assert_eq!(cart.partial_rank(&coords, &keep, true), 3);
        assert_eq!(cart.partial_rank(&coords, &keep, false), 2);
        assert_eq!(cart.keep(&[false; 3]).nodes(), 1);
    }

    #[test]
    fn an_empty_grid_has_one_node() {
        let cart = Cart::new(&[], &[]).unwrap();
        assert_eq!(cart.nodes(), 1);
        assert_eq!(cart.rank(&[]).unwrap(), 0);
        assert_eq!(cart.coords(0).unwrap(), Vec::<i32>::new());
    }

    #[test]
    fn neighbours_of_a_graph() {
        // The example of MPI 4.1 section 8.5.3.
        let edges = [1, 3, 0, 3, 0, 2];
        let graph = Graph::new(&[2, 3, 4, 6], |count| Ok(&edges[..count])).unwrap();
        assert_eq!(graph.neighbours(0).unwrap(), [1, 3]);
        assert_eq!(graph.neighbours(1).unwrap(), [0]);
        assert_eq!(graph.neighbours(3).unwrap(), [0, 2]);
        assert_eq!(graph.neighbours(4).unwrap_err().class, Class::Rank);
        assert_eq!(Graph::new(&[2, 1], |count| Ok(&edges[..count])).unwrap_err().class, Class::Arg);
        assert_eq!(Graph::new(&[1, 2], |_| Ok(&[0, 2])).unwrap_err().class, Class::Arg);
    }

    #[test]
    fn edges_survive_the_journey_and_find_their_ranks() {
        let edge = Edge { source: 3, destination: -1, weight: i32::MAX };
        assert_eq!(Edge::from_bytes(&edge.to_bytes()), edge);
        let all = [(0, 1, 5), (1, 0, 6), (1, 1, 7), (0, 1, 8)].map(|(source, destination, weight)| Edge {
            source,
            destination,
            weight,
        });
        let graph = Distributed::from_edges(all.into_iter(), 1, true);
        assert_eq!(graph.sources, [0, 1, 0]);
        assert_eq!(graph.source_weights, [5, 7, 8]);
        assert_eq!(graph.destinations, [0, 1]);
        assert_eq!(graph.destination_weights, [6, 7]);
        assert!(Distributed::from_edges(all.into_iter(), 1, false).source_weights.is_empty());
    }
}
