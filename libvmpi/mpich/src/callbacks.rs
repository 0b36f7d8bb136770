//! The predefined copy function of attributes (MPI 4.1 section 7.7): its address is a constant of mpi.h; the others are 0.

use std::ffi::{c_int, c_void};

/// `MPI_DUP_FN`, `MPI_COMM_DUP_FN` and so on: copies the value of an attribute.
///
/// # Safety
/// MPI's contract for copy functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _object: c_int,
    _keyval: c_int,
    _extra_state: *mut c_void,
    value_in: *mut c_void,
    value_out: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI's contract: `value_out` is where a pointer goes.
    unsafe {
        *value_out.cast::<*mut c_void>() = value_in;
        *flag = 1;
    }
    0
}
