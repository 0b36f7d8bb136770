//! `vmpirun --check`: small faulty programs (tests/programs/checked.c, checked.f90), each beside its correct twin. Every fault is found, at its line; no twin gets a word.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::{PeersFiles, eventually};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::oracle::launcher_within;
use vmpi_tests::place::{Turn, room, top};
use vmpi_tests::scratch::Scratch;

/// What each fault is called. One that ends the job, or would wait for ever, has a job of its own.
const FAULTS: &[(&str, &str)] = &[
    ("root", "root_mismatch"),
    ("op", "op_mismatch"),
    ("type", "count_mismatch"),
    ("type_own", "count_mismatch"),
    ("scan", "count_mismatch"),
    ("ibcast", "count_mismatch"),
    ("iallreduce", "op_mismatch"),
    ("comm_root", "root_mismatch"),
    ("message_type", "type_mismatch"),
    ("message_struct", "type_mismatch"),
    ("message_bytes", "type_mismatch"),
    ("message_nonblocking", "type_mismatch"),
    ("message_large", "type_mismatch"),
    ("sendrecv", "type_mismatch"),
    ("mprobe", "type_mismatch"),
    ("persistent", "type_mismatch"),
    ("overlap_receives", "buffer_overlap"),
    ("overlap_send", "buffer_overlap"),
    ("overlap_columns", "buffer_overlap"),
    ("changed", "send_buffer_changed"),
    ("changed_large", "send_buffer_changed"),
    ("tag", "tag_too_large"),
    ("isend", "request_not_completed"),
    ("irecv", "request_not_completed"),
    ("cancelled", "request_not_completed"),
    ("ibarrier", "request_not_completed"),
    ("started", "request_not_completed"),
    ("freed_request", "request_not_completed"),
    ("window", "window_not_freed"),
    ("file", "file_not_closed"),
    // Of `lost_elsewhere`.
    ("kept", "not_freed"),
    ("comm", "not_freed"),
    ("datatype", "not_freed"),
    ("group", "not_freed"),
    ("info", "not_freed"),
    ("operation", "not_freed"),
    ("keyval", "not_freed"),
    ("errhandler", "not_freed"),
];
const ALONE: &[(&str, &str)] = &[
    ("kind", "collective_mismatch"),
    ("op_own", "op_mismatch"),
    ("root_reduce", "root_mismatch"),
    ("count", "count_mismatch"),
    ("count_allreduce", "count_mismatch"),
    ("gather", "count_mismatch"),
    ("scatter", "count_mismatch"),
    ("alltoall", "count_mismatch"),
    ("allgatherv", "count_mismatch"),
    ("reduce_scatter", "count_mismatch"),
    ("order", "collective_mismatch"),
    ("truncation", "truncation"),
];
/// These have no line.
const ANYWHERE: &[(&str, &str)] = &[
    ("lost", "message_not_received"),
    ("lost_elsewhere", "message_not_received"),
    ("inactive", "not_freed"),
    ("buffer", "buffer_not_detached"),
];
/// What `cheap` leaves to `full`.
const ONLY_FULL: &[&str] = &["buffer_overlap", "send_buffer_changed", "not_freed", "buffer_not_detached"];

/// One-sided ones (checked_rma.c).
const ONE_SIDED: &[(&str, &str)] = &[
    ("put_put", "rma_conflict"),
    ("put_get", "rma_conflict"),
    ("put_twice", "rma_conflict"),
    ("put_accumulate", "rma_conflict"),
    ("two_operations", "rma_conflict"),
    ("two_types", "rma_conflict"),
    ("columns", "rma_conflict"),
    ("fence_between", "rma_conflict"),
    ("local_store", "rma_local_store"),
    ("origin_changed", "origin_buffer_changed"),
    ("noprecede", "rma_epoch"),
    ("started_put", "rma_conflict"),
    ("shared_locks", "rma_conflict"),
    ("put_then_get", "rma_conflict"),
    ("flush_forgotten", "rma_conflict"),
    ("counters", "rma_conflict"),
    ("origin_flushed", "origin_buffer_changed"),
    ("with_request", "rma_conflict"),
    ("no_epoch", "rma_epoch"),
    ("other_target", "rma_epoch"),
    ("unlock_twice", "rma_epoch"),
    ("free_in_epoch", "rma_epoch"),
    ("fence_in_epoch", "rma_epoch"),
    ("range", "rma_range"),
    ("local_variable", "window_memory_gone"),
    ("unmapped", "window_memory_gone"),
    ("attached", "window_memory_gone"),
];

struct Found {
    outcome: Outcome,
    /// Kinds, and the lines in the source where their calls are.
    list: Vec<(String, BTreeSet<u64>)>,
    json: Value,
}

fn check(level: &str, program: &Path, args: &[&str], flags: &[&str]) -> Found {
    let scratch = Scratch::new("check-json");
    let file = scratch.path().join("found.json");
    let run =
        Vmpirun::new("check").args(["-n", "3", "-V", "3", "--on-deadlock", "abort", level, "--check-json"]).arg(&file);
    let run = run.args(flags.iter().copied()).arg(program).args(args.iter().copied());
    let outcome = run.deadline(Duration::from_secs(120)).run();
    read_found(&file, args, outcome)
}

fn read_found(file: &Path, args: &[&str], outcome: Outcome) -> Found {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{args:?}: {error}: {outcome:?}"));
    let json: Value = serde_json::from_str(&text).expect("JSON");
    let list = json["findings"].as_array().expect("a list").iter().map(|finding| {
        let calls = finding["calls"].as_array().expect("calls");
        let lines = calls.iter().filter_map(|call| call["site"]["line"].as_u64()).collect();
        (finding["kind"].as_str().expect("a kind").to_owned(), lines)
    });
    let list = list.collect();
    Found { outcome, list, json }
}

/// The lines of a source that say that a case's fault is there.
fn marked(source: &str) -> BTreeMap<String, BTreeSet<u64>> {
    let text = std::fs::read_to_string(top().join("tests/programs").join(source)).expect("the source");
    let mut lines: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for (line, number) in text.lines().zip(1..) {
        let name =
            line.strip_suffix(" */").and_then(|line| line.rsplit_once("/* ")).or_else(|| line.rsplit_once(" ! "));
        if let Some((_, name)) = name {
            lines.entry(name.to_owned()).or_default().insert(number);
        }
    }
    lines
}

/// These faults, and no others, have been found where they are.
fn are_found(found: &Found, source: &str, faults: &[(&str, &str)], elsewhere: &[(&str, &str)]) {
    let marked = marked(source);
    let mut left: Vec<&(String, BTreeSet<u64>)> = found.list.iter().collect();
    let mut missed = Vec::new();
    for (name, kind) in faults {
        let lines = &marked[*name];
        let before = left.len();
        left.retain(|(what, at)| what != kind || at.is_disjoint(lines));
        if left.len() == before {
            missed.push(*name);
        }
    }
    for (name, kind) in elsewhere {
        match left.iter().position(|(what, _)| what == kind) {
            Some(at) => {
                left.remove(at);
            }
            None => missed.push(*name),
        }
    }
    assert!(
        missed.is_empty() && left.is_empty(),
        "missed {missed:?}, too much {left:?}: {:#} {:?}",
        found.json,
        found.outcome
    );
}

#[test]
fn correct_programs_get_no_word() {
    for (mpi, source) in [
        (Mpi::Openmpi, "checked.c"),
        (Mpi::Mpich, "checked.c"),
        (Mpi::Standard, "checked.c"),
        (Mpi::Openmpi, "checked.f90"),
        (Mpi::Openmpi, "checked_rma.c"),
        (Mpi::Mpich, "checked_rma.c"),
        (Mpi::Standard, "checked_rma.c"),
    ] {
        let found = check("--check=full", &made(source, mpi), &["good"], &[]);
        assert_eq!(
            (found.outcome.code, found.list.len()),
            (0, 0),
            "{mpi:?} {source}: {:#} {:?}",
            found.json,
            found.outcome
        );
        assert_eq!(found.outcome.stderr, "", "{mpi:?} {source}");
    }
    // Others of this project's tests; what they do not free is theirs.
    for program in ["coll.c", "nbc.c", "topo.c", "partitioned.c", "comms.c", "traffic.c"] {
        let found = check("--check=cheap", &made(program, Mpi::Openmpi), &[], &[]);
        assert_eq!((found.outcome.code, found.list.len()), (0, 0), "{program}: {:#} {:?}", found.json, found.outcome);
    }
}

#[test]
fn faults_are_found_where_they_are() {
    let binary = made("checked.c", Mpi::Openmpi);
    let all: Vec<&str> = FAULTS.iter().chain(ANYWHERE).map(|(name, _)| *name).collect();
    let args = [&["bad"][..], &all[..]].concat();
    let found = check("--check=full", &binary, &args, &[]);
    assert_eq!(found.outcome.code, 122, "{:?}", found.outcome);
    are_found(&found, "checked.c", FAULTS, ANYWHERE);
    assert!(found.outcome.stderr.contains("vmpirun: --check has found "), "{:?}", found.outcome);
    assert!(found.outcome.stderr.contains(" MPI_Bcast with root 1 at checked.c:"), "{:?}", found.outcome);
    let schema = std::fs::read_to_string(top().join("docs/check.schema.json")).expect("the schema");
    let schema = serde_json::from_str(&schema).expect("JSON");
    let errors: Vec<String> =
        jsonschema::validator_for(&schema).expect("a schema").iter_errors(&found.json).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");

    // What is cheap finds the errors that do not take a look at buffers, and no leaks.
    let cheap = check("--check", &binary, &args, &[]);
    let is_cheap = |fault: &&(&str, &str)| !ONLY_FULL.contains(&fault.1);
    let faults: Vec<(&str, &str)> = FAULTS.iter().filter(is_cheap).copied().collect();
    let anywhere: Vec<(&str, &str)> = ANYWHERE.iter().filter(is_cheap).copied().collect();
    are_found(&cheap, "checked.c", &faults, &anywhere);
}

#[test]
fn faults_of_one_sided_communication_are_found() {
    let all: Vec<&str> = ONE_SIDED.iter().map(|(name, _)| *name).collect();
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        let found = check("--check=full", &made("checked_rma.c", mpi), &[&["bad"][..], &all[..]].concat(), &[]);
        assert_eq!(found.outcome.code, 122, "{mpi:?} {:?}", found.outcome);
        are_found(&found, "checked_rma.c", ONE_SIDED, &[]);
    }
}

/// Where the kernel reads no memory for them, as in a container, ranks cannot see whether a window's memory is still there: nobody is blamed.
#[test]
fn correct_programs_get_no_word_where_memory_is_not_read() {
    let (wrapper, binary) = (made("seccomped.c", Mpi::Openmpi), made("checked_rma.c", Mpi::Openmpi));
    let all: Vec<&str> = ONE_SIDED.iter().map(|(name, _)| *name).collect();
    let args = [&[binary.to_str().expect("a path"), "good"][..], &all[..]].concat();
    let found = check("--check=full", &wrapper, &args, &[]);
    assert_eq!((found.outcome.code, found.list.len()), (0, 0), "{:#} {:?}", found.json, found.outcome);
}

#[test]
fn faults_that_end_the_job_are_found_before() {
    let binary = made("checked.c", Mpi::Openmpi);
    for fault in ALONE {
        // Some of them end the job, others hang, and some go well here.
        let found = check("--check=cheap", &binary, &["bad", fault.0], &[]);
        assert_ne!(found.outcome.code, 0, "{fault:?}: {:?}", found.outcome);
        let marked = marked("checked.c");
        let is_it = |(kind, lines): &(String, BTreeSet<u64>)| kind == fault.1 && !lines.is_disjoint(&marked[fault.0]);
        assert!(found.list.iter().any(is_it), "{fault:?}: {:#} {:?}", found.json, found.outcome);
    }
}

#[test]
fn faults_of_fortran_programs_are_found_too() {
    let found = check("--check=full", &made("checked.f90", Mpi::Openmpi), &["bad"], &[]);
    let faults = [
        ("f_message", "type_mismatch"),
        ("f_op", "op_mismatch"),
        ("f_type", "not_freed"),
        ("f_request", "request_not_completed"),
    ];
    are_found(&found, "checked.f90", &faults, &[("f_lost", "message_not_received")]);
}

#[test]
fn over_nodes_what_the_ranks_of_one_see_is_found() {
    let binary = made("checked.c", Mpi::Mpich);
    let nodes = Nodes::new("check");
    let scratch = Scratch::new("check-nodes");
    let file = scratch.path().join("found.json");
    // Ranks 0 and 2 on the first node, 1 and 3 on the second one.
    let run = nodes.vmpirun("check").args(["--map-by", "node", "-n", "4", "--check=cheap", "--check-json"]);
    let outcome = run.arg(&file).arg(&binary).args(["bad", "op", "message_type", "isend"]).run();
    assert_eq!(outcome.code, 122, "{outcome:?}");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("the file")).expect("JSON");
    let kinds: BTreeSet<&str> =
        json["findings"].as_array().unwrap().iter().filter_map(|one| one["kind"].as_str()).collect();
    assert!(
        kinds.is_superset(&["op_mismatch", "type_mismatch", "request_not_completed"].into()),
        "{json:#} {outcome:?}"
    );
}

/// What differs between nodes, and on neither of them: one rank each.
const BETWEEN_NODES: &[(&str, &str)] = &[
    ("root", "root_mismatch"),
    ("op", "op_mismatch"),
    ("type", "count_mismatch"),
    ("scan", "count_mismatch"),
    ("ibcast", "count_mismatch"),
    ("iallreduce", "op_mismatch"),
    ("comm_root", "root_mismatch"),
];
const BETWEEN_NODES_ALONE: &[(&str, &str)] = &[
    ("kind", "collective_mismatch"),
    ("root_reduce", "root_mismatch"),
    ("count_allreduce", "count_mismatch"),
    ("gather", "count_mismatch"),
    ("allgatherv", "count_mismatch"),
    ("order", "collective_mismatch"),
];

fn check_over(nodes: &Nodes, ranks: &str, program: &Path, args: &[&str]) -> Found {
    let scratch = Scratch::new("check-nodes-json");
    let file = scratch.path().join("found.json");
    let flags = ["--map-by", "node", "-n", ranks, "--on-deadlock", "abort", "--check=cheap", "--check-json"];
    let run = nodes.vmpirun("check").args(flags).arg(&file).arg(program).args(args.iter().copied());
    let outcome = run.deadline(Duration::from_secs(120)).run();
    read_found(&file, args, outcome)
}

#[test]
fn collectives_that_differ_between_nodes_are_found() {
    let nodes = Nodes::new("check");
    let all: Vec<&str> = BETWEEN_NODES.iter().map(|(name, _)| *name).collect();
    for mpi in [Mpi::Openmpi, Mpi::Mpich, Mpi::Standard] {
        let binary = made("checked.c", mpi);
        let found = check_over(&nodes, "2", &binary, &[&["bad"][..], &all[..]].concat());
        assert_eq!(found.outcome.code, 122, "{mpi:?} {:?}", found.outcome);
        are_found(&found, "checked.c", BETWEEN_NODES, &[]);
        // Four ranks: the first ones of each node compare for the others.
        let good = check_over(&nodes, "4", &binary, &["good"]);
        assert_eq!((good.outcome.code, good.list.len()), (0, 0), "{mpi:?}: {:#} {:?}", good.json, good.outcome);
    }
    let marked = marked("checked.c");
    for fault in BETWEEN_NODES_ALONE {
        let found = check_over(&nodes, "2", &made("checked.c", Mpi::Openmpi), &["bad", fault.0]);
        let is_it = |(kind, lines): &(String, BTreeSet<u64>)| kind == fault.1 && !lines.is_disjoint(&marked[fault.0]);
        assert!(found.list.iter().any(is_it), "{fault:?}: {:#} {:?}", found.json, found.outcome);
    }
}

/// Objects are looked for when the last of the world model and the sessions has ended.
#[test]
fn objects_of_a_session_may_outlive_finalize() {
    let binary = made("checked_session.c", Mpi::Standard);
    let run = |how| Vmpirun::new("session").args(["-n", "2", "--check=full"]).arg(&binary).arg(how).run();
    let (good, bad) = (run("good"), run("bad"));
    assert!(good.code == 0 && !good.stderr.contains("never freed"), "{good:?}");
    assert!(bad.stderr.contains("MPI_Comm_dup at checked_session.c:17"), "{bad:?}");
}

#[test]
fn a_running_job_shows_what_has_been_found() {
    let (scratch, binary) = (Scratch::new("check-running"), made("checked.c", Mpi::Openmpi));
    let run = Vmpirun::new("check").args(["-n", "2", "--check"]).arg(&binary).args(["bad", "op", "stays"]);
    let job = run.cwd(scratch.path()).deadline(Duration::from_secs(120)).start();
    let is_shown = || job.vmpictl(&["show"]).stdout.contains("--check has found 1 error:");
    assert!(eventually(Duration::from_secs(60), is_shown), "{:?}", job.vmpictl(&["show"]));
    let shown = job.vmpictl(&["show"]).stdout;
    assert!(shown.contains("rank 1: MPI_Allreduce with MPI_MAX at checked.c:"), "{shown}");
    let json: Value = serde_json::from_str(&job.vmpictl(&["show", "--json"]).stdout).expect("JSON");
    assert_eq!(json["findings"]["list"][0]["kind"], "op_mismatch", "{json:#}");
    std::fs::write(scratch.path().join("go"), "").expect("the directory is writable");
    assert_eq!(job.finish().code, 122);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let run = |args: &[&str]| Vmpirun::new("check").args(args.iter().copied()).arg("true").run();
    let level = run(&["--check=much"]);
    assert!(level.code == 2 && level.stderr.contains("`much` is not one of off, cheap, full"), "{level:?}");
    let json = run(&["--check-json", "/dev/null"]);
    assert!(json.code == 2 && json.stderr.contains("--check-json needs --check"), "{json:?}");
    let binary = made("checked.c", Mpi::Standard);
    let word = Vmpirun::new("check").env("VMPI_CHECK", "all").arg(&binary).args(["good", "root"]).run();
    assert!(
        word.code != 0 && word.stderr.contains("VMPI_CHECK is `all`, which is not one of off, cheap, full"),
        "{word:?}"
    );
    // The environment's word is as good as the flag, which wins.
    let by_word =
        Vmpirun::new("check").env("VMPI_CHECK", "cheap").args(["-n", "2"]).arg(&binary).args(["bad", "root"]).run();
    assert_eq!(by_word.code, 122, "{by_word:?}");
    let off = Vmpirun::new("check").env("VMPI_CHECK", "cheap").args(["-n", "2", "--check=off"]).arg(&binary);
    assert_eq!(off.args(["bad", "root"]).run().code, 0);
}

/// What a real MPI makes of a faulty program, in a few words.
fn told_by(mpi: Mpi, program: &Path, case: &str) -> String {
    let _turn = Turn::take();
    let _files = PeersFiles::note();
    let output = launcher_within(mpi, 3, "15").arg(program).args(["bad", case]).output().expect("the launcher");
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&text);
    let word = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).find(|word| word.starts_with("MPI_ERR_"));
    let truncated = text.lines().find(|line| line.contains("truncated") || line.contains("Collective"));
    match output.status.code() {
        Some(0) => match text.lines().find_map(|line| line.split_once("returned: ")) {
            Some((_, error)) => format!("returns: {}", word.unwrap_or(error.split(',').next().unwrap_or(error))),
            None => "nothing".into(),
        },
        // Whatever happens then, nobody hears of the fault.
        Some(124 | 137) => "says nothing of it".into(),
        _ if text.contains("Segmentation") || text.contains("signal 11") => "says nothing of it".into(),
        code => {
            let said = word.map(str::to_owned).or_else(|| truncated.map(|_| "message truncated".into()));
            let ended = code.map_or("is killed".into(), |code| format!("ends with {code}"));
            said.map_or(ended, |said| format!("ends: {said}"))
        }
    }
}

/// The table of docs/notebook/checking.md, in target: each faulty program here, and beside it what Open MPI and MPICH say.
#[test]
#[ignore = "second tier"]
fn what_is_found_beside_what_others_say() {
    let mut rows =
        vec!["| fault | vmpi finds | its twin | Open MPI | MPICH |".into(), "| --- | --- | --- | --- | --- |".into()];
    let (mut missed, mut wrong, mut all) = (0, 0, 0);
    let sources = [("checked.c", FAULTS), ("checked.c", ANYWHERE), ("checked.c", ALONE), ("checked_rma.c", ONE_SIDED)];
    for (source, faults) in sources {
        let (openmpi, mpich) = (made(source, Mpi::Openmpi), made(source, Mpi::Mpich));
        // `kept` is no case, but another line of one.
        for (case, kind) in faults.iter().filter(|(case, _)| *case != "kept") {
            let bad = check("--check=full", &openmpi, &["bad", case], &[]);
            let good = check("--check=full", &openmpi, &["good", case], &[]);
            let found = bad.list.iter().any(|(what, _)| what == kind);
            all += 1;
            missed += u32::from(!found);
            wrong += u32::from(!good.list.is_empty() || good.outcome.code != 0);
            let (ours, twin) =
                (if found { *kind } else { "**missed**" }, if good.list.is_empty() { "" } else { "**blamed**" });
            let (one, other) = (told_by(Mpi::Openmpi, &openmpi, case), told_by(Mpi::Mpich, &mpich, case));
            rows.push(format!("| {case} | {ours} | {twin} | {one} | {other} |"));
        }
    }
    let table = rows.join("\n");
    println!("{table}");
    std::fs::write(room("check").join("table.md"), table + "\n").expect("the table");
    assert!(missed * 20 <= all && wrong == 0, "{missed} of {all} missed, {wrong} twins blamed");
}
