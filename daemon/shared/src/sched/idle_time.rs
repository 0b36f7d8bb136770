//! How long a core has been idle, and for how long it is worth watching.

use super::carrier_bell::rest;
use crate::mem::sync::{Ordering, yield_cpu};
use crate::node::run_state::{IDLE, SPINNING};
use crate::node::{CoreDescriptor, NodeSegment};

const RELAXED: Ordering = Ordering::Relaxed;

/// Values of `CoreDescriptor::idles`: the last idle time that nobody watched to its end was long, or not known; it was short enough to be
/// watched; it was too long although those before were short.
const LONG: u32 = 0;

const SHORT: u32 = 1;
const MISJUDGED: u32 = 2;

/// How long to watch a core: for its patience; if its idle times lately were short, for `long_ticks`. A wake-up costs 10 to 30 times as much
/// as a hand-over, and the longer a CPU has slept the more. So in a ring of 32 ranks on two cores, each of which is idle for 80 us of each
/// round, a hop took 6.4 us when cores were watched for 60 us, and takes 4.5.
pub(super) struct Watch<'a> {
    node: &'a NodeSegment,
    core: &'a CoreDescriptor,
    pub(super) start: u64,
    patience: u64,
    long: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn new(node: &'a NodeSegment, core: &'a CoreDescriptor, patience: u64) -> Self {
        Watch { node, core, start: node.now(), patience, long: false }
    }

    /// Between two looks. True if that took long.
    #[inline]
    pub(super) fn rest(&self) -> bool {
        if self.long {
            // Threads and programs that want this CPU, too, do not wait for a time slice.
            yield_cpu();
            return true;
        }
        rest(self.node)
    }

    pub(super) fn is_over(&mut self) -> bool {
        if self.node.now().saturating_sub(self.start) < self.patience {
            return false;
        }
        let idles = &self.core.idles;
        if self.long {
            idles.store(MISJUDGED, RELAXED);
        } else if self.patience > 0 && idles.load(RELAXED) == SHORT {
            (self.long, self.patience) = (true, self.node.header().long_ticks.max(self.patience));
            return false;
        }
        true
    }
}

/// A core that nobody watches gets work.
#[cold]
pub(super) fn note_work(node: &NodeSegment, core: u32) {
    let descriptor = node.core(core);
    let idle = node.now().saturating_sub(descriptor.released_at.load(RELAXED));
    let short = idle < node.header().long_ticks && descriptor.idles.load(RELAXED) != MISJUDGED;
    descriptor.idles.store(if short { SHORT } else { LONG }, RELAXED);
}

/// Does nobody run on the core of `cpu`? Whoever takes that CPU then takes it from no rank that has work; false also for one that is
/// another job's. True for a CPU that is none of the job's.
pub fn is_idle(node: &NodeSegment, cpu: u32) -> bool {
    let mut cores = (0..node.header().cores).map(|core| node.core(core)).filter(|core| core.cpu.load(RELAXED) == cpu);
    cores.all(waits)
}

/// Does somebody run on every core, so that a rank which became READY now would have to wait?
pub fn all_run(node: &NodeSegment) -> bool {
    !(0..node.header().cores).map(|core| node.core(core)).any(waits)
}

/// Does a core have nobody who works, though it may have one who watches?
fn waits(core: &CoreDescriptor) -> bool {
    matches!(core.holder.load(RELAXED), IDLE | SPINNING) || core.watched.load(RELAXED) != 0
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::NodeConfig;

    #[test]
    fn short_idle_times_are_watched_to_their_end() {
        let node = NodeSegment::private(&NodeConfig::on_one_core(0, 2));
        let (core, long) = (node.core(0), node.header().long_ticks);
        let idle_for = |ticks: u64| {
            core.released_at.store(node.now() - ticks, RELAXED);
            note_work(&node, 0);
            core.idles.load(RELAXED)
        };
        let watched_for = |patience: u64| {
            let mut watch = Watch::new(&node, core, patience);
            while !watch.is_over() {
                watch.rest();
            }
            node.now() - watch.start
        };
        // Another program may take the CPU meanwhile.
        let quickest = |patience: u64| (0..20).map(|_| watched_for(patience)).min();
        assert_eq!(idle_for(2 * long), LONG);
        assert!(quickest(1000) < Some(long));
        assert_eq!(idle_for(long / 2), SHORT);
        assert!(quickest(0) < Some(long), "who has watched already does not do so again");
        assert!(watched_for(1000) >= long);
        // That was in vain: the time ends soon after, and would not have been short.
        assert_eq!(idle_for(long / 2), LONG);
        assert!(quickest(1000) < Some(long));
        assert_eq!(idle_for(long / 2), SHORT);
    }
}
