//! What the codecs of all faces share: what is known of predefined handles, and the functions that convert handles and
//! statuses between C, Fortran and INTEGER.

use crate::abi::{Abi, C, Codec};
use crate::entry;
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, Error};
use vmpi_core::handle::{self, Handle};

/// Size of a table indexed by the value of a predefined core handle (the values of all kinds are distinct).
pub const PREDEFINED: usize = 0x300;

/// Is this the value of a predefined core handle (of any kind)? Then it indexes tables of [`PREDEFINED`] entries.
#[inline]
pub fn is_predefined(raw: u32) -> bool {
    (raw as usize) < PREDEFINED
}

/// A core handle that no table knows: what a C value that names nothing decodes to.
#[inline]
pub fn unknown<H: Handle>() -> H {
    H::from_raw(u32::MAX)
}

/// `MPI_X_c2f` and `MPI_X_toint`.
pub fn to_int<A: Codec<H>, H: Handle>(c: C<A, H>) -> c_int {
    A::fenc(A::dec(c))
}

/// `MPI_X_f2c` and `MPI_X_fromint`.
pub fn from_int<A: Codec<H>, H: Handle>(f: c_int) -> C<A, H> {
    A::enc(A::fdec(f))
}

macro_rules! conversions {
    ($($kind:ident: $c2f:ident $f2c:ident;)*) => {$(
        #[doc = concat!("C handle to INTEGER (MPI 4.1 section 19.3.4), for handles of kind ", stringify!($kind), ".")]
        ///
        /// # Safety
        /// None beyond MPI's contract.
        pub unsafe fn $c2f<A: Abi>(c: C<A, handle::$kind>) -> c_int {
            to_int::<A, handle::$kind>(c)
        }
        #[doc = concat!("INTEGER to C handle (MPI 4.1 section 19.3.4), for handles of kind ", stringify!($kind), ".")]
        ///
        /// # Safety
        /// None beyond MPI's contract.
        pub unsafe fn $f2c<A: Abi>(f: c_int) -> C<A, handle::$kind> {
            from_int::<A, handle::$kind>(f)
        }
    )*};
}

conversions! {
    Comm: comm_c2f comm_f2c;
    Group: group_c2f group_f2c;
    Win: win_c2f win_f2c;
    File: file_c2f file_f2c;
    Session: session_c2f session_f2c;
    Message: message_c2f message_f2c;
    Info: info_c2f info_f2c;
    Errhandler: errhandler_c2f errhandler_f2c;
    Request: request_c2f request_f2c;
    Datatype: type_c2f type_f2c;
    Op: op_c2f op_f2c;
}

/// `MPI_Status_c2f`, `MPI_Status_f2c` and the forms for mpi_f08: in every face all statuses have the same bytes.
///
/// # Safety
/// MPI's contract: `from` holds a status and `to` has room for one.
pub unsafe fn status_copy<A: Abi>(from: *const c_void, to: *mut c_void) -> c_int {
    let from: *const A::Status = from.cast();
    entry::run_any_time::<A>("MPI_Status_c2f", || {
        if from.is_null() || to.is_null() || A::status_ignored(from) {
            return Err(Error::new(Class::Arg, "the status to convert is null or one of the ignored statuses"));
        }
        // SAFETY: the caller vouches for both; they are not sentinels.
        unsafe { std::ptr::copy(from, to.cast::<A::Status>(), 1) };
        Ok(())
    })
}

macro_rules! status_fields {
    ($($get:ident $set:ident $name:literal $field:ident;)*) => {$(
        #[doc = concat!("`MPI_Status_get_", $name, "` (MPI 4.1 section 3.2.5).")]
        ///
        /// # Safety
        /// MPI's contract: `status` holds a status and `value` has room for an int.
        pub unsafe fn $get<A: Abi>(status: *const A::Status, value: *mut c_int) -> c_int {
            entry::run_any_time::<A>(concat!("MPI_Status_get_", $name), || {
                if status.is_null() || value.is_null() || A::status_ignored(status) {
                    return Err(Error::new(Class::Arg, "the status or the place for its field is null or ignored"));
                }
                // SAFETY: the caller vouches for both; neither is null or a sentinel.
                unsafe { *value = A::status_raw(status).$field };
                Ok(())
            })
        }
        #[doc = concat!("`MPI_Status_set_", $name, "` (MPI 4.1 section 3.2.5).")]
        ///
        /// # Safety
        /// MPI's contract: `status` holds a status.
        pub unsafe fn $set<A: Abi>(status: *mut A::Status, value: c_int) -> c_int {
            entry::run_any_time::<A>(concat!("MPI_Status_set_", $name), || {
                if status.is_null() || A::status_ignored(status) {
                    return Err(Error::new(Class::Arg, "the status is null or ignored"));
                }
                // SAFETY: the caller vouches for `status`; it is neither null nor a sentinel.
                unsafe {
                    let mut all = A::status_raw(status);
                    all.$field = value;
                    A::status_set_raw(status, &all);
                    A::status_set_error(status, all.error);
                }
                Ok(())
            })
        }
    )*};
}

status_fields! {
    status_get_source status_set_source "source" source;
    status_get_tag status_set_tag "tag" tag;
    status_get_error status_set_error "error" error;
}

/// Handle conversions that are functions in every face.
#[macro_export]
macro_rules! c_table_convert {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::codec];
            fn MPI_File_c2f = file_c2f(file: $crate::abi::CFile<$A>) -> c_int;
            fn MPI_File_f2c = file_f2c(file: c_int) -> $crate::abi::CFile<$A>;
            fn MPI_Status_c2f = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
            fn MPI_Status_f2c = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
            fn MPI_Status_c2f08 = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
            fn MPI_Status_f082c = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
            fn MPI_Status_f2f08 = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
            fn MPI_Status_f082f = status_copy(from: *const c_void, to: *mut c_void) -> c_int;
        }
    };
}

/// The c2f and f2c that are macros in MPICH's header.
#[macro_export]
macro_rules! c_table_convert_pointers {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::codec];
            fn MPI_Comm_c2f = comm_c2f(c: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_f2c = comm_f2c(f: c_int) -> $crate::abi::CComm<$A>;
            fn MPI_Group_c2f = group_c2f(c: $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_f2c = group_f2c(f: c_int) -> $crate::abi::CGroup<$A>;
            fn MPI_Win_c2f = win_c2f(c: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_f2c = win_f2c(f: c_int) -> $crate::abi::CWin<$A>;
            fn MPI_Session_c2f = session_c2f(c: $crate::abi::CSession<$A>) -> c_int;
            fn MPI_Session_f2c = session_f2c(f: c_int) -> $crate::abi::CSession<$A>;
            fn MPI_Message_c2f = message_c2f(c: $crate::abi::CMessage<$A>) -> c_int;
            fn MPI_Message_f2c = message_f2c(f: c_int) -> $crate::abi::CMessage<$A>;
            fn MPI_Info_c2f = info_c2f(c: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_f2c = info_f2c(f: c_int) -> $crate::abi::CInfo<$A>;
            fn MPI_Errhandler_c2f = errhandler_c2f(c: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Errhandler_f2c = errhandler_f2c(f: c_int) -> $crate::abi::CErrhandler<$A>;
            fn MPI_Request_c2f = request_c2f(c: $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Request_f2c = request_f2c(f: c_int) -> $crate::abi::CRequest<$A>;
            fn MPI_Type_c2f = type_c2f(c: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_f2c = type_f2c(f: c_int) -> $crate::abi::CDatatype<$A>;
            fn MPI_Op_c2f = op_c2f(c: $crate::abi::COp<$A>) -> c_int;
            fn MPI_Op_f2c = op_f2c(f: c_int) -> $crate::abi::COp<$A>;
        }
    };
}

/// What MPI 5.0 adds to convert handles and to reach a status's fields (upstream MPICH 5 exports them).
#[macro_export]
macro_rules! c_table_convert_mpi5 {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::codec];
            fn MPI_Comm_toint = comm_c2f(c: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_fromint = comm_f2c(f: c_int) -> $crate::abi::CComm<$A>;
            fn MPI_Group_toint = group_c2f(c: $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_fromint = group_f2c(f: c_int) -> $crate::abi::CGroup<$A>;
            fn MPI_Win_toint = win_c2f(c: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_fromint = win_f2c(f: c_int) -> $crate::abi::CWin<$A>;
            fn MPI_File_toint = file_c2f(c: $crate::abi::CFile<$A>) -> c_int;
            fn MPI_File_fromint = file_f2c(f: c_int) -> $crate::abi::CFile<$A>;
            fn MPI_Session_toint = session_c2f(c: $crate::abi::CSession<$A>) -> c_int;
            fn MPI_Session_fromint = session_f2c(f: c_int) -> $crate::abi::CSession<$A>;
            fn MPI_Message_toint = message_c2f(c: $crate::abi::CMessage<$A>) -> c_int;
            fn MPI_Message_fromint = message_f2c(f: c_int) -> $crate::abi::CMessage<$A>;
            fn MPI_Info_toint = info_c2f(c: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Info_fromint = info_f2c(f: c_int) -> $crate::abi::CInfo<$A>;
            fn MPI_Errhandler_toint = errhandler_c2f(c: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Errhandler_fromint = errhandler_f2c(f: c_int) -> $crate::abi::CErrhandler<$A>;
            fn MPI_Request_toint = request_c2f(c: $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Request_fromint = request_f2c(f: c_int) -> $crate::abi::CRequest<$A>;
            fn MPI_Type_toint = type_c2f(c: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_fromint = type_f2c(f: c_int) -> $crate::abi::CDatatype<$A>;
            fn MPI_Op_toint = op_c2f(c: $crate::abi::COp<$A>) -> c_int;
            fn MPI_Op_fromint = op_f2c(f: c_int) -> $crate::abi::COp<$A>;
            fn MPI_Status_get_source = status_get_source(status: *const <$A as $crate::abi::Abi>::Status, value: *mut c_int) -> c_int;
            fn MPI_Status_set_source = status_set_source(status: *mut <$A as $crate::abi::Abi>::Status, value: c_int) -> c_int;
            fn MPI_Status_get_tag = status_get_tag(status: *const <$A as $crate::abi::Abi>::Status, value: *mut c_int) -> c_int;
            fn MPI_Status_set_tag = status_set_tag(status: *mut <$A as $crate::abi::Abi>::Status, value: c_int) -> c_int;
            fn MPI_Status_get_error = status_get_error(status: *const <$A as $crate::abi::Abi>::Status, value: *mut c_int) -> c_int;
            fn MPI_Status_set_error = status_set_error(status: *mut <$A as $crate::abi::Abi>::Status, value: c_int) -> c_int;
        }
    };
}
