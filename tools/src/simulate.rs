//! `--simulate` and `--compute`: what is asked for, what cannot be had with it, and what is told at the end.

use crate::cli::RunOptions;
use crate::failure::Failure;
use std::path::Path;
use std::time::Duration;
use vmpi_machine::{BUILT_IN, Machine};
use vmpi_shared::control::{Balance, Simulation, SimulationReport, Spread3};

/// What ranks' own computation takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ComputeTime {
    None,
    /// Their CPU time, times so many millionths.
    Measured(u64),
}

/// The value of `--compute`.
///
/// # Errors
/// What may be said there.
pub fn compute_time(word: &str) -> Result<ComputeTime, String> {
    let scale = match word.split_once(':') {
        None if word == "none" => return Ok(ComputeTime::None),
        None if word == "measured" => return Ok(ComputeTime::Measured(1_000_000)),
        Some(("measured", scale)) => scale.parse::<f64>().ok().filter(|scale| (1e-6..=1e6).contains(scale)),
        Some(("record" | "replay", _)) => {
            return Err("record and replay are not offered yet: `--compute` is none, measured or measured:SCALE".into());
        }
        _ => None,
    };
    let millionths = scale.map(|scale| (scale * 1e6).round() as u64);
    millionths.map(ComputeTime::Measured).ok_or_else(|| {
        format!("`{word}` is not one of none, measured, measured:SCALE (a number from 0.000001 to 1000000: 2 is a machine half as fast)")
    })
}

/// The value of `--collectives`: do they go message by message?
///
/// # Errors
/// What may be said there.
pub fn by_messages(word: &str) -> Result<bool, String> {
    match word {
        "engine" => Ok(false),
        "messages" => Ok(true),
        _ => Err(format!("`{word}` is not one of engine, messages")),
    }
}

/// The simulation that the options ask for, if they do.
///
/// # Errors
/// It cannot be done, or not together with something else that is asked for.
pub fn wanted(options: &RunOptions, several_nodes: bool) -> Result<Option<Simulation>, Failure> {
    let Some(machine) = &options.simulate else {
        return match options.compute {
            None if options.by_messages.is_some() => {
                Err(Failure::usage("--collectives is for simulated jobs: say --simulate, too"))
            }
            None => Ok(None),
            Some(_) => Err(Failure::usage("--compute is for simulated jobs: say --simulate, too")),
        };
    };
    let not_with = |what: &str, why: &str| Err(Failure::usage(format!("--simulate does not go with {what}: {why}")));
    if several_nodes {
        return not_with("several nodes", "virtual time is kept in the shared memory of one; leave out the hosts");
    }
    if options.recovery {
        return not_with("--enable-recovery", "when a rank would learn of a death in virtual time is not defined");
    }
    if options.trace.is_some() || options.report_html.is_some() {
        return not_with("--trace and --report-html", "they would show real times, not virtual ones");
    }
    if options.on_hang_s > 0 {
        return not_with("--on-hang", "it goes by real time; a deadlock in virtual time is told of without it");
    }
    if matches!(options.balance, Some(balance) if balance == Balance::Refine) {
        return not_with("--balance refine", "it goes by real load");
    }
    // The sentence of its reader is the user's; the daemon reads it again.
    Machine::load(machine).map_err(|problem| Failure::usage(problem.to_string()))?;
    let compute_millionths = match options.compute.unwrap_or(ComputeTime::Measured(1_000_000)) {
        ComputeTime::None => None,
        ComputeTime::Measured(millionths) => Some(millionths),
    };
    // A file, seen from the daemon.
    let built_in = BUILT_IN.iter().any(|known| known.name == machine);
    let path = Path::new(machine).canonicalize().ok().filter(|_| !built_in);
    let machine = path.map_or_else(|| machine.clone(), |path| path.to_string_lossy().into_owned());
    let by_messages = options.by_messages.unwrap_or(false);
    Ok(Some(Simulation { machine, compute_millionths, by_messages }))
}

/// A time as people write it.
fn show(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.3} s"),
        s if s >= 1e-3 => format!("{:.3} ms", s * 1e3),
        s => format!("{:.3} us", s * 1e6),
    }
}

/// What is said at the end.
pub fn sentences(report: &SimulationReport, real_s: f64) -> String {
    let row = |name: &str, spread: &Spread3| {
        format!("  {name:<10} {:>12} {:>12} {:>12}\n", show(spread.min_s), show(spread.mean_s), show(spread.max_s))
    };
    let per_second = |count: u64| count as f64 / real_s.max(1e-9);
    let real = Duration::from_secs_f64(real_s.max(0.0));
    let mut text = format!("vmpirun: simulated on {}: {} in virtual time\n", report.machine, show(report.predicted_s));
    text += &format!("  {:<10} {:>12} {:>12} {:>12}\n", "per rank", "least", "mean", "most");
    text += &row("computing", &report.computing);
    text += &row("sending", &report.sending);
    text += &row("waiting", &report.waiting);
    text += &format!(
        "  {} messages and {} events in {:.3} s of real time: {:.0} and {:.0} a second\n",
        report.messages,
        report.events,
        real.as_secs_f64(),
        per_second(report.messages),
        per_second(report.events)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_computation() {
        assert_eq!(compute_time("none"), Ok(ComputeTime::None));
        assert_eq!(compute_time("measured"), Ok(ComputeTime::Measured(1_000_000)));
        assert_eq!(compute_time("measured:0.25"), Ok(ComputeTime::Measured(250_000)));
        for wrong in
            ["", "measured:", "measured:0", "measured:-1", "measured:nan", "record:f", "replay:f", "instructions:1"]
        {
            assert!(compute_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_told_in_a_fitting_unit() {
        assert_eq!([2.5, 0.0025, 2.5e-6, 0.0].map(show), ["2.500 s", "2.500 ms", "2.500 us", "0.000 us"]);
    }
}
