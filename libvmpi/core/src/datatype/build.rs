//! From a recipe to a type: bounds, loop nest, signature (MPI 4.1 section 5.1.2 and following).

use super::basic::Basic;
use super::node::Placed;
use super::recipe::Recipe;
use super::signature::Signature;
use super::{Marker, Type, array, f90};
use crate::consts::dt;
use crate::errors::{Class, Result, fail};
use std::rc::Rc;

/// Where real MPIs differ about extents and external32; a face asks for those of the library it stands in for.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// The standard's text: every extent is rounded up to the alignment unless an explicit upper bound is inside.
    #[default]
    Standard,
    /// As the standard; external32 has Open MPI's sizes.
    OpenMpi,
    /// MPICH rounds only MPI_Type_create_struct's extent, and MPI_Type_create_resized leaves no lasting bounds.
    Mpich,
}

/// Bounds of a typemap as pieces are added to it.
#[derive(Default)]
struct Bounds {
    lb: Option<i64>,
    ub: Option<i64>,
    marked_lb: Option<i64>,
    marked_ub: Option<i64>,
    true_lb: Option<i64>,
    true_ub: Option<i64>,
    align: u64,
}

fn lower(slot: &mut Option<i64>, value: i64) {
    *slot = Some(slot.map_or(value, |v| v.min(value)));
}
fn raise(slot: &mut Option<i64>, value: i64) {
    *slot = Some(slot.map_or(value, |v| v.max(value)));
}

impl Bounds {
    /// `count` (> 0) elements of `ty` in a row from `at`.
    fn add(&mut self, ty: &Type, at: i64, count: u64) {
        let spread = ty.extent().wrapping_mul(count.wrapping_sub(1) as i64);
        let (low, high) = (at.wrapping_add(spread.min(0)), at.wrapping_add(spread.max(0)));
        self.align = self.align.max(ty.align);
        if ty.size > 0 {
            lower(&mut self.true_lb, low.wrapping_add(ty.true_lb));
            raise(&mut self.true_ub, high.wrapping_add(ty.true_ub));
        }
        if ty.size == 0 && !ty.marked_lb && !ty.marked_ub {
            return; // an empty typemap bounds nothing
        }
        if ty.marker != Some(Marker::Ub) {
            lower(&mut self.lb, low.wrapping_add(ty.lb));
            if ty.marked_lb {
                lower(&mut self.marked_lb, low.wrapping_add(ty.lb));
            }
        }
        if ty.marker != Some(Marker::Lb) {
            raise(&mut self.ub, high.wrapping_add(ty.ub));
            if ty.marked_ub {
                raise(&mut self.marked_ub, high.wrapping_add(ty.ub));
            }
        }
    }

    fn finish(self, round: bool, placed: Placed, signature: Rc<Signature>, recipe: Recipe) -> Type {
        let lb = self.marked_lb.or(self.lb).or(self.ub.map(|ub| ub.min(0))).unwrap_or(0);
        // A lower bound alone, as MPI_LB in an otherwise empty struct: the typemap ends at 0, as in MPICH.
        let mut ub = self.marked_ub.or(self.ub).unwrap_or(0);
        if self.marked_ub.is_none() && round && self.align > 1 {
            let over = ub.wrapping_sub(lb).rem_euclid(self.align as i64);
            if over != 0 {
                ub = ub.wrapping_add(self.align as i64 - over);
            }
        }
        let (true_lb, true_ub) = (self.true_lb.unwrap_or(0), self.true_ub.unwrap_or(0));
        Type {
            size: signature.bytes,
            lb,
            ub,
            true_lb,
            true_ub,
            align: self.align.max(1),
            marked_lb: self.marked_lb.is_some(),
            marked_ub: self.marked_ub.is_some(),
            marker: None,
            dense: is_dense(&placed, ub.wrapping_sub(lb)),
            placed,
            signature,
            named: None,
            recipe,
            large: false,
        }
    }
}

fn is_dense(placed: &Placed, extent: i64) -> bool {
    placed.node.size == 0 || (placed.is_run() && extent == placed.node.size as i64)
}

/// A length argument: not negative.
fn length(value: i64, what: &str) -> Result<u64> {
    match u64::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => {
            fail(if what == "count" { Class::Count } else { Class::Arg }, format!("{what} is negative ({value})"))
        }
    }
}

/// `count * size` in range?
fn check_size(count: u64, size: u64) -> Result<u64> {
    match count.checked_mul(size) {
        Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => fail(Class::Arg, format!("a type of {count} times {size} bytes is too large")),
    }
}

/// Blocks of `child` at byte displacements.
fn indexed(
    lengths: impl Iterator<Item = i64>,
    displacements: impl Iterator<Item = i64>,
    child: &Rc<Type>,
    round: bool,
    recipe: &Recipe,
) -> Result<Type> {
    let (mut bounds, mut parts, mut total) = (Bounds::default(), Vec::new(), 0u64);
    let mut last: Option<(u64, Placed)> = None;
    for (blocklength, at) in lengths.zip(displacements) {
        let blocklength = length(blocklength, "blocklength")?;
        if blocklength == 0 {
            continue;
        }
        total = total.saturating_add(blocklength);
        check_size(total, child.size)?;
        bounds.add(child, at, blocklength);
        let block = match &last {
            Some((length, block)) if *length == blocklength => block.clone(),
            _ => child.placed.replicate(blocklength, child.extent()),
        };
        parts.push(block.at(at));
        last = Some((blocklength, block));
    }
    let signature = Signature::repeat(&child.signature, total);
    Ok(bounds.finish(round, Placed::sequence(parts), signature, recipe.clone()))
}

/// `count` blocks, `stride` bytes apart.
fn strided(count: i64, blocklength: i64, stride: i64, child: &Rc<Type>, round: bool, recipe: &Recipe) -> Result<Type> {
    let (count, blocklength) = (length(count, "count")?, length(blocklength, "blocklength")?);
    let total = check_size(count, blocklength)?;
    check_size(total, child.size)?;
    let mut bounds = Bounds::default();
    if total > 0 {
        bounds.add(child, 0, blocklength);
        bounds.add(child, stride.wrapping_mul(count as i64 - 1), blocklength);
    }
    let placed = child.placed.replicate(blocklength, child.extent()).replicate(count, stride);
    Ok(bounds.finish(round, placed, Signature::repeat(&child.signature, total), recipe.clone()))
}

fn structure(lengths: &[i64], displacements: &[i64], children: &[Rc<Type>], recipe: &Recipe) -> Result<Type> {
    let (mut bounds, mut parts, mut signatures, mut bytes) = (Bounds::default(), Vec::new(), Vec::new(), 0u64);
    for ((&blocklength, &at), child) in lengths.iter().zip(displacements).zip(children) {
        let blocklength = length(blocklength, "blocklength")?;
        if blocklength == 0 {
            continue;
        }
        bytes = bytes.saturating_add(check_size(blocklength, child.size)?);
        check_size(1, bytes)?;
        bounds.add(child, at, blocklength);
        parts.push(child.placed.replicate(blocklength, child.extent()).at(at));
        signatures.push(Signature::repeat(&child.signature, blocklength));
    }
    Ok(bounds.finish(true, Placed::sequence(parts), Signature::sequence(signatures), recipe.clone()))
}

impl Type {
    /// A predefined type.
    pub(super) fn basic(basic: &Basic) -> Type {
        let mut bounds = Bounds::default();
        let first = basic.first;
        let (mut parts, mut signatures) = (vec![Placed::run(0, first.size())], vec![Signature::unit(first)]);
        let mut end = first.size();
        bounds.align = first.bytes.into();
        if let Some(second) = basic.second {
            let at = end.next_multiple_of(second.bytes.into());
            parts.push(Placed::run(at as i64, second.size()));
            signatures.push(Signature::unit(second));
            end = at + second.size();
            bounds.align = bounds.align.max(second.bytes.into());
        }
        (bounds.lb, bounds.ub) = (Some(0), Some(end as i64));
        (bounds.true_lb, bounds.true_ub) = (bounds.lb, bounds.ub);
        let recipe = Recipe::Named(basic.handle);
        let ty = bounds.finish(true, Placed::sequence(parts), Signature::sequence(signatures), recipe);
        Type { named: Some(basic.handle), ..ty }
    }

    /// MPI_LB or MPI_UB.
    pub(super) fn marker(marker: Marker) -> Type {
        let handle = if marker == Marker::Lb { dt::LB } else { dt::UB };
        let ty = Bounds::default().finish(false, Placed::run(0, 0), Signature::empty(), Recipe::Named(handle));
        Type {
            marker: Some(marker),
            marked_lb: marker == Marker::Lb,
            marked_ub: marker == Marker::Ub,
            named: Some(handle),
            ..ty
        }
    }

    /// Follow a recipe.
    ///
    /// # Errors
    /// `Class::Count` and `Class::Arg` for arguments out of range.
    pub fn new(recipe: Recipe, rules: Rules) -> Result<Type> {
        let round = rules != Rules::Mpich;
        match &recipe {
            Recipe::Named(handle) => fail(Class::Type, format!("{handle:?} is predefined and cannot be made")),
            Recipe::Dup(child) => Ok(Type { named: None, recipe: recipe.clone(), ..child.copy() }),
            Recipe::Contiguous { count, child } => strided(*count, 1, child.extent(), child, round, &recipe),
            Recipe::Vector { count, blocklength, stride, child } => {
                strided(*count, *blocklength, stride.wrapping_mul(child.extent()), child, round, &recipe)
            }
            Recipe::Hvector { count, blocklength, stride, child } => {
                strided(*count, *blocklength, *stride, child, round, &recipe)
            }
            Recipe::Indexed { blocklengths, displacements, child } => {
                let bytes = displacements.iter().map(|d| d.wrapping_mul(child.extent()));
                indexed(blocklengths.iter().copied(), bytes, child, round, &recipe)
            }
            Recipe::Hindexed { blocklengths, displacements, child } => {
                indexed(blocklengths.iter().copied(), displacements.iter().copied(), child, round, &recipe)
            }
            Recipe::IndexedBlock { blocklength, displacements, child } => {
                let bytes = displacements.iter().map(|d| d.wrapping_mul(child.extent()));
                indexed(std::iter::repeat(*blocklength), bytes, child, round, &recipe)
            }
            Recipe::HindexedBlock { blocklength, displacements, child } => {
                indexed(std::iter::repeat(*blocklength), displacements.iter().copied(), child, round, &recipe)
            }
            Recipe::Struct { blocklengths, displacements, children } => {
                structure(blocklengths, displacements, children, &recipe)
            }
            Recipe::Resized { lb, extent, child } => {
                let marked = rules != Rules::Mpich;
                let dense = is_dense(&child.placed, *extent);
                let ub = lb.wrapping_add(*extent);
                let base = Type { recipe: recipe.clone(), named: None, marker: None, ..child.copy() };
                Ok(Type { lb: *lb, ub, dense, marked_lb: marked, marked_ub: marked, ..base })
            }
            Recipe::Subarray { sizes, subsizes, starts, order, child } => {
                let ranges = array::subarray(sizes, subsizes, starts)?;
                region(sizes, &ranges, *order, child, rules, &recipe)
            }
            Recipe::Darray { size, rank, sizes, distributions, arguments, grid, order, child } => {
                let ranges = array::darray(*size, *rank, sizes, distributions, arguments, grid)?;
                region(sizes, &ranges, *order, child, rules, &recipe)
            }
            Recipe::F90Real { .. } | Recipe::F90Complex { .. } | Recipe::F90Integer { .. } => {
                let base = f90::base(&recipe)?;
                Ok(Type { recipe, ..base })
            }
        }
    }

    /// The same type again, for the constructors that change little of it.
    fn copy(&self) -> Type {
        Type {
            placed: self.placed.clone(),
            signature: Rc::clone(&self.signature),
            recipe: self.recipe.clone(),
            ..*self
        }
    }
}

/// Part of a multidimensional array: extent is the whole array's.
fn region(
    sizes: &[i64],
    ranges: &[array::Range],
    order: i32,
    child: &Rc<Type>,
    rules: Rules,
    recipe: &Recipe,
) -> Result<Type> {
    let mut stride = child.extent();
    let mut placed = child.placed.clone();
    let (mut low, mut high, mut total) = (0i64, 0i64, 1u64);
    for dim in array::fastest_first(sizes.len(), order)? {
        let range = &ranges[dim];
        total = check_size(total, range.indices())?;
        check_size(total, child.size)?;
        if range.indices() > 0 {
            let first = range.first().wrapping_mul(stride);
            let last = range.last().wrapping_mul(stride);
            low = low.wrapping_add(first.min(last));
            high = high.wrapping_add(first.max(last));
        }
        placed = range.place(&placed, stride);
        stride = match stride.checked_mul(sizes[dim]) {
            Some(stride) => stride,
            None => return fail(Class::Arg, format!("the array's extent overflows at dimension {dim}")),
        };
    }
    let mut bounds = Bounds { align: child.align, ..Bounds::default() };
    (bounds.marked_lb, bounds.marked_ub) = (Some(0), Some(stride));
    if total > 0 && child.size > 0 {
        bounds.true_lb = Some(low.wrapping_add(child.true_lb));
        bounds.true_ub = Some(high.wrapping_add(child.true_ub));
    }
    let ty = bounds.finish(false, placed, Signature::repeat(&child.signature, total), recipe.clone());
    let marked = rules != Rules::Mpich;
    Ok(Type { marked_lb: marked, marked_ub: marked, ..ty })
}
