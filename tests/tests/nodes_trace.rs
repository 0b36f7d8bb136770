//! Traces of several nodes: of a job that has ended and of one that runs, with nodes that die, say nothing or are slow.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use vmpi_tests::job::{Job, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::{Nodes, find};
use vmpi_tests::traces::{built, file, near, read, report, seconds, seconds_on};

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
    let nodes = Nodes::beside_others("trace-late");
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
    let nodes = Nodes::beside_others("trace-half");
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
