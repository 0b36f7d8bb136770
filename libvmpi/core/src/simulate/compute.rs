//! The time between two calls of MPI: what the rank has computed, on the simulated machine, and what its clock says by then.

use super::{MINE, RELAXED, now, owed, spend, tape};
use crate::errors::{Class, Error, Result};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::meter::Counter;
use vmpi_shared::simulate::Compute;
use vmpi_shared::trace::called;

/// What this thread had done when it left MPI last ([`done`]); `INSIDE` while it is in MPI, or none is measured.
static LEFT_AT: AtomicU64 = AtomicU64::new(INSIDE);
const INSIDE: u64 = u64::MAX;
/// The thread that did.
static LEFT_BY: AtomicUsize = AtomicUsize::new(0);
/// What was done before the call under way; whether the clock has it; whether a tape says instead what that is.
static BEFORE: AtomicU64 = AtomicU64::new(0);
static IS_PAID: AtomicBool = AtomicBool::new(true);
static IS_REPLAYED: AtomicBool = AtomicBool::new(false);
/// Computation takes time.
static IS_MEASURED: AtomicBool = AtomicBool::new(false);
/// Of the thread that has started MPI, if computation goes by instructions.
static INSTRUCTIONS: OnceLock<Counter> = OnceLock::new();

thread_local! {
    static MARK: u8 = const { 0 };
}

/// A number that each thread has for itself.
fn this_thread() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

/// # Errors
/// What it goes by cannot be had.
pub(super) fn begin(endpoint: &mut Endpoint, compute: Compute) -> Result<()> {
    // Its clock gets what it owes when a call is over.
    endpoint.note_each_call();
    IS_MEASURED.store(compute != Compute::None, RELAXED);
    match compute {
        Compute::None => {}
        Compute::Measured { .. } => {}
        Compute::Record | Compute::Replay => {
            tape::begin(endpoint.me, compute)?;
            IS_REPLAYED.store(compute == Compute::Replay, RELAXED);
            // MPI_Init has not come by `entered`.
            IS_PAID.store(false, RELAXED);
        }
        Compute::Instructions { .. } => {
            let counter = Counter::of("instructions").map_err(|why| Error::new(Class::Other, why.to_string()))?;
            let _ = INSTRUCTIONS.set(counter);
        }
    }
    Ok(())
}

/// CPU time of this thread: what other ranks do on its core is not in it. By the bare call: libc's name may be this library's own (`clocks`).
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What this thread has done so far: nanoseconds, or instructions. Nobody asks where it was recorded.
fn done() -> u64 {
    match INSTRUCTIONS.get() {
        Some(counter) => counter.read(),
        None => cpu_ns(),
    }
}

/// The program calls MPI: what it has computed since the last call has taken its time.
pub(crate) fn entered() {
    if !IS_MEASURED.load(RELAXED) {
        return;
    }
    BEFORE.store(done_since(), RELAXED);
    IS_PAID.store(false, RELAXED);
    LEFT_AT.store(INSIDE, RELAXED);
    if !IS_REPLAYED.load(RELAXED) {
        pay();
    }
}

/// The clock has what was computed before the call under way. (A tape can tell only when the call has said its name.)
#[inline]
pub(super) fn pay() {
    if !IS_PAID.swap(true, RELAXED) {
        pay_for(called());
    }
}

#[cold]
fn pay_for(name: &'static str) {
    let Some(mine) = MINE.get() else { return };
    let before = BEFORE.swap(0, RELAXED);
    computed(match mine.segment.compute() {
        Compute::Record | Compute::Replay => tape::with(|tape| tape.call(name, before)),
        compute => nanoseconds(compute, before),
    });
}

/// It computes from now on.
pub(crate) fn left() {
    pay();
    owed::pay();
    if !IS_MEASURED.load(RELAXED) {
        return;
    }
    tape::with(|tape| tape.over(called()));
    LEFT_BY.store(this_thread(), RELAXED);
    LEFT_AT.store(done(), RELAXED);
}

/// It calls MPI no more.
pub(super) fn finish() {
    pay();
    owed::pay();
    tape::with(|tape| tape.finish(called()));
}

/// What this thread has done since it left MPI: what others do goes on beside it.
fn done_since() -> u64 {
    let since = LEFT_AT.load(RELAXED);
    let own = since != INSIDE && LEFT_BY.load(RELAXED) == this_thread();
    if own { done().saturating_sub(since) } else { 0 }
}

/// Bring the clock up to what the program has computed so far: it looks at it, or sleeps.
pub(super) fn catch_up() {
    let since = LEFT_AT.load(RELAXED);
    let own = since != INSIDE && LEFT_BY.load(RELAXED) == this_thread();
    let Some(mine) = MINE.get().filter(|_| own) else { return };
    let compute = mine.segment.compute();
    if compute == Compute::None {
        return;
    }
    let now = done();
    LEFT_AT.store(now, RELAXED);
    let done = now.saturating_sub(since);
    computed(match compute {
        Compute::Record | Compute::Replay => tape::with(|tape| tape.clock(done)),
        _ => nanoseconds(compute, done),
    });
}

/// What so much takes.
fn nanoseconds(compute: Compute, done: u64) -> u64 {
    let scaled = match compute {
        Compute::Measured { millionths } => u128::from(done) * u128::from(millionths) / 1_000_000,
        Compute::Instructions { per_second } => u128::from(done) * 1_000_000_000 / u128::from(per_second.max(1)),
        _ => u128::from(done),
    };
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The rank has computed for so many nanoseconds of this machine.
fn computed(ns: u64) {
    let Some(mine) = MINE.get().filter(|_| ns != 0) else { return };
    let took = mine.machine.compute(mine.me, ns.saturating_mul(1000));
    spend(took);
    mine.segment.rank(mine.me).computed.fetch_add(took, RELAXED);
}

/// MPIX_Compute: the rank computes for so many seconds.
///
/// # Errors
/// `Class::Arg` if that is no time; `Class::UnsupportedOperation` where time is real.
pub fn compute(seconds: f64) -> Result<()> {
    catch_up();
    let Some(mine) = MINE.get() else {
        return Err(Error::new(
            Class::UnsupportedOperation,
            "MPIX_Compute is for simulated jobs (vmpirun --simulate): here computation takes real time",
        ));
    };
    if !(0.0..1e7).contains(&seconds) {
        return Err(Error::new(Class::Arg, format!("{seconds} is no number of seconds from 0 to 10000000")));
    }
    let took = (seconds * 1e12).round() as u64;
    spend(took);
    mine.segment.rank(mine.me).computed.fetch_add(took, RELAXED);
    Ok(())
}

/// So many looks in a row take no time: who measures something looks once before it and once after.
const FREE_LOOKS: u32 = 16;
/// What one more takes, in picoseconds.
const LOOK: u64 = 100_000;
/// The clock when it was looked at last, and looks since it has changed otherwise.
static LAST: AtomicU64 = AtomicU64::new(u64::MAX);
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// This rank's clock, picoseconds since the job's start, by now.
///
/// A loop that looks at a clock until it has gone on must end also where computation takes no time: looks in a row, with nothing in between, take theirs from
/// the [`FREE_LOOKS`]th on.
pub(crate) fn look() -> u64 {
    catch_up();
    let Some(mut at) = now() else { return 0 };
    if LAST.load(RELAXED) == at {
        if LOOKS.fetch_add(1, RELAXED) >= FREE_LOOKS {
            spend(LOOK);
            at += LOOK;
        }
    } else {
        LOOKS.store(0, RELAXED);
    }
    LAST.store(at, RELAXED);
    spend(clock_cost());
    at
}

/// A look at a clock takes that, behind it.
fn clock_cost() -> u64 {
    MINE.get().map_or(0, |mine| mine.machine.rules().clock_cost)
}
