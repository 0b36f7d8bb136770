//! The time between two calls of MPI: what the rank has computed, on the simulated machine, and what its clock says by then.

use super::{MINE, RELAXED, now, spend};
use crate::errors::{Class, Error, Result};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use vmpi_shared::matching::tend::Endpoint;
use vmpi_shared::simulate::Compute;

/// CPU time of this thread when it left MPI last, in nanoseconds; `INSIDE` while it is in MPI, or none is measured.
static LEFT_AT: AtomicU64 = AtomicU64::new(INSIDE);
const INSIDE: u64 = u64::MAX;
/// The thread that did.
static LEFT_BY: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static MARK: u8 = const { 0 };
}

/// A number that each thread has for itself.
fn this_thread() -> usize {
    MARK.with(|mark| std::ptr::from_ref(mark) as usize)
}

pub(super) fn begin(endpoint: &mut Endpoint, compute: Compute) {
    if compute != Compute::None {
        endpoint.note_each_call();
    }
}

/// CPU time of this thread: what other ranks do on its core is not in it. By the bare call: libc's name may be this library's own (`clocks`).
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The program calls MPI: what it has computed since the last call has taken its time.
pub(crate) fn entered() {
    catch_up();
    LEFT_AT.store(INSIDE, RELAXED);
}

/// It computes from now on.
pub(crate) fn left() {
    LEFT_BY.store(this_thread(), RELAXED);
    LEFT_AT.store(cpu_ns(), RELAXED);
}

/// Bring the clock up to what the program has computed so far.
pub(super) fn catch_up() {
    let since = LEFT_AT.load(RELAXED);
    // What other threads compute goes on beside this one.
    let own = since != INSIDE && LEFT_BY.load(RELAXED) == this_thread();
    let Some(mine) = MINE.get().filter(|_| own) else { return };
    let Compute::Measured { millionths } = mine.segment.compute() else { return };
    let now = cpu_ns();
    LEFT_AT.store(now, RELAXED);
    let real = u128::from(now.saturating_sub(since)) * u128::from(millionths) / 1000;
    let took = mine.machine.compute(mine.me, u64::try_from(real).unwrap_or(u64::MAX));
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
    at
}
