//! Steps on a core's baton that a death may leave half-done, and their mending; only in jobs that survive deaths.
//!
//! Passing a core on takes several atomic steps (take a rank out of the set, name it in the holder word, grant its permit, wake it).
//! A process that dies between two of them leaves a rank that is READY in no set, or a core that is CLAIMED by nobody. In a job whose first
//! death is its end that does not matter. In the others every rank says before its first step on which core it acts, and the daemon mends
//! that core after the death: at a moment when no living rank acts there, so that whatever is half-done is the dead one's.
//!
//! SYNC K: a rank says that it acts and then looks whether the core is being mended; the daemon says that it mends and then looks who acts.
//! Death story: a rank waits for the mending, which the daemon ends within a bounded number of looks; the daemon never waits, it comes again.

use crate::mem::sync::{Ordering, yield_cpu};
use crate::node::{NodeSegment, RankDescriptor};

const SEQ: Ordering = Ordering::SeqCst;

/// While it lives, this process acts on a core.
pub(super) struct Intent<'a>(Option<&'a RankDescriptor>);

/// Before the first of several steps on the baton of `core`.
#[inline]
pub(super) fn begin(node: &NodeSegment, core: u32) -> Intent<'_> {
    if node.header().recovery == 0 {
        return Intent(None);
    }
    // Nobody mends behind the daemon's back: it is one thread.
    node.actor().map_or(Intent(None), |me| begin_marked(node, me, core))
}

#[cold]
fn begin_marked(node: &NodeSegment, me: u32, core: u32) -> Intent<'_> {
    let rank = node.rank(me);
    loop {
        rank.acting_on.store(core + 1, SEQ);
        // A step within a step of the same core is covered by the outer one.
        if rank.acting.fetch_add(1, SEQ) > 0 || node.core(core).mending.load(SEQ) == 0 {
            return Intent(Some(rank)); // SYNC K
        }
        rank.acting.fetch_sub(1, SEQ);
        while node.core(core).mending.load(SEQ) != 0 {
            yield_cpu();
        }
    }
}

impl Drop for Intent<'_> {
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
