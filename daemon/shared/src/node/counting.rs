//! Performance counters of ranks and cores, at each change of who runs (`meter` reads them).

use super::NodeSegment;
use super::recording;
use crate::meter::Meter;
use crate::trace::COUNTERS;
use std::sync::atomic::Ordering::Relaxed;

/// This rank leaves `core`: what it has counted since the last time was counted there. Only the rank itself can tell.
#[cold]
pub(crate) fn settle(node: &NodeSegment, meter: &Meter, rank: u32, core: u32) {
    if node.actor() != Some(rank) {
        return;
    }
    let mut inner = meter.inner();
    let values = inner.read();
    let (descriptor, of_core) = (node.rank(rank), node.core(core));
    let in_section = descriptor.m.load(Relaxed) != 0;
    for (at, value) in values.into_iter().enumerate() {
        descriptor.counters[at].store(value, Relaxed);
        of_core.counters[at].fetch_add(value.wrapping_sub(inner.last[at]), Relaxed);
        if in_section {
            of_core.metered[at].fetch_add(value.wrapping_sub(inner.metered[at]), Relaxed);
        }
    }
    (inner.last, inner.metered) = (values, values);
    if recording::is_on(node, rank) {
        recording::counted(node, core as u16, values, std::array::from_fn(|at| of_core.counters[at].load(Relaxed)));
    }
}

/// This process's counters now: process-POV.
pub fn of_rank(node: &NodeSegment) -> Option<[u64; COUNTERS]> {
    node.meter().map(|meter| meter.inner().read())
}

/// What the ranks of `core` have counted in metered sections: core-POV.
pub fn of_core(node: &NodeSegment, core: u32) -> [u64; COUNTERS] {
    std::array::from_fn(|at| node.core(core).metered[at].load(Relaxed))
}

/// A metered section begins (`true`) or ends.
pub fn section(node: &NodeSegment, core: u32, begins: bool) {
    let Some(meter) = node.meter() else { return };
    let mut inner = meter.inner();
    let values = inner.read();
    if !begins {
        for (at, value) in values.into_iter().enumerate() {
            node.core(core).metered[at].fetch_add(value.wrapping_sub(inner.metered[at]), Relaxed);
        }
    }
    inner.metered = values;
}
