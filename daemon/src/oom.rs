//! Whether the kernel has ended a rank for want of memory: it counts whom it ends so, for each control group and for the machine.

use std::path::{Path, PathBuf};

/// The counts as they stood when a job began.
pub struct Kills {
    group: Option<Group>,
    machine: Option<u64>,
}

/// The control group in which the ranks begin: the daemon's.
struct Group {
    dir: PathBuf,
    kills: u64,
}

impl Kills {
    pub fn now() -> Kills {
        let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = group_dirs(&membership).into_iter().find_map(|dir| Some(Group { kills: kills_of(&dir)?, dir }));
        Kills { group, machine: machine_kills() }
    }

    /// What is known of the SIGKILL that has ended a rank; empty if nothing is.
    pub fn of_killed(&self) -> String {
        let more = |before: u64, now: Option<u64>| now.map(|now| now.saturating_sub(before));
        let here = self.group.as_ref().and_then(|group| more(group.kills, kills_of(&group.dir)));
        let all = self.machine.and_then(|before| more(before, machine_kills()));
        let limit = self.group.as_ref().map(|group| (group.dir.as_path(), limit_of(&group.dir)));
        verdict(here, all, limit)
    }
}

fn verdict(here: Option<u64>, all: Option<u64>, group: Option<(&Path, Option<u64>)>) -> String {
    let processes = |count: u64| if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
    match (here, all, group) {
        (Some(count @ 1..), _, Some((dir, limit))) => {
            let limit = limit.map_or(String::new(), |limit| format!(" (limit {} MiB)", limit >> 20));
            format!(
                "by the kernel's out-of-memory killer, which has ended {} of the control group {}{limit} since the job began; \
                 use fewer ranks per node, or ask for more memory",
                processes(count),
                dir.display()
            )
        }
        (_, Some(0), _) => "not by the kernel's out-of-memory killer, which has ended no process since the job began; \
                            somebody has sent it (kill -9, a batch system)"
            .into(),
        (_, Some(count), _) => format!(
            "the kernel's out-of-memory killer has ended {} of this machine since the job began, and does not say here whether \
             this was one",
            processes(count)
        ),
        (Some(0), None, Some((dir, _))) => {
            format!("the kernel's out-of-memory killer has ended no process of the control group {}", dir.display())
        }
        _ => String::new(),
    }
}

/// Where the counts of this process's control group may be, by proc_pid_cgroup(5): cgroup v1's before v2's, which has no memory controller
/// then; the mount's root where the path means nothing here (a container that sees its own group as the root).
fn group_dirs(membership: &str) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for (controllers, path) in membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')) {
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|name| name == "memory") {
            dirs.extend([Path::new("/sys/fs/cgroup/memory").join(path), "/sys/fs/cgroup/memory".into()]);
        } else if controllers.is_empty() {
            dirs.extend([Path::new("/sys/fs/cgroup").join(path), "/sys/fs/cgroup".into()]);
        }
    }
    dirs
}

/// `oom_kill` of a control group: in memory.events (v2) or memory.oom_control (v1).
fn kills_of(dir: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    field(&read("memory.events").or_else(|| read("memory.oom_control"))?, "oom_kill")
}

/// The memory limit of a control group; `None`: it has none.
fn limit_of(dir: &Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let limit = read("memory.max").or_else(|| read("memory.limit_in_bytes"))?;
    // v1 writes the largest number of pages for none.
    limit.trim().parse().ok().filter(|limit| *limit < 1 << 60)
}

fn machine_kills() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/vmstat").ok()?, "oom_kill")
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_both_versions() {
        let hybrid = "9:name=systemd:/\n4:memory:/box/7\n0::/\n";
        let dirs = group_dirs(hybrid);
        assert_eq!(dirs[0], Path::new("/sys/fs/cgroup/memory/box/7"));
        assert_eq!(group_dirs("0::/user.slice/a\n")[0], Path::new("/sys/fs/cgroup/user.slice/a"));
    }

    #[test]
    fn counts_are_read_by_name() {
        assert_eq!(field("low 0\noom 3\noom_kill 2\noom_group_kill 9\n", "oom_kill"), Some(2));
        assert_eq!(field("oom_kill_disable 0\nunder_oom 0\n", "oom_kill"), None);
    }

    #[test]
    fn only_a_count_is_certain() {
        let group = Some((Path::new("/g"), Some(64 << 20)));
        let by = verdict(Some(1), Some(1), group);
        assert!(
            by.starts_with("by the kernel's") && by.contains("1 process of the control group /g (limit 64 MiB)"),
            "{by}"
        );
        assert!(verdict(Some(0), Some(0), group).starts_with("not by the kernel's"));
        assert!(verdict(Some(0), Some(2), group).contains("ended 2 processes of this machine"));
        assert!(verdict(Some(0), None, group).contains("no process of the control group"));
        assert_eq!(verdict(None, None, None), "");
    }
}
