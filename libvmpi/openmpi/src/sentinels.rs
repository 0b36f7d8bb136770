//! Addresses that stand for something else: MPI_BOTTOM, MPI_IN_PLACE and the like, in C and in Fortran.

use crate::commons;
use crate::objects::Address;
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::Weights;
use vmpi_core::consts;

pub const IN_PLACE: usize = 1;
pub const UNWEIGHTED: usize = 2;
pub const WEIGHTS_EMPTY: usize = 3;

/// `MPI_F_STATUS_IGNORE`: what Fortran's MPI_STATUS_IGNORE is to C.
#[unsafe(no_mangle)]
pub static MPI_F_STATUS_IGNORE: Address = Address((&raw const commons::mpi_fortran_status_ignore_).cast());
/// `MPI_F_STATUSES_IGNORE`: the same for arrays of statuses.
#[unsafe(no_mangle)]
pub static MPI_F_STATUSES_IGNORE: Address = Address((&raw const commons::mpi_fortran_statuses_ignore_).cast());
/// `MPI_F08_STATUS_IGNORE` (Open MPI 5): the same for mpi_f08.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: Address = Address((&raw const commons::mpi_fortran_status_ignore_).cast());
/// `MPI_F08_STATUSES_IGNORE` (Open MPI 5).
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: Address = Address((&raw const commons::mpi_fortran_statuses_ignore_).cast());

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
    if weights as usize == UNWEIGHTED || commons::is_unweighted(weights) {
        Weights::Unweighted
    } else if weights as usize == WEIGHTS_EMPTY || commons::is_weights_empty(weights) {
        Weights::Empty
    } else {
        Weights::Array(weights)
    }
}

/// Is it one of the addresses that mean that no status is wanted?
#[inline]
pub fn status_ignored<T>(status: *const T) -> bool {
    status.is_null() || commons::is_status_ignore(status) || commons::is_statuses_ignore(status)
}
