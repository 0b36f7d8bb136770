//! Messages whose arrival is known before virtual time has got there: on links that nobody shares, from the moment at which they are sent.
//!
//! A rank that waits for receives which name their senders need not wait until nobody else can send it anything earlier: what others send, those receives do not
//! take. So it takes its messages as soon as it is known when they arrive, and goes on from there, while virtual time is far behind. Neighbours in a ring or a
//! pipeline then go on for many rounds before another process has to run.

use super::engine::{Engine, asks, ends_nothing};
use super::layout::{status, what};
use crate::matching::envelope::{Envelope, kind};
use crate::matching::queues::Hope;
use crate::mem::sync::Ordering;

/// So many are looked at for one wait; of more, the rest arrives in its turn.
const MOST_LOOKED_AT: u32 = 1 << 12;

impl Engine<'_> {
    /// It is known when event `index` arrives. Its receiver runs if that is what it waits for.
    pub(super) fn becomes_known(&mut self, index: u32, woken: &mut Vec<u32>) {
        let event = &self.events[index as usize];
        let (rank, time) = (event.to, event.time);
        let receiver = &mut self.ranks[rank as usize];
        let last = std::mem::replace(&mut receiver.coming_last, index + 1);
        match last {
            0 => receiver.coming = index + 1,
            last => self.events[last as usize - 1].next = index + 1,
        }
        let event = &mut self.events[index as usize];
        (event.behind, event.next) = (last, 0);
        let receiver = &mut self.ranks[rank as usize];
        let waits = receiver.status.load(Ordering::Relaxed) == status::WAITS;
        let may_end_the_wait = match event.envelope.kind {
            kind::INLINE | kind::SLAB | kind::RTS => {
                receiver.hopes_from & Hope::bit_of(event.from) != 0 && !asks(&event.envelope)
            }
            kind::OPERATION => false,
            _ => !ends_nothing(&event.envelope),
        };
        if !may_end_the_wait {
            return;
        }
        let time = time.max(receiver.clock.load(Ordering::Relaxed));
        if waits && receiver.hopes > 0 {
            receiver.bound = receiver.bound.min(time);
            receiver.hopes -= 1;
            if receiver.hopes == 0 {
                let bound = receiver.bound;
                receiver.hoped = 1;
                self.wake(rank, 0, (0, bound), woken);
            }
        } else if !waits && receiver.hoped != 0 && time < receiver.bound {
            // It may be this one that it goes on from, not one of those.
            self.advance(rank, time);
        }
    }

    /// `rank`, which has just begun to wait, is to run once so many arrivals have become known.
    pub fn hope(&mut self, rank: u32, hope: Hope) {
        let waiting = &mut self.ranks[rank as usize];
        (waiting.hopes, waiting.hopes_from) = (hope.arrivals, hope.from);
    }

    /// Take event `index` out of the list of what is to arrive at its rank.
    pub(super) fn forget(&mut self, index: u32) {
        let event = &self.events[index as usize];
        let (before, next, rank) = (event.behind, event.next, event.to);
        match before {
            0 => self.ranks[rank as usize].coming = next,
            before => self.events[before as usize - 1].next = next,
        }
        match next {
            0 => self.ranks[rank as usize].coming_last = before,
            next => self.events[next as usize - 1].behind = before,
        }
        self.events[index as usize].behind = 0;
    }

    /// Of what has arrived at `rank`, and of what is known to, take what is `wanted`, in the order in which each sender has sent it. Returns when the last of it
    /// arrives.
    pub fn take_known(
        &mut self,
        rank: u32,
        mut wanted: impl FnMut(&Envelope) -> bool,
        taken: &mut Vec<(u64, Envelope)>,
    ) -> u64 {
        let (mut until, mut before, mut left) = (0, 0, MOST_LOOKED_AT);
        self.ranks[rank as usize].hoped = 0;
        let mut at = self.ranks[rank as usize].first;
        while let Some(index) = at.checked_sub(1).filter(|_| left > 0) {
            let event = &self.events[index as usize];
            let next = event.next;
            left -= 1;
            // An operation of the rank's own is done before it hears of its answer.
            if event.envelope.kind == kind::OPERATION || wanted(&event.envelope) {
                until = until.max(event.time);
                taken.push((event.time, event.envelope));
                match before {
                    0 => self.ranks[rank as usize].first = next,
                    before => self.events[before as usize - 1].next = next,
                }
                if next == 0 {
                    self.ranks[rank as usize].last = before;
                }
                self.free_event(index);
            } else {
                before = at;
            }
            at = next;
        }
        at = self.ranks[rank as usize].coming;
        while let Some(index) = at.checked_sub(1).filter(|_| left > 0) {
            let event = &self.events[index as usize];
            at = event.next;
            left -= 1;
            if wanted(&event.envelope) {
                until = until.max(event.time);
                taken.push((event.time, event.envelope));
                self.forget(index);
                // It stays until virtual time gets there: the next one of its sender arrives no earlier.
                self.events[index as usize].what = what::TAKEN;
            }
        }
        until
    }
}
