//! What comes out of the inbox: messages, and answers about one's own.

use super::answer::{answer, go, pull};
use super::{HOLDS, Outgoing, Queues};
use crate::matching::envelope::{Envelope, FLAG_LAST_OF_WINDOW, kind};
use crate::matching::mover::Mover;
use crate::matching::request::{FLAG_CARRIED, FLAG_COPIED, FLAG_KEPT, accepts, state};

impl Queues<'_> {
    /// Handle one envelope; false leaves it in the inbox (no room for it, or only the rank itself can take it).
    pub(crate) fn accept(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) -> bool {
        match envelope.kind {
            kind::INLINE | kind::SLAB | kind::RTS if self.head.direct_room != 0 => self.accept_direct(envelope, mover),
            kind::INLINE | kind::SLAB | kind::RTS => match self.find_posted(envelope) {
                Some(index) => {
                    self.matched(index, envelope, mover, out);
                    true
                }
                None => self.queue_unexpected(envelope),
            },
            kind::FIN => {
                self.finished(envelope);
                true
            }
            kind::PULL => {
                self.asked_for_pieces(envelope);
                true
            }
            kind::GO => {
                self.asked_for_all(envelope, mover, out);
                true
            }
            kind::PIECE => {
                if !mover.is_owner() {
                    self.head.wake = 1;
                    return false;
                }
                self.piece(envelope, mover, out);
                true
            }
            kind::HELP => {
                // For the sender itself, while it waits; nobody else can.
                if mover.is_owner()
                    && let Some(slot) = self.slots.get(envelope.request as usize)
                    && slot.state == state::SENT
                {
                    mover.help(envelope, slot);
                }
                true
            }
            kind::PLACED => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::PULLING
                {
                    slot.state = state::COMPLETE;
                    slot.flags |= FLAG_COPIED;
                    slot.outcome = envelope.peer_request();
                    self.completed(envelope.request);
                }
                true
            }
            kind::LET_GO => {
                if let Some(slot) = self.slots.get_mut(envelope.request as usize)
                    && slot.state == state::PULLING
                {
                    slot.state = state::COMPLETE;
                    slot.flags &= !FLAG_KEPT;
                    slot.outcome = envelope.peer_request();
                    self.completed(envelope.request);
                } else {
                    self.answered_late(envelope.request);
                }
                true
            }
            kind::WAKE => {
                self.head.wake = 1;
                self.inbox.count_event();
                true
            }
            _ => true, // not one of ours: scribbled; drop it
        }
    }

    /// The receiver has all of a message that was announced.
    #[inline]
    fn finished(&mut self, envelope: &Envelope) {
        if let Some(slot) = self.slots.get_mut(envelope.request as usize)
            && matches!(slot.state, state::SENT | state::TO_PUSH)
        {
            slot.state = state::COMPLETE;
            slot.outcome = envelope.peer_request();
            slot.remote = envelope.addr();
            self.completed(envelope.request);
        } else {
            self.answered_late(envelope.request);
        }
    }

    /// The receiver asks for pieces.
    fn asked_for_pieces(&mut self, envelope: &Envelope) {
        if let Some(slot) = self.slots.get_mut(envelope.request as usize)
            && slot.state == state::SENT
        {
            slot.state = state::TO_PUSH;
            slot.from = envelope.from;
            slot.peer_request = envelope.peer_request();
            slot.progress = envelope.offset();
            slot.len = envelope.len;
            slot.flags &= !FLAG_CARRIED;
            self.serve(envelope.request);
        }
    }

    /// The carriers ask for all of it.
    fn asked_for_all(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        if let Some(slot) = self.slots.get_mut(envelope.request as usize)
            && slot.state == state::SENT
        {
            slot.state = state::TO_PUSH;
            slot.peer_request = envelope.peer_request();
            slot.len = envelope.len;
            slot.flags |= FLAG_CARRIED;
            self.serve(envelope.request);
        } else {
            // Given up here; the receiver, which has not, gets it as it would with progress by the daemon.
            out.push((envelope.from, go(mover.owner(), envelope.request, envelope.peer_request(), envelope.len)));
        }
    }

    /// The answer for a request that was ended before it came.
    #[cold]
    fn answered_late(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        if slot.state == state::KEPT {
            self.free_slot(index);
        } else if slot.state == state::COMPLETE {
            slot.flags &= !FLAG_KEPT;
        }
    }

    /// A message comes while the rank waits in a blocking receive without a request. If it is the one, it stays where it is, for the
    /// rank to take; if more than taking is needed for it, it is queued, and the rank must go the long way.
    fn accept_direct(&mut self, envelope: &Envelope, mover: &mut dyn Mover) -> bool {
        let head = &mut *self.head;
        let wanted = head.probe_context == envelope.context
            && accepts(head.probe_source, head.probe_tag, envelope.source, envelope.tag);
        if wanted {
            head.wake = 1;
            if envelope.is_eager() && envelope.len < u64::from(head.direct_room) {
                return false;
            }
            // What comes behind it must not be taken first.
            head.direct_room = 0;
        } else if head.direct_room == HOLDS {
            return self.hold(envelope, mover);
        }
        self.queue_unexpected(envelope)
    }

    /// A piece of a pulled message has come; the owner copies it in and asks for more.
    fn piece(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) {
        let index = envelope.request;
        let Some(slot) = self.slots.get_mut(index as usize).filter(|s| s.state == state::PULLING) else { return };
        mover.piece(envelope, slot);
        slot.progress = envelope.offset().saturating_add(envelope.len);
        let wanted = slot.len.min(slot.capacity);
        if slot.progress >= wanted {
            slot.state = state::COMPLETE;
            out.push((slot.from, answer(kind::FIN, slot.peer_request)));
            self.completed(index);
        } else if envelope.flags & FLAG_LAST_OF_WINDOW != 0 {
            out.push((slot.from, pull(mover.owner(), index, slot)));
        }
    }
}
