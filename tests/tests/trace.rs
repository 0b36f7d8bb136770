//! Traces, read with the schema of the format's makers (tests/data/trace_check.py holds each to what must be true of all), beside what
//! the clocks and counters say of the same run; and the page about a run, as a browser sees it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::{Nodes, find};
use vmpi_tests::place::{Turn, room, top, venv_perfetto};

fn built(name: &str) -> PathBuf {
    let _turn = Turn::take();
    program(name, Mpi::Mpich)
}

/// A file of this test's own; what an earlier run left there is gone.
fn file(name: &str) -> PathBuf {
    let path = room("trace").join(format!("{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

/// What is in a trace that is as it must be.
fn read(path: &Path) -> Value {
    let script = top().join("tests/data/trace_check.py");
    let output = Command::new(venv_perfetto().join("bin/python")).arg(script).arg(path).output().expect("python runs");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let _ = std::fs::remove_file(path);
    serde_json::from_slice(&output.stdout).expect("the script prints JSON")
}

/// Seconds that a track spent in a category.
fn seconds(trace: &Value, group: &str, begin: &str, category: &str) -> f64 {
    seconds_on(trace, group, begin, "", category)
}

/// Likewise of a track whose name ends so.
fn seconds_on(trace: &Value, group: &str, begin: &str, end: &str, category: &str) -> f64 {
    let tracks = trace["tracks"].as_object().expect("tracks");
    let label = format!("{group}: {begin} ");
    let track = tracks.iter().find(|(name, _)| name.starts_with(&label) && name.ends_with(end));
    let (_, sums) = track.unwrap_or_else(|| panic!("no track {label} in {tracks:?}"));
    sums[category].as_f64().unwrap_or(0.0) * 1e-9
}

/// The job's report, from the end of standard output.
fn report(outcome: &Outcome) -> Value {
    let json = outcome.stdout.find("{").expect("JSON behind the output");
    let document: Value = serde_json::from_str(&outcome.stdout[json..]).expect("JSON");
    document["report"].clone()
}

/// Each clock is one sum over a track: off by what is rounded, and by what the last stretch goes on for after the look at the clocks.
fn near(what: &str, trace: f64, clock: f64) {
    assert!((trace - clock).abs() < 0.002 + 0.01 * clock, "{what}: {trace} s in the trace, {clock} s by the clock");
}

/// A program's trace and report, and what it wrote to stderr.
fn traced(name: &str, ranks: u32, flags: &[&str], args: &[String]) -> (Value, Value, String) {
    let binary = built(name);
    let path = file("whole.pftrace");
    let run = Vmpirun::new("trace").args(["-n", &ranks.to_string(), "--json", "--trace"]).arg(&path).args(flags);
    let outcome = run.arg(binary).args(args).run();
    assert_eq!(outcome.code, 0, "{flags:?}: {outcome:?}");
    (read(&path), report(&outcome), outcome.stderr)
}

/// What a trace says of how long cores and ranks did what is what their clocks say.
fn adds_up(flags: &[&str], trace: &Value, report: &Value) {
    let number = |value: &Value| value.as_f64().expect("a number");
    for core in report["cores"].as_array().expect("cores").iter().enumerate() {
        let (at, core) = core;
        let of = |category: &str| seconds(trace, "cores", &format!("core {at}"), category);
        near(&format!("{flags:?}: core {at} ran"), of("running"), number(&core["running_s"]));
        near(&format!("{flags:?}: core {at} handed over"), of("hand-off"), number(&core["handoff_s"]));
        near(&format!("{flags:?}: core {at} was idle"), of("idle"), number(&core["idle_s"]));
    }
    for (at, rank) in report["rank_list"].as_array().expect("ranks").iter().enumerate() {
        let of = |category: &str| seconds(trace, "ranks", &format!("rank {at}"), category);
        near(&format!("{flags:?}: rank {at} ran"), of("RUNNING"), number(&rank["rtime_s"]));
        near(&format!("{flags:?}: rank {at} was ready"), of("READY"), number(&rank["ready_s"]));
        near(&format!("{flags:?}: rank {at} waited"), of("SUSPENDED"), number(&rank["wait_s"]));
        near(&format!("{flags:?}: rank {at} was away"), of("AWAY"), number(&rank["away_s"]));
        // The clock is told as it stood when the rank got its core, so its last value lacks nothing that the slices have.
        let clock = trace["counters"].as_object().expect("counters").iter();
        let own = format!("clocks: rank {at}: process-POV");
        let clock = clock.filter(|(name, _)| name.starts_with(&own)).map(|(_, ends)| number(&ends[1]) * 1e-9).next();
        near(&format!("{flags:?}: rank {at}'s clock"), clock.expect("a counter track"), number(&rank["rtime_s"]));
    }
}

fn agrees(flags: &[&str], ranks: u32, rounds: u32, moves: bool) {
    let (trace, report, stderr) = traced("traced.c", ranks, flags, &[rounds.to_string(), "20000".into()]);
    assert!(stderr.is_empty(), "{flags:?}: {stderr}");
    adds_up(flags, &trace, &report);
    // Every message of the program, with both ends.
    for rank in 0..ranks {
        let pair = format!("{rank} {}", (rank + 1) % ranks);
        assert_eq!(trace["pairs"][&pair].as_u64(), Some(u64::from(rounds)), "{flags:?}: {pair}: {}", trace["pairs"]);
    }
    assert!(trace["lost"].as_object().is_some_and(serde_json::Map::is_empty), "{flags:?}: {}", trace["lost"]);
    let names = trace["names"].to_string();
    assert!(names.contains("SUSPENDED in MPI_Recv") && names.contains("rank 0"), "{flags:?}: {names}");
    let moved = report["cores"].as_array().expect("cores").iter().any(|core| core["moves"].as_u64() > Some(0));
    assert!(!moved || moves, "{flags:?}: ranks moved");
}

#[test]
fn a_trace_adds_up_to_the_clocks() {
    agrees(&["-V", "3"], 6, 200, true);
    agrees(&["-V", "1"], 2, 200, false);
    agrees(&["-V", "2", "--balance", "none", "--policy", "follow"], 4, 100, false);
    agrees(&["-V", "4", "--cores", "0"], 4, 100, false);
    agrees(&["-V", "3", "--enable-recovery"], 5, 60, false);
}

/// One loses its core, computes beside another one, and is given a core while it does (`strays.c` says of which it ran longer).
#[test]
fn cores_given_outside_mpi_are_told() {
    for (ranks, balance) in [(3, "rescue"), (2, "none")] {
        let flags = ["-V", "2", "--quantum", "50", "--balance", balance];
        let (trace, report, _) = traced("strays.c", ranks, &flags, &[]);
        adds_up(&flags, &trace, &report);
        let list = report["rank_list"].as_array().expect("ranks");
        let seconds = |rank: &Value, what: &str| rank[what].as_f64().expect("a time");
        let away = list.iter().map(|rank| seconds(rank, "away_s")).fold(0.0, f64::max);
        assert!(away >= 0.05, "{flags:?}: no rank was away for longer than {away} s");
        // All but the last compute for long: with a core for most of the time, however busy the machine is.
        for rank in &list[..list.len() - 1] {
            let (away, ran) = (seconds(rank, "away_s"), seconds(rank, "rtime_s"));
            assert!(away < ran, "{flags:?}: rank {} was away for {away} s and ran for {ran} s", rank["rank"]);
        }
    }
}

#[test]
fn ranks_that_move_are_in_one_place() {
    for _ in 0..3 {
        agrees(&["-V", "4", "--balance", "steal"], 8, 150, true);
        agrees(&["-V", "4", "--balance", "refine"], 8, 150, true);
    }
}

#[test]
fn a_running_job_is_traced_for_a_while() {
    let binary = built("traced.c");
    let job = Vmpirun::new("trace-while")
        .args(["-n", "4", "-V", "2"])
        .arg(binary)
        .args(["100000000", "200000"])
        .deadline(Duration::from_secs(300))
        .start();
    let up = eventually(Duration::from_secs(30), || {
        job.vmpictl(&["ps", "--ranks"]).stdout.lines().filter(|line| line.contains("RUNNING")).count() >= 2
    });
    assert!(up, "{:?}", job.vmpictl(&["ps", "--ranks"]));
    let path = file("while.pftrace");
    let name = path.to_str().expect("UTF-8");
    let early = job.vmpictl(&["trace", "1", "export", name]);
    assert!(early.code == 1 && early.stderr.contains("has not been traced"), "{early:?}");
    for again in [false, true] {
        let started = job.vmpictl(&["trace", "1", "start"]);
        assert_eq!(started.code, 0, "{again}: {started:?}");
        assert_eq!(job.vmpictl(&["trace", "1", "start"]).code, 1, "twice");
        std::thread::sleep(Duration::from_millis(300));
        // While it goes on, and when it has been stopped.
        for stop in [false, true] {
            if stop {
                assert_eq!(job.vmpictl(&["trace", "1", "stop"]).code, 0);
                std::thread::sleep(Duration::from_millis(200));
            }
            let exported = job.vmpictl(&["trace", "1", "export", name, "--json"]);
            assert!(exported.code == 0 && exported.stderr.is_empty(), "{exported:?}");
            let told: Value = serde_json::from_str(&exported.stdout).expect("JSON");
            let length = told["length_s"].as_f64().expect("seconds");
            assert!(length >= 0.3, "{told}");
            let trace = read(&path);
            assert!(trace["flows"].as_u64() > Some(10), "{}", trace["flows"]);
            for rank in 0..4 {
                let sum: f64 = ["RUNNING", "READY", "SUSPENDED", "AWAY"]
                    .map(|category| seconds(&trace, "ranks", &format!("rank {rank}"), category))
                    .iter()
                    .sum();
                near(&format!("rank {rank} is somewhere all the time"), sum, length);
            }
        }
        assert_eq!(job.vmpictl(&["trace", "1", "stop"]).code, 1, "it was stopped");
    }
    assert_eq!(job.vmpictl(&["kill", "1"]).code, 0);
    assert_eq!(job.finish().code, 143);
}

#[test]
fn what_was_overwritten_is_told() {
    let binary = built("traced.c");
    let path = file("long.pftrace");
    let run = Vmpirun::new("trace-long").args(["-n", "2", "-V", "2", "--cores", "0", "--trace"]).arg(&path);
    let outcome = run.arg(binary).args(["70000", "0"]).deadline(Duration::from_secs(120)).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert!(outcome.stderr.contains("of the oldest events of 2 ranks were overwritten"), "{outcome:?}");
    let trace = read(&path);
    for rank in ["ranks: rank 0 ", "ranks: rank 1 "] {
        let lost = trace["lost"].as_object().expect("lost").iter().find(|(name, _)| name.starts_with(rank));
        assert!(lost.is_some_and(|(_, events)| events.as_u64() > Some(40_000)), "{rank}: {}", trace["lost"]);
    }
    assert!(trace["flows"].as_u64() > Some(30_000), "{}", trace["flows"]);
}

/// Whatever a rank writes over the records, the launcher reads them and ends as it would without.
#[test]
fn damaged_records_are_survived() {
    let binary = built("scribble.c");
    for (how, seed) in [("noise", "1"), ("ones", "2"), ("small", "3"), ("zeros", "4")] {
        let path = file("damaged.pftrace");
        let run = Vmpirun::new("trace-scribble").args(["-n", "4", "-V", "2", "--timeout", "5", "--trace"]).arg(&path);
        let outcome = run.arg(&binary).args([how, seed]).run();
        assert!(!outcome.stderr.contains("panicked at tools"), "{how}: {outcome:?}");
        // Its end is the job's own; the trace is there all the same.
        assert!(path.exists(), "{how}: {outcome:?}");
        let _ = std::fs::remove_file(path);
    }
}

#[test]
fn pictures_are_drawn() {
    let binary = built("traced.c");
    for (ending, magic) in [("svg", &b"<svg"[..]), ("png", b"\x89PNG"), ("html", b"<!DOCTYPE html>")] {
        let path = file(&format!("picture.{ending}"));
        let run = Vmpirun::new("trace-picture").args(["-n", "4", "-V", "2", "--trace"]).arg(&path);
        let outcome = run.arg(&binary).args(["50", "1000"]).run();
        assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{outcome:?}");
        let bytes = std::fs::read(&path).expect("it is written");
        assert!(bytes.starts_with(magic) && bytes.len() > 2000, "{ending}: {} bytes", bytes.len());
        let _ = std::fs::remove_file(path);
    }
}

/// On two nodes: cores and ranks are named with them and add up to the clocks, each message has both its ends and none goes back in time
/// (`trace_check.py`), and clocks that are one are found to be one, within what is said.
#[test]
fn nodes_are_on_one_axis() {
    let (binary, nodes) = (built("traced.c"), Nodes::new("trace"));
    for (ranks, rounds, flags) in [(4u32, 200u32, &["--map-by", "node"][..]), (6, 100, &["-V", "3"]), (2, 300, &[])] {
        let path = file("nodes.pftrace");
        let run = nodes.vmpirun("trace-nodes").args(["-n", &ranks.to_string(), "--json", "--trace"]).arg(&path);
        let run = run.args(flags).arg(&binary).args([rounds.to_string(), "20000".into()]);
        let outcome = run.deadline(Duration::from_secs(120)).run();
        assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{flags:?}: {outcome:?}");
        let (trace, report) = (read(&path), report(&outcome));
        let number = |value: &Value| value.as_f64().expect("a number");
        let cores = report["cores"].as_array().expect("cores");
        let mut of_node = Vec::new();
        for core in cores {
            let node = core["node"].as_str().expect("a node");
            let at = of_node.iter().filter(|known| **known == node).count();
            of_node.push(node);
            let of = |what: &str| seconds_on(&trace, "cores", &format!("core {at}"), &format!(", node {node})"), what);
            near(&format!("{flags:?}: core {at} of {node} ran"), of("running"), number(&core["running_s"]));
            near(&format!("{flags:?}: core {at} of {node} handed over"), of("hand-off"), number(&core["handoff_s"]));
            near(&format!("{flags:?}: core {at} of {node} was idle"), of("idle"), number(&core["idle_s"]));
        }
        assert_eq!(of_node, [nodes.a.as_str(), &nodes.b]);
        for (at, rank) in report["rank_list"].as_array().expect("ranks").iter().enumerate() {
            let of = |category: &str| seconds(&trace, "ranks", &format!("rank {at}"), category);
            near(&format!("{flags:?}: rank {at} ran"), of("RUNNING"), number(&rank["rtime_s"]));
            near(&format!("{flags:?}: rank {at} was ready"), of("READY"), number(&rank["ready_s"]));
            near(&format!("{flags:?}: rank {at} waited"), of("SUSPENDED"), number(&rank["wait_s"]));
        }
        for rank in 0..ranks {
            let pair = format!("{rank} {}", (rank + 1) % ranks);
            assert_eq!(trace["pairs"][&pair].as_u64(), Some(u64::from(rounds)), "{flags:?}: {}", trace["pairs"]);
        }
        for node in [&nodes.a, &nodes.b] {
            let told = &trace["nodes"][format!("node {node}")];
            let of = |what: &str| told[what].as_i64().unwrap_or_else(|| panic!("{what} in {}", trace["nodes"]));
            let (offset, within) = (of("clock offset (ns)"), of("uncertainty (ns)"));
            assert!(offset.abs() <= within && within > 0, "{flags:?}: the nodes have one clock: {}", trace["nodes"]);
            let tracks = trace["tracks"].as_object().expect("tracks").keys();
            let here = tracks.filter(|name| name.ends_with(&format!(", node {node})"))).count();
            assert_eq!(here as u32, 1 + ranks / 2, "{flags:?}: {}", trace["tracks"]);
        }
    }
}

/// Pictures and the page, counters, and what was overwritten on which node.
#[test]
fn all_forms_are_of_all_nodes() {
    let (binary, nodes) = (built("traced.c"), Nodes::new("trace-forms"));
    for (flag, ending, magic) in [
        ("--trace", "svg", &b"<svg"[..]),
        ("--trace", "png", b"\x89PNG"),
        ("--trace", "html", b"<!DOCTYPE html>"),
        ("--report-html", "html", b"<!DOCTYPE html>"),
    ] {
        let path = file(&format!("nodes.{ending}"));
        let run = nodes.vmpirun("trace-forms").args(["-n", "4", "-V", "2", flag]).arg(&path);
        let outcome = run.arg(&binary).args(["30", "1000"]).deadline(Duration::from_secs(60)).run();
        assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{flag} {ending}: {outcome:?}");
        let bytes = std::fs::read(&path).expect("it is written");
        assert!(bytes.starts_with(magic) && bytes.len() > 2000, "{flag} {ending}: {} bytes", bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        assert!(ending == "png" || text.contains("the clocks of 2 nodes are on one axis within"), "{flag} {ending}");
        assert!(
            ending != "html" || [&nodes.a, &nodes.b].iter().all(|node| text.contains(&format!("\"node\":\"{node}\"")))
        );
        let _ = std::fs::remove_file(path);
    }
    let path = file("nodes-long.pftrace");
    let run = nodes.vmpirun("trace-long").args(["-n", "2", "--counters", "page-faults", "--trace"]).arg(&path);
    let outcome = run.arg(&binary).args(["60000", "0"]).deadline(Duration::from_secs(200)).run();
    if outcome.code == 2 {
        assert!(outcome.stderr.contains("cannot be counted on this machine"), "{outcome:?}");
        return;
    }
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let trace = read(&path);
    for node in [&nodes.a, &nodes.b] {
        let told = outcome.stderr.split("node ").find(|part| part.starts_with(node.as_str()));
        assert!(
            told.is_some_and(|told| told.contains("of the oldest events of 1 ranks were overwritten")),
            "{outcome:?}"
        );
        let counted = &trace["counters"][format!("clocks: core 0 of node {node}: page-faults")];
        assert!(counted[1].as_u64() > Some(0), "{}", trace["counters"]);
    }
}

/// A node dies: the job ends, and the trace has what the other one recorded, and says which is missing.
#[test]
fn a_node_that_dies_is_missing_by_its_name() {
    let (binary, nodes) = (built("traced.c"), Nodes::new("trace-dead"));
    let path = file("dead.pftrace");
    let run = nodes.vmpirun("trace-dead").args(["-n", "4", "-V", "2", "--trace"]).arg(&path);
    let job = run.arg(&binary).args(["100000000", "20000"]).deadline(Duration::from_secs(120)).start();
    let running = || job.processes().iter().filter(|process| process.name.starts_with("traced")).count() == 4;
    assert!(eventually(Duration::from_secs(30), running), "{:?}", job.processes());
    std::thread::sleep(Duration::from_millis(500));
    let agent = find(&job.runtime_dir, &nodes.b, "--bootstrap")[0].pid;
    kill(Pid::from_raw(agent), Signal::SIGKILL).expect("it is there");
    let outcome = job.finish();
    assert!(
        outcome.code != 0 && outcome.stderr.contains(&format!("node {}: nothing of what was recorded", nodes.b)),
        "{outcome:?}"
    );
    let trace = read(&path);
    assert!(trace["flows"].as_u64() > Some(0), "{}", trace["flows"]);
    assert_eq!(trace["nodes"][format!("node {}", nodes.b)], "what was recorded here is missing", "{}", trace["nodes"]);
}

/// A job on both nodes whose ranks run.
fn on_both(name: &str, nodes: &Nodes) -> Job {
    let binary = built("traced.c");
    let run = nodes.vmpirun(name).args(["-n", "4", "-V", "2"]).arg(&binary).args(["100000000", "200000"]);
    let job = run.deadline(Duration::from_secs(120)).start();
    let running = || job.processes().iter().filter(|process| process.name.starts_with("traced")).count() == 4;
    assert!(eventually(Duration::from_secs(30), running), "{:?}", job.processes());
    job
}

/// From either node `vmpictl trace` is about both, while the job goes on.
#[test]
fn a_running_job_is_traced_on_all_nodes() {
    let nodes = Nodes::new("trace-all");
    let job = on_both("trace-all", &nodes);
    let path = file("all.pftrace");
    let name = path.to_str().expect("UTF-8");
    let ctl = |node: &str, args: &[&str]| nodes.vmpictl(&job.runtime_dir, node, args);
    let early = ctl(&nodes.b, &["trace", "1", "export", name]);
    assert!(early.code == 1 && early.stderr.contains("has not been traced"), "{early:?}");
    for (starts, asks) in [(&nodes.a, &nodes.b), (&nodes.b, &nodes.a)] {
        let started = ctl(starts, &["trace", "1", "start"]);
        assert_eq!(started.code, 0, "{started:?}");
        let twice = ctl(asks, &["trace", "1", "start"]);
        assert!(twice.code == 1 && twice.stderr.contains("is being traced already"), "{twice:?}");
        std::thread::sleep(Duration::from_millis(300));
        // While it goes on, and when it has been stopped.
        for stop in [false, true] {
            if stop {
                let stopped = ctl(asks, &["trace", "1", "stop"]);
                assert_eq!(stopped.code, 0, "{stopped:?}");
            }
            let exported = ctl(asks, &["trace", "1", "export", name, "--json"]);
            assert!(exported.code == 0 && exported.stderr.is_empty(), "{exported:?}");
            let told: Value = serde_json::from_str(&exported.stdout).expect("JSON");
            assert!(told["length_s"].as_f64() >= Some(0.3), "{told}");
            let trace = read(&path);
            for node in [&nodes.a, &nodes.b] {
                let tracks = trace["tracks"].as_object().expect("tracks").keys();
                let here = tracks.filter(|name| name.ends_with(&format!(", node {node})"))).count();
                assert_eq!(here, 3, "a core and two ranks: {}", trace["tracks"]);
                assert!(seconds_on(&trace, "cores", "core 0", &format!(", node {node})"), "running") > 0.01);
                let within = trace["nodes"][format!("node {node}")]["uncertainty (ns)"].as_i64();
                assert!(within > Some(0), "{}", trace["nodes"]);
            }
            // Of each rank to its right neighbour, two of whom are on the other node.
            for pair in ["0 1", "1 2", "2 3", "3 0"] {
                assert!(trace["pairs"][pair].as_u64() > Some(2), "{pair}: {}", trace["pairs"]);
            }
        }
        assert_eq!(ctl(starts, &["trace", "1", "stop"]).code, 1, "it was stopped");
    }
    let page = file("all.html");
    assert_eq!(ctl(&nodes.b, &["trace", "1", "export", page.to_str().expect("UTF-8")]).code, 0);
    let text = std::fs::read_to_string(&page).expect("it is written");
    assert!([&nodes.a, &nodes.b].iter().all(|node| text.contains(&format!("\"node\":\"{node}\""))));
    let _ = std::fs::remove_file(page);
    assert_eq!(ctl(&nodes.a, &["kill", "1"]).code, 0);
    assert_ne!(job.finish().code, 0);
}

/// A node's vmpid says nothing: the trace has what the others recorded, and the silent one is named. Then that node dies while it is asked.
#[test]
fn a_node_that_is_silent_is_missing_in_a_running_trace() {
    let nodes = Nodes::new("trace-late");
    let job = on_both("trace-late", &nodes);
    let path = file("late.pftrace");
    let name = path.to_str().expect("UTF-8");
    let runtime_dir = job.runtime_dir.clone();
    let ctl = |args: &[&str]| nodes.vmpictl(&runtime_dir, &nodes.a, args);
    assert_eq!(ctl(&["trace", "1", "start"]).code, 0);
    std::thread::sleep(Duration::from_millis(200));
    let daemons = find(&job.runtime_dir, &nodes.b, "--one-job");
    let daemon = daemons.iter().find(|daemon| daemons.iter().any(|keeper| keeper.pid == daemon.parent));
    let vmpid = Pid::from_raw(daemon.expect("daemon and keeper").pid);
    kill(vmpid, Signal::SIGSTOP).expect("it is there");
    let exported = ctl(&["trace", "1", "export", name]);
    kill(vmpid, Signal::SIGCONT).expect("it is there");
    let told = format!("node {}: nothing of what was recorded there is here: it has not answered", nodes.b);
    assert!(exported.code == 0 && exported.stderr.contains(&told), "{exported:?}");
    assert!(read(&path)["flows"].as_u64() > Some(0));
    // A late answer is not taken for that to the next question.
    let again = ctl(&["trace", "1", "export", name]);
    assert!(again.code == 0 && again.stderr.is_empty(), "{again:?}");
    read(&path);
    kill(vmpid, Signal::SIGSTOP).expect("it is there");
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ctl(&["trace", "1", "export", name]));
        std::thread::sleep(Duration::from_millis(300));
        kill(Pid::from_raw(find(&job.runtime_dir, &nodes.b, "--bootstrap")[0].pid), Signal::SIGKILL)
            .expect("it is there");
        kill(vmpid, Signal::SIGCONT).expect("it is there");
        asked.join().expect("no panic")
    });
    // Either is true: the rest of the job ends at once.
    let missing = format!("node {}: nothing of what was recorded there is here", nodes.b);
    assert!(
        if asked.code == 0 { asked.stderr.contains(&missing) } else { asked.stderr.contains("ended") },
        "{asked:?}"
    );
    let _ = std::fs::remove_file(path);
    assert_ne!(job.finish().code, 0);
}

/// A node does not answer: `vmpictl trace` says what holds where, and once it goes on again succeeds.
#[test]
fn a_trace_that_one_node_has_not_begun_can_be_begun() {
    let nodes = Nodes::new("trace-half");
    let job = on_both("trace-half", &nodes);
    let ctl = |what: &str| nodes.vmpictl(&job.runtime_dir, &nodes.a, &["trace", "1", what]);
    let daemons = find(&job.runtime_dir, &nodes.b, "--one-job");
    let daemon = daemons.iter().find(|daemon| daemons.iter().any(|keeper| keeper.pid == daemon.parent));
    let vmpid = Pid::from_raw(daemon.expect("daemon and keeper").pid);
    for (what, state, known) in
        [("start", "recording on", "being traced already"), ("stop", "not recording on", "any more")]
    {
        kill(vmpid, Signal::SIGSTOP).expect("it is there");
        let half = ctl(what);
        kill(vmpid, Signal::SIGCONT).expect("it is there");
        let told = format!(
            ": {state} {}; not known of node {}: it has not answered for 10 s; `vmpictl trace 1 ",
            nodes.a, nodes.b
        );
        assert!(half.code == 1 && half.stderr.contains(&told), "{half:?}");
        let again = ctl(what);
        assert!(again.code == 0 && again.stderr.is_empty(), "{again:?}");
        let twice = ctl(what);
        assert!(twice.code == 1 && twice.stderr.contains(known), "{twice:?}");
    }
    assert_eq!(nodes.vmpictl(&job.runtime_dir, &nodes.a, &["kill", "1"]).code, 0);
    assert_ne!(job.finish().code, 0);
}

/// A launcher that takes 200 kB a second on the way to a node, and says how much has gone, and had when the job's end went by.
const SLOW: &str = r#"#!/usr/bin/env python3
import os, subprocess, sys, time
child = subprocess.Popen(["ENTER", *sys.argv[1:]], stdin=subprocess.PIPE, bufsize=0)
gone, last = 0, b""
def tell(name):
    with open(name + ".new", "w") as file:
        file.write(str(gone))
    os.rename(name + ".new", name)
while data := os.read(0, 8192):
    time.sleep(len(data) / 200e3)
    try:
        child.stdin.write(data)
    except BrokenPipeError:
        break
    gone += len(data)
    tell("GONE")
    if b'"type":"cancel"' in last + data:
        tell("GONE-end")
    last = data[-20:]
child.stdin.close()
sys.exit(child.wait())
"#;

/// The user ends the job while a long trace goes to a tool on a slow way: that comes through before the trace.
#[test]
fn a_trace_on_its_way_does_not_hold_up_the_end() {
    let (binary, nodes) = (built("traced.c"), Nodes::new("trace-slow"));
    let (gone, script) = (file("gone"), file("slow"));
    let text = SLOW.replace("ENTER", &nodes.enter().display().to_string());
    std::fs::write(&script, text.replace("GONE", &gone.display().to_string())).expect("target/ is writable");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
    let run = Vmpirun::on_node("trace-slow", &nodes.enter(), &nodes.a);
    let run = run.args(["--host", &format!("{},{}", nodes.a, nodes.b), "--launcher-exec"]).arg(&script);
    let run = run.args(["-n", "4", "-V", "2"]).arg(&binary).args(["100000000", "2000"]);
    let job = run.deadline(Duration::from_secs(120)).start();
    let running = || job.processes().iter().filter(|process| process.name.starts_with("traced")).count() == 4;
    assert!(eventually(Duration::from_secs(30), running), "{:?}", job.processes());
    let ctl = |args: &[&str]| nodes.vmpictl(&job.runtime_dir, &nodes.b, args);
    assert_eq!(ctl(&["trace", "1", "start"]).code, 0);
    std::thread::sleep(Duration::from_secs(1));
    let count = |path: &Path| std::fs::read_to_string(path).map_or(0, |text| text.parse::<u64>().expect("a number"));
    let mut before = 0;
    let asked = std::thread::scope(|scope| {
        let asked = scope.spawn(|| ctl(&["trace", "1", "export", "/dev/null"]));
        assert!(eventually(Duration::from_secs(30), || count(&gone) > 400_000), "no trace goes by");
        before = count(&gone);
        kill(Pid::from_raw(job.pid()), Signal::SIGINT).expect("it is there");
        asked.join().expect("no panic")
    });
    assert!(asked.code == 1 && asked.stderr.contains("has ended meanwhile"), "{asked:?}");
    assert_eq!(job.finish().code, 130);
    let end = gone.with_file_name(format!("{}-end", gone.file_name().and_then(|name| name.to_str()).expect("UTF-8")));
    // Two pieces of 64 KiB were before it; and what had gone is told late.
    assert!(
        (before..before + 400_000).contains(&count(&end)),
        "the end came behind {} more bytes",
        count(&end) - before
    );
    [gone, end, script].iter().for_each(|path| drop(std::fs::remove_file(path)));
}

/// Events that the kernel itself counts are there on every machine that permits to count at all.
#[test]
fn counters_are_of_rank_and_core() {
    let binary = built("counters.c");
    let path = file("counters.pftrace");
    let refused = Vmpirun::new("counters").args(["-n", "2", "--counters", "nonsense"]).arg(&binary).run();
    assert!(refused.code == 2 && refused.stderr.contains("`nonsense` is no event"), "{refused:?}");
    let run = Vmpirun::new("counters").args(["-n", "4", "-V", "2", "--json", "--counters", "page-faults,task-clock"]);
    let outcome = run.arg("--trace").arg(&path).arg(&binary).run();
    if outcome.code == 2 {
        assert!(outcome.stderr.contains("cannot be counted on this machine"), "{outcome:?}");
        return;
    }
    assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{outcome:?}");
    let report = report(&outcome);
    assert_eq!(report["counters"], serde_json::json!(["page-faults", "task-clock"]));
    let of = |list: &str| -> Vec<u64> {
        report[list]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["counters"][0].as_u64().expect("a count"))
            .collect()
    };
    let (ranks, cores) = (of("rank_list"), of("cores"));
    // Rank r touches 1000 + 1000 r pages; libraries touch a few hundred more.
    for (rank, faults) in (0u64..).zip(&ranks) {
        let least = 1000 + 1000 * rank;
        assert!((least..least + 900).contains(faults), "rank {rank}: {ranks:?}");
    }
    assert_eq!(ranks.iter().sum::<u64>(), cores.iter().sum::<u64>(), "what ranks count is counted on cores: {cores:?}");
    let trace = read(&path);
    let last = |name: &str| trace["counters"][name][1].as_u64();
    assert_eq!(last("clocks: rank 3: page-faults"), Some(ranks[3]), "{}", trace["counters"]);
    assert_eq!(last("clocks: core 0: page-faults"), Some(cores[0]), "{}", trace["counters"]);
}

/// The page in a browser: without an error, and with all of its parts. Of the second tier: Chromium takes 350 MB.
#[test]
#[ignore = "second tier: needs Chromium"]
fn a_browser_shows_the_page() {
    let binary = built("traced.c");
    let path = file("page.html");
    let run = Vmpirun::new("page").args(["-n", "6", "-V", "3", "--report-html"]).arg(&path);
    let outcome = run.arg(binary).args(["100", "5000"]).run();
    assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{outcome:?}");
    let page = std::fs::read_to_string(&path).expect("it is written");
    for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(elsewhere), "the page needs a network: {elsewhere}");
    }
    let dom = |page: &Path| {
        let profile = room("trace").join(format!("{}-chromium", std::process::id()));
        let mut browser = Command::new("timeout");
        browser.args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
        browser.arg(format!("--user-data-dir={}", profile.display())).arg(format!("file://{}", page.display()));
        let output = browser.output().expect("timeout is there");
        let _ = std::fs::remove_dir_all(profile);
        assert!(output.status.success(), "is chromium installed? {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let shown = dom(&path);
    let body = shown.lines().find(|line| line.contains("<body")).expect("a body");
    assert!(body.contains("data-ready=\"8\"") && !body.contains("data-error"), "2 cores and 6 ranks: {body}");
    assert!(!body.contains("data-drawn=\"0\""), "{body}");
    for part in ["MPI_Recv", "MPI_Barrier", "<canvas id=\"timeline\"", "<canvas id=\"matrix\"", ", 6 ranks</title>"] {
        assert!(shown.contains(part), "{part} is missing");
    }
    // Six ranks' lines and the head in the table of clocks.
    let clocks = shown.split("<table id=\"clocks\">").nth(1).and_then(|rest| rest.split("</table>").next());
    assert_eq!(clocks.expect("a table of clocks").matches("<tr>").count(), 7);
    // It does notice errors.
    let broken = path.with_extension("broken.html");
    std::fs::write(&broken, page.replace("\"length\":", "\"lenght\":").replace("data.calls[", "nothing["))
        .expect("written");
    std::fs::write(&broken, page.replace("drawMatrix();\ndocument", "drawMatrix(); nothing();\ndocument"))
        .expect("written");
    assert!(dom(&broken).contains("data-error"), "an error that is not seen");
    let _ = (std::fs::remove_file(&path), std::fs::remove_file(&broken));
}
