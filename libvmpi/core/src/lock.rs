//! The entry lock, and waiting with several threads in MPI.
//!
//! Without MPI_THREAD_MULTIPLE the lock is nothing. With it, one thread at a time is inside MPI; a thread that must
//! wait lets others in. The rank as a whole is suspended by one of the waiting threads, only while no thread is inside
//! or on its way in and all waiting ones have seen the last change; a thread that wants in then makes the rank READY
//! again and waits until it runs. A thread that has let others pass several times goes first.
//!
//! When the last call of a rank is left, its queues are lent to those who deliver to it (`matching::lend`), and taken back at the next.

use crate::process::{self, endpoint};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use vmpi_shared::sched;

/// True until the first user of MPI says which threads there are: some calls are allowed before from any of them.
static THREADED: AtomicBool = AtomicBool::new(true);
static STATE: Mutex<State> = Mutex::new(State::new());
static CHANGED: Condvar = Condvar::new();
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Calls inside each other (the program's callbacks call MPI, too), those of threads that wait included. Changed by the thread inside.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// The queues are lent. Changed by the thread inside.
static LENT: AtomicBool = AtomicBool::new(false);

/// So many threads may enter before one that is waiting for its turn.
const MAX_BARGES: u32 = 8;

struct State {
    /// A thread is inside.
    held: bool,
    /// A thread has the rank suspended.
    suspended: bool,
    /// Threads that want in.
    entering: u32,
    /// Threads that came in before those, since one of those last did.
    barged: u32,
    /// Threads asleep on `CHANGED`.
    sleeping: u32,
    /// Waiting threads and the number of changes that each has seen.
    waiters: Vec<(i32, u64)>,
}

impl State {
    const fn new() -> State {
        State { held: false, suspended: false, entering: 0, barged: 0, sleeping: 0, waiters: Vec::new() }
    }

    fn is_free(&self) -> bool {
        !self.held && !self.suspended
    }
}

fn sleep(mut state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    state.sleeping += 1;
    state = CHANGED.wait(state).unwrap();
    state.sleeping -= 1;
    state
}

/// Something that a sleeping thread may wait for is different now.
fn notify(state: &State) {
    if state.sleeping > 0 {
        CHANGED.notify_all();
    }
}

/// Become the thread inside.
fn come_in(mut state: MutexGuard<'static, State>) -> MutexGuard<'static, State> {
    if state.is_free() && (state.entering == 0 || state.barged < MAX_BARGES) {
        state.barged += u32::from(state.entering > 0);
    } else {
        state.entering += 1;
        loop {
            if state.suspended {
                // The suspender, once resumed, says so without needing the entry lock.
                sched::wake(process::node(), process::endpoint_rank());
            }
            state = sleep(state);
            if state.is_free() {
                break;
            }
        }
        state.entering -= 1;
        state.barged = 0;
    }
    state.held = true;
    state
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
    let locked = THREADED.load(Ordering::Relaxed);
    if locked {
        enter_threaded();
    }
    CALLS.store(CALLS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    if LENT.load(Ordering::Relaxed) {
        LENT.store(false, Ordering::Relaxed);
        endpoint().take_back();
    }
    Entered { locked }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        let calls = CALLS.load(Ordering::Relaxed) - 1;
        CALLS.store(calls, Ordering::Relaxed);
        if calls == 0 && process::is_active() {
            LENT.store(endpoint().lend(), Ordering::Relaxed);
        }
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
        drop(come_in(STATE.lock().unwrap()));
    }
    DEPTH.set(DEPTH.get() + 1);
}

#[cold]
fn leave_threaded() {
    DEPTH.set(DEPTH.get() - 1);
    if DEPTH.get() == 0 {
        let mut state = STATE.lock().unwrap();
        state.held = false;
        notify(&state);
    }
}

/// Changes so far: a waiting thread reads this before it looks whether its wait is over.
pub(crate) fn changes() -> u64 {
    if !is_threaded() {
        return 0;
    }
    let endpoint = endpoint();
    // What deliverers and other threads of this rank did to its queues counts wherever it was taken in.
    let events = endpoint.job.inbox(endpoint.me).ends.events.load(Ordering::Relaxed);
    CHANGES.load(Ordering::Relaxed).wrapping_add(events).wrapping_add(endpoint.job.changes())
}

/// Something has ended that the queues do not know of: every waiting thread must look again before the rank may be
/// suspended.
pub(crate) fn note_change() {
    if is_threaded() {
        CHANGES.fetch_add(1, Ordering::Relaxed);
    }
}

/// Let other threads in while `f` runs (which must not use MPI).
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    let depth = DEPTH.replace(0);
    let mut state = STATE.lock().unwrap();
    state.held = false;
    notify(&state);
    drop(state);
    let result = f();
    drop(come_in(STATE.lock().unwrap()));
    DEPTH.set(depth);
    process::scheduling_point();
    result
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
    notify(&state);
    while changes() == seen {
        if state.is_free() && state.entering == 0 && state.waiters.iter().all(|(_, s)| *s == seen) {
            state.suspended = true;
            let waiting = state.waiters.len() as u32;
            process::node().rank(process::endpoint_rank()).waiting_threads.store(waiting, Ordering::SeqCst);
            drop(state);
            suspend();
            state = STATE.lock().unwrap();
            state.suspended = false;
            note_change();
            notify(&state);
            break;
        }
        state = sleep(state);
    }
    // Registered as one that has not seen the last change, this thread keeps others from suspending.
    state = come_in(state);
    state.waiters.retain(|(thread, _)| *thread != me);
    drop(state);
    DEPTH.set(depth);
}
