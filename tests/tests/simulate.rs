//! Virtual time (`vmpirun --simulate`): times to the picosecond, the same in every run, and what is refused.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::{self, Turn};
use vmpi_tests::scratch::Scratch;

fn machine(name: &str) -> String {
    place::top().join("tests/data/machines").join(name).to_string_lossy().into_owned()
}

fn built(program: &str) -> PathBuf {
    made(program, Mpi::Openmpi)
}

fn run(program: &str, ranks: u32, flags: &[&str], args: &[&str]) -> Outcome {
    Turn::beside_others();
    let binary = built(program);
    let run = Vmpirun::new(program).args(["-n", &ranks.to_string(), "--simulate", &machine("quads.toml")]).args(flags);
    run.arg(binary).args(args).deadline(Duration::from_secs(120)).run()
}

fn good(program: &str, ranks: u32, flags: &[&str], args: &[&str]) -> Outcome {
    let outcome = run(program, ranks, flags, args);
    assert_eq!(outcome.code, 0, "{program} {flags:?}: {outcome:?}");
    outcome
}

/// The machine's figures, in picoseconds.
struct Level {
    send: u64,
    wire: u64,
    receive: u64,
    /// Per byte.
    byte: u64,
    eager: u64,
}

const SWITCH: Level = Level { send: 300_000, wire: 2_000_000, receive: 250_000, byte: 1000, eager: 8192 };
const SOCKET: Level = Level { send: 100_000, wire: 200_000, receive: 50_000, byte: 100, eager: 4096 };

impl Level {
    /// Half a round trip of so many bytes: LogGP, and above the eager limit a word there and one back first.
    fn half(&self, bytes: u64) -> u64 {
        let ways = if bytes > self.eager { 3 } else { 1 };
        ways * (self.send + self.wire) + bytes * self.byte + self.receive
    }
}

#[test]
fn messages_take_what_the_machine_says_to_the_picosecond() {
    let outcome = good("simulated_times.c", 8, &["--compute", "none"], &[]);
    let line = |start: &str| {
        let found = outcome.stdout.lines().find_map(|line| line.strip_prefix(start));
        let value = found.unwrap_or_else(|| panic!("no {start} in {outcome:?}"));
        value.trim().parse::<u64>().expect("a number of picoseconds")
    };
    // A time that is no whole number of picoseconds in the arithmetic of the machine's bandwidth is the next one.
    let fits = |found: u64, wanted: u64| found == wanted || found == wanted + 1;
    for bytes in [0, 1, 128, 129, 1000, 8192, 8193, 100_000, 1 << 20] {
        let found = line(&format!("half 0 7 {bytes} "));
        assert!(fits(found, SWITCH.half(bytes)), "{bytes} bytes between hosts: {found}, not {}", SWITCH.half(bytes));
    }
    for bytes in [0, 4096] {
        let found = line(&format!("half 0 1 {bytes} "));
        assert!(fits(found, SOCKET.half(bytes)), "{bytes} bytes within a host: {found}, not {}", SOCKET.half(bytes));
    }
    assert_eq!(line("sending 10 "), 10 * SWITCH.send);
    // The interface lets one out each 400 ns, which is longer than the receiver is busy with each.
    let last = SWITCH.send + 9 * 400_000 + SWITCH.wire + SWITCH.receive;
    assert_eq!(line("burst 10 "), last + SWITCH.half(0));
}

/// There and back, with so many bytes each way.
fn there_and_back(level: &Level, bytes: u64, back: u64) -> u64 {
    level.send + 2 * level.wire + (bytes + back) * level.byte
}

#[test]
fn one_sided_operations_take_what_the_machine_says() {
    for (peer, level) in [("7", &SWITCH), ("1", &SOCKET)] {
        let outcome = good("simulated_windows.c", 8, &["--compute", "none"], &["times", peer]);
        let line = |start: &str| {
            let found = outcome.stdout.lines().find_map(|line| line.strip_prefix(&format!("0] {start} ")));
            found.and_then(|value| value.parse::<u64>().ok()).unwrap_or_else(|| panic!("no {start} in {outcome:?}"))
        };
        let fits = |start: &str, wanted: u64| {
            let found = line(start);
            // A time that is no whole number of picoseconds in the machine's arithmetic is the next one, each way.
            assert!((wanted..=wanted + 2).contains(&found), "{start}, rank {peer}: {found}, not {wanted}");
        };
        for bytes in [8, 4096, 100_000, 1 << 20] {
            fits(&format!("put {bytes}"), there_and_back(level, bytes, 0));
            fits(&format!("get {bytes}"), there_and_back(level, 0, bytes));
        }
        fits("alone put 4096", there_and_back(level, 4096, 0));
        fits("alone get 4096", there_and_back(level, 0, 4096));
        fits("fetch", there_and_back(level, 8, 8));
        fits("swap", there_and_back(level, 16, 8));
        fits("unlock", level.send);
        // The barrier's last message may hold the interface.
        let lock = line("lock");
        assert!((there_and_back(level, 0, 0)..there_and_back(level, 0, 0) + 400_000).contains(&lock), "{lock}");
    }
    // Who polls sees what has come, not what is yet to.
    let flags = good("simulated_windows.c", 8, &["--compute", "none"], &["flags", "10"]);
    let round = flags.stdout.lines().find_map(|line| line.strip_prefix("0] flags ")?.parse::<u64>().ok());
    let least = 2 * (SOCKET.send + SOCKET.wire + 8 * SOCKET.byte);
    assert!(round.is_some_and(|round| (least..least + 4_000_000).contains(&round)), "{flags:?}");
}

/// Fetched numbers, swaps and locks, by ranks that come at different times.
#[test]
fn who_is_first_at_a_number_is_the_same_in_each_run() {
    let first = lines(&good("simulated_windows.c", 12, &["--compute", "none"], &["order"]));
    assert_eq!(first.len(), 12 * (20 + 5 + 8), "{first:?}");
    let runs: [&[&str]; 4] = [
        &["--compute", "none", "-V", "12"],
        &["--compute", "none", "-V", "12", "--policy", "lifo"],
        &["--compute", "none", "-V", "6", "--balance", "steal"],
        &["--compute", "none", "-V", "6", "--quantum", "1"],
    ];
    for flags in runs {
        let again = lines(&good("simulated_windows.c", 12, flags, &["order"]));
        let differs = first.iter().zip(&again).find(|(first, again)| first != again);
        assert!(again.len() == first.len() && differs.is_none(), "{flags:?}: {differs:?}");
    }
}

#[test]
fn windows_and_shared_file_pointers_give_the_same_answers_in_virtual_time() {
    let cases: [(&str, u32, &[&str]); 12] = [
        ("rma_move.c", 4, &[]),
        ("rma_move.c", 6, &["apart"]),
        ("rma_accumulate.c", 6, &[]),
        ("rma_sync.c", 6, &[]),
        ("rma_win.c", 4, &[]),
        ("rma_win.c", 5, &["apart"]),
        ("rma_errors.c", 3, &[]),
        ("rma_query.c", 4, &[]),
        ("rma_spin.c", 6, &["get", "20", "apart"]),
        ("rma_spin.c", 6, &["fetch", "20", "apart"]),
        ("rma_spin.c", 6, &["swap", "20", "apart"]),
        ("io_shared.c", 6, &[]),
    ];
    for (program, ranks, args) in cases {
        Turn::beside_others();
        let binary = built(program);
        let real = Vmpirun::new("real").args(["-n", &ranks.to_string()]).arg(binary).args(args).run();
        let virtual_time = good(program, ranks, &["--compute", "none"], args);
        assert_eq!(real.code, 0, "{program}: {real:?}");
        assert_eq!(lines(&virtual_time), lines(&real), "{program} {args:?}");
    }
    let left = good("simulated_windows.c", 2, &["--compute", "none"], &["left"]);
    assert_eq!(left.stdout, "1] left 1\n");
    let apart = run("rma_win.c", 5, &["--compute", "none"], &[]);
    assert!(apart.code != 0 && apart.stderr.contains("is on another host of the simulated machine"), "{apart:?}");
}

/// Data that leave their sender at the same time: which goes first must not follow from which of its requests was free when.
#[test]
fn times_of_large_messages_are_the_same_in_each_run() {
    Turn::beside_others();
    let binary = built("coll.c");
    let mut found = std::collections::BTreeSet::new();
    for flags in
        [["-V", "6", "--policy", "rr"], ["-V", "6", "--policy", "lifo"], ["-V", "3", "--policy", "fifo"]].repeat(3)
    {
        let run = Vmpirun::new("times").args(["-n", "6", "--json", "--simulate", "fat-tree", "--map-by", "node"]);
        let outcome = run.args(["--compute", "none"]).args(flags).arg(&binary).run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let json = outcome.stdout.lines().find(|line| line.starts_with('{')).expect("--json prints a line");
        let told: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
        found.insert(told["report"]["simulation"]["predicted_s"].to_string());
    }
    assert!(found.len() == 1 && !found.contains("null"), "{found:?}");
}

/// Calls are checked and recorded there as in real time, and that takes no virtual time; nor does it matter who plays collectives, to the very end.
#[test]
fn checks_and_records_change_no_virtual_time() {
    let scratch = Scratch::new("simulate-recorded");
    let [trace, matrix] = ["a.perfetto", "a.csv"].map(|name| scratch.path().join(name).to_string_lossy().into_owned());
    for (program, ranks) in [("nbc.c", 6), ("waits.c", 2), ("coll.c", 5), ("rma_move.c", 4), ("sessions.c", 3)] {
        let told = |flags: &[&str]| {
            let outcome = good(program, ranks, flags, &[]);
            let line = outcome.stderr.lines().find(|line| line.contains(": simulated on ")).map(str::to_owned);
            line.unwrap_or_else(|| panic!("{program}: {outcome:?}"))
        };
        let plain = told(&["--compute", "none"]);
        let ways: [&[&str]; 5] = [
            &["--check=cheap"],
            &["--check=full"],
            &["--trace", &trace],
            &["--matrix", &matrix],
            &["--collectives", "messages"],
        ];
        // What else a rank has under way goes on when a collective that is played is over.
        let beside = program == "nbc.c";
        for way in ways.iter().take(if beside { 2 } else { ways.len() }) {
            assert_eq!(told(&[&["--compute", "none"], *way].concat()), plain, "{program} {way:?}");
        }
    }
}

/// MPI ends and begins again, four times, before MPI_Init and after MPI_Finalize; what follows the last session is not waited for.
#[test]
fn sessions_that_follow_each_other_are_in_one_virtual_time() {
    for ranks in [1, 3, 6] {
        let outcome = good("sessions.c", ranks, &["--compute", "none"], &[]);
        assert!(outcome.stdout.contains("all checks hold"), "{outcome:?}");
        let again = good("sessions.c", ranks, &["--compute", "none", "-V", "6"], &[]);
        let told =
            |outcome: &Outcome| outcome.stderr.lines().find(|line| line.contains(": simulated on ")).map(str::to_owned);
        assert!(told(&outcome).is_some() && told(&outcome) == told(&again), "{outcome:?} {again:?}");
    }
}

/// The lines that all ranks print, in an order that does not depend on who printed first.
fn lines(outcome: &Outcome) -> Vec<String> {
    let mut lines: Vec<String> = outcome.stdout.lines().map(str::to_owned).collect();
    // Each rank's own are in its order.
    lines.sort_by_key(|line| line.split(']').next().map(str::to_owned));
    lines
}

#[test]
fn who_comes_first_is_the_same_in_each_run() {
    let first = lines(&good("simulated_order.c", 12, &["--compute", "none"], &[]));
    assert!(first.len() > 12 * 40, "{first:?}");
    let runs: [&[&str]; 6] = [
        &["--compute", "none", "-V", "6"],
        &["--compute", "none", "-V", "12"],
        &["--compute", "none", "-V", "12", "--policy", "lifo"],
        &["--compute", "none", "-V", "6", "--policy", "fifo", "--randomize"],
        &["--compute", "none", "-V", "6", "--balance", "steal"],
        &["--compute", "none", "-V", "6", "--quantum", "1"],
    ];
    for flags in runs {
        let again = lines(&good("simulated_order.c", 12, flags, &[]));
        let differs = first.iter().zip(&again).find(|(first, again)| first != again);
        assert_eq!(first.len(), again.len());
        assert!(differs.is_none(), "{flags:?}: {differs:?}");
    }
}

/// Who is late in real time, and when, is not seen in virtual time.
#[test]
fn who_is_late_in_real_time_says_nothing() {
    let first = lines(&good("simulated_late.c", 12, &["--compute", "none"], &[]));
    assert_eq!(first.len(), 6 * 12 + 2 * 11, "{first:?}");
    for who in ["0", "1", "5"] {
        let again = lines(&good("simulated_late.c", 12, &["--compute", "none"], &[who, "60"]));
        let differs = first.iter().zip(&again).find(|(first, again)| first != again);
        assert!(first.len() == again.len() && differs.is_none(), "rank {who} late: {differs:?}");
    }
}

/// Collectives of ranks that come at different times, with messages under way that are answered meanwhile, on links that are shared and on such that are not.
fn played_as_by_messages(program: &str, wanted: usize, machines: &[String]) {
    Turn::beside_others();
    let binary = built(program);
    for machine in machines {
        let run = |how: &str, v: &str| {
            let flags = ["-n", "13", "-V", v, "--compute", "none", "--collectives", how, "--simulate", machine];
            let outcome = Vmpirun::new("played").args(flags).arg(&binary).deadline(Duration::from_secs(120)).run();
            assert_eq!(outcome.code, 0, "{machine} {how}: {outcome:?}");
            lines(&outcome)
        };
        let by_messages = run("messages", "7");
        assert_eq!(by_messages.len(), wanted, "{by_messages:?}");
        for v in ["7", "13"] {
            let played = run("engine", v);
            let differs = by_messages.iter().zip(&played).find(|(one, other)| one != other);
            assert!(played.len() == by_messages.len() && differs.is_none(), "{machine}, V {v}: {differs:?}");
        }
    }
}

fn cluster() -> String {
    place::top().join("tests/data/simulate/cluster.toml").to_string_lossy().into_owned()
}

#[test]
fn barriers_that_are_played_take_what_their_messages_take() {
    let machines = [machine("quads.toml"), cluster(), "fat-tree".into(), "torus".into(), "dragonfly".into()];
    played_as_by_messages("simulated_barriers.c", 13 * 20, &machines);
}

/// And bring the same results, to the bit.
#[test]
fn broadcasts_and_allreduces_that_are_played_are_those_of_their_messages() {
    played_as_by_messages("simulated_collectives.c", 13 * 25, &[machine("quads.toml"), cluster(), "dragonfly".into()]);
}

#[test]
fn clocks_tell_virtual_time_and_sleeping_does_not_wait() {
    let begun = std::time::Instant::now();
    let none = good("simulated_clocks.c", 2, &["--compute", "none"], &[]);
    assert!(none.stdout.contains("clocks hold"), "{none:?}");
    let measured = good("simulated_clocks.c", 2, &["--compute", "measured"], &["measured"]);
    assert!(measured.stdout.contains("clocks hold"), "{measured:?}");
    assert!(begun.elapsed() < Duration::from_secs(100), "ten hours were slept in virtual time");
}

#[test]
fn a_barrier_of_many_ranks_takes_as_many_rounds_as_a_dissemination_has() {
    let outcome = good("barriertest.c", 128, &["--compute", "none"], &["5"]);
    let line = outcome.stdout.lines().next().expect("a line");
    let mean: f64 = line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).expect("microseconds");
    // Seven rounds: the first two within hosts for some, all others over the switch.
    let (least, most) = (5.0 * 2.55, 7.0 * 2.95);
    assert!((least..most).contains(&mean), "{line}");
    assert!(outcome.stderr.contains("in virtual time"), "{}", outcome.stderr);
}

#[test]
fn collectives_give_the_same_results_in_virtual_time() {
    // The last one is for ranks of one node, here of one simulated host.
    for (program, ranks) in [("coll.c", 6), ("nbc.c", 6), ("comms.c", 4)] {
        let outcome = good(program, ranks, &["-V", "3", "--compute", "none"], &[]);
        assert!(outcome.stdout.contains("all checks hold"), "{program}: {outcome:?}");
    }
}

#[test]
fn a_deadlock_in_virtual_time_is_told_of() {
    let outcome = run("deadlock.c", 2, &["--compute", "none", "--on-deadlock", "abort"], &["two-receives"]);
    assert_eq!(outcome.code, 123, "{outcome:?}");
    assert!(
        outcome.stderr.contains("rank 0 waits in MPI_Recv") && outcome.stderr.contains("wait for each other"),
        "{outcome:?}"
    );
    let locks = run("simulated_windows.c", 3, &["--compute", "none", "--on-deadlock", "abort"], &["stuck"]);
    assert_eq!(locks.code, 123, "{locks:?}");
    for rank in 0..3 {
        let next = (rank + 1) % 3;
        let line =
            locks.stderr.lines().find(|line| line.starts_with(&format!("  rank {rank} waits in MPI_Win_lock at")));
        let turn = format!("for its turn with the window of rank {next}");
        assert!(line.is_some_and(|line| line.contains(&turn)), "{locks:?}");
    }
}

/// Fortran's interfaces need libc before they need the library that replaces its clocks.
#[test]
fn fortran_clocks_tell_virtual_time() {
    let outcome = good("simulated_clocks.f90", 2, &["--compute", "none"], &[]);
    assert_eq!(outcome.stdout.trim(), "10800 and 10800", "{outcome:?}");
}

/// Of 64 ranks 4,032 messages are under way at once.
#[test]
fn messages_of_all_to_all_share_links_and_have_room() {
    Turn::beside_others();
    let binary = built("simulated_all_to_all.c");
    let cluster = place::top().join("tests/data/simulate/cluster.toml");
    let time = |ranks: &str| {
        let run = Vmpirun::new("all-to-all").args(["-n", ranks, "--compute", "none", "--simulate"]).arg(&cluster);
        let outcome = run.arg(&binary).deadline(Duration::from_secs(120)).run();
        assert!(outcome.code == 0 && outcome.stdout.starts_with("0 wrong, "), "{outcome:?}");
        let words: Vec<&str> = outcome.stdout.split_whitespace().collect();
        words[2].parse::<u64>().expect("a number of nanoseconds")
    };
    let (half, all) = (time("32"), time("64"));
    assert!(half < all && all < 4 * half, "{half} ns of 32 ranks, {all} of 64");
    assert_eq!(all, time("64"));
}

#[test]
fn what_is_not_simulated_is_refused_with_a_sentence() {
    let refused = |flags: &[&str], ranks: u32, words: &str| {
        let outcome = run("barriertest.c", ranks, flags, &[]);
        assert!(outcome.code != 0 && outcome.stderr.contains(words), "{flags:?}: {outcome:?}");
    };
    refused(&["--enable-recovery"], 2, "--simulate does not go with --enable-recovery");
    refused(&["--compute", "replay:no-such-file"], 2, "--compute replay:no-such-file");
    refused(&["--compute", "replay:/etc/passwd"], 2, "it is no recording");
    refused(&["--collectives", "flat"], 2, "`flat` is not one of engine, messages");
    refused(&[], 257, "257 ranks are more than the simulated machine");
    let outcome = Vmpirun::new("unknown").args(["-n", "2", "--simulate", "no-such-machine", "true"]).run();
    assert!(outcome.code == 2 && outcome.stderr.contains("no-such-machine"), "{outcome:?}");
    let outcome = Vmpirun::new("without").args(["-n", "2", "--compute", "none", "true"]).run();
    assert!(outcome.code == 2 && outcome.stderr.contains("say --simulate, too"), "{outcome:?}");
    let outcome = Vmpirun::new("without").args(["-n", "2", "--collectives", "messages", "true"]).run();
    assert!(outcome.code == 2 && outcome.stderr.contains("say --simulate, too"), "{outcome:?}");
    let list = Vmpirun::new("list").args(["--simulate", "list"]).run();
    assert!(list.code == 0 && list.stdout.contains("laptop"), "{list:?}");
}

/// Calls that there are not in virtual time say so, and end the job; of threads, what is granted is said.
#[test]
fn calls_that_are_not_simulated_say_why() {
    let cases = [
        ("spawn", "MPI_Comm_spawn is not offered in a simulated job"),
        ("port", "MPI_Open_port is not offered in a simulated job"),
    ];
    for (call, words) in cases {
        let outcome = run("simulated_refused.c", 2, &["--compute", "none"], &[call]);
        assert!(outcome.code != 0 && outcome.stderr.contains(words), "{call}: {outcome:?}");
    }
    let threads = good("simulated_refused.c", 2, &["--compute", "none"], &["threads"]);
    assert_eq!(threads.stdout, "serialized\n");
    assert_eq!(threads.stderr.matches("MPI_THREAD_SERIALIZED is granted").count(), 1, "{threads:?}");
}

/// What a rank waits for there does not come before it calls MPI.
#[test]
fn a_rank_that_spins_outside_mpi_is_named_with_its_place() {
    let scratch = Scratch::new("simulated-spin");
    let file = |name: &str| scratch.path().join(name).to_string_lossy().into_owned();
    // One that another rank ends without waiting for anything is nobody's fault.
    for how in ["soon", "named"] {
        let ended = good("simulated_spin.c", 2, &["--compute", "none", "-V", "2"], &[&file(how), how]);
        assert_eq!(ended.stdout, "seen\n", "{how}");
    }
    let begun = Instant::now();
    let late = run("simulated_spin.c", 3, &["--compute", "none", "-V", "3"], &[&file("late"), "late"]);
    assert_eq!(late.code, 123, "{late:?}");
    let words =
        ["virtual time cannot go on: for 5 s", "rank 0 in wait_for_the_flag (simulated_spin", "spins on memory"];
    assert!(words.iter().all(|word| late.stderr.contains(word)), "{late:?}");
    assert!((5..30).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[test]
fn what_ranks_compute_is_recorded_and_replayed() {
    let scratch = Scratch::new("simulated-work");
    let tape = scratch.path().join("tape");
    let (record, replay) = (format!("record:{}", tape.display()), format!("replay:{}", tape.display()));
    for args in [&[][..], &["polls"]] {
        let recorded = good("simulated_work.c", 5, &["--compute", &record, "-V", "2"], args);
        let first = good("simulated_work.c", 5, &["--compute", &replay], args);
        // The same network, the same polls: the same times, to the picosecond.
        assert_eq!(recorded.stdout, first.stdout);
        assert_eq!(recorded.stdout.lines().count(), 6);
        let again = good("simulated_work.c", 5, &["--compute", &replay, "-V", "5", "--policy", "lifo"], args);
        assert_eq!(first.stdout, again.stdout);
        // On another network the rounds take longer, and the work as long as it did.
        let slow = ["--compute", &replay, "--sweep", "latency=50us", "-q"];
        let slow = good("simulated_work.c", 5, &slow, args);
        let columns = |outcome: &Outcome, column: usize| {
            let rows = outcome.stdout.lines().take(6).map(|line| line.split(' ').nth(column).unwrap_or("").to_owned());
            rows.collect::<Vec<_>>()
        };
        assert_eq!(columns(&first, 1), columns(&slow, 1), "{args:?}");
        assert_ne!(columns(&first, 2), columns(&slow, 2), "{args:?}");
    }
    let differs = |ranks: u32, args: &[&str], words: &[&str]| {
        let outcome = run("simulated_work.c", ranks, &["--compute", &replay], args);
        assert!(outcome.code != 0, "{outcome:?}");
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{outcome:?}");
    };
    good("simulated_work.c", 5, &["--compute", &record], &[]);
    differs(4, &[], &["it was recorded of 5 ranks", "this job has 4"]);
    differs(5, &["other"], &["this run is not the one that was recorded", "is MPI_Barrier, and there it was MPI_Wait"]);
}

#[test]
fn a_sweep_tells_what_each_network_would_take() {
    let scratch = Scratch::new("simulated-sweep");
    let picture = scratch.path().join("sweep.svg");
    let picture = picture.to_string_lossy();
    let flags = ["--compute", "none", "--sweep", "latency=2us,4us,8us", "--sweep-picture", &picture, "-q", "--json"];
    let outcome = good("barriertest.c", 8, &flags, &["5"]);
    let at = outcome.stdout.rfind("\n{").map_or(0, |at| at + 1);
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout[at..]).expect("JSON");
    let runs = document["runs"].as_array().expect("an array");
    let times: Vec<f64> = runs.iter().map(|run| run["simulation"]["predicted_s"].as_f64().expect("a time")).collect();
    // All but the latency stays: twice the difference for twice the latency.
    assert_eq!(times.len(), 3);
    assert!(((times[2] - times[1]) / (times[1] - times[0]) - 2.0).abs() < 0.05, "{times:?}");
    let svg = std::fs::read_to_string(&*picture).expect("it was written");
    assert!(svg.starts_with("<svg") && svg.contains(">8us<"), "{svg}");
    let ranks = good("barriertest.c", 1, &["--compute", "none", "--sweep", "ranks=2,4"], &["5"]);
    assert!(ranks.stdout.contains("ranks  TIME") && ranks.stdout.contains("\n4 "), "{ranks:?}");
    let refused = |flags: &[&str], words: &str| {
        let outcome = run("barriertest.c", 2, flags, &["5"]);
        assert!(outcome.code == 2 && outcome.stderr.contains(words), "{flags:?}: {outcome:?}");
    };
    refused(&["--sweep", "speed=1"], "latency, bandwidth, machine, ranks");
    refused(&["--sweep", "latency=1"], "is no latency");
    refused(&["--sweep", "machine=laptop"], "leave out --simulate");
    refused(&["--sweep", "latency=1us", "--compute", "record:x"], "record first");
}

/// Ranks' accesses take what the machine says of its files: 100 us and 1 ns a byte.
#[test]
fn files_of_mpi_take_their_time() {
    let scratch = Scratch::new("simulated-io");
    let run = |flags: &[&str]| {
        let file = scratch.path().join("data").to_string_lossy().into_owned();
        let outcome = good("simulated_io.c", 6, &[&["--compute", "none"], flags].concat(), &[&file]);
        assert!(outcome.stdout.starts_with("0 wrong, write 116384 read 116384 collective "), "{outcome:?}");
        outcome.stdout
    };
    assert_eq!(run(&["-V", "6"]), run(&["-V", "3", "--policy", "lifo"]));
}

/// Timelines of a simulated job have its own times: each rank runs or waits for all of it, and messages take what the machine says.
#[test]
fn traces_and_matrices_are_in_virtual_time() {
    let scratch = Scratch::new("simulated-trace");
    let file = |name: &str| scratch.path().join(name).to_string_lossy().into_owned();
    let (trace, page, matrix) = (file("trace.svg"), file("page.html"), file("matrix.json"));
    let flags = ["--compute", "none", "--trace", &trace, "--report-html", &page, "--matrix", &matrix, "--json"];
    let outcome = good("simulated_work.c", 5, &[&flags[..], &["--report"]].concat(), &[]);
    assert!(outcome.stderr.contains("in virtual time") && outcome.stderr.contains("a second"), "{outcome:?}");
    let at = outcome.stdout.rfind("\n{").map_or(0, |at| at + 1);
    let document: serde_json::Value = serde_json::from_str(&outcome.stdout[at..]).expect("JSON");
    let predicted = document["report"]["simulation"]["predicted_s"].as_f64().expect("a time") * 1e9;
    let html = std::fs::read_to_string(&page).expect("it was written");
    let data =
        html.split("type=\"application/json\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let length = data["length"].as_f64().expect("a length");
    assert!((length - predicted).abs() <= 1.0, "{length} ns, predicted {predicted}");
    for rank in data["ranks"].as_array().expect("ranks") {
        let slices: Vec<i64> = rank["slices"].as_array().expect("slices").iter().filter_map(|n| n.as_i64()).collect();
        let spans: i64 = slices.chunks(6).map(|slice| slice[1]).sum();
        // Until its own end.
        assert!(slices.len() > 6 * 6 && (length / 2.0..=length).contains(&(spans as f64)), "{rank} of {length} ns");
    }
    // Of each message: from, to, sent, how long under way, bytes, tag.
    let messages: Vec<i64> = data["messages"].as_array().expect("messages").iter().filter_map(|n| n.as_i64()).collect();
    let of_the_program = messages.chunks(6).filter(|message| message[4] == 4 && message[5] < 6);
    let (mut count, mut least) = (0, i64::MAX);
    of_the_program.for_each(|message| (count, least) = (count + 1, least.min(message[3])));
    assert!(count >= 30 && (250..400).contains(&least), "{count} messages, {least} ns the fastest");
    let svg = std::fs::read_to_string(&trace).expect("it was written");
    assert!(svg.starts_with("<svg") || svg.contains("<svg"), "{svg}");
    let counted: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&matrix).expect("it was written")).expect("JSON");
    assert!(counted.to_string().len() > 100, "{counted}");
}

/// Of collectives that the simulation would play otherwise, too.
#[test]
fn a_trace_and_a_matrix_tell_of_the_same_messages() {
    let scratch = Scratch::new("simulated-agree");
    let file = |name: &str| scratch.path().join(name).to_string_lossy().into_owned();
    let (page, matrix) = (file("page.html"), file("matrix.json"));
    let flags = ["--compute", "none", "--collectives", "engine", "--report-html", &page, "--matrix", &matrix];
    good("simulated_collectives.c", 13, &flags, &[]);
    let html = std::fs::read_to_string(&page).expect("it was written");
    let data = html.split("type=\"application/json\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let data: serde_json::Value = serde_json::from_str(data.expect("data")).expect("JSON");
    let numbers: Vec<u64> =
        data["messages"].as_array().expect("messages").iter().map(|n| n.as_u64().unwrap_or(0)).collect();
    let mut drawn = std::collections::BTreeMap::new();
    numbers.chunks(6).for_each(|message| *drawn.entry((message[0], message[1])).or_insert(0) += 1);
    let counted: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&matrix).expect("it was written")).expect("JSON");
    let mut entries = std::collections::BTreeMap::new();
    for entry in counted["entries"].as_array().expect("entries") {
        let number = |name: &str| entry[name].as_u64().unwrap_or_else(|| panic!("{name} in {entry}"));
        *entries.entry((number("from"), number("to"))).or_insert(0) += number("messages");
    }
    assert!(drawn.values().sum::<u64>() > 1000, "{drawn:?}");
    assert_eq!(drawn, entries);
}
