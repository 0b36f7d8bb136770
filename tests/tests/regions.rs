//! The program's own regions (MPIX_Region_begin, MPI_Pcontrol): what --report, --json, --trace and the page tell of them.

use serde_json::Value;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;
use vmpi_tests::traces::{built, file, read, report};

fn run(mode: &str, flags: &[&str]) -> Outcome {
    let binary = built("regions.c");
    let run = Vmpirun::new("regions").args(["-n", "4", "-V", "2"]).args(flags);
    let outcome = run.arg(binary).arg(mode).run();
    assert!(outcome.code == 0 && outcome.stdout.contains("regions done"), "{mode} {flags:?}: {outcome:?}");
    outcome
}

/// A region in a report.
fn region<'a>(report: &'a Value, name: &str) -> &'a Value {
    let regions = report["regions"].as_array().expect("regions");
    let found = regions.iter().find(|region| region["name"] == name);
    found.unwrap_or_else(|| panic!("no region {name} in {:?}", regions.iter().map(|r| &r["name"]).collect::<Vec<_>>()))
}

fn number(value: &Value, what: &str) -> f64 {
    value[what].as_f64().unwrap_or_else(|| panic!("no {what} in {value}"))
}

#[test]
fn a_report_tells_how_long_ranks_were_where() {
    let outcome = run("plain", &["--json", "--report"]);
    let report = report(&outcome);
    let set_up = region(&report, "set up");
    assert_eq!((number(set_up, "ranks"), number(set_up, "entered")), (4.0, 4.0), "{set_up}");
    assert!(number(set_up, "min_s") >= 0.02 && number(set_up, "max_s") >= number(set_up, "min_s"), "{set_up}");
    let (solve, exchange) = (region(&report, "solve"), region(&report, "exchange"));
    assert_eq!(number(solve, "entered"), 40.0);
    // Rank 0 works for 100 ms, and all wait for it; who shares its core begins a round later.
    assert!(number(solve, "min_s") >= 0.08, "{solve}");
    // Outer regions hold inner ones, and in the inner one there is little but waiting.
    assert!(number(exchange, "sum_s") < number(solve, "sum_s"), "{solve} {exchange}");
    let waits = number(exchange, "wait_s") + number(exchange, "ready_s");
    assert!(waits > 0.5 * number(exchange, "sum_s"), "{exchange}");
    assert_eq!(number(region(&report, "region 7"), "entered"), 4.0);
    let line = outcome.stderr.lines().find(|line| line.starts_with("solve ")).expect("a line in words");
    assert_eq!(line.split_whitespace().nth(2), Some("40"), "{line}");
    assert!(!outcome.stderr.contains("never ended"), "{}", outcome.stderr);
    // Nobody asks, nobody is told; and a program without regions has no table of them.
    assert!(!run("plain", &[]).stderr.contains("REGION"));
    let without = run("none", &["--json", "--report"]);
    assert!(!without.stderr.contains("REGION") && report_of(&without)["regions"].is_null(), "{without:?}");
}

fn report_of(outcome: &Outcome) -> Value {
    report(outcome)
}

#[test]
fn other_faces_have_them_too() {
    for mpi in [Mpi::Openmpi, Mpi::Standard] {
        let binary = {
            let _turn = Turn::take();
            program("regions.c", mpi)
        };
        let outcome = Vmpirun::new("regions-face").args(["-n", "2", "--json"]).arg(binary).arg("plain").run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        assert_eq!(number(region(&report(&outcome), "solve"), "entered"), 20.0);
    }
}

/// Whatever a program does, it goes on, and nothing else is lost.
#[test]
fn bad_use_harms_nobody() {
    let path = file("odd.pftrace");
    let outcome = run("odd", &["--json", "--report", "--trace", path.to_str().expect("UTF-8")]);
    let report = report(&outcome);
    let names: Vec<&str> =
        report["regions"].as_array().expect("regions").iter().filter_map(|region| region["name"].as_str()).collect();
    assert!(!names.contains(&"early") && !names.contains(&"late"), "{names:?}");
    assert_eq!(names.len(), 128, "as many as there is room for, and the others: {names:?}");
    let (open, stray) = (region(&report, "never ended"), region(&report, "never begun"));
    assert_eq!((number(open, "open"), number(open, "entered")), (4.0, 5.0), "{open}");
    assert_eq!((number(stray, "strays"), number(stray, "entered")), (4.0, 0.0), "{stray}");
    assert_eq!(number(region(&report, "deep"), "entered"), 20_000.0);
    assert_eq!(number(region(&report, "shared"), "entered"), 8000.0);
    assert_eq!(number(region(&report, "thread 3"), "entered"), 2000.0);
    assert!(number(region(&report, "(other regions)"), "entered") > 3000.0);
    assert_eq!(names.iter().filter(|name| name.starts_with("nnnn") && name.len() == 96).count(), 2, "{names:?}");
    assert!(names.contains(&"?[31m\u{fffd}?") && names.contains(&""), "{names:?}");
    for sentence in
        ["never ended, told until MPI_Finalize: `never ended` (4 ranks)", "left out: `never begun` (4 times)"]
    {
        assert!(outcome.stderr.contains(sentence), "{}", outcome.stderr);
    }
    assert!(outcome.stderr.contains("regions of 4 ranks began and did not end"), "{}", outcome.stderr);
    let trace = read(&path);
    let own = &trace["regions"]["rank 0"];
    assert_eq!(
        (own["deep"][0].as_u64(), own["a"][0].as_u64(), own["b"][0].as_u64()),
        (Some(1), Some(1), Some(1)),
        "{own}"
    );
    assert_eq!(own["thread 2"][0].as_u64(), Some(500), "{own}");
    assert!(own["never begun"].is_null() && own["never ended"][0] == 1, "{own}");
    assert!(trace["lost"].as_object().is_some_and(serde_json::Map::is_empty), "{}", trace["lost"]);
}

/// A thread that may not call MPI has its regions, and waits for nobody who is inside it.
#[test]
fn threads_that_may_not_call_mpi_have_regions() {
    let path = file("funneled.pftrace");
    let outcome = run("funneled", &["--json", "--trace", path.to_str().expect("UTF-8")]);
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    let report = report(&outcome);
    for name in ["thread 0", "shared"] {
        assert_eq!(number(region(&report, name), "entered"), 2000.0, "{name}");
    }
    let trace = read(&path);
    assert_eq!(trace["regions"]["rank 2"]["main"][0].as_u64(), Some(1), "{}", trace["regions"]);
}

#[test]
fn a_trace_has_rows_of_regions() {
    let path = file("regions.pftrace");
    let outcome = run("plain", &["--json", "--trace", path.to_str().expect("UTF-8")]);
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    let (trace, report) = (read(&path), report(&outcome));
    for (name, times) in [("set up", 1), ("solve", 10), ("exchange", 10), ("region 7", 1)] {
        let of_rank = |rank: u32| &trace["regions"][&format!("rank {rank}")][name];
        assert_eq!(of_rank(3)[0].as_u64(), Some(times), "{name}: {}", trace["regions"]);
        let sum: f64 = (0..4).map(|rank| of_rank(rank)[1].as_f64().expect("a time") * 1e-9).sum();
        let told = number(region(&report, name), "sum_s");
        assert!((sum - told).abs() < 0.001 + 0.01 * told, "{name}: {sum} in the trace, {told} in the report");
    }
    let page = file("regions.html");
    let outcome = run("plain", &["--report-html", page.to_str().expect("UTF-8")]);
    assert!(outcome.stderr.is_empty(), "{outcome:?}");
    let text = std::fs::read_to_string(&page).expect("it is written");
    assert!(text.contains("\"region_names\":[") && text.contains("\"name\":\"exchange\""), "the page has them");
    let _ = std::fs::remove_file(page);
}

/// While the program wants nothing recorded nothing is, and what was around that is whole.
#[test]
fn the_program_stops_the_recording_and_lets_it_go_on() {
    let path = file("levels.pftrace");
    let outcome = run("levels", &["--json", "--trace", path.to_str().expect("UTF-8")]);
    assert!(outcome.stderr.contains("4 ranks wanted nothing recorded (MPI_Pcontrol) for up to "), "{outcome:?}");
    // What ended while nothing was recorded did end.
    assert!(!outcome.stderr.contains("did not end"), "{outcome:?}");
    let (trace, report) = (read(&path), report(&outcome));
    for rank in 0..4 {
        let pair = format!("{rank} {}", (rank + 1) % 4);
        let messages = trace["pairs"][&pair].as_u64().unwrap_or(0);
        // The neighbour may have stopped, or gone on, while some were under way.
        assert!((1..=10).contains(&messages), "{pair}: {messages}: {}", trace["pairs"]);
        let around = &trace["regions"][&format!("rank {rank}")]["around"];
        assert_eq!(around[0].as_u64(), Some(1), "{around}");
        // Each rank worked for 60 ms meanwhile, of which the trace has nothing.
        let told = vmpi_tests::traces::seconds(&trace, "ranks", &format!("rank {rank}"), "RUNNING");
        let ran = report["rank_list"][rank]["rtime_s"].as_f64().expect("a time");
        assert!(told + 0.055 < ran, "rank {rank}: {told} s of {ran} s");
    }
    assert_eq!(report["regions"].as_array().map(Vec::len), Some(1), "{}", report["regions"]);
}

/// What lies behind the level is a name only where the user says so, and then only if it is one.
#[test]
fn names_of_pcontrol_are_asked_for() {
    let with = report(&run("named", &["--json", "--pcontrol", "regions"]));
    let names: Vec<&Value> =
        with["regions"].as_array().expect("regions").iter().map(|region| &region["name"]).collect();
    assert_eq!(names, ["named"]);
    assert_eq!(number(region(&with, "named"), "entered"), 4.0);
    assert!(report(&run("named", &["--json"]))["regions"].is_null());
    let binary = built("regions.c");
    let refused = Vmpirun::new("regions-refused").args(["-n", "1", "--pcontrol", "ipm"]).arg(binary).run();
    assert!(
        refused.code == 2 && refused.stderr.contains("levels") && refused.stderr.contains("regions"),
        "{refused:?}"
    );
}

/// Regions of all nodes are told together, and those that a node has recorded are in the trace.
#[test]
fn several_nodes_tell_of_their_regions() {
    let binary = built("regions.c");
    let nodes = Nodes::new("regions");
    let path = file("regions-nodes.pftrace");
    let run = nodes.vmpirun("regions-nodes").args(["-n", "4", "-V", "2", "--json", "--trace"]).arg(&path);
    let outcome = run.arg(binary).arg("plain").run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let report = report(&outcome);
    for (name, entered) in [("set up", 4.0), ("solve", 40.0), ("exchange", 40.0), ("region 7", 4.0)] {
        let told = region(&report, name);
        assert_eq!((number(told, "ranks"), number(told, "entered")), (4.0, entered), "{told}");
        assert!(
            number(told, "min_s") <= number(told, "sum_s") / 4.0
                && number(told, "max_s") >= number(told, "sum_s") / 4.0
        );
    }
    let trace = read(&path);
    for rank in 0..4 {
        assert_eq!(trace["regions"][format!("rank {rank}")]["solve"][0].as_u64(), Some(10), "{}", trace["regions"]);
    }
}

/// A job that runs shows its regions, and what is recorded of it for a while begins and ends in the middle of some.
#[test]
fn a_running_job_is_looked_at() {
    let binary = built("regions.c");
    let run = Vmpirun::new("regions-running").args(["-n", "2", "-V", "2", "--report"]).arg(binary).arg("forever");
    let job = run.deadline(Duration::from_secs(120)).start();
    let shown = || serde_json::from_str::<Value>(&job.vmpictl(&["show", "1", "--json"]).stdout).unwrap_or_default();
    let counts = |name: &str| -> [u64; 2] {
        let report = shown();
        let told =
            report["regions"].as_array().and_then(|all| all.iter().find(|region| region["name"] == name).cloned());
        ["entered", "open"].map(|what| told.as_ref().and_then(|told| told[what].as_u64()).unwrap_or(0))
    };
    let up = eventually(Duration::from_secs(60), || counts("outer") == [2, 2] && counts("inner")[0] >= 2);
    assert!(up, "{}", shown());
    let path = file("running.pftrace");
    let name = path.to_str().expect("UTF-8");
    assert_eq!(job.vmpictl(&["trace", "1", "start"]).code, 0);
    // However busy the machine is.
    let mut told = Value::Null;
    let enough = eventually(Duration::from_secs(60), || {
        let exported = job.vmpictl(&["trace", "1", "export", name]);
        assert!(exported.code == 0 && exported.stderr.is_empty(), "what goes on is no mistake: {exported:?}");
        told = read(&path)["regions"]["rank 1"].clone();
        // The outer one began before.
        told["outer"][0] == 1 && told["inner"][0].as_u64() >= Some(2)
    });
    assert!(enough, "{told}");
    assert_eq!(job.vmpictl(&["kill", "1"]).code, 0);
    assert_eq!(job.finish().code, 143);
}

/// Fortran's names are as long as they are written, without the blanks behind them.
#[test]
fn fortran_has_them() {
    let binary = {
        let _turn = Turn::take();
        program("regions.f90", Mpi::Standard)
    };
    let outcome = Vmpirun::new("regions-fortran").args(["-n", "2", "--json"]).arg(binary).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(number(region(&report(&outcome), "fortran part"), "entered"), 6.0);
}
