//! Fault tolerance as MPI's proposal for user-level failure mitigation (ULFM) has it.
//!
//! Reading order: this file (how a rank learns of deaths and revocations), `health` (what they mean for a communicator), `messages` (what
//! they do to messages under way), `revoke`, `agree` (agreement and shrinking, which the daemon decides), `known` (which failures the
//! program has acknowledged).
//!
//! The daemon sees every death, publishes it in the node segment and wakes all ranks. A revocation is an entry in a list of the job segment. Over
//! several nodes the carriers bring both to the others (`daemon/src/carrier/post/deaths.rs`).
//! Both count in one word (`JobSegment::changes`), at which a rank looks whenever it looks whether a wait is over. A rank that finds
//! it changed first takes in what has arrived, then ends what can no longer complete; a message that came before its sender died is received. Two rules keep collectives from hanging and from
//! wrong results: on a communicator with a failed member none completes for who has learned of the failure, and a rank that gives one up
//! sends nothing more for it.

mod agree;
mod health;
mod known;
mod messages;
mod revoke;

pub use agree::{agree, iagree, ishrink, shrink};
pub use health::Health;
pub use known::{ack_failed, failure_ack, failure_get_acked, get_failed};
pub(crate) use messages::{
    check_copied, check_posted, check_received, doomed_send, errno_of, error_of, in_doubt, is_casualty,
};
pub use revoke::{is_revoked, revoke};

use crate::errors::{Class, Error, Result};
use crate::giant::Giant;
use crate::lock;
use crate::simulate;
use crate::process::{endpoint, endpoint_if_any};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use vmpi_shared::job::SIMULATED;

/// `JobSegment::changes` as far as this process has acted on them.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// Has something happened that this process has not acted on?
#[inline]
pub(crate) fn is_news(changes: u64) -> bool {
    changes != KNOWN.load(Ordering::Relaxed)
}

/// Nothing has ever happened.
#[inline]
pub(crate) fn is_quiet() -> bool {
    KNOWN.load(Ordering::Relaxed) == 0
}

/// Ranks that have failed and of which nothing more will come: all that they had sent has been taken in.
static SILENT: Giant<Vec<u32>> = Giant::new(Vec::new());

/// Will nothing more come from `rank`, since it has failed?
pub(crate) fn is_silent(rank: u32) -> bool {
    SILENT.with(|silent| silent.binary_search(&rank).is_ok())
}

/// How long the daemon may take to end a job after a death. Should it take longer, this rank tells what it has met, as it did before there was a wait.
const DAEMON_PATIENCE: Duration = Duration::from_secs(5);

/// A copy from or to another rank's memory has found its process gone. Where that ends the job, the daemon does so in a moment, with the death as the cause:
/// what this rank has met is not to be told before. Returns if nothing comes of it.
#[cold]
pub(crate) fn await_verdict() {
    if endpoint().node.header().recovery == 0 {
        std::thread::sleep(DAEMON_PATIENCE);
    }
}

/// Take in what has arrived, and act on the deaths and revocations up to `changes`. In virtual time there are none, and `looks` says whether what has arrived is
/// to be looked for.
#[cold]
pub(crate) fn catch_up(changes: u64, looks: bool) {
    if changes & SIMULATED != 0 {
        return simulate::wait::progress(looks);
    }
    let silent = endpoint().take_in();
    SILENT.with(|known| *known = silent);
    health::learn();
    messages::sweep();
    KNOWN.store(changes, Ordering::Relaxed);
    lock::note_change();
}

/// Before an operation is started: know what there is to know.
#[inline]
pub(crate) fn look() {
    if let Some(endpoint) = endpoint_if_any()
        && is_news(endpoint.job.changes())
    {
        crate::request::progress();
    }
}

/// Know which communicators are revoked or have failed members, without ending anything yet.
pub(crate) fn learn() {
    if is_news(endpoint().job.changes()) && !simulate::is_on() {
        health::learn();
    }
}

/// A blocking receive from anybody has been given up.
#[cold]
pub(crate) fn failed_source() -> Error {
    health::error(Class::ProcFailed, None)
}

/// A receive from anybody may wait in vain; it goes on.
#[cold]
pub(crate) fn pending_source() -> Error {
    health::error(Class::ProcFailedPending, None)
}

/// Is the error one that survivors of a failure are meant to see?
pub fn is_failure(error: &Error) -> bool {
    matches!(error.class, Class::ProcFailed | Class::ProcFailedPending | Class::Revoked)
}

/// What ends with such an error has ended well enough, where those who are left need not wait for each other.
///
/// # Errors
/// All others.
pub fn tolerate(done: Result<()>) -> Result<()> {
    done.or_else(|error| if is_failure(&error) { Ok(()) } else { Err(error) })
}
