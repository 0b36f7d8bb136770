//! When the looks at a job's health are due: they come with the watchdog's, four times a second at most.

use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(240);

/// Looks of one kind.
pub struct Pace(Instant);

impl Pace {
    pub fn new(now: Instant) -> Pace {
        Pace(now + PAUSE)
    }

    /// Is it time to? If so, the next one is due after a pause.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.0;
        if due {
            self.0 = now + PAUSE;
        }
        due
    }

    pub fn next(&self) -> Instant {
        self.0
    }
}
