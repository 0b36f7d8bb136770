//! Which node and core a rank lives on, and how a process becomes a rank there.

#[cfg(not(feature = "model"))]
use super::RunState;
use super::{NodeSegment, RankDescriptor};
use crate::mem::sync::Ordering;
#[cfg(not(feature = "model"))]
use crate::{mem::sync::AtomicU32, monitor::FOR_JOB};
#[cfg(not(feature = "model"))]
use std::mem::size_of;

impl NodeSegment {
    /// A process is to be started as `rank` on another node, `number`; that number never lives anywhere else.
    #[cfg(not(feature = "model"))]
    pub fn place_far(&self, rank: u32, number: u32) {
        let descriptor = self.rank(rank);
        descriptor.node.store(number, Ordering::SeqCst);
        descriptor.state.store(RunState::Remote.word(), Ordering::SeqCst);
    }

    /// The node on which a rank lives that was spawned in a job of several: as its descriptor says.
    pub fn node_of(&self, rank: u32) -> u32 {
        if rank < self.header.ranks { self.rank(rank).node.load(Ordering::Relaxed) } else { 0 }
    }

    /// A descriptor as new for another process, on the core where it is placed; its life is begun above (`sched::outside`).
    #[cfg(not(feature = "model"))]
    pub(crate) fn renew_descriptor(&self, rank: u32, core: u32) {
        let descriptor = self.rank(rank);
        if descriptor.moves.load(Ordering::SeqCst) != 0 {
            self.core(self.core_of(rank)).ranks.fetch_sub(1, Ordering::Relaxed);
            self.core(core).ranks.fetch_add(1, Ordering::Relaxed);
        }
        let monitor = descriptor.monitor.load(Ordering::Relaxed) & (FOR_JOB | crate::trace::FOR_TRACE);
        let number = descriptor.node.load(Ordering::Relaxed);
        // SAFETY: all fields are atomics of these sizes, no process is behind the rank, and nobody else writes them but by mistake.
        unsafe {
            let words = std::ptr::from_ref(descriptor).cast::<AtomicU32>();
            for at in 0..size_of::<RankDescriptor>() / size_of::<AtomicU32>() {
                (*words.add(at)).store(0, Ordering::SeqCst);
            }
        }
        self.clear_pid(rank);
        descriptor.monitor.store(monitor, Ordering::Relaxed);
        descriptor.node.store(number, Ordering::Relaxed);
        descriptor.home.store(core, Ordering::SeqCst);
        descriptor.core.store(core, Ordering::SeqCst);
    }

    /// The core of a rank. Under `--balance` another one later, unless the rank is this process's and runs.
    #[inline]
    pub fn core_of(&self, rank: u32) -> u32 {
        self.core_in(self.rank(rank))
    }

    /// The core in a rank's descriptor: `core_of` for those who have that at hand.
    #[inline(always)]
    pub(crate) fn core_in(&self, rank: &RankDescriptor) -> u32 {
        rank.core.load(Ordering::Relaxed).min(self.header.cores - 1)
    }

    /// The core on which a rank was placed: the same for all who ask, whatever moves.
    pub fn home_of(&self, rank: u32) -> u32 {
        self.rank(rank).home.load(Ordering::Relaxed).min(self.header.cores - 1)
    }
}
