//! What the shortest ways ask before they leave out the rest: words of this process that `request` keeps.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the last poll has missed (`request::poll_again` says how it is written); 0: nothing. Used by the thread that is inside.
pub(crate) static MISSED: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Something may change now: MPI is entered.
#[inline]
pub(crate) fn forget_missed() {
    MISSED[0].store(0, Ordering::Relaxed);
}

/// Nonblocking collectives under way. Changed by the thread that is inside.
static COLLECTIVES: AtomicU32 = AtomicU32::new(0);

/// Is there a nonblocking collective that this rank must go on with while it waits?
#[inline]
pub(crate) fn collectives_under_way() -> bool {
    COLLECTIVES.load(Ordering::Relaxed) != 0
}

/// So many are under way from now on.
pub(crate) fn set_collectives(count: usize) {
    COLLECTIVES.store(count as u32, Ordering::Relaxed);
}
