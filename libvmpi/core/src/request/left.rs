//! Requests whose wait is left behind (`overlap`).

use super::copied;
use super::table::{Active, Entry, Kind, REQUESTS};
use crate::handle::Request;
use crate::p2p::Slot;

/// The message of a request that is nothing else and is used once, and whether it is a receive.
pub(crate) fn plain_message(request: Request) -> Option<(Slot, bool)> {
    if copied::any() {
        return None;
    }
    REQUESTS.with(|requests| match requests.get(request)? {
        Entry { kind: Kind::Once, active: Active::Message(slot), freed: false, receive } => Some((*slot, *receive)),
        _ => None,
    })
}

/// Such a request is no more; its message goes on.
pub(crate) fn forget_message(request: Request) {
    REQUESTS.with(|requests| requests.remove(request));
}
