//! `--simulate` and `--compute`: what is asked for, what cannot be had with it, and what is told at the end.

use crate::cli::RunOptions;
use crate::failure::Failure;
use crate::stack::{self, Names};
use std::path::Path;
use std::time::Duration;
use vmpi_machine::{BUILT_IN, Machine};
use vmpi_shared::control::{Balance, JobSpec, Simulation, SimulationReport, SpinningRank, Spread3, env};
use vmpi_shared::escape;
use vmpi_shared::meter;
use vmpi_shared::simulate::Compute;
use vmpi_shared::simulate::recording::{self, About};

/// What ranks' own computation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComputeTime {
    None,
    /// Their CPU time, times so many millionths.
    Measured(u64),
    /// Their CPU time, which goes into a file.
    Record(String),
    /// What a file says.
    Replay(String),
    /// So many of their instructions a second.
    Instructions(u64),
}

const COMPUTE_WORDS: &str = "none, measured, measured:SCALE (a number from 0.000001 to 1000000: 2 is a machine half as fast), record:FILE, replay:FILE, \
     instructions:RATE (a number of instructions a second from 1000 to 1e15: 2.5G)";

/// The value of `--compute`.
///
/// # Errors
/// What may be said there.
pub fn compute_time(word: &str) -> Result<ComputeTime, String> {
    let (kind, value) = word.split_once(':').map_or((word, None), |(kind, value)| (kind, Some(value)));
    let known = match (kind, value) {
        ("none", None) => Some(ComputeTime::None),
        ("measured", None) => Some(ComputeTime::Measured(1_000_000)),
        ("measured", Some(scale)) => {
            let scale = scale.parse::<f64>().ok().filter(|scale| (1e-6..=1e6).contains(scale));
            scale.map(|scale| ComputeTime::Measured((scale * 1e6).round() as u64))
        }
        ("record", Some(file)) if !file.is_empty() => Some(ComputeTime::Record(file.into())),
        ("replay", Some(file)) if !file.is_empty() => Some(ComputeTime::Replay(file.into())),
        ("instructions", Some(rate)) => {
            let factors = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)];
            let scaled = factors.iter().find_map(|(unit, factor)| Some((rate.strip_suffix(unit)?, *factor)));
            let (number, factor) = scaled.unwrap_or((rate, 1.0));
            let rate = number.parse::<f64>().ok().map(|number| number * factor).filter(|r| (1e3..=1e15).contains(r));
            rate.map(|rate| ComputeTime::Instructions(rate.round() as u64))
        }
        _ => None,
    };
    known.ok_or_else(|| format!("`{word}` is not one of {COMPUTE_WORDS}"))
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
    if options.on_hang_s > 0 {
        return not_with("--on-hang", "it goes by real time; a deadlock in virtual time is told of without it");
    }
    if matches!(options.balance, Some(balance) if balance == Balance::Refine) {
        return not_with("--balance refine", "it goes by real load");
    }
    // The sentence of its reader is the user's; the daemon reads it again.
    let mut described = Machine::load(machine).map_err(|problem| Failure::usage(problem.to_string()))?;
    for said in &options.machine_changes {
        described.change(said).map_err(|why| Failure::usage(format!("--sweep: {why}")))?;
    }
    let compute = match options.compute.as_ref().unwrap_or(&ComputeTime::Measured(1_000_000)) {
        ComputeTime::None => Compute::None,
        ComputeTime::Measured(millionths) => Compute::Measured { millionths: *millionths },
        ComputeTime::Record(_) => Compute::Record,
        ComputeTime::Replay(_) => Compute::Replay,
        ComputeTime::Instructions(per_second) => {
            let counted = meter::parse("instructions").and_then(|events| meter::check(&events));
            counted.map_err(|why| Failure::usage(format!("--compute instructions:RATE: {why}")))?;
            Compute::Instructions { per_second: *per_second }
        }
    };
    // A file, seen from the daemon.
    let built_in = BUILT_IN.iter().any(|known| known.name == machine);
    let path = Path::new(machine).canonicalize().ok().filter(|_| !built_in);
    let machine = path.map_or_else(|| machine.clone(), |path| path.to_string_lossy().into_owned());
    // The engine's own messages are not told of.
    let told =
        [&options.trace, &options.report_html, &options.matrix, &options.profile].iter().any(|file| file.is_some());
    let by_messages = options.by_messages.unwrap_or(false) || told;
    Ok(Some(Simulation { machine, compute, changes: options.machine_changes.clone(), by_messages }))
}

/// Begin the file that ranks record in, or look at the one that they replay; tell them where it is.
///
/// # Errors
/// It cannot be written, or is not of such a job.
pub fn prepare_tape(options: &RunOptions, spec: &mut JobSpec, command: &str) -> Result<(), Failure> {
    let (file, records) = match &options.compute {
        Some(ComputeTime::Record(file)) => (file, true),
        Some(ComputeTime::Replay(file)) => (file, false),
        _ => return Ok(()),
    };
    let ranks = spec.ranks;
    let failed = |why: String| {
        let way = if records { "record" } else { "replay" };
        Failure::usage(format!("--compute {way}:{file}: {why}"))
    };
    let path = std::path::absolute(file).map_err(|why| failed(why.to_string()))?;
    if records {
        let about = About { command: command.into(), ranks };
        recording::create(&path, &about).map_err(|why| failed(why.to_string()))?;
    } else {
        let about = recording::check(&path).map_err(|why| failed(why.to_string()))?;
        if about.ranks != ranks {
            let of = about.command;
            return Err(failed(format!("it was recorded of {} ranks ({of}), and this job has {ranks}", about.ranks)));
        }
    }
    let path = path.to_str().ok_or_else(|| failed("the name of its directory is not UTF-8".into()))?;
    for app in &mut spec.apps {
        app.env.retain(|(name, _)| name != env::COMPUTATION);
        app.env.push((env::COMPUTATION.into(), path.into()));
    }
    Ok(())
}

/// Ranks that are looked at, and named.
const MOST_NAMED: usize = 4;

/// Why virtual time cannot go on: where these spin.
pub fn held_up(ranks: &[SpinningRank], seconds: u64) -> String {
    let mut names = Names::default();
    let mut place = |rank: &SpinningRank| {
        let threads = stack::stacks(rank.pid, &mut names, true).unwrap_or_default();
        // The one that has used the CPU most, if there are several.
        let spinning = threads.iter().max_by_key(|thread| cpu_ticks(rank.pid, thread.tid));
        let frame = spinning.and_then(|thread| thread.folded.first());
        frame.map_or(format!("rank {}", rank.rank), |place| {
            format!("rank {} in {} ({})", rank.rank, escape::word(&place.function), escape::word(&place.at))
        })
    };
    let mut list: Vec<String> = ranks.iter().take(MOST_NAMED).map(&mut place).collect();
    if let Some(more) = ranks.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        list.push(format!("{more} more"));
    }
    let (who, spin) = match list.split_last() {
        Some((last, [])) => (last.clone(), "spins"),
        Some((last, others)) => (format!("{} and {last}", others.join(", ")), "spin"),
        None => (String::new(), "spins"),
    };
    format!(
        "virtual time cannot go on: for {seconds} s of real time nothing else of the job has run, and {who} {spin} on memory outside MPI. What is waited for \
         there takes no virtual time, so nobody can tell when it would come: in a simulated job a rank must wait in MPI, or sleep. (--on-deadlock ignore lets it spin.)"
    )
}

/// CPU time of a thread.
fn cpu_ticks(pid: i32, tid: i32) -> u64 {
    let stat = procfs::process::Process::new(pid).and_then(|process| process.task_from_tid(tid)?.stat());
    stat.map_or(0, |stat| stat.utime + stat.stime)
}

/// A time as people write it.
pub fn show(seconds: f64) -> String {
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
        assert_eq!(compute_time("record:a:b"), Ok(ComputeTime::Record("a:b".into())));
        assert_eq!(compute_time("replay:f"), Ok(ComputeTime::Replay("f".into())));
        for rate in ["instructions:2.5G", "instructions:2500M", "instructions:2.5e9"] {
            assert_eq!(compute_time(rate), Ok(ComputeTime::Instructions(2_500_000_000)), "{rate}");
        }
        for wrong in [
            "",
            "none:1",
            "measured:",
            "measured:0",
            "measured:-1",
            "measured:nan",
            "record",
            "replay:",
            "instructions",
            "instructions:1",
            "instructions:G",
        ] {
            assert!(compute_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_told_in_a_fitting_unit() {
        assert_eq!([2.5, 0.0025, 2.5e-6, 0.0].map(show), ["2.500 s", "2.500 ms", "2.500 us", "0.000 us"]);
    }
}
