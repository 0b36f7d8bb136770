//! What is whose: vmpi removes and asks only what is its own, and the user's; a living daemon keeps its files whatever others think of it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::daemon::Daemon;
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::leftovers::{describe, eventually};
use vmpi_tests::place::{Turn, bin_dir};
use vmpi_tests::scratch::Scratch;

/// Some user who is not this one.
const OTHER: u32 = 65534;
/// As a file's owner it means no change (chown(2)).
const UNCHANGED: u32 = u32::MAX;

fn vmpictl(runtime_dir: &Path, args: &[&str]) -> Outcome {
    let output = Command::new(bin_dir().join("vmpictl")).args(args).env("VMPI_RUNTIME_DIR", runtime_dir).output();
    Outcome::of(&output.expect("vmpictl starts"))
}

fn make_dir(path: PathBuf) -> PathBuf {
    fs::DirBuilder::new().mode(0o700).create(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// Files that are called as vmpi's are or were.
fn fill(dir: &Path) {
    for name in ["status", "launcher", "launcher.new", "vmpid.sock", "result.dat"] {
        fs::write(dir.join(name), format!("my {name}")).expect("it is writable");
    }
}

/// All that is there, with what is in it.
fn content(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("it is there").flatten() {
        let kind = entry.file_type().expect("it is there");
        all.insert(
            entry.path(),
            if kind.is_file() { fs::read_to_string(entry.path()).expect("text") } else { String::new() },
        );
        if kind.is_dir() {
            all.extend(content(&entry.path()));
        }
    }
    all
}

/// Start and end a daemon that several jobs could share.
fn serve_for_a_moment(runtime_dir: &Path) {
    let mut vmpid = Command::new(bin_dir().join("vmpid"))
        .arg("--foreground")
        .env("VMPI_RUNTIME_DIR", runtime_dir)
        .stdin(Stdio::null())
        .spawn()
        .expect("vmpid starts");
    let socket = runtime_dir.join("vmpid.sock");
    let is_up = || fs::symlink_metadata(&socket).is_ok_and(|meta| meta.file_type().is_socket());
    let up = eventually(Duration::from_secs(20), is_up);
    kill(Pid::from_raw(vmpid.id() as i32), Signal::SIGTERM).expect("it lives");
    assert!(vmpid.wait().expect("it is our child").success() && up);
}

#[test]
fn files_of_the_users_stay() {
    let _turn = Turn::take();
    let home = Scratch::new("own-home");
    let runtime_dir = make_dir(home.path().join("rt"));
    // Results of batch jobs, beside the runtime directory and in it.
    let beside = make_dir(home.path().join("job-999999999-results"));
    let inside = make_dir(runtime_dir.join("job-999999999-results"));
    [&beside, &inside].into_iter().for_each(|dir| fill(dir));
    make_dir(runtime_dir.join("job-999999999-empty"));
    for name in ["launcher", "launcher.new", "status"] {
        fs::write(runtime_dir.join(name), format!("my {name}")).expect("it is writable");
    }
    let before = content(home.path());
    let job = Vmpirun::under(&runtime_dir, "own-private").args(["-n", "2", "true"]).run();
    assert_eq!(job.code, 0, "{job:?}");
    assert_eq!(content(home.path()), before, "after a job with a daemon of its own");
    serve_for_a_moment(&runtime_dir);
    let after = content(home.path());
    assert_eq!(after, before, "after a daemon");
}

/// Whatever is called as the socket or the status page is: nothing waits for it, and it stays.
#[test]
fn what_is_in_the_way_is_told_and_stays() {
    let _turn = Turn::take();
    let scratch = Scratch::new("own-way");
    let status = scratch.path().join("status");
    nix::unistd::mkfifo(&status, nix::sys::stat::Mode::S_IRWXU).expect("a pipe can be made");
    let job = Vmpirun::under(scratch.path(), "own-fifo").args(["-n", "2", "true"]).run();
    assert_eq!(job.code, 0, "{job:?}");
    serve_for_a_moment(scratch.path());
    assert!(fs::symlink_metadata(&status).expect("it is there").file_type().is_fifo());
    fs::remove_file(status).expect("it is there");
    let socket = scratch.path().join("vmpid.sock");
    fs::write(&socket, "mine").expect("it is writable");
    for name in ["vmpid", "vmpirun"] {
        let output = Command::new(bin_dir().join(name))
            .args(if name == "vmpirun" { &["-n", "1", "true"][..] } else { &[] })
            .env("VMPI_RUNTIME_DIR", scratch.path())
            .output();
        let outcome = Outcome::of(&output.expect("it starts"));
        assert!(outcome.code == 125 && outcome.stderr.contains("is in the way"), "{name}: {outcome:?}");
    }
    assert_eq!(fs::read_to_string(socket).expect("it is there"), "mine");
}

/// One that is named and not there goes with the job; one that the user has made does not.
#[test]
fn an_empty_runtime_directory_of_the_users_stays() {
    let _turn = Turn::take();
    let scratch = Scratch::new("own-empty");
    let own = make_dir(scratch.path().join("own"));
    let new = scratch.path().join("new");
    for (dir, stays) in [(&own, true), (&new, false)] {
        let job = Vmpirun::under(dir, "own-empty").args(["-n", "2", "true"]).run();
        assert_eq!((job.code, dir.exists()), (0, stays), "{job:?}");
    }
}

/// A job that waits for good, and its ranks' processes.
fn waiting(daemon: &Daemon, name: &str) -> (Job, Vec<i32>) {
    let binary = program("deaths.c", Mpi::Openmpi);
    let mut job = daemon.vmpirun(name).args(["-n", "2"]).arg(binary).arg("recv").start();
    let ranks = job.ready(2);
    (job, ranks)
}

fn interrupt(job: &Job) {
    kill(Pid::from_raw(job.pid()), Signal::SIGINT).expect("it lives");
}

/// Interrupt a job until it is over: the third time nobody waits for the daemon. False: it never is.
fn interrupted_until_over(job: &mut Job) -> bool {
    eventually(Duration::from_secs(60), || {
        let over = job.has_ended();
        if !over {
            interrupt(job);
            std::thread::sleep(Duration::from_millis(100));
        }
        over
    })
}

/// vmpirun has waited long enough for a daemon that is stopped (a machine with too much to do looks the same): the daemon lives, so all that is its
/// own stays, and its other job goes on.
#[test]
fn a_daemon_that_does_not_answer_keeps_its_files() {
    let daemon = Daemon::start("own-stopped");
    let ((mut other, _), (mut job, _)) = (waiting(&daemon, "own-other"), waiting(&daemon, "own-job"));
    let serves = Pid::from_raw(daemon.pid());
    kill(serves, Signal::SIGSTOP).expect("it lives");
    let ended = interrupted_until_over(&mut job);
    kill(serves, Signal::SIGCONT).expect("it lives");
    let outcome = job.finish();
    assert!(ended && outcome.code == 130, "{outcome:?}");
    let why = format!("vmpid (pid {serves}) does not answer: it is stopped (kill -CONT {serves})");
    assert!(outcome.stderr.contains(&why) && !outcome.stderr.contains("died"), "{outcome:?}");
    let listed = vmpictl(daemon.dir(), &["ps"]);
    assert!(listed.stdout.contains(&format!("  {}\n", other.pid())), "the other job is listed: {listed:?}");
    for name in ["status", "vmpid.sock"] {
        assert!(daemon.dir().join(name).exists(), "{name}");
    }
    assert!(!other.has_ended());
    let next = daemon.vmpirun("own-next").args(["-n", "2", "true"]).run();
    assert_eq!(next.code, 0, "{next:?}");
    interrupt(&other);
    assert_eq!(other.finish().code, 130);
    daemon.stop();
}

/// A freezer of control groups of version 1, where what is frozen does not even die; thawed and removed when dropped.
struct Freezer(PathBuf);

impl Freezer {
    fn with(pid: i32) -> Option<Freezer> {
        let group = PathBuf::from(format!("/sys/fs/cgroup/freezer/vmpi-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let freezer = Freezer(group);
        fs::write(freezer.0.join("cgroup.procs"), pid.to_string()).ok()?;
        fs::write(freezer.0.join("freezer.state"), "FROZEN").ok()?;
        Some(freezer)
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("freezer.state"), "THAWED");
        eventually(Duration::from_secs(20), || fs::remove_dir(&self.0).is_ok());
    }
}

/// A rank that no signal reaches, as one that waits for a dead file system.
#[test]
fn a_rank_that_does_not_end_is_named_and_the_daemon_keeps_its_files() {
    let daemon = Daemon::start("own-frozen");
    let (mut job, ranks) = waiting(&daemon, "own-frozen-job");
    let Some(freezer) = Freezer::with(ranks[1]) else {
        return eprintln!("skipped: no freezer of control groups (version 1) that this user may use");
    };
    let ended = interrupted_until_over(&mut job);
    let listed = vmpictl(daemon.dir(), &["ps"]);
    let kept = ["status", "vmpid.sock"].iter().all(|name| daemon.dir().join(name).exists());
    drop(freezer);
    assert!(eventually(Duration::from_secs(20), || describe(ranks[1]).is_none()), "it ends when it can");
    let outcome = job.finish();
    assert!(ended && outcome.code == 130 && kept, "{outcome:?}");
    let named = format!("rank 1 (pid {}): it is in state D, frozen with its cgroup /vmpi-test-", ranks[1]);
    assert!(outcome.stderr.contains(&named), "{outcome:?}");
    assert!(listed.stdout.lines().count() == 2, "its job is listed as long as the rank is there: {listed:?}");
    daemon.stop();
}

/// Listen as another user does; whoever asks has said this when it is gone.
fn listen_as_other(socket: &Path) -> std::thread::JoinHandle<Vec<u8>> {
    let socket = socket.to_owned();
    std::thread::spawn(move || {
        // SAFETY: the system call changes this thread's user alone (the C library's function would change all threads').
        let changed = unsafe { libc::syscall(libc::SYS_setresuid, UNCHANGED, OTHER, UNCHANGED) };
        assert_eq!(changed, 0);
        let listener = UnixListener::bind(&socket).expect("the directory is writable");
        let mut said = Vec::new();
        let (mut asking, _) = listener.accept().expect("somebody comes");
        let _ = asking.read_to_end(&mut said);
        said
    })
}

/// In the runtime directory's place lies another user's, or in the socket's place another user's process listens.
#[test]
fn another_users_daemon_is_not_asked() {
    if !geteuid().is_root() {
        return eprintln!("skipped: only root can act as another user");
    }
    let _turn = Turn::take();
    let scratch = Scratch::new("own-foreign");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).expect("it is ours");
    let runtime_dir = make_dir(scratch.path().join("rt"));
    let socket = runtime_dir.join("vmpid.sock");
    chown(&runtime_dir, Some(OTHER), None).expect("root may");
    let listening = listen_as_other(&socket);
    let up = eventually(Duration::from_secs(20), || socket.exists());
    let stranger = format!("belongs to user {OTHER}, not to user 0");
    let asked = vmpictl(&runtime_dir, &["ps"]);
    assert!(up && asked.stderr.contains(&stranger), "{asked:?}");
    // The file and the directory are this user's now, and the process is still the other's.
    chown(&runtime_dir, Some(0), None).expect("root may");
    let asked = vmpictl(&runtime_dir, &["ps"]);
    assert!(asked.stderr.contains(&stranger), "the socket's file: {asked:?}");
    chown(&socket, Some(0), None).expect("root may");
    let asked = vmpictl(&runtime_dir, &["ps"]);
    assert!(asked.stderr.contains(&stranger), "the process: {asked:?}");
    assert_eq!(String::from_utf8_lossy(&listening.join().expect("it listens")), "", "nothing was asked");
}

/// A command that looks for its job among several daemons says of a stranger what there is to say once.
#[test]
fn a_stranger_beside_the_job_is_told_of_once() {
    if !geteuid().is_root() {
        return eprintln!("skipped: only root can give a file away");
    }
    let mut job = Vmpirun::new("own-once").args(["-n", "2"]).arg(program("deaths.c", Mpi::Openmpi)).arg("recv").start();
    let ranks = job.ready(2);
    let socket = job.runtime_dir.join("vmpid.sock");
    let _listener = UnixListener::bind(&socket).expect("nothing is there");
    chown(&socket, Some(OTHER), None).expect("root may");
    for command in ["why", "show", "stacks", "matrix", "metrics", "ps"] {
        let told = vmpictl(&job.runtime_dir, &[command]);
        assert_eq!(told.code, 0, "{command}: {told:?}");
        assert_eq!(told.stderr.matches(&format!("belongs to user {OTHER}")).count(), 1, "{command}: {told:?}");
    }
    fs::remove_file(socket).expect("it is there");
    kill(Pid::from_raw(ranks[1]), Signal::SIGKILL).expect("it lives");
    assert_eq!(job.finish().code, 128 + 9);
}

/// Whoever owns a directory can put another in the place of what lies in it.
#[test]
fn roots_runtime_directory_does_not_lie_in_another_users() {
    if !geteuid().is_root() {
        return eprintln!("skipped: only root can give a directory away");
    }
    let _turn = Turn::take();
    let scratch = Scratch::new("own-parent");
    let parent = make_dir(scratch.path().join("parent"));
    chown(&parent, Some(OTHER), None).expect("root may");
    let runtime_dir = parent.join("rt");
    let refused = format!("lies in {}, which belongs to user {OTHER}", parent.display());
    let job = Vmpirun::under(&runtime_dir, "own-parent").args(["-n", "2", "true"]).run();
    assert!(job.code == 125 && job.stderr.contains(&refused), "{job:?}");
    let output = Command::new(bin_dir().join("vmpid")).env("VMPI_RUNTIME_DIR", &runtime_dir).output();
    let daemon = Outcome::of(&output.expect("vmpid starts"));
    assert!(daemon.code == 125 && daemon.stderr.contains(&refused), "{daemon:?}");
    assert!(!runtime_dir.exists());
    fs::set_permissions(&parent, fs::Permissions::from_mode(0o1777)).expect("root may");
    let job = Vmpirun::under(&runtime_dir, "own-parent").args(["-n", "2", "true"]).run();
    assert_eq!(job.code, 0, "{job:?}");
}

/// A program may be called anything; a terminal gets none of its control characters, and JSON all of them.
#[test]
fn control_characters_are_shown_and_not_sent() {
    let daemon = Daemon::start("own-escape");
    let name = "\u{1b}[2Jred\u{9b}31m\nvmpirun: all is well";
    let binary = daemon.dir().join(name);
    fs::copy(program("deaths.c", Mpi::Openmpi), &binary).expect("it can be copied");
    let mut job = daemon.vmpirun("own-escape-job").args(["-n", "2"]).arg(&binary).args(["recv"]).start();
    let ranks = job.ready(2);
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() && c != '\n') && !text.contains("\nvmpirun: all");
    for command in [&["ps"][..], &["show"], &["top", "--once"], &["why"], &["logs"], &["stacks"], &["matrix"]] {
        let told = vmpictl(daemon.dir(), command);
        assert!(is_plain(&told.stdout) && is_plain(&told.stderr), "{command:?}: {told:?}");
    }
    let listed = vmpictl(daemon.dir(), &["ps"]).stdout;
    assert!(listed.contains("\\u001b[2Jred\\u009b31m\\u000avmpirun: all is well"), "{listed}");
    let json = vmpictl(daemon.dir(), &["ps", "--json"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(document["jobs"][0]["program"], binary.to_str().expect("it is UTF-8"));
    kill(Pid::from_raw(ranks[1]), Signal::SIGKILL).expect("it lives");
    let outcome = job.finish();
    assert!(outcome.code == 137 && is_plain(&outcome.stderr), "{outcome:?}");
    fs::remove_file(binary).expect("it is there");
    daemon.stop();
}

/// Launcher, keeper and daemon killed at once: what ranks have started in sessions of its own survives, until the next daemon starts.
#[test]
fn what_ranks_had_started_ends_with_the_next_daemon() {
    let shell = "setsid sleep 1000 & echo ready $VMPI_RANK $!; wait";
    let mut job = Vmpirun::new("own-all").args(["-n", "2", "sh", "-c", shell]).start();
    let started = job.ready(2);
    let (daemon, keeper) = job.daemon_pids();
    let base = job.runtime_dir.clone();
    let all: Vec<i32> = keeper.into_iter().chain([job.pid(), daemon]).collect();
    let send = |signal| all.iter().for_each(|pid| kill(Pid::from_raw(*pid), signal).expect("it lives"));
    // None of them must see the others die.
    send(Signal::SIGSTOP);
    send(Signal::SIGKILL);
    assert!(eventually(Duration::from_secs(10), || all.iter().all(|pid| describe(*pid).is_none())));
    assert!(started.iter().all(|pid| describe(*pid).is_some()), "they survive");
    let next = Vmpirun::under(&base, "own-next").args(["-n", "2", "sleep", "0.5"]).run();
    assert_eq!(next.code, 0, "{next:?}");
    assert!(eventually(Duration::from_secs(10), || started.iter().all(|pid| describe(*pid).is_none())));
    assert_eq!(job.finish().code, 128 + 9);
}
