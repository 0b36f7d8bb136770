//! Traces as the suites read them: with the schema of the format's makers (tests/data/trace_check.py holds each to what must be true of
//! all), and beside the clocks of the same run.

use crate::compile::{Mpi, program};
use crate::job::{Outcome, Vmpirun};
use crate::place::{Turn, room, top, venv_perfetto};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test program, built for MPICH.
pub fn built(name: &str) -> PathBuf {
    let _turn = Turn::take();
    program(name, Mpi::Mpich)
}

/// A file of this test's own; what an earlier run left there is gone.
pub fn file(name: &str) -> PathBuf {
    let path = room("trace").join(format!("{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// What is in a trace that is as it must be.
pub fn read(path: &Path) -> Value {
    let script = top().join("tests/data/trace_check.py");
    let output = Command::new(venv_perfetto().join("bin/python")).arg(script).arg(path).output().expect("python runs");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let _ = std::fs::remove_file(path);
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Seconds that a track spent in a category.
pub fn seconds(trace: &Value, group: &str, begin: &str, category: &str) -> f64 {
    seconds_on(trace, group, begin, "", category)
}

/// Likewise of a track whose name ends so.
pub fn seconds_on(trace: &Value, group: &str, begin: &str, end: &str, category: &str) -> f64 {
    let tracks = trace["tracks"].as_object().expect("tracks");
    let label = format!("{group}: {begin} ");
    let track = tracks.iter().find(|(name, _)| name.starts_with(&label) && name.ends_with(end));
    let (_, sums) = track.unwrap_or_else(|| panic!("no track {label} in {tracks:?}"));
    sums[category].as_f64().unwrap_or(0.0) * 1e-9
}

/// The job's report, from the end of standard output.
pub fn report(outcome: &Outcome) -> Value {
    let json = outcome.stdout.find("{").expect("JSON behind the output");
    let document: Value = serde_json::from_str(&outcome.stdout[json..]).expect("JSON");
    document["report"].clone()
}

/// Each clock is one sum over a track: off by what is rounded, and by what the last stretch goes on for after the look at the clocks.
pub fn near(what: &str, trace: f64, clock: f64) {
    assert!((trace - clock).abs() < 0.002 + 0.01 * clock, "{what}: {trace} s in the trace, {clock} s by the clock");
}

/// A program's trace and report, and what it wrote to stderr.
pub fn traced(name: &str, ranks: u32, flags: &[&str], args: &[String]) -> (Value, Value, String) {
    let binary = built(name);
    let path = file("whole.pftrace");
    let run = Vmpirun::new("trace").args(["-n", &ranks.to_string(), "--json", "--trace"]).arg(&path).args(flags);
    let outcome = run.arg(binary).args(args).run();
    assert_eq!(outcome.code, 0, "{flags:?}: {outcome:?}");
    (read(&path), report(&outcome), outcome.stderr)
}

/// What a trace says of how long cores and ranks did what is what their clocks say.
pub fn adds_up(flags: &[&str], trace: &Value, report: &Value) {
    let number = |value: &Value| value.as_f64().expect("a number");
    for core in report["cores"].as_array().expect("cores").iter().enumerate() {
        let (at, core) = core;
        let of = |category: &str| seconds(trace, "cores", &format!("core {at}"), category);
        near(&format!("{flags:?}: core {at} ran"), of("running"), number(&core["running_s"]));
        near(&format!("{flags:?}: core {at} handed over"), of("hand-off"), number(&core["handoff_s"]));
        near(&format!("{flags:?}: core {at} was idle"), of("idle"), number(&core["idle_s"]));
        near(&format!("{flags:?}: core {at} waited for starts"), of("starting"), number(&core["starting_s"]));
        near(&format!("{flags:?}: core {at} waited for ends"), of("ending"), number(&core["ending_s"]));
    }
    for (at, rank) in report["rank_list"].as_array().expect("ranks").iter().enumerate() {
        let of = |category: &str| seconds(trace, "ranks", &format!("rank {at}"), category);
        near(&format!("{flags:?}: rank {at} ran"), of("RUNNING"), number(&rank["rtime_s"]));
        near(&format!("{flags:?}: rank {at} was ready"), of("READY"), number(&rank["ready_s"]));
        near(&format!("{flags:?}: rank {at} waited"), of("SUSPENDED"), number(&rank["wait_s"]));
        near(&format!("{flags:?}: rank {at} was away"), of("AWAY"), number(&rank["away_s"]));
        near(&format!("{flags:?}: rank {at} started"), of("STARTING"), number(&rank["starting_s"]));
        near(&format!("{flags:?}: rank {at} ended"), of("ENDING"), number(&rank["ending_s"]));
        // The clock is told as it stood when the rank got its core, so its last value lacks nothing that the slices have.
        let clock = trace["counters"].as_object().expect("counters").iter();
        let own = format!("clocks: rank {at}: process-POV");
        let clock = clock.filter(|(name, _)| name.starts_with(&own)).map(|(_, ends)| number(&ends[1]) * 1e-9).next();
        near(&format!("{flags:?}: rank {at}'s clock"), clock.expect("a counter track"), number(&rank["rtime_s"]));
    }
}
