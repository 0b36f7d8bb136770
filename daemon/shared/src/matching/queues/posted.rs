//! Posted receives: in their bins, or in the list of those with a wildcard.

use super::{LARGE_BYTES, List, Outgoing, Queues, bin_of};
use crate::matching::envelope::Envelope;
use crate::matching::mover::Mover;
use crate::matching::request::{ANY_SOURCE, ANY_TAG, Slot, accepts, state};

impl Queues<'_> {
    /// Post the receive in slot `index` (context, source, tag, buffer filled in): match it or queue it.
    #[inline]
    pub fn post(&mut self, index: u32, mover: &mut dyn Mover, out: &mut Outgoing) {
        let slot = &mut self.slots[index as usize];
        let (context, source, tag) = (slot.context, slot.source, slot.tag);
        slot.order = self.head.order;
        self.head.order += 1;
        if self.head.unexpected_count != 0
            && let Some(entry) = self.find_unexpected(context, source, tag)
        {
            let envelope = self.take_unexpected(entry);
            self.matched(index, &envelope, mover, out);
            return;
        }
        // Behind the others of its list.
        let slot = &mut self.slots[index as usize];
        slot.state = state::POSTED;
        slot.next = 0;
        self.head.posted_large += u32::from(slot.capacity >= LARGE_BYTES);
        let list = self.posted_list(context, source, tag);
        let last = std::mem::replace(&mut list.last, index + 1);
        if last == 0 {
            list.first = index + 1;
        } else {
            self.slots[last as usize - 1].next = index + 1;
        }
        self.slots[index as usize].prev = last;
    }

    /// Take a posted receive back. False if it has matched.
    pub fn cancel(&mut self, index: u32) -> bool {
        let slot = self.slots[index as usize];
        if slot.state != state::POSTED {
            return false;
        }
        let mut list = *self.posted_list(slot.context, slot.source, slot.tag);
        self.unlink_posted(&mut list, index);
        *self.posted_list(slot.context, slot.source, slot.tag) = list;
        self.slots[index as usize].state = state::CANCELLED;
        self.completed(index);
        true
    }

    /// The request in slot `index` cannot complete any more.
    pub fn fail(&mut self, index: u32, outcome: u32) {
        let slot = self.slots[index as usize];
        if slot.state == state::POSTED {
            let mut list = *self.posted_list(slot.context, slot.source, slot.tag);
            self.unlink_posted(&mut list, index);
            *self.posted_list(slot.context, slot.source, slot.tag) = list;
        }
        let slot = &mut self.slots[index as usize];
        slot.state = state::COMPLETE;
        slot.outcome = outcome;
        self.completed(index);
    }

    #[inline]
    pub(super) fn posted_list(&mut self, context: u32, source: i32, tag: i32) -> &mut List {
        if source == ANY_SOURCE || tag == ANY_TAG {
            &mut self.head.wild
        } else {
            &mut self.bins[bin_of(context, source, tag)].posted
        }
    }

    fn unlink_posted(&mut self, list: &mut List, index: u32) {
        let Slot { next, prev, capacity, .. } = self.slots[index as usize];
        self.head.posted_large -= u32::from(capacity >= LARGE_BYTES);
        match prev {
            0 => list.first = next,
            prev => self.slots[prev as usize - 1].next = next,
        }
        match next {
            0 => list.last = prev,
            next => self.slots[next as usize - 1].prev = prev,
        }
    }

    /// The posted receive that takes this message, unlinked: the one posted first among bin and wildcards.
    pub(super) fn find_posted(&mut self, envelope: &Envelope) -> Option<u32> {
        let (is_wild, index) = self.first_posted(envelope, 0)?;
        let bin = bin_of(envelope.context, envelope.source, envelope.tag);
        let mut list = if is_wild { self.head.wild } else { self.bins[bin].posted };
        self.unlink_posted(&mut list, index);
        if is_wild {
            self.head.wild = list;
        } else {
            self.bins[bin].posted = list;
        }
        Some(index)
    }

    /// The first of those without any of `flags`, and whether it has a wildcard.
    #[inline(always)]
    pub(super) fn first_posted(&self, envelope: &Envelope, flags: u32) -> Option<(bool, u32)> {
        let bin = bin_of(envelope.context, envelope.source, envelope.tag);
        let scan = |first: u32| {
            let mut at = first;
            while at != 0 {
                let slot = &self.slots[at as usize - 1];
                if slot.context == envelope.context
                    && slot.flags & flags == 0
                    && accepts(slot.source, slot.tag, envelope.source, envelope.tag)
                {
                    return Some((slot.order, at - 1));
                }
                at = slot.next;
            }
            None
        };
        let exact = scan(self.bins[bin].posted.first);
        let wild = scan(self.head.wild.first);
        match (exact, wild) {
            (Some((e, index)), Some((w, _))) if e < w => Some((false, index)),
            (_, Some((_, index))) => Some((true, index)),
            (Some((_, index)), None) => Some((false, index)),
            (None, None) => None,
        }
    }
}
