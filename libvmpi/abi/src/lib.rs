//! The table of MPI's entry points, written once and generic over the face.
//!
//! Reading order: `abi` (what a face supplies), `numbers` (the constants that differ), `entry` (the way in and out of every call), `export` (the macros that
//! make symbols), then `c/` chapter by chapter, then `fortran/`, and `tables`
//! (which of it a face exports).

pub mod abi;
pub mod c;
pub mod clocks;
pub mod codec;
pub mod entry;
pub mod export;
pub mod fortran;
pub mod numbers;
mod tables;
pub mod unsupported;
