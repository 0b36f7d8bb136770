//! An idle core goes to a rank that computes outside MPI without one.
//!
//! Such a rank is AWAY: it lost its core to others, and runs on beside them on the same CPU. When another core, or that one, has nothing to do, it would stay so
//! until the rank's next call of MPI, which may be far. So the daemon gives it the core where it is: the rank need not know.
//!
//! SYNC S: the daemon makes the rank ADOPTED, does all that is to be done, and makes it RUNNING; a rank that comes into MPI meanwhile waits for that
//! (`release::leave_away`). The daemon then looks whether the rank's last core is no longer its own, since who takes a core from a rank
//! changes the holder after the state, and reads before which core it is. Death story: if the daemon dies, so does the job; a rank that dies
//! meanwhile is found dead later, with a core.

use super::affinity;
use super::balance::{may_take, relocate};
use super::clocks::{add, count_in, start};
use super::dispatch::dispatch;
use super::idle_time::note_work;
use super::run_queue;
use crate::control::Balance;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::node::run_state::{CLAIMED, IDLE, RunState, holder_word};
use crate::trace::Given;

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Who moves from core to core outside MPI.
const MOVERS: [u32; 2] = [Balance::Steal as u32, Balance::Rescue as u32];

/// A core for `rank`, which has none, that has been idle for `idle` ticks: its own one, if possible.
pub fn core_for(node: &NodeSegment, rank: u32, idle: u64) -> Option<u32> {
    let own = node.core_of(rank);
    let others = MOVERS.contains(&node.header().balance) && node.rank(rank).may_move();
    let others = (0..if others { node.header().own_cores } else { 0 }).filter(|core| *core != own);
    let now = node.now();
    std::iter::once(own).chain(others).find(|core| {
        let descriptor = node.core(*core);
        may_take(node, *core)
            && descriptor.holder.load(SEQ) == IDLE
            && run_queue::is_empty(node.ready(*core))
            && now.saturating_sub(descriptor.released_at.load(RELAXED)) >= idle
    })
}

/// For the daemon: give `core`, if it is idle, to `rank`, process `pid`, if that is outside MPI without one. `None` if not.
pub fn regrant(node: &NodeSegment, (rank, pid): (u32, i32), core: u32) -> Option<Given> {
    let (descriptor, target) = (node.rank(rank), node.core(core));
    target.holder.compare_exchange(IDLE, CLAIMED, SEQ, SEQ).ok()?;
    if !take_in_hand(node, (rank, pid), core) {
        dispatch(node, core);
        return None;
    }
    note_work(node, core);
    let now = node.now();
    let taken = descriptor.away_at.load(RELAXED);
    add(&descriptor.away_ticks, now.saturating_sub(taken));
    target.last.store(rank, RELAXED);
    target.granted_at.store(now, RELAXED);
    count_in(target);
    let (_, released) = start(target, descriptor, now);
    target.holder.store(holder_word(rank), SEQ);
    // Nobody else changes ADOPTED but by scribbling, which the daemon finds later and ends the job for.
    change(node, rank, RunState::Adopted, RunState::Running);
    Some(Given { core, taken: taken.min(now), at: now, released, clock: descriptor.r.load(RELAXED) })
}

/// The rank, if it is AWAY, is ADOPTED and belongs to `core`, where its process runs.
fn take_in_hand(node: &NodeSegment, (rank, pid): (u32, i32), core: u32) -> bool {
    if !change(node, rank, RunState::Away, RunState::Adopted) {
        return false;
    }
    let from = node.core_of(rank);
    let lost = node.core(from).holder.load(SEQ) != holder_word(rank); // SYNC S
    let comes = lost && (from == core || affinity::bring(node, (rank, pid), from, core));
    if !comes {
        change(node, rank, RunState::Adopted, RunState::Away);
    } else if from != core {
        relocate(node, rank, from, core);
    }
    comes
}

fn change(node: &NodeSegment, rank: u32, from: RunState, to: RunState) -> bool {
    node.rank(rank).state.compare_exchange(from.word(), to.word(), SEQ, SEQ).is_ok()
}
