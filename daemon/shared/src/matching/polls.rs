//! What a rank remembers of its polls that found nothing (`poll`).

use std::time::Duration;

/// What a rank's polls know of each other.
#[derive(Default)]
pub(crate) struct Polls {
    pub(crate) count: u32,
    /// `count` at the first one of this turn, and which turn (`RankDescriptor::switches`).
    pub(crate) first: u32,
    pub(crate) turn: u64,
    /// The READY ranks of the core when they were looked at: none that needed to run. 0: none at all.
    pub(crate) ready: u64,
    /// When the last close look was, and since when the rank has done nothing but poll (ticks); `count` at that look.
    pub(crate) looked_at: u64,
    pub(crate) since: u64,
    pub(crate) looked: u32,
    /// The CPU time that the rank had used when it last seemed to have worked, and `count` then.
    pub(crate) used: Duration,
    pub(crate) counted: u32,
}
