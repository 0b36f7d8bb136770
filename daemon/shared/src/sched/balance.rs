//! Ranks move from core to core of their node: an idle core, or a rank that polls in vain, takes over READY ranks (`steal`; `rescue`: only those that
//! starve), or a rank moves itself when it has been told to (`refine` decides which).
//!
//! What makes that safe is who may change `RankDescriptor::core`:
//! - **a rank itself**, between giving its core up and asking for the other one: READY and in no set, so nobody else has it in hand;
//! - **who runs on, holds or has claimed another core**, for a READY rank that it has taken out of its core's set, and only while *another* rank is
//!   RUNNING on that core (looked at after the taking). Such a rank has given its core up and is not about to be told to watch it: those
//!   who name a watcher, or release a core, hold it and are not RUNNING. If it turns out otherwise the rank goes back into the set,
//!   like one that has just become READY (SYNC B);
//! - **the daemon**, which has claimed another core, for a rank that is outside MPI without one, while it is ADOPTED (`regrant`).
//!
//! Everybody else reads the core of a rank that is not RUNNING on this process's behalf as a place to put it or to look at, and each of these
//! steps begins with taking the rank (from SUSPENDED or RUNNING) in a way in which only one can succeed; while it is in hand its core stays.
//! Death story: in a job that survives deaths no rank moves. In others a death ends the job; who dies with a rank in hand leaves a
//! READY rank in no set, which is killed with the rest.

use super::lease::ALONE;
use super::refine;
use super::run_queue;
use crate::control::Balance;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::node::run_state::{RunState, holder_rank};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;
pub(super) const STEAL: u32 = Balance::Steal as u32;
pub(super) const RESCUE: u32 = Balance::Rescue as u32;
const REFINE: u32 = Balance::Refine as u32;

/// `steal`: a rank that has been READY for so long is taken over: what moving it costs, with its caches, is about that.
const STEAL_AFTER_S: f64 = 50e-6;

/// A rank that has been READY for so long starves: ranks that communicate have turns of some microseconds.
pub(super) const STARVED_S: f64 = 2e-3;

/// `rescue`: how long a core does not look again. Ranks that poll, under `steal`, too.
const LOOK_AGAIN_S: f64 = 500e-6;

/// Ranks are taken from a core on which ranks ran for this part of a window.
const BUSY_PERCENT: u64 = 60;
const WINDOW_S: f64 = 5e-3;

/// Is it time to look for ranks that starve? Then the next time is a while later.
#[inline]
pub(super) fn is_time(node: &NodeSegment, core: u32, now: u64) -> bool {
    let offered_at = &node.core(core).offered_at;
    let due = now.saturating_sub(offered_at.load(RELAXED)) >= ticks(node, LOOK_AGAIN_S);
    if due {
        offered_at.store(now, RELAXED);
    }
    due
}

pub(super) fn ticks(node: &NodeSegment, seconds: f64) -> u64 {
    match cfg!(feature = "model") {
        true => 4, // looks at the clock
        false => (seconds * node.header().ticks_per_second) as u64,
    }
}

/// For how long a rank must have been READY to be taken over by a core that has nothing to do.
pub(super) fn patience(node: &NodeSegment) -> u64 {
    ticks(node, if node.header().balance == RESCUE { STARVED_S } else { STEAL_AFTER_S })
}

/// Is there a rank that `core`, idle now, could take over?
#[inline]
pub(super) fn could_steal(node: &NodeSegment, core: u32) -> bool {
    let due = match node.header().balance {
        STEAL => true,
        RESCUE => is_time(node, core, node.now()),
        _ => false,
    };
    let could = due
        && may_take(node, core)
        && (homecomer(node, core).is_some()
            || victims(node, core).any(|from| oldest(node, from, patience(node)).is_some()));
    if could {
        node.core(core).offered_at.store(0, RELAXED); // `steal` is next, and is to look
    }
    could
}

/// Have the ranks of this core kept it busy lately? If not, they wait for messages rather than for the core, and taking one away from the
/// others would only make its messages dearer.
fn is_loaded(node: &NodeSegment, core: u32) -> bool {
    if cfg!(feature = "model") {
        return true;
    }
    let (descriptor, now) = (node.core(core), node.now());
    let before = descriptor.looked_at.load(RELAXED);
    let elapsed = now.saturating_sub(before);
    if elapsed >= (WINDOW_S * node.header().ticks_per_second) as u64
        && descriptor.looked_at.compare_exchange(before, now, SEQ, SEQ).is_ok()
    {
        let running = node.running_on(core).filter(|rank| node.state(*rank) == RunState::Running);
        let stretch = running.map_or(0, |rank| now.saturating_sub(node.rank(rank).t.load(RELAXED)));
        let ran = descriptor.running_ticks.load(RELAXED).saturating_add(stretch);
        let ran_before = descriptor.window_running.swap(ran, RELAXED);
        let percent = ran.saturating_sub(ran_before).saturating_mul(100) / elapsed;
        // The first look only begins a window.
        descriptor.busy_percent.store(if before == 0 { 0 } else { percent }, RELAXED);
    }
    descriptor.busy_percent.load(RELAXED) >= BUSY_PERCENT
}

/// May ranks come to this core? Not if another job waits for it.
pub(super) fn may_take(node: &NodeSegment, core: u32) -> bool {
    core < node.header().own_cores && node.core(core).lease.load(SEQ) == ALONE
}

/// The cores from which to take ranks, the next one first.
pub(super) fn victims(node: &NodeSegment, core: u32) -> impl Iterator<Item = u32> + '_ {
    let own = node.header().own_cores;
    let others = (core + 1..own).chain(0..core.min(own));
    others.filter(|from| match node.header().balance {
        RESCUE => computes(node, *from),
        _ => is_loaded(node, *from) && is_busy(node, *from, None),
    })
}

/// Does a rank run on the core that has not come to a scheduling point for long? Where many ranks with short turns share a core, they wait for
/// each other for long, too, but would gain little elsewhere.
fn computes(node: &NodeSegment, core: u32) -> bool {
    let Some(rank) = node.running_on(core).filter(|rank| *rank < node.header().ranks) else { return false };
    node.state(rank) == RunState::Running
        && node.now().saturating_sub(node.rank(rank).t.load(RELAXED)) >= ticks(node, STARVED_S / 2.0)
}

/// Is a rank RUNNING on the core, another one than `but`?
pub(super) fn is_busy(node: &NodeSegment, core: u32, but: Option<u32>) -> bool {
    let holder = holder_rank(node.core(core).holder.load(SEQ)).filter(|rank| *rank < node.header().ranks);
    holder.is_some_and(|rank| Some(rank) != but && node.state(rank) == RunState::Running)
}

/// The READY ranks of a core that may move.
pub(super) fn waiting(node: &NodeSegment, core: u32) -> impl Iterator<Item = u32> + '_ {
    let known = |rank: &u32| *rank < node.header().ranks && node.rank(*rank).may_move();
    run_queue::members(node.ready(core)).filter(known)
}

/// The rank of a core that has been READY longest, if it has for `patience`.
pub(super) fn oldest(node: &NodeSegment, core: u32, patience: u64) -> Option<u32> {
    let since = |rank: &u32| node.rank(*rank).ready_at.load(RELAXED);
    let rank = waiting(node, core).min_by_key(since)?;
    (node.now().saturating_sub(since(&rank)) >= patience).then_some(rank)
}

/// `rescue`: a rank of this core that waits for the one that has taken it over, though its own could run it.
pub(super) fn homecomer(node: &NodeSegment, core: u32) -> Option<(u32, u32)> {
    if node.header().balance != RESCUE {
        return None;
    }
    let (now, enough) = (node.now(), ticks(node, STEAL_AFTER_S));
    let waits = |rank: &u32| {
        node.home_of(*rank) == core && now.saturating_sub(node.rank(*rank).ready_at.load(RELAXED)) >= enough
    };
    let mut others = (0..node.header().own_cores).filter(|from| *from != core && is_busy(node, *from, None));
    others.find_map(|from| Some((from, waiting(node, from).find(waits)?)))
}

/// The rank, which the caller has in hand, belongs to another core from now on.
pub(super) fn relocate(node: &NodeSegment, rank: u32, from: u32, to: u32) {
    let descriptor = node.rank(rank);
    if node.header().balance == RESCUE {
        let home = node.home_of(rank);
        descriptor.target.store(if to == home { 0 } else { home + 1 }, SEQ);
    }
    descriptor.core.store(to, SEQ); // before the core is handed to it, and that before the look whether it is dead: SYNC G
    descriptor.moves.fetch_add(1, RELAXED);
    node.core(from).ranks.fetch_sub(1, RELAXED);
    node.core(to).ranks.fetch_add(1, RELAXED);
    node.core(to).moves.fetch_add(1, RELAXED);
}

/// The core has no READY rank and is about to be left idle: time to measure.
#[inline]
pub(super) fn core_goes_idle(node: &NodeSegment, core: u32) {
    if node.header().balance == REFINE && core < node.header().own_cores {
        refine::look(node, node.core(core).released_at.load(RELAXED));
    }
}
