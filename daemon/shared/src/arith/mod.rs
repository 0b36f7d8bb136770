//! The arithmetic of MPI's built-in operations, for ranks and for the carriers that accumulate for ranks of other nodes.
//!
//! Reading order: `element` (kinds of numbers), `kernel` (the loops), `half`, `extended` and `quad` (arithmetic that Rust has no type
//! for). `unsafe` is in `kernel` and `extended`.

mod element;
pub mod extended;
pub mod half;
mod kernel;
pub mod quad;

pub use element::Element;
pub use kernel::{Kernel, kernel};

/// The built-in operations.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Builtin {
    Sum,
    Min,
    Max,
    Prod,
    Band,
    Bor,
    Bxor,
    Land,
    Lor,
    Lxor,
    Minloc,
    Maxloc,
    Replace,
    NoOp,
}

impl Builtin {
    const ALL: [Builtin; 14] = {
        use Builtin::*;
        [Sum, Min, Max, Prod, Band, Bor, Bxor, Land, Lor, Lxor, Minloc, Maxloc, Replace, NoOp]
    };

    /// The one with this number.
    pub fn from_number(number: u8) -> Option<Builtin> {
        Builtin::ALL.get(usize::from(number)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (number, builtin) in (0..).zip(Builtin::ALL) {
            assert_eq!((builtin as u8, Builtin::from_number(number)), (number, Some(builtin)));
        }
    }
}
