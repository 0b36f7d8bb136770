//! The solver's memory: one piece, no pointers, so that it can lie in a segment that processes share.

use super::FlowsProblem;
use crate::image::MOST_USES;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const MAGIC: u64 = u64::from_le_bytes(*b"vmpiflow");
/// No flow, no use.
pub const NONE: u32 = u32::MAX;

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    pub magic: u64,
    pub links: u32,
    pub slots: u32,
    /// All events before this time have happened, and those at it that were known.
    pub now: u64,
    /// Raised for each look around, so that what has been seen need not be cleared.
    pub look: u64,
    /// Slots that have been used and are free, chained by `Flow::chain`.
    pub free: u32,
    /// Flows that have ended, the first and the last, chained by `Flow::chain`.
    pub ended_first: u32,
    pub ended_last: u32,
    /// Entries of the heap.
    pub events: u32,
    pub in_flight: u32,
    /// Slots from here on have never been used: their memory is as it was found, and may be none yet.
    pub begun: u32,
    /// The same of classes: the first free one, chained by `Class::chain`, and those that have been used.
    pub classes_free: u32,
    pub classes_begun: u32,
}

/// A link while flows compete for it.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Link {
    /// Bytes a second.
    pub capacity: f64,
    /// While shares are worked out: what is left of it, and the sum of what flows without a share yet use of it per unit of level.
    pub left: f64,
    pub weight: f64,
    pub look: u64,
    /// The first use in the list of the classes that drain over it.
    pub first: u32,
    /// Classes on it without a share yet.
    pub open: u32,
}

/// A link on a flow's way.
#[derive(Copy, Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Leg {
    pub link: u32,
    pub hundredths: u32,
}

/// A class on a link: an entry of the link's list.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Use {
    pub leg: Leg,
    /// Neighbours in the link's list: the class times `MOST_USES` plus the number of the use.
    pub next: u32,
    pub before: u32,
}

pub const FREE: u32 = 0;
/// Its first byte is on the way.
pub const WAITS: u32 = 1;
pub const DRAINS: u32 = 2;
pub const ENDED: u32 = 3;

#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Flow {
    pub key: u64,
    /// When it begins to drain, or ends; not while it drains in a class.
    pub at: u64,
    /// Bytes; while it drains in a class: what each of that has drained when this one is over.
    pub volume: f64,
    pub bound: f64,
    pub penalty: f64,
    pub state: u32,
    /// Where it is in the heap of events.
    pub place: u32,
    pub chain: u32,
    /// Below it in its class's heap, by what has to drain.
    pub below: [u32; 2],
    pub class: u32,
    pub reserved: u32,
    pub used: u32,
    pub legs: [Leg; MOST_USES],
}

impl Flow {
    /// Those that it has; however many it says.
    pub fn legs(&self) -> &[Leg] {
        self.legs.get(..self.used as usize).unwrap_or(&self.legs)
    }
}

/// Flows that drain alike: over the same links, with the same bound and penalty, so at the same rate.
#[derive(Copy, Clone, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Class {
    /// When the first of them ends, if nothing changes.
    pub at: u64,
    /// When each of them had drained `drained`, since there have been any.
    pub since: u64,
    pub drained: f64,
    /// Bytes a second, of each.
    pub rate: f64,
    /// The new one, while shares are worked out.
    pub share: f64,
    pub bound: f64,
    pub penalty: f64,
    pub look: u64,
    /// The one that ends first.
    pub root: u32,
    pub count: u32,
    pub place: u32,
    pub chain: u32,
    pub reserved: u32,
    pub used: u32,
    pub uses: [Use; MOST_USES],
}

impl Class {
    /// Those that it has; however many it says.
    pub fn uses(&self) -> &[Use] {
        self.uses.get(..self.used as usize).unwrap_or(&self.uses)
    }
}

/// The parts of the memory.
#[derive(Debug)]
pub struct Parts<'a> {
    pub header: &'a mut Header,
    pub links: &'a mut [Link],
    pub flows: &'a mut [Flow],
    pub classes: &'a mut [Class],
    /// Slots of flows, and classes behind these, by the time of their next event.
    pub heap: &'a mut [u32],
    /// Flows that end at one time; then classes that a change may concern.
    pub concerned: &'a mut [u32],
    /// Links that it may concern, and those that have not been looked at yet.
    pub touched: &'a mut [u32],
}

/// Bytes for so many links and flows.
pub fn bytes_for(links: u32, slots: u32) -> usize {
    let (links, slots) = (links as usize, slots as usize);
    let each = size_of::<Flow>() + size_of::<Class>() + 2 * size_of::<u32>();
    size_of::<Header>() + links * (size_of::<Link>() + size_of::<u32>()) + slots * each
}

/// # Errors
/// Too little memory, or not aligned to 8.
pub fn parts(memory: &mut [u8], links: u32, slots: u32) -> Result<Parts<'_>, FlowsProblem> {
    let wanted = bytes_for(links, slots);
    if memory.len() < wanted || memory.as_ptr().align_offset(8) != 0 {
        return Err(FlowsProblem::Memory { bytes: memory.len(), wanted });
    }
    let wrong = |_| FlowsProblem::Damaged;
    let (links, slots) = (links as usize, slots as usize);
    let (header, rest) = Header::mut_from_prefix(memory).map_err(|_| FlowsProblem::Damaged)?;
    let (links_part, rest) = rest.split_at_mut(links * size_of::<Link>());
    let (flows_part, rest) = rest.split_at_mut(slots * size_of::<Flow>());
    let (classes_part, rest) = rest.split_at_mut(slots * size_of::<Class>());
    let (heap_part, rest) = rest.split_at_mut(slots * size_of::<u32>());
    let (concerned_part, rest) = rest.split_at_mut(slots * size_of::<u32>());
    let touched_part = &mut rest[..links * size_of::<u32>()];
    fn cast<T: FromBytes + IntoBytes + Immutable + KnownLayout>(part: &mut [u8]) -> Result<&mut [T], ()> {
        <[T]>::mut_from_bytes(part).map_err(|_| ())
    }
    Ok(Parts {
        header,
        links: cast(links_part).map_err(wrong)?,
        flows: cast(flows_part).map_err(wrong)?,
        classes: cast(classes_part).map_err(wrong)?,
        heap: cast(heap_part).map_err(wrong)?,
        concerned: cast(concerned_part).map_err(wrong)?,
        touched: cast(touched_part).map_err(wrong)?,
    })
}
