//! What a rank remembers of its polls that found nothing (`poll`).

use std::time::Duration;

/// What a rank's polls know of each other.
#[derive(Default)]
pub(super) struct Polls {
    pub(super) count: u32,
    /// `count` at the first one of this turn, and which turn (`RankDescriptor::switches`).
    pub(super) first: u32,
    pub(super) turn: u64,
    /// The READY ranks of the core when they were looked at: none that needed to run. 0: none at all.
    pub(super) ready: u64,
    /// When the last close look was, and since when the rank has done nothing but poll (ticks); `count` at that look.
    pub(super) looked_at: u64,
    pub(super) since: u64,
    pub(super) looked: u32,
    /// The CPU time that the rank had used when it last seemed to have worked, and `count` then.
    pub(super) used: Duration,
    pub(super) counted: u32,
}
