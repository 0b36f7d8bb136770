//! The daemon mends what dead ranks have left half-done on a core; only in jobs that survive deaths (`steps`).

use super::dispatch::dispatch;
use super::permit::grant_parked;
use super::run_queue;
use crate::mem::sync::{Ordering, fence, yield_cpu};
use crate::node::NodeSegment;
use crate::node::run_state::{CLAIMED, IDLE, RunState, holder_rank, holder_word};

const SEQ: Ordering = Ordering::SeqCst;

/// Looks at who acts, before the daemon goes away to come again.
const LOOKS: u32 = 64;

/// The core on which `rank`, which has died, was in the middle of something.
pub fn left_undone(node: &NodeSegment, rank: u32) -> Option<u32> {
    let descriptor = node.rank(rank);
    let core = descriptor.acting_on.load(SEQ).checked_sub(1)?;
    (descriptor.acting.load(SEQ) != 0 && core < node.header().cores).then_some(core)
}

/// The daemon mends what dead ranks have left half-done on `core`. False: living ones act there right now (or may be about to); come again.
pub fn mend(node: &NodeSegment, core: u32) -> bool {
    let mending = &node.core(core).mending;
    mending.store(1, SEQ);
    fence(SEQ); // SYNC K
    let acts = |rank: u32| {
        let descriptor = node.rank(rank);
        descriptor.acting.load(SEQ) != 0
            && descriptor.acting_on.load(SEQ) == core + 1
            && descriptor.state.load(SEQ) != RunState::Dead.word()
    };
    let quiet = (0..LOOKS).any(|_| {
        let quiet = !(0..node.header().ranks).any(acts);
        if !quiet {
            yield_cpu();
        }
        quiet
    });
    let mended = quiet && mend_quiet(node, core);
    mending.store(0, SEQ);
    mended
}

/// Nobody who lives acts on `core`.
fn mend_quiet(node: &NodeSegment, core: u32) -> bool {
    let (set, holder) = (node.ready(core), &node.core(core).holder);
    for rank in (0..node.header().ranks).filter(|rank| node.core_of(*rank) == core) {
        let state = &node.rank(rank).state;
        let _ = state.compare_exchange(RunState::Tended.word(), RunState::Ready.word(), SEQ, SEQ);
        if state.load(SEQ) == RunState::Ready.word() && holder.load(SEQ) != holder_word(rank) {
            run_queue::insert(set, rank);
        }
    }
    match holder.load(SEQ) {
        CLAIMED => dispatch(node, core),
        IDLE => {
            if !run_queue::is_empty(set) && holder.compare_exchange(IDLE, CLAIMED, SEQ, SEQ).is_ok() {
                dispatch(node, core);
            }
        }
        word => match holder_rank(word).filter(|rank| *rank < node.header().ranks) {
            Some(rank) if node.state(rank) == RunState::Dead => {
                // Nobody else has it to give.
                holder.store(CLAIMED, SEQ);
                node.core(core).running.store(0, SEQ);
                dispatch(node, core);
            }
            // Has it been granted the core? If it neither sleeps nor has been told, it may have taken the permit just now.
            Some(rank) if node.state(rank) == RunState::Ready => return grant_parked(node, rank),
            _ => {}
        },
    }
    true
}
