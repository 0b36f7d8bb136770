//! Procedures whose Fortran form differs from the C one by more than the kinds of arguments.

use crate::abi::{Abi, CComm, CInfo, CRequest, CSession};
use crate::f_through;
use crate::fortran::args::index_out;
use crate::fortran::c;
use crate::fortran::through::Through;
use std::ffi::{c_char, c_int, c_void};
use vmpi_core::{clock, consts, lock};

/// C's argument vector.
type Argv = *mut *mut *mut c_char;

/// MPI_INIT: Fortran has no argument vector.
///
/// # Safety
/// MPI's contract.
pub unsafe fn init<A: Abi>(through: Through) -> c_int {
    let (argc, argv) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: MPI allows null pointers here.
    unsafe { f_through!(through, c::init::<A>(argc: *mut c_int, argv: Argv) -> c_int) }
}

/// MPI_INIT_THREAD: Fortran has no argument vector.
///
/// # Safety
/// `provided` must be valid for writes.
pub unsafe fn init_thread<A: Abi>(through: Through, required: c_int, provided: *mut c_int) -> c_int {
    let (argc, argv) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: MPI allows null pointers here; the rest is the caller's promise.
    unsafe {
        f_through!(through, c::init_thread::<A>(
            argc: *mut c_int, argv: Argv, required: c_int, provided: *mut c_int
        ) -> c_int)
    }
}

/// MPI_BUFFER_DETACH: the buffer's address is not returned in mpif.h and `use mpi` (MPI 4.1, section 3.6.1).
///
/// # Safety
/// `size` must be valid for writes.
pub unsafe fn buffer_detach<A: Abi>(through: Through, _buffer: *mut c_void, size: *mut c_int) -> c_int {
    let mut address: *mut c_void = std::ptr::null_mut();
    let address = (&raw mut address).cast();
    // SAFETY: C's MPI_Buffer_detach writes a pointer through its first argument; the rest is the caller's promise.
    unsafe { f_through!(through, c::buffer_detach::<A>(address: *mut c_void, size: *mut c_int) -> c_int) }
}

/// MPI_COMM_DETACH_BUFFER and MPI_SESSION_DETACH_BUFFER, the same.
macro_rules! detach {
    ($($func:ident of $Object:ident),*) => {$(
        #[doc = concat!("`MPI_", stringify!($func), "` as mpif.h has it.")]
        ///
        /// # Safety
        /// `size` must be valid for writes.
        pub unsafe fn $func<A: Abi>(
            through: Through,
            object: $Object<A>,
            _buffer: *mut c_void,
            size: *mut c_int,
        ) -> c_int {
            let mut address: *mut c_void = std::ptr::null_mut();
            let address = (&raw mut address).cast();
            // SAFETY: as in `buffer_detach`.
            unsafe {
                f_through!(through, c::$func::<A>(object: $Object<A>, address: *mut c_void, size: *mut c_int) -> c_int)
            }
        }
    )*};
}
detach! { comm_detach_buffer of CComm, session_detach_buffer of CSession }

/// MPI_INFO_CREATE_ENV: Fortran has no argument vector.
///
/// # Safety
/// `info` must be valid for writes.
pub unsafe fn info_create_env<A: Abi>(through: Through, info: *mut CInfo<A>) -> c_int {
    let (argc, argv) = (0, std::ptr::null_mut());
    // SAFETY: MPI allows no arguments; the rest is the caller's promise.
    unsafe {
        f_through!(through, c::info_create_env::<A>(
            argc: c_int, argv: *mut *mut c_char, info: *mut CInfo<A>
        ) -> c_int)
    }
}

/// MPI_INFO_GET_STRING: the length does not count C's final NUL.
///
/// # Safety
/// MPI's contract.
pub unsafe fn info_get_string<A: Abi>(
    through: Through,
    info: CInfo<A>,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: promised by the caller; `value` has room for the longest string.
    unsafe {
        let asked = buflen.read_unaligned();
        let mut with_nul = if asked > 0 { asked.saturating_add(1) } else { 0 };
        let length = &raw mut with_nul;
        let code = f_through!(through, c::info_get_string::<A>(
            info: CInfo<A>, key: *const c_char, length: *mut c_int, value: *mut c_char, flag: *mut c_int
        ) -> c_int);
        if code == 0 && *flag != 0 {
            buflen.write_unaligned((with_nul - 1).max(0));
        }
        code
    }
}

/// MPI_SESSION_GET_NTH_PSET: the length does not count C's final NUL.
///
/// # Safety
/// MPI's contract.
pub unsafe fn session_get_nth_pset<A: Abi>(
    through: Through,
    session: CSession<A>,
    info: CInfo<A>,
    n: c_int,
    pset_len: *mut c_int,
    name: *mut c_char,
) -> c_int {
    // SAFETY: promised by the caller; `name` has room for any string.
    unsafe {
        let asked = pset_len.read_unaligned();
        let mut with_nul = if asked > 0 { asked.saturating_add(1) } else { asked };
        let length = &raw mut with_nul;
        let code = f_through!(through, c::session_get_nth_pset::<A>(
            session: CSession<A>, info: CInfo<A>, n: c_int, length: *mut c_int, name: *mut c_char
        ) -> c_int);
        if code == 0 {
            pset_len.write_unaligned(with_nul - 1);
        }
        code
    }
}

macro_rules! some {
    ($(#[$doc:meta])* $name:ident($requests:ty)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// MPI's contract.
        pub unsafe fn $name<A: Abi>(
            through: Through,
            incount: c_int,
            requests: $requests,
            outcount: *mut c_int,
            indices: *mut c_int,
            statuses: *mut A::Status,
        ) -> c_int {
            // SAFETY: promised by the caller; the first `done` indices have been written if the call says so.
            unsafe {
                outcount.write_unaligned(0);
                let code = f_through!(through, c::$name::<A>(
                    incount: c_int, requests: $requests, outcount: *mut c_int, indices: *mut c_int,
                    statuses: *mut A::Status
                ) -> c_int);
                let done = outcount.read_unaligned();
                if A::rank_in(done) != consts::UNDEFINED {
                    for i in 0..usize::try_from(done).unwrap_or(0) {
                        let index = indices.add(i);
                        index.write_unaligned(index_out::<A>(index.read_unaligned()));
                    }
                }
                code
            }
        }
    };
}
some! {
    /// MPI_WAITSOME: indices count from 1.
    waitsome(*mut CRequest<A>)
}
some! {
    /// MPI_TESTSOME: indices count from 1.
    testsome(*mut CRequest<A>)
}
some! {
    /// MPI_REQUEST_GET_STATUS_SOME: indices count from 1.
    request_get_status_some(*mut CRequest<A>)
}

/// MPI_WTIME.
///
/// # Safety
/// None beyond MPI's.
pub unsafe fn wtime<A: Abi>(through: Through) -> f64 {
    // SAFETY: the function has no arguments.
    unsafe { f_through!(through, own::wtime::<A>() -> f64) }
}

/// MPI_WTICK.
///
/// # Safety
/// None beyond MPI's.
pub unsafe fn wtick<A: Abi>(through: Through) -> f64 {
    // SAFETY: the function has no arguments.
    unsafe { f_through!(through, own::wtick::<A>() -> f64) }
}

/// MPI_AINT_ADD.
///
/// # Safety
/// Both must be ADDRESS_KIND integers.
pub unsafe fn aint_add<A: Abi>(through: Through, base: *const i64, disp: *const i64) -> i64 {
    // SAFETY: promised by the caller.
    unsafe {
        let (base, disp) = (base.read_unaligned(), disp.read_unaligned());
        f_through!(through, own::aint_add::<A>(base: i64, disp: i64) -> i64)
    }
}

/// MPI_AINT_DIFF.
///
/// # Safety
/// Both must be ADDRESS_KIND integers.
pub unsafe fn aint_diff<A: Abi>(through: Through, addr1: *const i64, addr2: *const i64) -> i64 {
    // SAFETY: promised by the caller.
    unsafe {
        let (addr1, addr2) = (addr1.read_unaligned(), addr2.read_unaligned());
        f_through!(through, own::aint_diff::<A>(addr1: i64, addr2: i64) -> i64)
    }
}

/// MPI_PCONTROL, which has no IERROR. `label`: what may be behind the level, as in C.
///
/// # Safety
/// `level` must be an INTEGER.
pub unsafe fn pcontrol<A: Abi>(through: Through, level: *const c_int, label: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe {
        let level = level.read_unaligned();
        f_through!(through, c::pcontrol::<A>(level: c_int, label: *const c_char) -> c_int);
    }
}

/// What the values above are in vmpi itself. Generic over the face as the C functions are in whose place they stand.
#[allow(clippy::extra_unused_type_parameters)]
mod own {
    use super::{Abi, clock, lock};

    pub fn wtime<A: Abi>() -> f64 {
        let _entered = lock::enter();
        clock::wtime()
    }

    pub fn wtick<A: Abi>() -> f64 {
        let _entered = lock::enter();
        clock::wtick()
    }

    pub fn aint_add<A: Abi>(base: i64, disp: i64) -> i64 {
        base.wrapping_add(disp)
    }

    pub fn aint_diff<A: Abi>(addr1: i64, addr2: i64) -> i64 {
        addr1.wrapping_sub(addr2)
    }
}

/// MPI_F_SYNC_REG: that it is called is all it does.
///
/// # Safety
/// None.
pub unsafe fn f_sync_reg<A: Abi>(_buf: *mut c_void) {}

macro_rules! dup_fn {
    ($(#[$doc:meta])* $name:ident: $value:ty, $flag:expr) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// The arguments must be those of a copy callback.
        pub unsafe fn $name<A: Abi>(
            _object: *const c_int,
            _keyval: *const c_int,
            _extra_state: *const $value,
            value_in: *const $value,
            value_out: *mut $value,
            flag: *mut c_int,
            ierror: *mut c_int,
        ) {
            let copy: bool = $flag;
            // SAFETY: promised by the caller.
            unsafe {
                if copy {
                    value_out.write_unaligned(value_in.read_unaligned());
                }
                flag.write_unaligned(if copy { A::F_TRUE } else { 0 });
                ierror.write_unaligned(0);
            }
        }
    };
}
dup_fn! {
    /// MPI_DUP_FN: copies an INTEGER attribute.
    dup_fn: c_int, true
}
dup_fn! {
    /// MPI_COMM_DUP_FN, MPI_TYPE_DUP_FN, MPI_WIN_DUP_FN: copies an ADDRESS_KIND attribute.
    object_dup_fn: i64, true
}
dup_fn! {
    /// MPI_NULL_COPY_FN, MPI_COMM_NULL_COPY_FN and so on: copies nothing.
    null_copy_fn: i64, false
}

/// MPI_NULL_DELETE_FN, MPI_COMM_NULL_DELETE_FN and so on: does nothing.
///
/// # Safety
/// The arguments must be those of a delete callback.
pub unsafe fn null_delete_fn<A: Abi>(
    _object: *const c_int,
    _keyval: *const c_int,
    _value: *const c_void,
    _extra_state: *const c_void,
    ierror: *mut c_int,
) {
    // SAFETY: promised by the caller.
    unsafe { ierror.write_unaligned(0) };
}

/// Procedures without IERROR, and the predefined callbacks.
#[macro_export]
macro_rules! f_table_plain {
    ($A:ty, $face:ident) => {
        $crate::export_f_values! { $A, $face;
            fn wtime WTIME = wtime() -> f64;
            fn wtick WTICK = wtick() -> f64;
            fn aint_add AINT_ADD = aint_add(base: *const i64, disp: *const i64) -> i64;
            fn aint_diff AINT_DIFF = aint_diff(addr1: *const i64, addr2: *const i64) -> i64;
            fn pcontrol PCONTROL = pcontrol(level: *const i32, label: *const std::ffi::c_char);
        }
        $crate::export_f_plain! { $A, $face;
            fn f_sync_reg F_SYNC_REG = f_sync_reg(buf: *mut std::ffi::c_void);
            fn dup_fn DUP_FN = dup_fn(object: *const i32, keyval: *const i32, extra_state: *const i32,
                value_in: *const i32, value_out: *mut i32, flag: *mut i32, ierror: *mut i32);
        }
        $crate::f_object_callbacks! { $A, $face;
            comm_dup_fn COMM_DUP_FN, comm_null_copy_fn COMM_NULL_COPY_FN, comm_null_delete_fn COMM_NULL_DELETE_FN;
            type_dup_fn TYPE_DUP_FN, type_null_copy_fn TYPE_NULL_COPY_FN, type_null_delete_fn TYPE_NULL_DELETE_FN;
            win_dup_fn WIN_DUP_FN, win_null_copy_fn WIN_NULL_COPY_FN, win_null_delete_fn WIN_NULL_DELETE_FN;
        }
        $crate::f_null_callbacks! { $A, $face;
            null_copy_fn NULL_COPY_FN, null_delete_fn NULL_DELETE_FN;
        }
    };
}

/// The predefined callbacks for keys of one kind of object.
#[macro_export]
macro_rules! f_object_callbacks {
    ($A:ty, $face:ident; $($dup:ident $DUP:ident, $copy:ident $COPY:ident, $delete:ident $DELETE:ident;)*) => {$(
        $crate::export_f_plain! { $A, $face;
            fn $dup $DUP = object_dup_fn(object: *const i32, keyval: *const i32, extra_state: *const i64,
                value_in: *const i64, value_out: *mut i64, flag: *mut i32, ierror: *mut i32);
        }
        $crate::f_null_callbacks! { $A, $face; $copy $COPY, $delete $DELETE; }
    )*};
}

/// A copy callback that copies nothing and a delete callback that does nothing.
#[macro_export]
macro_rules! f_null_callbacks {
    ($A:ty, $face:ident; $copy:ident $COPY:ident, $delete:ident $DELETE:ident;) => {
        $crate::export_f_plain! { $A, $face;
            fn $copy $COPY = null_copy_fn(object: *const i32, keyval: *const i32, extra_state: *const i64,
                value_in: *const i64, value_out: *mut i64, flag: *mut i32, ierror: *mut i32);
            fn $delete $DELETE = null_delete_fn(object: *const i32, keyval: *const i32,
                value: *const std::ffi::c_void, extra_state: *const std::ffi::c_void, ierror: *mut i32);
        }
    };
}
