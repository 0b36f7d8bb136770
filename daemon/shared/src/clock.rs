//! Time stamps: the time-stamp counter where it is invariant, `clock_gettime` otherwise.
//!
//! All clocks in shared memory count ticks of the node's clock; [`Scale`] turns them into seconds.

use serde::{Deserialize, Serialize};

/// Which counter the node uses, and its rate. Written by the daemon in the node segment before any rank starts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Scale {
    /// 1: time-stamp counter, 0: CLOCK_MONOTONIC in nanoseconds.
    pub tsc: bool,
    pub ticks_per_second: f64,
}

impl Scale {
    /// Measure this machine's clock (about 5 ms when the counter is usable).
    pub fn measure() -> Scale {
        if cfg!(target_arch = "x86_64") && invariant_tsc() {
            let (first, _) = pair(true, monotonic_ns);
            while monotonic_ns() - first.1 < 5_000_000 {
                std::hint::spin_loop();
            }
            let (last, _) = pair(true, monotonic_ns);
            return Scale { tsc: true, ticks_per_second: (last.0 - first.0) as f64 * 1e9 / (last.1 - first.1) as f64 };
        }
        Scale { tsc: false, ticks_per_second: 1e9 }
    }

    #[inline]
    pub fn now(&self) -> u64 {
        ticks(self.tsc)
    }

    /// As `now`, in its place between what the program does before and after it: the processor reads its counter whenever that suits it,
    /// 50 to 80 ns off where two processors compare what they have read.
    #[inline]
    pub fn now_in_order(&self) -> u64 {
        wait_for_all_before();
        let now = self.now();
        wait_for_all_before();
        now
    }

    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }

    /// This moment, by both clocks.
    pub fn moment(&self) -> Moment {
        let ((ticks, boottime_ns), apart) = pair(self.tsc, boottime_ns);
        Moment { ticks, boottime_ns, within_ns: (self.seconds(apart) * 1e9) as u64 }
    }
}

/// A moment by the node's clock and by CLOCK_BOOTTIME, which is the same in all network namespaces of a machine.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    pub ticks: u64,
    pub boottime_ns: u64,
    /// The two were read so far apart at most.
    pub within_ns: u64,
}

/// Ticks and what another clock says in the same moment, and for how many ticks that moment lasts at most: who is interrupted between the two
/// readings tries again.
fn pair(tsc: bool, other: fn() -> u64) -> ((u64, u64), u64) {
    let read = || {
        let (before, other, after) = (ticks(tsc), other(), ticks(tsc));
        let apart = after.saturating_sub(before) / 2;
        ((before + apart, other), apart.max(1))
    };
    (0..16).map(|_| read()).min_by_key(|(_, apart)| *apart).unwrap_or_else(read)
}

#[inline]
fn ticks(tsc: bool) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if tsc {
        // SAFETY: RDTSC exists on every x86-64 processor and has no side effect.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    let _ = tsc;
    monotonic_ns()
}

/// Nothing after this begins before all that comes before it has been done.
#[inline]
pub fn wait_for_all_before() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: LFENCE exists on every x86-64 processor and has no other effect.
    unsafe {
        std::arch::x86_64::_mm_lfence();
    }
}

/// CLOCK_MONOTONIC, nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_BOOTTIME, nanoseconds.
pub fn boottime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call; CLOCK_BOOTTIME always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn invariant_tsc() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|l| l.starts_with("flags")).unwrap_or("");
    flags.contains(" constant_tsc") && flags.contains(" nonstop_tsc")
}
