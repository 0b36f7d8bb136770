//! What a core and a rank are in the middle of: the one place that adds it to what their clocks hold.
//!
//! Clocks are written when a stretch ends (`clocks`). Who tells of them meanwhile, and who finds that a rank will not end its stretch because it has died,
//! asks here, so that a wait of an hour is told as one, whoever asks and whatever ends it.

use super::clocks::{add, settle_on};
use super::lease;
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::{Relaxed, SeqCst};
use crate::node::run_state::RunState;
use crate::node::{CoreDescriptor, NodeSegment};

/// Looks at a core that goes on meanwhile, until two agree.
const LOOKS: u32 = 16;

/// A core's time until a moment, ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct CoreClocks {
    pub running: u64,
    pub idle: u64,
    pub handoff: u64,
    pub withheld: u64,
}

/// A rank's time in MPI until a moment, ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RankClocks {
    pub running: u64,
    pub ready: u64,
    pub wait: u64,
    pub away: u64,
}

fn at(clock: &AtomicU64) -> u64 {
    clock.load(Relaxed)
}

/// Has a turn on the core begun that is not settled? Who leaves a core writes one time into `t` and `released_at`; who gets it, a later one into `t`.
fn has_begun(core: &CoreDescriptor, t: u64) -> bool {
    t > at(&core.released_at)
}

/// The clocks of a core at `now`. Its ranks go on meanwhile: what was read while a turn began or ended is read again.
pub fn of_core(node: &NodeSegment, core: u32, now: u64) -> CoreClocks {
    let descriptor = node.core(core);
    let stamp = || [&descriptor.handoffs, &descriptor.released_at, &descriptor.idle_ticks].map(at);
    let mut clocks = CoreClocks::default();
    for _ in 0..LOOKS {
        let before = stamp();
        clocks = look_at_core(node, core, now);
        if stamp() == before {
            break;
        }
    }
    clocks
}

fn look_at_core(node: &NodeSegment, core: u32, now: u64) -> CoreClocks {
    let descriptor = node.core(core);
    let mut clocks = CoreClocks {
        running: at(&descriptor.running_ticks),
        idle: at(&descriptor.idle_ticks),
        handoff: at(&descriptor.handoff_ticks),
        withheld: at(&descriptor.withheld_ticks),
    };
    let (released, granted) = (at(&descriptor.released_at), at(&descriptor.granted_at));
    let more = |clock: &mut u64, from: u64, until: u64| *clock = clock.wrapping_add(until.saturating_sub(from));
    match node.running_on(core).map(|rank| at(&node.rank(rank).t)) {
        Some(t) if has_begun(descriptor, t) => more(&mut clocks.running, t, now),
        Some(_) => {
            more(&mut clocks.idle, released, granted);
            more(&mut clocks.handoff, granted.max(released), now);
        }
        None if !lease::is_held(node, core) => {
            let since = at(&descriptor.withheld_at);
            more(&mut clocks.idle, released, since);
            more(&mut clocks.withheld, since.max(released), now);
        }
        None => more(&mut clocks.idle, released, now),
    }
    clocks
}

/// The clocks of a rank at `now`.
pub fn of_rank(node: &NodeSegment, rank: u32, now: u64) -> RankClocks {
    let descriptor = node.rank(rank);
    let settled = RankClocks {
        running: at(&descriptor.r),
        ready: at(&descriptor.ready_ticks),
        wait: at(&descriptor.wait_ticks),
        away: at(&descriptor.away_ticks),
    };
    let stretch = stretch(node, rank, node.state(rank), now);
    RankClocks {
        running: settled.running.wrapping_add(stretch.running),
        ready: settled.ready.wrapping_add(stretch.ready),
        wait: settled.wait.wrapping_add(stretch.wait),
        away: settled.away.wrapping_add(stretch.away),
    }
}

/// What a rank in `state` is in the middle of at `now`: for how long, and as what it counts.
fn stretch(node: &NodeSegment, rank: u32, state: RunState, now: u64) -> RankClocks {
    let descriptor = node.rank(rank);
    let t = at(&descriptor.t);
    // It left its core at `t`, unless that was taken from it: then it was away until it came into MPI.
    let left = t.max(at(&descriptor.away_at));
    let since = |from: u64| now.saturating_sub(from);
    let nothing = RankClocks::default();
    match state {
        RunState::Running if has_begun(node.core(node.core_of(rank)), t) => RankClocks { running: since(t), ..nothing },
        // It has its core, and its turn has not begun.
        RunState::Running | RunState::Ready => {
            let ready = at(&descriptor.ready_at).min(now);
            // Before its first turn it has left none.
            let wait = if left == 0 { 0 } else { ready.saturating_sub(left) };
            RankClocks { wait, ready: since(ready.max(left)), ..nothing }
        }
        RunState::Suspended | RunState::Tended => RankClocks { wait: since(left), ..nothing },
        RunState::Away | RunState::Adopted => RankClocks { away: since(at(&descriptor.away_at)), ..nothing },
        RunState::Init | RunState::Finalized | RunState::Dead | RunState::Damaged | RunState::Remote => nothing,
    }
}

/// The rank, which was in `state` on `core`, is dead: what it was in the middle of ends now. For the daemon; the rank writes its clocks no more.
pub(super) fn settle_dead(node: &NodeSegment, rank: u32, state: RunState, core: u32) {
    let descriptor = node.rank(rank);
    match state {
        RunState::Running if has_begun(node.core(core), at(&descriptor.t)) => {
            settle_on(node, rank, core);
            return;
        }
        // It has counted itself in and no more.
        RunState::Running => drop(node.core(core).running.fetch_sub(1, SeqCst)),
        _ => {}
    }
    let stretch = stretch(node, rank, state, node.now());
    add(&descriptor.ready_ticks, stretch.ready);
    add(&descriptor.wait_ticks, stretch.wait);
    add(&descriptor.away_ticks, stretch.away);
}
