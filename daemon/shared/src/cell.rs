//! Collective cells: a few ranks of one node combine small values in shared memory, and the last one in completes all.
//!
//! Death story: a rank that never arrives leaves the others SUSPENDED (Wait::Cell); its death ends the job.

use crate::mem::sync::{AtomicU32, AtomicU64};

/// Bytes of one cell, head included.
pub const CELL_BYTES: u64 = 65536;

/// Head of a cell. All-zero is a cell nobody has used.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CellHead {
    /// Ranks that have arrived for the current operation; fetch_add by each, reset by the last.
    pub arrived: AtomicU32,
    /// Ranks that have not yet taken the result of the current operation.
    pub leaving: AtomicU32,
    /// Operations completed; written by the last to arrive, then everyone may read the result.
    pub done: AtomicU64,
    reserved: [u64; 6],
}
