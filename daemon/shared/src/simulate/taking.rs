//! What a rank takes of what has arrived at it.

use super::engine::{Engine, asks, ends_nothing};
use super::layout::SimRank;
use crate::matching::envelope::Envelope;

impl Engine<'_> {
    /// Take what has arrived at `rank` until `clock`, in order.
    pub fn take(&mut self, rank: u32, clock: u64, taken: &mut Vec<(u64, Envelope)>) {
        self.take_through(rank, clock, 0, taken);
    }

    /// Take what has arrived before this rank was made to run by one of that, and that one. Returns when that was.
    pub fn take_woken(&mut self, rank: u32, taken: &mut Vec<(u64, Envelope)>) -> u64 {
        let SimRank { woken, woken_by, .. } = self.ranks[rank as usize];
        if woken_by != 0 {
            self.take_through(rank, woken, woken_by, taken);
        }
        woken
    }

    /// The same up to event `last` (+ 1), if that is not 0.
    pub(super) fn take_through(&mut self, rank: u32, clock: u64, last: u32, taken: &mut Vec<(u64, Envelope)>) {
        loop {
            let descriptor = &mut self.ranks[rank as usize];
            let Some(index) = descriptor.first.checked_sub(1) else { return };
            let event = &self.events[index as usize];
            if event.time > clock {
                return;
            }
            taken.push((event.time, event.envelope));
            descriptor.first = event.next;
            if descriptor.first == 0 {
                descriptor.last = 0;
            }
            self.free_event(index);
            if index + 1 == last {
                return;
            }
        }
    }

    /// `rank`, at its clock, cannot go on before `need` more arrivals, or one that it has to answer. If those are there: take them, and say when the last one came.
    /// Else it waits. So what it takes follows from the order of what arrives, not from how much of it was there already, nor does it take what
    /// comes at the same time as the last one.
    pub fn wait_for(&mut self, rank: u32, need: u32, taken: &mut Vec<(u64, Envelope)>) -> Option<u64> {
        let mut left = need;
        let mut at = self.ranks[rank as usize].first;
        while let Some(event) = at.checked_sub(1).map(|index| &self.events[index as usize]) {
            left -= u32::from(!ends_nothing(&event.envelope));
            if left == 0 || asks(&event.envelope) {
                let until = event.time;
                self.take_through(rank, until, at, taken);
                return Some(until);
            }
            at = event.next;
        }
        self.wait(rank, left);
        None
    }
}
