//! What becomes of an operation, written where the program wants it.

use crate::abi::Abi;
use vmpi_core::errors::Result;
use vmpi_core::status::Status;

/// Write a status unless the program ignores it. `MPI_ERROR` is left alone.
///
/// # Safety
/// `status` is valid for writes or an ignore sentinel.
#[inline]
pub(crate) unsafe fn write_status<A: Abi>(status: *mut A::Status, value: &Status) {
    if !A::status_ignored(status) {
        // SAFETY: as promised.
        unsafe { A::status_write(status, value) };
    }
}

/// What became of one operation: the status of a receive whose message was too long, too.
///
/// # Safety
/// As [`write_status`].
pub(crate) unsafe fn write_outcome<A: Abi>(status: *mut A::Status, outcome: &Result<Status>) {
    let value = match outcome {
        Ok(value) => Some(value),
        Err(error) => error.received.as_ref(),
    };
    if let Some(value) = value {
        // SAFETY: as promised.
        unsafe { write_status::<A>(status, value) };
    }
}
