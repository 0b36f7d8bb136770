//! Open MPI's `MPI_Status`.

use std::ffi::c_int;
use vmpi_abi::abi::Abi;
use vmpi_core::status;

use crate::OpenMpi;

/// The C structure; a Fortran status has the same bytes.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    /// Non-zero: the operation was cancelled.
    pub cancelled: c_int,
    /// Bytes received.
    pub bytes: usize,
}

const _: () = assert!(size_of::<Status>() == 24);

impl Status {
    /// Take over everything but the error code.
    pub fn set(&mut self, value: &status::Status) {
        self.MPI_SOURCE = OpenMpi::rank_out(value.source);
        self.MPI_TAG = OpenMpi::tag_out(value.tag);
        self.cancelled = c_int::from(value.cancelled);
        self.bytes = value.bytes as usize;
    }

    /// What the core makes of it.
    pub fn get(&self) -> status::Status {
        status::Status {
            source: OpenMpi::rank_in(self.MPI_SOURCE),
            tag: OpenMpi::tag_in(self.MPI_TAG),
            error: OpenMpi::err_in(self.MPI_ERROR),
            bytes: self.bytes as u64,
            cancelled: self.cancelled != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_core::consts;

    #[test]
    fn there_and_back() {
        let mut c = Status { MPI_SOURCE: 0, MPI_TAG: 0, MPI_ERROR: 77, cancelled: 0, bytes: 0 };
        let value = status::Status {
            source: consts::PROC_NULL,
            tag: consts::ANY_TAG,
            error: 0,
            bytes: 1 << 40,
            cancelled: true,
        };
        c.set(&value);
        assert_eq!((c.MPI_SOURCE, c.MPI_TAG, c.MPI_ERROR), (-2, -1, 77));
        c.MPI_ERROR = 0;
        assert_eq!(c.get(), value);
    }
}
