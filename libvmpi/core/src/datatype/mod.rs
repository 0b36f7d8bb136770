//! Datatypes. (Floor 2.)
//!
//! Reading order: `basic` (the predefined types), `recipe` (what a program asked for), `build` (recipe to type:
//! bounds, loop nest, signature) with `array` and `f90`, `node` (where the bytes lie), `signature` (what they mean),
//! `pack`, `external`, `registry` (handles, commit state, names).

pub mod array;
pub mod basic;
pub mod build;
pub mod external;
pub mod f90;
pub mod node;
pub mod pack;
pub mod recipe;
pub mod registry;
pub mod signature;

#[cfg(test)]
mod tests;

pub use build::Rules;
pub use pack::{pack, pack_to, unpack};
pub use recipe::{Item, Recipe};
pub use registry::{commit, contents, create, dup, free, get, get_committed, handle_of, insert, name, set_name};

use crate::handle::Datatype;
use node::{Placed, Sink};
use signature::Signature;
use std::rc::Rc;

/// Which of the old bound markers a type is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Marker {
    Lb,
    Ub,
}

/// A datatype; immutable once made (commit state, name and attributes live beside it).
pub struct Type {
    size: u64,
    lb: i64,
    ub: i64,
    true_lb: i64,
    true_ub: i64,
    /// Alignment for the rounding of extents.
    align: u64,
    /// Bounds set explicitly, which win over those of other members.
    marked_lb: bool,
    marked_ub: bool,
    marker: Option<Marker>,
    dense: bool,
    placed: Placed,
    signature: Rc<Signature>,
    /// The predefined type that this is (or equals, for f90 types).
    named: Option<Datatype>,
    recipe: Recipe,
    /// Made by a `_c` constructor: its counts are large counts in the contents.
    large: bool,
}

impl Type {
    /// Bytes of data in one element.
    pub fn size(&self) -> u64 {
        self.size
    }
    /// Lower bound, bytes.
    pub fn lb(&self) -> i64 {
        self.lb
    }
    /// Upper bound, bytes.
    pub fn ub(&self) -> i64 {
        self.ub
    }
    /// Distance from one element to the next, bytes.
    pub fn extent(&self) -> i64 {
        self.ub.wrapping_sub(self.lb)
    }
    /// Offset of the lowest byte of data.
    pub fn true_lb(&self) -> i64 {
        self.true_lb
    }
    /// Bytes from the lowest byte of data to the end of the highest.
    pub fn true_extent(&self) -> i64 {
        self.true_ub.wrapping_sub(self.true_lb)
    }
    /// `count` elements are one block of memory, `count * size` bytes, starting at `buf + true_lb`, in typemap order.
    pub fn is_dense(&self) -> bool {
        self.dense
    }
    /// The predefined type that this is; for an f90 type the one that it equals. `None` for derived types.
    pub fn named(&self) -> Option<Datatype> {
        self.named
    }
    /// How it was made.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }
    /// Its constructor took large counts.
    pub fn is_large(&self) -> bool {
        self.large
    }
    /// Its basic elements.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Call `f(offset_from_buf, len)` for each block of memory of `count` elements in typemap order, neighbours merged,
    /// until it returns false.
    pub fn blocks(&self, count: u64, f: &mut dyn FnMut(i64, u64) -> bool) {
        self.blocks_in(count, 0, u64::MAX, f);
    }

    /// As `blocks`, for packed bytes `[from, to)` of the elements only.
    pub fn blocks_in(&self, count: u64, from: u64, to: u64, f: &mut dyn FnMut(i64, u64) -> bool) {
        let mut merge = Merge { offset: 0, len: 0, f };
        if self.walk(count, from, to, &mut merge) && merge.len > 0 {
            (merge.f)(merge.offset, merge.len);
        }
    }

    /// Number of basic elements in `bytes` packed bytes; `None` if they end inside an element (MPI_Get_elements).
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        self.signature.elements_in(bytes)
    }

    /// Packed bytes of `elements` basic elements; `None` if the type has none or the number is too large.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        self.signature.bytes_of(elements)
    }

    /// Number of whole elements that `bytes` packed bytes are; `None` if they end inside one (MPI_Get_count).
    pub fn count_in(&self, bytes: u64) -> Option<u64> {
        match self.size {
            0 => (bytes == 0).then_some(0),
            size => bytes.is_multiple_of(size).then_some(bytes / size),
        }
    }

    /// Visit packed bytes `[from, to)`, as far as they exist, of `count` elements.
    fn walk<S: Sink>(&self, count: u64, from: u64, to: u64, sink: &mut S) -> bool {
        let to = to.min(self.size.saturating_mul(count));
        from >= to || self.placed.node.walk_many(self.extent(), self.placed.offset, from, to, sink)
    }
}

/// Joins runs that touch.
struct Merge<'a> {
    offset: i64,
    len: u64,
    f: &'a mut dyn FnMut(i64, u64) -> bool,
}

impl Sink for Merge<'_> {
    fn run(&mut self, offset: i64, len: u64) -> bool {
        if self.len > 0 {
            if self.offset.wrapping_add(self.len as i64) == offset {
                self.len += len;
                return true;
            }
            if !(self.f)(self.offset, self.len) {
                return false;
            }
        }
        (self.offset, self.len) = (offset, len);
        true
    }
}
