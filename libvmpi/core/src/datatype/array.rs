//! Which indices of each dimension of a global array a subarray or a distributed array takes.

use super::node::Placed;
use crate::consts::{
    DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DFLT_DARG, DISTRIBUTE_NONE, ORDER_C, ORDER_FORTRAN,
};
use crate::errors::{Class, Result, fail};

/// Indices of one dimension: `blocks` whole blocks of `block` indices, `stride` apart, then `tail` more.
#[derive(Debug)]
pub struct Range {
    start: i64,
    block: u64,
    blocks: u64,
    stride: i64,
    tail: u64,
}

impl Range {
    fn plain(start: i64, len: i64) -> Range {
        Range { start, block: len as u64, blocks: 1, stride: len, tail: 0 }
    }
    /// Number of indices.
    pub fn indices(&self) -> u64 {
        self.block * self.blocks + self.tail
    }
    /// Lowest index (of a range that is not empty).
    pub fn first(&self) -> i64 {
        self.start
    }
    /// Highest index (of a range that is not empty).
    pub fn last(&self) -> i64 {
        if self.tail > 0 {
            self.start + self.stride * self.blocks as i64 + self.tail as i64 - 1
        } else {
            self.start + self.stride * (self.blocks as i64 - 1) + self.block as i64 - 1
        }
    }
    /// `element` at each index, `distance` bytes from one index to the next.
    pub fn place(&self, element: &Placed, distance: i64) -> Placed {
        let step = distance.wrapping_mul(self.stride);
        let whole = element.replicate(self.block, distance).replicate(self.blocks, step);
        let tail = element.replicate(self.tail, distance).at(step.wrapping_mul(self.blocks as i64));
        Placed::sequence(vec![whole, tail]).at(distance.wrapping_mul(self.start))
    }
}

/// Dimensions from the one whose index varies fastest in memory.
pub fn fastest_first(dims: usize, order: i32) -> Result<Box<dyn Iterator<Item = usize>>> {
    match order {
        ORDER_C => Ok(Box::new((0..dims).rev())),
        ORDER_FORTRAN => Ok(Box::new(0..dims)),
        _ => fail(Class::Arg, format!("order {order} is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN")),
    }
}

fn check_dims(dims: usize) -> Result<()> {
    if dims == 0 { fail(Class::Arg, "number of dimensions is 0") } else { Ok(()) }
}

/// Ranges of MPI_Type_create_subarray.
pub fn subarray(sizes: &[i64], subsizes: &[i64], starts: &[i64]) -> Result<Vec<Range>> {
    check_dims(sizes.len())?;
    let dims = sizes.iter().zip(subsizes).zip(starts).enumerate();
    dims.map(|(dim, ((&size, &subsize), &start))| {
        if size < 1 {
            return fail(Class::Arg, format!("size of dimension {dim} is {size}, must be at least 1"));
        }
        if subsize < 1 || subsize > size {
            return fail(Class::Arg, format!("subsize of dimension {dim} is {subsize}, must be 1 to {size}"));
        }
        if start < 0 || start > size - subsize {
            return fail(Class::Arg, format!("start of dimension {dim} is {start}, must be 0 to {}", size - subsize));
        }
        Ok(Range::plain(start, subsize))
    })
    .collect()
}

/// Ranges of MPI_Type_create_darray for process `rank` of a row-major grid.
pub fn darray(
    size: i64,
    rank: i64,
    sizes: &[i64],
    distributions: &[i32],
    arguments: &[i32],
    grid: &[i64],
) -> Result<Vec<Range>> {
    check_dims(sizes.len())?;
    if size < 1 {
        return fail(Class::Arg, format!("size is {size}, must be at least 1"));
    }
    if rank < 0 || rank >= size {
        return fail(Class::Arg, format!("rank is {rank}, must be 0 to {}", size - 1));
    }
    if let Some(dim) = grid.iter().position(|&g| g < 1) {
        return fail(Class::Arg, format!("process grid dimension {dim} is {}, must be at least 1", grid[dim]));
    }
    if grid.iter().try_fold(1i64, |n, &g| n.checked_mul(g)) != Some(size) {
        return fail(Class::Arg, format!("the process grid {grid:?} does not have {size} processes"));
    }
    let (mut rest, mut slower) = (rank, size);
    let mut ranges = Vec::with_capacity(sizes.len());
    for dim in 0..sizes.len() {
        slower /= grid[dim];
        let coordinate = rest / slower;
        rest %= slower;
        ranges.push(distribute(dim, sizes[dim], grid[dim], coordinate, distributions[dim], arguments[dim])?);
    }
    Ok(ranges)
}

fn distribute(dim: usize, size: i64, processes: i64, mine: i64, how: i32, argument: i32) -> Result<Range> {
    if size < 1 {
        return fail(Class::Arg, format!("global size of dimension {dim} is {size}, must be at least 1"));
    }
    let default = argument == DISTRIBUTE_DFLT_DARG;
    if how != DISTRIBUTE_NONE && !default && argument < 1 {
        return fail(Class::Arg, format!("distribution argument of dimension {dim} is {argument}, must be positive"));
    }
    match how {
        DISTRIBUTE_NONE if processes == 1 => Ok(Range::plain(0, size)),
        DISTRIBUTE_NONE => fail(
            Class::Arg,
            format!("dimension {dim} is not distributed, but the process grid has {processes} processes along it"),
        ),
        DISTRIBUTE_BLOCK => {
            let block = if default { (size + processes - 1) / processes } else { argument.into() };
            if block * processes < size {
                return fail(
                    Class::Arg,
                    format!("blocks of {block} on {processes} processes do not cover the {size} of dimension {dim}"),
                );
            }
            let start = (mine * block).min(size);
            Ok(Range::plain(start, block.min(size - start)))
        }
        DISTRIBUTE_CYCLIC => {
            let block = if default { 1 } else { i64::from(argument) };
            let (start, stride) = (mine * block, block * processes);
            let left = (size - start).max(0);
            let (blocks, tail) = (left / stride, left % stride);
            // The last round may hold a whole block of mine, or only its beginning.
            let (blocks, tail) = if tail >= block { (blocks + 1, 0) } else { (blocks, tail) };
            Ok(Range { start, block: block as u64, blocks: blocks as u64, stride, tail: tail as u64 })
        }
        _ => fail(Class::Arg, format!("distribution {how} of dimension {dim} is none of MPI_DISTRIBUTE_*")),
    }
}
