//! Variables that hold the addresses of Fortran's constants, as Intel's libmpi_abi.so.1 has them (the standard's own library has none).

use crate::commons;
use std::ffi::{c_int, c_void};

/// An exported variable that holds an address.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Address(*const c_void);

// SAFETY: the address of a static object; nobody follows it.
unsafe impl Sync for Address {}

/// INTEGERs of a Fortran status.
const F_STATUS_SIZE: usize = 8;

macro_rules! addresses {
    ($($(#[$doc:meta])* $name:ident = $address:expr;)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub static $name: Address = Address($address.cast());
    )*};
}

addresses! {
    /// What Fortran's MPI_STATUS_IGNORE is to C.
    MPI_F_STATUS_IGNORE = (&raw const commons::mpipriv1_).cast::<c_int>().wrapping_add(2);
    /// What Fortran's MPI_STATUSES_IGNORE is to C.
    MPI_F_STATUSES_IGNORE = &raw const commons::mpipriv2_;
    /// What Fortran's MPI_ERRCODES_IGNORE is to C.
    MPI_F_ERRCODES_IGNORE = (&raw const commons::mpipriv2_).cast::<c_int>().wrapping_add(F_STATUS_SIZE);
    /// What Fortran's MPI_ARGVS_NULL is to C.
    MPI_F_ARGVS_NULL = &raw const commons::mpiprivc_;
    /// What mpi_f08's MPI_STATUS_IGNORE is to C.
    MPI_F08_STATUS_IGNORE = &raw const commons::MPIR_F08_MPI_STATUS_IGNORE_OBJ;
    /// What mpi_f08's MPI_STATUSES_IGNORE is to C.
    MPI_F08_STATUSES_IGNORE = &raw const commons::MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
}
