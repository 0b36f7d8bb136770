//! Choices that MPI leaves open: by a seed (`--chaos`), by a record (`--record`, `--replay`), one after the other (`--explore`).

use std::path::{Path, PathBuf};
use std::time::Duration;
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::scratch::Scratch;

fn run(binary: &Path, ranks: u32, flags: &[&str], args: &[&str]) -> Outcome {
    let one_core = ["-n", &ranks.to_string(), "-V", &ranks.to_string()];
    let run = Vmpirun::new("orders").args(one_core).args(flags).arg(binary).args(args);
    run.deadline(Duration::from_secs(120)).run()
}

fn faults() -> PathBuf {
    made("chance_faults.c", Mpi::Openmpi)
}

fn orders() -> PathBuf {
    made("chance_orders.c", Mpi::Openmpi)
}

/// Programs, and whether their fault is another output only.
const FAULTS: [(&str, bool); 10] = [
    ("head_to_head", false),
    ("any_source_order", false),
    ("by_another_way", false),
    ("probe_races", false),
    ("missing_wait", false),
    ("sum_by_arrival", true),
    ("fence_forgotten", false),
    ("waitany_order", false),
    ("to_itself", false),
    ("tested_once", false),
];

/// The usual run does not show the fault, some seed does, and the command that is told repeats it.
#[test]
fn a_seed_shows_what_the_usual_order_hides() {
    let binary = faults();
    for (name, by_output) in FAULTS {
        let usual = run(&binary, 4, &[], &[name, "bad"]);
        assert_eq!(usual.code, 0, "{name} fails by itself: {usual:?}");
        let compare: &[&str] = if by_output { &["--compare", "stdout"] } else { &[] };
        let found = run(&binary, 4, &[&["--chaos", "1..100"], compare].concat(), &[name, "bad"]);
        assert!([1, 3, 123].contains(&found.code), "{name}: nothing is found: {found:?}");
        let line = found.stderr.lines().find(|line| line.contains("--chaos: seed ")).expect("what was found");
        let seed = line.split("seed ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a seed");
        assert!(line.contains(&format!("--chaos {seed}")), "{line}");
        let again = run(&binary, 4, &["--on-deadlock", "abort", "--chaos", seed], &[name, "bad"]);
        assert_eq!(again.code, if by_output { 0 } else { found.code }, "{name}, seed {seed}: {again:?}");
    }
}

#[test]
fn correct_twins_run_clean() {
    let binary = faults();
    for (name, _) in FAULTS {
        let clean = run(&binary, 4, &["--chaos", "1..12", "--compare", "stdout"], &[name, "good"]);
        assert_eq!(clean.code, 0, "{name}: {clean:?}");
        assert!(clean.stderr.contains("seeds 1 to 12: all end well, and print the same"), "{name}: {clean:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_order_and_others_give_others() {
    let binary = orders();
    let mut seen = std::collections::BTreeSet::new();
    for seed in ["1", "2", "3", "4", "5"] {
        for args in [&["mix"][..], &["wild", "600"]] {
            let once = run(&binary, 6, &["--chaos", seed], args);
            let twice = run(&binary, 6, &["--chaos", seed], args);
            assert_eq!((once.code, twice.code), (0, 0), "{once:?} {twice:?}");
            assert_eq!(once.stdout, twice.stdout, "seed {seed} of {args:?}");
            seen.insert(once.stdout);
        }
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

/// In the middle of one operation's start a message is taken in that another one waits for.
#[test]
fn collectives_under_way_go_on_whatever_was_taken_in_meanwhile() {
    let binary = made("io_coll.c", Mpi::Openmpi);
    let scratch = Scratch::new("orders-under-way");
    for seed in ["769466", "769466,sched,delay", "2", "3"] {
        let run = Vmpirun::new("orders").cwd(scratch.path()).args(["-n", "6", "-V", "6", "--chaos", seed]).arg(&binary);
        let outcome = run.run();
        assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{seed}: {outcome:?}");
    }
}

/// What MPI does not leave open no seed decides: null and inactive requests are complete, and so is what has been told to be; a message that was probed is there.
#[test]
fn a_seed_decides_nothing_that_mpi_says() {
    let binary = made("chance_told.c", Mpi::Standard);
    for seed in 1..=8 {
        for words in ["", ",tests"] {
            let outcome = run(&binary, 2, &["--chaos", &format!("{seed}{words}")], &[]);
            assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{seed}{words}: {outcome:?}");
        }
    }
}

/// Of several collectives under way the one that is waited for needs a message that was let go beside it.
#[test]
fn nonblocking_collectives_end_whatever_is_held_back() {
    let binary = made("chance_nonblocking.c", Mpi::Standard);
    for seed in 1..=12 {
        for ranks in [3, 5] {
            let seed = format!("{seed},delay");
            let outcome = run(&binary, ranks, &["--on-deadlock", "abort", "--chaos", &seed], &[]);
            assert_eq!(outcome.code, 0, "{seed}: {outcome:?}");
        }
    }
}

/// MPI ends and begins again: what was held back then is let go, and the record goes on.
#[test]
fn sessions_that_follow_each_other_keep_their_order() {
    let binary = made("sessions.c", Mpi::Openmpi);
    let scratch = Scratch::new("orders-sessions");
    let record = scratch.path().join("record").to_string_lossy().into_owned();
    for ranks in [1, 3] {
        for flags in [&["--chaos", "3"][..], &["--chaos", "17,delay"], &["--record", &record], &["--replay", &record]] {
            let outcome = run(&binary, ranks, flags, &[]);
            assert!(outcome.code == 0 && outcome.stdout.contains("all checks hold"), "{flags:?}: {outcome:?}");
        }
    }
}

#[test]
fn a_replay_takes_what_the_record_took() {
    let binary = orders();
    let scratch = Scratch::new("orders-records");
    let file = |name: &str| scratch.path().join(name).to_string_lossy().into_owned();
    let (mix, wild) = (file("mix"), file("wild"));
    for (record, args) in [(&mix, &["mix"][..]), (&wild, &["wild", "20000"])] {
        let first = run(&binary, 8, &["--chaos", "5", "--record", record], args);
        assert_eq!(first.code, 0, "{first:?}");
        for flags in [&["--replay", record.as_str()][..], &["--policy", "lifo", "--replay", record]] {
            let again = run(&binary, 8, flags, args);
            assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{flags:?}: {again:?}");
        }
        // Another V.
        let four = ["-n", "8", "-V", "4", "--replay", record];
        let again = Vmpirun::new("orders").args(four).arg(&binary).args(args).run();
        assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{again:?}");
    }
    let bytes = std::fs::metadata(&wild).expect("a record").len();
    // Source and tag: two bytes each.
    assert!((30_000..45_000).contains(&bytes), "{bytes} bytes of 20,000 receives with two wildcards");
    let left = std::fs::read_dir(scratch.path()).expect("it is there").count();
    assert_eq!(left, 2, "what ranks have written is put together");
    for (ranks, program, args, word) in [
        (6, &binary, "mix", "is a record of 8 ranks, and this job has 6"),
        (8, &faults(), "mix", "is a record of another program"),
    ] {
        let refused = run(program, ranks, &["--replay", &mix], &[args]);
        assert!(refused.code == 2 && refused.stderr.contains(word), "{refused:?}");
    }
    let astray = run(&binary, 8, &["--replay", &mix], &["wild", "100"]);
    assert!(astray.code == 125 && astray.stderr.contains("rank 0 leaves the record in its decision"), "{astray:?}");
    let none = run(&binary, 8, &["--replay", &binary.to_string_lossy()], &["mix"]);
    assert!(none.code == 2 && none.stderr.contains("is no record of"), "{none:?}");
}

#[test]
fn other_orders_are_found_and_counted() {
    let binary = orders();
    let scratch = Scratch::new("orders-explored");
    let explore = |args: &[&str]| {
        let run = Vmpirun::new("orders").args(["-n", "4", "-V", "4", "--explore"]).arg(&binary).args(args);
        run.cwd(scratch.path()).deadline(Duration::from_secs(120)).run()
    };
    for (name, code) in [("deadlock1", 123), ("deadlock2", 123), ("deadlock3", 123), ("race", 3)] {
        let usual = run(&binary, 4, &["--on-deadlock", "abort"], &[name]);
        let found = explore(&[name]);
        assert_eq!(found.code, code, "{name}: {found:?}");
        assert!(found.stderr.contains("--explore: found"), "{name}: {found:?}");
        let record = scratch.path().join("vmpi-explored.record");
        let record = record.to_string_lossy();
        let again = run(&binary, 4, &["--on-deadlock", "abort", "--replay", &record], &[name]);
        assert_eq!(again.code, code, "{name}, which usually ends with {}: {again:?}", usual.code);
    }
    let binary = faults();
    let all =
        Vmpirun::new("orders").args(["-n", "4", "-V", "4", "--explore"]).arg(&binary).args(["probe_races", "good"]);
    let all = all.cwd(scratch.path()).run();
    assert_eq!(all.code, 0, "{all:?}");
    // Three messages: six orders.
    assert!(all.stderr.contains("6 different orders, all that"), "{all:?}");
}

/// Over nodes a record is followed, whoever's messages come first; other orders are for one node.
#[test]
fn over_nodes_a_record_is_followed() {
    let (binary, nodes, scratch) = (orders(), Nodes::new("orders"), Scratch::new("orders-nodes"));
    let run = |flags: &[&str], args: &[&str]| {
        let run = nodes.vmpirun("orders").args(["--map-by", "node", "-n", "4"]).args(flags.iter().copied());
        run.arg(&binary).args(args.iter().copied()).deadline(Duration::from_secs(120)).run()
    };
    for args in [&["mix"][..], &["wild", "3000"]] {
        let file = scratch.path().join(args[0]).to_string_lossy().into_owned();
        let first = run(&["--chaos", "7", "--record", &file], args);
        assert_eq!(first.code, 0, "{first:?}");
        let again = run(&["--replay", &file], args);
        assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{again:?}");
    }
    let refused = run(&["--explore"], &["mix"]);
    assert!(refused.code == 2 && refused.stderr.contains("--explore is for one node"), "{refused:?}");
}

/// Senders whose messages are not the next ones do not fill the receiver's memory: a replay in another order than ranks would send by themselves.
#[test]
fn a_replay_holds_few_messages_that_are_not_due() {
    let (binary, scratch) = (orders(), Scratch::new("orders-held"));
    let file = scratch.path().join("record").to_string_lossy().into_owned();
    let args = ["wild", "35000"];
    let first = run(&binary, 8, &["--policy", "lifo", "--record", &file], &args);
    assert_eq!(first.code, 0, "{first:?}");
    let again = run(&binary, 8, &["--replay", &file], &args);
    assert_eq!((again.code, &again.stdout), (0, &first.stdout), "{again:?}");
    let held = |outcome: &Outcome| {
        let most = outcome.stderr.lines().find_map(|line| line.strip_prefix("held "));
        most.and_then(|most| most.parse::<u32>().ok()).unwrap_or_else(|| panic!("{outcome:?}"))
    };
    // 35,000 messages; without a word to the senders most of them lie there at one time.
    assert!(held(&again) < 6000, "{} messages", held(&again));
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let binary = orders();
    for (flags, word) in [
        (&["--chaos", "x"][..], "`x` is no seed"),
        (&["--chaos", "9..1"], "the last seed is smaller"),
        (&["--chaos", "1,luck"], "`luck` is not one of sched, match, delay, sends, tests"),
        (&["--chaos", "1", "--replay", "f"], "--chaos does not go with"),
        (&["--chaos", "1", "--enable-recovery"], "--chaos does not go with --enable-recovery"),
        (&["--record", "f", "--simulate", "laptop"], "--record does not go with --simulate"),
        (&["--explore", "--record", "f"], "--explore makes"),
        (&["--compare", "stdout"], "--compare is for several runs"),
        (&["--compare", "stderr"], "`stderr` is not stdout"),
        (&["--record", "/nowhere/at/all"], "cannot make the directory"),
        (&["--replay", "/nowhere/at/all"], "cannot read /nowhere/at/all"),
    ] {
        let refused = run(&binary, 2, flags, &["mix"]);
        assert!(refused.code != 0 && refused.stderr.contains(word), "{flags:?}: {refused:?}");
    }
}
