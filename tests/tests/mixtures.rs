//! Programs of the conformance suite with options drawn at random: whatever they are, the program ends as it does without them; in virtual time the predicted time
//! is the same whatever runs it. What has been found so stands where it belongs; a seed that fails is told with its command.
//!
//! `VMPI_MIXTURES=FROM..TO`: which seeds, instead of the first 300.

use std::ops::Range;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::Turn;
use vmpi_tests::scratch::Scratch;

/// Program, ranks, whether it is right in each order of messages that MPI allows, and whether the calls of its ranks follow from their messages alone.
struct Entry(&'static str, &'static [u32], bool, bool);

const PROGRAMS: [Entry; 30] = [
    Entry("traffic.c", &[2, 3, 5, 6, 9], true, true),
    Entry("coll_random.c", &[1, 2, 5, 6, 13], true, true),
    Entry("coll.c", &[1, 2, 5, 6], true, true),
    Entry("nbc.c", &[1, 2, 6], true, true),
    Entry("types.c", &[1, 2, 3], true, true),
    Entry("ops.c", &[1, 2, 5], true, true),
    Entry("comms.c", &[2, 5, 6], true, false),
    Entry("topo.c", &[4, 6], true, true),
    Entry("probe.c", &[1, 2, 5], false, true),
    Entry("polls.c", &[2, 4, 6], false, false),
    Entry("waits.c", &[2, 6], false, true),
    Entry("blocks.c", &[2, 3, 6], true, true),
    Entry("threads.c", &[2, 3], false, false),
    Entry("medium.c", &[2, 6], false, true),
    Entry("scattered.c", &[1, 2, 6], true, true),
    Entry("large.c", &[2, 3, 6], false, true),
    Entry("io_basic.c", &[1, 2, 3], true, true),
    Entry("io_coll.c", &[1, 2, 3, 6], true, true),
    Entry("io_shared.c", &[2, 3], false, false),
    Entry("rma_move.c", &[2, 4], true, true),
    Entry("rma_accumulate.c", &[3, 6], true, true),
    Entry("rma_sync.c", &[3, 6], true, true),
    Entry("rma_win.c", &[2, 4], true, true),
    Entry("sessions.c", &[1, 2, 3], true, true),
    Entry("spawn_basic.c", &[1, 2], false, false),
    Entry("ring.c", &[2, 6, 24], false, true),
    Entry("coll_order.c", &[1, 2, 5], true, true),
    Entry("p2p.c", &[2, 3, 6], false, true),
    Entry("pressure.c", &[4, 6], false, false),
    Entry("floods.c", &[2, 3, 5], false, false),
];

/// These are about ranks that share memory.
const OF_ONE_NODE: [&str; 3] = ["rma_move.c", "rma_win.c", "comms.c"];

struct Draw(fastrand::Rng);

impl Draw {
    fn happens(&mut self, percent: u32) -> bool {
        self.0.u32(..100) < percent
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.usize(..of.len())]
    }

    fn arguments(&mut self, program: &str) -> Vec<String> {
        let mut number = |most: u32| self.0.u32(1..most).to_string();
        match program {
            "traffic.c" => vec![number(6), number(1_000_000)],
            "coll_random.c" => vec![number(1_000_000), "60".into()],
            "polls.c" => vec!["200".into(), number(99)],
            "ring.c" => vec!["20".into(), self.one(&["8", "5000", "300000"]).into()],
            "pressure.c" => vec![self.one(&["many", "all"]).into(), "500".into()],
            "floods.c" => vec!["tswpb".into(), "1500".into()],
            "coll.c" if self.happens(50) => vec!["nb".into()],
            _ => Vec::new(),
        }
    }

    fn face(&mut self) -> Mpi {
        self.one(&[Mpi::Openmpi, Mpi::Mpich, Mpi::Standard])
    }
}

fn seeds(first: u64) -> Range<u64> {
    let asked = std::env::var("VMPI_MIXTURES").ok();
    let asked = asked.as_deref().and_then(|text| text.split_once("..")).map(|(from, to)| (from.parse(), to.parse()));
    match asked {
        Some((Ok(from), Ok(to))) => from..to,
        Some(_) => panic!("VMPI_MIXTURES is FROM..TO"),
        None => 0..first,
    }
}

/// Options of a job in real time. Those that do not go together are not drawn together.
fn options(draw: &mut Draw, Entry(program, _, any_order, _): &Entry, several: bool, scratch: &Scratch) -> Vec<String> {
    let mut all: Vec<String> = vec!["-V".into(), (draw.0.u32(1..9).max(if several { 3 } else { 1 })).to_string()];
    let file = |name: &str| scratch.path().join(name).to_string_lossy().into_owned();
    let mut add = |words: &[&str]| all.extend(words.iter().map(|word| (*word).to_owned()));
    let threads = *program == "threads.c";
    if several {
        if draw.happens(50) {
            add(&["--map-by", "node"]);
        }
        if draw.happens(30) {
            add(&["--fabric", draw.one(&["tcp,seal", "emulated:20:1000"])]);
        }
        if draw.happens(20) && !threads {
            add(&["--progress", "rank"]);
        }
    } else {
        if draw.happens(20) {
            add(&["--cores", "0"]);
        }
        if draw.happens(30) {
            add(&["--balance", draw.one(&["none", "rescue", "steal", "refine"])]);
        }
    }
    if draw.happens(30) {
        add(&["--policy", draw.one(&["rr", "fifo", "lifo", "priority", "follow"])]);
    }
    if draw.happens(10) {
        add(&["--quantum", draw.one(&["1", "20", "0"])]);
    }
    if draw.happens(30) {
        add(&["--overlap", draw.one(&["on", "auto"])]);
    }
    if draw.happens(30) {
        add(&[draw.one(&["--check=cheap", "--check=full"])]);
    }
    if *any_order && draw.happens(35) {
        add(&["--chaos", &draw.0.u32(1..1_000_000).to_string()]);
    } else if !threads && draw.happens(15) {
        add(&["--record", &file("record")]);
    }
    if *program != "spawn_basic.c" && draw.happens(15) {
        add(&["--enable-recovery"]);
    }
    if draw.happens(15) {
        add(&["--trace", &file("trace.perfetto")]);
    }
    if draw.happens(10) {
        add(&["--matrix", &file("matrix.csv")]);
    }
    for (percent, word) in [(10, "--report"), (10, "--randomize")] {
        if draw.happens(percent) {
            add(&[word]);
        }
    }
    let variables = [
        (20, "VMPI_SINGLE_COPY=0"),
        (15, "VMPI_MAP_MEMORY=0"),
        (15, "VMPI_MAP_MEMORY=1"),
        (10, "VMPI_HUGE_PAGES=0"),
        (10, "VMPI_STRONG_PROGRESS=0"),
        (15, "VMPI_UNEXPECTED_BYTES=3M"),
    ];
    for (percent, variable) in variables {
        if draw.happens(percent) {
            add(&["-x", variable]);
        }
    }
    all
}

/// Is that how such a job may end? Programs that have messages cut short are told of; some hold more than may be held; some options do not go together.
fn is_good(outcome: &Outcome, options: &[String]) -> bool {
    let has = |word: &str| options.iter().any(|option| option.starts_with(word));
    let told = outcome.code == 122 && has("--check");
    let limit = outcome.code == 125 && has("VMPI_UNEXPECTED_BYTES") && outcome.stderr.contains("is used up");
    let refused = outcome.code == 2 && outcome.stderr.contains("does not go with");
    (outcome.code == 0 || told || limit || refused) && !outcome.stderr.contains("panicked")
}

#[test]
#[ignore = "second tier"]
fn options_change_no_answer_on_one_or_two_nodes() {
    let nodes = Nodes::beside_others("mixtures");
    let scratch = Scratch::new("mixtures");
    let (mut tried, mut good) = (0, 0);
    for seed in seeds(300) {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let entry = &PROGRAMS[draw.0.usize(..PROGRAMS.len())];
        let (ranks, several, face) =
            (draw.one(entry.1), draw.happens(25) && !OF_ONE_NODE.contains(&entry.0), draw.face());
        let turn = Turn::take();
        let binary = program(entry.0, face);
        drop(turn);
        let (flags, args) = (options(&mut draw, entry, several, &scratch), draw.arguments(entry.0));
        let run = if several { nodes.vmpirun("mixtures") } else { Vmpirun::new("mixtures") };
        let run = run.args(["-n", &ranks.to_string()]).args(&flags).arg(&binary).args(&args).cwd(scratch.path());
        let outcome = run.deadline(Duration::from_secs(120)).run();
        assert!(is_good(&outcome, &flags), "seed {seed}: -n {ranks} {flags:?} {binary:?} {args:?}: {outcome:?}");
        (tried, good) = (tried + 1, good + u32::from(outcome.code == 0));
    }
    assert!(good > tried / 2, "of {tried} only {good} have ended well: too many are refused");
}

#[test]
#[ignore = "second tier"]
fn what_runs_it_changes_no_predicted_time() {
    Turn::beside_others();
    let scratch = Scratch::new("mixtures-simulated");
    for seed in seeds(100) {
        let mut draw = Draw(fastrand::Rng::with_seed(seed));
        let entry = &PROGRAMS[draw.0.usize(..PROGRAMS.len())];
        if !entry.3 {
            continue;
        }
        let (ranks, face, args) = (draw.one(entry.1), draw.face(), draw.arguments(entry.0));
        let turn = Turn::take();
        let binary = program(entry.0, face);
        drop(turn);
        let mut base = vec!["-n".to_owned(), ranks.to_string(), "--json".into(), "--compute".into(), "none".into()];
        base.extend(["--simulate", draw.one(&["ethernet", "fat-tree", "torus", "dragonfly"])].map(str::to_owned));
        if !entry.0.starts_with("rma") && draw.happens(40) {
            base.extend(["--map-by", "node"].map(str::to_owned));
        }
        let found = [(); 3].map(|()| {
            let mut flags = vec!["-V".to_owned(), draw.one(&["1", "2", "4", "24"]).to_owned()];
            for (percent, words) in [
                (40, ["--policy", draw.one(&["rr", "fifo", "lifo", "priority", "follow"])]),
                (20, ["--cores", "0"]),
                (30, ["--balance", draw.one(&["none", "steal"])]),
                (15, ["-x", "VMPI_MAP_MEMORY=1"]),
            ] {
                if draw.happens(percent) {
                    flags.extend(words.map(str::to_owned));
                }
            }
            let run = Vmpirun::new("mixtures").args(&base).args(&flags).arg(&binary).args(&args).cwd(scratch.path());
            let outcome = run.deadline(Duration::from_secs(120)).run();
            assert_eq!(outcome.code, 0, "seed {seed}: {base:?} {flags:?} {binary:?} {args:?}: {outcome:?}");
            let json = outcome.stdout.lines().find(|line| line.starts_with("{\"")).expect("--json prints a line");
            let told: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
            told["report"]["simulation"]["predicted_s"].to_string()
        });
        assert!(
            found[0] != "null" && found.iter().all(|time| *time == found[0]),
            "seed {seed}: {base:?} {binary:?}: {found:?}"
        );
    }
}
