//! Memory shared between processes.

pub mod bell;
pub mod segment;
pub mod short_copy;
pub mod slab;
pub mod sync;
