//! What the clock updates cost, for `cargo xtask bench clocks`: the functions of `clocks` themselves, one call at a time.

use super::clocks::{resume, settle};
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::node::run_state::RunState;

const RELAXED: Ordering = Ordering::Relaxed;

/// Ticks of one suspension and the resumption after it; of a pair of looks at the clock with nothing between.
#[derive(Copy, Clone, Debug)]
pub struct Update {
    pub suspend_ticks: u64,
    pub resume_ticks: u64,
    pub nothing_ticks: u64,
}

/// Suspend and resume rank 0 `times` times, nothing else of a hand-off. `metered`: inside MPIX_Start_processor_timer.
/// `between` runs before each timed call, to do to the caches what other work would do.
///
/// Each call reads the clock itself, once; that is part of what is timed, as it is part of every hand-off.
pub fn updates(node: &NodeSegment, times: usize, metered: bool, mut between: impl FnMut()) -> Vec<Update> {
    let rank = node.rank(0);
    rank.state.store(RunState::Ready.word(), Ordering::SeqCst);
    rank.m.store(u64::from(metered), RELAXED);
    resume(node, 0);
    let mut found = Vec::with_capacity(times);
    for _ in 0..times {
        between();
        let start = node.now();
        settle(node, 0);
        let suspend_ticks = node.now().saturating_sub(start);

        // What make_ready and the hand-over do, and is no clock's update.
        rank.state.store(RunState::Ready.word(), Ordering::SeqCst);
        rank.ready_at.store(node.now(), RELAXED);
        node.core(node.core_of(0)).granted_at.store(node.now(), RELAXED);

        between();
        let start = node.now();
        resume(node, 0);
        let resume_ticks = node.now().saturating_sub(start);

        let start = node.now();
        let nothing_ticks = node.now().saturating_sub(start);
        found.push(Update { suspend_ticks, resume_ticks, nothing_ticks });
    }
    rank.m.store(0, RELAXED);
    settle(node, 0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeConfig;

    #[test]
    fn the_updates_are_those_of_the_scheduler() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).unwrap();
        let found = updates(&node, 1000, true, || {});
        assert_eq!(found.len(), 1000);
        let (core, rank) = (node.core(0), node.rank(0));
        assert_eq!(core.handoffs.load(RELAXED), 1001);
        assert_eq!(rank.switches.load(RELAXED), 1001);
        assert_eq!((core.violations.load(RELAXED), core.running.load(RELAXED)), (0, 0));
        assert!(core.ptime.load(RELAXED) > 0 && rank.r.load(RELAXED) > 0);
        assert!(found.iter().any(|update| update.suspend_ticks > 0 && update.resume_ticks > 0));
    }
}
