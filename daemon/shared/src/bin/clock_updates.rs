//! The distribution of what the clock updates cost on suspend and on resume, for `cargo xtask bench clocks`.
//!
//! clock_updates CPU: lines `@ process_suspend PERMILLE NANOSECONDS warm` and so on (`tests/programs/bench/bench.h`).

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::hint::black_box;
use vmpi_shared::cpu_cache;
use vmpi_shared::node::{NodeConfig, NodeSegment};
use vmpi_shared::sched::measure::{Update, updates};

/// As many as the paper has.
const WARM: usize = 70_000;
/// Each of these first writes to more memory than the cache holds.
const COLD: usize = 2_000;
/// Cache lines of this machine.
const LINE_BYTES: usize = 64;

fn main() -> Result<(), String> {
    let cpu: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).ok_or("clock_updates CPU")?;
    let mut set = CpuSet::new();
    set.set(cpu).map_err(|e| format!("CPU {cpu}: {e}"))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| format!("CPU {cpu}: {e}"))?;
    let node = NodeSegment::create(&NodeConfig::on_one_core(cpu as u32, 2)).map_err(|e| e.to_string())?;
    let ns_per_tick = 1e9 / node.header().ticks_per_second;
    let mut other = vec![0u8; 2 * cpu_cache::bytes(0, 2).unwrap_or(4 << 20) as usize];
    for (view, metered) in [("process", false), ("core", true)] {
        let mut warm = updates(&node, WARM + WARM / 10, metered, || {});
        report(view, "warm", &warm.split_off(WARM / 10), ns_per_tick);
        let cold = updates(&node, COLD, metered, || {
            other.iter_mut().step_by(LINE_BYTES).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&other);
        });
        report(view, "cold", &cold, ns_per_tick);
    }
    Ok(())
}

/// Quantiles, less the median cost of looking at the clock.
fn report(view: &str, kind: &str, found: &[Update], ns_per_tick: f64) {
    let sorted = |of: fn(&Update) -> u64| {
        let mut all: Vec<u64> = found.iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let at = |sorted: &[u64], permille: usize| sorted[(sorted.len() - 1) * permille / 1000];
    let nothing = at(&sorted(|update| update.nothing_ticks), 500);
    for (name, all) in [("suspend", sorted(|u| u.suspend_ticks)), ("resume", sorted(|u| u.resume_ticks))] {
        for permille in (0..=990).step_by(10).chain([995, 999]) {
            let ns = at(&all, permille).saturating_sub(nothing) as f64 * ns_per_tick;
            println!("@ {view}_{name} {permille} {ns:.1} {kind}");
        }
    }
}
