//! How the ranks' standard streams are connected, and whether there are descriptors enough for that.

use crate::cli::{OutputMode, RunOptions};
use crate::failure::Failure;
use crate::output::Routes;
use vmpi_shared::control::{self, DAEMON_FDS, Stdio};

/// Descriptors that vmpirun needs besides those of the ranks.
const OWN_FDS: u64 = 32;
/// With room for what a frame may bring when ranks are spawned.
const WANTED_FDS: u64 = OWN_FDS + control::MAX_FDS as u64;
/// What signals, and a daemon that is started and greeted, take.
pub(super) const LEAST_FDS: u64 = 30;

/// How the ranks' streams are connected, and what must be said about it; `inputs`: descriptors for standard input.
pub(super) fn route(
    options: &RunOptions,
    ranks: u32,
    inputs: u32,
) -> Result<(Stdio, Option<Routes>, Option<String>), Failure> {
    let patterns = options.outfile_pattern.is_some() || options.errfile_pattern.is_some();
    let raw = options.output == OutputMode::Raw && !patterns;
    let files = patterns || matches!(options.output, OutputMode::Directory(_));
    if raw {
        return Ok((Stdio::Shared, None, None));
    }
    // Both ends of each pipe until the daemon has taken its own; two files per rank at most.
    let (ranks, inputs) = (u64::from(ranks), u64::from(inputs));
    let streams = 2 * inputs + if files { 6 * ranks } else { 4 * ranks };
    // A daemon of this job alone has the same limit.
    let need = (OWN_FDS + streams).max(DAEMON_FDS + inputs + 4 * ranks);
    let limit = raise_descriptors(WANTED_FDS + streams);
    if limit < need {
        if files {
            return Err(Failure::own(format!(
                "{ranks} ranks with output files need {need} open files and the limit is {limit}; raise it (ulimit -n {need}) or use fewer ranks"
            )));
        }
        let note = format!(
            "note: whole lines of {ranks} ranks need {need} open files and the limit is {limit} (ulimit -n): the ranks write by themselves, as with --output raw"
        );
        return Ok((Stdio::Shared, None, Some(note)));
    }
    Ok((Stdio::PerRank, Some(Routes::open(options, ranks as u32)?), None))
}

/// Raise RLIMIT_NOFILE to what is needed as far as the hard limit allows; returns the limit then.
pub(super) fn raise_descriptors(need: u64) -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return need };
    if soft >= need {
        return soft;
    }
    let wanted = need.min(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => wanted,
        Err(_) => soft,
    }
}
