//! Would a job break a limit of this machine? Asked before the first rank is spawned, answered with a sentence.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use vmpi_shared::control::{DAEMON_FDS, JobSpec, MOST_RANKS, Stdio};

/// Private memory that a small MPI process needs at least, stack and libraries' data included.
const RANK_BYTES: u64 = 3 << 20;
/// Shared memory of one rank in the segments (eager slab, inbox, requests), as a rule.
const RANK_SEGMENT_BYTES: u64 = 1 << 20;
/// What a rank of another node takes here: its entries in the tables and in the segments.
const FAR_RANK_BYTES: u64 = 2 << 10;
/// Cores of a job on one node, each with sets of all its ranks.
const MOST_CORES: usize = 4096;
/// Nodes of a job: contexts are numbered apart on each.
const MOST_NODES: usize = 4096;

/// A specification that makes no sense or that this machine cannot bear.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    #[error("the job has no ranks")]
    NoRanks,
    #[error("the job has {ranks} ranks, and at most {MOST_RANKS} are possible")]
    TooManyRanks { ranks: u32 },
    #[error("the job has {cores} cores on this node, and at most {MOST_CORES} are possible")]
    TooManyCores { cores: usize },
    #[error("the job's list of {list} names {named} ranks, but it has {ranks}")]
    Named { list: &'static str, named: usize, ranks: u32 },
    #[error("program {app} of the job has no ranks")]
    IdleProgram { app: usize },
    #[error("the programs ask for {apps} ranks, the job for {ranks}")]
    RankCount { apps: u64, ranks: u32 },
    #[error("the job has {ranks} ranks but {placed} places")]
    Placement { ranks: u32, placed: usize },
    #[error("rank {rank} is placed on core {core}, but the job has {cores} cores (0 to {})", .cores - 1)]
    NoSuchCore { rank: usize, core: u32, cores: usize },
    #[error("the job's list of {nodes} nodes does not say where each of its {ranks} ranks runs")]
    Nodes { ranks: u32, nodes: usize },
    #[error("the job has no cores")]
    NoCores,
    #[error("the job says of {said} cores which CPUs they have, but it has {cores}")]
    Places { said: usize, cores: usize },
    #[error("cpu {cpu} is not among those that this daemon may use ({allowed}); choose others with --cores")]
    ForbiddenCpu { cpu: u32, allowed: String },
    #[error("{fds} descriptors were announced, but standard streams of {ranks} ranks need {needed}")]
    FdCount { fds: u32, ranks: u32, needed: u64 },
    #[error(
        "{ranks} ranks need {needed} open files in the daemon, but its hard limit is {limit}; raise it (ulimit -Hn) or \
         use fewer ranks{}", if *.streams { " or --output raw" } else { "" }
    )]
    OpenFiles { ranks: u32, needed: u64, limit: u64, streams: bool },
    #[error(
        "{ranks} ranks need as many processes, but the user has {used} of at most {limit} (ulimit -u); use fewer ranks"
    )]
    Processes { ranks: u32, used: u64, limit: u64 },
    #[error(
        "{ranks} ranks need as many processes, but the control group {group} has {used} of at most {limit} (pids.max)"
    )]
    GroupProcesses { ranks: u32, group: PathBuf, used: u64, limit: u64 },
    #[error(
        "{ranks} ranks need about {} MiB of memory at the least, but only {} MiB are available; use fewer ranks",
        .needed >> 20, .available >> 20
    )]
    Memory { ranks: u32, needed: u64, available: u64 },
    #[error(
        "VMPI_UNEXPECTED_BYTES={said} is no number of bytes: give the memory that the job may use for messages that no receive has asked for, as in \
         500000000, 512M or 4G"
    )]
    Unexpected { said: String },
}

impl LimitError {
    /// The exit code that fits: 2 for a wrong request, 125 for what the machine cannot do.
    pub fn code(&self) -> i32 {
        match self {
            LimitError::NoRanks
            | LimitError::TooManyRanks { .. }
            | LimitError::TooManyCores { .. }
            | LimitError::Named { .. }
            | LimitError::IdleProgram { .. }
            | LimitError::RankCount { .. }
            | LimitError::Placement { .. }
            | LimitError::NoSuchCore { .. }
            | LimitError::NoCores
            | LimitError::Places { .. }
            | LimitError::Nodes { .. }
            | LimitError::Unexpected { .. }
            | LimitError::ForbiddenCpu { .. }
            | LimitError::FdCount { .. } => 2,
            LimitError::OpenFiles { .. }
            | LimitError::Processes { .. }
            | LimitError::GroupProcesses { .. }
            | LimitError::Memory { .. } => 125,
        }
    }
}

/// Raise the soft limits of open files and of the size of files (segments are sparse files) to the hard ones; ranks get their
/// launcher's limits back.
pub fn raise_soft_limits() {
    for resource in [Resource::RLIMIT_NOFILE, Resource::RLIMIT_FSIZE] {
        if let Ok((_, hard)) = getrlimit(resource) {
            let _ = setrlimit(resource, hard, hard);
        }
    }
}

/// Descriptors that a job's standard streams need.
pub fn stream_count(spec: &JobSpec) -> u64 {
    match spec.stdio {
        Stdio::Shared => spec.stdin_count() as u64 + 2,
        Stdio::PerRank => spec.stdin_count() as u64 + 2 * spec.local_ranks().count() as u64,
    }
}

/// Check the specification in itself.
///
/// # Errors
/// The first thing that does not fit.
pub fn check_spec(spec: &JobSpec, allowed: &[u32]) -> Result<(), LimitError> {
    let apps: u64 = spec.apps.iter().map(|app| u64::from(app.ranks)).sum();
    if spec.ranks == 0 {
        return Err(LimitError::NoRanks);
    }
    if spec.ranks > MOST_RANKS {
        return Err(LimitError::TooManyRanks { ranks: spec.ranks });
    }
    if apps != u64::from(spec.ranks) {
        return Err(LimitError::RankCount { apps, ranks: spec.ranks });
    }
    if let Some(app) = spec.apps.iter().position(|app| app.ranks == 0) {
        return Err(LimitError::IdleProgram { app });
    }
    // Each of these lists is looked through for each rank.
    for (list, named) in [("standard inputs", spec.stdin.len()), ("stopped ranks", spec.stop.len())] {
        if named > spec.ranks as usize {
            return Err(LimitError::Named { list, named, ranks: spec.ranks });
        }
    }
    if spec.cpus.is_empty() {
        return Err(LimitError::NoCores);
    }
    if spec.placement.len() != spec.ranks as usize {
        return Err(LimitError::Placement { ranks: spec.ranks, placed: spec.placement.len() });
    }
    let all = spec.cpus.len() + spec.spare_cpus.len();
    if all > MOST_CORES {
        return Err(LimitError::TooManyCores { cores: all });
    }
    if !spec.beside.is_empty() && spec.beside.len() != all {
        return Err(LimitError::Places { said: spec.beside.len(), cores: all });
    }
    let cores = spec.cpus.len();
    if let Some((rank, &core)) = spec.placement.iter().enumerate().find(|(_, core)| **core as usize >= cores) {
        return Err(LimitError::NoSuchCore { rank, core, cores });
    }
    if let Some(nodes) = &spec.nodes {
        let count = nodes.names.len();
        let known = nodes.of_rank.iter().all(|node| (*node as usize) < count) && (nodes.here as usize) < count;
        if nodes.of_rank.len() != spec.ranks as usize || !known || count > MOST_NODES {
            return Err(LimitError::Nodes { ranks: spec.ranks, nodes: count });
        }
    }
    let beside = spec.beside.iter().flatten().copied();
    if let Some(cpu) = spec.all_cpus().chain(beside).find(|cpu| !allowed.contains(cpu)) {
        let allowed = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        return Err(LimitError::ForbiddenCpu { cpu, allowed });
    }
    let needed = stream_count(spec);
    if u64::from(spec.fds) != needed {
        return Err(LimitError::FdCount { fds: spec.fds, ranks: spec.ranks, needed });
    }
    Ok(())
}

/// Check the specification against the machine; `open_fds`: descriptors that the daemon has open for others.
///
/// # Errors
/// The first limit that the job would break.
pub fn check_machine(spec: &JobSpec, open_fds: u64) -> Result<(), LimitError> {
    let ranks = spec.local_ranks().count() as u32;
    // Per rank one connection and, if its MPI process is a grandchild, one pidfd.
    let needed = open_fds + stream_count(spec) + 2 * u64::from(ranks) + DAEMON_FDS;
    let (_, limit) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX));
    if needed > limit {
        return Err(LimitError::OpenFiles { ranks, needed, limit, streams: spec.stdio == Stdio::PerRank });
    }
    check_processes(ranks)?;
    check_group(ranks)?;
    check_memory(ranks, spec.ranks - ranks)
}

fn check_memory(ranks: u32, far: u32) -> Result<(), LimitError> {
    let needed = u64::from(ranks) * (RANK_BYTES + RANK_SEGMENT_BYTES) + u64::from(far) * FAR_RANK_BYTES;
    match available_memory() {
        Some(available) if needed > available => Err(LimitError::Memory { ranks, needed, available }),
        _ => Ok(()),
    }
}

/// Check a job that is to have `more` ranks against the machine; `open_fds`: descriptors that the daemon has open now.
///
/// # Errors
/// The first limit that it would break.
pub fn check_growth(more: u32, open_fds: u64) -> Result<(), LimitError> {
    let needed = open_fds + 2 * u64::from(more) + DAEMON_FDS;
    let (_, limit) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((u64::MAX, u64::MAX));
    if needed > limit {
        return Err(LimitError::OpenFiles { ranks: more, needed, limit, streams: false });
    }
    check_processes(more)?;
    check_group(more)?;
    check_memory(more, 0)
}

/// RLIMIT_NPROC counts all threads of the real user; root is exempt.
fn check_processes(ranks: u32) -> Result<(), LimitError> {
    let uid = nix::unistd::getuid();
    let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NPROC) else { return Ok(()) };
    if uid.is_root() || limit == nix::sys::resource::RLIM_INFINITY {
        return Ok(());
    }
    // All threads of all users are an upper bound that costs one small file.
    let everybody = fs::read_to_string("/proc/loadavg").ok().and_then(|text| parse_entities(&text));
    if everybody.is_some_and(|count| count + u64::from(ranks) <= limit) {
        return Ok(());
    }
    let Ok(processes) = procfs::process::all_processes() else { return Ok(()) };
    let used: u64 = processes
        .flatten()
        .filter(|process| process.uid().is_ok_and(|owner| owner == uid.as_raw()))
        .filter_map(|process| process.stat().ok())
        .map(|stat| stat.num_threads.max(0) as u64)
        .sum();
    if used + u64::from(ranks) > limit {
        return Err(LimitError::Processes { ranks, used, limit });
    }
    Ok(())
}

/// The number of threads in the system: what stands behind the slash in /proc/loadavg.
fn parse_entities(loadavg: &str) -> Option<u64> {
    loadavg.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

fn check_group(ranks: u32) -> Result<(), LimitError> {
    let Some(group) = control_group() else { return Ok(()) };
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    if let (Some(limit), Some(used)) = (read("pids.max"), read("pids.current"))
        && used + u64::from(ranks) > limit
    {
        return Err(LimitError::GroupProcesses { ranks, group, used, limit });
    }
    Ok(())
}

/// Of the memory that is available the part that a job may use for messages that no receive has asked for.
const UNEXPECTED_SHARE: u64 = 2;
/// If nobody knows how much there is.
const UNEXPECTED_UNKNOWN_BYTES: u64 = 1 << 30;

/// Memory for unexpected messages of a job: what its environment says (a number of bytes, or with k, m or g behind it), or half of what is available now.
///
/// # Errors
/// What is no such number.
pub fn unexpected_bytes(said: Option<&str>) -> Result<u64, LimitError> {
    let Some(said) = said.map(str::trim).filter(|said| !said.is_empty()) else {
        return Ok(available_memory().map_or(UNEXPECTED_UNKNOWN_BYTES, |bytes| bytes / UNEXPECTED_SHARE));
    };
    let digits = said.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let shift = match said[digits.len()..].to_ascii_lowercase().as_str() {
        "" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        _ => None,
    };
    let bytes = digits.parse::<u64>().ok().zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| LimitError::Unexpected { said: said.into() })
}

/// MemAvailable, or what the control groups leave if that is less.
fn available_memory() -> Option<u64> {
    use procfs::Current;
    let system = procfs::Meminfo::current().ok()?.mem_available?;
    Some(group_memory().map_or(system, |group| group.min(system)))
}

/// What this process's control groups leave: each of those above, too, has its limit.
fn group_memory() -> Option<u64> {
    let left = |group: &Path, limit: &str, used: &str| {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        Some(read(limit)?.saturating_sub(read(used)?))
    };
    let unified = control_group().into_iter().flat_map(|group| {
        let above: Vec<PathBuf> =
            group.ancestors().take_while(|at| at.starts_with(UNIFIED)).map(Path::to_path_buf).collect();
        above.into_iter().filter_map(|at| left(&at, "memory.max", "memory.current"))
    });
    // Of version 1; in a container its own is at the root of what is mounted.
    let first = [memory_group(), Some(PathBuf::from(FIRST))].into_iter().flatten();
    let first = first.filter_map(|at| left(&at, "memory.limit_in_bytes", "memory.usage_in_bytes"));
    unified.chain(first).min()
}

const UNIFIED: &str = "/sys/fs/cgroup";
const FIRST: &str = "/sys/fs/cgroup/memory";

/// The directory of this process's control group (version 2).
fn control_group() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(PathBuf::from(UNIFIED).join(path))
}

/// The same of version 1, of its memory.
fn memory_group() -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| line.split_once(":memory:/"))?.1;
    Some(PathBuf::from(FIRST).join(path))
}

/// The cpus in the daemon's affinity mask.
pub(crate) fn allowed_cpus() -> Vec<u32> {
    match nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)) {
        Ok(set) => {
            (0..nix::sched::CpuSet::count() as u32).filter(|cpu| set.is_set(*cpu as usize) == Ok(true)).collect()
        }
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use vmpi_shared::control::App;

    pub(crate) fn spec(ranks: u32) -> JobSpec {
        let app = App { program: "/bin/true".into(), argv: vec![], env: vec![], cwd: "/".into(), ranks };
        JobSpec::plain(vec![app])
    }

    #[test]
    fn a_sound_specification_passes() {
        check_spec(&spec(4), &[0, 1]).unwrap();
        check_machine(&spec(4), 10).unwrap();
    }

    type Spoil = fn(&mut JobSpec);

    #[test]
    fn each_nonsense_has_its_sentence() {
        let table: &[(Spoil, &str)] = &[
            (|s| s.ranks = 0, "no ranks"),
            (|s| s.apps[0].ranks = 3, "the programs ask for 3 ranks, the job for 4"),
            (|s| s.cpus.clear(), "no cores"),
            (|s| s.cpus[0] = 77, "cpu 77 is not among"),
            (|s| s.placement.truncate(2), "4 ranks but 2 places"),
            (|s| s.placement[3] = 1, "rank 3 is placed on core 1"),
            (|s| s.ranks = MOST_RANKS + 1, "at most 16777216 are possible"),
            (|s| s.cpus = vec![0; MOST_CORES + 1], "4097 cores"),
            (|s| s.stop = vec![0; 5], "list of stopped ranks names 5 ranks, but it has 4"),
            (|s| s.stdin = vec![0; 5], "list of standard inputs names 5"),
            (|s| s.apps.push(App { ranks: 0, ..s.apps[0].clone() }), "program 1 of the job has no ranks"),
            (|s| s.fds = 2, "2 descriptors were announced"),
            (|s| s.stdio = Stdio::PerRank, "need 9"),
        ];
        for (spoil, sentence) in table {
            let mut spec = spec(4);
            spoil(&mut spec);
            let error = check_spec(&spec, &[0, 1]).unwrap_err();
            assert!(error.to_string().contains(sentence), "{error}");
            assert_eq!(error.code(), 2);
        }
    }

    #[test]
    fn a_job_too_large_for_the_machine_is_refused() {
        let error = check_machine(&spec(100_000_000), 0).unwrap_err();
        assert_eq!(error.code(), 125);
        let error = check_memory(0, u32::MAX).unwrap_err();
        assert!(matches!(error, LimitError::Memory { .. }), "ranks of other nodes take memory here, too: {error}");
        let error = check_machine(&spec(1), u64::MAX / 2).unwrap_err();
        assert!(matches!(error, LimitError::OpenFiles { ranks: 1, .. }));
    }

    #[test]
    fn memory_for_messages_is_what_is_said_or_a_part_of_what_is_there() {
        let said = |text| unexpected_bytes(Some(text)).ok();
        assert_eq!([said("1000"), said(" 3k"), said("2MiB"), said("1G")], [1000, 3 << 10, 2 << 20, 1 << 30].map(Some));
        assert_eq!([said("much"), said("-1"), said("1T"), said("99999999999G")], [None; 4]);
        let [unsaid, empty] = [None, Some("")].map(|said| unexpected_bytes(said).unwrap());
        let available = available_memory().unwrap();
        assert!(unsaid > available / 8 && empty <= available * 4, "{unsaid} of {available}");
    }

    #[test]
    fn loadavg_tells_the_number_of_threads() {
        assert_eq!(parse_entities("0.00 0.01 0.05 1/234 5678\n"), Some(234));
        assert_eq!(parse_entities("nonsense"), None);
    }
}
