//! Memory shared between processes.

pub mod segment;
pub mod slab;
pub mod sync;
