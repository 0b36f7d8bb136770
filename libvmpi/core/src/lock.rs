//! The entry lock, and waiting with several threads in MPI.
//!
//! Without MPI_THREAD_MULTIPLE the lock is nothing but a look whether this is the thread that has used MPI so far ([`OWNER`]). Should another one come all
//! the same (with MPI_THREAD_SERIALIZED it may; Debian's PT-Scotch does under MPI_Init), it waits until the owner is outside, and from then on the
//! lock is taken seriously. SYNC Q: the owner says that it is inside and then looks whether the lock counts; who comes says that it does, has all
//! threads of the process pass a barrier (membarrier), and then looks whether the owner is inside. Death story: both are threads of one process.
//!
//! With MPI_THREAD_MULTIPLE, one thread at a time is inside MPI; a thread that must
//! wait lets others in. The rank as a whole is suspended by one of the waiting threads, only while no thread is inside
//! or on its way in and all waiting ones have seen the last change; a thread that wants in then makes the rank READY
//! again and waits until it runs. A thread that has let others pass several times goes first.
//!
//! When the last call of a rank is left, its queues are lent to those who deliver to it (`endpoint::strong_progress`), and taken back at the next.

use crate::fast_path;
use crate::overlap::guard::{self, held};
use crate::process::{self, endpoint, scheduling_point};
use crate::simulate;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use vmpi_shared::sched;

/// True until the first user of MPI says which threads there are: some calls are allowed before from any of them.
static THREADED: AtomicBool = AtomicBool::new(true);
/// The thread that enters without the lock, while there is no other (`this_thread`); 0: none does.
static OWNER: AtomicUsize = AtomicUsize::new(0);
/// Its calls inside each other. Changed by it.
static INSIDE: AtomicU32 = AtomicU32::new(0);
static STATE: Mutex<State> = Mutex::new(State::new());
static CHANGED: Condvar = Condvar::new();
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Calls inside each other (the program's callbacks call MPI, too), those of threads that wait included. Changed by the thread inside.
static CALLS: AtomicU32 = AtomicU32::new(0);
/// What is to be seen to when MPI is entered: these bits. Changed by the thread inside.
static DUE: AtomicU8 = AtomicU8::new(0);
/// The queues are lent.
const LENT: u8 = 1;
/// Calls have returned before their messages were over (`overlap`).
pub(crate) const LEFT: u8 = 2;
/// Requests of large messages have been started, a wait for which may be left behind.
pub(crate) const LARGE: u8 = 4;
/// Something else is to be called at each entry (`on_entry`).
const ENTRY: u8 = 8;
static ON_ENTRY: OnceLock<fn()> = OnceLock::new();
/// What waits for the calls that have been left behind: a call that does not say what it touches begins with it.
static ON_RETURN: OnceLock<fn()> = OnceLock::new();

/// How long a thread waits for the owner before it says so.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// A number that each thread of this process has for itself: not 0.
#[inline]
fn this_thread() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let own: usize;
        // SAFETY: the first word of a thread's control block is its address (x86-64 psABI); read, nothing else.
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) own, options(nostack, preserves_flags, readonly)) };
        own
    }
    #[cfg(not(target_arch = "x86_64"))]
    DEPTH.with(|depth| std::ptr::from_ref(depth) as usize)
}

/// Held by every entry point while it runs.
pub struct Entered {
    locked: bool,
}

/// Take the entry lock (free unless the program asked for MPI_THREAD_MULTIPLE). Re-entrant.
#[inline]
pub fn enter() -> Entered {
    enter_with(settle)
}

/// As `enter`, for a call that sees itself to what has been left behind (`overlap::make_way`).
#[inline(always)]
pub fn enter_with(see_to: impl FnOnce()) -> Entered {
    let locked = !enter_alone();
    if locked {
        enter_threaded();
    }
    CALLS.store(CALLS.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    fast_path::forget_missed();
    if DUE.load(Ordering::Relaxed) != 0 {
        see_to_what_is_due(see_to);
    }
    Entered { locked }
}

#[cold]
#[inline(never)]
fn see_to_what_is_due(see_to: impl FnOnce()) {
    if DUE.load(Ordering::Relaxed) & LEFT != 0 {
        // From here on a handler of the program's could not wait for what it touches.
        held::hold();
    }
    let due = DUE.fetch_and(!LENT, Ordering::Relaxed);
    if due & LENT != 0 {
        reclaim_queues();
    }
    if due & ENTRY != 0 && CALLS.load(Ordering::Relaxed) == 1 && process::is_active() {
        process::scheduling_point();
        if let Some(entered) = ON_ENTRY.get() {
            entered();
        }
    }
    if due & !(LENT | ENTRY) != 0 && CALLS.load(Ordering::Relaxed) == 1 && process::is_active() {
        process::scheduling_point();
        see_to();
        if !guard::any_armed() {
            held::release();
        }
    }
}

/// In a wait, between two looks: the program's signals that have been held back come now, and their handlers find MPI left.
#[cold]
pub(crate) fn let_signals_come() {
    let (inside, calls) = (INSIDE.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed));
    let called = process::called();
    INSIDE.store(0, Ordering::Relaxed);
    CALLS.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    held::come();
    compiler_fence(Ordering::SeqCst);
    INSIDE.store(inside, Ordering::Relaxed);
    CALLS.store(calls, Ordering::Relaxed);
    if DUE.fetch_and(!LENT, Ordering::Relaxed) & LENT != 0 {
        reclaim_queues();
    }
    process::calling(called);
    process::scheduling_point();
}

fn settle() {
    if let Some(settle) = ON_RETURN.get() {
        settle();
    }
}

/// What is to be called where calls have been left behind and one begins that does not say what it touches.
pub(crate) fn on_return(settle: fn()) {
    let _ = ON_RETURN.set(settle);
}

/// What is to be called at each entry that is not inside another one.
pub(crate) fn on_entry(entered: fn()) {
    let _ = ON_ENTRY.set(entered);
    note_due(ENTRY);
}

pub(crate) fn note_due(what: u8) {
    DUE.fetch_or(what, Ordering::Relaxed);
}

pub(crate) fn note_done(what: u8) {
    DUE.fetch_and(!what, Ordering::Relaxed);
}

/// The queues have been lent, or in virtual time the program has computed.
#[inline(never)]
fn reclaim_queues() {
    if simulate::is_on() {
        return simulate::entered();
    }
    endpoint().reclaim_queues();
}

/// Enter without the lock, if this is the only thread that uses MPI.
#[inline]
fn enter_alone() -> bool {
    if OWNER.load(Ordering::Relaxed) != this_thread() {
        return false;
    }
    let inside = INSIDE.load(Ordering::Relaxed);
    INSIDE.store(inside + 1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst); // SYNC Q: the processor's part is the other's membarrier
    if inside == 0 && THREADED.load(Ordering::Relaxed) {
        INSIDE.store(0, Ordering::Release);
        return false;
    }
    true
}

/// Would this thread get the lock without ending another one's use of MPI without it? Who only annotates what it does must not wait for that.
pub(crate) fn is_open_to_this_thread() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    owner == 0 || owner == this_thread()
}

/// Is no thread inside MPI, nor waits in it?
pub(crate) fn is_outside() -> bool {
    CALLS.load(Ordering::Relaxed) == 0
}

/// Is this thread, the only one that uses MPI, at work in it? Still where [`is_outside`] by then: who leaves MPI lends its queues when no call counts any more.
pub(crate) fn is_at_work() -> bool {
    INSIDE.load(Ordering::Relaxed) != 0 || !is_outside()
}

/// Do something for the thread that uses MPI without the lock, and that is outside. It takes no queues back. False for any other.
#[inline]
pub(crate) fn alone(look: impl FnOnce() -> bool) -> bool {
    if INSIDE.load(Ordering::Relaxed) != 0 || !enter_alone() {
        return false;
    }
    let result = look();
    INSIDE.store(0, Ordering::Release);
    result
}

/// Another thread than the one that has used MPI without the lock: from now on the lock counts, once that one is outside.
#[cold]
fn end_ownership() {
    static ENDING: Mutex<()> = Mutex::new(());
    let _one = ENDING.lock().unwrap();
    if OWNER.load(Ordering::Relaxed) == 0 {
        return;
    }
    THREADED.store(true, Ordering::SeqCst);
    all_threads_pass_a_barrier();
    let (begun, mut told) = (Instant::now(), false);
    while INSIDE.load(Ordering::Acquire) != 0 {
        std::thread::sleep(Duration::from_micros(100));
        if !told && begun.elapsed() > PATIENCE {
            told = true;
            eprintln!(
                "vmpi: rank {}: a thread waits to call MPI while another one is inside it. The program has one thread at a time there: \
                 it has called MPI_Init, or was granted less than MPI_THREAD_MULTIPLE (MPI_Query_thread); OMPI_MPI_THREAD_LEVEL=3 makes MPI_Init ask for MPI_THREAD_MULTIPLE",
                process::world().0
            );
        }
    }
    OWNER.store(0, Ordering::SeqCst);
}

/// Every other thread of this process that runs has a full memory barrier somewhere between the begin and the end of this.
fn all_threads_pass_a_barrier() {
    const GLOBAL: libc::c_int = 1;
    const PRIVATE_EXPEDITED: libc::c_int = 8;
    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 16;
    // SAFETY: a system call without pointers.
    let ask = |command: libc::c_int| unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 };
    let expedited = ask(REGISTER_PRIVATE_EXPEDITED) && ask(PRIVATE_EXPEDITED);
    if !expedited && !ask(GLOBAL) {
        // No such call (Linux before 4.14, or forbidden): an instruction is not under way for so long.
        std::thread::sleep(Duration::from_millis(10));
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        let calls = CALLS.load(Ordering::Relaxed) - 1;
        CALLS.store(calls, Ordering::Relaxed);
        let lends = calls == 0 && process::is_active() && endpoint().has_to_lend();
        if self.locked || lends {
            leave(self.locked, lends);
        } else {
            leave_alone();
        }
    }
}

/// What few calls end with. Apart, so that the others need to keep nothing for it.
#[inline(never)]
fn leave(locked: bool, lends: bool) {
    if lends {
        let simulated = simulate::is_on();
        if simulated || endpoint().offer_queues() {
            note_due(LENT);
        }
        if simulated {
            simulate::left();
        }
    }
    if locked {
        leave_threaded();
    } else {
        leave_alone();
    }
}

#[inline(always)]
fn leave_alone() {
    INSIDE.store(INSIDE.load(Ordering::Relaxed) - 1, Ordering::Release);
}

/// May several threads use MPI from now on? If not, this one alone does.
pub(crate) fn set_threaded(threaded: bool) {
    OWNER.store(if threaded { OWNER.load(Ordering::Relaxed) } else { this_thread() }, Ordering::Relaxed);
    THREADED.store(threaded, Ordering::SeqCst);
}

/// May other threads come in while this one waits? Not while the owner is inside without the lock.
pub(crate) fn is_threaded() -> bool {
    THREADED.load(Ordering::Relaxed) && INSIDE.load(Ordering::Relaxed) == 0
}

#[cold]
fn enter_threaded() {
    if OWNER.load(Ordering::Relaxed) != 0 {
        end_ownership();
    }
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
    let events = endpoint.inbox().ends.events.load(Ordering::Relaxed);
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

/// Do something that may sleep in the kernel: until it is done, others may have this rank's core (and, with several threads, MPI).
pub(crate) fn blocking<T>(f: impl FnOnce() -> T) -> T {
    if is_threaded() {
        return outside(f);
    }
    let endpoint = endpoint();
    sched::take_core(&endpoint.node, endpoint.me);
    let result = f();
    scheduling_point();
    result
}
