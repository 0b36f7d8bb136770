//! Memory shared between processes.

pub mod bell;
pub mod checker;
pub mod chunks;
pub mod prefetch;
pub mod segment;
pub mod short_copy;
pub mod slab;
pub mod sync;
pub mod warmth;

/// What one huge page holds on x86-64.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;
