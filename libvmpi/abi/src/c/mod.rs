//! The C entry points, one file per chapter of the standard.

pub mod abi_info;
pub mod args;
pub mod attr;
pub mod coll;
pub mod comm;
pub mod datatype;
pub mod datatype_pack;
pub mod datatype_query;
pub mod dynamic;
pub mod env;
pub mod errhandler;
pub mod group;
pub mod info;
pub mod neighbor;
pub mod number;
pub mod op;
pub mod p2p;
pub mod request;
pub mod topo;
