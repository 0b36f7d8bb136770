//! What MPICH's mpi_f08 module has beside the procedures that the other tables give it: comparisons of handles, predefined
//! callbacks, sizes, conversions of statuses.

use std::ffi::c_int;

/// Two handles, each an INTEGER or a type with one: are they the same?
///
/// # Safety
/// Both must be valid for reads.
pub unsafe fn same(a: *const c_int, b: *const c_int) -> c_int {
    // SAFETY: promised by the caller.
    c_int::from(unsafe { a.read_unaligned() == b.read_unaligned() })
}

/// MPI_Status_f2f08 and MPI_Status_f082f: the bytes are the same.
///
/// # Safety
/// `from` must hold `integers` INTEGERs, `to` have room for them, and `ierror` be null or valid for writes.
pub unsafe fn copy_status(from: *const c_int, to: *mut c_int, ierror: *mut c_int, integers: usize) {
    // SAFETY: promised by the caller.
    unsafe {
        std::ptr::copy(from, to, integers);
        if !ierror.is_null() {
            ierror.write_unaligned(0);
        }
    }
}

/// Everything in this file, for a face with MPICH's Fortran side.
#[macro_export]
macro_rules! f_table_f08 {
    ($A:ty) => {
        $crate::export_f! { $A, f08, [mpi MPI];
            #[counts]
            fn buffer_detach BUFFER_DETACH = c::buffer_detach(buffer_addr: Buf, size: Nums);
        }
        $crate::f08_comparisons! {
            "comm" "datatype" "errhandler" "file" "group" "info" "message" "op" "request" "session" "win"
        }
        $crate::f08_callbacks! { $A;
            "__mpi_f08_callbacks_MOD_mpi_comm_", "__mpi_f08_callbacks_MOD_mpi_type_", "__mpi_f08_callbacks_MOD_mpi_win_"
        }
        $crate::f_sizeof! {
            1: "__mpi_f08_types_MOD_mpi_sizeof_character", "__mpi_f08_types_MOD_mpi_sizeof_xint8";
            2: "__mpi_f08_types_MOD_mpi_sizeof_xint16";
            4: "__mpi_f08_types_MOD_mpi_sizeof_logical", "__mpi_f08_types_MOD_mpi_sizeof_xint32",
                "__mpi_f08_types_MOD_mpi_sizeof_xreal32";
            8: "__mpi_f08_types_MOD_mpi_sizeof_xint64", "__mpi_f08_types_MOD_mpi_sizeof_xreal64",
                "__mpi_f08_types_MOD_mpi_sizeof_xcomplex32";
            16: "__mpi_f08_types_MOD_mpi_sizeof_xreal128", "__mpi_f08_types_MOD_mpi_sizeof_xcomplex64";
            32: "__mpi_f08_types_MOD_mpi_sizeof_xcomplex128";
        }
        const _: () = {
            unsafe extern "C" fn body(_buf: *const std::ffi::c_void) {}
            $crate::f_manglings! { descriptors, [mpi MPI], f_sync_reg F_SYNC_REG, body }
        };
        const _: () = {
            unsafe extern "C" fn body(from: *const i32, to: *mut i32, ierror: *mut i32) {
                // SAFETY: the caller passes two statuses and IERROR.
                unsafe {
                    $crate::fortran::table_f08::copy_status(from, to, ierror, <$A as $crate::abi::Abi>::F_STATUS_SIZE);
                }
            }
            $crate::f_alias! { body, "__mpi_f08_types_MOD_mpi_status_f2f08" }
            $crate::f_alias! { body, "__mpi_f08_types_MOD_mpi_status_f082f" }
        };
    };
}

/// `==` and `/=` of each kind of handle, with INTEGERs too.
#[macro_export]
#[doc(hidden)]
macro_rules! f08_comparisons {
    ($($kind:literal)*) => {
        const _: () = {
            unsafe extern "C" fn equal(a: *const i32, b: *const i32) -> i32 {
                // SAFETY: the caller passes two handles.
                unsafe { $crate::fortran::table_f08::same(a, b) }
            }
            unsafe extern "C" fn different(a: *const i32, b: *const i32) -> i32 {
                // SAFETY: as above.
                1 - unsafe { $crate::fortran::table_f08::same(a, b) }
            }
            $(
                $crate::f_alias! { equal, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_eq") }
                $crate::f_alias! { equal, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_f08_eq_f") }
                $crate::f_alias! { equal, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_f_eq_f08") }
                $crate::f_alias! { equal, concat!("__mpi_constants_MOD_", $kind, "eq") }
                $crate::f_alias! { different, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_neq") }
                $crate::f_alias! { different, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_f08_neq_f") }
                $crate::f_alias! { different, concat!("__mpi_f08_types_MOD_mpi_", $kind, "_f_neq_f08") }
                $crate::f_alias! { different, concat!("__mpi_constants_MOD_", $kind, "neq") }
            )*
        };
    };
}

/// The predefined callbacks of attributes.
#[macro_export]
#[doc(hidden)]
macro_rules! f08_callbacks {
    ($A:ty; $($prefix:literal),*) => {$(
        const _: () = {
            unsafe extern "C" fn dup(
                object: *const i32, keyval: *const i32, extra_state: *const i64, value_in: *const i64,
                value_out: *mut i64, flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: the caller passes what MPI_Comm_copy_attr_function is given.
                unsafe {
                    $crate::fortran::special::object_dup_fn::<$A>(
                        object, keyval, extra_state, value_in, value_out, flag, ierror,
                    );
                }
            }
            $crate::f_alias! { dup, concat!($prefix, "dup_fn") }
        };
        const _: () = {
            unsafe extern "C" fn null_copy(
                object: *const i32, keyval: *const i32, extra_state: *const i64, value_in: *const i64,
                value_out: *mut i64, flag: *mut i32, ierror: *mut i32,
            ) {
                // SAFETY: as above.
                unsafe {
                    $crate::fortran::special::null_copy_fn::<$A>(
                        object, keyval, extra_state.cast(), value_in.cast(), value_out.cast(), flag, ierror,
                    );
                }
            }
            $crate::f_alias! { null_copy, concat!($prefix, "null_copy_fn") }
        };
        const _: () = {
            unsafe extern "C" fn null_delete(
                object: *const i32, keyval: *const i32, value: *const i64, extra_state: *const i64, ierror: *mut i32,
            ) {
                // SAFETY: the caller passes what MPI_Comm_delete_attr_function is given.
                unsafe {
                    $crate::fortran::special::null_delete_fn::<$A>(
                        object, keyval, value.cast(), extra_state.cast(), ierror,
                    );
                }
            }
            $crate::f_alias! { null_delete, concat!($prefix, "null_delete_fn") }
        };
    )*};
}
