//! The flows' next events: a binary heap by time, then key.

use super::layout::NONE;
use super::{Done, Flows, FlowsProblem, at, at_mut};

impl Flows<'_> {
    fn order(&self, slot: u32) -> Done<(u64, u64)> {
        at(self.parts.flows, slot).map(|flow| (flow.at, flow.key))
    }

    fn put(&mut self, place: u32, slot: u32) -> Done {
        *at_mut(self.parts.heap, place)? = slot;
        at_mut(self.parts.flows, slot)?.place = place;
        Ok(())
    }

    pub(super) fn add_event(&mut self, slot: u32) -> Done {
        let place = self.parts.header.events;
        self.parts.header.events = place.checked_add(1).ok_or(FlowsProblem::Damaged)?;
        self.put(place, slot)?;
        self.rise(place)
    }

    /// The first one, which then has none.
    pub(super) fn take_event(&mut self) -> Done<u32> {
        let first = *at(self.parts.heap, 0)?;
        let last = self.parts.header.events.checked_sub(1).ok_or(FlowsProblem::Damaged)?;
        self.parts.header.events = last;
        if last > 0 {
            let slot = *at(self.parts.heap, last)?;
            self.put(0, slot)?;
            self.sink(0)?;
        }
        at_mut(self.parts.flows, first)?.place = NONE;
        Ok(first)
    }

    /// Its time is another one now.
    pub(super) fn move_event(&mut self, slot: u32) -> Done {
        let place = at(self.parts.flows, slot)?.place;
        self.rise(place)?;
        let place = at(self.parts.flows, slot)?.place;
        self.sink(place)
    }

    fn rise(&mut self, mut place: u32) -> Done {
        let slot = *at(self.parts.heap, place)?;
        let order = self.order(slot)?;
        while place > 0 {
            let parent = (place - 1) / 2;
            let above = *at(self.parts.heap, parent)?;
            if self.order(above)? <= order {
                break;
            }
            self.put(place, above)?;
            place = parent;
        }
        self.put(place, slot)
    }

    fn sink(&mut self, mut place: u32) -> Done {
        let slot = *at(self.parts.heap, place)?;
        let order = self.order(slot)?;
        let events = self.parts.header.events;
        loop {
            let left = place.saturating_mul(2).saturating_add(1);
            if left >= events {
                break;
            }
            let mut child = left;
            if left + 1 < events
                && self.order(*at(self.parts.heap, left + 1)?)? < self.order(*at(self.parts.heap, left)?)?
            {
                child = left + 1;
            }
            let below = *at(self.parts.heap, child)?;
            if order <= self.order(below)? {
                break;
            }
            self.put(place, below)?;
            place = child;
        }
        self.put(place, slot)
    }
}
