//! vmpictl's commands on a job that runs: what they print, and that it is what the schema in docs/ says.

use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::{Turn, bin_dir, room, top};
use vmpi_tests::prometheus;
use vmpi_tests::traces::built;

/// A job of four ranks that send all the time.
fn busy(name: &str, seconds: &str) -> Job {
    let binary = {
        let _turn = Turn::take();
        program("deadlock.c", Mpi::Openmpi)
    };
    let run = Vmpirun::new(name).args(["-n", "4", "-V", "2"]);
    let job = run.arg(binary).args(["traffic", seconds]).start();
    let up = eventually(Duration::from_secs(30), || {
        let listing = job.vmpictl(&["ps", "--ranks"]);
        listing.stdout.lines().filter(|line| line.contains("RUNNING") || line.contains("SUSPENDED")).count() >= 2
    });
    assert!(up, "{:?}", job.vmpictl(&["ps", "--ranks"]));
    job
}

/// What it printed, since it worked. A trace of ranks that send all the time says what was lost when the machine is busy.
fn good(outcome: &Outcome) -> &str {
    let lost = |line: &str| line.starts_with("vmpictl: note:") && line.contains(" of the oldest events of ");
    assert!(outcome.code == 0 && outcome.stderr.lines().all(lost), "{outcome:?}");
    &outcome.stdout
}

/// What these commands print as JSON is what the schema says of it, by its name there.
fn keep_to_the_schema(vmpictl: &dyn Fn(&[&str]) -> Outcome, cases: &[(&str, &[&str])]) {
    let text = std::fs::read_to_string(top().join("docs/vmpictl.schema.json")).expect("the schema is there");
    let schema: Value = serde_json::from_str(&text).expect("it is JSON");
    let validator = |name: &str| {
        let part = serde_json::json!({ "$defs": schema["$defs"], "$ref": format!("#/$defs/{name}") });
        jsonschema::validator_for(&part).expect("a schema")
    };
    for (name, args) in cases {
        let outcome = vmpictl(&[args, &["--json"][..]].concat());
        let value: Value =
            serde_json::from_str(good(&outcome)).unwrap_or_else(|e| panic!("{args:?}: {e}: {outcome:?}"));
        let wrong: Vec<String> =
            validator(name).iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(wrong.is_empty(), "{args:?}: {wrong:#?}");
        // The validator does notice: a document without a part that it must have, or with another version.
        let mut other = value.clone();
        other["schema_version"] = 2.into();
        assert!(!validator(name).is_valid(&other), "{args:?}");
    }
}

#[test]
fn every_command_keeps_to_the_schema() {
    let job = busy("schema", "60");
    keep_to_the_schema(
        &|args| job.vmpictl(args),
        &[
            ("ps", &["ps"]),
            ("ps", &["ps", "--ranks"]),
            ("show", &["show", "1"]),
            ("show", &["show", "1/3"]),
            ("why", &["why", "1"]),
            ("stacks", &["stacks", "1/0", "--threads"]),
            ("matrix", &["matrix", "1", "--on"]),
            ("matrix", &["matrix", "1"]),
            ("trace", &["trace", "1", "start"]),
            ("trace", &["trace", "1", "export", "/dev/null"]),
            ("trace", &["trace", "1", "stop"]),
            ("logs", &["logs"]),
            ("logs", &["logs", "1"]),
            ("top", &["top"]),
            ("doctor", &["doctor"]),
            ("metrics", &["metrics", "--per-rank"]),
            ("version", &["version"]),
            ("done", &["prio", "1/0", "1"]),
            ("done", &["suspend", "1"]),
            ("done", &["resume", "1"]),
            ("done", &["kill", "1"]),
        ],
    );
    let outcome = job.finish();
    assert_eq!(outcome.code, 143, "{outcome:?}");
    assert!(outcome.stderr.contains("by vmpictl kill"), "{outcome:?}");
}

/// On a node of a job of two: some ranks live elsewhere.
#[test]
fn commands_on_one_of_several_nodes_keep_to_the_schema() {
    let nodes = Nodes::new("schema");
    let binary = {
        let _turn = Turn::take();
        program("deadlock.c", Mpi::Openmpi)
    };
    let run = nodes.vmpirun("schema").args(["-n", "4", "-V", "2", "--on-deadlock", "ignore"]);
    let job = run.arg(binary).arg("missing").start();
    let vmpictl = |args: &[&str]| nodes.vmpictl(&job.runtime_dir, &nodes.b, args);
    let waits = eventually(Duration::from_secs(30), || vmpictl(&["why", "1"]).stdout.contains("deadlock in job"));
    assert!(waits, "{:?}", vmpictl(&["why", "1"]));
    keep_to_the_schema(
        &vmpictl,
        &[
            ("ps", &["ps", "--ranks"]),
            ("show", &["show", "1"]),
            ("show", &["show", "1/3"]),
            ("why", &["why", "1"]),
            ("stacks", &["stacks", "1/3"]),
            ("matrix", &["matrix", "1", "--on"]),
            ("trace", &["trace", "1", "start"]),
            ("trace", &["trace", "1", "export", "/dev/null"]),
            ("top", &["top"]),
            ("metrics", &["metrics", "--per-rank"]),
            ("done", &["kill", "1"]),
        ],
    );
    let outcome = job.finish();
    assert!(outcome.code == 143 && outcome.stderr.contains("by vmpictl kill"), "{outcome:?}");
}

#[test]
fn metrics_are_as_prometheus_wants_them() {
    let job = busy("metrics", "60");
    let text = job.vmpictl(&["metrics"]);
    let samples = prometheus::check(good(&text)).unwrap_or_else(|why| panic!("{why}\n{}", text.stdout));
    assert!(samples.iter().all(|(_, labels, _)| !labels.contains_key("rank")), "no label per rank unless asked");
    let value = |name: &str| samples.iter().filter(|s| s.0 == name).map(|s| s.2).sum::<f64>();
    assert_eq!((value("vmpi_jobs"), value("vmpi_job_ranks")), (1.0, 4.0));
    assert!(value("vmpi_job_sent_bytes_total") > 0.0 && value("vmpi_core_handoffs_total") > 0.0, "{}", text.stdout);
    let per_rank = job.vmpictl(&["metrics", "--per-rank"]);
    let samples = prometheus::check(good(&per_rank)).expect("valid, too");
    let ranks =
        samples.iter().filter(|(name, labels, _)| name == "vmpi_rank_switches_total" && labels.contains_key("rank"));
    assert_eq!(ranks.count(), 4);
    good(&job.vmpictl(&["kill", "1"]));
    assert_eq!(job.finish().code, 143);
}

#[test]
fn a_job_is_stopped_and_goes_on() {
    let job = busy("suspend", "60");
    let sent = || -> f64 {
        let text = job.vmpictl(&["metrics"]);
        let samples = prometheus::check(good(&text)).expect("valid");
        samples.iter().filter(|(name, ..)| name == "vmpi_job_sent_messages_total").map(|sample| sample.2).sum()
    };
    good(&job.vmpictl(&["suspend", "1"]));
    // The signal has been sent; a rank takes it at its next step in the kernel.
    std::thread::sleep(Duration::from_millis(200));
    let before = sent();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(sent(), before, "nobody runs");
    let listing = job.vmpictl(&["ps", "--ranks"]);
    assert_eq!(good(&listing).matches("stopped").count(), 4, "{listing:?}");
    good(&job.vmpictl(&["resume", "1"]));
    assert!(eventually(Duration::from_secs(20), || sent() > before), "it goes on");
    good(&job.vmpictl(&["prio", "1", "7"]));
    let pid = job.vmpictl(&["show", "1/2", "--json"]);
    let pid = serde_json::from_str::<Value>(good(&pid)).expect("JSON")["rank_list"][0]["pid"].as_i64().expect("a pid");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let nice = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(16)).expect("the 19th field");
    assert_eq!(nice, "7");
    assert_eq!(job.vmpictl(&["prio", "1", "20"]).code, 2, "there is no such nice value");
    for refused in [&["suspend", "1/4"][..], &["kill", "2"], &["matrix", "9"], &["top", "--interval", "0"]] {
        assert_ne!(job.vmpictl(refused).code, 0, "{refused:?}");
    }
    good(&job.vmpictl(&["kill", "1"]));
    assert_eq!(job.finish().code, 143);
}

/// Two vmpiruns, each with a vmpid of its own: a number names one of their jobs.
#[test]
fn jobs_of_several_daemons_have_a_number_each() {
    Turn::beside_others();
    let first = Vmpirun::new("numbers").args(["-n", "1", "sleep", "300"]).start();
    let second = Vmpirun::under(&first.runtime_dir, "numbers-two").args(["-n", "2", "sleep", "300"]).start();
    let numbers = || {
        let listing = first.vmpictl(&["ps", "--json"]);
        let listing: Value = serde_json::from_str(good(&listing)).expect("JSON");
        let mut numbers: Vec<(i64, i64)> = listing["jobs"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|job| (job["ranks"].as_i64().expect("a number"), job["job"].as_i64().expect("a number")))
            .collect();
        numbers.sort_unstable();
        numbers
    };
    assert!(eventually(Duration::from_secs(30), || numbers().len() == 2), "{:?}", numbers());
    let [(_, one), (_, two)] = numbers()[..] else { panic!("{:?}", numbers()) };
    assert!(one != two && one.max(two) == 2, "{:?}", numbers());
    let shown = first.vmpictl(&["show", &two.to_string(), "--json"]);
    let shown: Value = serde_json::from_str(good(&shown)).expect("JSON");
    assert_eq!(shown["ranks"], 2, "{shown}");
    for (number, job) in [(two, second), (one, first)] {
        good(&job.vmpictl(&["kill", &number.to_string()]));
        assert_eq!(job.finish().code, 143);
    }
}

#[test]
fn top_and_doctor_are_plain_text_without_a_terminal() {
    let job = busy("top", "60");
    for args in [&["top"][..], &["top", "--once"]] {
        let outcome = job.vmpictl(args);
        let text = good(&outcome);
        assert!(text.starts_with("vmpi: 1 job, 4 ranks on 2 cores, over 0."), "{text}");
        assert!(!text.contains('\u{1b}'), "no escape sequences: {text:?}");
        assert!(text.lines().filter(|line| line.starts_with("1    ")).count() >= 6, "{text}");
    }
    let doctor = job.vmpictl(&["doctor", "/bin/true"]);
    let text = good(&doctor);
    for subject in
        ["kernel", "single copy", "clock", "affinity", "RDMA", "verbs", "perf events", "library", "no MPI visible"]
    {
        assert!(text.contains(subject), "{subject}: {text}");
    }
    let sick = job.vmpictl(&["doctor", "/no/such/program"]);
    assert!(sick.code == 1 && sick.stdout.contains('\u{2717}'), "{sick:?}");
    good(&job.vmpictl(&["kill", "1"]));
    assert_eq!(job.finish().code, 143);
}

/// `--report` begins with two lines in words; `=full` says of each core and rank where its time went, and it adds up.
#[test]
fn the_report_adds_up() {
    let binary = {
        let _turn = Turn::take();
        program("deadlock.c", Mpi::Mpich)
    };
    let run = |form: &str| {
        let run = Vmpirun::new("report").args(["-n", "4", "-V", "2", form, "--json"]);
        let outcome = run.arg(&binary).arg("traffic").run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let json = outcome.stdout.lines().find(|line| line.starts_with('{')).expect("--json").to_owned();
        let json: Value = serde_json::from_str(&json).expect("JSON");
        (outcome, json)
    };
    let (outcome, json) = run("--report=full");
    let lines: Vec<Vec<&str>> = outcome.stderr.lines().map(|line| line.split_whitespace().collect()).collect();
    let table = |head: &str| {
        lines
            .iter()
            .skip_while(|line| line.first() != Some(&head))
            .take_while(|line| !line.is_empty())
            .collect::<Vec<_>>()
    };
    let seconds = |word: &str| word.trim_end_matches('s').parse::<f64>().expect("seconds");
    assert_eq!((table("CPU").len(), table("RANK").len()), (3, 5), "{}", outcome.stderr);
    for (line, core) in table("CPU").into_iter().skip(1).zip(json["report"]["cores"].as_array().expect("cores")) {
        let sum: f64 = line[3..9].iter().map(|word| seconds(word)).sum();
        let wall = core["wall_s"].as_f64().expect("seconds");
        assert!((sum - wall).abs() < 0.01, "{sum} s of {wall} s: {line:?}");
    }
    for (line, rank) in table("RANK").into_iter().skip(1).zip(json["report"]["rank_list"].as_array().expect("ranks")) {
        let sum: f64 = line[2..8].iter().map(|word| seconds(word)).sum();
        let wall = rank["wall_s"].as_f64().expect("seconds");
        assert!((sum - wall).abs() < 0.01 && wall > 1.0, "{line:?}: {rank}");
    }
    let (outcome, json) = run("--report");
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    assert!(
        lines[0].starts_with("The 2 cores ran ranks for ") && lines[1].starts_with("Ranks waited in MPI for "),
        "{lines:?}"
    );
    assert_eq!(json["verdict"]["busy"], lines[0]);
    for row in ["min ", "mean ", "max "] {
        assert_eq!(lines.iter().filter(|line| line.starts_with(row)).count(), 2, "{lines:?}");
    }
    assert!(!outcome.stderr.contains("VIOLATIONS"), "{}", outcome.stderr);
    let refused = Vmpirun::new("report").args(["--report=long", "true"]).run();
    assert!(refused.code == 2 && refused.stderr.contains("`long` is not one of summary, full"), "{refused:?}");
}

/// Two runs side by side: what `vmpirun --json` printed, behind the program's output, and traces; of one kind, and what is no run.
#[test]
fn runs_are_compared() {
    let binary = built("traced.c");
    let dir = room("compare");
    let at = |name: &str| dir.join(name).to_str().expect("UTF-8").to_owned();
    for (name, rounds) in [("few", "50"), ("many", "200")] {
        let trace = at(&format!("{name}.pftrace"));
        let run = Vmpirun::new("compare").args(["-n", "4", "-V", "2", "--json", "--trace", &trace]).arg(&binary);
        let outcome = run.args([rounds, "1000"]).run();
        assert!(outcome.code == 0 && outcome.stdout.starts_with("traced\n"), "{outcome:?}");
        std::fs::write(at(&format!("{name}.json")), outcome.stdout).expect("target/ is writable");
    }
    let vmpictl = |args: &[&str]| {
        let output = Command::new(bin_dir().join("vmpictl")).args(args).output().expect("vmpictl runs");
        Outcome::of(&output)
    };
    let (few, many) = (at("few.json"), at("many.json"));
    keep_to_the_schema(
        &vmpictl,
        &[("compare", &["compare", &few, &many]), ("compare", &["compare", &at("few.pftrace"), &at("many.pftrace")])],
    );
    let json: Value = serde_json::from_str(good(&vmpictl(&["compare", &few, &many, "--json"]))).expect("JSON");
    let sent = json["figures"].as_array().expect("figures").iter().find(|row| row["name"] == "messages sent");
    let (a, b) = (sent.and_then(|row| row["a"].as_f64()), sent.and_then(|row| row["b"].as_f64()));
    assert!(a >= Some(200.0) && b >= Some(800.0) && b < Some(1600.0), "{sent:?}");
    let text = vmpictl(&["compare", &at("few.pftrace"), &at("many.pftrace")]);
    let line = good(&text).lines().find(|line| line.starts_with("point-to-point: messages")).expect("a line");
    assert_eq!(line.split_whitespace().skip(2).collect::<Vec<_>>(), ["200", "800", "+600", "4.00"], "{line}");
    assert!(text.stdout.contains("B: ") && text.stdout.contains("waited: MPI_Recv"), "{}", text.stdout);
    for (a, b, why) in [
        (at("few.pftrace"), at("none.json"), "No such file"),
        (few.clone(), binary.display().to_string(), "nothing that can be compared"),
        (few, at("few.pftrace/x"), "Not a directory"),
    ] {
        let refused = vmpictl(&["compare", &a, &b]);
        assert!(refused.code == 2 && refused.stderr.contains(why), "{a} {b}: {refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "a sentence: {refused:?}");
    }
    let _ = std::fs::remove_dir_all(dir);
}

/// Machines to simulate: the built-in ones, files of both kinds, and what is said of wrong ones.
#[test]
fn machines_are_explained() {
    let dir = room("machines");
    let vmpictl = |args: &[&str]| {
        let output = Command::new(bin_dir().join("vmpictl")).args(args).output().expect("vmpictl runs");
        Outcome::of(&output)
    };
    let file = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("target/ is writable");
        path.to_str().expect("UTF-8").to_owned()
    };
    let cluster = "<platform version=\"4.1\">\n<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"1GBps\" lat=\"10us\"/>\n</platform>\n";
    let platform = file("cluster.xml", cluster);
    let list = vmpictl(&["machine", "list"]);
    let names: Vec<&str> = good(&list).lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["laptop", "ethernet", "fat-tree", "torus", "dragonfly"]);
    for name in names {
        good(&vmpictl(&["machine", "check", name]));
        // What is printed is a file that means the same.
        let own = file("own.toml", good(&vmpictl(&["machine", "print", name])));
        let levels = |machine: &str| {
            let said = vmpictl(&["machine", "check", machine, "--json"]);
            serde_json::from_str::<Value>(good(&said)).expect("JSON")["levels"].clone()
        };
        assert_eq!(levels(name), levels(&own));
    }
    keep_to_the_schema(
        &vmpictl,
        &[
            ("machine", &["machine", "check", "dragonfly"]),
            ("machine", &["machine", "check", &platform]),
            ("machines", &["machine", "list"]),
        ],
    );
    // Measured with SMPI: half a round trip of 1 KiB and of 1 MiB.
    let said = vmpictl(&["machine", "check", &platform]);
    assert!(good(&said).contains("42.05us") && said.stdout.contains("1.348ms"), "{}", said.stdout);
    let cases = [
        (file("bw.xml", &cluster.replace("1GBps", "1GB")), "bw.xml, line 2: <cluster>: bw=\"1GB\""),
        (
            file("kind.toml", "[hosts]\ncores = 1\n[topology]\nkind = \"ring\"\n"),
            "kind.toml, line 4: unknown variant `ring`",
        ),
        (dir.join("none.toml").display().to_string(), "there are laptop, ethernet"),
        (dir.display().to_string(), "cannot read"),
    ];
    for (machine, says) in cases {
        let refused = vmpictl(&["machine", "check", &machine]);
        assert!(refused.code == 2 && refused.stderr.contains(says), "{machine}: {refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "a sentence: {refused:?}");
    }
    assert_eq!(vmpictl(&["machine", "print", "ring"]).code, 2);
    let _ = std::fs::remove_dir_all(dir);
}

/// What is measured here is a machine with times that can be; nothing stays behind, and a run that fails is said.
#[test]
fn this_machine_is_measured() {
    let dir = room("measure");
    let file = dir.join("here.toml").to_str().expect("UTF-8").to_owned();
    let runtime_dir = vmpi_tests::scratch::Scratch::new("measure");
    let vmpictl = |args: &[&str]| {
        let mut command = Command::new(bin_dir().join("vmpictl"));
        command.args(args).env("VMPI_RUNTIME_DIR", runtime_dir.path()).env("TMPDIR", &dir);
        Outcome::of(&command.output().expect("vmpictl runs"))
    };
    good(&vmpictl(&["machine", "measure", "-o", &file]));
    let said = vmpictl(&["machine", "check", &file, "--json"]);
    let machine: Value = serde_json::from_str(good(&said)).expect("JSON");
    let times: Vec<f64> = machine["levels"][0]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["half_round_trip_s"].as_f64())
        .collect();
    assert!(times.len() == 3 && times.is_sorted() && times[0] > 1e-8 && times[2] > 1e-6, "{said:?}");
    let refused = vmpictl(&["machine", "measure", "--", "--no-such-flag"]);
    assert!(refused.code == 1 && refused.stderr.contains("--no-such-flag"), "{refused:?}");
    let left: Vec<_> = std::fs::read_dir(&dir).expect("it is there").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["here.toml"]);
    let _ = std::fs::remove_dir_all(dir);
}
