//! The predefined copy and delete functions of attributes (MPI 4.1 section 7.7): their addresses are constants of mpi.h.

use std::ffi::{c_int, c_void};

/// Copies no attribute.
unsafe fn null_copy(flag: *mut c_int) -> c_int {
    // SAFETY: MPI's contract for copy functions.
    unsafe { *flag = 0 };
    0
}

/// Copies the value of an attribute.
unsafe fn dup(value_in: *mut c_void, value_out: *mut c_void, flag: *mut c_int) -> c_int {
    // SAFETY: MPI's contract for copy functions: `value_out` is where a pointer goes.
    unsafe {
        *value_out.cast::<*mut c_void>() = value_in;
        *flag = 1;
    }
    0
}

macro_rules! attribute_functions {
    ($($null_copy:ident $null_delete:ident $dup:ident;)*) => {$(
        /// Copies no attribute.
        ///
        /// # Safety
        /// MPI's contract for copy functions.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $null_copy(
            _object: *mut c_void,
            _keyval: c_int,
            _extra_state: *mut c_void,
            _value_in: *mut c_void,
            _value_out: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller keeps the same contract.
            unsafe { null_copy(flag) }
        }

        /// Does nothing.
        #[unsafe(no_mangle)]
        pub extern "C" fn $null_delete(
            _object: *mut c_void,
            _keyval: c_int,
            _value: *mut c_void,
            _extra_state: *mut c_void,
        ) -> c_int {
            0
        }

        /// Copies the value of an attribute.
        ///
        /// # Safety
        /// MPI's contract for copy functions.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $dup(
            _object: *mut c_void,
            _keyval: c_int,
            _extra_state: *mut c_void,
            value_in: *mut c_void,
            value_out: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: the caller keeps the same contract.
            unsafe { dup(value_in, value_out, flag) }
        }
    )*};
}

attribute_functions! {
    OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_NULL_DELETE_FN OMPI_C_MPI_DUP_FN;
    OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_COMM_DUP_FN;
    OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN OMPI_C_MPI_TYPE_DUP_FN;
    OMPI_C_MPI_WIN_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_DELETE_FN OMPI_C_MPI_WIN_DUP_FN;
}
