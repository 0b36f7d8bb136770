//! Is a job's shared memory still what vmpi makes of it? (SPECIFICATION 4.1: who scribbles ends its own job, with a sentence.)

use std::time::{Duration, Instant};

use vmpi_shared::job::JobSegment;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::corruption;

/// Time between two looks; they come with the watchdog's, so that an idle daemon wakes no oftener.
const PAUSE: Duration = Duration::from_millis(240);

/// What never changes in a job's two segments.
pub struct Integrity {
    node: Vec<u64>,
    job: Vec<u64>,
    next: Instant,
}

impl Integrity {
    /// Of segments that no rank has seen yet.
    pub fn of(node: &NodeSegment, job: &JobSegment) -> Integrity {
        Integrity { node: node.constant_words(), job: job.constant_words(), next: Instant::now() + PAUSE }
    }

    /// Is it time to look?
    pub fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + PAUSE;
        }
        due
    }

    /// What is wrong, in words.
    pub fn check(&self, node: &NodeSegment, job: &JobSegment, placement: &[u32]) -> Option<String> {
        if node.constant_words() != self.node || job.constant_words() != self.job {
            return Some("the header of a segment has changed".into());
        }
        corruption::find(node, placement)
    }
}
