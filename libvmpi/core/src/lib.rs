//! MPI's meaning, with no C in sight.
//!
//! Reading order: `handle`, `consts`, `errors` (the standard ABI's numbers, which the whole core speaks), `process`
//! (this rank: start, end, entry lock), `session`, `comm` and `group`, `datatype`, `p2p`, `request`, `coll`, `rma`, then the rest
//! (`dynamic`: spawn, accept and connect).
//!
//! `unsafe` lives where user memory is touched: `giant`, `process`, `datatype::pack`, `op::apply`, `p2p`, `coll::schedule`,
//! `io`, `rma::transfer`, `rma::accumulate`, `rma::remote`.

pub mod attr;
pub mod calls;
pub mod clock;
pub mod coll;
pub mod comm;
pub mod construct;
pub mod consts;
mod crash;
pub mod datatype;
pub mod dynamic;
pub mod errhandler;
pub mod errors;
pub mod face;
pub mod failure;
mod fast_path;
pub mod giant;
pub mod group;
pub mod handle;
pub mod hardware;
pub mod info;
pub mod init;
pub mod io;
pub mod lock;
mod memory;
mod monitor;
pub mod nodes;
pub mod op;
pub mod p2p;
mod passing;
pub mod plane;
pub mod process;
mod process_sets;
pub mod raise;
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
pub mod ulfm;
