//! A carrier that sleeps beside a rank that computes runs as soon as it wakes up.
//!
//! Short slices (`crate::time_slice`) are all that any process may ask for, and with them a carrier that wakes up still waits for the kernel's next tick (up to
//! 4 ms) in one of ten iterations of `tests/programs/bench/overlap.c`: 3 ms an iteration in all where computing and transfer take equally long. A real-time
//! process of the lowest priority never waits. But only who may ask for that gets it (root, or a limit RLIMIT_RTPRIO of 1 or more), and only while it sleeps
//! and for what it then wakes up for. While it looks on by sched_yield, or has more to send than the network takes at once, it is an ordinary process:
//! one of real time would leave nothing to the rank beside it.

use crate::time_slice::{self, SchedAttr};

/// How this process is scheduled.
#[derive(Default)]
pub struct Realtime {
    /// As an ordinary process, while it is another one.
    ordinary: Option<SchedAttr>,
    /// The kernel has said no, or somebody has chosen how this process is scheduled.
    refused: bool,
}

impl Realtime {
    /// From now on this process runs as soon as it wakes up, or in its turn.
    pub fn be(&mut self, urgent: bool) {
        if self.refused || urgent == self.ordinary.is_some() {
            return;
        }
        let wanted = match self.ordinary.take() {
            Some(ordinary) => Some(ordinary),
            None => {
                self.ordinary = time_slice::read();
                self.ordinary.map(SchedAttr::real_time)
            }
        };
        if wanted.is_none_or(|wanted| time_slice::write(&wanted).is_err()) {
            *self = Realtime { ordinary: None, refused: true };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Urgent or, where the kernel refuses that, as before; and then as before.
    #[test]
    fn what_was_before_comes_back() {
        let before = time_slice::read();
        let mut realtime = Realtime::default();
        for _ in 0..2 {
            realtime.be(true);
            assert!(
                realtime.refused && time_slice::read() == before || !realtime.refused && time_slice::read().is_none()
            );
            realtime.be(false);
            assert_eq!(time_slice::read(), before);
        }
    }
}
