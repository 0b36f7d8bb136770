//! Descriptors that ranks pass to each other through the daemon's socket, where they do not see each other under /proc: in containers of their own.
//!
//! One is kept until all for whom it is meant have it. Death story: what a dead rank does not take stays, a memory file at most, until the job ends.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::OwnedFd;

/// Those of one job: by who has passed it, and the number of that question.
#[derive(Default)]
pub struct Passed(HashMap<(u32, u64), Kept>);

struct Kept {
    file: OwnedFd,
    /// So many have yet to take it.
    takers: u32,
}

/// Why it cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    #[error("rank {from} has passed no descriptor with question {number}, or all have taken it")]
    NotPassed { from: u32, number: u64 },
    #[error("the descriptor that rank {from} has passed cannot be duplicated: {source}")]
    NotDuplicated { from: u32, source: io::Error },
}

impl Passed {
    /// So many are kept at a time: each is an open file of the daemon of all jobs.
    pub const MOST: usize = 1024;

    pub fn is_full(&self) -> bool {
        self.0.len() >= Passed::MOST
    }

    pub fn put(&mut self, key: (u32, u64), file: OwnedFd, takers: u32) {
        if takers > 0 {
            self.0.insert(key, Kept { file, takers });
        }
    }

    /// # Errors
    /// There is none, or too many are open.
    pub fn take(&mut self, key: (u32, u64)) -> Result<OwnedFd, TakeError> {
        let (from, number) = key;
        match self.0.entry(key) {
            Entry::Vacant(_) => Err(TakeError::NotPassed { from, number }),
            Entry::Occupied(kept) if kept.get().takers == 1 => Ok(kept.remove().file),
            Entry::Occupied(mut kept) => {
                kept.get_mut().takers -= 1;
                kept.get().file.try_clone().map_err(|source| TakeError::NotDuplicated { from, source })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use vmpi_shared::node::mark_of;

    #[test]
    fn each_taker_gets_it_and_nothing_is_kept_then() {
        let file = || memfd_create("test", MFdFlags::MFD_CLOEXEC).unwrap();
        let (one, other) = (file(), file());
        let marks = [mark_of(&one).unwrap(), mark_of(&other).unwrap()];
        let mut passed = Passed::default();
        passed.put((3, 1), one, 2);
        passed.put((4, 1), other, 1);
        passed.put((5, 1), file(), 0);
        assert_eq!(mark_of(&passed.take((3, 1)).unwrap()).unwrap(), marks[0]);
        assert_eq!(mark_of(&passed.take((4, 1)).unwrap()).unwrap(), marks[1]);
        assert_eq!(mark_of(&passed.take((3, 1)).unwrap()).unwrap(), marks[0]);
        for key in [(3, 1), (4, 1), (3, 2), (5, 1)] {
            assert!(matches!(passed.take(key), Err(TakeError::NotPassed { from, number }) if (from, number) == key));
        }
        assert!(passed.0.is_empty());
    }
}
