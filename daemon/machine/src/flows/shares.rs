//! Who gets how much: weighted max-min fairness by progressive filling.
//!
//! All flows that have no share yet rise together, each at level / penalty, until a link is full or a flow comes to its bound. Those get
//! what they have then, and the others go on.

use super::layout::{DRAINS, Link, NONE, Parts, Use};
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
        let uses = flow.uses.get(..flow.used as usize).ok_or(FlowsProblem::Damaged)?;
        let look = parts.header.look.wrapping_add(1);
        uses.iter().try_fold(touched, |touched, used| touch(parts.links, parts.touched, look, used.link, touched))
    }

    /// New shares for all flows that are joined to the `touched` links, directly or by other flows.
    pub(super) fn share(&mut self, touched: u32, time: Ps) -> Done {
        let (flows, links) = gather(&mut self.parts, touched)?;
        self.parts.header.look = self.parts.header.look.wrapping_add(1);
        weigh(&mut self.parts, flows)?;
        fill(&mut self.parts, flows, links)?;
        (0..flows).try_for_each(|index| self.set_rate(*at(self.parts.concerned, index)?, time))
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

/// All flows and links that are joined, the flows by key.
fn gather(parts: &mut Parts<'_>, mut touched: u32) -> Done<(u32, u32)> {
    let look = parts.header.look.wrapping_add(1);
    let (mut flows, mut seen) = (0, 0);
    while seen < touched {
        let link = *at(parts.touched, seen)?;
        let mut entry = at(parts.links, link)?.first;
        seen += 1;
        // A list has at most one entry per flow.
        let mut steps = 0;
        while entry != NONE {
            let slot = entry / MOST_USES as u32;
            let flow = at_mut(parts.flows, slot)?;
            entry = flow.uses[entry as usize % MOST_USES].next;
            steps += 1;
            if steps > parts.header.slots || flow.state != DRAINS {
                return Err(FlowsProblem::Damaged);
            }
            if flow.look == look {
                continue;
            }
            (flow.look, flow.share) = (look, -1.0);
            *at_mut(parts.concerned, flows)? = slot;
            flows += 1;
            let uses = flow.uses.get(..flow.used as usize).ok_or(FlowsProblem::Damaged)?;
            for used in uses {
                touched = touch(parts.links, parts.touched, look, used.link, touched)?;
            }
        }
    }
    let all = &*parts.flows;
    let concerned = parts.concerned.get_mut(..flows as usize).ok_or(FlowsProblem::Damaged)?;
    // Slots that are not there were refused above.
    concerned.sort_unstable_by_key(|slot| all.get(*slot as usize).map_or(0, |flow| flow.key));
    Ok((flows, touched))
}

/// What the flows use of each link per unit of level.
fn weigh(parts: &mut Parts<'_>, flows: u32) -> Done {
    for index in 0..flows {
        let flow = at(parts.flows, *at(parts.concerned, index)?)?;
        for used in flow.uses() {
            let link = at_mut(parts.links, used.link)?;
            link.weight += coefficient(used.hundredths) / flow.penalty;
            link.open += 1;
        }
    }
    Ok(())
}

/// `flows` and `links`: how many of those that are concerned.
fn fill(parts: &mut Parts<'_>, flows: u32, mut links: u32) -> Done {
    let mut open = flows;
    let mut level = 0.0_f64;
    while open > 0 {
        // The level at which something is full next; links whose flows all have a share are let go.
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
            let flow = at(parts.flows, *at(parts.concerned, index)?)?;
            next = next.min(flow.bound * flow.penalty);
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

/// Of the first `open` flows, those at their bound or on a full link get what they have at this level, and go behind the others; returns how many.
fn settle(parts: &mut Parts<'_>, open: u32, level: f64) -> Done<u32> {
    let mut kept = 0;
    for index in 0..open {
        let slot = *at(parts.concerned, index)?;
        let flow = at_mut(parts.flows, slot)?;
        let is_bounded = flow.bound * flow.penalty <= level * SAME;
        let is_full =
            |used: &Use| parts.links.get(used.link as usize).is_none_or(|link| link.left == f64::NEG_INFINITY);
        if !is_bounded && !flow.uses().iter().any(is_full) {
            // Both parts stay in the order of keys or are asked no more.
            parts.concerned.swap(kept as usize, index as usize);
            kept += 1;
            continue;
        }
        flow.share = if is_bounded { flow.bound } else { level / flow.penalty };
        for used in flow.uses() {
            let link = at_mut(parts.links, used.link)?;
            let coefficient = coefficient(used.hundredths);
            link.left -= coefficient * flow.share;
            link.weight -= coefficient / flow.penalty;
            link.open = link.open.saturating_sub(1);
        }
    }
    Ok(open - kept)
}
