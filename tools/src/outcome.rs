//! How a job ended: exit code, sentence, JSON.

use crate::crash;
use crate::occupied;
use crate::report::Verdict;
use crate::stand_in;
use crate::table::Table;
use serde_json::{Value, json};
use vmpi_shared::control::{App, Cause, Ended, Helper, JobReport, JobSpec, NewRank, RankEnd};
use vmpi_shared::crash::{Crash, OnCrash};
use vmpi_shared::escape;

/// The exit code of vmpirun for a cause.
pub fn exit_code(cause: &Cause) -> i32 {
    match cause {
        Cause::Success => 0,
        Cause::RankFailed { ended, .. } => not_zero(ended.code()),
        Cause::Unfinished { .. } => 1,
        Cause::Aborted { code, .. } | Cause::GroupAborted { code, .. } => not_zero(*code),
        Cause::Cancelled { code, .. } => *code,
        Cause::LauncherDied | Cause::Shutdown | Cause::Internal { .. } => crate::failure::code::OWN,
    }
}

/// What a parent sees of a code that means failure: 8 bits, never 0.
fn not_zero(code: i32) -> i32 {
    match code & 0xff {
        0 => 1,
        code => code,
    }
}

/// The program of a rank.
pub fn app_of(spec: &JobSpec, rank: u32) -> Option<&App> {
    let mut first = 0;
    spec.apps.iter().find(|app| {
        first += app.ranks;
        rank < first
    })
}

/// What is known of ranks besides the cause.
#[derive(Copy, Clone, Default)]
pub struct Known<'a> {
    pub spawned: &'a [NewRank],
    pub ends: &'a [RankEnd],
    pub crashes: &'a [Crash],
}

impl Known<'_> {
    /// Where the rank was when it ended.
    fn place(&self, rank: u32, pid: i32) -> Option<String> {
        let crash = self.crashes.iter().find(|crash| crash.rank == rank && crash.pid == pid)?;
        crash::place_of(crash)
    }

    /// `11 (SIGSEGV, invalid memory reference) at a.c:7 (crunch)`.
    fn killed_by(&self, rank: u32, pid: i32, signal: i32, initialized: bool, spec: &JobSpec) -> String {
        let end = self.ends.iter().rfind(|end| end.rank == rank && end.pid == pid);
        let why = end.map_or("", |end| &end.why_killed);
        if signal == libc::SIGKILL && !why.is_empty() {
            return format!("{signal} (SIGKILL): {why}");
        }
        let name = signal_name(signal);
        match self.place(rank, pid) {
            Some(place) => format!("{name} {place}"),
            // Somebody else may have sent any signal; one of these was its own.
            None if initialized && spec.on_crash != OnCrash::None && CAUGHT.contains(&signal) => format!(
                "{name}, and left no call stack (it handles this signal itself, or a thread other than its first used up its stack)"
            ),
            None => name,
        }
    }
}

/// Signals before which a rank tells of itself.
const CAUGHT: [i32; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP, libc::SIGSYS];

/// Why the job failed, in a sentence; `None`: it did not.
pub fn sentence(cause: &Cause, spec: &JobSpec, known: Known<'_>, node: &str) -> Option<String> {
    let Known { spawned, .. } = known;
    let who = |rank: u32, pid: i32| {
        // The last process with that number.
        if let Some(new) = spawned.iter().rfind(|new| new.rank == rank) {
            let NewRank { world_rank, world, program, .. } = new;
            let (node, program) = (escape::word(new.node.as_deref().unwrap_or(node)), escape::word(program));
            return format!(
                "spawned rank {rank} (rank {world_rank} of world {world}, pid {pid}, node {node}, program {program})"
            );
        }
        let program = escape::word(app_of(spec, rank).map_or("?", |app| stand_in::program_of(app)));
        let node = escape::word(node);
        format!("rank {rank} (pid {pid}, node {node}, program {program})")
    };
    let others = spec.ranks > 1 || !spawned.is_empty();
    let rest = if spec.kill_on_failure && others { "; the other ranks were ended" } else { "" };
    match cause {
        Cause::Success => None,
        Cause::RankFailed { rank, pid, ended: Ended::Signaled(signal), initialized, .. } => {
            let signal = known.killed_by(*rank, *pid, *signal, *initialized, spec);
            Some(format!("{} was killed by signal {signal}{rest}", who(*rank, *pid)))
        }
        Cause::RankFailed { rank, pid, ended: Ended::Exited(code), finalized, initialized } => {
            let without = if *initialized && !finalized { " without calling MPI_Finalize" } else { "" };
            let rest = match code {
                0 if !rest.is_empty() => "; the other ranks were ended if they did not end by themselves",
                _ => rest,
            };
            let place = known.place(*rank, *pid).map_or(String::new(), |place| format!(", {place}"));
            Some(format!("{} exited with code {code}{without}{place}{rest}", who(*rank, *pid)))
        }
        Cause::Unfinished { rank, pid, parent } => Some(format!(
            "{} ended without calling MPI_Finalize (its exit code is known to process {parent} only, which had started it and goes \
             on){rest}",
            who(*rank, *pid)
        )),
        Cause::Aborted { rank, pid, code, reason } => {
            let place = known.place(*rank, *pid).map_or(String::new(), |place| format!(", {place}"));
            Some(format!("{} aborted the job with code {code}{place}{}", who(*rank, *pid), because(reason)))
        }
        Cause::GroupAborted { rank, pid, code, reason, ranks } => {
            let what = match ranks {
                1 => "itself".into(),
                ranks => format!("the {ranks} ranks of a communicator"),
            };
            Some(format!(
                "{} aborted {what} with code {code}, and the others were not ended{}",
                who(*rank, *pid),
                because(reason)
            ))
        }
        Cause::Cancelled { reason, .. } => Some(format!("the job was ended: {}", escape::indented(reason))),
        Cause::LauncherDied => Some("the job was ended: its launcher died".into()),
        Cause::Shutdown => Some("the job was ended: vmpid was shut down".into()),
        Cause::Internal { reason } => Some(format!("vmpid could not go on with the job: {}", escape::indented(reason))),
    }
}

/// What a rank said when it ended the job.
fn because(reason: &str) -> String {
    let reason = escape::indented(reason.trim_end());
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// `11 (SIGSEGV, invalid memory reference)`.
pub fn signal_name(signal: i32) -> String {
    let meaning = match signal {
        libc::SIGSEGV => ", invalid memory reference",
        libc::SIGBUS => ", memory that its file does not have",
        libc::SIGFPE => ", arithmetic error",
        libc::SIGILL => ", invalid instruction",
        libc::SIGABRT => ", abort(), a failed assertion or an uncaught C++ exception",
        libc::SIGKILL => ", by kill -9 or the kernel's out-of-memory killer",
        libc::SIGXCPU => ", CPU time limit",
        _ => "",
    };
    match nix::sys::signal::Signal::try_from(signal) {
        Ok(known) => format!("{signal} ({}{meaning})", known.as_str()),
        Err(_) => signal.to_string(),
    }
}

/// Every rank's end, as `-print-all-exitcodes` shows it.
pub fn exit_table(ends: &[RankEnd]) -> Table {
    let mut table = Table::new(&["RANK", "PID", "EXIT", "MPI"]);
    for end in ends {
        let exit = match end.ended {
            Ended::Exited(code) => code.to_string(),
            Ended::Signaled(signal) => format!("signal {}", signal_name(signal)),
        };
        let mpi = match (end.initialized, end.finalized) {
            (false, _) => "not initialized",
            (true, false) => "not finalized",
            (true, true) => "finalized",
        };
        table.row(vec![end.rank.to_string(), end.pid.to_string(), exit, mpi.into()]);
    }
    table
}

/// The job's end as JSON (`--json`).
pub fn as_json(
    cause: Option<&Cause>,
    code: i32,
    ends: &[RankEnd],
    report: Option<&JobReport>,
    spec: &JobSpec,
    crashes: &[Crash],
) -> Value {
    let verdict = report.map(|report| Verdict::of(report, spec)).map(|verdict| {
        let tries: Vec<String> = verdict.tries.iter().map(ToString::to_string).collect();
        json!({ "busy": verdict.busy, "waits": verdict.waits, "try": tries })
    });
    json!({
        "schema_version": 1,
        "code": code,
        "end": cause,
        "ranks": spec.ranks,
        "v": spec.v,
        "cpus": spec.cpus,
        "placement": spec.placement,
        "rank_ends": ends,
        "crashes": crash::json(crashes),
        "report": report,
        "verdict": verdict,
    })
}

/// Processes in a sentence: `sleep (pid 7), sh (pid 9, node b) and 3 more`.
pub fn processes(helpers: &[Helper]) -> String {
    const MOST: usize = 8;
    let one = |helper: &Helper| match &helper.node {
        Some(node) => format!("{} (pid {}, node {})", escape::word(&helper.name), helper.pid, escape::word(node)),
        None => format!("{} (pid {})", escape::word(&helper.name), helper.pid),
    };
    let named: Vec<String> = helpers.iter().take(MOST).map(one).collect();
    let more = helpers.len().saturating_sub(MOST);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{more}", named.join(", "))
}

/// What to say when no rank called MPI_Init; `None`: nothing is odd about it.
pub fn copies_note(program: &crate::program::Program, ranks: u32, ends: &[RankEnd]) -> Option<String> {
    let quiet = ranks < 2 || ends.is_empty() || ends.iter().any(|end| end.initialized);
    if quiet || (program.is_launcher() && !program.links_mpi()) {
        return None;
    }
    let name = program.path.display();
    let why = match &program.kind {
        crate::program::Kind::Elf(found) if !found.mpi.is_empty() => format!(
            "it is linked with {}, so either it never gets to MPI_Init or another MPI library was loaded in place of vmpi's (an LD_PRELOAD or LD_LIBRARY_PATH set later, a wrapper)",
            found.mpi[0].soname
        ),
        crate::program::Kind::Elf(found) if found.image.is_static() => {
            "it is linked statically; an MPI library inside it cannot be replaced: link it with the shared MPI library"
                .into()
        }
        _ => "it is not linked with an MPI library; if it loads one itself, that was not vmpi's".into(),
    };
    Some(format!("no rank of {name} called MPI_Init, so {ranks} independent copies ran, each \"rank 0 of 1\": {why}"))
}

/// What helps a rank that has `threads` threads for `cpus` CPUs while others of the job are `idle`; `None`: those are another vmpirun's.
pub fn crowded(spec: &JobSpec, (rank, threads, cpus): (u32, u32, u32), mut idle: Vec<u32>) -> Option<String> {
    idle.retain(|cpu| !spec.spare_cpus.contains(cpu) || !occupied::is_claimed(*cpu));
    if idle.is_empty() {
        return None;
    }
    let plural = |n: u32, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let at = spec.node_of(rank).map_or(String::new(), |node| format!(" on {node}"));
    let each = threads.min(cpus + idle.len() as u32);
    let idle =
        format!("{} of the job {}", plural(idle.len() as u32, "CPU"), if idle.len() == 1 { "is" } else { "are" });
    Some(format!(
        "rank {rank}{at} has {} that want to run on {}, while {idle} idle: --cpus-per-rank {each} gives each rank {each} CPUs (--bind-to none: all of the job's; \
         OMP_NUM_THREADS={cpus}: no more threads than CPUs)",
        plural(threads, "thread"),
        plural(cpus, "CPU")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(ended: Ended) -> Cause {
        Cause::RankFailed { rank: 3, pid: 7, ended, finalized: false, initialized: true }
    }

    #[test]
    fn codes() {
        for (cause, code) in [
            (Cause::Success, 0),
            (failed(Ended::Exited(3)), 3),
            (failed(Ended::Exited(0)), 1),
            (failed(Ended::Signaled(11)), 139),
            (Cause::Unfinished { rank: 0, pid: 2, parent: 1 }, 1),
            (Cause::Aborted { rank: 0, pid: 1, code: 0, reason: String::new() }, 1),
            (Cause::Aborted { rank: 0, pid: 1, code: 256, reason: String::new() }, 1),
            (Cause::Aborted { rank: 0, pid: 1, code: 42, reason: String::new() }, 42),
            (Cause::Aborted { rank: 0, pid: 1, code: -1, reason: String::new() }, 255),
            (Cause::GroupAborted { rank: 0, pid: 1, code: 256, reason: String::new(), ranks: 2 }, 1),
            (Cause::Cancelled { reason: String::new(), code: 124 }, 124),
            (Cause::Shutdown, 125),
            (Cause::Internal { reason: String::new() }, 125),
        ] {
            assert_eq!(exit_code(&cause), code, "{cause:?}");
        }
    }

    #[test]
    fn sentences_name_rank_pid_node_program() {
        let app =
            |program: &str, ranks| App { program: program.into(), argv: vec![], env: vec![], cwd: "/".into(), ranks };
        let spec = JobSpec::plain(vec![app("/a", 2), app("/b", 2)]);
        let text = sentence(&failed(Ended::Signaled(11)), &spec, Known::default(), "n1").unwrap();
        for part in ["rank 3", "pid 7", "node n1", "/b", "SIGSEGV"] {
            assert!(text.contains(part), "{text}");
        }
        let text = sentence(&failed(Ended::Exited(0)), &spec, Known::default(), "n1").unwrap();
        assert!(text.contains("without calling MPI_Finalize"), "{text}");
        assert_eq!(sentence(&Cause::Success, &spec, Known::default(), "n1"), None);
        let new = NewRank { rank: 3, pid: 7, world: 2, world_rank: 1, program: "/w".into(), node: None, stream: 0 };
        let text =
            sentence(&failed(Ended::Signaled(9)), &spec, Known { spawned: &[new], ..Known::default() }, "n1").unwrap();
        assert!(text.starts_with("spawned rank 3 (rank 1 of world 2, pid 7, node n1, program /w)"), "{text}");
        assert_eq!(app_of(&spec, 1).unwrap().program, "/a");
        assert!(app_of(&spec, 4).is_none());
    }
}
