//! What is counted of transfers: beside an independent wrapper library, by hand, and through MPI_T.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::place::{Turn, room, top};

fn built(name: &str, mpi: Mpi) -> PathBuf {
    let _turn = Turn::take();
    program(name, mpi)
}

/// The wrapper library, built for one MPI.
fn wrapper(mpi: Mpi) -> PathBuf {
    let _turn = Turn::take();
    let name = match mpi {
        Mpi::Mpich => "mpich",
        _ => "openmpi",
    };
    let library = room("bin").join(format!("libpmpi_count.{name}.so"));
    let source = top().join("tests/programs/pmpi_count.c");
    let output = Command::new(format!("mpicc.{name}"))
        .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
        .arg(&library)
        .arg(source)
        .output()
        .expect("mpicc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

/// By sender and receiver: messages and bytes.
type Pairs = BTreeMap<(u64, u64), (u64, u64)>;

/// The entries of one kind of a matrix in CSV.
fn csv_pairs(text: &str, kind: &str) -> Pairs {
    let mut pairs = Pairs::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().expect("a number");
        let sizes: u64 = (5..fields.len()).map(number).sum();
        assert_eq!(sizes, number(3), "the histogram holds every message: {line}");
        if fields[0] == kind {
            assert!(pairs.insert((number(1), number(2)), (number(3), number(4))).is_none(), "twice: {line}");
        }
    }
    pairs
}

fn wrapper_pairs(stderr: &str) -> Pairs {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("pmpi "));
    lines
        .map(|line| {
            let n: Vec<u64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
            ((n[0], n[1]), (n[2], n[3]))
        })
        .collect()
}

struct Counted {
    outcome: Outcome,
    csv: String,
}

fn counted(flags: &[&str], binary: &Path, args: &[&str], preload: Option<&Path>) -> Counted {
    let file = room("matrix").join(format!("{}.{:?}.csv", std::process::id(), std::thread::current().id()));
    let mut run = Vmpirun::new("matrix").args(flags).arg("--matrix").arg(&file);
    if let Some(preload) = preload {
        run = run.args(["-x", &format!("LD_PRELOAD={}", preload.display())]);
    }
    let outcome = run.arg(binary).args(args).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let csv = std::fs::read_to_string(&file).expect("the matrix is written");
    let _ = std::fs::remove_file(&file);
    Counted { outcome, csv }
}

#[test]
fn point_to_point_is_what_a_wrapper_library_counts() {
    for (mpi, ranks, v) in [(Mpi::Openmpi, "2", "1"), (Mpi::Openmpi, "7", "4"), (Mpi::Mpich, "5", "3")] {
        let (binary, library) = (built("monitor.c", mpi), wrapper(mpi));
        let run = counted(&["-n", ranks, "-V", v], &binary, &["messages"], Some(&library));
        let theirs = wrapper_pairs(&run.outcome.stderr);
        assert!(theirs.len() >= 2, "{:?}", run.outcome);
        assert_eq!(csv_pairs(&run.csv, "point_to_point"), theirs, "{ranks} ranks");
    }
}

#[test]
fn so_it_is_for_lammps() {
    let library = wrapper(Mpi::Openmpi);
    let input = top().join("tests/data/in.melt");
    let args = ["-in", input.to_str().expect("UTF-8"), "-log", "none"];
    let run = counted(&["-n", "12", "-V", "6"], Path::new("/usr/bin/lmp"), &args, Some(&library));
    let theirs = wrapper_pairs(&run.outcome.stderr);
    assert!(theirs.values().map(|(messages, _)| messages).sum::<u64>() > 1000, "{:?}", run.outcome.stderr);
    assert_eq!(csv_pairs(&run.csv, "point_to_point"), theirs);
    assert!(!csv_pairs(&run.csv, "collective").is_empty());
}

/// The binomial tree over 7 ranks: rank r sends once, to r without its lowest bit.
#[test]
fn a_reduction_goes_up_a_tree() {
    let run = counted(&["-n", "7", "-V", "4"], &built("monitor.c", Mpi::Openmpi), &["reduce"], None);
    let mut tree = csv_pairs(&run.csv, "collective");
    // MPI_Init and MPI_Finalize synchronize without data.
    tree.retain(|_, (_, bytes)| *bytes > 0);
    let by_hand = [(1, 0), (2, 0), (3, 2), (4, 0), (5, 4), (6, 4)];
    let bytes: Pairs = tree.iter().map(|(pair, (_, bytes))| (*pair, (1, *bytes))).collect();
    assert_eq!(bytes, by_hand.into_iter().map(|pair| (pair, (1, 8192))).collect(), "{}", run.csv);
    assert!(csv_pairs(&run.csv, "point_to_point").is_empty());
}

/// In a collective cell one rank does the work: n - 1 values are taken and n - 1 results (or the one for the root) handed out.
#[test]
fn collective_cells_count_what_moves() {
    let (n, barriers) = (5u64, 3);
    let run = counted(&["-n", "5", "-V", "3"], &built("monitor.c", Mpi::Mpich), &["cell"], None);
    let pairs = csv_pairs(&run.csv, "collective");
    let bytes: u64 = pairs.values().map(|(_, bytes)| bytes).sum();
    let messages: u64 = pairs.values().map(|(messages, _)| messages).sum();
    // Two reductions for all, a broadcast, and one reduction for rank 1, which may have been the last to come.
    let certain = 2 * 2 * 8 * (n - 1) + 100 * (n - 1) + 8 * (n - 1);
    assert!(bytes == certain || bytes == certain + 8, "{bytes} bytes, {certain} for certain: {}", run.csv);
    let certain = 2 * (n - 1) * (barriers + 2) + (n - 1) + (n - 1);
    // And the barrier of MPI_Finalize.
    let finalize = 2 * (n - 1);
    let all = certain + finalize;
    assert!((all..=all + 1).contains(&messages), "{messages} messages, {all} expected: {}", run.csv);
    // Each other rank gets 100 bytes from rank 0 at least.
    assert!((1..n).all(|to| pairs[&(0, to)].1 >= 100), "{}", run.csv);
}

#[test]
fn one_sided_transfers_count_as_the_data_flows() {
    let run = counted(&["-n", "4", "-V", "2"], &built("monitor.c", Mpi::Openmpi), &["one-sided"], None);
    let put: Pairs = (0..4).map(|r| ((r, (r + 1) % 4), (3, 1000 + 8 + 8))).collect();
    assert_eq!(csv_pairs(&run.csv, "put"), put, "put, accumulate and the operand of fetch_and_op");
    let mut get = Pairs::new();
    for r in 0..4 {
        get.insert(((r + 2) % 4, r), (1, 300));
        get.insert(((r + 1) % 4, r), (1, 8));
    }
    assert_eq!(csv_pairs(&run.csv, "get"), get);
}

#[test]
fn a_phase_is_monitored_through_mpi_t() {
    for (mpi, what) in [(Mpi::Openmpi, "tool"), (Mpi::Mpich, "tool"), (Mpi::Openmpi, "tool-openmpi")] {
        let binary = built("monitor.c", mpi);
        let outcome = Vmpirun::new("tool").args(["-n", "4", "-V", "2"]).arg(binary).arg(what).run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        for rank in 0..4 {
            let (right, left, far) = ((rank + 1) % 4, (rank + 3) % 4, (rank + 2) % 4);
            for line in [
                format!("{rank} to {right}: 5 messages, 1500 bytes, at most 5\n"),
                format!("{rank} to {left}: 1 messages, 7 bytes, at most 5\n"),
                format!("{rank} to {far}: 0 messages, 0 bytes, at most 5\n"),
                format!("{rank}, the other session: 1 right, 1 left\n"),
                format!("{rank}, after the reset: 0\n"),
            ] {
                assert!(outcome.stdout.contains(&line), "{what}: {line:?} is missing in {}", outcome.stdout);
            }
        }
    }
}

#[test]
fn counting_is_switched_while_the_job_runs() {
    let stop = room("matrix").join(format!("stop.{}", std::process::id()));
    let _ = std::fs::remove_file(&stop);
    let binary = built("monitor.c", Mpi::Openmpi);
    let mut job = Vmpirun::new("switch").args(["-n", "4", "-V", "2"]).arg(binary).arg("endless").arg(&stop).start();
    job.read_until(|text| text.contains("ready"));
    let matrix = |flags: &[&str]| -> Value {
        let answer = job.vmpictl(&[&["matrix", "1", "--json"], flags].concat());
        assert_eq!(answer.code, 0, "{answer:?}");
        serde_json::from_str(&answer.stdout).expect("JSON")
    };
    let count = |value: &Value| value["totals"]["point_to_point"]["messages"].as_u64().expect("a number");
    let before = matrix(&[]);
    assert!(before["on"] == false && before["entries"] == serde_json::json!([]), "off by default: {before}");
    matrix(&["--on"]);
    assert!(eventually(Duration::from_secs(20), || count(&matrix(&[])) > 100), "it counts");
    matrix(&["--off"]);
    // A message that was being counted may still come.
    std::thread::sleep(Duration::from_millis(50));
    let stopped = matrix(&[]);
    std::thread::sleep(Duration::from_millis(300));
    let later = matrix(&[]);
    assert!(later["on"] == false && count(&later) == count(&stopped), "it stands still");
    let table = job.vmpictl(&["matrix", "1"]).stdout;
    assert!(table.contains("point_to_point") && table.contains("not being counted now"), "{table}");
    let svg = job.vmpictl(&["matrix", "1", "--svg"]).stdout;
    assert!(svg.starts_with("<svg") && svg.matches("<rect").count() > 4, "{svg}");
    let png = room("matrix").join(format!("{}.png", std::process::id()));
    let written = job.vmpictl(&["matrix", "1", "--output", png.to_str().expect("UTF-8")]);
    assert_eq!(written.code, 0, "{written:?}");
    assert!(std::fs::read(&png).expect("written").starts_with(b"\x89PNG"));
    let _ = std::fs::remove_file(&png);
    std::fs::write(&stop, "").expect("target/ is writable");
    let outcome = job.finish();
    let _ = std::fs::remove_file(&stop);
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[test]
fn a_profile_is_a_directory() {
    let dir = room("matrix").join(format!("profile.{}", std::process::id()));
    let binary = built("monitor.c", Mpi::Openmpi);
    let run = Vmpirun::new("profile").args(["-n", "3", "-V", "3", "--profile"]).arg(&dir);
    let outcome = run.arg(binary).arg("messages").run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let whole = read("matrix.csv");
    let parts: Vec<String> = (0..3).map(|rank| read(&format!("rank.{rank}.csv"))).collect();
    let lines = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let mut all: Vec<String> = parts.iter().flat_map(|part| lines(part)).collect();
    let mut expected = lines(&whole);
    all.sort();
    expected.sort();
    assert_eq!(all, expected);
    let matrix: Value = serde_json::from_str(&read("matrix.json")).expect("JSON");
    let report: Value = serde_json::from_str(&read("report.json")).expect("JSON");
    assert_eq!((&matrix["ranks"], &report["ranks"]), (&Value::from(3), &Value::from(3)));
    assert!(read("matrix.svg").starts_with("<svg"));
    let _ = std::fs::remove_dir_all(&dir);
}
