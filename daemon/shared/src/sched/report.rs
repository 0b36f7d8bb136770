//! What the descriptors say, for `vmpictl` and the end-of-job report.

use super::lease;
use super::outside::{self, Outside};
use super::progress;
use crate::control::{CoreReport, RankReport};
use crate::mem::sync::Ordering::Relaxed;
use crate::node::NodeSegment;
use crate::node::run_state::RunState;
use crate::trace::{TraceCore, TraceRank};

/// A core's line, now.
pub fn core_report(node: &NodeSegment, core: u32) -> CoreReport {
    core_report_at(node, core, node.now())
}

/// A core's line. What is under way is counted until `now`: who tells of several cores, or of other things, tells them of one moment.
pub fn core_report_at(node: &NodeSegment, core: u32, now: u64) -> CoreReport {
    core_report_of(node, core, now, None)
}

/// As `core_report_at`; `ends`: the core's idle time when the end of the job began (`outside::idle_of`).
pub fn core_report_of(node: &NodeSegment, core: u32, now: u64, ends: Option<u64>) -> CoreReport {
    let descriptor = node.core(core);
    let seconds = |ticks: u64| node.seconds(ticks);
    let clocks = progress::of_core(node, core, now);
    let Outside { starting, ending } = outside::of_core(node, core, now, ends);
    CoreReport {
        node: None,
        cpu: descriptor.cpu.load(Relaxed),
        ranks: descriptor.ranks.load(Relaxed),
        running: node.running_on(core),
        ready: node.ready_count(core),
        handoffs: descriptor.handoffs.load(Relaxed),
        running_s: seconds(clocks.running),
        idle_s: seconds(clocks.idle.saturating_sub(starting.wrapping_add(ending))),
        handoff_s: seconds(clocks.handoff),
        withheld_s: seconds(clocks.withheld),
        starting_s: seconds(starting),
        ending_s: seconds(ending),
        wall_s: seconds(now.saturating_sub(node.header().started_at)),
        max_running: descriptor.max_running.load(Relaxed),
        violations: descriptor.violations.load(Relaxed),
        ptime_s: seconds(descriptor.ptime.load(Relaxed)),
        moves: descriptor.moves.load(Relaxed),
        counters: descriptor.counters.iter().map(|count| count.load(Relaxed)).collect(),
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
    let clocks = progress::of_rank(node, rank, now);
    let (starting, ending, whole) = outside::span_of(node, rank).map_or((0, 0, 0), |span| span.times(now));
    RankReport {
        rank,
        pid: node.pid(rank),
        cpu: node.core(node.core_of(rank)).cpu.load(Relaxed),
        state: state.name().to_string(),
        waiting_on: waiting_on(node, rank, state),
        switches: descriptor.switches.load(Relaxed),
        rtime_s: seconds(clocks.running),
        ready_s: seconds(clocks.ready),
        wait_s: seconds(clocks.wait),
        away_s: seconds(clocks.away),
        starting_s: seconds(starting),
        ending_s: seconds(ending),
        wall_s: seconds(whole),
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
    "descriptor",
    "deferred receive",
    "deferred send",
];

/// Calls that may return before their messages are over, by `Whereabouts::left_call`.
pub const LEFT_CALLS: &[&str] = &[
    "",
    "MPI_Send",
    "MPI_Rsend",
    "MPI_Recv",
    "MPI_Sendrecv",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Neighbor_allgather",
    "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall",
    "MPI_Neighbor_alltoallv",
    "MPI_Neighbor_alltoallw",
];

/// Is it one of `CALLS` that wait for a call which has returned before?
pub fn is_deferred(call: &str) -> bool {
    call.starts_with("deferred ")
}

fn waiting_on(node: &NodeSegment, rank: u32, state: RunState) -> String {
    if !matches!(state, RunState::Suspended | RunState::Tended) {
        return String::new();
    }
    let descriptor = node.rank(rank);
    let call = CALLS.get(descriptor.call.load(Relaxed) as usize).copied().unwrap_or("?");
    let show = |value: i32| if value < 0 { "any".to_string() } else { value.to_string() };
    match call {
        "receive" | "send" | "probe" | "deferred receive" | "deferred send" => {
            format!("{call} peer={} tag={}", show(descriptor.peer.load(Relaxed)), show(descriptor.tag.load(Relaxed)))
        }
        call => call.to_string(),
    }
}

/// How core `core` stands now.
pub fn stand_of_core(node: &NodeSegment, core: u32) -> TraceCore {
    let descriptor = node.core(core);
    let withheld_at = if lease::is_held(node, core) { 0 } else { descriptor.withheld_at.load(Relaxed).max(1) };
    TraceCore { cpu: descriptor.cpu.load(Relaxed), withheld_at }
}

/// How rank `rank` stands now.
pub fn stand(node: &NodeSegment, rank: u32, skip: u64) -> TraceRank {
    let (descriptor, died) = (node.rank(rank), outside::died_as(node, rank));
    TraceRank {
        pid: node.pid(rank),
        here: !node.is_remote(rank),
        skip,
        state: died.unwrap_or_else(|| node.state(rank)).name().to_owned(),
        is_dead: died.is_some(),
        life: outside::span_of(node, rank),
        core: node.core_of(rank),
        t: descriptor.t.load(Relaxed),
        ready_at: descriptor.ready_at.load(Relaxed),
        call: descriptor.call.load(Relaxed),
        peer: descriptor.peer.load(Relaxed),
        tag: descriptor.tag.load(Relaxed),
        given: Vec::new(),
    }
}
