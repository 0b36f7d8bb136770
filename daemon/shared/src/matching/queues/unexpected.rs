//! Messages that nobody has asked for yet: in a bin by (context, source, tag), and in the order in which they arrived.

use super::{Envelope, PROBE_ANY, Queues, bin_of};
use crate::matching::request::{ANY_SOURCE, ANY_TAG, accepts};
use crate::mem::sync::Ordering;

/// Senders hear of a receiver's unexpected messages from so many on, so none can wait for fewer to be matched.
pub const LEAST_UNEXPECTED_LIMIT: u32 = 64;

/// An unexpected message.
#[repr(C, align(64))]
#[derive(Copy, Clone)]
pub struct Unexpected {
    pub envelope: Envelope,
    /// Links in its bin (or the free list).
    pub next: u32,
    pub prev: u32,
    /// Links in the list of arrival order.
    pub next_arrived: u32,
    pub prev_arrived: u32,
}

const _: () = assert!(size_of::<Unexpected>() == 192);

impl Queues<'_> {
    /// The oldest unexpected message that a receive for (context, source, tag) would take; index.
    pub fn find_unexpected(&self, context: u32, source: i32, tag: i32) -> Option<u32> {
        if source != ANY_SOURCE && tag != ANY_TAG {
            let mut at = self.bins[bin_of(context, source, tag)].unexpected.first;
            while at != 0 {
                let entry = &self.unexpected[at as usize - 1];
                let e = &entry.envelope;
                if e.context == context && e.source == source && e.tag == tag {
                    return Some(at - 1);
                }
                at = entry.next;
            }
            return None;
        }
        let mut at = self.head.arrived.first;
        while at != 0 {
            let entry = &self.unexpected[at as usize - 1];
            let e = &entry.envelope;
            if e.context == context && accepts(source, tag, e.source, e.tag) {
                return Some(at - 1);
            }
            at = entry.next_arrived;
        }
        None
    }

    /// Remove an unexpected message.
    pub fn take_unexpected(&mut self, index: u32) -> Envelope {
        let entry = self.unexpected[index as usize];
        let e = entry.envelope;
        let bin = bin_of(e.context, e.source, e.tag);
        match entry.prev {
            0 => self.bins[bin].unexpected.first = entry.next,
            prev => self.unexpected[prev as usize - 1].next = entry.next,
        }
        match entry.next {
            0 => self.bins[bin].unexpected.last = entry.prev,
            next => self.unexpected[next as usize - 1].prev = entry.prev,
        }
        let (next, prev) = (entry.next_arrived, entry.prev_arrived);
        match prev {
            0 => self.head.arrived.first = next,
            prev => self.unexpected[prev as usize - 1].next_arrived = next,
        }
        match next {
            0 => self.head.arrived.last = prev,
            next => self.unexpected[next as usize - 1].prev_arrived = prev,
        }
        self.unexpected[index as usize].next = self.head.unexpected_free;
        self.head.unexpected_free = index + 1;
        self.head.unexpected_count -= 1;
        self.tell_unexpected();
        e
    }

    /// Let senders know how many there are, if they are many: a few come and go all the time, and each change costs every sender on another core a cache
    /// line.
    #[inline]
    fn tell_unexpected(&self) {
        let count = if self.head.unexpected_count < LEAST_UNEXPECTED_LIMIT { 0 } else { self.head.unexpected_count };
        let told = &self.inbox.ends.unexpected;
        if told.load(Ordering::Relaxed) != count {
            told.store(count, Ordering::Relaxed);
        }
    }

    /// Has the pool of unexpected messages no room for one more?
    pub fn is_full(&self) -> bool {
        self.head.unexpected_free == 0 && self.head.unexpected_used as usize >= self.unexpected.len()
    }

    /// Behind those that wait; false if there is no room.
    pub(super) fn queue_unexpected(&mut self, envelope: &Envelope) -> bool {
        let index = match self.head.unexpected_free {
            0 => {
                let index = self.head.unexpected_used;
                if index as usize >= self.unexpected.len() {
                    // The rank must take some first.
                    self.head.wake = 1;
                    return false;
                }
                self.head.unexpected_used += 1;
                index
            }
            free => {
                self.head.unexpected_free = self.unexpected[free as usize - 1].next;
                free - 1
            }
        };
        let bin = bin_of(envelope.context, envelope.source, envelope.tag);
        let arrived_last = self.head.arrived.last;
        let bin_last = self.bins[bin].unexpected.last;
        let entry = &mut self.unexpected[index as usize];
        envelope.copy_to(&mut entry.envelope);
        entry.next = 0;
        entry.prev = bin_last;
        entry.next_arrived = 0;
        entry.prev_arrived = arrived_last;
        match bin_last {
            0 => self.bins[bin].unexpected.first = index + 1,
            last => self.unexpected[last as usize - 1].next = index + 1,
        }
        self.bins[bin].unexpected.last = index + 1;
        match arrived_last {
            0 => self.head.arrived.first = index + 1,
            last => self.unexpected[last as usize - 1].next_arrived = index + 1,
        }
        self.head.arrived.last = index + 1;
        self.head.unexpected_count += 1;
        self.head.unexpected_most = self.head.unexpected_most.max(self.head.unexpected_count);
        self.tell_unexpected();
        let head = &mut *self.head;
        let probed = head.probe_context == envelope.context
            && accepts(head.probe_source, head.probe_tag, envelope.source, envelope.tag);
        if head.probe_active >= PROBE_ANY || (head.probe_active != 0 && probed) {
            head.wake = 1;
        }
        self.inbox.count_event();
        true
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::job::{JobConfig, JobSegment};
    use crate::matching::envelope::kind;
    use crate::matching::look;

    #[test]
    fn senders_hear_of_many_only_and_whoever_looks_of_each() {
        let job = JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(1) }).unwrap();
        // SAFETY: nobody else uses them.
        let mut queues = unsafe { job.queues(0) };
        let told = |job: &JobSegment| job.inbox(0).ends.unexpected.load(Ordering::Relaxed);
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::INLINE;
        for count in 1..=LEAST_UNEXPECTED_LIMIT + 1 {
            assert!(queues.queue_unexpected(&envelope));
            assert_eq!(told(&job), if count < LEAST_UNEXPECTED_LIMIT { 0 } else { count });
            assert_eq!(look::unexpected(&job, 0), count);
        }
        for left in [LEAST_UNEXPECTED_LIMIT, LEAST_UNEXPECTED_LIMIT - 1] {
            let oldest = queues.find_unexpected(0, ANY_SOURCE, ANY_TAG).unwrap();
            queues.take_unexpected(oldest);
            assert_eq!(told(&job), if left < LEAST_UNEXPECTED_LIMIT { 0 } else { left });
            assert_eq!(look::unexpected(&job, 0), left);
        }
    }
}
