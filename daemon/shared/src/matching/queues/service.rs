//! Requests that the rank itself must go on with, in a list.

use super::{Outgoing, Queues};
use crate::matching::envelope::{Envelope, kind};
use crate::matching::mover::Mover;
use crate::matching::request::state;

impl Queues<'_> {
    /// Go on with a request of the service list, by the rank itself. `None`: the list is empty.
    pub fn next_service(&mut self) -> Option<u32> {
        let first = self.head.service.first;
        if first == 0 {
            return None;
        }
        let next = self.slots[first as usize - 1].next_service;
        self.slots[first as usize - 1].next_service = 0;
        self.head.service.first = next;
        if next == 0 {
            self.head.service.last = 0;
        }
        Some(first - 1)
    }

    /// The owner pulls the data of a TO_PULL request.
    pub fn pull(&mut self, index: u32, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &self.slots[index as usize];
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::RTS;
        envelope.from = slot.from;
        envelope.source = slot.matched_source;
        envelope.tag = slot.matched_tag;
        envelope.len = slot.len;
        envelope.request = slot.peer_request;
        envelope.trace = slot.trace;
        envelope.set_addr(slot.remote);
        envelope.set_blocks(slot.remote_blocks);
        envelope.flags = slot.remote_flags as u8;
        self.matched(index, &envelope, mover, out);
    }

    /// As the sender of announced messages that another deliverer has matched: move their payloads. `other` hears the senders of the rest.
    pub fn push_for(&mut self, sender: u32, mover: &mut dyn Mover, out: &mut Outgoing, mut other: impl FnMut(u32)) {
        let last = self.head.service.last;
        while let Some(index) = self.next_service() {
            let slot = &self.slots[index as usize];
            match slot.state {
                state::TO_PULL if slot.from == sender => self.pull(index, mover, out),
                state::TO_PULL => {
                    other(slot.from);
                    self.serve(index);
                }
                _ => self.serve(index),
            }
            if index + 1 == last {
                return;
            }
        }
    }

    pub(super) fn serve(&mut self, index: u32) {
        self.slots[index as usize].next_service = 0;
        match self.head.service.last {
            0 => self.head.service.first = index + 1,
            last => self.slots[last as usize - 1].next_service = index + 1,
        }
        self.head.service.last = index + 1;
        self.head.wake = 1;
    }
}
