//! Is what the program does with MPI correct? (`vmpirun --check`)
//!
//! Nothing of this is on the way of a call while it is off: who checks sets flags that the calls ask anyway (`tool::event`, `RankDescriptor::monitor`), and is called from the cold side of
//! those. Reading order: this file (how much), `sites` (where the program has called), `made` (objects and where they were made), `signature` (what a message is
//! made of), `tell` (what has been found), `board` (where the ranks of a node compare), `calls` and `far` (collective calls, also on other nodes), then `p2p::checked`, `coll::checked`,
//! `rma::checked`, and `at_end` (MPI_Finalize).

pub(crate) mod at_end;
pub(crate) mod board;
pub(crate) mod calls;
pub(crate) mod far;
pub(crate) mod made;
pub(crate) mod signature;
pub(crate) mod sites;
pub(crate) mod sums;
pub(crate) mod tell;

use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::control::Check;

static LEVEL: AtomicU32 = AtomicU32::new(Check::Off as u32);

/// From now on so much is checked.
pub(crate) fn set(level: Check) {
    LEVEL.store(level as u32, Ordering::Relaxed);
}

#[inline]
pub(crate) fn is_on() -> bool {
    LEVEL.load(Ordering::Relaxed) != Check::Off as u32
}

#[inline]
pub(crate) fn is_full() -> bool {
    LEVEL.load(Ordering::Relaxed) == Check::Full as u32
}
