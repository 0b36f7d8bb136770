//! vmpi's face for programs built with Open MPI 4 and 5 (libmpi.so.40).
//!
//! Reading order: `handles` and `objects` (what a handle is), `status`,
//! `sentinels` (addresses with a meaning), `abi` (all of it as the trait that the generic functions want),
//! `tables` (the generic functions as exported symbols), `unsupported` (what is not offered yet); `cxx` and `ompi_info` (what parts of
//! Open MPI itself call), `run_time` (how Open MPI is told from others at run time).
//!
//! `unsafe` lives in `handles` and `abi`, where C's pointers are followed, and in the exported symbols.

// The exported names are MPI's.
#![allow(non_snake_case, non_upper_case_globals)]

mod abi;
mod cxx;
mod handles;
mod objects;
mod ompi_info;
mod run_time;
mod sentinels;
mod status;
mod tables;
mod unsupported;

vmpi_abi::f_commons_openmpi!(commons);

vmpi_abi::export_clocks!();

/// The face.
pub struct OpenMpi;
