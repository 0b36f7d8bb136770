//! The daemon's own life: start, greeting, and every way to end it or its launcher.

mod common;
use common::*;

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::process::Command;

use nix::fcntl::{Flock, FlockArg};
use vmpi_shared::control::{Cause, LAUNCHER_LOCK_NAME, PROTOCOL, Reply, Request};

#[test]
#[ignore = "the program of ranks, not a test"]
fn rank_program() {
    common::rank_program();
}

fn children_of(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

#[test]
fn files_are_private_and_found() {
    let vmpid = Vmpid::start(&[]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(&vmpid.dir), mode(&vmpid.socket())), (0o700, 0o600));
    let (_, pid) = vmpid.greet();
    let page = fs::read(vmpid.status_page()).unwrap();
    assert_eq!(&page[..8], b"VMPISTAT");
    assert_eq!(page[12..16], (pid as u32).to_le_bytes());
    vmpid.stop();
}

#[test]
fn strangers_are_refused() {
    let vmpid = Vmpid::start(&[]);
    let mut connection = vmpid.connect();
    connection.send(&hello(PROTOCOL + 1), &[]).unwrap();
    match expect_reply(&mut connection) {
        Reply::Refused { reason, code: 125 } => assert!(reason.contains("protocol"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert!(connection.receive::<Reply>().unwrap().is_none(), "closed");
    let mut connection = vmpid.connect();
    connection.send(&Request::Jobs, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Refused { .. }));
    let (mut connection, _) = vmpid.greet();
    connection.send(&Request::Show { job: 5 }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Refused { code: 2, .. }));
    connection.send(&Request::Abort { code: 1, reason: String::new(), group: None }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Refused { code: 125, .. }));
    let connection = vmpid.connect();
    std::io::Write::write_all(&mut connection.stream(), &[0xff; 64]).unwrap();
    vmpid.greet();
    vmpid.stop();
}

#[test]
fn a_live_daemon_is_respected_and_a_dead_ones_socket_is_not() {
    let vmpid = Vmpid::start(&[]);
    let (_, pid) = vmpid.greet();
    let second = Command::new(env!("CARGO_BIN_EXE_vmpid")).arg("--runtime-dir").arg(&vmpid.dir).output().unwrap();
    assert_eq!(second.status.code(), Some(125));
    let sentence = String::from_utf8(second.stderr).unwrap();
    assert!(sentence.contains(&format!("a vmpid (pid {pid}) already serves")), "{sentence}");
    vmpid.stop();

    let dir = fresh_dir();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(dir.join("vmpid.sock")).unwrap());
    let vmpid = Vmpid::start_in(dir, &[]);
    wait_for("the socket", || std::os::unix::net::UnixStream::connect(vmpid.socket()).is_ok());
    assert_eq!(vmpid.run(&job("/bin/true", &[], 1)).cause, Cause::Success);
    vmpid.stop();
}

#[test]
fn a_directory_open_to_others_is_refused() {
    let dir = fresh_dir();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_vmpid")).arg("--runtime-dir").arg(&dir).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8(output.stderr).unwrap().contains("chmod 700"));
    fs::remove_dir(dir).unwrap();
}

#[test]
fn the_background_daemon_is_ready_when_its_command_ends() {
    let dir = fresh_dir();
    let output = Command::new(env!("CARGO_BIN_EXE_vmpid")).arg("--runtime-dir").arg(&dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // `supervisor` is of no use here: the real one is the daemon's parent.
    let vmpid = Vmpid { dir, supervisor: Command::new("/bin/true").spawn().unwrap() };
    let (mut tool, pid) = vmpid.greet();
    assert_eq!(vmpid.run(&job("/bin/true", &[], 2)).cause, Cause::Success);
    let page = vmpid.status_page();
    tool.send(&Request::Shutdown, &[]).unwrap();
    assert!(matches!(expect_reply(&mut tool), Reply::ShuttingDown));
    wait_for("the daemon to end", || !fs::exists(format!("/proc/{pid}")).unwrap());
    vmpid.assert_nothing_left(page);
}

#[test]
fn shutdown_ends_jobs_and_tells_launchers() {
    let mut vmpid = Vmpid::start(&[]);
    let launcher = vmpid.launch(&shell("trap '' TERM; while :; do sleep 1; done", 3));
    let page = vmpid.status_page();
    let (mut tool, _) = vmpid.greet();
    tool.send(&Request::Shutdown, &[]).unwrap();
    assert!(matches!(expect_reply(&mut tool), Reply::ShuttingDown));
    assert_eq!(launcher.finish().cause, Cause::Shutdown);
    assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));
    vmpid.assert_nothing_left(page);
}

#[test]
fn the_launchers_death_ends_ranks_and_grandchildren() {
    let vmpid = Vmpid::start(&[]);
    let mark = format!("VMPI_SOCKET={}", vmpid.socket().canonicalize().unwrap().display());
    for spec in [
        shell("sleep 1000 & setsid sleep 1000 & wait", 3),
        shell("trap '' TERM; while :; do sleep 1; done", 2),
        script("attach sleep", 2),
    ] {
        drop(vmpid.launch(&spec));
        wait_for("ranks and grandchildren to be gone", || processes_with(&mark).is_empty());
    }
    // A launcher that dies before its descriptors came.
    let (mut connection, _) = vmpid.greet();
    connection.send(&Request::Submit { spec: Box::new(job("/bin/true", &[], 1)) }, &[]).unwrap();
    drop(connection);
    wait_for("no jobs", || {
        let (mut tool, _) = vmpid.greet();
        tool.send(&Request::Jobs, &[]).unwrap();
        matches!(expect_reply(&mut tool), Reply::Jobs { jobs } if jobs.is_empty())
    });
    vmpid.stop();
}

#[test]
fn a_killed_daemon_leaves_no_process_and_no_file() {
    for signal_number in [libc::SIGKILL, libc::SIGABRT, libc::SIGSEGV, libc::SIGBUS] {
        let mut vmpid = Vmpid::start(&[]);
        let (_, pid) = vmpid.greet();
        assert_eq!(children_of(vmpid.supervisor.id() as i32), [pid]);
        let page = vmpid.status_page();
        assert!(page.exists());
        let launcher = vmpid.launch(&shell("setsid sh -c 'sleep 1000; true' & sleep 1000; true", 3));
        let dir = vmpid.dir.canonicalize().unwrap();
        let mark = format!("VMPI_SOCKET={}/vmpid.sock", dir.display());
        wait_for("grandchildren", || processes_with(&mark).len() >= 9);
        signal(pid, signal_number);
        assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(128 + signal_number));
        assert!(processes_with(&mark).is_empty());
        assert!(launcher.pids.iter().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap()));
        vmpid.assert_nothing_left(page);
    }
}

#[test]
fn a_killed_keeper_drains_its_daemon() {
    for signal_number in [libc::SIGKILL, libc::SIGSEGV] {
        let mut vmpid = Vmpid::start(&[]);
        let (_, pid) = vmpid.greet();
        let page = vmpid.status_page();
        let launcher = vmpid.launch(&shell("sleep 1000", 2));
        signal(vmpid.supervisor.id() as i32, signal_number);
        let ended = vmpid.supervisor.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(signal_number));
        assert_eq!(launcher.finish().cause, Cause::Shutdown);
        wait_for_end(pid);
        vmpid.assert_nothing_left(page);
    }
}

/// Until the process is gone or a zombie. A signal alone says nothing: on a busy machine a killed daemon answers for a while.
fn wait_for_end(pid: i32) {
    wait_for("the daemon to end", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z"))
    });
}

#[test]
fn when_both_are_killed_the_next_daemon_cleans_up() {
    let mut vmpid = Vmpid::start(&[]);
    let (_, pid) = vmpid.greet();
    let page = vmpid.status_page();
    signal(vmpid.supervisor.id() as i32, libc::SIGSTOP);
    signal(pid, libc::SIGKILL);
    vmpid.supervisor.kill().unwrap();
    vmpid.supervisor.wait().unwrap();
    wait_for_end(pid);
    assert!(page.exists());
    let next = Vmpid::start_in(vmpid.dir.clone(), &[]);
    wait_for("the next daemon", || std::os::unix::net::UnixStream::connect(next.socket()).is_ok());
    assert!(!page.exists());
    next.stop();
}

#[test]
fn one_job_then_the_end() {
    for launched in [true, false] {
        let dir = fresh_dir();
        let marker = dir.join(LAUNCHER_LOCK_NAME);
        let launcher = launched.then(|| {
            fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
            Flock::lock(fs::File::create(&marker).unwrap(), FlockArg::LockExclusive).unwrap()
        });
        let mut vmpid = Vmpid::start_in(dir, &["--one-job"]);
        wait_for("the socket", || std::os::unix::net::UnixStream::connect(vmpid.socket()).is_ok());
        let page = vmpid.status_page();
        assert_eq!(vmpid.run(&job("/bin/true", &[], 2)).cause, Cause::Success);
        assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));
        assert_eq!(vmpid.dir.exists(), !launched, "a one-job daemon removes the directory that its launcher made");
        drop(launcher);
        vmpid.assert_nothing_left(page);
    }

    let mut vmpid = Vmpid::start(&["--one-job"]);
    drop(vmpid.launch(&shell("sleep 1000", 2)));
    assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));

    let mut vmpid = Vmpid::start(&["--one-job"]);
    let (mut connection, _) = vmpid.greet();
    connection.send(&Request::Submit { spec: Box::new(job("/bin/true", &[], 0)) }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Refused { code: 2, .. }));
    drop(connection);
    assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));
}

#[test]
fn one_job_does_not_wait_for_ever() {
    let mut vmpid = Vmpid::start(&["--one-job"]);
    assert_eq!(vmpid.supervisor.wait().unwrap().code(), Some(0));
}
