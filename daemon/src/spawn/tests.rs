use super::*;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use vmpi_shared::control::App;

/// Kill whatever this thread starts, as soon as it is seen, until told to end. Only these children are looked at.
fn kill_children_of(thread: i32, over: &AtomicBool) {
    let children = format!("/proc/self/task/{thread}/children");
    while !over.load(Ordering::Relaxed) {
        let seen = std::fs::read_to_string(&children).unwrap_or_default();
        for pid in seen.split_whitespace().filter_map(|pid| pid.parse().ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

/// A rank that is killed before it executes its program: the group that it is said to be in is nobody else's. (0, to whoever signals a group,
/// is the daemon's own: the daemon ended itself.)
#[test]
fn a_rank_that_dies_before_exec_has_a_group() {
    let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let app = App { program: "/bin/true".into(), argv: vec!["true".into()], env, cwd: "/".into(), ranks: 1 };
    let spec = JobSpec { apps: vec![app], ..crate::limits::tests::spec(1) };
    let identity = Identity { socket: "/nowhere", word: "", job: 1 };
    let mut spawner = Spawner::new(&spec, &identity, Inherited::default()).unwrap();
    let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
    // Above the standard streams, as the daemon's are.
    let null: OwnedFd = nix::fcntl::fcntl(&null, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(10)).map(own).unwrap();
    let start =
        Start { rank: 0, program: 0, core: 0, world_rank: 0, world_size: 1, local_rank: 0, local_size: 1, stop: false };
    let over = AtomicBool::new(false);
    let thread = nix::unistd::gettid().as_raw();
    std::thread::scope(|scope| {
        scope.spawn(|| kill_children_of(thread, &over));
        let mut groups = Vec::new();
        for _ in 0..300 {
            let streams = Streams { stdin: null.as_fd(), stdout: null.as_fd(), stderr: null.as_fd() };
            let spawned = spawner.spawn(&start, 0, streams).unwrap();
            waitpid(Pid::from_raw(spawned.pid), None).unwrap();
            groups.push((spawned.pid, spawned.group));
        }
        over.store(true, Ordering::Relaxed);
        groups.retain(|(pid, group)| pid != group);
        assert_eq!(groups, [], "pids and groups");
    });
}

fn own(fd: RawFd) -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: just duplicated; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}
