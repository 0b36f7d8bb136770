//! Ranks that wait by spinning on memory: they never come to a scheduling point, and what they wait for may be another rank of their core.
//!
//! A rank that holds a wanted core for some milliseconds is sampled (`sampler`). If it spins it loses the core at once; if it works it keeps it, and is suspected later
//! the next time. One that was seen to spin lately loses its core as soon as somebody wants it; while it uses the CPU without having the core (it is AWAY, or threads of it
//! spin while another one waits in MPI), the kernel is made to switch between it and the others a few times a millisecond (`kick`), and it is sampled now and then
//! whether it still spins.

use std::time::{Duration, Instant};

use super::Scene;
use crate::sampler::Seen;

/// A rank that has held a wanted core for so long is suspected; one that has worked whenever it was, later, up to 2^`MOST_DOUBLINGS` times that.
const SUSPECT_NS: u64 = 2_000_000;
const MOST_DOUBLINGS: u32 = 4;
/// Who held on for this many times as long as when it was seen to work is suspected again.
const AGAIN: u64 = 8;
/// Time between two looks at a sample.
const SAMPLE_TICK: Duration = Duration::from_millis(2);
/// How long a rank that was seen to spin is known to.
const MEMORY: Duration = Duration::from_secs(1);
/// It has a core for so long at least: it may have something to do before it waits again.
pub(super) const LEAST_HELD_NS: u64 = 1_000_000;
/// So often a known one is sampled again.
const RECHECK: Duration = Duration::from_millis(100);
/// One that has no core and uses less than this part (one in ...) of the time is asleep.
const LEAST_USE: u64 = 64;
/// Time between two looks at those that are known.
pub(super) const KNOWN_TICK: Duration = Duration::from_millis(1);

#[derive(Clone, Default)]
struct Spin {
    seen: Option<Instant>,
    /// Sampled since then.
    sampled: Option<Instant>,
    /// In a row it was seen to work so often.
    worked: u32,
    /// In this turn (`switches`) it is suspected again at this time on its core.
    turn: u64,
    next_ns: u64,
    /// CPU time when it was last looked at.
    used: Option<(Instant, u64)>,
}

impl Spin {
    /// Has the process used the CPU since the last look?
    fn is_awake(&mut self, used_ns: u64, now: Instant) -> bool {
        let before = self.used.replace((now, used_ns));
        before.is_none_or(|(at, before)| {
            used_ns.saturating_sub(before).saturating_mul(LEAST_USE) > now.duration_since(at).as_nanos() as u64
        })
    }
}

/// What is to be done about a rank that holds a wanted core.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Nothing,
    /// Look again soon.
    Look(Duration),
    Take,
}

/// All ranks of a job.
pub(super) struct Spins {
    ranks: Vec<Spin>,
    /// Those with `seen`.
    known: Vec<u32>,
}

impl Spins {
    pub(super) fn new(ranks: usize) -> Spins {
        Spins { ranks: vec![Spin::default(); ranks], known: Vec::new() }
    }

    pub(super) fn resize(&mut self, ranks: usize) {
        self.ranks.resize(ranks, Spin::default());
    }

    pub(super) fn is_known(&self, rank: u32) -> bool {
        self.ranks[rank as usize].seen.is_some()
    }

    fn note(&mut self, rank: u32, scene: &dyn Scene, now: Instant) {
        let spin = &mut self.ranks[rank as usize];
        (spin.worked, spin.seen) = (0, Some(now));
        if !self.known.contains(&rank) {
            self.known.push(rank);
            scene.slices(rank, true);
        }
    }

    fn forget(&mut self, rank: u32, scene: &dyn Scene) {
        scene.slices(rank, false);
        self.ranks[rank as usize].seen = None;
        self.known.retain(|known| *known != rank);
    }

    /// `rank` has held its core, which others want, for `held_ns` in its turn `switches`.
    pub(super) fn judge(
        &mut self,
        (rank, switches): (u32, u64),
        held_ns: u64,
        scene: &dyn Scene,
        now: Instant,
    ) -> Verdict {
        if self.is_known(rank) {
            return if held_ns < LEAST_HELD_NS { Verdict::Look(KNOWN_TICK) } else { Verdict::Take };
        }
        let spin = &mut self.ranks[rank as usize];
        if spin.turn != switches {
            (spin.turn, spin.next_ns) = (switches, SUSPECT_NS << spin.worked.min(MOST_DOUBLINGS));
        }
        if spin.sampled.is_none() {
            if held_ns < spin.next_ns {
                return Verdict::Nothing;
            }
            if !scene.begin_sample(rank, now) {
                // The machine does not let anybody see: the quantum decides.
                spin.next_ns = held_ns.saturating_mul(AGAIN);
                return Verdict::Nothing;
            }
            spin.sampled = Some(now);
            return Verdict::Look(SAMPLE_TICK);
        }
        match scene.sampled(rank, now) {
            Seen::Pending => return Verdict::Look(SAMPLE_TICK),
            Seen::Spins => {
                spin.sampled = None;
                self.note(rank, scene, now);
                return Verdict::Take;
            }
            Seen::Works => {
                spin.worked += 1;
                spin.next_ns = held_ns.saturating_mul(AGAIN);
            }
            Seen::Nothing => {}
        }
        spin.sampled = None;
        Verdict::Nothing
    }

    /// Those that were seen to spin: are they still known to, and on which cores do they share a CPU with whoever has the core?
    pub(super) fn shared_cores(&mut self, scene: &dyn Scene, now: Instant) -> Vec<u32> {
        let mut cores = Vec::new();
        for rank in self.known.clone() {
            let spin = &mut self.ranks[rank as usize];
            let Some(seen) = spin.seen else { continue };
            let awake =
                !scene.is_running(rank) && scene.cpu_time_ns(rank).is_some_and(|used_ns| spin.is_awake(used_ns, now));
            if spin.sampled.is_some() {
                match scene.sampled(rank, now) {
                    Seen::Pending => {}
                    Seen::Spins => (spin.sampled, spin.seen) = (None, Some(now)),
                    Seen::Works => {
                        (spin.sampled, spin.worked) = (None, 1);
                        self.forget(rank, scene);
                        continue;
                    }
                    // Then it was not on the CPU, and another time says more.
                    Seen::Nothing => spin.sampled = None,
                }
            } else if now.duration_since(seen) >= MEMORY {
                self.forget(rank, scene);
                continue;
            } else if awake && now.duration_since(seen) >= RECHECK && scene.begin_sample(rank, now) {
                spin.sampled = Some(now);
            }
            let core = scene.core_of(rank);
            if awake && !cores.contains(&core) {
                cores.push(core);
            }
        }
        cores
    }

    pub(super) fn any_known(&self) -> bool {
        !self.known.is_empty()
    }
}
