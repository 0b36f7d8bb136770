//! What a completed operation reports.

use crate::consts;

/// Completion of one operation; `source` and `tag` in standard-ABI numbers, `bytes` as received.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Status {
    pub source: i32,
    pub tag: i32,
    /// MPI error code (0: success). Faces write it to `MPI_ERROR` only in multiple-completion calls.
    pub error: i32,
    /// Bytes received (packed size), not elements.
    pub bytes: u64,
    pub cancelled: bool,
}

impl Status {
    /// The "empty" status of MPI 4.1, section 3.7.3.
    pub const EMPTY: Status =
        Status { source: consts::ANY_SOURCE, tag: consts::ANY_TAG, error: 0, bytes: 0, cancelled: false };
    /// What a receive from `MPI_PROC_NULL` reports.
    pub const PROC_NULL: Status =
        Status { source: consts::PROC_NULL, tag: consts::ANY_TAG, error: 0, bytes: 0, cancelled: false };
}
