//! By what programs that load an MPI library at run time tell Open MPI's from others.

use crate::OpenMpi;
use std::ffi::{c_char, c_int};

/// What MPI_Init calls in Open MPI (ompi/runtime/mpiruntime.h). NEURON's wheels take a library without it for MPICH's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompi_mpi_init(
    _argc: c_int,
    _argv: *mut *mut c_char,
    requested: c_int,
    provided: *mut c_int,
    _reinit_ok: bool,
) -> c_int {
    let none = std::ptr::null_mut();
    // SAFETY: `provided` is what MPI_Init_thread wants, too; no arguments are passed.
    unsafe { vmpi_abi::c::env::init_thread::<OpenMpi>(none, none.cast(), requested, provided) }
}
