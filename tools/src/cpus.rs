//! The CPUs that this process may use.

use crate::failure::Failure;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beyond all CPUs and ranks that there are.
const MOST: u32 = 1 << 20;

/// A list as `0,2-4`; sorted as given, without repetitions.
///
/// # Errors
/// A sentence that names the part that is no number or range, or that nothing has.
pub fn parse_list(text: &str) -> Result<Vec<u32>, String> {
    let bad = |part: &str| format!("`{part}` in `{text}` is neither a number nor a range like 2-4");
    let (mut list, mut seen) = (Vec::new(), BTreeSet::new());
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: u32 = first.trim().parse().map_err(|_| bad(part))?;
        let last: u32 = last.trim().parse().map_err(|_| bad(part))?;
        if last < first {
            return Err(bad(part));
        }
        if last >= MOST {
            return Err(format!("`{part}` in `{text}` goes beyond {}", MOST - 1));
        }
        list.extend((first..=last).filter(|number| seen.insert(*number)));
    }
    Ok(list)
}

/// `[0, 1, 2, 5]` as `0-2,5`.
pub fn format_list(cpus: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match runs.last_mut() {
            Some((_, last)) if cpu == *last + 1 => *last = cpu,
            _ => runs.push((cpu, cpu)),
        }
    }
    let parts: Vec<String> =
        runs.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    parts.join(",")
}

/// The CPUs in this process's affinity mask (sched_getaffinity(2)).
pub fn allowed() -> Result<Vec<u32>, Failure> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|e| Failure::own(format!("cannot read the affinity mask: sched_getaffinity: {e}")))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).map(|cpu| cpu as u32).collect())
}

/// Check `--cores` against the affinity mask.
///
/// # Errors
/// Exit code 2: a CPU is not in the mask.
pub fn choose(asked: Option<&[u32]>, allowed: &[u32]) -> Result<Vec<u32>, Failure> {
    let Some(asked) = asked else { return Ok(allowed.to_vec()) };
    match asked.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(cpu) => Err(Failure::usage(format!(
            "--cores {}: CPU {cpu} is not in this process's affinity mask ({}); choose among these, or widen the mask (taskset, cpuset)",
            format_list(asked),
            format_list(allowed)
        ))),
        None => Ok(asked.to_vec()),
    }
}

/// CPUs' worth of time that the control group grants, if it limits them.
pub fn cgroup_quota() -> Option<f64> {
    Some(limiting_group()?.0)
}

/// As many of `cpus` as the control group grants time for, at least one: more would be throttled, all at once and in the middle of a message.
/// What was left out, in words.
pub fn keep_to_quota(cpus: &mut Vec<u32>, quota: Option<f64>) -> Option<String> {
    let quota = quota?;
    let whole = (quota as usize).max(1);
    if whole >= cpus.len() {
        return None;
    }
    let note =
        format!("the control group grants {quota:.2} CPUs of time: {whole} of {} cores (--cores: others)", cpus.len());
    cpus.truncate(whole);
    Some(note)
}

/// For how long the control group has kept this process's group from running, since it was made.
pub fn throttled() -> Option<Duration> {
    let text = std::fs::read_to_string(limiting_group()?.1.join("cpu.stat")).ok()?;
    parse_throttled(&text)
}

/// `throttled_usec N` (version 2) or `throttled_time N` (version 1, nanoseconds).
fn parse_throttled(text: &str) -> Option<Duration> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", n) => n.trim().parse().ok().map(Duration::from_micros),
        ("throttled_time", n) => n.trim().parse().ok().map(Duration::from_nanos),
        _ => None,
    })
}

/// The group with the least quota of those that this process is in.
fn limiting_group() -> Option<(f64, PathBuf)> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(least_of_line).min_by(|a, b| a.0.total_cmp(&b.0))
}

/// `0::/path` (version 2) or `N:cpu,cpuacct:/path` (version 1); parents limit too, the nearest limits that show are read.
fn least_of_line(line: &str) -> Option<(f64, PathBuf)> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let mut dir = PathBuf::from(path.trim_start_matches('/'));
    let mut least: Option<(f64, PathBuf)> = None;
    loop {
        let (root, here) = if controllers.is_empty() {
            let root = Path::new("/sys/fs/cgroup").join(&dir);
            let here = std::fs::read_to_string(root.join("cpu.max")).ok().and_then(|text| parse_cpu_max(&text));
            (root, here)
        } else if controllers.split(',').any(|name| name == "cpu") {
            let root = Path::new("/sys/fs/cgroup/cpu").join(&dir);
            let read = |name: &str| std::fs::read_to_string(root.join(name)).ok();
            let here = read("cpu.cfs_quota_us")
                .zip(read("cpu.cfs_period_us"))
                .and_then(|(quota, period)| parse_cpu_max(&format!("{} {}", quota.trim(), period.trim())));
            (root, here)
        } else {
            return None;
        };
        if let Some(quota) = here.filter(|quota| least.as_ref().is_none_or(|(known, _)| quota < known)) {
            least = Some((quota, root));
        }
        if !dir.pop() {
            return least;
        }
    }
}

fn parse_cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(parse_list("0,2-4,3"), Ok(vec![0, 2, 3, 4]));
        assert_eq!(parse_list("7"), Ok(vec![7]));
        for bad in ["", "a", "3-1", "1,,2", "-1"] {
            assert!(parse_list(bad).is_err(), "{bad}");
        }
        assert_eq!(format_list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn a_cpu_outside_the_mask_is_refused() {
        assert_eq!(choose(None, &[0, 1]).unwrap(), vec![0, 1]);
        assert_eq!(choose(Some(&[1]), &[0, 1]).unwrap(), vec![1]);
        assert_eq!(choose(Some(&[9]), &[0, 1]).unwrap_err().code, 2);
    }

    #[test]
    fn quotas() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("150000 100000\n"), Some(1.5));
        assert_eq!(parse_cpu_max("-1 100000"), None);
    }

    #[test]
    fn a_quota_of_two_and_a_half_is_two_cores() {
        let kept = |quota| {
            let mut cpus = vec![0, 1, 2, 3];
            let note = keep_to_quota(&mut cpus, quota);
            (cpus.len(), note.is_some())
        };
        assert_eq!(kept(Some(2.5)), (2, true));
        assert_eq!(kept(Some(0.3)), (1, true));
        assert_eq!(kept(Some(4.0)), (4, false));
        assert_eq!(kept(None), (4, false));
    }

    #[test]
    fn throttling_is_read() {
        let second = Some(Duration::from_secs(1));
        assert_eq!(parse_throttled("usage_usec 7\nnr_throttled 3\nthrottled_usec 1000000\n"), second);
        assert_eq!(parse_throttled("nr_periods 2\nnr_throttled 1\nthrottled_time 1000000000\n"), second);
        assert_eq!(parse_throttled("usage_usec 7\n"), None);
    }
}
