//! Flows that drain alike are a class: what each of it has drained is one number, and the first to end is on top of a heap.
//!
//! The heaps are skew heaps: joined along their right edges, with children swapped on the way, so that they need no balance to be kept.

use super::layout::{Class, Leg, NONE, Use};
use super::{Done, Flows, FlowsProblem, at, at_mut};
use crate::image::{MOST_USES, drain_time};
use crate::units::{PS_PER_S, Ps};
use zerocopy::FromZeros;

impl Class {
    /// What each has drained at `time`.
    fn drained_at(&self, time: Ps) -> f64 {
        self.drained + self.rate * (time.saturating_sub(self.since) as f64 / PS_PER_S as f64)
    }
}

impl Flows<'_> {
    /// Flow `slot`, which begins to drain, becomes one of its class.
    pub(super) fn join(&mut self, slot: u32, time: Ps) -> Done {
        let number = match self.class_of(slot)? {
            Some(number) => number,
            None => self.new_class(slot, time)?,
        };
        let class = at(self.parts.classes, number)?;
        let (drained, root) = (class.drained_at(time), class.root);
        let flow = at_mut(self.parts.flows, slot)?;
        flow.volume += drained;
        (flow.class, flow.below) = (number, [NONE, NONE]);
        let first = self.merge(root, slot)?;
        let class = at_mut(self.parts.classes, number)?;
        class.root = first;
        class.count = class.count.checked_add(1).ok_or(FlowsProblem::Damaged)?;
        // A new one has its first event once its share is known.
        if first == root || class.place == NONE { Ok(()) } else { self.set_end(number, time) }
    }

    /// The first of a class whose event has come ends; returns which.
    pub(super) fn first_ends(&mut self, number: u32, time: Ps) -> Done<u32> {
        let class = at(self.parts.classes, number)?;
        let (slot, left) = (class.root, class.count.checked_sub(1).ok_or(FlowsProblem::Damaged)?);
        let [one, other] = at(self.parts.flows, slot)?.below;
        let root = self.merge(one, other)?;
        let class = at_mut(self.parts.classes, number)?;
        (class.root, class.count) = (root, left);
        if left > 0 {
            self.set_end(number, time)?;
            return Ok(slot);
        }
        let used = class.used.min(MOST_USES as u32);
        (0..used).try_for_each(|number_of_use| self.leave(number * MOST_USES as u32 + number_of_use))?;
        let class = at_mut(self.parts.classes, number)?;
        class.chain = self.parts.header.classes_free;
        self.parts.header.classes_free = number;
        Ok(slot)
    }

    /// A new share from `time` on.
    pub(super) fn set_rate(&mut self, number: u32, time: Ps) -> Done {
        let class = at_mut(self.parts.classes, number)?;
        if class.place != NONE && class.rate.to_bits() == class.share.to_bits() {
            return Ok(());
        }
        (class.drained, class.since, class.rate) = (class.drained_at(time), time, class.share);
        self.set_end(number, time)
    }

    /// When its first one ends has changed.
    fn set_end(&mut self, number: u32, time: Ps) -> Done {
        let class = at(self.parts.classes, number)?;
        let left = at(self.parts.flows, class.root)?.volume - class.drained;
        let end = class.since.saturating_add(drain_time(left, class.rate)).max(time);
        let entry = self.entry_of(number)?;
        let class = at_mut(self.parts.classes, number)?;
        class.at = end;
        if class.place == NONE { self.add_event(entry) } else { self.move_event(entry) }
    }

    /// The class of those that drain like flow `slot`, if there are any.
    fn class_of(&self, slot: u32) -> Done<Option<u32>> {
        let flow = at(self.parts.flows, slot)?;
        let legs = flow.legs();
        let first = legs.first().ok_or(FlowsProblem::Damaged)?;
        let mut entry = at(self.parts.links, first.link)?.first;
        let mut steps = 0;
        while entry != NONE {
            let number = entry / MOST_USES as u32;
            let class = at(self.parts.classes, number)?;
            let bits = |bound: f64, penalty: f64| (bound.to_bits(), penalty.to_bits());
            if class.used == flow.used
                && bits(class.bound, class.penalty) == bits(flow.bound, flow.penalty)
                && class.uses().iter().map(|used| used.leg).eq(legs.iter().copied())
            {
                return Ok(Some(number));
            }
            entry = class.uses[entry as usize % MOST_USES].next;
            steps += 1;
            if steps > u64::from(self.parts.header.slots) * MOST_USES as u64 {
                return Err(FlowsProblem::Damaged);
            }
        }
        Ok(None)
    }

    /// A class of which flow `slot` is to be the first one.
    fn new_class(&mut self, slot: u32, time: Ps) -> Done<u32> {
        let header = &mut *self.parts.header;
        let number = match header.classes_free {
            NONE => {
                header.classes_begun = header.classes_begun.checked_add(1).ok_or(FlowsProblem::Damaged)?;
                header.classes_begun - 1
            }
            free => free,
        };
        let class = at_mut(self.parts.classes, number)?;
        if header.classes_free == number {
            header.classes_free = class.chain;
        }
        let flow = at(self.parts.flows, slot)?;
        class.zero();
        (class.since, class.bound, class.penalty, class.used) = (time, flow.bound, flow.penalty, flow.used);
        (class.root, class.place, class.chain) = (NONE, NONE, NONE);
        for (used, leg) in class.uses.iter_mut().zip(flow.legs()) {
            *used = Use { leg: *leg, next: NONE, before: NONE };
        }
        let used = flow.used.min(MOST_USES as u32);
        (0..used).try_for_each(|number_of_use| self.enter(number * MOST_USES as u32 + number_of_use))?;
        Ok(number)
    }

    fn used(&mut self, entry: u32) -> Done<&mut Use> {
        let (number, place) = (entry / MOST_USES as u32, entry as usize % MOST_USES);
        Ok(&mut at_mut(self.parts.classes, number)?.uses[place])
    }

    /// Into its link's list.
    fn enter(&mut self, entry: u32) -> Done {
        let Leg { link, .. } = self.used(entry)?.leg;
        let first = std::mem::replace(&mut at_mut(self.parts.links, link)?.first, entry);
        let own = self.used(entry)?;
        (own.next, own.before) = (first, NONE);
        if first != NONE {
            self.used(first)?.before = entry;
        }
        Ok(())
    }

    /// Out of its link's list.
    fn leave(&mut self, entry: u32) -> Done {
        let Use { leg, next, before } = *self.used(entry)?;
        match before {
            NONE => at_mut(self.parts.links, leg.link)?.first = next,
            before => self.used(before)?.next = next,
        }
        if next != NONE {
            self.used(next)?.before = before;
        }
        Ok(())
    }

    /// Two heaps of flows become one; returns its top.
    fn merge(&mut self, mut one: u32, mut other: u32) -> Done<u32> {
        let (mut top, mut above) = (NONE, NONE);
        let mut steps = 0;
        loop {
            let next = match (one, other) {
                (NONE, rest) | (rest, NONE) => rest,
                _ => {
                    if self.ends_before(other, one)? {
                        std::mem::swap(&mut one, &mut other);
                    }
                    one
                }
            };
            match above {
                NONE => top = next,
                above => at_mut(self.parts.flows, above)?.below[0] = next,
            }
            if one == NONE || other == NONE {
                return Ok(top);
            }
            let below = &mut at_mut(self.parts.flows, one)?.below;
            above = std::mem::replace(&mut one, below[1]);
            below[1] = below[0];
            steps += 1;
            if steps > self.parts.header.slots {
                return Err(FlowsProblem::Damaged);
            }
        }
    }

    fn ends_before(&self, one: u32, other: u32) -> Done<bool> {
        let (one, other) = (at(self.parts.flows, one)?, at(self.parts.flows, other)?);
        Ok(one.volume.total_cmp(&other.volume).then(one.key.cmp(&other.key)).is_lt())
    }
}
