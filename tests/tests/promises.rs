//! Promises 2.3, 2.4, 2.9 and 4.1 of docs/SPECIFICATION.md, with real processes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::daemon::Daemon;
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::{Load, Process, eventually, load};
use vmpi_tests::place::Turn;

fn built(name: &str) -> std::path::PathBuf {
    let _turn = Turn::take();
    program(name, Mpi::Openmpi)
}

/// SPECIFICATION 2.3: a rank that waits uses no CPU, in whichever way it waits; nor do the daemon and the launcher of an idle job.
///
/// No load of the machine makes a process that is not woken run, so the bounds are tight: a rank may have no more than a
/// millisecond of CPU time in two seconds, and daemon and launcher may not wake oftener than their timers say.
fn an_idle_job_sleeps(name: &str, args: &[&str]) {
    const RANKS: usize = 7;
    let binary = built("blocked.c");
    let mut job = Vmpirun::new(name)
        .args(["-n", &RANKS.to_string(), "-V", "4", "--on-deadlock", "ignore"])
        .arg(binary)
        .args(args)
        .start();
    let pids = job.ready(RANKS);
    // What came last before the silence: hand-offs, the end of the spinning (1 ms at most), the watchdog's slowing down.
    std::thread::sleep(Duration::from_millis(1500));
    let others: Vec<Process> = job.processes().into_iter().filter(|p| !pids.contains(&p.pid)).collect();
    assert!(others.iter().filter(|p| p.name.starts_with("vmpid")).count() == 2, "keeper and daemon: {others:?}");
    assert!(others.iter().any(|p| p.name.starts_with("vmpirun")), "{others:?}");
    let all: Vec<i32> = pids.iter().copied().chain(others.iter().map(|p| p.pid)).collect();
    let look = || -> Vec<Load> { all.iter().map(|&pid| load(pid).expect("nobody has ended")).collect() };
    let (before, start) = (look(), Instant::now());
    std::thread::sleep(Duration::from_secs(2));
    let (after, wall_s) = (look(), start.elapsed().as_secs_f64());
    kill(Pid::from_raw(job.pid()), Signal::SIGTERM).expect("vmpirun is alive");
    job.finish();
    for ((pid, a), b) in all.iter().zip(&before).zip(&after) {
        let (cpu_ns, sleeps) = (b.cpu_ns - a.cpu_ns, b.sleeps - a.sleeps);
        let told = format!("process {pid} used {cpu_ns} ns of CPU time and went to sleep {sleeps} times in {wall_s} s");
        if pids.contains(pid) {
            assert!(cpu_ns < 1_000_000 && sleeps == 0, "rank: {told}");
        } else {
            // The watchdog's four looks a second, and twice that as a margin for what a timer rounds.
            assert!((sleeps as f64) < 8.0 * wall_s + 4.0 && cpu_ns < 20_000_000, "{told}: {others:?}");
        }
    }
}

#[test]
fn an_idle_job_uses_no_cpu() {
    an_idle_job_sleeps("idle", &[]);
}

#[test]
fn nor_does_one_with_a_rank_that_sleeps_outside_mpi() {
    an_idle_job_sleeps("idle-outside", &["outside"]);
}

/// SPECIFICATION 4.1: whatever a rank writes into the memory that it shares with its job, the daemon goes on, and another job of that
/// daemon gets its answers.
#[test]
fn a_rank_that_scribbles_ends_its_own_job_only() {
    let (scribbler, traffic) = (built("scribble.c"), built("traffic.c"));
    let daemon = Daemon::start("scribble");
    let pid = daemon.pid();
    let good = |name: &str| daemon.vmpirun(name).args(["-n", "4", "-V", "2"]).arg(&traffic);
    for (number, how) in ["noise", "zeros", "ones", "small", "lasting", "noise", "small", "lasting"].iter().enumerate()
    {
        for policy in ["rr", "fifo", "lifo", "priority", "follow"] {
            let told = format!("{how}, seed {number}, {policy}");
            // Beside it all the time: more rounds than the scribbler's job lives, checked to the last byte.
            let beside = good("beside").args(["30", &number.to_string()]).start();
            let mut bad = daemon
                .vmpirun("bad")
                .args(["-n", "6", "-V", "3", "--policy", policy])
                .arg(&scribbler)
                .args([how, &number.to_string()[..]])
                .start();
            bad.read_until(|text| text.contains("scribbled "));
            for _ in 0..5 {
                let listing = bad.vmpictl(&["ps", "--ranks", "--json"]);
                assert_eq!(listing.code, 0, "{told}: {listing:?}");
                let _: Value = serde_json::from_str(&listing.stdout).expect("vmpictl --json prints JSON");
            }
            // It may end by itself, with a sentence; or hang, and then its user ends it.
            if !eventually(Duration::from_secs(4), || bad.has_ended()) {
                kill(Pid::from_raw(bad.pid()), Signal::SIGTERM).expect("vmpirun is alive");
            }
            let outcome = bad.finish();
            assert!(!outcome.stdout.contains("scribbled 0\n"), "{told}: nothing was found to scribble on");
            assert!(outcome.code == 0 || !outcome.stderr.is_empty(), "{told}: {outcome:?}");
            let beside = beside.finish();
            assert!(beside.code == 0 && beside.stdout.ends_with("all checks hold\n"), "{told}: {beside:?}");
            assert_eq!(daemon.pid(), pid, "{told}: the daemon goes on");
        }
    }
    let after = good("after").args(["5", "1"]).run();
    assert!(after.code == 0 && after.stdout.ends_with("all checks hold\n"), "{after:?}");
    daemon.stop();
}

/// SPECIFICATION 2.4: the clocks of all ranks of a core, its idle time and its hand-offs add up to wall time; so do running,
/// waiting and being READY or away for a rank.
#[test]
fn clocks_add_up() {
    let binary = built("clocks.c");
    for (ranks, v, flags) in [(6, 3, &[][..]), (4, 4, &["--policy", "fifo"]), (3, 3, &["--quantum", "20"]), (1, 1, &[])]
    {
        let run = Vmpirun::new("clocks").args(["-n", &ranks.to_string(), "-V", &v.to_string(), "--json"]);
        let outcome = run.args(["--balance", "none"]).args(flags).arg(&binary).run();
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let json = outcome.stdout.lines().find(|line| line.starts_with('{')).expect("vmpirun --json prints a line");
        let json: Value = serde_json::from_str(json).expect("it is JSON");
        let measured = |rank: u64| -> f64 {
            let wanted = format!("measured {rank} ");
            let line = outcome.stdout.lines().find_map(|line| line.strip_prefix(&wanted)).expect("every rank tells");
            line.parse().expect("seconds")
        };
        let seconds =
            |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"));
        let (cores, list) = (&json["report"]["cores"], &json["report"]["rank_list"]);
        for core in cores.as_array().expect("cores") {
            let wall = seconds(core, "wall_s");
            let sum: f64 = OF_CORES.iter().map(|name| seconds(core, name)).sum();
            // All of them are differences of the same time stamps: what is left is rounding of floating-point numbers.
            assert!((sum - wall).abs() < 1e-6, "core: {sum} s of {wall} s in {core}");
            let on_it = list.as_array().expect("ranks").iter().filter(|rank| rank["cpu"] == core["cpu"]);
            let ran: f64 = on_it.map(|rank| seconds(rank, "rtime_s")).sum();
            assert!((ran - seconds(core, "running_s")).abs() < 1e-6, "ranks: {ran} s of {core}");
            for rank in list.as_array().expect("ranks").iter().filter(|rank| rank["cpu"] == core["cpu"]) {
                let sum: f64 = ["rtime_s", "ready_s", "wait_s", "away_s"].iter().map(|name| seconds(rank, name)).sum();
                let inside = measured(rank["rank"].as_u64().expect("a number"));
                // MPI_Init and MPI_Finalize are part of a rank's life, but not of what it measured; the rate of the
                // node's clock is known to a part in 1,000 (it is measured over 5 ms).
                assert!(sum > inside * 0.999 && sum < wall * 1.001, "{inside} s inside, {wall} s whole: {rank}");
                let (sum, life) =
                    (OF_RANKS.iter().map(|name| seconds(rank, name)).sum::<f64>(), seconds(rank, "wall_s"));
                assert!((sum - life).abs() < 0.001 * life && life <= wall, "{sum} s of {life} s: {rank}");
            }
        }
    }
}

/// What cores' and ranks' time is told as: it adds up to `wall_s`.
const OF_CORES: [&str; 6] = ["running_s", "idle_s", "handoff_s", "withheld_s", "starting_s", "ending_s"];
const OF_RANKS: [&str; 6] = ["rtime_s", "ready_s", "wait_s", "away_s", "starting_s", "ending_s"];

fn json_of(outcome: &Outcome) -> Value {
    let json = outcome.stdout.lines().find(|line| line.starts_with('{')).expect("vmpirun --json prints a line");
    serde_json::from_str(json).expect("it is JSON")
}

/// All that must hold of every report: cores and ranks add up.
fn adds_up(told: &str, report: &Value) {
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"));
    for (list, names) in [("cores", OF_CORES), ("rank_list", OF_RANKS)] {
        for one in report[list].as_array().expect("a list") {
            let (sum, wall) = (names.iter().map(|name| number(one, name)).sum::<f64>(), number(one, "wall_s"));
            assert!((sum - wall).abs() < 1e-5 + 0.001 * wall, "{told}: {sum} s of {wall} s: {one}");
        }
    }
}

/// A wait that the end of the job cuts off is one, however it ends; and what comes after is told as the end.
#[test]
fn a_wait_that_is_cut_off_counts_as_one() {
    let binary = built("edges.c");
    for (how, flags, code) in
        [("kill", &[][..], 137), ("abort", &[], 3), ("exit", &[], 3), ("stay", &["--timeout", "1"], 124)]
    {
        let run = Vmpirun::new("cut").args(["-n", "6", "-V", "3", "--json"]).args(flags);
        let outcome = run.arg(&binary).args(["1000", how]).run();
        assert_eq!(outcome.code, code, "{how}: {outcome:?}");
        let report = &json_of(&outcome)["report"];
        adds_up(how, report);
        for rank in report["rank_list"].as_array().expect("ranks").iter().skip(1) {
            let (waited, ran) = (rank["wait_s"].as_f64().expect("s"), rank["rtime_s"].as_f64().expect("s"));
            assert!(waited > 0.5 && waited > 9.0 * ran, "{how}: it waited {waited} s, and ran {ran} s: {rank}");
        }
    }
}

/// What lies before MPI_Init and after MPI_Finalize is no idle time.
#[test]
fn start_and_end_are_told_apart_from_idle_time() {
    let binary = built("edges.c");
    let run = Vmpirun::new("edges").args(["-n", "6", "-V", "3", "--report", "--json"]);
    let outcome = run.arg(&binary).arg("600").run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let report = &json_of(&outcome)["report"];
    adds_up("edges", report);
    for one in report["cores"].as_array().expect("cores").iter().chain(report["rank_list"].as_array().expect("ranks")) {
        for edge in ["starting_s", "ending_s"] {
            assert!(one[edge].as_f64().expect("s") >= 0.6, "{edge}: {one}");
        }
        // A core is idle for less than all of it but these two.
        assert!(one["wall_s"].as_f64().expect("s") >= 1.2, "{one}");
    }
    let busy = outcome.stderr.lines().next().expect("a verdict");
    assert!(busy.starts_with("The 2 cores ran ranks for ") && busy.contains(" Start-up and end took "), "{busy}");
    // A program without MPI is never anything but starting.
    let outcome = Vmpirun::new("edges").args(["-n", "2", "--report", "--json", "-q", "sleep", "0.3"]).run();
    let report = &json_of(&outcome)["report"];
    adds_up("sleep", report);
    for rank in report["rank_list"].as_array().expect("ranks") {
        assert!(rank["starting_s"].as_f64() >= Some(0.3) && rank["ending_s"].as_f64() == Some(0.0), "{rank}");
    }
    assert!(outcome.stderr.contains("No rank came to the end of MPI_Init"), "{outcome:?}");
}

/// SPECIFICATION 2.4 where ranks move: a core's clocks count what ran there, whoever it was; a rank's go along with it; and the core-POV timers hold
/// what the ranks' own clocks say together, but not what one would get by adding those of the ranks that are there in the end.
#[test]
fn clocks_stay_right_when_ranks_move() {
    let binary = built("moved.c");
    assert!(!run_of_moving_ranks(&binary, 6, 3, "none"));
    for (ranks, v, how) in [(6, 3, "steal"), (6, 3, "refine"), (4, 2, "steal"), (4, 2, "refine")] {
        // On a machine that is busy with other things the cores may look as if they had little to do.
        assert!((0..10).any(|_| run_of_moving_ranks(&binary, ranks, v, how)), "{how}: in ten runs no rank moved");
    }
}

/// All that must hold of one run, whether ranks move or not. True if they moved, so that adding up the clocks of the ranks that are on a core in
/// the end says something else than the core's timer.
fn run_of_moving_ranks(binary: &std::path::Path, ranks: usize, v: u32, how: &str) -> bool {
    let run = Vmpirun::new("moved").args(["-n", &ranks.to_string(), "-V", &v.to_string(), "--balance", how, "--json"]);
    let outcome = run.arg(binary).arg("600").run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let json = outcome.stdout.lines().find(|line| line.starts_with('{')).expect("vmpirun --json prints a line");
    let report = &serde_json::from_str::<Value>(json).expect("it is JSON")["report"];
    let list = |name: &str| report[name].as_array().cloned().expect("a list");
    let (cores, rank_list) = (list("cores"), list("rank_list"));
    let number = |value: &Value, name: &str| value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"));
    let total = |values: &[Value], name: &str| values.iter().map(|value| number(value, name)).sum::<f64>();
    for core in &cores {
        let sum: f64 = OF_CORES.iter().map(|name| number(core, name)).sum();
        assert!((sum - number(core, "wall_s")).abs() < 1e-6, "{how}: {sum} s in {core}");
        assert!(number(core, "violations") == 0.0 && number(core, "max_running") <= 1.0, "{how}: {core}");
        let there = rank_list.iter().filter(|rank| rank["cpu"] == core["cpu"]).count();
        assert_eq!(there as f64, number(core, "ranks"), "{how}: {core}");
    }
    let (ran, of_ranks) = (total(&cores, "running_s"), total(&rank_list, "rtime_s"));
    assert!((ran - of_ranks).abs() < 1e-6, "{how}: cores ran {ran} s, ranks {of_ranks} s");
    for rank in &rank_list {
        let sum: f64 = ["rtime_s", "ready_s", "wait_s", "away_s"].iter().map(|name| number(rank, name)).sum();
        assert!(sum <= number(&cores[0], "wall_s") * 1.001, "{how}: {sum} s in {rank}");
        let (sum, life) = (OF_RANKS.iter().map(|name| number(rank, name)).sum::<f64>(), number(rank, "wall_s"));
        // Who loses its CPU between two looks at the clock is off by that.
        assert!((sum - life).abs() < 0.02 + 0.001 * life, "{how}: {sum} s of {life} s: {rank}");
    }
    // What the ranks say themselves: R, metered and the core's timer.
    let said: Vec<(u64, f64, f64)> = outcome
        .stdout
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["rank", rank, "metered", metered, "ptime", ptime] = words[..] else { return None };
            Some((rank.parse().ok()?, metered.parse().ok()?, ptime.parse().ok()?))
        })
        .collect();
    assert_eq!(said.len(), ranks, "{outcome:?}");
    let metered: f64 = said.iter().map(|(_, metered, _)| metered).sum();
    let timers = total(&cores, "ptime_s");
    // The timer begins before and ends after the program's two looks at its own clock; two looks a rank can be apart by a time slice.
    assert!(timers >= metered - 1e-6 && timers < metered * 1.02 + 0.1, "{how}: timers {timers} s, ranks {metered} s");
    let moves = total(&cores, "moves");
    assert_eq!(moves, total(&rank_list, "moves"), "{how}: {cores:?}");
    assert!(moves == 0.0 || how != "none", "{how}: {cores:?}");
    for (rank, _, ptime) in &said {
        // Of the core where it was then.
        let one = cores.iter().any(|core| (ptime - number(core, "ptime_s")).abs() < 1e-6);
        assert!(one, "{how}: rank {rank} says {ptime} s: {cores:?}");
    }
    let mut misled: f64 = 0.0;
    for core in &cores {
        let there = |rank: u64| rank_list.iter().any(|r| r["rank"].as_u64() == Some(rank) && r["cpu"] == core["cpu"]);
        let sum: f64 = said.iter().filter(|(rank, _, _)| there(*rank)).map(|(_, metered, _)| metered).sum();
        misled = misled.max((sum - number(core, "ptime_s")).abs());
    }
    assert!(moves > 0.0 || misled < metered * 0.02 + 0.1, "{how}: nobody moved, so both ways agree: {misled}");
    moves > 0.0 && misled > 1e-3
}

/// Strong progress: large messages are sent to a rank that has posted its receives and computes, as long as nobody asks for the opposite.
#[test]
fn large_messages_reach_a_rank_that_computes() {
    let binary = built("strong.c");
    let run = |ranks: &str, strong: &str, rounds: &str, limit_ms: &str| {
        let run = Vmpirun::new("strong").args(["-n", ranks, "-x", &format!("VMPI_STRONG_PROGRESS={strong}")]);
        run.arg(&binary).args([rounds, limit_ms]).run()
    };
    let said = |got: &Outcome, wanted: &str| {
        let wanted = format!("in {wanted} rounds all were sent while rank 0 computed");
        assert!(got.code == 0 && got.stdout.trim() == wanted, "{wanted}: {} {} {}", got.code, got.stdout, got.stderr);
    };
    for ranks in ["2", "3", "5", "8"] {
        said(&run(ranks, "1", "10", "20000"), "10 of 10");
    }
    said(&run("3", "0", "2", "300"), "0 of 2");
}
