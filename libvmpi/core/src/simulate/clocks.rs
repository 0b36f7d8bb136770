//! What a program of a simulated job is told of the time, and how it sleeps: in virtual time, without waiting.

use super::{compute, look, now, spend};
use crate::lock;
use std::sync::atomic::Ordering;

/// Virtual time begins at a whole second, the same in each run, long after the epoch of CLOCK_REALTIME: 2020-01-01 00:00 UTC.
pub const EPOCH_S: u64 = 1_577_836_800;

/// Picoseconds since the job's start, as the program may know; `None`: time is real, or it is MPI itself that asks.
pub fn told() -> Option<u64> {
    now()?;
    lock::is_outside().then(look)
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
