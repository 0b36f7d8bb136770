//! Messages that share links: each flow waits its latency, then drains at its share, which changes when others come and go.
//!
//! Reading order: `layout` (the memory) -> this file (flows come and go) -> `classes` (those that drain alike) -> `heap` (their next events) -> `shares` (who gets
//! how much).
//!
//! A change concerns only the classes that are joined to it by shared links, and only their shares are worked out anew. However many flows there are between
//! two hosts, they are one class. Results depend on keys and times, not on the order of calls: what happens at one time happens together, in the order of keys, and
//! classes have numbers in the order in which they have come. The
//! memory may be shared with processes that have scribbled on it: every index is checked, every walk has an end.

mod classes;
mod heap;
mod layout;
mod shares;
#[cfg(test)]
mod tests;

use crate::image::{Image, MOST_USES, Path, drain_time};
use crate::units::Ps;
use layout::{DRAINS, ENDED, FREE, Leg, Link, NONE, Parts, WAITS};
use thiserror::Error;
use zerocopy::FromZeros;

#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum FlowsProblem {
    #[error("{wanted} bytes, aligned to 8, are needed for the flows, not {bytes}")]
    Memory { bytes: usize, wanted: usize },
    #[error("all {slots} slots for messages under way are taken")]
    Full { slots: u32 },
    #[error("a message would begin to drain at {at} ps, and all up to {now} ps has happened already")]
    Past { at: Ps, now: Ps },
    #[error("the memory of the flows has been overwritten")]
    Damaged,
}

/// What is under way; one of it for each time that the engine's lock is held.
#[derive(Debug)]
pub struct Flows<'a> {
    parts: Parts<'a>,
}

type Done<T = ()> = Result<T, FlowsProblem>;

/// An entry of a slice whose index comes from shared memory.
fn at<T>(slice: &[T], index: u32) -> Done<&T> {
    slice.get(index as usize).ok_or(FlowsProblem::Damaged)
}

fn at_mut<T>(slice: &mut [T], index: u32) -> Done<&mut T> {
    slice.get_mut(index as usize).ok_or(FlowsProblem::Damaged)
}

impl<'a> Flows<'a> {
    /// Bytes that [`Flows::create`] needs, for so many messages at once.
    pub fn memory_for(image: &Image<'_>, most_flows: u32) -> usize {
        layout::bytes_for(image.link_count(), most_flows)
    }

    /// Begin, at time 0, in memory that is aligned to 8 bytes.
    ///
    /// # Errors
    /// [`FlowsProblem::Memory`]
    pub fn create(memory: &'a mut [u8], image: &Image<'_>, most_flows: u32) -> Done<Flows<'a>> {
        let parts = layout::parts(memory, image.link_count(), most_flows)?;
        parts.header.zero();
        parts.header.magic = layout::MAGIC;
        (parts.header.links, parts.header.slots) = (image.link_count(), most_flows);
        (parts.header.ended_first, parts.header.ended_last) = (NONE, NONE);
        (parts.header.free, parts.header.classes_free) = (NONE, NONE);
        for (number, link) in (0..).zip(parts.links.iter_mut()) {
            let capacity = image.link(number).map_or(0.0, |(bandwidth, _)| bandwidth as f64);
            *link = Link { capacity, left: 0.0, weight: 0.0, look: 0, first: NONE, open: 0 };
        }
        Ok(Flows { parts })
    }

    /// The same in whole words, which are aligned.
    ///
    /// # Errors
    /// [`FlowsProblem::Memory`]
    pub fn create_in_words(memory: &'a mut [u64], image: &Image<'_>, most_flows: u32) -> Done<Flows<'a>> {
        Flows::create(zerocopy::IntoBytes::as_mut_bytes(memory), image, most_flows)
    }

    /// What [`Flows::create`] has made.
    ///
    /// # Errors
    /// [`FlowsProblem::Memory`], or [`FlowsProblem::Damaged`] if it is something else.
    pub fn open(memory: &'a mut [u8]) -> Done<Flows<'a>> {
        let header = layout::parts(memory, 0, 0)?.header;
        if header.magic != layout::MAGIC {
            return Err(FlowsProblem::Damaged);
        }
        let (links, slots) = (header.links, header.slots);
        Ok(Flows { parts: layout::parts(memory, links, slots)? })
    }

    /// A message leaves at `now`. `key` is the caller's, and no other one's that is under way.
    ///
    /// It may leave before the time that [`Flows::advance`] has come to, if it begins to drain no earlier than that.
    ///
    /// # Errors
    /// [`FlowsProblem::Full`], [`FlowsProblem::Past`], [`FlowsProblem::Damaged`]
    pub fn start(&mut self, now: Ps, key: u64, image: &Image<'_>, path: &Path, bytes: u64) -> Done {
        let transfer = image.transfer(path, bytes);
        let begins = now.saturating_add(transfer.latency);
        let parts = &mut self.parts;
        if begins < parts.header.now {
            return Err(FlowsProblem::Past { at: begins, now: parts.header.now });
        }
        if path.uses().iter().any(|used| used.link >= parts.header.links) {
            return Err(FlowsProblem::Damaged);
        }
        let mut slot = parts.header.free;
        if slot == NONE {
            slot = parts.header.begun;
            if slot >= parts.header.slots {
                return Err(FlowsProblem::Full { slots: parts.header.slots });
            }
            parts.header.begun += 1;
            let flow = at_mut(parts.flows, slot)?;
            flow.zero();
            flow.chain = NONE;
        }
        let flow = at_mut(parts.flows, slot)?;
        if flow.state != FREE {
            return Err(FlowsProblem::Damaged);
        }
        parts.header.free = flow.chain;
        (flow.key, flow.at, flow.volume) = (key, begins, transfer.volume);
        (flow.bound, flow.penalty) = (transfer.bound, transfer.penalty);
        (flow.state, flow.class, flow.chain) = (WAITS, NONE, NONE);
        flow.used = path.uses().len() as u32;
        for (own, used) in flow.legs.iter_mut().zip(path.uses()) {
            *own = Leg { link: used.link, hundredths: used.hundredths };
        }
        parts.header.in_flight = parts.header.in_flight.saturating_add(1);
        self.add_event(slot)
    }

    /// When shares change next, or a flow ends, if none is started before.
    pub fn next_event(&self) -> Option<Ps> {
        let first = self.parts.heap.first().filter(|_| self.parts.header.events > 0)?;
        self.order(*first).ok().map(|(time, _)| time)
    }

    /// Messages that have not ended.
    pub fn in_flight(&self) -> u32 {
        self.parts.header.in_flight
    }

    /// Let everything happen up to `now`, and at it.
    ///
    /// # Errors
    /// [`FlowsProblem::Damaged`]
    pub fn advance(&mut self, now: Ps) -> Done {
        while let Some(time) = self.next_event().filter(|time| *time <= now) {
            if time < self.parts.header.now {
                return Err(FlowsProblem::Damaged);
            }
            self.parts.header.now = time;
            self.happen(time)?;
        }
        self.parts.header.now = self.parts.header.now.max(now);
        Ok(())
    }

    /// Take a flow that has ended, the first one first, of one time that with the least key: its key, and when.
    ///
    /// # Errors
    /// [`FlowsProblem::Damaged`]
    pub fn completed(&mut self) -> Done<Option<(u64, Ps)>> {
        let header = &mut *self.parts.header;
        let slot = header.ended_first;
        if slot == NONE {
            return Ok(None);
        }
        let flow = at_mut(self.parts.flows, slot)?;
        if flow.state != ENDED {
            return Err(FlowsProblem::Damaged);
        }
        header.ended_first = flow.chain;
        if flow.chain == NONE {
            header.ended_last = NONE;
        }
        (flow.state, flow.chain) = (FREE, header.free);
        header.free = slot;
        Ok(Some((flow.key, flow.at)))
    }

    /// All that happens at one time, which is that of the first event.
    fn happen(&mut self, time: Ps) -> Done {
        let (mut changed, mut ended) = (0, 0);
        // Those that begin now have their next event only when shares are known; of a class all end now that are over.
        while self.next_event() == Some(time) {
            let entry = self.take_event()?;
            let slot = match self.class_at(entry) {
                None if at(self.parts.flows, entry)?.state == WAITS => {
                    self.begin(entry, time)?;
                    changed = self.touch_all(entry, changed)?;
                    continue;
                }
                None => entry,
                Some(class) => self.first_ends(class, time)?,
            };
            if at(self.parts.flows, slot)?.state != DRAINS {
                return Err(FlowsProblem::Damaged);
            }
            changed = self.touch_all(slot, changed)?;
            *at_mut(self.parts.concerned, ended)? = slot;
            ended += 1;
        }
        self.end(ended, time)?;
        if changed == 0 { Ok(()) } else { self.share(changed, time) }
    }

    /// It drains from now on.
    fn begin(&mut self, slot: u32, time: Ps) -> Done {
        let flow = at_mut(self.parts.flows, slot)?;
        flow.state = DRAINS;
        if flow.volume <= 0.0 {
            flow.used = 0;
        }
        if flow.used as usize > MOST_USES {
            return Err(FlowsProblem::Damaged);
        }
        if flow.used == 0 {
            flow.at = time.saturating_add(drain_time(flow.volume, flow.bound));
            return self.add_event(slot);
        }
        self.join(slot, time)
    }

    /// So many of `concerned` are over.
    fn end(&mut self, ended: u32, time: Ps) -> Done {
        let all = &*self.parts.flows;
        let concerned = self.parts.concerned.get_mut(..ended as usize).ok_or(FlowsProblem::Damaged)?;
        concerned.sort_unstable_by_key(|slot| all.get(*slot as usize).map_or(0, |flow| flow.key));
        for index in 0..ended {
            let slot = *at(self.parts.concerned, index)?;
            let flow = at_mut(self.parts.flows, slot)?;
            (flow.state, flow.chain, flow.at) = (ENDED, NONE, time);
            let header = &mut *self.parts.header;
            header.in_flight = header.in_flight.saturating_sub(1);
            match header.ended_last {
                NONE => header.ended_first = slot,
                last => at_mut(self.parts.flows, last)?.chain = slot,
            }
            self.parts.header.ended_last = slot;
        }
        Ok(())
    }
}
