//! MPICH's `MPI_Status`.

use std::ffi::c_int;
use vmpi_abi::abi::Abi;
use vmpi_core::status;

use crate::Mpich;

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

impl Status {
    /// Take over everything but the error code.
    pub fn set(&mut self, value: &status::Status) {
        self.MPI_SOURCE = Mpich::rank_out(value.source);
        self.MPI_TAG = Mpich::tag_out(value.tag);
        self.count_lo = value.bytes as c_int;
        self.count_hi_and_cancelled = ((value.bytes >> 32) << 1) as c_int | c_int::from(value.cancelled);
    }

    /// What the core makes of it.
    pub fn get(&self) -> status::Status {
        let high = (self.count_hi_and_cancelled as u32 >> 1) as u64;
        status::Status {
            source: Mpich::rank_in(self.MPI_SOURCE),
            tag: Mpich::tag_in(self.MPI_TAG),
            error: Mpich::err_in(self.MPI_ERROR),
            bytes: high << 32 | self.count_lo as u32 as u64,
            cancelled: self.count_hi_and_cancelled & 1 != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_core::consts;

    #[test]
    fn there_and_back() {
        let mut c = Status { count_lo: 0, count_hi_and_cancelled: 0, MPI_SOURCE: 0, MPI_TAG: 0, MPI_ERROR: 77 };
        for bytes in [0, 1, u32::MAX as u64, 1 << 32, (5 << 40) + 3] {
            for cancelled in [false, true] {
                let value = status::Status { source: consts::PROC_NULL, tag: 5, error: 0, bytes, cancelled };
                c.MPI_ERROR = 77;
                c.set(&value);
                assert_eq!((c.MPI_SOURCE, c.MPI_TAG, c.MPI_ERROR), (-1, 5, 77));
                c.MPI_ERROR = 0;
                assert_eq!(c.get(), value);
            }
        }
    }
}
