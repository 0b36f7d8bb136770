//! The nodes of the job: which rank runs where.

use crate::errors::{Class, Error, Result};
use crate::process::node;
use crate::simulate;
use std::sync::OnceLock;
use vmpi_shared::control::NodeMap;

/// The nodes of a job of several; empty lists otherwise.
static NODES: OnceLock<NodeMap> = OnceLock::new();

/// What the daemon has said.
pub(crate) fn set(nodes: NodeMap) {
    let _ = NODES.set(nodes);
}

/// Does the job run on several nodes?
#[inline]
pub fn is_spread() -> bool {
    node().header().spread != 0
}

/// What tells this job from all others.
pub fn job_identity() -> (u64, u32) {
    let header = node().header();
    // On several nodes each daemon has a job of its own.
    NODES.get().map_or((header.started_at, header.job), |nodes| (nodes.identity, 0))
}

/// The number of the node on which rank `rank` of the job runs.
pub fn node_of(rank: u32) -> u32 {
    let Some(nodes) = NODES.get() else { return 0 };
    // Ranks that have come since are told by their descriptors.
    nodes.of_rank.get(rank as usize).copied().unwrap_or_else(|| node().node_of(rank))
}

/// The names of the nodes of a job of several.
pub fn node_names() -> &'static [String] {
    NODES.get().map_or(&[], |nodes| &nodes.names)
}

/// The name of that node; empty in a job of one node.
pub fn node_name_of(rank: u32) -> &'static str {
    let name = |nodes: &'static NodeMap| nodes.names.get(node_of(rank) as usize);
    NODES.get().and_then(name).map_or("", String::as_str)
}

/// Do the job's ranks `a` and `b` share a node?
pub fn same_node(a: u32, b: u32) -> bool {
    node_of(a) == node_of(b)
}

/// The same for the program, which in virtual time sees hosts of the simulated machine.
pub fn share_node(a: u32, b: u32) -> bool {
    same_node(a, b) && simulate::host_of(a) == simulate::host_of(b)
}

/// Nodes of the job.
pub fn count() -> usize {
    NODES.get().map_or(1, |nodes| nodes.names.len())
}

/// Refuse what works on one node only, if the job runs on several; `what` is the call.
///
/// # Errors
/// `Class::UnsupportedOperation`, saying so.
pub fn one_node_only(what: &str, why: &str) -> Result<()> {
    if !is_spread() {
        return Ok(());
    }
    let nodes = count();
    Err(Error::new(
        Class::UnsupportedOperation,
        format!("{what} is not offered in a job of several nodes (this one has {nodes}): {why}"),
    ))
}
