//! Who of the awake processes of a CPU runs is the kernel's choice, and it lets each run for some milliseconds. A thread that is on that CPU for a moment, and sleeps
//! again, has it choose anew: of processes that spin the one that has run for less time comes next.
//!
//! Measured with two processes of one CPU that pass a turn by spinning: 4 to 8 ms a turn by themselves, 0.2 to 0.4 with a kick every 100 us. Shorter slices for them
//! (sched_setattr) change little alone where the kernel's tick is 4 ms, and much together with this (`time_slice`). It is a thread of its own since the kernel grants each the same time: beside 25 spinning threads the
//! daemon itself, whose looks take 20 to 70 us, would come only every 2 ms.
//!
//! These threads touch nothing but their own word, and end by themselves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use vmpi_shared::clock::monotonic_ns;

use crate::time_slice;

/// Time between two kicks.
const PACE: Duration = Duration::from_micros(250);
/// A thread that nobody asks for goes on for so long.
const LIFE: Duration = Duration::from_millis(20);
const STACK_BYTES: usize = 64 << 10;

/// The threads, by their CPUs: until when (monotonic ns) each goes on; 0: it has ended.
#[derive(Default)]
pub struct Kickers {
    until: BTreeMap<u32, Arc<AtomicU64>>,
}

impl Kickers {
    /// Kick this CPU for the next milliseconds. No thread to be had: then the kernel does as it always does.
    pub fn kick(&mut self, cpu: u32) {
        let end = monotonic_ns() + LIFE.as_nanos() as u64;
        if let Some(until) = self.until.get(&cpu) {
            let before = until.load(Ordering::SeqCst);
            if before != 0 && until.compare_exchange(before, end, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
        let until = Arc::new(AtomicU64::new(end));
        let own = Arc::clone(&until);
        let builder = thread::Builder::new().name(format!("kick {cpu}")).stack_size(STACK_BYTES);
        if builder.spawn(move || run(cpu, &own)).is_ok() {
            self.until.insert(cpu, until);
        }
    }
}

fn run(cpu: u32, until: &AtomicU64) {
    let mut one = CpuSet::new();
    let pinned = one.set(cpu as usize).is_ok() && sched_setaffinity(Pid::from_raw(0), &one).is_ok();
    if !pinned {
        return until.store(0, Ordering::SeqCst);
    }
    // It is to run as soon as it wakes up.
    time_slice::ask_short_for_thread();
    loop {
        thread::sleep(PACE);
        let end = until.load(Ordering::SeqCst);
        if monotonic_ns() > end && until.compare_exchange(end, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_ends_by_itself_and_is_started_again() {
        let mut kickers = Kickers::default();
        let cpu = crate::limits::allowed_cpus()[0];
        for _ in 0..2 {
            kickers.kick(cpu);
            let until = Arc::clone(&kickers.until[&cpu]);
            assert_ne!(until.load(Ordering::SeqCst), 0);
            kickers.kick(cpu);
            assert!(Arc::ptr_eq(&until, &kickers.until[&cpu]), "one thread a CPU");
            while until.load(Ordering::SeqCst) != 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
