//! Time stamps: the time-stamp counter where it is invariant, `clock_gettime` otherwise.
//!
//! All clocks in shared memory count ticks of the node's clock; [`Scale`] turns them into seconds.

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
            let (t0, n0) = (ticks(true), monotonic_ns());
            while monotonic_ns() - n0 < 5_000_000 {
                std::hint::spin_loop();
            }
            let (t1, n1) = (ticks(true), monotonic_ns());
            return Scale { tsc: true, ticks_per_second: (t1 - t0) as f64 * 1e9 / (n1 - n0) as f64 };
        }
        Scale { tsc: false, ticks_per_second: 1e9 }
    }

    #[inline]
    pub fn now(&self) -> u64 {
        ticks(self.tsc)
    }

    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks_per_second
    }
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

/// CLOCK_MONOTONIC, nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call; CLOCK_MONOTONIC always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn invariant_tsc() -> bool {
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|l| l.starts_with("flags")).unwrap_or("");
    flags.contains(" constant_tsc") && flags.contains(" nonstop_tsc")
}
