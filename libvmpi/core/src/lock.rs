//! The entry lock, and waiting with several threads in MPI.
//!
//! Without MPI_THREAD_MULTIPLE the lock is nothing. With it, one thread at a time is inside MPI; a thread that must
//! wait lets others in. The rank as a whole is suspended by one of the waiting threads, only while no thread is inside
//! and all waiting ones have seen the last change; a thread that enters then makes the rank READY again and
//! waits until it runs.

use crate::process;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use vmpi_shared::sched;

static THREADED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State { held: false, suspended: false, entering: 0, waiters: Vec::new() });
static CHANGED: Condvar = Condvar::new();
static CHANGES: AtomicU64 = AtomicU64::new(0);

struct State {
    held: bool,
    /// A thread has the rank suspended.
    suspended: bool,
    /// Threads that want in: the rank is not suspended (again) before they have been.
    entering: u32,
    /// Waiting threads and the number of changes that each has seen.
    waiters: Vec<(i32, u64)>,
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Held by every entry point while it runs.
pub struct Entered {
    locked: bool,
}

/// Take the entry lock (free unless the program asked for MPI_THREAD_MULTIPLE). Re-entrant.
#[inline]
pub fn enter() -> Entered {
    if THREADED.load(Ordering::Relaxed) {
        enter_threaded();
        Entered { locked: true }
    } else {
        Entered { locked: false }
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            leave_threaded();
        }
    }
}

pub(crate) fn set_threaded(threaded: bool) {
    THREADED.store(threaded, Ordering::Relaxed);
}

pub(crate) fn is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed)
}

#[cold]
fn enter_threaded() {
    if DEPTH.get() == 0 {
        let mut state = STATE.lock().unwrap();
        state.entering += 1;
        loop {
            if state.held {
                state = CHANGED.wait(state).unwrap();
            } else if state.suspended {
                // The suspender, once resumed, clears `suspended` without needing the entry lock.
                sched::wake(process::node(), process::endpoint_rank());
                state = CHANGED.wait(state).unwrap();
            } else {
                break;
            }
        }
        state.entering -= 1;
        state.held = true;
    }
    DEPTH.set(DEPTH.get() + 1);
}

#[cold]
fn leave_threaded() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        STATE.lock().unwrap().held = false;
        CHANGED.notify_all();
    }
}

/// Changes so far: a waiting thread reads this before it looks whether its wait is over.
pub(crate) fn changes() -> u64 {
    CHANGES.load(Ordering::Relaxed)
}

/// Something has completed or arrived: every waiting thread must look again before the rank may be suspended.
pub(crate) fn note_change() {
    if is_threaded() {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Wait until something has changed for this rank since `seen` was read. With one thread, `suspend` it. With several,
/// let others in; the rank is suspended by a thread that finds that all waiting threads have seen the last change.
pub(crate) fn wait_outside(seen: u64, suspend: impl FnOnce()) {
    if !is_threaded() {
        return suspend();
    }
    let depth = DEPTH.replace(0);
    let me = process::thread_id();
    let mut state = STATE.lock().unwrap();
    state.held = false;
    state.waiters.push((me, seen));
    CHANGED.notify_all();
    while changes() == seen {
        if !state.held && !state.suspended && state.entering == 0 && state.waiters.iter().all(|(_, s)| *s == seen) {
            state.suspended = true;
            drop(state);
            suspend();
            state = STATE.lock().unwrap();
            state.suspended = false;
            note_change();
            CHANGED.notify_all();
            break;
        }
        state = CHANGED.wait(state).unwrap();
    }
    // Come back in. Registered as one that has not seen the last change, this thread keeps others from suspending.
    while state.held || state.suspended {
        state = CHANGED.wait(state).unwrap();
    }
    state.waiters.retain(|(thread, _)| *thread != me);
    state.held = true;
    drop(state);
    DEPTH.set(depth);
}
