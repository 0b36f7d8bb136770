//! MPI's meaning, with no C in sight.
//!
//! Reading order: `handle`, `consts`, `errors` (the standard ABI's numbers, which the whole core speaks), `process`
//! (this rank: start, end, entry lock), `session`, `comm` and `group`, `datatype`, `p2p`, `request`, `coll`, `rma`, then the rest
//! (`dynamic`: spawn, accept and connect).
//!
//! `unsafe` lives where user memory is touched: `giant`, `process`, `foreign`, `datatype::pack`, `op::apply`, `p2p`, `coll::schedule`,
//! `io`, `rma::transfer`, `rma::accumulate`, `rma::remote`.

pub mod attr;
pub mod coll;
pub mod comm;
pub mod consts;
mod crash;
pub mod datatype;
pub mod dynamic;
pub mod errhandler;
pub mod errors;
pub mod face;
mod foreign;
pub mod ft;
pub mod giant;
pub mod group;
pub mod handle;
pub mod hardware;
pub mod info;
pub mod io;
mod lock;
mod monitor;
pub mod op;
pub mod p2p;
mod passing;
pub mod process;
pub mod regions;
pub mod request;
pub mod rma;
pub mod session;
pub mod status;
mod stdio;
pub mod table;
pub mod thread_level;
pub mod tool;
pub mod topo;
