//! Blocking calls that return before their message is over (`vmpirun --overlap`): whatever the program does with the buffer, the answers are those of a call that waits.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, made, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::{Turn, room, top};
use vmpi_tests::scratch::Scratch;

/// Parts of overlap.c in which rank 0 is to have gone on before rank 1 has come (`stack`, `any` and what returns errors wait, on one node).
const EARLY: &[&str] = &[
    "read",
    "write",
    "send",
    "twice",
    "sysread",
    "syswrite",
    "fork",
    "free",
    "realloc",
    "handler",
    "page",
    "short",
    "wait",
    "sendrecv",
    "again",
    "thread",
    "finalize",
    "bcast",
    "bcastroot",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "persistent",
];

/// The same of overlap_edges.c.
const EDGES_EARLY: &[&str] = &["onebuffer", "restarted", "alarmed", "alarmedtouch", "alarmedwait", "alarmedsend"];

fn compiled(mpi: Mpi) -> PathBuf {
    compiled_from("overlap.c", mpi)
}

fn compiled_from(source: &str, mpi: Mpi) -> PathBuf {
    let turn = Turn::take();
    let binary = program(source, mpi);
    drop(turn);
    binary
}

/// The parts that were early, as overlap.c says.
fn early(got: &Outcome) -> BTreeSet<&str> {
    got.stderr.lines().filter_map(|line| line.split("early: ").nth(1)?.split(' ').next()).collect()
}

fn told(got: &Outcome) -> String {
    format!("{} {} {}", got.code, got.stdout, got.stderr)
}

/// All parts are right, and these were early.
fn is_right(got: &Outcome, wanted: &[&str], how: &str) {
    let told = told(got);
    assert_eq!((got.code, got.stdout.trim()), (0, "all is right"), "{how}: {told}");
    assert_eq!(early(got), wanted.iter().copied().collect(), "{how}: {told}");
}

fn run(mpi: Mpi, v: &str, overlap: &str) -> Outcome {
    let binary = compiled(mpi);
    let run = Vmpirun::new("overlap").args(["-n", "2", "-V", v, "--overlap", overlap]).arg(binary);
    run.deadline(Duration::from_secs(120)).run()
}

#[test]
fn whatever_touches_the_buffer_waits() {
    Turn::beside_others();
    is_right(&run(Mpi::Openmpi, "1", "on"), EARLY, "on, V=1");
    is_right(&run(Mpi::Openmpi, "2", "on"), EARLY, "on, V=2");
}

/// Requests, exchanges in place, datatypes with holes, and signal handlers that touch a buffer while their rank waits in MPI, which ended the job.
#[test]
fn handlers_and_requests_that_touch_the_buffer_wait() {
    Turn::beside_others();
    let binary = compiled_from("overlap_edges.c", Mpi::Openmpi);
    for (v, overlap, early) in [("1", "on", EDGES_EARLY), ("2", "on", EDGES_EARLY), ("1", "off", &[])] {
        let run = Vmpirun::new("overlap-edges").args(["-n", "2", "-V", v, "--overlap", overlap]).arg(&binary);
        is_right(&run.deadline(Duration::from_secs(120)).run(), early, &format!("{overlap}, V={v}"));
    }
}

#[test]
fn by_the_other_interfaces_too() {
    Turn::beside_others();
    is_right(&run(Mpi::Mpich, "1", "on"), EARLY, "on, MPICH");
    is_right(&run(Mpi::Standard, "1", "on"), EARLY, "on, standard ABI");
}

#[test]
fn nobody_is_early_where_that_is_off() {
    Turn::beside_others();
    is_right(&run(Mpi::Openmpi, "1", "off"), &[], "off");
}

/// A site's first calls wait, to be timed. Where the program computes meanwhile the next ones do not; where it touches its buffer at once they soon do again.
#[test]
fn auto_learns_where_it_pays() {
    let got = run(Mpi::Openmpi, "1", "auto");
    let words = told(&got);
    assert_eq!((got.code, got.stdout.trim()), (0, "all is right"), "{words}");
    let (early, all) = (early(&got), EARLY.iter().copied().collect::<BTreeSet<_>>());
    assert!(early.is_subset(&all) && !early.contains("read") && !early.contains("send"), "{words}");

    let binary = compiled(Mpi::Openmpi);
    let run = Vmpirun::new("overlap-learn").args(["-n", "2", "-V", "1", "--overlap", "auto"]);
    let got = run.arg(binary).arg("learn").run();
    let count = got.stderr.split("early: learn ").nth(1).and_then(|rest| rest.trim().parse::<u32>().ok());
    assert!(got.code == 0 && count.is_some_and(|count| (4..=6).contains(&count)), "{}", told(&got));
}

/// The guard needs no right that only root has.
#[test]
fn for_any_user() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can be another user");
        return;
    }
    Turn::beside_others();
    let binary = compiled(Mpi::Openmpi);
    let scratch = Scratch::new("overlap-user");
    std::os::unix::fs::chown(scratch.path(), Some(1000), Some(1000)).expect("it is ours");
    let words = ["--reuid=1000", "--regid=1000", "--clear-groups"];
    let run = Vmpirun::wrapped("overlap-user", "setpriv", &words).env("VMPI_RUNTIME_DIR", scratch.path());
    let got = run.args(["-n", "2", "-V", "1", "--overlap", "on"]).arg(binary).deadline(Duration::from_secs(120)).run();
    is_right(&got, EARLY, "as user 1000");
}

/// The carriers bring the data; with a status a receive returns when it has matched, which here is when the data begins to come.
#[test]
fn over_nodes_too() {
    let nodes = Nodes::beside_others("overlap");
    let binary = compiled(Mpi::Openmpi);
    for (fabric, v) in [("tcp", "1"), ("emulated:50:100", "1"), ("tcp", "2")] {
        let run = nodes.vmpirun("overlap").args(["--fabric", fabric, "--map-by", "node", "-n", "2", "-V", v]);
        let got = run.args(["--overlap", "on"]).arg(&binary).deadline(Duration::from_secs(180)).run();
        is_right(&got, EARLY, &format!("two nodes, {fabric}, V={v}"));
    }
}

/// A message that is longer than the buffer ends the job wherever that is found, with the same words.
#[test]
fn a_truncated_message_ends_the_job() {
    Turn::beside_others();
    let binary = compiled(Mpi::Openmpi);
    for overlap in ["on", "off"] {
        let run = Vmpirun::new("overlap-truncated").args(["-n", "2", "-V", "1", "--overlap", overlap]);
        let got = run.arg(&binary).arg("truncated").run();
        let told = told(&got);
        assert!(got.code != 0 && got.stderr.contains("MPI_Recv failed on rank 0"), "{overlap}: {told}");
        assert!(got.stderr.contains("has 1048576 bytes, the receive buffer has 524288"), "{overlap}: {told}");
    }
}

/// Who has touched a buffer waits, who computes behind a guard does not; what never comes is proven to.
#[test]
fn a_deadlock_is_proven() {
    Turn::beside_others();
    let binary = compiled(Mpi::Openmpi);
    for overlap in ["on", "off"] {
        let run = Vmpirun::new("overlap-deadlock").args(["-n", "2", "-V", "1", "--overlap", overlap]);
        let got = run.args(["--on-deadlock", "abort"]).arg(&binary).arg("never").run();
        let told = told(&got);
        assert_eq!(got.code, 123, "{overlap}: {told}");
        let (call, touch) =
            (line_in(HEADER, "MPI_Recv(to, n,"), line_of("printf(\"%d\\n\", to[5]);\n}\n/* Nothing ever comes, and"));
        let sentence = match overlap {
            "on" => format!(
                "rank 0 waits in MPI_Recv at overlap.h:{call} (receive), deferred, since its buffer is touched at overlap.c:{touch} (part_never),"
            ),
            _ => format!("rank 0 waits in MPI_Recv at overlap.h:{call} (receive) on"),
        };
        assert!(got.stderr.contains(&sentence), "{overlap}: {sentence}: {told}");
    }
}

const HEADER: &str = include_str!("../programs/overlap.h");

/// The line of overlap.c at which this text begins.
fn line_of(text: &str) -> usize {
    line_in(include_str!("../programs/overlap.c"), text)
}

fn line_in(source: &str, text: &str) -> usize {
    let at = source.find(text).unwrap_or_else(|| panic!("{text} is not there"));
    source[..at].lines().count() + usize::from(source[..at].ends_with('\n'))
}

/// A wait that the touch of a system call, or MPI's next call, begins is told of with the call that was left behind, too.
#[test]
fn whatever_waits_for_a_deferred_call_is_named_with_it() {
    Turn::beside_others();
    let binary = compiled(Mpi::Openmpi);
    let call = line_in(HEADER, "MPI_Recv(to, n,");
    let cases = [
        (
            "written",
            format!(
                "MPI_Recv at overlap.h:{call} (receive), deferred, since its buffer is touched at overlap.c:{} (part_written),",
                line_of("write(1, to, N)")
            ),
        ),
        (
            "barred",
            format!(
                "MPI_Barrier at overlap.c:{} (part_barred) for MPI_Recv at overlap.h:{call} (receive), deferred,",
                line_of("MPI_Barrier(MPI_COMM_SELF);\n}\n")
            ),
        ),
    ];
    for (part, sentence) in cases {
        let run = Vmpirun::new("overlap-named").args(["-n", "2", "-V", "1", "--overlap", "on"]);
        let got = run.args(["--on-deadlock", "abort"]).arg(&binary).arg(part).run();
        assert!(got.code == 123 && got.stderr.contains(&sentence), "{part}: {sentence}: {}", told(&got));
    }
}

/// Programs of the conformance suite: the answers are those without deferring, and something has really been deferred where that is to be.
#[test]
#[ignore = "second tier"]
fn conformance_does_not_change() {
    // Arguments, ranks, V, and whether something is to be deferred.
    const PROGRAMS: &[(&str, &[&str], &str, &str, bool)] = &[
        ("ring.c", &["20", "300000"], "2", "1", true),
        ("traffic.c", &["20", "7"], "6", "3", true),
        ("coll.c", &[], "2", "1", true),
        ("p2p.c", &[], "5", "3", true),
        ("medium.c", &[], "6", "3", true),
        ("probe.c", &[], "5", "3", true),
        ("scattered.c", &[], "2", "1", true),
        ("coll.c", &[], "5", "3", false),
        ("coll_random.c", &["1", "150"], "5", "3", false),
        ("blocks.c", &[], "6", "3", false),
        ("large.c", &[], "3", "3", false),
        ("waits.c", &[], "6", "3", false),
        ("nbc.c", &[], "6", "3", false),
        ("f08.f90", &[], "5", "3", false),
    ];
    let counter = library("deferred.c");
    for &(program, args, ranks, v, defers) in PROGRAMS {
        let binary = made(program, Mpi::Openmpi);
        let run = |overlap: &str| {
            let run = Vmpirun::new("overlap-conformance").args(["-n", ranks, "-V", v, "--overlap", overlap]);
            let run = run.args(["-x", &format!("LD_PRELOAD={}", counter.display())]).arg(&binary);
            run.args(args.iter().copied()).deadline(Duration::from_secs(120)).run()
        };
        let [on, off] = ["on", "off"].map(run);
        let count = |got: &Outcome| {
            let numbers =
                got.stderr.lines().filter_map(|line| line.split("deferred: ").nth(1)?.trim().parse::<u64>().ok());
            numbers.sum::<u64>()
        };
        assert_eq!((on.code, &on.stdout), (off.code, &off.stdout), "{program}: {}", told(&on));
        println!("{program}: {} messages deferred", count(&on));
        assert_eq!(count(&off), 0, "{program}: {}", told(&off));
        assert!(count(&on) > 0 || !defers, "{program}: nothing has been deferred: {}", told(&on));
    }
}

/// What the library needs is its own memory, not malloc's, also in a rank that moves to another core, with its threads.
#[test]
fn mpi_takes_nothing_of_mallocs() {
    let preloaded = format!("LD_PRELOAD={}", library("malloc_inside.c").display());
    let [moved, medium] = ["moved.c", "medium.c"].map(|program| made(program, Mpi::Openmpi));
    let mut moves = 0.0;
    // On a machine that is busy with other things the cores may look as if they had little to do.
    for _ in 0..10 {
        let run = Vmpirun::new("overlap-malloc").args(["-n", "6", "-V", "3", "--balance", "steal", "--json"]);
        let got = run.args(["--overlap", "on", "-x", &preloaded]).arg(&moved).arg("600").run();
        let told = told(&got);
        assert_eq!((got.code, got.stderr.matches("malloc: 0 ").count()), (0, 6), "{told}");
        let json = got.stdout.lines().find(|line| line.starts_with('{')).expect("vmpirun --json prints a line");
        let report = &serde_json::from_str::<serde_json::Value>(json).expect("it is JSON")["report"];
        moves = report["rank_list"].as_array().expect("a list").iter().filter_map(|rank| rank["moves"].as_f64()).sum();
        if moves > 0.0 {
            break;
        }
    }
    assert!(moves > 0.0, "in ten runs no rank moved");

    // Nor where whatever messages use is laid open to others.
    for (ranks, map) in [(2, "VMPI_MAP_MEMORY="), (2, "VMPI_MAP_MEMORY=1"), (6, "VMPI_MAP_MEMORY=1")] {
        let run = Vmpirun::new("overlap-malloc").args(["-n", &ranks.to_string(), "-V", &(ranks / 2).to_string()]);
        let got = run.args(["--overlap", "on", "-x", &preloaded, "-x", map]).arg(&medium).run();
        assert_eq!((got.code, got.stderr.matches("malloc: 0 ").count()), (0, ranks), "{map}: {}", told(&got));
    }
}

/// Ranks whose buffers lie beside whatever malloc gives, and that move while they wait for what they touch: each run ended one time in four.
#[test]
fn ranks_that_move_while_a_touch_waits_go_on() {
    Turn::beside_others();
    let binary = made("medium.c", Mpi::Openmpi);
    for _ in 0..5 {
        let run = Vmpirun::new("overlap-moves").args(["-n", "6", "-V", "3", "--overlap", "on"]);
        let got = run.args(["--on-deadlock", "abort"]).arg(&binary).deadline(Duration::from_secs(120)).run();
        assert_eq!((got.code, got.stdout.matches("180 messages").count()), (0, 6), "{}", told(&got));
    }
}

/// A library of tests/programs, to be preloaded into programs with Open MPI's ABI.
fn library(source: &str) -> PathBuf {
    let _turn = Turn::take();
    let library = room("bin").join(format!("lib{source}.so"));
    let mut compiler = Command::new("mpicc.openmpi");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(top().join("tests/programs").join(source));
    let done = compiler.output().expect("the compiler starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    library
}

#[test]
fn a_rank_that_waits_for_a_dead_one_is_ended() {
    let binary = compiled(Mpi::Openmpi);
    let run = Vmpirun::new("overlap-killed").args(["-n", "2", "-V", "1", "--overlap", "on"]);
    let mut job = run.arg(&binary).arg("killed").start();
    let mut pid = 0;
    job.read_until(|text| {
        pid = text.lines().next().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        pid != 0 && text.ends_with('\n')
    });
    std::thread::sleep(Duration::from_millis(200));
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL).expect("it runs");
    let got = job.finish();
    assert_eq!(got.code, 137, "{}", told(&got));
}

/// What cannot be is said once, and the job goes on.
#[test]
fn why_nothing_is_deferred_is_said() {
    Turn::beside_others();
    let binary = compiled(Mpi::Openmpi);
    let cases: [(&[&str], &str, &str); 2] = [
        (&["--overlap", "on", "--enable-recovery"], "", "--overlap has no effect with --enable-recovery"),
        (&[], "sometimes", "VMPI_OVERLAP is `sometimes`, which is not one of auto, on, off"),
    ];
    for (flags, variable, sentence) in cases {
        let mut run = Vmpirun::new("overlap-said").args(["-n", "2", "-V", "1"]).args(flags);
        if !variable.is_empty() {
            run = run.env("VMPI_OVERLAP", variable);
        }
        let got = run.arg(&binary).args(["read", "send"]).run();
        is_right(&got, &[], sentence);
        assert_eq!(got.stderr.matches(sentence).count(), 1, "{}", told(&got));
    }
    let got = Vmpirun::new("overlap-said").args(["--overlap", "./app"]).run();
    let sentence =
        "`./app` is not one of auto, on, off; before a program it needs one of them, too: --overlap=on ./app";
    assert!(got.code == 2 && got.stderr.contains(sentence), "{}", told(&got));
    let got = Vmpirun::new("overlap-said").args(["--overlap", "sometimes", "true"]).run();
    assert!(got.code == 2 && got.stderr.contains("`sometimes` is not one of auto, on, off"), "{}", told(&got));
}

/// MPI_T tells what is wanted.
#[test]
fn mpi_t_knows_it() {
    let binary = made("overlap_cvar.c", Mpi::Openmpi);
    for (overlap, value) in [("off", "0 off"), ("auto", "1 auto"), ("on", "2 on")] {
        let got = Vmpirun::new("overlap-cvar").args(["-n", "1", "--overlap", overlap]).arg(&binary).run();
        assert_eq!((got.code, got.stdout.trim()), (0, value), "{}", told(&got));
    }
}
