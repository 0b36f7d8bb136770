//! Signals from outside while something is guarded and this thread is in MPI.
//!
//! A handler of the program's may touch what is guarded, and in the middle of a step of MPI's nobody could wait for that. So these signals are held back there, and come
//! where a wait looks again ([`come`]) and when the call is over ([`release`]). Only in a program that has such handlers.

use super::signals;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static HELD: AtomicBool = AtomicBool::new(false);
/// The program's mask meanwhile.
static MASK: AtomicU64 = AtomicU64::new(0);
static NOTED: OnceLock<fn()> = OnceLock::new();

/// What is to be called when signals are held back inside MPI, so that they are let go at the end of the call.
pub fn set_note(note: fn()) {
    let _ = NOTED.set(note);
}

/// May a handler of the program's run while something is guarded? Known from the first guard on.
pub fn may_come() -> bool {
    signals::may_come()
}

#[inline(always)]
pub fn is_held() -> bool {
    HELD.load(Relaxed)
}

/// Hold them back. True: they were not before.
pub fn hold() -> bool {
    may_come() && !is_held() && {
        note(signals::hold_from_outside());
        true
    }
}

/// All signals are held back for a step: those from outside also after it, if one may come.
pub(super) fn go_on(step: &mut signals::Held) {
    if may_come() && !is_held() {
        note(step.go_on());
    }
}

/// They are held back already, and this is the program's mask.
fn note(mask: u64) {
    MASK.store(mask, Relaxed);
    HELD.store(true, Relaxed);
    if let Some(note) = NOTED.get() {
        note();
    }
}

/// Let them come from now on.
pub fn release() {
    if HELD.swap(false, Relaxed) {
        signals::set_to(MASK.load(Relaxed));
    }
}

/// Let those come that have been held back, and hold them back again.
pub fn come() {
    release();
    hold();
}

/// Is there one that would come but for this?
pub fn is_pending() -> bool {
    is_held() && signals::pending() & !MASK.load(Relaxed) != 0
}
