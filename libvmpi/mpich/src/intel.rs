//! Names that programs of Intel MPI have from its Fortran modules, where those are compiled by ifx (`module_mp_procedure_`) and not by gfortran
//! (`__module_MOD_procedure`), and what Intel adds to MPICH's procedures. Handles are MPICH's.

use crate::Mpich;
use std::ffi::c_int;

/// Predefined handles of mpi_f08: constants that ifx passes by the address of the module's object.
macro_rules! constants {
    ($($name:literal $value:literal;)*) => {
        $(const _: () = {
            #[unsafe(export_name = concat!("mpi_f08_compile_constants_mp_mpi_", $name, "_"))]
            static CONSTANT: u32 = $value;
        };)*
        /// The same as a list.
        #[cfg(test)]
        const CONSTANTS: &[(&str, u32)] = &[$(($name, $value)),*];
    };
}

constants! {
    "2double_precision" 0x4c001023; "2int" 0x4c000816; "2integer" 0x4c000820; "2real" 0x4c000821; "aint" 0x4c000843;
    "band" 0x58000006; "bor" 0x58000008; "bxor" 0x5800000a; "byte" 0x4c00010d; "c_bool" 0x4c00013f;
    "c_complex" 0x4c000840; "c_double_complex" 0x4c001041; "c_float_complex" 0x4c000840;
    "c_long_double_complex" 0x4c002042; "char" 0x4c000101; "character" 0x4c00011a; "comm_null" 0x04000000;
    "comm_self" 0x44000001; "comm_world" 0x44000000; "complex16" 0x4c00102a; "complex32" 0x4c00202c;
    "complex8" 0x4c000828; "complex" 0x4c00081e; "count" 0x4c000845; "cxx_bool" 0x4c000133;
    "cxx_double_complex" 0x4c001035; "cxx_float_complex" 0x4c000834; "cxx_long_double_complex" 0x4c002036;
    "datatype_null" 0x0c000000; "double" 0x4c00080b; "double_complex" 0x4c001022; "double_int" 0x8c000001;
    "double_precision" 0x4c00081f; "errhandler_null" 0x14000000; "errors_are_fatal" 0x54000000;
    "errors_return" 0x54000001; "file_null" 0x00000000; "float" 0x4c00040a; "float_int" 0x8c000000;
    "group_empty" 0x48000000; "group_null" 0x08000000; "info_env" 0x5c000001; "info_null" 0x1c000000;
    "int16_t" 0x4c000238; "int32_t" 0x4c000439; "int64_t" 0x4c00083a; "int8_t" 0x4c000137; "int" 0x4c000405;
    "integer16" 0x0c000000; "integer1" 0x4c00012d; "integer2" 0x4c00022f; "integer4" 0x4c000430;
    "integer8" 0x4c000831; "integer" 0x4c00041b; "land" 0x58000005; "lb" 0x4c000010; "logical16" 0x0c000000;
    "logical1" 0x4c000147; "logical2" 0x4c000248; "logical4" 0x4c000449; "logical8" 0x4c00084a; "logical" 0x4c00041d;
    "long" 0x4c000807; "long_double" 0x4c00100c; "long_double_int" 0x8c000004; "long_int" 0x8c000002;
    "long_long" 0x4c000809; "long_long_int" 0x4c000809; "lor" 0x58000007; "lxor" 0x58000009; "max" 0x58000001;
    "maxloc" 0x5800000c; "message_no_proc" 0x6c000000; "message_null" 0x2c000000; "min" 0x58000002;
    "minloc" 0x5800000b; "no_op" 0x5800000e; "offset" 0x4c000844; "op_null" 0x18000000; "packed" 0x4c00010f;
    "prod" 0x58000004; "real16" 0x4c00102b; "real4" 0x4c000427; "real8" 0x4c000829; "real" 0x4c00041c;
    "replace" 0x5800000d; "request_null" 0x2c000000; "session_null" 0x38000000; "short" 0x4c000203;
    "short_int" 0x8c000003; "signed_char" 0x4c000118; "sum" 0x58000003; "ub" 0x4c000011; "uint16_t" 0x4c00023c;
    "uint32_t" 0x4c00043d; "uint64_t" 0x4c00083e; "uint8_t" 0x4c00013b; "unsigned" 0x4c000406;
    "unsigned_char" 0x4c000102; "unsigned_long" 0x4c000808; "unsigned_long_long" 0x4c000819;
    "unsigned_short" 0x4c000204; "wchar" 0x4c00040e; "win_null" 0x20000000;
}

/// `MPI_Comm_f2c(comm)`, `MPI_Comm_c2f(comm)` and the same of the other handles, which are the same in both languages.
unsafe extern "C" fn same(handle: *const c_int) -> c_int {
    // SAFETY: the caller passes the address of a handle.
    unsafe { handle.read_unaligned() }
}

/// `MPI_Comm_toint(comm, int)` and the same of the other handles.
unsafe extern "C" fn toint(handle: *const c_int, to: *mut c_int) {
    // SAFETY: the caller passes the addresses of two INTEGERs.
    unsafe { to.write_unaligned(handle.read_unaligned()) };
}

unsafe extern "C" fn equal(a: *const c_int, b: *const c_int) -> c_int {
    // SAFETY: the caller passes two handles. ifx looks at the lowest bit of a LOGICAL.
    unsafe { vmpi_abi::fortran::table_f08::same(a, b) }
}

unsafe extern "C" fn different(a: *const c_int, b: *const c_int) -> c_int {
    // SAFETY: as above.
    1 - unsafe { vmpi_abi::fortran::table_f08::same(a, b) }
}

/// `MPI_Status_f2f08(from, to, ierror)` and the reverse.
unsafe extern "C" fn convert_status(from: *const c_int, to: *mut c_int, ierror: *mut c_int) {
    // SAFETY: the caller passes two statuses and IERROR.
    unsafe {
        vmpi_abi::fortran::table_f08::copy_status(from, to, ierror, <Mpich as vmpi_abi::abi::Abi>::F_STATUS_SIZE)
    };
}

/// An assignment of statuses: the one assigned to comes first.
unsafe extern "C" fn assign_status(to: *mut c_int, from: *const c_int) {
    // SAFETY: the caller passes two statuses.
    unsafe { convert_status(from, to, std::ptr::null_mut()) };
}

/// What there is of each kind of handle, by its name in `mpi_comm_eq`, `mpi_comm_toint` and `mpi_comm_f2c`.
macro_rules! handles {
    ($($kind:literal)*; $($converted:ident $CONVERTED:ident)*; $($pointer:literal)*) => {
        $(
            vmpi_abi::f_alias! { equal, concat!("mpi_f08_types_mp_mpi_", $kind, "_eq_") }
            vmpi_abi::f_alias! { equal, concat!("mpi_f08_types_mp_mpi_", $kind, "_f08_eq_f_") }
            vmpi_abi::f_alias! { equal, concat!("mpi_f08_types_mp_mpi_", $kind, "_f_eq_f08_") }
            vmpi_abi::f_alias! { equal, concat!("mpi_constants_mp_", $kind, "eq_") }
            vmpi_abi::f_alias! { different, concat!("mpi_f08_types_mp_mpi_", $kind, "_neq_") }
            vmpi_abi::f_alias! { different, concat!("mpi_f08_types_mp_mpi_", $kind, "_f08_ne_f_") }
            vmpi_abi::f_alias! { different, concat!("mpi_f08_types_mp_mpi_", $kind, "_f_ne_f08_") }
            vmpi_abi::f_alias! { different, concat!("mpi_constants_mp_", $kind, "neq_") }
        )*
        $(vmpi_abi::f_names! { f_alias, [mpi MPI], $converted $CONVERTED, toint })*
        $(
            vmpi_abi::f_alias! { same, concat!("mpi_f08_types_mp_mpi_", $pointer, "_f2c_") }
            vmpi_abi::f_alias! { same, concat!("mpi_f08_types_mp_mpi_", $pointer, "_c2f_") }
        )*
    };
}
handles! {
    "comm" "datatype" "errhandler" "file" "group" "info" "message" "op" "request" "session" "win";
    comm_toint COMM_TOINT errhandler_toint ERRHANDLER_TOINT file_toint FILE_TOINT group_toint GROUP_TOINT info_toint INFO_TOINT
    message_toint MESSAGE_TOINT op_toint OP_TOINT request_toint REQUEST_TOINT session_toint SESSION_TOINT type_toint TYPE_TOINT
    win_toint WIN_TOINT;
    "comm" "errhandler" "group" "info" "message" "op" "request" "session" "type" "win"
}
vmpi_abi::f_alias! { same, "mpi_f08_types_mp_pmpi_win_c2f_" }
vmpi_abi::f_alias! { convert_status, "mpi_f08_types_mp_mpi_status_f2f08_" }
vmpi_abi::f_alias! { convert_status, "mpi_f08_types_mp_mpi_status_f082f_" }
vmpi_abi::f_alias! { convert_status, "mpi_f08_types_mp_pmpi_status_f2f08_" }
vmpi_abi::f_alias! { convert_status, "mpi_f08_types_mp_pmpi_status_f082f_" }
vmpi_abi::f_alias! { assign_status, "mpi_f08_types_mp_mpi_status_c_assgn_f_" }
vmpi_abi::f_alias! { assign_status, "mpi_f08_types_mp_mpi_status_c_assgn_f08_" }
vmpi_abi::f_alias! { assign_status, "mpi_f08_types_mp_mpi_status_f_assgn_c_" }
vmpi_abi::f_alias! { assign_status, "mpi_f08_types_mp_mpi_status_f08_assgn_c_" }

vmpi_abi::f_sizeof! {
    1: "mpi_f08_types_mp_mpi_sizeof_character_", "mpi_f08_types_mp_mpi_sizeof_xint8_", "mpi_sizeofs_mp_mpi_sizeof_ch_",
        "mpi_sizeofs_mp_mpi_sizeof_chv_", "mpi_sizeofs_mp_mpi_sizeof_i1_", "mpi_sizeofs_mp_mpi_sizeof_i1v_";
    2: "mpi_f08_types_mp_mpi_sizeof_xint16_", "mpi_sizeofs_mp_mpi_sizeof_i2_", "mpi_sizeofs_mp_mpi_sizeof_i2v_";
    4: "mpi_f08_types_mp_mpi_sizeof_logical_", "mpi_f08_types_mp_mpi_sizeof_xint32_", "mpi_f08_types_mp_mpi_sizeof_xreal32_",
        "mpi_sizeofs_mp_mpi_sizeof_i_", "mpi_sizeofs_mp_mpi_sizeof_iv_", "mpi_sizeofs_mp_mpi_sizeof_l_",
        "mpi_sizeofs_mp_mpi_sizeof_lv_", "mpi_sizeofs_mp_mpi_sizeof_r_", "mpi_sizeofs_mp_mpi_sizeof_rv_";
    8: "mpi_f08_types_mp_mpi_sizeof_xint64_", "mpi_f08_types_mp_mpi_sizeof_xreal64_", "mpi_f08_types_mp_mpi_sizeof_xcomplex32_",
        "mpi_sizeofs_mp_mpi_sizeof_i8_", "mpi_sizeofs_mp_mpi_sizeof_i8v_", "mpi_sizeofs_mp_mpi_sizeof_d_",
        "mpi_sizeofs_mp_mpi_sizeof_dv_", "mpi_sizeofs_mp_mpi_sizeof_cx_", "mpi_sizeofs_mp_mpi_sizeof_cxv_";
    16: "mpi_f08_types_mp_mpi_sizeof_xreal128_", "mpi_f08_types_mp_mpi_sizeof_xcomplex64_";
    32: "mpi_f08_types_mp_mpi_sizeof_xcomplex128_";
}

vmpi_abi::f_table_unsupported_intel! { Mpich }

/// MPI_CONVERSION_FN_NULL_C: a program only names it.
unsafe extern "C" fn no_conversion() {}
vmpi_abi::f_alias! { no_conversion, "mpi_f08_callbacks_mp_mpi_conversion_fn_null_c_" }

vmpi_abi::export_f! { Mpich, mpifh, [mpix MPIX];
    fn comm_get_failed COMM_GET_FAILED = c::comm_get_failed(comm: In<h::Comm>, failedgrp: Out<h::Group>);
}
vmpi_abi::export_f_unsupported! { Mpich, mpifh, [mpix MPIX];
    (a b): comm_test_threadcomm COMM_TEST_THREADCOMM;
    (a b c d e f g h i): get_notify GET_NOTIFY put_notify PUT_NOTIFY;
    (a b): win_create_notify WIN_CREATE_NOTIFY;
    (a): win_free_notify WIN_FREE_NOTIFY;
    (a b c): win_get_notify WIN_GET_NOTIFY win_set_notify WIN_SET_NOTIFY;
    (a b c d): win_get_notify_request WIN_GET_NOTIFY_REQUEST;
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_abi::abi::Codec;
    use vmpi_core::handle::{Comm, Datatype, Handle, Op};

    #[test]
    fn constants_are_the_faces() {
        let value = |name: &str| CONSTANTS.iter().find(|constant| constant.0 == name).expect(name).1 as c_int;
        assert_eq!(<Mpich as Codec<Comm>>::fdec(value("comm_world")), Comm::WORLD);
        assert_eq!(<Mpich as Codec<Datatype>>::fdec(value("datatype_null")), Datatype::NULL);
        assert_eq!(<Mpich as Codec<Op>>::fdec(value("op_null")), Op::NULL);
        for &(name, value) in CONSTANTS.iter().filter(|constant| constant.1 >> 24 == 0x4c) {
            let handle = <Mpich as Codec<Datatype>>::fdec(value as c_int);
            assert_eq!(<Mpich as Codec<Datatype>>::fenc(handle), value as c_int, "{name}");
        }
    }
}
