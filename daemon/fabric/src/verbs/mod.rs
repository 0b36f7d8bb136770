//! RDMA devices: frames by reliable connections, on top of links that have proved to each other that they belong to the job.
//!
//! Reading order: `abi` (the table of functions of the plugin, the only thing that knows libibverbs) -> `plugin` (loading it; why not) -> `nic` (the
//! same, safe, so that tests can have one without a device) -> `hello` (what two ends tell each other over TCP first) -> `queue_pair` (one
//! connection: slots of registered memory, and credits) -> `fabric` (all of them, and the TCP links below).
//!
//! Small frames are gathered and SENT into receives that the other end has posted; a large one is WRITTEN into a slot of the other end's
//! registered memory, and announced by the same operation. Both take credits, so no receive is ever missing. The TCP link stays: signs of
//! life go there, and its end tells that the other process has died.

pub mod abi;
mod fabric;
mod hello;
pub mod nic;
pub mod plugin;
mod queue_pair;

pub use fabric::{Demand, Verbs};
pub use nic::{Nic, NicError};
pub use plugin::{Card, Plugin, PluginError};
