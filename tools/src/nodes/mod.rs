//! A job of several nodes.
//!
//! Reading order: [`engine`], [`batch`], [`slurm`] (where the nodes come from) -> [`place`] (how many ranks where) -> [`start`] (vmpid on every node, by ssh or a command of the user's) -> [`frames`] (what goes
//! through its standard streams) -> [`agent`] (the other end: the launcher's part on a node) -> [`conductor`] (all nodes' daemons look to
//! [`crate::session`] like one) -> [`nursery`], [`deal`] (ranks spawn others), `mourners` (what survivors of deaths agree on), [`exchange`], [`records`] (traces).
//!
//! Death story: an agent sees the launcher's end by its standard input, and lets go of its vmpid, which ends the job's part there; the conductor
//! sees an agent's end by its standard output, or by its silence, and ends the job on the other nodes, naming the node.

pub mod agent;
pub mod allocation;
pub mod batch;
pub mod conductor;
pub mod deal;
pub mod engine;
pub mod exchange;
pub mod frames;
mod mourners;
pub mod nursery;
pub mod place;
pub mod rdma;
pub mod records;
pub mod sinks;
pub mod slurm;
pub mod start;

use std::time::Duration;

/// Each end of an agent's streams gives a sign of life so often.
pub const PULSE: Duration = Duration::from_secs(2);
/// The launcher gives a node up after so many pulses without a word of it.
pub const SILENT_PULSES: u32 = 6;
/// An agent gives the launcher up later: that one may be stopped (Ctrl-Z) for a moment before it says so.
pub const LAUNCHER_PULSES: u32 = 30;
