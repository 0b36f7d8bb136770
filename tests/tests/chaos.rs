//! Deaths: whatever ends whenever, the whole job ends, nothing is left, and the exit code and a sentence name the cause.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, made, program};
use vmpi_tests::job::{Job, Vmpirun};
use vmpi_tests::leftovers::{describe, eventually};
use vmpi_tests::place::Turn;
use vmpi_tests::scratch::Scratch;

const RANKS: usize = 6;

fn deaths(name: &str, args: &[&str]) -> Vmpirun {
    let turn = Turn::take();
    let binary = program("deaths.c", Mpi::Openmpi);
    drop(turn);
    // Where all compute, the last one begins after two turns.
    let flags = ["-n", &RANKS.to_string(), "-V", "3", "--quantum", "100"];
    Vmpirun::new(name).args(flags).arg(binary).args(args)
}

fn end(pid: i32, signal: Signal) {
    assert!(pid > 1, "pid {pid}");
    kill(Pid::from_raw(pid), signal).expect("the victim is alive");
}

/// Let a job get where it should be hit: its ranks are `ready`, then have a moment to go into the call.
fn settled(job: &mut Job) -> Vec<i32> {
    let pids = job.ready(RANKS);
    std::thread::sleep(Duration::from_millis(200));
    pids
}

/// kill -9 of rank 2 in each state.
fn rank_killed(state: &str) {
    let mut job = deaths(&format!("rank-{state}"), &[state, "5"]).start();
    let pids = settled(&mut job);
    end(pids[2], Signal::SIGKILL);
    let outcome = job.finish();
    assert_eq!(outcome.code, 128 + 9, "{outcome:?}");
    let named = outcome.stderr.contains("rank 2") && outcome.stderr.contains(&pids[2].to_string());
    assert!(named, "the message names rank 2 and pid {}: {}", pids[2], outcome.stderr);
}

/// kill -9 of vmpirun: nobody is left to report, but everything must be gone.
fn launcher_killed(state: &str) {
    let mut job = deaths(&format!("launcher-{state}"), &[state, "5"]).start();
    settled(&mut job);
    end(job.pid(), Signal::SIGKILL);
    assert_eq!(job.finish().code, 128 + 9);
}

/// A fault's signal that somebody sends ends vmpirun, too, the first time: Rust's own handler lets one pass.
#[test]
fn launcher_ended_by_a_fault() {
    for signal in [Signal::SIGSEGV, Signal::SIGBUS] {
        let mut job = deaths("fault", &["recv", "5"]).start();
        settled(&mut job);
        end(job.pid(), signal);
        assert_eq!(job.finish().code, 128 + signal as i32);
    }
}

/// kill -9 of vmpirun while it starts: its vmpid, which it may not have greeted yet, does not wait for another launcher.
#[test]
fn launcher_killed_while_it_starts() {
    for delay_ms in [4, 8, 12, 16, 24, 32] {
        let job = deaths("starting", &["recv", "5"]).start();
        std::thread::sleep(Duration::from_millis(delay_ms));
        end(job.pid(), Signal::SIGKILL);
        let gone = eventually(Duration::from_secs(5), || job.processes().is_empty());
        assert!(gone, "after {delay_ms} ms: {:?}", job.processes());
        assert_eq!(job.finish().code, 128 + 9);
    }
}

/// kill -9 of vmpid: vmpirun says so, with the exit code for vmpi's own faults.
fn daemon_killed(state: &str) {
    let mut job = deaths(&format!("daemon-{state}"), &[state, "5"]).start();
    settled(&mut job);
    let (daemon, _) = job.daemon_pids();
    end(daemon, Signal::SIGKILL);
    let outcome = job.finish();
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains(&daemon.to_string()), "the message names pid {daemon}: {}", outcome.stderr);
}

/// kill -9 of the process that watches vmpid: nothing survives it either, and it does not pass for success.
#[test]
fn keeper_killed() {
    let mut job = deaths("keeper", &["recv"]).start();
    settled(&mut job);
    let (_, keeper) = job.daemon_pids();
    let Some(keeper) = keeper else { return };
    end(keeper, Signal::SIGKILL);
    let outcome = job.finish();
    assert!(outcome.code == 125 && !outcome.stderr.is_empty(), "{outcome:?}");
}

/// Launcher, keeper and daemon killed at once: nobody is left to clean up, so the next daemon does.
#[test]
fn what_all_left_the_next_daemon_sweeps() {
    let mut job = deaths("all", &["recv"]).start();
    let pids = settled(&mut job);
    let (daemon, keeper) = job.daemon_pids();
    let base = job.runtime_dir.clone();
    let names = |dir: &Path, prefix: &str| -> Vec<String> {
        let entries = std::fs::read_dir(dir).expect("it exists").flatten();
        entries.filter_map(|e| e.file_name().into_string().ok()).filter(|name| name.starts_with(prefix)).collect()
    };
    let page = format!("vmpi-status-{}-{daemon}-", nix::unistd::geteuid());
    assert_eq!((names(&base, "job-").len(), names(Path::new("/dev/shm"), &page).len()), (1, 1));
    // The keeper and the launcher must not see the others die.
    let watchers: Vec<i32> = keeper.into_iter().chain([job.pid()]).collect();
    watchers.iter().for_each(|pid| end(*pid, Signal::SIGSTOP));
    end(daemon, Signal::SIGKILL);
    watchers.iter().for_each(|pid| end(*pid, Signal::SIGKILL));
    let all: Vec<i32> = pids.iter().chain(&watchers).copied().chain([daemon]).collect();
    assert!(eventually(Duration::from_secs(10), || all.iter().all(|pid| describe(*pid).is_none())));
    assert_eq!((names(&base, "job-").len(), names(Path::new("/dev/shm"), &page).len()), (1, 1), "they were left");
    let next = Vmpirun::under(&base, "next").args(["-n", "2", "sh", "-c", "sleep 0.5"]).run();
    assert_eq!(next.code, 0, "{next:?}");
    assert!(names(Path::new("/dev/shm"), &page).is_empty());
    assert!(!base.exists() || names(&base, "job-").is_empty());
    assert_eq!(job.finish().code, 128 + 9);
}

macro_rules! in_every_state {
    ($($state:ident)*) => { $( mod $state {
        #[test]
        fn rank() { super::rank_killed(stringify!($state)); }
        #[test]
        fn launcher() { super::launcher_killed(stringify!($state)); }
        #[test]
        fn daemon() { super::daemon_killed(stringify!($state)); }
    } )* };
}
in_every_state! { compute recv lock accumulate init finalized }

/// A rank that ends badly on its own: the code, and what the message must contain.
#[test]
fn the_exit_code_tells_how_a_rank_ended() {
    let table: &[(&str, i32, &[&str])] = &[
        ("exit3", 3, &["rank 1", "3"]),
        ("nofinalize", 1, &["rank 1", "MPI_Finalize"]),
        ("segv", 128 + 11, &["rank 1"]),
        ("abort7", 7, &["rank 1", "7"]),
        ("fatal", 6, &["rank 1", "MPI_Send"]),
    ];
    for (how, code, words) in table {
        let outcome = deaths(how, &[how, "1"]).run();
        // The code of a fatal error is the library's own error number, and that of a rank that left without MPI_Finalize is
        // 0; both must not pass for success.
        let good = if matches!(*how, "fatal" | "nofinalize") { outcome.code != 0 } else { outcome.code == *code };
        assert!(good, "{how}: {outcome:?}");
        for word in *words {
            assert!(outcome.stderr.contains(word), "{how}: no {word:?} in {}", outcome.stderr);
        }
    }
}

/// A script goes on after its MPI program has died, with other work or with its next MPI program: that is the rank's fault, not vmpi's.
#[test]
fn a_script_that_goes_on_does_not_hide_how_its_program_ended() {
    let turn = Turn::take();
    let binary = program("deaths.c", Mpi::Openmpi).display().to_string();
    drop(turn);
    for after in ["sleep 1000", &format!("{binary} exit3 9"), &format!("{binary} exit3 9; exit 0")] {
        let script = format!("{binary} segv 1; {after}");
        let outcome = Vmpirun::new("script").args(["-n", "4", "-V", "2", "sh", "-c", &script]).run();
        assert_eq!(outcome.code, 1, "{script}: {outcome:?}");
        let named = ["rank 1", "ended without calling MPI_Finalize"].iter().all(|words| outcome.stderr.contains(words));
        assert!(named, "{script}: {outcome:?}");
    }
}

/// As in a script, whose background commands ignore an interrupt from their start.
#[test]
fn an_interrupt_ends_what_is_not_yet_a_job() {
    Turn::beside_others();
    let scratch = Scratch::new("early-launcher");
    let (launcher, asked) = (scratch.path().join("launcher"), scratch.path().join("asked"));
    // It says nothing, and ends when it hears no more.
    fs::write(&launcher, format!("#!/bin/sh\n: > {}\nexec 3>&1\nexec cat >/dev/null\n", asked.display())).unwrap();
    fs::set_permissions(&launcher, fs::Permissions::from_mode(0o700)).unwrap();
    let run = Vmpirun::wrapped("early", "sh", &["-c", "trap '' INT; exec \"$@\"", "sh"]);
    let run = run.args(["-n", "2", "--host", "far-away", "--launcher-exec"]).arg(&launcher);
    let job = run.arg("true").deadline(Duration::from_secs(20)).start();
    assert!(eventually(Duration::from_secs(10), || asked.exists()), "the launcher has been asked");
    end(job.pid(), Signal::SIGINT);
    assert_eq!(job.finish().code, 130);
}

/// Several runs, each a vmpirun of its own: whichever way the first one ends, the one under way ends with it, and nothing is left.
#[test]
fn several_runs_end_with_who_runs_them() {
    Turn::beside_others();
    let binary = made("works.c", Mpi::Openmpi);
    for flags in [&["--chaos", "1..9"][..], &["--explore"]] {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGKILL] {
            let temporary = Scratch::new("several-runs");
            let begun = temporary.path().join("begun");
            let run = Vmpirun::wrapped("several", "sh", &["-c", "trap '' INT; exec \"$@\"", "sh"]);
            let run = run.env("TMPDIR", temporary.path()).args(["-n", "2"]).args(flags).arg("sh").arg("-c");
            let script = format!(": > {}; exec {} compute 60", begun.display(), binary.display());
            let job = run.arg(script).deadline(Duration::from_secs(20)).start();
            assert!(eventually(Duration::from_secs(10), || begun.exists()), "a run has begun");
            end(job.pid(), signal);
            // It looks that no process is left.
            assert_eq!(job.finish().code, 128 + signal as i32, "{flags:?} {signal}");
            let left = || fs::read_dir(temporary.path()).unwrap().flatten().any(|at| at.path().is_dir());
            assert!(signal == Signal::SIGKILL || !left(), "{flags:?} {signal}: what they said is left");
        }
    }
}

#[test]
fn ctrl_c_and_term_end_the_job() {
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        let mut job = deaths(signal.as_str(), &["compute"]).start();
        settled(&mut job);
        end(job.pid(), signal);
        assert_eq!(job.finish().code, code);
    }
}

/// Whatever ends a rank, and wherever its output goes: the lines that it has printed are shown.
#[test]
fn what_a_rank_has_said_is_not_lost() {
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        let turn = Turn::take();
        let binary = program("said.c", mpi);
        drop(turn);
        for (how, code) in
            [("abort", 7), ("segv", 139), ("sigabrt", 134), ("_exit", 0), ("close", 0), ("leave", 1), ("busy", 1)]
        {
            for output in ["lines", "raw"] {
                // Where the others compute, the one that leaves may have to wait for its turn.
                let flags = ["-n", "4", "-V", "2", "--quantum", "100", "--output", output];
                let run = Vmpirun::new("said").args(flags).arg(&binary).arg(how);
                let outcome = run.run();
                let said = outcome.stdout.lines().filter(|line| line.ends_with("has come to the end")).count();
                assert_eq!((outcome.code, said), (code, 4), "{how} {output}: {outcome:?}");
            }
        }
        // Nobody waits for long for one that has left. (A busy machine may take its time once.)
        let waited = (0..3).map(|_| {
            let start = Instant::now();
            assert_eq!(Vmpirun::new("said").args(["-n", "4", "-V", "2"]).arg(&binary).arg("wait").run().code, 1);
            start.elapsed()
        });
        assert!(waited.min() < Some(Duration::from_millis(1900)), "all waited, and were not ended before their time");
        let outcome = Vmpirun::new("said").args(["-n", "2"]).arg(&binary).arg("own").run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "its own buffer stays\n"), "{outcome:?}");
    }
}

#[test]
fn a_timeout_ends_the_job_with_124() {
    let turn = Turn::take();
    let binary = program("deaths.c", Mpi::Openmpi);
    drop(turn);
    let outcome =
        Vmpirun::new("timeout").args(["-n", "4", "-V", "2", "--timeout", "1"]).arg(binary).arg("compute").run();
    assert_eq!(outcome.code, 124, "{outcome:?}");
}

/// SPECIFICATION 2.3: ranks blocked in MPI_Recv or MPI_Win_lock use no CPU. (The bound is generous: a tenth of one core for six ranks.)
#[test]
fn blocked_ranks_sleep() {
    ["recv", "lock"].iter().for_each(|state| asleep(state));
}

fn asleep(state: &str) {
    let mut job = deaths(&format!("asleep-{state}"), &[state]).start();
    let pids = settled(&mut job);
    let ticks = || -> u64 { pids.iter().filter_map(|&pid| describe(pid)).map(|p| p.cpu_ticks).sum() };
    std::thread::sleep(Duration::from_millis(500));
    let (before, since) = (ticks(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let (used, wall) = (ticks() - before, since.elapsed().as_secs_f64());
    // SAFETY: sysconf only reads.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    end(job.pid(), Signal::SIGTERM);
    job.finish();
    assert!((used as f64) < 0.1 * wall * ticks_per_second, "{state}: {used} ticks in {wall} s");
}

/// vmpictl sees the job while it runs, and says what blocked ranks wait for.
#[test]
fn vmpictl_shows_a_running_job() {
    let mut job = deaths("shown", &["recv"]).start();
    let pids = settled(&mut job);
    let listing = job.vmpictl(&["ps", "--ranks", "--json"]);
    assert_eq!(listing.code, 0, "{listing:?}");
    let json: serde_json::Value = serde_json::from_str(&listing.stdout).expect("vmpictl --json prints JSON");
    assert!(json.get("schema_version").is_some(), "{json}");
    assert!(pids.iter().all(|pid| listing.stdout.contains(&pid.to_string())), "{pids:?} in {}", listing.stdout);
    let plain = job.vmpictl(&["ps", "--ranks"]);
    assert!(plain.stdout.contains("peer=any tag=99"), "{}", plain.stdout);
    end(job.pid(), Signal::SIGTERM);
    job.finish();
    assert!(eventually(Duration::from_secs(5), || pids.iter().all(|&pid| describe(pid).is_none())));
}
