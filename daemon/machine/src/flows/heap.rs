//! The next events of flows and classes: a binary heap by time, then key.
//!
//! An entry below the number of slots is a flow, and others are classes, which come behind these.

use super::layout::NONE;
use super::{Done, Flows, FlowsProblem, at, at_mut};

impl Flows<'_> {
    /// The class that an entry is, if it is none of a flow.
    pub(super) fn class_at(&self, entry: u32) -> Option<u32> {
        entry.checked_sub(self.parts.header.slots)
    }

    pub(super) fn entry_of(&self, class: u32) -> Done<u32> {
        class.checked_add(self.parts.header.slots).ok_or(FlowsProblem::Damaged)
    }

    pub(super) fn order(&self, entry: u32) -> Done<(u64, u64)> {
        let Some(class) = self.class_at(entry) else {
            return at(self.parts.flows, entry).map(|flow| (flow.at, flow.key));
        };
        let class = at(self.parts.classes, class)?;
        Ok((class.at, at(self.parts.flows, class.root)?.key))
    }

    fn place(&mut self, entry: u32) -> Done<&mut u32> {
        match self.class_at(entry) {
            None => at_mut(self.parts.flows, entry).map(|flow| &mut flow.place),
            Some(class) => at_mut(self.parts.classes, class).map(|class| &mut class.place),
        }
    }

    fn put(&mut self, place: u32, entry: u32) -> Done {
        *at_mut(self.parts.heap, place)? = entry;
        *self.place(entry)? = place;
        Ok(())
    }

    pub(super) fn add_event(&mut self, entry: u32) -> Done {
        let place = self.parts.header.events;
        self.parts.header.events = place.checked_add(1).ok_or(FlowsProblem::Damaged)?;
        self.put(place, entry)?;
        self.rise(place)
    }

    /// The first one, which then has none.
    pub(super) fn take_event(&mut self) -> Done<u32> {
        let first = *at(self.parts.heap, 0)?;
        let last = self.parts.header.events.checked_sub(1).ok_or(FlowsProblem::Damaged)?;
        self.parts.header.events = last;
        if last > 0 {
            let entry = *at(self.parts.heap, last)?;
            self.put(0, entry)?;
            self.sink(0)?;
        }
        *self.place(first)? = NONE;
        Ok(first)
    }

    /// Its time is another one now.
    pub(super) fn move_event(&mut self, entry: u32) -> Done {
        let place = *self.place(entry)?;
        self.rise(place)?;
        let place = *self.place(entry)?;
        self.sink(place)
    }

    fn rise(&mut self, mut place: u32) -> Done {
        let entry = *at(self.parts.heap, place)?;
        let order = self.order(entry)?;
        while place > 0 {
            let parent = (place - 1) / 2;
            let above = *at(self.parts.heap, parent)?;
            if self.order(above)? <= order {
                break;
            }
            self.put(place, above)?;
            place = parent;
        }
        self.put(place, entry)
    }

    fn sink(&mut self, mut place: u32) -> Done {
        let entry = *at(self.parts.heap, place)?;
        let order = self.order(entry)?;
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
        self.put(place, entry)
    }
}
