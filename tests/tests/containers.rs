//! What a container's control group allows: whole cores of its quota, and a word about what it has cost.

use std::fs;
use std::path::PathBuf;
use vmpi_tests::job::Vmpirun;

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
    if nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).is_ok_and(|set| {
        (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).count() < 2
    }) {
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
    let Some(group) = Group::with_quota("throttled", 30_000) else {
        eprintln!("skipped: no control group with a quota of CPU time can be made here");
        return;
    };
    let compute = ["sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"];
    let got = group.vmpirun("throttled").args(["-n", "1"]).args(compute).run();
    assert!(got.code == 0 && got.stderr.contains("has kept the job from running for "), "{got:?}");
    let got = group.vmpirun("quiet").args(["-n", "1", "--quiet"]).args(compute).run();
    assert!(got.code == 0 && got.stderr.is_empty(), "{got:?}");
    let got = group.vmpirun("idle").args(["-n", "1", "sleep", "1"]).run();
    assert!(got.code == 0 && !got.stderr.contains("has kept the job"), "{got:?}");
}
