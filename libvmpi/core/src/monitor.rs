//! Counting what goes from rank to rank (`vmpi_shared::monitor`), while somebody wants to know.

use crate::comm::Communicator;
use crate::plane::{Plane, USER_TAG_BIT};
use crate::process::endpoint;
use std::sync::OnceLock;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::monitor::{Flow, Row};
use vmpi_shared::node::RankDescriptor;
use vmpi_shared::node::recording::{self, Collective};
use vmpi_shared::trace::{FOR_CHECK, FOR_TRACE, Within};

/// A message is sent to job rank `to`. `own`: this rank's descriptor, whose counters of messages are on the same cache line.
/// What its receiver is to know it by (`Envelope::trace`).
#[inline]
pub(crate) fn sent(own: &RankDescriptor, comm: &Communicator, plane: Plane, tag: i32, to: u32, bytes: u64) -> u16 {
    match own.monitor.load(Relaxed) {
        0 => 0,
        wanted => note_sent(wanted, comm, plane, tag, to, bytes),
    }
}

#[cold]
fn note_sent(wanted: u32, comm: &Communicator, plane: Plane, tag: i32, to: u32, bytes: u64) -> u16 {
    if wanted & !(FOR_TRACE | FOR_CHECK) != 0 {
        // Tags with this bit are those of vmpi's own messages among user messages; partitioned ones have the sign bit.
        let external = plane == Plane::User && (tag < 0 || tag & USER_TAG_BIT == 0);
        count(if external { Flow::Message } else { Flow::Collective }, to, bytes);
    }
    if wanted & FOR_TRACE == 0 {
        return 0;
    }
    let peer = comm.peers().rank_of(to).unwrap_or(0);
    recording::sent(&endpoint().node, to, comm.context + plane as u32, tag, bytes, Within { peer, ..within(comm) })
}

/// The simulation sends a collective's messages of so many bytes to these ranks of the job in this rank's place.
#[cold]
pub(crate) fn played(to: impl Iterator<Item = u32>, bytes: u64) {
    let own = endpoint().node.rank(endpoint().me);
    let is_counted = own.monitor.load(Relaxed) & !(FOR_TRACE | FOR_CHECK) != 0;
    let mut messages = 0;
    for to in to {
        messages += 1;
        if is_counted {
            count(Flow::Collective, to, bytes);
        }
    }
    own.sent_messages.fetch_add(messages, Relaxed);
    own.sent_bytes.fetch_add(messages * bytes, Relaxed);
}

/// This rank's place in a communicator; of one between two groups nothing.
fn within(comm: &Communicator) -> Within {
    let size = if comm.is_inter() { 0 } else { comm.size() };
    Within { rank: comm.rank, size, peer: 0 }
}

/// When a collective call of the program begins, if this rank records or is checked.
#[inline]
pub(crate) fn collective_begins() -> Option<u64> {
    let endpoint = endpoint();
    let wanted = endpoint.node.rank(endpoint.me).monitor.load(Relaxed);
    (wanted & (FOR_TRACE | FOR_CHECK) != 0).then(|| recording::begins(&endpoint.node))
}

/// Does this rank record?
pub(crate) fn records() -> bool {
    let endpoint = endpoint();
    recording::is_on(&endpoint.node, endpoint.me)
}

/// From now on this rank's use of MPI is checked.
pub(crate) fn check() {
    let endpoint = endpoint();
    endpoint.node.rank(endpoint.me).monitor.fetch_or(FOR_CHECK, Relaxed);
}

/// It is over; it had so much to send and to receive.
#[cold]
pub(crate) fn collective_ended(from: u64, comm: &Communicator, root: Option<u32>, (sent, received): (u64, u64)) {
    let root = root.map_or(-1, |root| root as i32);
    let about = Collective { context: comm.context, root, sent, received, within: within(comm) };
    recording::collective(&endpoint().node, from, about);
}

/// A message has been received from job rank `from`, which sent it as `id`.
#[inline]
pub(crate) fn received(own: &RankDescriptor, id: u16, from: u32, context: u32, tag: i32, bytes: u64) {
    if own.monitor.load(Relaxed) & FOR_TRACE != 0 {
        recording::received(&endpoint().node, id, from, context, tag, bytes);
    }
}

/// Does somebody want to know?
#[inline]
pub(crate) fn is_on() -> bool {
    let endpoint = endpoint();
    endpoint.node.rank(endpoint.me).monitor.load(Relaxed) & !(FOR_TRACE | FOR_CHECK) != 0
}

/// This rank's row, found once: looking for it takes longer than counting.
static OWN: OnceLock<Row<'static>> = OnceLock::new();

#[inline(never)]
pub(crate) fn count(flow: Flow, peer: u32, bytes: u64) {
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
