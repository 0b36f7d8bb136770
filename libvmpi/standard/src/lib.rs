//! vmpi's face for programs built with the MPI-5 standard ABI (libmpi_abi.so.1).
//!
//! The core speaks this ABI's numbers, so nothing is translated here. Reading order: `handles`, `status`, `abi` (with the
//! addresses that have a meaning), `tables` (the generic functions as exported symbols).
//!
//! The standard says nothing of Fortran symbols. Ours are MPICH's (its manglings, common blocks and mpi_f08 procedures); vmpi's
//! own mpif.h and modules name them.

// The exported names are MPI's.
#![allow(non_snake_case, non_upper_case_globals)]

mod abi;
mod handles;
mod sentinels;
mod status;
mod tables;
mod unsupported;

vmpi_abi::f_commons_mpich!(commons, 8);

vmpi_abi::export_clocks!();

/// The face.
pub struct Standard;
