//! Who gets how much: weighted max-min fairness by progressive filling.
//!
//! All flows that have no share yet rise together, each at level / penalty, until a link is full or a flow comes to its bound. Those of a class rise as one. Those get
//! what they have then, and the others go on.

use super::layout::{Link, NONE, Parts, Use};
use super::{Done, Flows, FlowsProblem, at, at_mut};
use crate::image::{MOST_USES, coefficient};
use crate::units::Ps;

/// What differs by less is full at the same level: sums of the same figures in another order.
const SAME: f64 = 1.0 + 1e-12;

impl Flows<'_> {
    /// The links of a flow that has come or gone.
    pub(super) fn touch_all(&mut self, slot: u32, touched: u32) -> Done<u32> {
        let parts = &mut self.parts;
        let flow = at(parts.flows, slot)?;
        let legs = flow.legs.get(..flow.used as usize).ok_or(FlowsProblem::Damaged)?;
        let look = parts.header.look.wrapping_add(1);
        legs.iter().try_fold(touched, |touched, leg| touch(parts.links, parts.touched, look, leg.link, touched))
    }

    /// New shares for all classes that are joined to the `touched` links, directly or by other classes.
    pub(super) fn share(&mut self, touched: u32, time: Ps) -> Done {
        let (classes, links) = gather(&mut self.parts, touched)?;
        self.parts.header.look = self.parts.header.look.wrapping_add(1);
        weigh(&mut self.parts, classes)?;
        fill(&mut self.parts, classes, links)?;
        (0..classes).try_for_each(|index| self.set_rate(*at(self.parts.concerned, index)?, time))
    }
}

/// A link that something has changed on, once; returns how many there are.
fn touch(links: &mut [Link], touched: &mut [u32], look: u64, number: u32, count: u32) -> Done<u32> {
    let link = at_mut(links, number)?;
    if link.look == look {
        return Ok(count);
    }
    (link.look, link.left, link.weight, link.open) = (look, link.capacity, 0.0, 0);
    *at_mut(touched, count)? = number;
    Ok(count + 1)
}

/// All classes and links that are joined, the classes by number.
fn gather(parts: &mut Parts<'_>, mut touched: u32) -> Done<(u32, u32)> {
    let look = parts.header.look.wrapping_add(1);
    let (mut classes, mut seen) = (0, 0);
    while seen < touched {
        let link = *at(parts.touched, seen)?;
        let mut entry = at(parts.links, link)?.first;
        seen += 1;
        // A list has at most one entry per use of a class.
        let mut steps = 0;
        while entry != NONE {
            let number = entry / MOST_USES as u32;
            let class = at_mut(parts.classes, number)?;
            entry = class.uses[entry as usize % MOST_USES].next;
            steps += 1;
            if steps > u64::from(parts.header.slots) * MOST_USES as u64 || class.count == 0 {
                return Err(FlowsProblem::Damaged);
            }
            if class.look == look {
                continue;
            }
            (class.look, class.share) = (look, -1.0);
            *at_mut(parts.concerned, classes)? = number;
            classes += 1;
            let uses = class.uses.get(..class.used as usize).ok_or(FlowsProblem::Damaged)?;
            for used in uses {
                touched = touch(parts.links, parts.touched, look, used.leg.link, touched)?;
            }
        }
    }
    parts.concerned.get_mut(..classes as usize).ok_or(FlowsProblem::Damaged)?.sort_unstable();
    Ok((classes, touched))
}

/// What the classes use of each link per unit of level.
fn weigh(parts: &mut Parts<'_>, classes: u32) -> Done {
    for index in 0..classes {
        let class = at(parts.classes, *at(parts.concerned, index)?)?;
        for used in class.uses() {
            let link = at_mut(parts.links, used.leg.link)?;
            link.weight += f64::from(class.count) * coefficient(used.leg.hundredths) / class.penalty;
            link.open += 1;
        }
    }
    Ok(())
}

/// `classes` and `links`: how many of those that are concerned.
fn fill(parts: &mut Parts<'_>, classes: u32, mut links: u32) -> Done {
    let mut open = classes;
    let mut level = 0.0_f64;
    while open > 0 {
        // The level at which something is full next; links whose classes all have a share are let go.
        let mut next = f64::INFINITY;
        let mut index = 0;
        while index < links {
            let link = at(parts.links, *at(parts.touched, index)?)?;
            if link.open == 0 {
                links -= 1;
                *at_mut(parts.touched, index)? = *at(parts.touched, links)?;
                continue;
            }
            next = next.min(link.left / link.weight);
            index += 1;
        }
        for index in 0..open {
            let class = at(parts.classes, *at(parts.concerned, index)?)?;
            next = next.min(class.bound * class.penalty);
        }
        // What rounding took from a link does not let the level fall.
        level = next.max(level);
        // Links are marked first, since shares change what is left on them.
        for index in 0..links {
            let link = at_mut(parts.links, *at(parts.touched, index)?)?;
            if link.left <= level * link.weight * SAME {
                link.left = f64::NEG_INFINITY;
            }
        }
        let settled = settle(parts, open, level)?;
        if settled == 0 || !level.is_finite() {
            return Err(FlowsProblem::Damaged);
        }
        open -= settled;
    }
    Ok(())
}

/// Of the first `open` classes, those at their bound or on a full link get what they have at this level, and go behind the others; returns how many.
fn settle(parts: &mut Parts<'_>, open: u32, level: f64) -> Done<u32> {
    let mut kept = 0;
    for index in 0..open {
        let number = *at(parts.concerned, index)?;
        let class = at_mut(parts.classes, number)?;
        let is_bounded = class.bound * class.penalty <= level * SAME;
        let is_full =
            |used: &Use| parts.links.get(used.leg.link as usize).is_none_or(|link| link.left == f64::NEG_INFINITY);
        if !is_bounded && !class.uses().iter().any(is_full) {
            // Both parts stay in order or are asked no more.
            parts.concerned.swap(kept as usize, index as usize);
            kept += 1;
            continue;
        }
        class.share = if is_bounded { class.bound } else { level / class.penalty };
        for used in class.uses() {
            let link = at_mut(parts.links, used.leg.link)?;
            let coefficient = f64::from(class.count) * coefficient(used.leg.hundredths);
            link.left -= coefficient * class.share;
            link.weight -= coefficient / class.penalty;
            link.open = link.open.saturating_sub(1);
        }
    }
    Ok(open - kept)
}
