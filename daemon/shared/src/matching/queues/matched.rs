//! A receive and a message have found each other.

use super::answer::{answer, pull};
use super::{Outgoing, Queues};
use crate::matching::envelope::{Envelope, FLAG_SYNC, kind};
use crate::matching::mover::{Mover, Transfer};
use crate::matching::request::{FLAG_COPIED, FLAG_MATCH, outcome, state};

impl Queues<'_> {
    /// Give slot `index` the message of `envelope` (a matched probe's).
    pub fn assign(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        self.matched(index, envelope, mover, out);
    }

    /// The receive `index` takes the message of `envelope`.
    #[inline]
    pub(super) fn matched(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        if envelope.kind == kind::RTS {
            self.matched_announced(index, envelope, mover, out);
        } else {
            self.matched_eager(index, envelope, out);
        }
    }

    /// As `matched`, for a message that comes with its data.
    #[inline]
    fn matched_eager(&mut self, index: u32, envelope: &Envelope, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        slot.describe(envelope);
        if envelope.kind == kind::SLAB {
            slot.remote = envelope.addr();
        } else {
            envelope.copy_body(&mut slot.inline);
            slot.remote = 0;
        }
        slot.state = state::ARRIVED;
        if envelope.flags & FLAG_SYNC != 0 {
            let mut fin = answer(kind::FIN, envelope.request);
            fin.set_offset(slot.posted_at);
            out.push((envelope.from, fin));
        }
        self.completed(index);
    }

    /// As `matched`, for an announced message.
    #[inline(never)]
    fn matched_announced(&mut self, index: u32, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        slot.describe(envelope);
        slot.remote = envelope.addr();
        slot.remote_blocks = envelope.blocks();
        slot.remote_flags = envelope.flags.into();
        match mover.transfer(envelope, index, slot) {
            Transfer::Done => {
                slot.state = state::COMPLETE;
                slot.flags |= FLAG_COPIED;
                out.push((envelope.from, answer(kind::FIN, envelope.request)));
            }
            Transfer::Timed => {
                slot.state = state::PULLING;
                slot.flags |= FLAG_COPIED;
                let mut fin = answer(kind::FIN, envelope.request);
                fin.len = slot.len;
                fin.set_blocks(index + 1);
                fin.set_offset(slot.posted_at);
                out.push((envelope.from, fin));
                return;
            }
            Transfer::Failed(errno) => {
                slot.state = state::COMPLETE;
                slot.outcome = outcome::ERRNO | errno as u32;
                let mut fin = answer(kind::FIN, envelope.request);
                fin.set_peer_request(slot.outcome);
                out.push((envelope.from, fin));
            }
            Transfer::Gone => {
                // Nothing comes any more; its owner learns so from the daemon, and ends it.
                slot.state = state::PULLING;
                return;
            }
            Transfer::Refused => {
                slot.state = state::PULLING;
                slot.progress = 0;
                if slot.flags & FLAG_MATCH != 0 {
                    self.head.wake = 1;
                }
                out.push((envelope.from, pull(mover.owner(), index, slot)));
                return;
            }
            Transfer::LeaveToOwner => {
                slot.state = state::TO_PULL;
                self.serve(index);
                return;
            }
        }
        self.completed(index);
    }
}
