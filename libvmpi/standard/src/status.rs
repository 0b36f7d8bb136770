//! The standard's `MPI_Status`.

use std::ffi::c_int;
use vmpi_abi::abi::StatusLayout;
use vmpi_core::status;

/// The C structure; a Fortran status has the same bytes. The standard leaves the use of `internal` to the library.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    /// Cancelled; bytes received, low and high half; two unused.
    internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32 && align_of::<Status>() == 4);

impl StatusLayout for Status {
    #[inline]
    fn set(&mut self, source: c_int, tag: c_int, bytes: u64, cancelled: bool) {
        (self.MPI_SOURCE, self.MPI_TAG) = (source, tag);
        self.internal = [c_int::from(cancelled), bytes as c_int, (bytes >> 32) as c_int, 0, 0];
    }

    fn set_error(&mut self, code: c_int) {
        self.MPI_ERROR = code;
    }

    fn get(&self) -> status::Status {
        let &Status { MPI_SOURCE: source, MPI_TAG: tag, MPI_ERROR: error, internal: [cancelled, low, high, ..] } = self;
        let bytes = u64::from(high as u32) << 32 | u64::from(low as u32);
        status::Status { source, tag, error, bytes, cancelled: cancelled != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standard;
    use vmpi_abi::abi::Abi;
    use vmpi_core::consts;

    #[test]
    fn there_and_back() {
        let mut c = Status { MPI_SOURCE: 0, MPI_TAG: 0, MPI_ERROR: 77, internal: [-1; 5] };
        for (bytes, cancelled) in [(0, false), (u32::MAX as u64, true), (5 << 40 | 3, false)] {
            let value = status::Status { source: consts::PROC_NULL, tag: 5, error: 77, bytes, cancelled };
            // SAFETY: `c` is a status.
            unsafe { Standard::status_write(&raw mut c, &value) };
            // SAFETY: as above; the error code has stayed.
            assert_eq!(unsafe { Standard::status_read(&raw const c) }, value);
        }
    }
}
