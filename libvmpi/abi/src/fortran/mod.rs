//! The Fortran bindings (mpif.h and `use mpi`), written once and generic over the face.
//!
//! Reading order: `args` (what each kind of Fortran argument becomes in C), `export` (the macros that make symbols), `through` (how a profiling tool gets to see what Fortran calls),
//! the tables (`table_*`: one row per Fortran procedure, calling the generic C function of the same name), then what
//! is not a plain row: `descriptor`, `large` and `table_f08` (MPICH's mpi_f08), `attributes`, `callbacks`, `special`, `sizeof`, `commons_*` (the named constants that Fortran
//! passes by address), `unsupported`.
//!
//! A face instantiates everything with two lines:
//!
//! ```ignore
//! vmpi_abi::f_commons_openmpi!(commons);        // mod commons: the common blocks and is_bottom(), is_in_place(), ...
//! vmpi_abi::f_tables_openmpi!(crate::OpenMpi);  // every procedure, under every mangling that the real library has
//! ```

#[macro_use]
pub mod dynamic;
#[macro_use]
pub mod export;
#[macro_use]
mod ft;
#[macro_use]
mod commons_mpich;
#[macro_use]
mod commons_openmpi;
#[macro_use]
pub mod large;
#[macro_use]
pub mod sizeof;
#[macro_use]
mod table_coll;
#[macro_use]
mod table_comm;
#[macro_use]
mod table_datatype;
#[macro_use]
mod table_env;
#[macro_use]
pub mod table_f08;
#[macro_use]
mod table_io;
#[macro_use]
mod table_mpi4;
#[macro_use]
mod table_mpi41;
#[macro_use]
mod table_p2p;
#[macro_use]
mod table_rma;
#[macro_use]
mod unsupported;

pub mod args;
pub mod attributes;
pub mod callbacks;
pub mod datarep;
pub mod descriptor;
pub mod lengths;
pub mod special;
pub mod through;

/// Every generic C function, by the name that the tables use, whatever chapter it is in.
pub mod c {
    pub use crate::c::abi_info::*;
    pub use crate::c::attr::*;
    pub use crate::c::buffer::*;
    pub use crate::c::coll::*;
    pub use crate::c::comm::*;
    pub use crate::c::datatype::*;
    pub use crate::c::datatype_pack::*;
    pub use crate::c::datatype_query::*;
    pub use crate::c::dynamic::*;
    pub use crate::c::env::*;
    pub use crate::c::errhandler::*;
    pub use crate::c::ft::*;
    pub use crate::c::group::*;
    pub use crate::c::info::*;
    pub use crate::c::io::*;
    pub use crate::c::io_data::*;
    pub use crate::c::mpi41::*;
    pub use crate::c::neighbor::*;
    pub use crate::c::op::*;
    pub use crate::c::p2p::*;
    pub use crate::c::partitioned::*;
    pub use crate::c::probe::*;
    pub use crate::c::request::*;
    pub use crate::c::request_status::*;
    pub use crate::c::rma::*;
    pub use crate::c::session::*;
    pub use crate::c::topo::*;
    pub use crate::c::win::*;
    pub use crate::c::win_sync::*;
    pub use crate::codec::*;
}

/// What the tables call that is not a C function: Fortran's own versions, which say through what they reach C's.
pub mod f {
    pub use super::attributes::{comm_create_keyval, keyval_create, type_create_keyval, win_create_keyval};
    pub use super::callbacks::*;
    pub use super::datarep::*;
    pub use super::special::*;
}

/// The same for what reaches no public C function, as in MPICH.
pub mod internal {
    pub use super::attributes::{attr_get, attr_put, comm_get_attr, comm_set_attr};
    pub use super::attributes::{type_get_attr, type_set_attr, win_get_attr, win_set_attr};
}
