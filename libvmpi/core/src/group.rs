//! Groups: ordered sets of the job's ranks. (Owner: comm helper; the signatures here are the contract.)

use crate::errors::Result;
use crate::handle::Group;
use std::rc::Rc;

/// An ordered set of processes; immutable.
pub struct Members(/* private representation: a range where possible, so that huge worlds cost O(1) */);

impl Members {
    /// Ranks `first .. first + len` of the job.
    pub fn range(first: u32, len: u32) -> Members {
        todo!("{first}{len}")
    }
    pub fn list(world_ranks: Vec<u32>) -> Members {
        todo!("{world_ranks:?}")
    }
    pub fn size(&self) -> u32 {
        todo!()
    }
    /// Job-wide rank of member `rank` (in range).
    pub fn world_rank(&self, rank: u32) -> u32 {
        todo!("{rank}")
    }
    /// Rank in this group of job-wide rank `world`.
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        todo!("{world}")
    }
}

/// The group behind a handle.
pub fn get(handle: Group) -> Result<Rc<Members>> {
    todo!("{handle:?}")
}
