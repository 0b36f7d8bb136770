//! The arithmetic of MPI's built-in operations, for ranks and for the carriers that accumulate for ranks of other nodes.
//!
//! Reading order: `element` (kinds of numbers), `kernel` (the loops), `half`, `extended` and `quad` (arithmetic that Rust has no type
//! for). `unsafe` is in `kernel` and `extended`.

mod element;
pub mod extended;
pub mod half;
mod kernel;
pub mod quad;
mod truth;

pub use element::Element;
pub use kernel::{Kernel, combine, kernel};

/// The built-in operations.
#[derive(Copy, Clone, PartialEq, Eq, Debug, num_enum::TryFromPrimitive)]
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
