//! The face as the generic functions see it: the standard's limits, and addresses that stand for something else.

use crate::status::Status;
use crate::{Standard, commons};
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::{Abi, Weights};
use vmpi_abi::numbers::{self, Tables};
use vmpi_core::consts;
use vmpi_core::face::{Characters, Face};

/// `MPI_UNWEIGHTED`.
const UNWEIGHTED: usize = 10;
/// `MPI_WEIGHTS_EMPTY`.
const WEIGHTS_EMPTY: usize = 11;
/// `MPI_DISTRIBUTE_DFLT_DARG`, which is also a block size that a program may ask for: the standard's own ambiguity, which
/// only this face has.
const DISTRIBUTE_DFLT_DARG: c_int = 19;

impl Abi for Standard {
    const NAME: &'static str = "the MPI-5 standard";
    const RELEASE: &'static str = "";
    const VERSION: (c_int, c_int) = (5, 0);
    const ABI_VERSION: (c_int, c_int) = (1, 0);
    type Status = Status;
    const NUMBERS: Tables = numbers::STANDARD;
    // As in MPICH 5.
    const FACE: Face = Face {
        logical_on_reals: false,
        bytes_are_bits: true,
        characters: Characters::NoNumbers,
        refuses_aliases: true,
        handlers_choose: true,
    };
    const NULL_TYPE_OF_NOTHING: bool = true;

    #[inline]
    fn buf_in(buf: *const c_void) -> *const c_void {
        // C's own are the core's numbers.
        if commons::is_in_place(buf) {
            consts::IN_PLACE as *const c_void
        } else if commons::is_bottom(buf) {
            consts::BOTTOM as *const c_void
        } else {
            buf
        }
    }

    fn f_argv_null(address: *const c_void) -> bool {
        commons::is_argv_null(address)
    }

    fn f_argvs_null(address: *const c_void) -> bool {
        commons::is_argvs_null(address)
    }

    fn f_errcodes_ignored(address: *const c_void) -> bool {
        commons::is_errcodes_ignore(address)
    }

    const IN_PLACE: usize = consts::IN_PLACE;
    const STATUS_IGNORE: usize = 0;

    fn unweighted() -> *const c_int {
        UNWEIGHTED as *const c_int
    }

    fn weights_empty() -> *const c_int {
        WEIGHTS_EMPTY as *const c_int
    }

    fn weights_in(weights: *const c_int) -> Weights {
        if weights as usize == UNWEIGHTED || commons::is_unweighted(weights) {
            Weights::Unweighted
        } else if weights as usize == WEIGHTS_EMPTY || commons::is_weights_empty(weights) {
            Weights::Empty
        } else {
            Weights::Array(weights)
        }
    }

    #[inline]
    fn status_ignored(status: *const Status) -> bool {
        status.is_null() || commons::is_status_ignore(status) || commons::is_statuses_ignore(status)
    }

    fn darg_in(darg: c_int) -> i32 {
        if darg == DISTRIBUTE_DFLT_DARG { consts::DISTRIBUTE_DFLT_DARG } else { darg }
    }

    fn darg_out(darg: i32) -> c_int {
        if darg == consts::DISTRIBUTE_DFLT_DARG { DISTRIBUTE_DFLT_DARG } else { darg }
    }

    const MAX_PROCESSOR_NAME: usize = 256;
    const MAX_ERROR_STRING: usize = 512;
    const MAX_OBJECT_NAME: usize = 128;
    const MAX_INFO_KEY: usize = 256;
    const MAX_INFO_VAL: usize = 1024;
    const MAX_LIBRARY_VERSION_STRING: usize = 8192;
    const MAX_PORT_NAME: usize = 1024;
    const BSEND_OVERHEAD: c_int = 512;
    const MAX_STRINGTAG_LEN: usize = 1024;

    /// No handle of the core is 1: a session comes before any handle, and they share their numbers.
    fn is_all_handles(handle: *const c_void) -> bool {
        handle as usize == 1
    }

    fn is_buffer_automatic(buf: *const c_void) -> bool {
        buf as usize == consts::BUFFER_AUTOMATIC || commons::is_buffer_automatic(buf)
    }
}
