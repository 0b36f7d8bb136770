//! vmpi's face for programs built with MPICH and its relatives (libmpich.so.12, libmpi.so.12).
//!
//! Reading order: `handles` and `predefined` (what a handle is), `status`,
//! `sentinels` (addresses with a meaning), `abi` (all of it as the trait that the generic functions want),
//! `tables` (the generic functions as exported symbols), `intel` (more of Intel MPI's), `unsupported` (what is not offered yet).
//!
//! `unsafe` lives in `handles` and `abi`, where C's pointers are followed, and in the exported symbols.

// The exported names are MPI's.
#![allow(non_snake_case, non_upper_case_globals)]

mod abi;
mod cxx;
mod handles;
mod intel;
mod predefined;
mod sentinels;
mod status;
mod tables;
mod unsupported;

vmpi_abi::f_commons_mpich!(commons);

vmpi_abi::export_clocks!();

/// The face.
pub struct Mpich;
