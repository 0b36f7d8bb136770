//! What the descriptors say, for `vmpictl` and the end-of-job report.

use super::clocks::process_time;
use super::lease;
use super::run_state::RunState;
use crate::control::{CoreReport, RankReport};
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::Relaxed;
use crate::node::NodeSegment;

/// A core's line, now.
pub fn core_report(node: &NodeSegment, core: u32) -> CoreReport {
    core_report_at(node, core, node.now())
}

/// A core's line. What is under way is counted until `now`: who tells of several cores, or of other things, tells them of one moment.
pub fn core_report_at(node: &NodeSegment, core: u32, now: u64) -> CoreReport {
    let descriptor = node.core(core);
    let seconds = |ticks: u64| node.seconds(ticks);
    let at = |clock: &AtomicU64| clock.load(Relaxed);
    let (mut running, mut idle, mut handoff) =
        (at(&descriptor.running_ticks), at(&descriptor.idle_ticks), at(&descriptor.handoff_ticks));
    let mut withheld = at(&descriptor.withheld_ticks);
    // The stretch that it is in right now.
    let (released, granted) = (at(&descriptor.released_at), at(&descriptor.granted_at));
    match node.running_on(core) {
        Some(rank) if node.state(rank) == RunState::Running => {
            running = running.wrapping_add(now.saturating_sub(at(&node.rank(rank).t)));
        }
        Some(_) => {
            idle = idle.wrapping_add(granted.saturating_sub(released));
            handoff = handoff.wrapping_add(now.saturating_sub(granted.max(released)));
        }
        None if !lease::is_held(node, core) => {
            let since = at(&descriptor.withheld_at);
            idle = idle.wrapping_add(since.saturating_sub(released));
            withheld = withheld.wrapping_add(now.saturating_sub(since.max(released)));
        }
        None => idle = idle.wrapping_add(now.saturating_sub(released)),
    }
    CoreReport {
        node: None,
        cpu: descriptor.cpu.load(Relaxed),
        ranks: descriptor.ranks.load(Relaxed),
        running: node.running_on(core),
        ready: node.ready_count(core),
        handoffs: descriptor.handoffs.load(Relaxed),
        running_s: seconds(running),
        idle_s: seconds(idle),
        handoff_s: seconds(handoff),
        withheld_s: seconds(withheld),
        wall_s: seconds(now.saturating_sub(node.header().started_at)),
        max_running: descriptor.max_running.load(Relaxed),
        violations: descriptor.violations.load(Relaxed),
        ptime_s: seconds(descriptor.ptime.load(Relaxed)),
        moves: descriptor.moves.load(Relaxed),
        counters: descriptor.counters.iter().map(at).collect(),
    }
}

/// A rank's line, now; `face`, `unexpected`, `rss_bytes` and `warn` are the daemon's to fill.
pub fn rank_report(node: &NodeSegment, rank: u32) -> RankReport {
    rank_report_at(node, rank, node.now())
}

/// As `rank_report`; what is under way is counted until `now`.
pub fn rank_report_at(node: &NodeSegment, rank: u32, now: u64) -> RankReport {
    let descriptor = node.rank(rank);
    let seconds = |ticks: u64| node.seconds(ticks);
    let state = node.state(rank);
    let (mut wait, mut ready) = (descriptor.wait_ticks.load(Relaxed), descriptor.ready_ticks.load(Relaxed));
    // The stretch that it is in right now.
    let since = |start: u64| now.saturating_sub(start);
    match state {
        RunState::Suspended | RunState::Tended => wait = wait.wrapping_add(since(descriptor.t.load(Relaxed))),
        RunState::Ready => ready = ready.wrapping_add(since(descriptor.ready_at.load(Relaxed))),
        _ => {}
    }
    RankReport {
        rank,
        pid: node.pid(rank),
        cpu: node.core(node.core_of(rank)).cpu.load(Relaxed),
        state: state.name().to_string(),
        waiting_on: waiting_on(node, rank, state),
        switches: descriptor.switches.load(Relaxed),
        rtime_s: seconds(process_time(node, rank, now)),
        ready_s: seconds(ready),
        wait_s: seconds(wait),
        away_s: seconds(descriptor.away_ticks.load(Relaxed)),
        sent_messages: descriptor.sent_messages.load(Relaxed),
        sent_bytes: descriptor.sent_bytes.load(Relaxed),
        received_messages: descriptor.received_messages.load(Relaxed),
        received_bytes: descriptor.received_bytes.load(Relaxed),
        moves: descriptor.moves.load(Relaxed),
        counters: descriptor.counters.iter().map(|count| count.load(Relaxed)).collect(),
        ..RankReport::default()
    }
}

/// Single copies that the kernel has refused this rank.
pub fn copies_refused(node: &NodeSegment, rank: u32) -> u64 {
    node.rank(rank).copies_refused.load(Relaxed)
}

/// What a rank may be waiting in, by code (`RankDescriptor::call`).
pub const CALLS: &[&str] = &[
    "",
    "receive",
    "send",
    "wait",
    "probe",
    "collective",
    "inbox space",
    "finalize",
    "window",
    "spawn",
    "accept or connect",
    "agreement",
];

fn waiting_on(node: &NodeSegment, rank: u32, state: RunState) -> String {
    if !matches!(state, RunState::Suspended | RunState::Tended) {
        return String::new();
    }
    let descriptor = node.rank(rank);
    let call = CALLS.get(descriptor.call.load(Relaxed) as usize).copied().unwrap_or("?");
    let show = |value: i32| if value < 0 { "any".to_string() } else { value.to_string() };
    match call {
        "receive" | "send" | "probe" => {
            format!("{call} peer={} tag={}", show(descriptor.peer.load(Relaxed)), show(descriptor.tag.load(Relaxed)))
        }
        call => call.to_string(),
    }
}
