//! A file view: which bytes of the file the data stream of a rank is (MPI 4.1 section 14.3).
//!
//! The data stream counts the bytes that the view shows, without holes; positions are bytes of the file. Nothing is
//! flattened ahead: the filetype's loop nest is walked from any place of the stream.

use super::representation::Representation;
use crate::consts::dt;
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use std::rc::Rc;

/// A view of a file. Immutable: accesses under way keep the one that they started with.
pub struct View {
    pub displacement: i64,
    pub etype: Rc<Type>,
    pub filetype: Rc<Type>,
    pub representation: Representation,
    /// The filetype as it lies in the file.
    laid: Rc<Type>,
    /// Bytes of an etype in the file.
    unit: u64,
    /// Positions grow with the data stream.
    ascending: bool,
}

impl View {
    /// The view of a file that was just opened: bytes from `displacement` 0 on.
    pub fn bytes() -> Result<View> {
        let byte = datatype::get(dt::BYTE)?;
        View::new(0, byte.clone(), byte, Representation::Native, false)
    }

    /// # Errors
    /// `Class::Arg` for a filetype that is not made of etypes; `Class::Io` (as MPICH) for one whose displacements are
    /// negative or decrease, or whose parts overlap in a file that is open for writing.
    pub fn new(
        displacement: i64,
        etype: Rc<Type>,
        filetype: Rc<Type>,
        representation: Representation,
        writes: bool,
    ) -> Result<View> {
        if displacement < 0 {
            return fail(Class::Arg, format!("the displacement is {displacement}, it must not be negative"));
        }
        if filetype.size().checked_rem(etype.size()).unwrap_or(filetype.size()) != 0 {
            let (whole, part) = (filetype.size(), etype.size());
            return fail(
                Class::Arg,
                format!("the filetype has {whole} bytes, which is not a multiple of the etype's {part}"),
            );
        }
        let laid = representation.in_file(&filetype)?;
        let unit = representation.size(&etype)?;
        let order = Order::of(&laid);
        if order.negative {
            return fail(Class::Io, "a displacement in the filetype is negative");
        }
        if order.descends {
            return fail(
                Class::Io,
                "the displacements in the filetype decrease; they must be monotonically nondecreasing",
            );
        }
        if order.overlaps && writes {
            return fail(Class::Io, "parts of the filetype overlap, which a file that is open for writing forbids");
        }
        let tiles = laid.size() == 0 || laid.true_extent() <= laid.extent();
        let ascending = !order.overlaps && tiles;
        Ok(View { displacement, etype, filetype, representation, laid, unit, ascending })
    }

    /// Bytes of the data stream in one etype; accesses and pointers count etypes.
    pub fn unit(&self) -> u64 {
        self.unit
    }

    /// There is nothing to see through this view.
    pub fn is_empty(&self) -> bool {
        self.laid.size() == 0
    }

    /// Positions grow with the data stream, and no byte is seen twice.
    pub fn is_ascending(&self) -> bool {
        self.ascending
    }

    /// The place in the data stream `etypes` after its start.
    ///
    /// # Errors
    /// `Class::Arg` if it is negative or out of reach.
    pub fn stream(&self, etypes: i64) -> Result<u64> {
        match u64::try_from(etypes).ok().and_then(|n| n.checked_mul(self.unit)) {
            Some(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
            _ => fail(Class::Arg, format!("the offset {etypes} is negative or too large")),
        }
    }

    /// May bytes up to `end` of the data stream be accessed: are their positions numbers that a file can have?
    ///
    /// # Errors
    /// `Class::Arg`.
    pub fn check_reach(&self, end: u64) -> Result<()> {
        let periods = end.checked_div(self.laid.size()).unwrap_or(0) as i128 + 1;
        let reach = periods * i128::from(self.laid.extent().max(self.laid.true_extent()))
            + i128::from(self.displacement)
            + i128::from(self.laid.true_lb().max(0));
        if reach > i128::from(i64::MAX) {
            return fail(Class::Arg, "the access goes beyond the largest offset that a file can have");
        }
        Ok(())
    }

    /// Call `f(position, len)` for each block of the file that bytes `[from, to)` of the data stream are, in their
    /// order, neighbours merged, until it returns false.
    pub fn extents(&self, from: u64, to: u64, f: &mut dyn FnMut(i64, u64) -> bool) {
        if self.is_empty() {
            return;
        }
        let displacement = self.displacement;
        self.laid.blocks_in(u64::MAX, from, to, &mut |offset, len| f(displacement.wrapping_add(offset), len));
    }

    /// The position of a byte of the data stream.
    pub fn position(&self, at: u64) -> i64 {
        let mut found = self.displacement;
        self.extents(at, at.saturating_add(1), &mut |position, _| {
            found = position;
            false
        });
        found
    }

    /// The part of `[from, to)` of the data stream that lies at positions from `position` on starts here. For ascending
    /// views.
    pub fn first_at(&self, from: u64, to: u64, position: i64) -> u64 {
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.position(middle) < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// First position and end of the last of `[from, to)` of the data stream, which is not empty.
    pub fn bounds(&self, from: u64, to: u64) -> (i64, i64) {
        if self.ascending {
            return (self.position(from), self.position(to - 1).wrapping_add(1));
        }
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        self.extents(from, to, &mut |position, len| {
            low = low.min(position);
            high = high.max(position.wrapping_add(len as i64));
            true
        });
        (low, high)
    }

    /// The first place of the data stream, in etypes, all of whose bytes lie at or after `position` (for append mode and
    /// MPI_SEEK_END).
    pub fn etypes_before(&self, position: i64) -> i64 {
        if self.is_empty() || self.unit == 0 || position <= self.displacement {
            return 0;
        }
        let periods = (position - self.displacement) / self.laid.extent().max(1) + 1;
        let most = (periods as u64).saturating_mul(self.laid.size());
        let bytes = if self.ascending { self.first_at(0, most, position) } else { most };
        bytes.div_ceil(self.unit) as i64
    }
}

/// What MPI demands of a filetype's displacements.
#[derive(Default)]
struct Order {
    negative: bool,
    descends: bool,
    overlaps: bool,
}

impl Order {
    fn of(ty: &Type) -> Order {
        let mut order = Order { negative: ty.true_lb() < 0, ..Order::default() };
        let (mut start, mut end) = (i64::MIN, i64::MIN);
        ty.blocks(1, &mut |offset, len| {
            order.negative |= offset < 0;
            order.descends |= offset < start;
            order.overlaps |= offset < end;
            start = offset;
            end = end.max(offset.wrapping_add(len as i64));
            !order.descends
        });
        order
    }
}
