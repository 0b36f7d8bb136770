//! The face as the generic functions see it.

use crate::status::Status;
use crate::{Mpich, sentinels};
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::{Abi, Weights};
use vmpi_abi::numbers::{self, LASTCODE, MPICH_DYNAMIC_CODE, Tables};
use vmpi_core::face::{Characters, Face};

/// `MPI_BUFFER_AUTOMATIC` in C.
const BUFFER_AUTOMATIC: usize = usize::MAX - 1;

impl Abi for Mpich {
    const NAME: &'static str = "MPICH";
    const RELEASE: &'static str = "MPICH Version:\t4.0.2";
    // As MPICH 5, whose library serves programs of 4.0, too: never less than the header that a program was compiled with.
    const VERSION: (c_int, c_int) = (5, 0);
    type Status = Status;

    const NUMBERS: Tables = numbers::MPICH;

    fn err_out(code: i32) -> c_int {
        // Codes that the program added lie above MPI_ERR_LASTCODE, which is far higher in MPICH than in the core.
        if code > LASTCODE { code | MPICH_DYNAMIC_CODE } else { Self::NUMBERS.errors.to_face(code) }
    }

    fn err_in(code: c_int) -> i32 {
        if code >= MPICH_DYNAMIC_CODE { code & !MPICH_DYNAMIC_CODE } else { Self::NUMBERS.errors.to_core(code) }
    }

    #[inline]
    fn buf_in(buf: *const c_void) -> *const c_void {
        sentinels::buffer(buf)
    }

    fn f_argv_null(address: *const c_void) -> bool {
        crate::commons::is_argv_null(address)
    }

    fn f_argvs_null(address: *const c_void) -> bool {
        crate::commons::is_argvs_null(address)
    }

    fn f_errcodes_ignored(address: *const c_void) -> bool {
        crate::commons::is_errcodes_ignore(address)
    }

    const IN_PLACE: usize = sentinels::IN_PLACE;
    const STATUS_IGNORE: usize = sentinels::STATUS_IGNORE;

    fn unweighted() -> *const c_int {
        sentinels::unweighted()
    }

    fn weights_empty() -> *const c_int {
        sentinels::weights_empty()
    }

    fn weights_in(weights: *const c_int) -> Weights {
        sentinels::weights(weights)
    }

    const FACE: Face = Face {
        logical_on_reals: true,
        bytes_are_bits: true,
        characters: Characters::Signed,
        refuses_aliases: true,
        handlers_choose: true,
    };
    const NULL_TYPE_OF_NOTHING: bool = true;

    const MAX_PROCESSOR_NAME: usize = 128;
    const MAX_ERROR_STRING: usize = 512;
    const MAX_OBJECT_NAME: usize = 128;
    const MAX_INFO_KEY: usize = 255;
    const MAX_INFO_VAL: usize = 1024;
    const MAX_LIBRARY_VERSION_STRING: usize = 8192;
    const MAX_PORT_NAME: usize = 256;
    const BSEND_OVERHEAD: c_int = 96;
    const MAX_STRINGTAG_LEN: usize = 256;

    const BUFFER_AUTOMATIC: usize = BUFFER_AUTOMATIC;

    fn is_all_handles(handle: *const c_void) -> bool {
        sentinels::is_all_handles(handle)
    }

    fn is_buffer_automatic(buf: *const c_void) -> bool {
        buf as isize == BUFFER_AUTOMATIC as isize || crate::commons::is_buffer_automatic(buf)
    }

    #[inline]
    fn status_ignored(status: *const Status) -> bool {
        sentinels::status_ignored(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_core::errors::Class;

    #[test]
    fn codes_that_the_program_added_lie_above_lastcode() {
        const LASTCODE: c_int = 0x3fff_ffff;
        assert_eq!(Mpich::err_out(numbers::LASTCODE), LASTCODE);
        assert!(Mpich::err_out(numbers::LASTCODE + 1) > LASTCODE);
        assert_eq!(Mpich::err_in(Mpich::err_out(numbers::LASTCODE + 1)), numbers::LASTCODE + 1);
        assert_eq!(Mpich::err_out(Class::Truncate.0), 14);
        assert_eq!(Mpich::err_in(14), Class::Truncate.0);
    }

    #[test]
    fn attributes_have_a_second_key_in_fortran() {
        assert_eq!(Mpich::keyval_in(0x6440_0001), vmpi_core::consts::TAG_UB);
        assert_eq!(Mpich::keyval_in(0x6440_0002), vmpi_core::consts::TAG_UB);
        assert_eq!(Mpich::keyval_in(0x2400_0000), vmpi_core::consts::KEYVAL_INVALID);
        assert_eq!(Mpich::keyval_in(4097), 4097);
    }
}
