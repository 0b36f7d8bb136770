//! What a container allows: whole cores of its control group's quota, and a word about what that has cost; system calls of Docker's default profile;
//! 64 MB of /dev/shm.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

/// A control group whose processes get so much CPU time of every 100 ms; gone when dropped. `None`: none can be made here.
struct Group(PathBuf);

impl Group {
    fn with_quota(name: &str, quota_us: u32) -> Option<Group> {
        let v1 = PathBuf::from("/sys/fs/cgroup/cpu");
        let root = if v1.is_dir() { v1.clone() } else { PathBuf::from("/sys/fs/cgroup") };
        let group = Group(root.join(format!("vmpi-test-{name}-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        let (file, text) = match root == v1 {
            true => ("cpu.cfs_quota_us", quota_us.to_string()),
            false => ("cpu.max", format!("{quota_us} 100000")),
        };
        fs::write(group.0.join(file), text).ok()?;
        Some(group)
    }

    fn vmpirun(&self, name: &str) -> Vmpirun {
        let path = self.0.to_str().expect("a plain path");
        Vmpirun::wrapped(name, "sh", &["-c", "echo $$ > $0/cgroup.procs && exec \"$@\"", path])
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_quota_is_so_many_whole_cores() {
    let Some(group) = Group::with_quota("cores", 150_000) else {
        eprintln!("skipped: no control group with a quota of CPU time can be made here");
        return;
    };
    if nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0))
        .is_ok_and(|set| (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count() < 2)
    {
        eprintln!("skipped: there is one CPU");
        return;
    }
    let got = group.vmpirun("quota").args(["-V", "2", "--dry-run", "sleep", "0"]).run();
    assert!(got.code == 0 && got.stdout.contains("2 ranks on 1 core "), "{got:?}");
    assert!(got.stdout.contains("grants 1.50 CPUs of time: 1 of "), "{got:?}");
    // Who names cores gets them, and hears what that means.
    let got = group.vmpirun("quota-cores").args(["--cores", "0-1", "--dry-run", "sleep", "0"]).run();
    assert!(got.stdout.contains("2 ranks on 2 cores") && got.stdout.contains("less than the 2 cores used"), "{got:?}");
}

#[test]
fn what_a_quota_costs_is_told_of() {
    let Some(group) = Group::with_quota("throttled", 5_000) else {
        eprintln!("skipped: no control group with a quota of CPU time can be made here");
        return;
    };
    let compute = ["sh", "-c", "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done"];
    let got = group.vmpirun("throttled").args(["-n", "1"]).args(compute).run();
    assert!(got.code == 0 && got.stderr.contains("has kept the job from running for "), "{got:?}");
    let got = group.vmpirun("quiet").args(["-n", "1", "--quiet"]).args(compute).run();
    assert!(got.code == 0 && got.stderr.is_empty(), "{got:?}");
    // vmpirun itself takes some hundredths of a second, which is nothing of this one.
    let Some(group) = Group::with_quota("idle", 150_000) else { return };
    let got = group.vmpirun("idle").args(["-n", "1", "sleep", "1"]).run();
    assert!(got.code == 0 && !got.stderr.contains("has kept the job"), "{got:?}");
}

/// The launcher, vmpid and the ranks with what Docker's default seccomp profile leaves, and with its /dev/shm where one can be mounted.
#[test]
fn a_default_profile_and_a_small_dev_shm_are_enough() {
    Turn::beside_others();
    let turn = Turn::take();
    let wrapper = program("seccomped.c", Mpi::Openmpi).display().to_string();
    let programs = ["large.c", "coll.c", "rma_win.c", "spawn_basic.c"].map(|name| program(name, Mpi::Openmpi));
    drop(turn);
    const SMALL: &str = "mount -t tmpfs -o size=64m none /dev/shm && exec \"$@\"";
    let may_mount =
        Command::new("unshare").args(["-m", "sh", "-c", SMALL, "sh", "true"]).status().is_ok_and(|s| s.success());
    if !may_mount {
        eprintln!("no /dev/shm of 64 MB can be mounted here: with the machine's own");
    }
    for binary in programs {
        let run = match may_mount {
            true => Vmpirun::wrapped("profile", "unshare", &["-m", "sh", "-c", SMALL, "sh", &wrapper]),
            false => Vmpirun::wrapped("profile", &wrapper, &[]),
        };
        let got = run.args(["-n", "3", "-V", "2"]).arg(&binary).deadline(Duration::from_secs(300)).run();
        assert!(got.code == 0 && got.stdout.contains("all checks hold"), "{}: {got:?}", binary.display());
    }
}
