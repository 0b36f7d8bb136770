//! Cartesian topologies: grids of ranks in row-major order.

use super::{Neighbours, Topology, with_cart};
use crate::comm::{self, Communicator};
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::group::Members;
use std::rc::Rc;

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
    fn keep(&self, keep: &[bool]) -> Cart {
        let kept = || keep.iter().enumerate().filter(|(_, keep)| **keep).map(|(index, _)| index);
        Cart {
            dims: kept().map(|index| self.dims[index]).collect(),
            periodic: kept().map(|index| self.periodic[index]).collect(),
        }
    }

    /// Rank of `coords` in the grid of only those dimensions whose `keep` is `which`.
    fn partial_rank(&self, coords: &[i32], keep: &[bool], which: bool) -> i32 {
        (coords.iter().zip(&self.dims).zip(keep))
            .filter(|(_, keep)| **keep == which)
            .fold(0, |rank, ((&coord, &dim), _)| rank * dim + coord)
    }

    fn check_fits(&self, comm: &Communicator) -> Result<u32> {
        match u32::try_from(self.nodes()) {
            Ok(nodes) if nodes <= comm.size() => Ok(nodes),
            _ => fail(Class::Arg, format!("a grid of {} nodes does not fit {} ranks", self.nodes(), comm.size())),
        }
    }
}

/// The first ranks of `comm` as a grid; `None` for a rank outside it (MPI_Cart_create).
///
/// # Errors
/// `Class::Arg` if the grid has more nodes than `comm` ranks; `Class::Dims`.
pub fn create(comm: &Rc<Communicator>, dims: &[i32], periodic: &[bool]) -> Result<Option<Rc<Communicator>>> {
    let cart = Cart::new(dims, periodic)?;
    let nodes = cart.check_fits(comm)?;
    let created = comm::derive(comm, first_ranks(comm, nodes))?;
    if let Some(created) = &created {
        created.set_topology(Some(Rc::new(Topology::Cart(cart))));
    }
    Ok(created)
}

/// The first `count` members of `comm`.
pub(super) fn first_ranks(comm: &Communicator, count: u32) -> Rc<Members> {
    if count == comm.size() {
        return comm.local.clone();
    }
    Rc::new(Members::list((0..count).map(|rank| comm.local.world_rank(rank)).collect()))
}

/// The subgrids of the dimensions with `keep`, each a communicator of its own (MPI_Cart_sub).
///
/// # Errors
/// `Class::Topology` without a Cartesian topology.
pub fn sub(comm: &Rc<Communicator>, keep: &[bool]) -> Result<Rc<Communicator>> {
    let (part, color, key) = with_cart(comm, |cart| {
        let coords = cart.coords(comm.rank as i32)?;
        Ok((cart.keep(keep), cart.partial_rank(&coords, keep, false), cart.partial_rank(&coords, keep, true)))
    })?;
    let created = comm::split(comm, color, key)?.expect("the color is not UNDEFINED");
    created.set_topology(Some(Rc::new(Topology::Cart(part))));
    Ok(created)
}

/// The rank that this one would get in such a grid, `UNDEFINED` if none (MPI_Cart_map).
///
/// # Errors
/// As [`create`].
pub fn map(comm: &Communicator, dims: &[i32], periodic: &[bool]) -> Result<i32> {
    let nodes = Cart::new(dims, periodic)?.check_fits(comm)?;
    Ok(if comm.rank < nodes { comm.rank as i32 } else { consts::UNDEFINED })
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
}
