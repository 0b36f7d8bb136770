//! Steps on a core's baton that a death may leave half-done, and their mending; only in jobs that survive deaths.
//!
//! Passing a core on takes several atomic steps (take a rank out of the set, name it in the holder word, grant its permit, wake it).
//! A process that dies between two of them leaves a rank that is READY in no set, or a core that is CLAIMED by nobody. In a job whose first
//! death is its end that does not matter. In the others every rank says before its first step on which core it acts, and the daemon mends
//! that core after the death: at a moment when no living rank acts there, so that whatever is half-done is the dead one's.
//!
//! SYNC K: a rank says that it acts and then looks whether the core is being mended; the daemon says that it mends and then looks who acts.
//! Death story: a rank waits for the mending, which the daemon ends within a bounded number of looks; the daemon never waits, it comes again.

use super::baton::dispatch;
use super::permit::grant_parked;
use super::run_queue;
use super::run_state::{CLAIMED, IDLE, RunState, holder_rank, holder_word};
use crate::mem::sync::{Ordering, fence, yield_cpu};
use crate::node::{NodeSegment, RankDescriptor};

const SEQ: Ordering = Ordering::SeqCst;

/// Looks at who acts, before the daemon goes away to come again.
const LOOKS: u32 = 64;

/// While it lives, this process acts on a core.
pub(super) struct Step<'a>(Option<&'a RankDescriptor>);

/// Before the first of several steps on the baton of `core`.
#[inline]
pub(super) fn begin(node: &NodeSegment, core: u32) -> Step<'_> {
    if node.header().recovery == 0 {
        return Step(None);
    }
    // Nobody mends behind the daemon's back: it is one thread.
    node.actor().map_or(Step(None), |me| begin_marked(node, me, core))
}

#[cold]
fn begin_marked(node: &NodeSegment, me: u32, core: u32) -> Step<'_> {
    let rank = node.rank(me);
    loop {
        rank.acting_on.store(core + 1, SEQ);
        // A step within a step of the same core is covered by the outer one.
        if rank.acting.fetch_add(1, SEQ) > 0 || node.core(core).mending.load(SEQ) == 0 {
            return Step(Some(rank)); // SYNC K
        }
        rank.acting.fetch_sub(1, SEQ);
        while node.core(core).mending.load(SEQ) != 0 {
            yield_cpu();
        }
    }
}

impl Drop for Step<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(rank) = self.0
            // In the model a killed thread unwinds; a killed process would not come here.
            && !(cfg!(feature = "model") && std::thread::panicking())
        {
            rank.acting.fetch_sub(1, SEQ);
        }
    }
}

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
