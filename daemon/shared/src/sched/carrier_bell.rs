//! In a job of several nodes: what ranks that wait or leave their cores do for the carrier, and it for them.

use super::run_queue;
use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use crate::node::{CarrierWords, NodeSegment};
use std::time::Duration;

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Between two looks. True if that took long: in a job of several nodes the carrier, which brings what is waited for, may need this CPU.
#[inline]
pub(super) fn rest(node: &NodeSegment) -> bool {
    let carried = node.header().spread != 0 && node.post().asleep.load(RELAXED) == CarrierWords::AWAKE;
    if carried {
        yield_cpu();
    } else {
        spin_loop();
    }
    carried
}

/// A core of a job of several nodes waits from now on: its carrier may look on, if it sleeps only because none did.
pub(super) fn rouse_carrier(node: &NodeSegment) {
    ring_if(node, |sleep| matches!(sleep, CarrierWords::DOZING | CarrierWords::CALLED));
}

/// A rank leaves a core: its carrier, should it have been called, need not wait any longer for more.
#[inline]
pub(super) fn hurry_carrier(node: &NodeSegment) {
    if node.header().spread != 0 {
        ring_if(node, |sleep| sleep == CarrierWords::CALLED);
    }
}

#[inline(never)]
fn ring_if(node: &NodeSegment, so: impl Fn(u32) -> bool) {
    let asleep = &node.post().asleep;
    let sleep = asleep.load(RELAXED);
    if so(sleep)
        && asleep.compare_exchange(sleep, CarrierWords::AWAKE, SEQ, SEQ).is_ok()
        && let Some(bell) = node.carrier_bell()
    {
        bell.ring();
    }
}

/// There is something to take to `to`: let the carrier know.
#[cold]
pub(crate) fn call(node: &NodeSegment, to: u32) {
    run_queue::insert(node.outbox(), to);
    let asleep = &node.post().asleep;
    // SYNC N
    if asleep.load(Ordering::SeqCst) != CarrierWords::AWAKE
        && asleep.swap(CarrierWords::AWAKE, Ordering::SeqCst) != CarrierWords::AWAKE
        && let Some(bell) = node.carrier_bell()
    {
        bell.ring();
    }
}

/// As `call`, for something after which more may follow at once.
#[cold]
pub(crate) fn call_soon(node: &NodeSegment, to: u32) {
    run_queue::insert(node.outbox(), to);
    let asleep = &node.post().asleep;
    // SYNC N
    let sleep = asleep.load(Ordering::SeqCst);
    if matches!(sleep, CarrierWords::ASLEEP | CarrierWords::DOZING)
        && asleep.compare_exchange(sleep, CarrierWords::CALLED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        && let Some(bell) = node.carrier_bell()
    {
        node.post().chiming.store(1, Ordering::Relaxed);
        bell.ring_in(A_MOMENT);
    }
}

/// Longer than it takes to start one more message, much shorter than a large one takes.
const A_MOMENT: Duration = Duration::from_micros(40);

/// How much the carrier of a node has to do with other nodes, when it sleeps.
///
/// What is on its way between the nodes of a job follows from all of them: if none of them has moved between two looks, and all frames that have been
/// sent have been acted on, there was a moment between these looks in which nothing was.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Stand {
    /// Something is to be done that neither a frame nor a bell will tell of.
    pub holds: bool,
    pub sent: u64,
    pub received: u64,
}

/// How the carrier of this node stands, if it sleeps and nothing is to be taken to other nodes. For who looks from outside: what the ranks do must have been looked at
/// before.
pub fn stand(node: &NodeSegment) -> Option<Stand> {
    let post = node.post();
    let sleeps = matches!(post.asleep.load(Ordering::SeqCst), CarrierWords::ASLEEP | CarrierWords::DOZING);
    if !sleeps || !run_queue::is_empty(node.outbox()) {
        return None;
    }
    let [sent, received] = [&post.sent, &post.received].map(|count| count.load(Ordering::SeqCst));
    Some(Stand { holds: post.holds.load(Ordering::SeqCst) != 0, sent, received })
}
