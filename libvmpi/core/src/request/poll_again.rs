//! Polls that find nothing again: programs look for a message between pieces of their work, or do nothing else, and mostly there is none.
//!
//! A poll that has missed says what it was for. The next one, if it is for the same, if this rank has called nothing else of MPI since, and if nothing has
//! come (`Endpoint::misses_again`), has missed as well, and leaves before it has entered: queues that are lent stay so. Only the thread
//! that uses MPI without the lock does that.

use crate::failure;
use crate::fast_path::{MISSED, collectives_under_way};
use crate::guarded::EntryGuarded;
use crate::handle::{Comm, Handle, Request};
use crate::lock;
use crate::process::endpoint;
use crate::request::progress::ORPHANS;
use crate::request::table::Need;
use std::sync::atomic::{AtomicU64, Ordering};

/// A list of more requests than this is looked at each time.
const MOST_REQUESTS: usize = 64;

/// The message that a probe is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sought([u64; 2]);

impl Sought {
    /// On the communicator with this handle, with source and tag as the program gives them.
    #[inline]
    pub fn new(comm: Comm, source: i32, tag: i32) -> Sought {
        Sought([1 << 62 | u64::from(comm.raw()), u64::from(source as u32) << 32 | u64::from(tag as u32)])
    }
}

/// How many requests are tested, and how many must be complete. Of one it is all the same.
#[inline]
fn tested(need: Need, count: usize) -> u64 {
    1 << 63 | u64::from(need == Need::One && count > 1) << 32 | count as u64
}

/// The requests if `MISSED` is `tested`, else it is a `Sought`. This and the rest is used by the thread that is inside.
static REQUESTS_MISSED: EntryGuarded<Vec<Request>> = EntryGuarded::new(Vec::new());
/// `Endpoint::settled` then.
static SETTLED: AtomicU64 = AtomicU64::new(0);

/// Say what was missed, if only what comes can change that.
fn note(missed: u64) -> bool {
    if collectives_under_way() || ORPHANS.with(|list| !list.is_empty()) || !failure::is_quiet() || lock::is_threaded() {
        return false;
    }
    let events = endpoint().settled();
    if let Some(events) = events {
        SETTLED.store(events, Ordering::Relaxed);
        MISSED[0].store(missed, Ordering::Relaxed);
    }
    events.is_some()
}

/// There is no such message.
pub(crate) fn note_message(Sought([first, second]): Sought) {
    if note(first) {
        MISSED[1].store(second, Ordering::Relaxed);
    }
}

/// Not enough of these requests are complete; those that are not wait for messages.
pub(super) fn note_requests(need: Need, requests: &[Request]) {
    if requests.len() <= MOST_REQUESTS && note(tested(need, requests.len())) {
        REQUESTS_MISSED.with(|missed| {
            missed.clear();
            missed.extend_from_slice(requests);
        });
    }
}

/// Has nothing come since?
#[inline]
fn is_nothing_new() -> bool {
    let endpoint = endpoint();
    !failure::is_news(endpoint.job.changes()) && endpoint.misses_again(SETTLED.load(Ordering::Relaxed))
}

/// Is there certainly no such message still, since that was so a moment ago? Called outside MPI.
#[inline]
pub fn message_misses_again(sought: Sought) -> bool {
    Sought([0, 1].map(|word: usize| MISSED[word].load(Ordering::Relaxed))) == sought && lock::alone(is_nothing_new)
}

/// Are certainly not enough of these `count` requests complete, since that was so a moment ago? Called outside MPI.
#[inline]
pub fn requests_miss_again(need: Need, count: usize, request: impl Fn(usize) -> Request) -> bool {
    MISSED[0].load(Ordering::Relaxed) == tested(need, count)
        && lock::alone(|| {
            REQUESTS_MISSED.with(|missed| missed.iter().enumerate().all(|(i, missed)| *missed == request(i)))
                && is_nothing_new()
        })
}
