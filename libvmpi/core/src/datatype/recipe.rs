//! How a type was made: what MPI_Type_get_envelope and MPI_Type_get_contents give back (MPI 4.1 section 5.1.13).

use super::Type;
use crate::consts;
use crate::handle::Datatype;
use std::rc::Rc;

/// A constructor and its arguments, exactly as passed. Counts and displacements may be of any sign until checked.
#[derive(Clone)]
pub enum Recipe {
    Named(Datatype),
    Dup(Rc<Type>),
    Contiguous {
        count: i64,
        child: Rc<Type>,
    },
    /// `stride` in extents of `child`.
    Vector {
        count: i64,
        blocklength: i64,
        stride: i64,
        child: Rc<Type>,
    },
    /// `stride` in bytes.
    Hvector {
        count: i64,
        blocklength: i64,
        stride: i64,
        child: Rc<Type>,
    },
    /// `displacements` in extents of `child`.
    Indexed {
        blocklengths: Vec<i64>,
        displacements: Vec<i64>,
        child: Rc<Type>,
    },
    /// `displacements` in bytes.
    Hindexed {
        blocklengths: Vec<i64>,
        displacements: Vec<i64>,
        child: Rc<Type>,
    },
    IndexedBlock {
        blocklength: i64,
        displacements: Vec<i64>,
        child: Rc<Type>,
    },
    HindexedBlock {
        blocklength: i64,
        displacements: Vec<i64>,
        child: Rc<Type>,
    },
    Struct {
        blocklengths: Vec<i64>,
        displacements: Vec<i64>,
        children: Vec<Rc<Type>>,
    },
    Resized {
        lb: i64,
        extent: i64,
        child: Rc<Type>,
    },
    /// `order`: `consts::ORDER_*`.
    Subarray {
        sizes: Vec<i64>,
        subsizes: Vec<i64>,
        starts: Vec<i64>,
        order: i32,
        child: Rc<Type>,
    },
    /// `distributions`: `consts::DISTRIBUTE_*`; `arguments` may be `consts::DISTRIBUTE_DFLT_DARG`.
    Darray {
        size: i64,
        rank: i64,
        sizes: Vec<i64>,
        distributions: Vec<i32>,
        arguments: Vec<i32>,
        grid: Vec<i64>,
        order: i32,
        child: Rc<Type>,
    },
    /// `precision`, `range`: decimal digits and exponent, or `consts::UNDEFINED`.
    F90Real {
        precision: i32,
        range: i32,
    },
    F90Complex {
        precision: i32,
        range: i32,
    },
    F90Integer {
        range: i32,
    },
}

/// One argument of a constructor; the kinds say in which array of MPI_Type_get_contents it belongs and whether its
/// value is a constant that faces number differently.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// A plain integer.
    Integer(i64),
    /// An integer, a large count for a type made by a `_c` constructor.
    Count(i64),
    /// An address, a large count for a type made by a `_c` constructor.
    Address(i64),
    Order(i32),
    Distribution(i32),
    Argument(i32),
}

impl Item {
    /// The value, for items that no face renumbers.
    pub fn value(self) -> i64 {
        match self {
            Item::Integer(v) | Item::Count(v) | Item::Address(v) => v,
            Item::Order(v) | Item::Distribution(v) | Item::Argument(v) => v.into(),
        }
    }
}

impl Recipe {
    /// The standard ABI's `MPI_COMBINER_*`.
    pub fn combiner(&self) -> i32 {
        match self {
            Recipe::Named(_) => consts::COMBINER_NAMED,
            Recipe::Dup(_) => consts::COMBINER_DUP,
            Recipe::Contiguous { .. } => consts::COMBINER_CONTIGUOUS,
            Recipe::Vector { .. } => consts::COMBINER_VECTOR,
            Recipe::Hvector { .. } => consts::COMBINER_HVECTOR,
            Recipe::Indexed { .. } => consts::COMBINER_INDEXED,
            Recipe::Hindexed { .. } => consts::COMBINER_HINDEXED,
            Recipe::IndexedBlock { .. } => consts::COMBINER_INDEXED_BLOCK,
            Recipe::HindexedBlock { .. } => consts::COMBINER_HINDEXED_BLOCK,
            Recipe::Struct { .. } => consts::COMBINER_STRUCT,
            Recipe::Resized { .. } => consts::COMBINER_RESIZED,
            Recipe::Subarray { .. } => consts::COMBINER_SUBARRAY,
            Recipe::Darray { .. } => consts::COMBINER_DARRAY,
            Recipe::F90Real { .. } => consts::COMBINER_F90_REAL,
            Recipe::F90Complex { .. } => consts::COMBINER_F90_COMPLEX,
            Recipe::F90Integer { .. } => consts::COMBINER_F90_INTEGER,
        }
    }

    /// The numbers passed, in the standard's order.
    pub fn items(&self) -> Vec<Item> {
        use Item::{Address, Argument, Count, Distribution, Integer, Order};
        fn counts(values: &[i64]) -> impl Iterator<Item = Item> + '_ {
            values.iter().map(|&v| Count(v))
        }
        fn addresses(values: &[i64]) -> impl Iterator<Item = Item> + '_ {
            values.iter().map(|&v| Address(v))
        }
        match self {
            Recipe::Named(_) | Recipe::Dup(_) => Vec::new(),
            Recipe::Contiguous { count, .. } => vec![Count(*count)],
            Recipe::Vector { count, blocklength, stride, .. } => {
                vec![Count(*count), Count(*blocklength), Count(*stride)]
            }
            Recipe::Hvector { count, blocklength, stride, .. } => {
                vec![Count(*count), Count(*blocklength), Address(*stride)]
            }
            Recipe::Indexed { blocklengths, displacements, .. } => {
                let n = Count(blocklengths.len() as i64);
                std::iter::once(n).chain(counts(blocklengths)).chain(counts(displacements)).collect()
            }
            Recipe::Hindexed { blocklengths, displacements, .. }
            | Recipe::Struct { blocklengths, displacements, .. } => {
                let n = Count(blocklengths.len() as i64);
                std::iter::once(n).chain(counts(blocklengths)).chain(addresses(displacements)).collect()
            }
            Recipe::IndexedBlock { blocklength, displacements, .. } => {
                let head = [Count(displacements.len() as i64), Count(*blocklength)];
                head.into_iter().chain(counts(displacements)).collect()
            }
            Recipe::HindexedBlock { blocklength, displacements, .. } => {
                let head = [Count(displacements.len() as i64), Count(*blocklength)];
                head.into_iter().chain(addresses(displacements)).collect()
            }
            Recipe::Resized { lb, extent, .. } => vec![Address(*lb), Address(*extent)],
            Recipe::Subarray { sizes, subsizes, starts, order, .. } => std::iter::once(Integer(sizes.len() as i64))
                .chain(counts(sizes))
                .chain(counts(subsizes))
                .chain(counts(starts))
                .chain([Order(*order)])
                .collect(),
            Recipe::Darray { size, rank, sizes, distributions, arguments, grid, order, .. } => {
                [Integer(*size), Integer(*rank), Integer(sizes.len() as i64)]
                    .into_iter()
                    .chain(counts(sizes))
                    .chain(distributions.iter().map(|&d| Distribution(d)))
                    .chain(arguments.iter().map(|&a| Argument(a)))
                    .chain(grid.iter().map(|&g| Integer(g)))
                    .chain([Order(*order)])
                    .collect()
            }
            Recipe::F90Real { precision, range } | Recipe::F90Complex { precision, range } => {
                vec![Integer((*precision).into()), Integer((*range).into())]
            }
            Recipe::F90Integer { range } => vec![Integer((*range).into())],
        }
    }

    /// Put other types in the place of those passed; as many as there are.
    pub fn replace_children(&mut self, mut new: Vec<Rc<Type>>) {
        match self {
            Recipe::Named(_) | Recipe::F90Real { .. } | Recipe::F90Complex { .. } | Recipe::F90Integer { .. } => {}
            Recipe::Struct { children, .. } => *children = new,
            Recipe::Dup(child)
            | Recipe::Contiguous { child, .. }
            | Recipe::Vector { child, .. }
            | Recipe::Hvector { child, .. }
            | Recipe::Indexed { child, .. }
            | Recipe::Hindexed { child, .. }
            | Recipe::IndexedBlock { child, .. }
            | Recipe::HindexedBlock { child, .. }
            | Recipe::Resized { child, .. }
            | Recipe::Subarray { child, .. }
            | Recipe::Darray { child, .. } => *child = new.swap_remove(0),
        }
    }

    /// The types passed.
    pub fn children(&self) -> &[Rc<Type>] {
        match self {
            Recipe::Named(_) | Recipe::F90Real { .. } | Recipe::F90Complex { .. } | Recipe::F90Integer { .. } => &[],
            Recipe::Struct { children, .. } => children,
            Recipe::Dup(child)
            | Recipe::Contiguous { child, .. }
            | Recipe::Vector { child, .. }
            | Recipe::Hvector { child, .. }
            | Recipe::Indexed { child, .. }
            | Recipe::Hindexed { child, .. }
            | Recipe::IndexedBlock { child, .. }
            | Recipe::HindexedBlock { child, .. }
            | Recipe::Resized { child, .. }
            | Recipe::Subarray { child, .. }
            | Recipe::Darray { child, .. } => std::slice::from_ref(child),
        }
    }
}
