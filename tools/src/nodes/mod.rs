//! A job of several nodes.
//!
//! Reading order: [`node_source`], [`batch`], [`slurm`] (where the nodes come from) -> [`place`] (how many ranks where) -> [`start`] (vmpid on every node, by ssh or a command of the user's) -> [`frames`] (what goes
//! through its standard streams; as lines where it must: `text`) -> [`agent`] (the other end: the launcher's part on a node) -> [`coordinator`] (all nodes' daemons look to
//! [`crate::session`] like one) -> [`spawn_coordinator`], [`spawn_placement`] (ranks spawn others), `survivor_agreement` (what survivors of deaths agree on), [`clock_sync`], [`trace_transfer`] (traces).
//!
//! Death story: an agent sees the launcher's end by its standard input, and lets go of its vmpid, which ends the job's part there; the coordinator
//! sees an agent's end by its standard output, or by its silence, and ends the job on the other nodes, naming the node.

pub mod agent;
pub mod allocation;
pub mod batch;
pub mod clock_sync;
pub mod coordinator;
pub mod frames;
pub mod node_source;
pub mod place;
pub mod rdma;
pub mod sinks;
pub mod slurm;
pub mod spawn_coordinator;
pub mod spawn_placement;
pub mod start;
mod survivor_agreement;
mod text;
pub mod trace_transfer;

use std::time::Duration;

/// Each end of an agent's streams gives a sign of life so often.
pub const PULSE: Duration = Duration::from_secs(2);
/// The launcher gives a node up after so many pulses without a word of it.
pub const SILENT_PULSES: u32 = 6;
/// An agent gives the launcher up later: that one may be stopped (Ctrl-Z) for a moment before it says so.
pub const LAUNCHER_PULSES: u32 = 30;
