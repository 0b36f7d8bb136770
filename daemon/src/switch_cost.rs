//! What switching from rank to rank costs on this machine: measured once, at the daemon's start, in a few milliseconds.
//!
//! How long a rank watches before it sleeps, and what counts as a short turn, follow from it (`vmpi_shared::node::Patience`).

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use vmpi_shared::mem::sync::{futex_wait, futex_wake};
use vmpi_shared::node::Patience;

/// Rounds of hand-overs, and hand-overs in each; the fastest round counts.
const ROUNDS: u32 = 5;
const HAND_OVERS: u32 = 60;
/// Wake-ups across cores; the middle one counts.
const WAKES: usize = 7;
/// So long the sleeper's core is idle before it is woken.
const IDLE: Duration = Duration::from_micros(300);
/// Nothing here may wait for ever, whatever the scheduler does.
const PATIENCE: Duration = Duration::from_millis(50);

/// Times measured.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCost {
    /// From one thread to another of the same core, by futex.
    pub hand_over: Option<Duration>,
    /// Until a thread that sleeps on an idle core runs, woken from another core.
    pub wake: Option<Duration>,
}

impl SwitchCost {
    /// Measure on the first two of these cpus.
    pub fn measure(cpus: &[u32]) -> SwitchCost {
        let hand_over = cpus.first().and_then(|cpu| hand_over(*cpu));
        let wake = cpus.get(1).and_then(|sleeper| wake(cpus[0], *sleeper));
        SwitchCost { hand_over, wake }
    }

    /// What follows from the times; the usual values where one is missing.
    pub fn patience(&self) -> Patience {
        let usual = Patience::default();
        let within = |time: Duration, least_us, most_us| {
            time.clamp(Duration::from_micros(least_us), Duration::from_micros(most_us))
        };
        Patience {
            // Watching for as long as a wake-up takes costs at most twice the least possible; a little more forgives noise.
            spin: self.wake.map_or(usual.spin, |wake| within(wake * 3 / 2, 20, 150)),
            // A wake-up is little beside that; but a core that halts may lose what its ranks have in its caches, too (docs/notebook/rings.md: a ring of 256 ranks).
            long: self.wake.map_or(usual.long, |wake| within(wake * 150, 400, 5000)),
            // Beside a turn of several times its length a hand-over hardly matters.
            brisk: self.hand_over.map_or(usual.brisk, |hand_over| within(hand_over * 7, 10, 60)),
        }
    }
}

fn pin(cpu: u32) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize).ok()?;
    sched_setaffinity(Pid::from_raw(0), &set).ok()
}

/// Wait until `word` is `wanted`; false after too long.
fn await_word(word: &AtomicU32, wanted: u32) -> bool {
    let start = Instant::now();
    loop {
        let now = word.load(Ordering::SeqCst);
        if now == wanted {
            return true;
        }
        if start.elapsed() > PATIENCE {
            return false;
        }
        futex_wait(word, now, Some(PATIENCE));
    }
}

/// A thread to measure with; `None` where the user may have no more (ulimit -u, ulimit -d): its partner gives up by itself.
fn start_thread<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Option<thread::ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().spawn_scoped(scope, work).ok()
}

fn hand_over(cpu: u32) -> Option<Duration> {
    let turn = AtomicU32::new(0);
    let last = ROUNDS * HAND_OVERS;
    let give = |now: u32| {
        turn.store(now, Ordering::SeqCst);
        futex_wake(&turn, 1);
    };
    // Two threads take turns: one moves the word to each odd number, the other to each even one.
    thread::scope(|scope| {
        let other = start_thread(scope, || {
            pin(cpu)?;
            (0..last).step_by(2).try_for_each(|now| {
                give(now + 1);
                await_word(&turn, now + 2).then_some(())
            })
        })?;
        let measured = start_thread(scope, || {
            pin(cpu)?;
            let mut best: Option<Duration> = None;
            for round in 0..ROUNDS {
                let start = Instant::now();
                for now in (round * HAND_OVERS..(round + 1) * HAND_OVERS).step_by(2) {
                    await_word(&turn, now + 1).then_some(())?;
                    give(now + 2);
                }
                let each = start.elapsed() / HAND_OVERS;
                best = Some(best.map_or(each, |best| best.min(each)));
            }
            best
        })?;
        let measured = measured.join().ok()?;
        other.join().ok()??;
        measured
    })
}

fn wake(waker: u32, sleeper: u32) -> Option<Duration> {
    let (round, start) = (AtomicU32::new(0), Instant::now());
    let woken_ns = AtomicU64::new(0);
    thread::scope(|scope| {
        let asleep = start_thread(scope, || {
            pin(sleeper)?;
            (1..=WAKES as u32).try_for_each(|number| {
                await_word(&round, number).then_some(())?;
                woken_ns.store(start.elapsed().as_nanos() as u64, Ordering::SeqCst);
                Some(())
            })
        })?;
        let measured = start_thread(scope, || {
            pin(waker)?;
            let mut times: Vec<u64> = Vec::new();
            for number in 1..=WAKES as u32 {
                thread::sleep(IDLE);
                let told_ns = start.elapsed().as_nanos() as u64;
                round.store(number, Ordering::SeqCst);
                futex_wake(&round, 1);
                while woken_ns.load(Ordering::SeqCst) < told_ns {
                    if start.elapsed() > PATIENCE {
                        return None;
                    }
                    std::hint::spin_loop();
                }
                times.push(woken_ns.load(Ordering::SeqCst) - told_ns);
            }
            times.sort_unstable();
            Some(Duration::from_nanos(times[WAKES / 2]))
        })?;
        let measured = measured.join().ok()?;
        asleep.join().ok()??;
        measured
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_plausible() {
        let cpus = crate::limits::allowed_cpus();
        let measured = SwitchCost::measure(&cpus);
        // Another program may hold a core for long: then there is no time, but never one that cannot be.
        for time in [measured.hand_over, measured.wake].into_iter().flatten() {
            assert!(time > Duration::from_nanos(100) && time < PATIENCE, "{measured:?}");
        }
        assert_eq!(SwitchCost::measure(&cpus[..1]).wake, None);
        assert_eq!(SwitchCost::measure(&[]), SwitchCost::default());
    }

    #[test]
    fn patience_follows_within_bounds() {
        let us = Duration::from_micros;
        let of = |hand_over, wake| SwitchCost { hand_over, wake }.patience();
        assert_eq!(of(None, None), Patience::default());
        assert_eq!(of(Some(us(3)), Some(us(40))), Patience { spin: us(60), long: us(5000), brisk: us(21) });
        assert_eq!(of(Some(us(500)), Some(us(5000))), Patience { spin: us(150), long: us(5000), brisk: us(60) });
        assert_eq!(of(Some(us(3)), Some(us(20))), Patience { spin: us(30), long: us(3000), brisk: us(21) });
        assert_eq!(of(Some(us(0)), Some(us(1))), Patience { spin: us(20), long: us(400), brisk: us(10) });
    }
}
