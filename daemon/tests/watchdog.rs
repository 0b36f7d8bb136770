//! A rank that waits outside MPI, asleep or busy, does not keep its core from the others.

mod common;
use common::*;

use std::fs;

use vmpi_shared::control::{Cause, JobSpec, OnBlock, Reply, Request};

#[test]
#[ignore = "the program of ranks, not a test"]
fn rank_program() {
    common::rank_program();
}

/// Two ranks on one core. Whichever gets it first waits, as `wait` says, for a file that the other one makes once it has
/// had the core. Without a watchdog they wait for ever.
fn each_waits_for_the_other(wait: &str, flag: &str) -> JobSpec {
    let mut spec = script(&format!("attach enter touch={flag}.$RANK {wait}={flag}.$OTHER leave finalize exit=0"), 2);
    let app = &mut spec.apps[0];
    let (_, script) = app.env.pop().unwrap();
    // Each rank has a script of its own: one program each.
    let mut apps = Vec::new();
    for (rank, other) in [("0", "1"), ("1", "0")] {
        let mut app = app.clone();
        app.ranks = 1;
        app.env.push((SCRIPT.into(), script.replace("$RANK", rank).replace("$OTHER", other)));
        apps.push(app);
    }
    spec.apps = apps;
    spec
}

#[test]
fn a_sleeping_rank_releases_its_core() {
    let vmpid = Vmpid::start(&[]);
    let flag = fresh_dir().into_os_string().into_string().unwrap();
    let mut spec = each_waits_for_the_other("await", &flag);
    spec.quantum_ms = 0;
    let finished = vmpid.run(&spec);
    assert_eq!(finished.cause, Cause::Success, "{finished:?}");
    assert!(finished.report.cores[0].max_running <= 1 && finished.report.cores[0].violations == 0, "{finished:?}");
    ["0", "1"].iter().for_each(|rank| fs::remove_file(format!("{flag}.{rank}")).unwrap());
    vmpid.stop();
}

#[test]
fn a_busy_rank_loses_its_core_after_its_quantum() {
    let vmpid = Vmpid::start(&[]);
    let flag = fresh_dir().into_os_string().into_string().unwrap();
    let mut spec = each_waits_for_the_other("spin", &flag);
    spec.quantum_ms = 50;
    spec.on_block = OnBlock::Keep;
    let finished = vmpid.run(&spec);
    assert_eq!(finished.cause, Cause::Success, "{finished:?}");
    ["0", "1"].iter().for_each(|rank| fs::remove_file(format!("{flag}.{rank}")).unwrap());
    vmpid.stop();
}

#[test]
fn keep_and_no_quantum_leave_the_core_alone() {
    let vmpid = Vmpid::start(&[]);
    let flag = fresh_dir().into_os_string().into_string().unwrap();
    let mut spec = each_waits_for_the_other("await", &flag);
    spec.quantum_ms = 0;
    spec.on_block = OnBlock::Keep;
    let mut launcher = vmpid.launch(&spec);
    let files = || ["0", "1"].iter().filter(|rank| fs::exists(format!("{flag}.{rank}")).unwrap()).count();
    wait_for("the first rank to get the core", || files() == 1);
    std::thread::sleep(std::time::Duration::from_millis(600));
    let (mut tool, _) = vmpid.greet();
    tool.send(&Request::Show { job: launcher.job }, &[]).unwrap();
    match expect_reply(&mut tool) {
        Reply::Show { job } => {
            assert_eq!((job.cores[0].ready, files()), (1, 1), "{job:?}");
            assert!(job.cores[0].running.is_some() && job.faces == ["test"], "{job:?}");
        }
        other => panic!("{other:?}"),
    }
    let cancel = Request::Cancel { reason: "seen".into(), code: 1, signal: libc::SIGKILL, grace_ms: 0 };
    launcher.connection.send(&cancel, &[]).unwrap();
    launcher.finish();
    ["0", "1"].iter().for_each(|rank| drop(fs::remove_file(format!("{flag}.{rank}"))));
    vmpid.stop();
}

#[test]
fn the_core_of_a_killed_rank_goes_to_the_next() {
    let vmpid = Vmpid::start(&[]);
    let flag = fresh_dir().into_os_string().into_string().unwrap();
    let mut spec = script(&format!("attach enter touch={flag} kill=9"), 3);
    spec.kill_on_failure = false;
    let finished = vmpid.run(&spec);
    assert_eq!((finished.ends.len(), finished.code), (3, 137), "{finished:?}");
    fs::remove_file(&flag).unwrap();
    vmpid.stop();
}
