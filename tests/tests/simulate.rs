//! Virtual time (`vmpirun --simulate`): times to the picosecond, the same in every run, and what is refused.

use std::path::PathBuf;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::place::{self, Turn};

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

/// Barriers between ranks that come at different times, with messages under way that are answered meanwhile, on links that are shared and on such that are not.
#[test]
fn barriers_that_are_played_take_what_their_messages_take() {
    Turn::beside_others();
    let binary = built("simulated_barriers.c");
    let shared = place::top().join("tests/data/simulate/cluster.toml").to_string_lossy().into_owned();
    for machine in [machine("quads.toml"), shared, "fat-tree".into(), "torus".into(), "dragonfly".into()] {
        let run = |how: &str, v: &str| {
            let flags = ["-n", "13", "-V", v, "--compute", "none", "--collectives", how, "--simulate", &machine];
            let outcome = Vmpirun::new("barriers").args(flags).arg(&binary).deadline(Duration::from_secs(120)).run();
            assert_eq!(outcome.code, 0, "{machine} {how}: {outcome:?}");
            lines(&outcome)
        };
        let by_messages = run("messages", "7");
        assert_eq!(by_messages.len(), 13 * 20, "{by_messages:?}");
        for v in ["7", "13"] {
            let played = run("engine", v);
            let differs = by_messages.iter().zip(&played).find(|(one, other)| one != other);
            assert!(played.len() == by_messages.len() && differs.is_none(), "{machine}, V {v}: {differs:?}");
        }
    }
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
    for program in ["coll.c", "nbc.c", "comms.c"] {
        let outcome = good(program, 6, &["-V", "3", "--compute", "none"], &[]);
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
    refused(&["--trace", "x.svg"], 2, "--simulate does not go with --trace");
    refused(&["--compute", "replay:x"], 2, "not offered yet");
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
