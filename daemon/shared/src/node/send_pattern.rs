//! Which way a rank sends. Where all its messages go to one rank, as round a ring or down a pipeline, they gather if that one runs next; where it
//! exchanges with neighbours nothing does.

use crate::mem::sync::{AtomicU32, Ordering::Relaxed};

/// So many messages in a row to one rank make a course.
const SENDS_OF_ONE_WAY: u32 = 8;

/// To whom the rank of this process has sent lately.
#[derive(Default)]
pub struct SendPattern {
    /// Rank + 1 to which it last sent.
    heading: AtomicU32,
    /// How many more messages it takes, all to that one, until all count as going there.
    turning: AtomicU32,
}

impl SendPattern {
    #[inline(always)]
    pub fn note_send(&self, to: u32) {
        if self.heading.load(Relaxed) != to + 1 {
            self.heading.store(to + 1, Relaxed);
            self.turning.store(SENDS_OF_ONE_WAY, Relaxed);
        }
        let turning = self.turning.load(Relaxed);
        if turning != 0 {
            self.turning.store(turning - 1, Relaxed);
        }
    }

    /// Has it sent to one rank only?
    #[inline(always)]
    pub fn is_one_way(&self) -> bool {
        self.turning.load(Relaxed) == 0
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_kept_until_the_next_turning() {
        let send_pattern = SendPattern::default();
        let one_way_after = |sends: &[u32]| {
            sends.iter().for_each(|to| send_pattern.note_send(*to));
            send_pattern.is_one_way()
        };
        assert!(!one_way_after(&[1, 2, 1, 2, 1, 2, 1, 2, 1, 2]));
        assert!(!one_way_after(&[1; SENDS_OF_ONE_WAY as usize - 1]));
        assert!(one_way_after(&[1]));
        assert!(one_way_after(&[1; 100]));
        assert!(!one_way_after(&[2]));
        assert!(!one_way_after(&[1; 4]));
    }
}
