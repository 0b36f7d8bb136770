//! Ranks with a message in their inbox for which memory had ended, and has been given back since by another rank.
//!
//! Who gives it back knows nobody who waits for it: a receiver may do so anywhere between two calls. So the daemon looks, while somebody has said that he found none.
//! Who says so after the daemon has taken the wish is heard at the next look; who dies wants nothing any more, and is not among the living.

use std::time::{Duration, Instant};

use vmpi_shared::endpoint::inspect;
use vmpi_shared::sched;

use crate::job::{Job, Phase};

/// Between two looks, while there is something to look for.
const PAUSE: Duration = Duration::from_millis(10);

impl Job {
    /// If there is memory again, have those look into their inboxes who left something there and wait.
    pub fn wake_declined(&self) {
        if self.phase != Phase::Running || !self.segment.chunks().answer_wish() {
            return;
        }
        for rank in self.living().filter(|rank| inspect::has_declined(&self.segment, *rank)) {
            sched::wake(&self.node, rank);
        }
    }

    /// When to look next.
    pub(super) fn next_declined(&self) -> Option<Instant> {
        self.segment.chunks().is_wanted().then(|| Instant::now() + PAUSE)
    }
}
