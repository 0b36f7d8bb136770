//! Traces, read with the schema of the format's makers (tests/data/trace_check.py holds each to what must be true of all), beside what
//! the clocks and counters say of the same run; and the page about a run, as a browser sees it.

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::job::Vmpirun;
use vmpi_tests::leftovers::eventually;
use vmpi_tests::place::{room, top};
use vmpi_tests::traces::{adds_up, built, file, near, read, report, seconds, traced};

/// A traced program's clocks and messages are all in the trace.
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

/// What a rank was in the middle of when the job ended is in the trace as it is in the clocks.
#[test]
fn a_wait_that_is_cut_off_is_in_the_trace() {
    let binary = built("edges.c");
    let path = file("cut.pftrace");
    let run = Vmpirun::new("cut").args(["-n", "4", "-V", "2", "--json", "--timeout", "1", "--trace"]).arg(&path);
    let outcome = run.arg(binary).args(["1000", "stay"]).run();
    assert_eq!(outcome.code, 124, "{outcome:?}");
    let (trace, report) = (read(&path), report(&outcome));
    for rank in 1..4 {
        let of = |category: &str| seconds(&trace, "ranks", &format!("rank {rank}"), category);
        assert!(of("SUSPENDED") > 0.5 && of("SUSPENDED") > 9.0 * of("RUNNING"), "rank {rank}: {trace}");
    }
    adds_up(&["cut"], &trace, &report);
}

/// From where in the program ranks waited, by file and line.
#[test]
fn the_page_names_the_calls_in_which_ranks_waited() {
    let source = std::fs::read_to_string(top().join("tests/programs/late.c")).expect("it is in the repository");
    let line = 1 + source.lines().position(|line| line.ends_with("/* here */")).expect("it is marked");
    let (binary, path) = (built("late.c"), file("sites.html"));
    let run = Vmpirun::new("sites").args(["-n", "4", "-V", "2", "--report-html"]).arg(&path);
    let outcome = run.arg(binary).arg("2500").run();
    assert!(outcome.code == 0 && outcome.stderr.is_empty(), "{outcome:?}");
    let page = std::fs::read_to_string(&path).expect("it is written");
    let (_, rest) = page.split_once("\"sites\":").expect("the page has them");
    let sites: Vec<Value> = serde_json::Deserializer::from_str(rest).into_iter().next().expect("a list").expect("JSON");
    let [site] = &sites[..] else { panic!("one call is waited in: {sites:?}") };
    assert_eq!(
        (&site["call"], &site["caller"], &site["ranks"]),
        (&"MPI_Recv".into(), &"wait_for_it".into(), &"1-3".into())
    );
    assert!(site["place"].as_str().is_some_and(|place| place.ends_with(&format!("late.c:{line}"))), "{site}");
    assert!(site["looks"].as_u64() > Some(0), "{site}");
}

/// The same in the report on the terminal.
#[test]
fn the_report_names_the_calls_in_which_ranks_waited() {
    let binary = built("late.c");
    let outcome = Vmpirun::new("sites").args(["-n", "4", "-V", "2", "--report"]).arg(binary).arg("2500").run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let (_, table) = outcome.stderr.split_once("WAITED-IN").expect("there is such a table");
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    let [row] = &rows[..] else { panic!("one call is waited in: {outcome:?}") };
    assert_eq!((row[0], row[2], row[3]), ("MPI_Recv", "wait_for_it", "100"), "{outcome:?}");
    assert!(row[1].starts_with("late.c:"), "{outcome:?}");
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
    let dom_of = |page: &Path, width: u32| {
        let profile = room("trace").join(format!("{}-chromium", std::process::id()));
        let mut browser = Command::new("timeout");
        browser.args(["60", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
        browser.arg(format!("--window-size={width},900")).arg("--hide-scrollbars");
        browser.arg(format!("--user-data-dir={}", profile.display())).arg(format!("file://{}", page.display()));
        let output = browser.output().expect("timeout is there");
        let _ = std::fs::remove_dir_all(profile);
        assert!(output.status.success(), "is chromium installed? {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dom = |page: &Path| dom_of(page, 1280);
    let shown = dom(&path);
    let body = shown.lines().find(|line| line.contains("<body")).expect("a body");
    assert!(body.contains("data-ready=\"8\"") && !body.contains("data-error"), "2 cores and 6 ranks: {body}");
    assert!(!body.contains("data-drawn=\"0\""), "{body}");
    for part in ["MPI_Recv", "MPI_Barrier", "<canvas id=\"timeline\"", "<canvas id=\"matrix\"", ", 6 ranks</title>"]
        .into_iter()
        .chain([
            "ran ranks for",
            "Ranks waited in MPI for",
            " 100 5000",
            "V</a> = 3",
            "MPI_Isend",
            "id=\"glossary-ready\"",
        ])
    {
        assert!(shown.contains(part), "{part} is missing");
    }
    // Six ranks' lines and the head in the table of clocks.
    let clocks = shown.split("<table id=\"clocks\">").nth(1).and_then(|rest| rest.split("</table>").next());
    assert_eq!(clocks.expect("a table of clocks").matches("<tr>").count(), 7);
    // Nothing sticks out of a narrow screen.
    let narrow = dom_of(&path, 420);
    let wider = narrow.split("data-wider=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("it says");
    assert!(wider.parse::<i32>().is_ok_and(|pixels| pixels <= 0), "{wider} pixels stick out");
    // It does notice errors.
    let broken = path.with_extension("broken.html");
    std::fs::write(&broken, page.replace("\"length\":", "\"lenght\":").replace("data.calls[", "nothing["))
        .expect("written");
    std::fs::write(&broken, page.replace("drawMatrix();\ndocument", "drawMatrix(); nothing();\ndocument"))
        .expect("written");
    assert!(dom(&broken).contains("data-error"), "an error that is not seen");
    let _ = (std::fs::remove_file(&path), std::fs::remove_file(&broken));
}
