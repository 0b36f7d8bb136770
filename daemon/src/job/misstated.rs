//! A rank that waits in MPI though its state says that it does not: its state has been written over with one that could be there.
//!
//! Nobody wakes such a rank, and neither a deadlock nor a core that goes to nobody is seen, since a rank that sleeps outside MPI looks the same. What tells them
//! apart: who waits in MPI uses the CPU each time that it is woken in vain, and only then. It is woken at random, so that nobody who wakes by himself does so in step.

use std::time::Instant;

use vmpi_shared::sched::{self, RunState};

use crate::job::deadlock::threads_of;
use crate::job::pace::Pace;
use crate::job::stalled::waits;
use crate::job::{Job, Phase};
use crate::watchdog::{all_threads_asleep, process_cpu_time_ns};

/// In so many looks in a row it has used the CPU if it was woken, and not if it was not.
const CERTAIN: u32 = 24;
/// Looks for which a rank is let be that did not wake.
const REST: u32 = 20;

/// What the last looks have seen.
pub struct Misstated {
    pace: Pace,
    suspects: Vec<Suspect>,
}

struct Suspect {
    rank: u32,
    pid: i32,
    state: RunState,
    /// Its CPU time at the last look.
    used: u64,
    woken: bool,
    confirmed: u32,
    rest: u32,
}

impl Misstated {
    pub fn new(now: Instant) -> Misstated {
        Misstated { pace: Pace::new(now), suspects: Vec::new() }
    }
}

impl Suspect {
    /// Take in what it has used by now; is it to be woken, being `drawn`?
    fn look(&mut self, used: u64, drawn: bool) -> bool {
        let went_on = used > self.used;
        self.used = used;
        if self.rest > 0 {
            self.rest -= 1;
            self.woken = false;
        } else if went_on != self.woken {
            self.rest = if went_on { 0 } else { REST };
            (self.confirmed, self.woken) = (0, false);
        } else {
            self.confirmed += 1;
            self.woken = drawn;
        }
        self.woken
    }
}

impl Job {
    /// Look whether there is such a rank, if it is time to; if so, end the job.
    pub fn check_misstated(&mut self, now: Instant) {
        if self.phase != Phase::Running || !self.misstated.pace.is_due(now) {
            return;
        }
        let mut before = std::mem::take(&mut self.misstated.suspects);
        let mut suspects = Vec::new();
        for (rank, pid, state) in self.asleep_outside() {
            let Some(used) = process_cpu_time_ns(pid) else { continue };
            let known = before.iter().position(|known| (known.rank, known.pid, known.state) == (rank, pid, state));
            let mut suspect = match known {
                Some(at) => before.swap_remove(at),
                None => Suspect { rank, pid, state, used, woken: false, confirmed: 0, rest: 1 },
            };
            if suspect.look(used, fastrand::bool()) {
                sched::rouse(&self.node, rank);
            }
            if suspect.confirmed >= CERTAIN {
                return self.end_damaged(&format!("rank {rank} waits in MPI, but its state is {}", state.name()));
            }
            suspects.push(suspect);
        }
        self.misstated.suspects = suspects;
    }

    /// Ranks of one thread which sleep, and of which nothing says that they do so in MPI.
    fn asleep_outside(&self) -> Vec<(u32, i32, RunState)> {
        let ranks = self.living().filter_map(|rank| {
            let attachment = self.ranks[rank as usize].attachment.as_ref().filter(|attachment| attachment.alive)?;
            let state = self.node.state(rank);
            // Who has never had its core has not come to MPI yet, and a large job's start is no time to look at each of them.
            let has_begun = state != RunState::Init || self.node.switches(rank) > 0;
            has_begun.then_some((rank, attachment.pid, state))
        });
        ranks
            .filter(|(_, pid, state)| !waits(*state) && threads_of(*pid) == Some(1) && all_threads_asleep(*pid))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspect() -> Suspect {
        Suspect { rank: 0, pid: 1, state: RunState::Away, used: 0, woken: false, confirmed: 0, rest: 0 }
    }

    #[test]
    fn who_wakes_only_when_woken_is_certain() {
        let mut chance = fastrand::Rng::with_seed(7);
        let (mut suspect, mut used) = (suspect(), 0);
        for _ in 0..CERTAIN {
            used += u64::from(suspect.woken);
            suspect.look(used, chance.bool());
        }
        assert_eq!(suspect.confirmed, CERTAIN);
    }

    #[test]
    fn who_wakes_by_himself_is_not() {
        let mut chance = fastrand::Rng::with_seed(7);
        // Every so many looks, at random, never (but for the first looks, none of which may have been drawn).
        for period in 1..20 {
            let (mut suspect, mut used) = (suspect(), 0);
            for look in 0..1000 {
                used += u64::from(if period == 19 { chance.bool() } else { look % period == 0 });
                suspect.look(used, chance.bool());
                assert!(suspect.confirmed < CERTAIN, "every {period}");
            }
        }
        let mut suspect = suspect();
        for _ in 0..1000 {
            suspect.look(0, chance.bool());
            assert!(suspect.confirmed < CERTAIN);
        }
    }
}
