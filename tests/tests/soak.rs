//! Hours of jobs of all kinds on one daemon, good and bad ones: it holds no more at the end than at the begin.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::daemon::Daemon;
use vmpi_tests::leftovers::{processes_of, shared_memory_files};
use vmpi_tests::place::Turn;

/// What the daemon holds: descriptors, threads, resident KiB; and the files of it and of its jobs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Holds {
    fds: usize,
    threads: usize,
    rss_kib: u64,
    files: usize,
}

fn holds(daemon: &Daemon) -> Holds {
    let pid = daemon.pid();
    let count = |dir: String| std::fs::read_dir(dir).map_or(0, Iterator::count);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let rss_kib = rss.and_then(|text| text.split_whitespace().next()).and_then(|text| text.parse().ok()).unwrap_or(0);
    Holds {
        fds: count(format!("/proc/{pid}/fd")),
        threads: count(format!("/proc/{pid}/task")),
        rss_kib,
        files: count(daemon.dir().display().to_string()) + shared_memory_files().len(),
    }
}

/// `VMPI_SOAK_MINUTES`, else ten.
#[test]
#[ignore = "second tier"]
fn mixed_jobs_on_one_daemon() {
    let minutes = std::env::var("VMPI_SOAK_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    // Whatever started the tests: a shell's background jobs ignore an interrupt until vmpirun's main has begun.
    // SAFETY: this process handles no signals.
    unsafe { nix::sys::signal::signal(Signal::SIGINT, nix::sys::signal::SigHandler::SigDfl) }.expect("SIGINT has one");
    let turn = Turn::take();
    let [works, traffic, deaths, scribbler] =
        ["works.c", "traffic.c", "deaths.c", "scribble.c"].map(|name| program(name, Mpi::Openmpi));
    drop(turn);
    let daemon = Daemon::start("soak");
    let pid = daemon.pid();
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut chance = fastrand::Rng::new();
    let kinds = ["small", "large", "collective", "onesided", "files", "spawn", "compute"];
    let (mut jobs, mut first) = (0u64, None);
    while Instant::now() < end {
        let good = daemon.vmpirun("good").args(["-n", "4", "-V", "2"]).arg(&traffic);
        let good = good.args(["10", &chance.u32(..).to_string()]).start();
        let kind = kinds[chance.usize(..kinds.len())];
        let working = daemon.vmpirun("works").args(["-n", "6", "-V", "3"]).arg(&works).args([kind, "1"]).start();
        let how = ["exit3", "segv", "abort7", "fatal", "nofinalize"][chance.usize(..5)];
        let dying = daemon.vmpirun("dies").args(["-n", "3"]).arg(&deaths).args([how, "1"]).start();
        let killed =
            daemon.vmpirun("killed").args(["-n", "4", "-V", "2"]).arg(&works).args(["collective", "30"]).start();
        std::thread::sleep(Duration::from_millis(chance.u64(50..800)));
        let _ =
            kill(Pid::from_raw(killed.pid()), [Signal::SIGKILL, Signal::SIGINT, Signal::SIGTERM][chance.usize(..3)]);
        let seed = chance.u32(..).to_string();
        let bad = daemon.vmpirun("bad").args(["-n", "4", "-V", "2", "--on-deadlock", "abort"]).arg(&scribbler);
        let bad = bad.args([["node", "job", "rare", "bits"][chance.usize(..4)], &seed, "small", "300"]).start();
        let (good, working) = (good.finish(), working.finish());
        assert!(good.code == 0 && good.stdout.ends_with("all checks hold\n"), "{good:?}");
        assert!(working.code == 0 && !working.stdout.contains("wrong"), "{kind}: {working:?}");
        assert_ne!(dying.finish().code, 0, "{how}");
        let killed = killed.finish();
        assert_ne!(killed.code, 0, "{killed:?}");
        bad.finish();
        jobs += 5;
        assert_eq!(daemon.pid(), pid, "the daemon goes on");
        if jobs == 50 {
            first = Some(holds(&daemon));
        }
    }
    std::thread::sleep(Duration::from_secs(2));
    let (first, last) = (first.expect("there is time for fifty jobs"), holds(&daemon));
    println!("{jobs} jobs in {minutes} min; after fifty {first:?}, at the end {last:?}");
    assert_eq!(processes_of(daemon.dir()).iter().filter(|process| !process.name.starts_with("vmpid")).count(), 0);
    assert!(last.fds <= first.fds && last.threads <= first.threads && last.files <= first.files, "{first:?} {last:?}");
    assert!(last.rss_kib <= first.rss_kib + first.rss_kib / 4 + 1024, "{first:?} {last:?}");
    daemon.stop();
}
