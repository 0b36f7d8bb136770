//! Open MPI's `MPI_Status`.

use std::ffi::c_int;
use vmpi_abi::abi::StatusLayout;
use vmpi_core::status;

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

impl StatusLayout for Status {
    #[inline]
    fn set(&mut self, source: c_int, tag: c_int, bytes: u64, cancelled: bool) {
        (self.MPI_SOURCE, self.MPI_TAG) = (source, tag);
        (self.bytes, self.cancelled) = (bytes as usize, c_int::from(cancelled));
    }

    fn set_error(&mut self, code: c_int) {
        self.MPI_ERROR = code;
    }

    fn get(&self) -> status::Status {
        let &Status { MPI_SOURCE: source, MPI_TAG: tag, MPI_ERROR: error, cancelled, bytes } = self;
        status::Status { source, tag, error, bytes: bytes as u64, cancelled: cancelled != 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenMpi;
    use vmpi_abi::abi::Abi;
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
        // SAFETY: `c` is a status.
        unsafe { OpenMpi::status_write(&raw mut c, &value) };
        assert_eq!((c.MPI_SOURCE, c.MPI_TAG, c.MPI_ERROR), (-2, -1, 77));
        c.set_error(0);
        // SAFETY: as above.
        assert_eq!(unsafe { OpenMpi::status_read(&raw const c) }, value);
    }
}
