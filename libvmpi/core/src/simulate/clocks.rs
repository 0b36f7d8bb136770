//! What a program of a simulated job is told of the time, and how it sleeps: in virtual time, without waiting.
//!
//! A loop that looks at a clock until it has gone on must end also where computation takes no time: looks in a row, without a call of MPI in between, take theirs
//! from the [`FREE_LOOKS`]th on.

use super::{compute, now, spend};
use crate::lock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// So many looks in a row take no time: who measures something looks once before it and once after.
const FREE_LOOKS: u32 = 16;
/// What one more takes, in picoseconds.
const LOOK: u64 = 100_000;
/// Virtual time begins at a whole second, the same in each run, long after the epoch of CLOCK_REALTIME: 2020-01-01 00:00 UTC.
pub const EPOCH_S: u64 = 1_577_836_800;

/// The clock when it was looked at last, and looks since it has changed otherwise.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// Picoseconds since the job's start, as the program may know; `None`: time is real, or it is MPI itself that asks.
pub fn told() -> Option<u64> {
    now()?;
    lock::is_outside().then(look)
}

/// The same inside MPI, of a call that tells the time.
pub(crate) fn look() -> u64 {
    compute::catch_up();
    let Some(mut at) = now() else { return 0 };
    if LAST.load(Ordering::Relaxed) == at {
        if LOOKS.fetch_add(1, Ordering::Relaxed) >= FREE_LOOKS {
            spend(LOOK);
            at += LOOK;
        }
    } else {
        LOOKS.store(0, Ordering::Relaxed);
    }
    LAST.store(at, Ordering::Relaxed);
    at
}

/// Sleep for so many picoseconds. False: time is real.
pub fn sleep(time: u64) -> bool {
    if now().is_none() || !lock::is_outside() {
        return false;
    }
    compute::catch_up();
    spend(time);
    if let Some(mine) = super::MINE.get() {
        mine.segment.rank(mine.me).waited.fetch_add(time, Ordering::Relaxed);
    }
    true
}

/// CPU time of the rank: what it has computed, and what its calls have kept it busy; `None`: time is real.
pub fn cpu() -> Option<u64> {
    let told = told()?;
    let mine = super::MINE.get()?;
    let waited = mine.segment.rank(mine.me).waited.load(Ordering::Relaxed);
    Some(told.saturating_sub(waited))
}
