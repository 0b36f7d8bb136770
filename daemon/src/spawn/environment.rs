//! The environment of a rank: the program's, what all ranks of the job share, and what only this one has.

use super::{Identity, Start, string_moves};
use std::ffi::{CString, NulError};
use vmpi_shared::control::{JobSpec, env};

/// What all ranks of the job have.
pub(super) fn common(spec: &JobSpec, identity: &Identity) -> Result<Vec<CString>, NulError> {
    let variables = [
        format!("{}={}", env::SOCKET, identity.socket),
        format!("{}={}", env::JOB, identity.word),
        format!("{}={}", env::JOBID, identity.job),
        format!("{}={}", env::V, spec.v),
        format!("{UNIVERSE_NAME}={}", spec.universe_size()),
    ];
    variables.into_iter().map(CString::new).collect()
}

/// What all ranks of a program have, of what the launcher gave.
pub(super) fn of_program(variables: &[(String, String)]) -> Result<Vec<CString>, NulError> {
    let own = own_names();
    variables
        .iter()
        .filter(|(name, _)| !own.contains(&name.as_str()) && name != TUNABLES)
        .map(|(name, value)| format!("{name}={value}"))
        .chain([format!("{TUNABLES}={}", tunables(variables, string_moves::are_slow()))])
        .map(CString::new)
        .collect()
}

/// What this rank has.
pub(super) fn of_rank(start: &Start) -> Vec<CString> {
    let numbers = [
        (RANK_NAMES, start.world_rank),
        (SIZE_NAMES, start.world_size),
        (LOCAL_RANK_NAMES, start.local_rank),
        (LOCAL_SIZE_NAMES, start.local_size),
        (&[env::JOB_RANK], start.rank),
    ];
    numbers
        .iter()
        .flat_map(|(names, number)| names.iter().map(move |name| format!("{name}={number}")))
        .map(|variable| CString::new(variable).expect("names and digits hold no NUL"))
        .collect()
}

/// Which CPU each thread of an OpenMP program has, where ranks share a place of several and the user has said nothing about that: threads that sleep whenever another
/// rank runs are woken two on one CPU now and then, and all wait for them (200 steps of a loop and an allreduce: 0.13 to 0.25 s bound, 0.2 to 0.34 s not). A rank that has
/// its place for itself is left as it is: other threads that the bound one starts would have its CPU alone. So is an interpreter, where libraries bring two OpenMP runtimes
/// often enough: libgomp binds the thread that loads it, and all that the other one starts are on that CPU (findings/libgomp-with-omp-proc-bind-...).
pub(super) fn of_threads(place: &[u32], is_shared: bool, variables: &[(String, String)]) -> Option<CString> {
    let is_said = variables.iter().any(|(name, _)| PLACE_NAMES.contains(&name.as_str()));
    // By the auditor that is set for such programs.
    let opens_libraries = variables.iter().any(|(name, value)| name == env::AUDIT && value.contains(env::AUDITOR));
    if place.len() < 2 || !is_shared || is_said || opens_libraries {
        return None;
    }
    let places: Vec<String> = place.iter().map(|cpu| format!("{{{cpu}}}")).collect();
    CString::new(format!("OMP_PLACES={}", places.join(","))).ok()
}

/// By which users say where OpenMP's threads run.
const PLACE_NAMES: &[&str] = &["OMP_PLACES", "OMP_PROC_BIND", "KMP_AFFINITY", "KMP_HW_SUBSET", "GOMP_CPU_AFFINITY"];

/// Variables whose value is the rank: ours, and those by which scripts know Open MPI, Hydra and MVAPICH.
const RANK_NAMES: &[&str] = &[env::RANK, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"];
/// The same among the ranks of the node.
const LOCAL_RANK_NAMES: &[&str] =
    &["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"];
/// Variables whose value is the number of ranks.
const SIZE_NAMES: &[&str] = &[env::SIZE, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
/// MPI_UNIVERSE_SIZE.
const UNIVERSE_NAME: &str = "OMPI_UNIVERSE_SIZE";
/// The same of the node.
const LOCAL_SIZE_NAMES: &[&str] = &["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"];

/// Settings of the GNU C library, `name=value:name=value`.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// What they are for ranks, unless the user has chosen.
///
/// Whether threads are registered for restartable sequences: nearly no program uses them (those that do register themselves where the library has not), and
/// the kernel has to bring what is registered up to date whenever it switches to the thread: an eighth of a microsecond a turn.
const RSEQ: (&str, &str) = ("glibc.pthread.rseq", "0");
/// Whether malloc asks for huge pages: blocks of 2 MiB and more then have them from the start, and messages out of them are copied in half the time.
const HUGE_PAGES: (&str, &str) = ("glibc.malloc.hugetlb", "1");
/// From how many bytes on memcpy moves them by one instruction: never, where that one is slow (`string_moves`).
const STRING_MOVES: (&str, &str) = ("glibc.cpu.x86_rep_movsb_threshold", "0x10000000");

/// The settings of these variables, and ours.
fn tunables(variables: &[(String, String)], string_moves_are_slow: bool) -> String {
    let of = |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let set = of(TUNABLES).unwrap_or("");
    let is_chosen =
        |name: &str| set.split(':').any(|one| one.split_once('=').is_some_and(|(chosen, _)| chosen == name));
    let huge = (of(env::HUGE_PAGES) != Some("0")).then_some(HUGE_PAGES);
    let moves = string_moves_are_slow.then_some(STRING_MOVES);
    let own = huge.into_iter().chain([RSEQ]).chain(moves).filter(|(name, _)| !is_chosen(name));
    let mut settings = Vec::from_iter((!set.is_empty()).then(|| set.to_string()));
    settings.extend(own.map(|(name, value)| format!("{name}={value}")));
    settings.join(":")
}

/// What only vmpi says, whatever stood in the launcher's environment.
fn own_names() -> Vec<&'static str> {
    let mut names = vec![env::SOCKET, env::JOB, env::JOBID, env::V, env::JOB_RANK];
    names.push(UNIVERSE_NAME);
    names.extend(RANK_NAMES);
    names.extend(SIZE_NAMES);
    names.extend(LOCAL_RANK_NAMES);
    names.extend(LOCAL_SIZE_NAMES);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_a_cpu_each_unless_the_user_has_said_where() {
        let said = |name: &str| vec![(name.to_string(), "x".to_string())];
        let of = |place: &[u32], is_shared, variables: &[(String, String)]| {
            of_threads(place, is_shared, variables).map(|variable| variable.into_string().unwrap())
        };
        assert_eq!(of(&[2, 3], true, &said("OMP_NUM_THREADS")), Some("OMP_PLACES={2},{3}".into()));
        assert_eq!(of(&[2], true, &[]), None);
        assert_eq!(of(&[2, 3], false, &[]), None);
        assert_eq!(of(&[2, 3], true, &said("OMP_PROC_BIND")), None);
        let python = (env::AUDIT.to_string(), format!("/usr/lib/vmpi/{}", env::AUDITOR));
        assert_eq!(of(&[2, 3], true, &[python]), None, "it may load two runtimes");
    }

    #[test]
    fn the_users_tunables_are_kept() {
        let variable = |name: &str, value: &str| [("HOME".into(), "/root".into()), (name.into(), value.into())];
        let of = |name: &str, value: &str| tunables(&variable(name, value), false);
        let ours = "glibc.malloc.hugetlb=1:glibc.pthread.rseq=0";
        assert_eq!(tunables(&[], false), ours);
        let moves = "glibc.cpu.x86_rep_movsb_threshold";
        assert_eq!(tunables(&[], true), format!("{ours}:{moves}=0x10000000"));
        assert_eq!(tunables(&variable(TUNABLES, &format!("{moves}=4096")), true), format!("{moves}=4096:{ours}"));
        for (set, result) in [
            ("", ours.to_string()),
            ("glibc.malloc.arena_max=1", format!("glibc.malloc.arena_max=1:{ours}")),
            ("glibc.pthread.rseq=1", "glibc.pthread.rseq=1:glibc.malloc.hugetlb=1".into()),
            ("glibc.malloc.hugetlb=2", "glibc.malloc.hugetlb=2:glibc.pthread.rseq=0".into()),
            ("glibc.malloc.hugetlb=0:glibc.pthread.rseq=1", "glibc.malloc.hugetlb=0:glibc.pthread.rseq=1".into()),
        ] {
            assert_eq!(of(TUNABLES, set), result);
        }
        assert_eq!(of(env::HUGE_PAGES, "0"), "glibc.pthread.rseq=0");
        assert_eq!(of(env::HUGE_PAGES, "1"), ours);
    }
}
