//! Taking in what has arrived: messages, and word of deaths and revocations, which are acted on before anything else.

use crate::failure::{self, health};
use crate::lock;
use crate::p2p::failed;
use crate::process::{endpoint, endpoint_if_any};

/// Take in what has arrived, and act on the deaths and revocations up to `changes`.
#[cold]
fn catch_up(changes: u64) {
    failure::set_silent(endpoint().take_in());
    health::learn();
    failed::sweep();
    failure::acted_on(changes);
    lock::note_change();
}

/// Before an operation is started: know what there is to know.
#[inline]
pub(crate) fn look() {
    if let Some(endpoint) = endpoint_if_any()
        && failure::is_news(endpoint.job.changes())
    {
        take_in();
    }
}

/// Take in what has arrived.
#[inline]
pub(crate) fn take_in() {
    // Before the inbox is emptied: what the dead have sent is there by then.
    let changes = endpoint().job.changes();
    if failure::is_news(changes) {
        catch_up(changes);
    } else {
        endpoint().progress();
    }
}
