//! Messages that nobody has asked for yet: in a bin by (context, source, tag), and in the order in which they arrived.

use super::{CROWDED, Envelope, PROBE_ANY, Queues, bin_of};
use crate::matching::request::{ANY_SOURCE, ANY_TAG, accepts};
use crate::mem::sync::Ordering;

/// The context of what its receiver is to look at whatever it waits for, and that no communicator has: reports of calls on another node (`vmpirun --check`).
pub const AWAKENING: u32 = u32::MAX - 2;

/// Senders hear of a receiver's unexpected messages from so many on, so none can wait for fewer to be matched.
pub const LEAST_UNEXPECTED_LIMIT: u32 = 64;

/// An unexpected message.
#[repr(C, align(64))]
#[derive(Copy, Clone)]
pub struct Unexpected {
    pub envelope: Envelope,
    /// By what it can be found: in its bin (or the free list) and in the list of arrivals, or in the four tables of `index`.
    pub(super) links: [Link; TABLES],
}

/// Neighbours in a list; index + 1.
#[repr(C)]
#[derive(Copy, Clone, Default)]
pub(super) struct Link {
    pub next: u32,
    pub prev: u32,
}

/// Numbers of the tables.
pub(super) const TABLES: usize = 4;
pub(super) const EXACT: usize = 0;
pub(super) const TAG: usize = 1;
pub(super) const SOURCE: usize = 2;
pub(super) const CONTEXT: usize = 3;

const _: () = assert!(size_of::<Unexpected>() == 192);

impl Queues<'_> {
    /// The oldest unexpected message that a receive for (context, source, tag) would take; index.
    pub fn find_unexpected(&self, context: u32, source: i32, tag: i32) -> Option<u32> {
        if self.head.index != 0 {
            return self.find_indexed(context, source, tag);
        }
        if source != ANY_SOURCE && tag != ANY_TAG {
            let mut at = self.bins[bin_of(context, source, tag)].unexpected.first;
            while at != 0 {
                let entry = &self.unexpected[at as usize - 1];
                let e = &entry.envelope;
                if e.context == context && e.source == source && e.tag == tag {
                    return Some(at - 1);
                }
                at = entry.links[EXACT].next;
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
            at = entry.links[CONTEXT].next;
        }
        None
    }

    /// All messages of a context that nobody has asked for, the oldest first.
    pub fn unexpected_of(&self, context: u32) -> Vec<Envelope> {
        let mut found = Vec::new();
        let mut at = self.find_unexpected(context, ANY_SOURCE, ANY_TAG).map_or(0, |index| index + 1);
        while at != 0 {
            let entry = &self.unexpected[at as usize - 1];
            if entry.envelope.context == context {
                found.push(entry.envelope);
            }
            at = entry.links[CONTEXT].next;
        }
        found
    }

    /// Remove an unexpected message.
    pub fn take_unexpected(&mut self, index: u32) -> Envelope {
        let envelope = self.unexpected[index as usize].envelope;
        if self.head.index == 0 {
            self.unlink_plain(index);
        } else {
            self.unlink_indexed(index);
        }
        self.free_place(index);
        self.head.unexpected_count -= 1;
        self.tell_unexpected();
        envelope
    }

    #[inline]
    fn unlink_plain(&mut self, index: u32) {
        let entry = &self.unexpected[index as usize];
        let e = &entry.envelope;
        let bin = bin_of(e.context, e.source, e.tag);
        let Link { next, prev } = entry.links[EXACT];
        let Link { next: next_arrived, prev: prev_arrived } = entry.links[CONTEXT];
        match prev {
            0 => self.bins[bin].unexpected.first = next,
            prev => self.unexpected[prev as usize - 1].links[EXACT].next = next,
        }
        match next {
            0 => self.bins[bin].unexpected.last = prev,
            next => self.unexpected[next as usize - 1].links[EXACT].prev = prev,
        }
        match prev_arrived {
            0 => self.head.arrived.first = next_arrived,
            prev => self.unexpected[prev as usize - 1].links[CONTEXT].next = next_arrived,
        }
        match next_arrived {
            0 => self.head.arrived.last = prev_arrived,
            next => self.unexpected[next as usize - 1].links[CONTEXT].prev = prev_arrived,
        }
    }

    /// Behind the others of its bin, and as the last that has arrived.
    #[inline]
    pub(super) fn link_plain(&mut self, index: u32) {
        let arrived_last = self.head.arrived.last;
        let entry = &mut self.unexpected[index as usize];
        let e = &entry.envelope;
        let bin = bin_of(e.context, e.source, e.tag);
        let bin_last = self.bins[bin].unexpected.last;
        entry.links[EXACT] = Link { next: 0, prev: bin_last };
        entry.links[CONTEXT] = Link { next: 0, prev: arrived_last };
        match bin_last {
            0 => self.bins[bin].unexpected.first = index + 1,
            last => self.unexpected[last as usize - 1].links[EXACT].next = index + 1,
        }
        self.bins[bin].unexpected.last = index + 1;
        match arrived_last {
            0 => self.head.arrived.first = index + 1,
            last => self.unexpected[last as usize - 1].links[CONTEXT].next = index + 1,
        }
        self.head.arrived.last = index + 1;
    }

    /// Let senders know how many there are, if they are many: a few come and go all the time, and each change costs every sender on another core a cache
    /// line.
    #[inline]
    fn tell_unexpected(&self) {
        let count = match self.head.unexpected_count {
            few if few < LEAST_UNEXPECTED_LIMIT => 0,
            // Who holds none of the memory that ends is not whom senders have to wait for.
            _ if self.head.chunks != 0 && self.unexpected.chunks().is_scarce() => CROWDED,
            many => many,
        };
        let told = &self.inbox.ends.unexpected;
        if told.load(Ordering::Relaxed) != count {
            told.store(count, Ordering::Relaxed);
        }
    }

    /// Behind those that wait; false if there is no room.
    pub(super) fn queue_unexpected(&mut self, envelope: &Envelope) -> bool {
        let Some(index) = self.take_place() else { return false };
        envelope.copy_to(&mut self.unexpected[index as usize].envelope);
        if self.head.index == 0 {
            self.link_plain(index);
        } else {
            self.link_indexed(index);
        }
        self.head.unexpected_count += 1;
        self.head.unexpected_most = self.head.unexpected_most.max(self.head.unexpected_count);
        self.tell_unexpected();
        let head = &mut *self.head;
        let probed = head.probe_context == envelope.context
            && accepts(head.probe_source, head.probe_tag, envelope.source, envelope.tag);
        if head.probe_active >= PROBE_ANY || (head.probe_active != 0 && probed) || envelope.context == AWAKENING {
            head.wake = 1;
        }
        self.inbox.count_event();
        true
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::endpoint::inspect;
    use crate::job::{JobConfig, JobSegment};
    use crate::matching::envelope::kind;

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
            assert_eq!(inspect::unexpected(&job, 0), count);
        }
        for left in [LEAST_UNEXPECTED_LIMIT, LEAST_UNEXPECTED_LIMIT - 1] {
            let oldest = queues.find_unexpected(0, ANY_SOURCE, ANY_TAG).unwrap();
            queues.take_unexpected(oldest);
            assert_eq!(told(&job), if left < LEAST_UNEXPECTED_LIMIT { 0 } else { left });
            assert_eq!(inspect::unexpected(&job, 0), left);
        }
    }

    #[test]
    fn who_finds_no_memory_is_woken_once_and_told_when_there_is_some() {
        let config = JobConfig { cells: 1, unexpected: 1, chunks: 4, ..JobConfig::for_ranks(2) };
        let job = JobSegment::create(&config).unwrap();
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::INLINE;
        // SAFETY: nobody else uses them.
        let [mut none, mut all] = [0, 1].map(|rank| unsafe { job.queues(rank) });
        (all.head.rank, none.head.rank) = (1, 0);
        while all.queue_unexpected(&envelope) {}
        assert!(job.chunks().is_wanted() && !job.chunks().answer_wish(), "there is none");
        assert!(none.queue_unexpected(&envelope), "the first lies with the rank");
        job.inbox(0).push(&envelope).unwrap();
        for again in [false, true] {
            none.head.wake = 0;
            assert!(!none.queue_unexpected(&envelope));
            assert_eq!(
                (none.head.wake, inspect::has_declined(&job, 0), inspect::is_stuck(&job, 0)),
                (u32::from(!again), true, true)
            );
        }
        while let Some(oldest) = all.find_unexpected(0, ANY_SOURCE, ANY_TAG) {
            all.take_unexpected(oldest);
        }
        assert!(!inspect::is_stuck(&job, 0) && job.chunks().answer_wish() && !job.chunks().answer_wish());
        assert!(none.queue_unexpected(&envelope));
    }
}
