//! Envelopes that answer about a request.

use crate::matching::envelope::{self, Envelope, kind};
use crate::matching::request::{self, Slot};

/// An envelope that answers about request `request` of the addressee.
pub fn answer(kind: u8, request: u32) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    envelope.kind = kind;
    envelope.request = request;
    envelope
}

/// The word on which the carriers move what request `request` has announced, and its question: `from` is who says it, `transfer` their number for it.
pub fn go(from: u32, request: u32, transfer: u32, len: u64) -> Envelope {
    let mut go = answer(kind::GO, request);
    (go.from, go.len) = (from, len);
    go.set_peer_request(transfer);
    go
}

/// Ask the sender for the next pieces of the message that receive `index` takes.
pub(super) fn pull(me: u32, index: u32, slot: &Slot) -> Envelope {
    let mut pull = answer(kind::PULL, slot.peer_request);
    pull.from = me;
    pull.set_peer_request(index);
    pull.set_offset(slot.progress);
    pull.set_addr(slot.addr);
    pull.set_blocks(slot.blocks);
    pull.len = slot.len.min(slot.capacity);
    if slot.flags & request::FLAG_MAPPED != 0 {
        pull.flags |= envelope::FLAG_MAPPED;
    }
    pull
}
