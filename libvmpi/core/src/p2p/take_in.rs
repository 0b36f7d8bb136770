//! Taking in what has arrived: messages, and word of deaths and revocations, which are acted on before anything else.

use crate::chance;
use crate::failure::{self, health};
use crate::lock;
use crate::p2p::failed;
use crate::process::{endpoint, endpoint_if_any};
use crate::simulate;
use vmpi_shared::job::SIMULATED;

/// Take in what has arrived, and act on the deaths and revocations up to `changes`. In virtual time there are none, and `looks` says whether what has arrived
/// by now is to be looked for.
#[cold]
fn catch_up(changes: u64, looks: bool) {
    if changes & SIMULATED != 0 {
        return simulate::wait::progress(looks);
    }
    let by_chance = chance::is_on();
    if by_chance {
        chance::progress();
        if !chance::is_news(changes) {
            return;
        }
    } else {
        failure::set_silent(endpoint().take_in());
    }
    health::learn();
    failed::sweep();
    if !by_chance {
        failure::acted_on(changes);
    }
    lock::note_change();
}

/// Before an operation is started: know what there is to know.
#[inline]
pub(crate) fn look() {
    if let Some(endpoint) = endpoint_if_any()
        && failure::is_news(endpoint.job.changes())
    {
        look_closer(endpoint.job.changes());
    }
}

/// Where choices are written down, each look at what is new goes this way.
#[cold]
fn look_closer(changes: u64) {
    if !chance::leaves_messages() || chance::has_news(changes) {
        take_in();
        // A collective that goes on starts operations, too, after it has looked at what it waited for, and after others have.
        endpoint().look_again();
    }
}

/// Take in what has arrived.
#[inline]
pub(crate) fn take_in() {
    take_in_as::<false>();
}

/// The same for a call whose answer depends on what has arrived by now.
#[inline]
pub(crate) fn take_in_now() {
    take_in_as::<true>();
}

#[inline]
pub(crate) fn take_in_as<const LOOKS: bool>() {
    // Before the inbox is emptied: what the dead have sent is there by then.
    let changes = endpoint().job.changes();
    if failure::is_news(changes) {
        catch_up(changes, LOOKS);
    } else {
        endpoint().progress();
    }
}
