//! Counting what goes from rank to rank (`vmpi_shared::monitor`), while somebody wants to know.

use crate::comm::{Communicator, USER_TAG_BIT};
use crate::p2p::Plane;
use crate::process::endpoint;
use std::sync::OnceLock;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::monitor::{Flow, Row};
use vmpi_shared::node::RankDescriptor;

/// A message is sent to job rank `to`. `own`: this rank's descriptor, whose counters of messages are on the same cache line.
#[inline]
pub(crate) fn sent(own: &RankDescriptor, plane: Plane, tag: i32, to: u32, bytes: u64) {
    if own.monitor.load(Relaxed) != 0 {
        // Tags with this bit are those of vmpi's own messages among user messages; partitioned ones have the sign bit.
        let external = plane == Plane::User && (tag < 0 || tag & USER_TAG_BIT == 0);
        count(if external { Flow::Message } else { Flow::Collective }, to, bytes);
    }
}

/// Does somebody want to know?
#[inline]
pub(crate) fn is_on() -> bool {
    let endpoint = endpoint();
    endpoint.node.rank(endpoint.me).monitor.load(Relaxed) != 0
}

/// This rank's row, found once: looking for it takes longer than counting.
static OWN: OnceLock<Row<'static>> = OnceLock::new();

#[inline(never)]
fn count(flow: Flow, peer: u32, bytes: u64) {
    let own = OWN.get_or_init(|| {
        let endpoint = endpoint();
        endpoint.job.monitor(endpoint.me)
    });
    own.count(flow, peer, bytes);
}

/// A one-sided transfer with job rank `target`.
#[inline]
pub(crate) fn one_sided(flow: Flow, comm: &Communicator, target: u32, bytes: u64) {
    if is_on() {
        count(flow, comm.local.world_rank(target), bytes);
    }
}

/// This rank has done the work of an operation in a collective cell: it has taken `bytes` from each other member (`takes`) and hands as
/// much to each of them, or to `root` only.
#[inline]
pub(crate) fn in_cell(comm: &Communicator, takes: bool, root: Option<u32>, bytes: usize) {
    if is_on() {
        count_cell(comm, takes, root, bytes as u64);
    }
}

#[cold]
fn count_cell(comm: &Communicator, takes: bool, root: Option<u32>, bytes: u64) {
    for member in (0..comm.size()).filter(|member| *member != comm.rank) {
        let peer = comm.local.world_rank(member);
        if takes {
            count(Flow::Gathered, peer, bytes);
        }
        if root.is_none_or(|root| root == member) {
            count(Flow::Collective, peer, bytes);
        }
    }
}
