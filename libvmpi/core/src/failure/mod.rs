//! What is known of failures: of ranks that have died, and communicators that were revoked (MPI's proposal for user-level failure mitigation, ULFM). (Floor 3.)
//!
//! Reading order: this file (what this rank has learned), `health` (what it means for a communicator), `verdict` (for a message). Who acts on it: `p2p::take_in` and
//! `p2p::failed` for messages under way; `ulfm` has the calls.
//!
//! The daemon sees every death, publishes it in the node segment and wakes all ranks. A revocation is an entry in a list of the job segment. Over
//! several nodes the carriers bring both to the others (`daemon/src/carrier/post/deaths.rs`).
//! Both count in one word (`JobSegment::changes`), at which a rank looks whenever it looks whether a wait is over. A rank that finds
//! it changed first takes in what has arrived, then ends what can no longer complete; a message that came before its sender died is received. Two rules keep collectives from hanging and from
//! wrong results: on a communicator with a failed member none completes for who has learned of the failure, and a rank that gives one up
//! sends nothing more for it.

pub(crate) mod health;
pub(crate) mod verdict;

pub use health::Health;
pub(crate) use verdict::{check_copied, check_received, doomed_send, errno_of, error_of};

use crate::errors::{Class, Error, Result};
use crate::guarded::EntryGuarded;
use crate::process::endpoint;
use crate::simulate;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// `JobSegment::changes` as far as this process has acted on them.
static KNOWN: AtomicU64 = AtomicU64::new(0);

/// No count of changes.
const ALWAYS: u64 = 1 << 62;

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
static SILENT: EntryGuarded<Vec<u32>> = EntryGuarded::new(Vec::new());

/// Will nothing more come from `rank`, since it has failed?
pub(crate) fn is_silent(rank: u32) -> bool {
    SILENT.with(|silent| silent.binary_search(&rank).is_ok())
}

/// As far as that has been taken in.
pub(crate) fn set_silent(ranks: Vec<u32>) {
    SILENT.with(|silent| *silent = ranks);
}

/// All has been done about what had happened by then.
pub(crate) fn acted_on(changes: u64) {
    KNOWN.store(changes, Ordering::Relaxed);
}

/// Each look at what has come goes the long way from now on, where others have a word in it (`p2p::take_in`).
pub(crate) fn look_always() {
    KNOWN.store(ALWAYS, Ordering::Relaxed);
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
