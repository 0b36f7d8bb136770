//! Addresses that stand for something else: MPI_BOTTOM, MPI_IN_PLACE and the like, in C, in Fortran and in mpi_f08.

use crate::commons;
use crate::status::Status;
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::Weights;
use vmpi_core::consts;

/// An exported variable that holds an address.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: the address of a static object; nobody follows it.
unsafe impl Sync for Address {}

/// `MPI_IN_PLACE` in C.
pub const IN_PLACE: usize = usize::MAX;
/// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` in C.
pub const STATUS_IGNORE: usize = 1;
/// INTEGERs of a Fortran status.
const F_STATUS_SIZE: usize = size_of::<Status>() / size_of::<c_int>();

macro_rules! addresses {
    ($($(#[$doc:meta])* $name:ident = $address:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub static $name: Address = Address($address.cast());
    )*};
}

/// What the exported pointers point to.
static UNWEIGHTED: c_int = 0;
static WEIGHTS_EMPTY: c_int = 0;
static PVAR_ALL_HANDLES: c_int = 0;

addresses! {
    /// `MPI_UNWEIGHTED`.
    MPI_UNWEIGHTED = &raw const UNWEIGHTED;
    /// `MPI_WEIGHTS_EMPTY`.
    MPI_WEIGHTS_EMPTY = &raw const WEIGHTS_EMPTY;
    /// The same for mpi_f08.
    MPIR_C_MPI_UNWEIGHTED = &raw const UNWEIGHTED;
    /// The same for mpi_f08.
    MPIR_C_MPI_WEIGHTS_EMPTY = &raw const WEIGHTS_EMPTY;
    /// `MPI_T_PVAR_ALL_HANDLES`.
    MPI_T_PVAR_ALL_HANDLES = &raw const PVAR_ALL_HANDLES;
    /// What Fortran's MPI_STATUS_IGNORE is to C.
    MPI_F_STATUS_IGNORE = (&raw const commons::mpipriv1_).cast::<c_int>().wrapping_add(2);
    /// What Fortran's MPI_STATUSES_IGNORE is to C.
    MPI_F_STATUSES_IGNORE = &raw const commons::mpipriv2_;
    /// What Fortran's MPI_ERRCODES_IGNORE is to C, in Intel's library.
    MPI_F_ERRCODES_IGNORE = (&raw const commons::mpipriv2_).cast::<c_int>().wrapping_add(F_STATUS_SIZE);
    /// What Fortran's MPI_ARGVS_NULL is to C, there.
    MPI_F_ARGVS_NULL = &raw const commons::mpiprivc_;
    /// What mpi_f08's MPI_STATUS_IGNORE is to C.
    MPI_F08_STATUS_IGNORE = &raw const commons::MPIR_F08_MPI_STATUS_IGNORE_OBJ;
    /// What mpi_f08's MPI_STATUSES_IGNORE is to C.
    MPI_F08_STATUSES_IGNORE = &raw const commons::MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
}

/// C's `MPI_UNWEIGHTED`.
pub fn unweighted() -> *const c_int {
    &raw const UNWEIGHTED
}

/// C's `MPI_WEIGHTS_EMPTY`.
pub fn weights_empty() -> *const c_int {
    &raw const WEIGHTS_EMPTY
}

/// Is it `MPI_T_PVAR_ALL_HANDLES`?
pub fn is_all_handles(handle: *const c_void) -> bool {
    std::ptr::addr_eq(handle, &raw const PVAR_ALL_HANDLES)
}

/// A buffer argument in the core's terms.
#[inline]
pub fn buffer(buf: *const c_void) -> *const c_void {
    if buf as usize == IN_PLACE || commons::is_in_place(buf) {
        consts::IN_PLACE as *const c_void
    } else if commons::is_bottom(buf) {
        consts::BOTTOM as *const c_void
    } else {
        buf
    }
}

/// A weights argument in the core's terms.
pub fn weights(weights: *const c_int) -> Weights {
    if weights == &raw const UNWEIGHTED || commons::is_unweighted(weights) {
        Weights::Unweighted
    } else if weights == &raw const WEIGHTS_EMPTY || commons::is_weights_empty(weights) {
        Weights::Empty
    } else {
        Weights::Array(weights)
    }
}

/// Is it one of the addresses that mean that no status is wanted (or null, where MPICH would crash)?
#[inline]
pub fn status_ignored(status: *const Status) -> bool {
    status as usize <= STATUS_IGNORE || commons::is_status_ignore(status) || commons::is_statuses_ignore(status)
}
