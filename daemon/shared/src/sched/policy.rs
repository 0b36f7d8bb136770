//! Which READY rank runs next.

use super::run_queue;
use crate::control;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;

/// A scheduling policy: a choice among the READY ranks of one core.
pub trait Policy: Sync {
    /// The rank to run next on `core`, or none if none is READY. It is only a proposal: the caller takes it from the queue.
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32>;

    /// May the rank that spins on the idle core go on before the others that became READY with it? That saves switching
    /// to one of them and back.
    fn spinner_first(&self) -> bool {
        true
    }

    /// May the kernel choose among the READY ranks that have not parked? It takes them in turn, too, though not in rank order, and
    /// nobody has to be woken.
    fn kernel_may_choose(&self) -> bool {
        false
    }
}

/// Round robin in rank order, from the rank that ran last.
struct RoundRobin;

impl Policy for RoundRobin {
    #[inline]
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        let last = node.core(core).last.load(Ordering::Relaxed);
        run_queue::next_from(node.ready(core), last.wrapping_add(1))
    }

    #[inline]
    fn kernel_may_choose(&self) -> bool {
        true
    }
}

/// Whoever has been READY longest.
struct Fifo;

impl Policy for Fifo {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        // Numbers beyond the ranks are scribbles: first, so that the caller takes them out and drops them.
        let ready_at = |rank: &u32| match *rank < node.header().ranks {
            true => node.rank(*rank).ready_at.load(Ordering::Relaxed),
            false => 0,
        };
        run_queue::members(node.ready(core)).min_by_key(ready_at)
    }

    fn spinner_first(&self) -> bool {
        false
    }
}

/// The policy of a node.
#[inline]
pub fn of(node: &NodeSegment) -> &'static dyn Policy {
    const FIFO: u32 = control::Policy::Fifo as u32;
    match node.header().policy {
        FIFO => &Fifo,
        _ => &RoundRobin,
    }
}
