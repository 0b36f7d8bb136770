//! MPI's meaning, with no C in sight.
//!
//! Reading order, which is that of the floors (who stands higher imports from below, and no two files from each other; `tests/tests/layers.rs` has each one):
//!
//! 1. `handle`, `consts`, `errors` (the standard ABI's numbers, which the whole core speaks), `status`, `table`, `guarded`, `face`, `plane`, `calls`, `fast_path`, `overlap::guard` (memory that must not be touched yet)
//! 2. `process` (this rank), `lock` (entry lock), `nodes`, `clock`, `errhandler` (the table), `datatype`, `group`, `info`
//! 3. `comm` (the communicator), `failure` (what is known of failures), `attr`, `op`, `hardware`, `process_sets`, `crash`
//! 4. `monitor`, `regions`, `tool`, `memory`
//! 5. `p2p` (one message)
//! 6. `request` (what waits, and what is made of several messages)
//! 7. `coll`
//! 8. `construct` (making communicators)
//! 9. `rma`, `topo`, `ulfm`, `dynamic` (spawn, accept and connect), `init` (start and end)
//! 10. `io`, `session`, `raise` (errors to their handlers)
//!
//! `unsafe` lives where user memory is touched: `guarded`, `process`, `own_file`, `foreign`, `datatype::pack`, `op::apply`, `p2p`, `coll::schedule`,
//! `memory`, `overlap::guard`, `check::sites`, `check::sums`, `request`, `io`, `rma`.

pub mod attr;
pub mod calls;
mod chance;
mod check;
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
mod foreign;
pub mod group;
pub mod guarded;
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
pub mod overlap;
pub mod own_file;
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
pub mod simulate;
pub mod status;
mod stdio;
pub mod table;
pub mod thread_level;
pub mod tool;
pub mod topo;
pub mod ulfm;
