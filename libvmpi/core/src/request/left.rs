//! Requests whose wait is left behind (`overlap`).

use super::copied;
use super::table::{Active, Entry, Kind, REQUESTS};
use crate::handle::{Handle, Request};
use crate::p2p::Slot;

/// The message of a request that is nothing else, and whether it is a receive.
pub(crate) fn plain_message(request: Request) -> Option<(Slot, bool)> {
    if copied::any() {
        return None;
    }
    REQUESTS.with(|requests| match requests.get(request)? {
        Entry {
            kind: Kind::Once | Kind::PersistentMessage(_),
            active: Active::Message(slot),
            freed: false,
            receive,
        } => Some((*slot, *receive)),
        _ => None,
    })
}

/// Such a request is over for the program; its message goes on. What the program's handle is from now on: null, or that of a persistent request, which is inactive.
pub(crate) fn forget_message(request: Request) -> Request {
    REQUESTS.with(|requests| match requests.get_mut(request) {
        Some(Entry { kind: Kind::PersistentMessage(_), active, .. }) => {
            *active = Active::Inactive;
            request
        }
        _ => {
            requests.remove(request);
            Request::NULL
        }
    })
}
