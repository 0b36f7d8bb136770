//! In a job of several nodes: what ranks that wait or leave their cores do for the carrier, and it for them.

use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use crate::node::{NodeSegment, Post};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Between two looks. True if that took long: in a job of several nodes the carrier, which brings what is waited for, may need this CPU.
#[inline]
pub(super) fn rest(node: &NodeSegment) -> bool {
    let carried = node.header().spread != 0 && node.post().asleep.load(RELAXED) == Post::AWAKE;
    if carried {
        yield_cpu();
    } else {
        spin_loop();
    }
    carried
}

/// A core of a job of several nodes waits from now on: its carrier may look on, if it sleeps only because none did.
pub(super) fn rouse_carrier(node: &NodeSegment) {
    ring_if(node, |sleep| matches!(sleep, Post::DOZING | Post::CALLED));
}

/// A rank leaves a core: its carrier, should it have been called, need not wait any longer for more.
#[inline]
pub(super) fn hurry_carrier(node: &NodeSegment) {
    if node.header().spread != 0 {
        ring_if(node, |sleep| sleep == Post::CALLED);
    }
}

#[inline(never)]
fn ring_if(node: &NodeSegment, so: impl Fn(u32) -> bool) {
    let asleep = &node.post().asleep;
    let sleep = asleep.load(RELAXED);
    if so(sleep)
        && asleep.compare_exchange(sleep, Post::AWAKE, SEQ, SEQ).is_ok()
        && let Some(bell) = node.carrier_bell()
    {
        bell.ring();
    }
}
