//! MPICH's `MPI_Status`.

use std::ffi::c_int;
use vmpi_abi::abi::StatusLayout;
use vmpi_core::status;

/// The C structure; a Fortran status has the same bytes.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Status {
    /// Bytes received: the low 32 bits.
    pub count_lo: c_int,
    /// Lowest bit: the operation was cancelled. The others: the high 31 bits of the bytes received.
    pub count_hi_and_cancelled: c_int,
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
}

const _: () = assert!(size_of::<Status>() == 20);

impl StatusLayout for Status {
    #[inline]
    fn set(&mut self, source: c_int, tag: c_int, bytes: u64, cancelled: bool) {
        (self.MPI_SOURCE, self.MPI_TAG) = (source, tag);
        self.count_lo = bytes as c_int;
        self.count_hi_and_cancelled = ((bytes >> 32) << 1) as c_int | c_int::from(cancelled);
    }

    fn set_error(&mut self, code: c_int) {
        self.MPI_ERROR = code;
    }

    fn get(&self) -> status::Status {
        let high = (self.count_hi_and_cancelled as u32 >> 1) as u64;
        status::Status {
            source: self.MPI_SOURCE,
            tag: self.MPI_TAG,
            error: self.MPI_ERROR,
            bytes: high << 32 | self.count_lo as u32 as u64,
            cancelled: self.count_hi_and_cancelled & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mpich;
    use vmpi_abi::abi::Abi;
    use vmpi_core::consts;

    #[test]
    fn there_and_back() {
        let mut c = Status { count_lo: 0, count_hi_and_cancelled: 0, MPI_SOURCE: 0, MPI_TAG: 0, MPI_ERROR: 77 };
        for bytes in [0, 1, u32::MAX as u64, 1 << 32, (5 << 40) + 3] {
            for cancelled in [false, true] {
                let value = status::Status { source: consts::PROC_NULL, tag: 5, error: 0, bytes, cancelled };
                c.MPI_ERROR = 77;
                // SAFETY: `c` is a status.
                unsafe { Mpich::status_write(&raw mut c, &value) };
                assert_eq!((c.MPI_SOURCE, c.MPI_TAG, c.MPI_ERROR), (-1, 5, 77));
                c.MPI_ERROR = 0;
                // SAFETY: as above.
                assert_eq!(unsafe { Mpich::status_read(&raw const c) }, value);
            }
        }
    }
}
