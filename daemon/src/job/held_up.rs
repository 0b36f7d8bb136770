//! Ranks of a simulated job that wait by spinning on memory, outside MPI.
//!
//! What they wait for would be written by another rank, which waits for virtual time to come to where it is; and that does not come before they call MPI. So if nothing
//! has gone on in virtual time for some seconds of real time, and each rank that virtual time waits for was seen to spin whenever it was looked at (`sampler`), the
//! launcher is told. Who works is not told of, however long that takes; nor is anybody where the machine does not let one see what a process does (perf_event_open). A rank that
//! has not come to MPI_Init yet counts as one that works.

use std::time::{Duration, Instant};

use vmpi_shared::control::{Reply, SpinningRank};
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::simulate::SimulationSegment;
use vmpi_shared::simulate::layout::status;

use crate::job::pace::Pace;
use crate::job::{Job, Phase};
use crate::sampler::{Sampler, Seen};

/// As the guide says.
const LIMIT: Duration = Duration::from_secs(5);
/// Each rank has been seen to spin so often by then.
const LEAST_SEEN: u32 = 3;
/// More ranks than this are not looked at: they cannot all have a core.
const MOST: usize = 64;

/// Of virtual time: what the engine has gone through, and the clocks of the ranks that it waits for.
#[derive(PartialEq, Eq, Default)]
struct Picture {
    events: u64,
    running: Vec<(u32, u64)>,
}

impl Picture {
    fn of(simulation: &SimulationSegment) -> Picture {
        let runs = |rank: &u32| simulation.rank(*rank).status.load(Relaxed) == status::RUNS;
        let running = (0..simulation.ranks()).filter(runs).take(MOST + 1);
        let running = running.map(|rank| (rank, simulation.rank(rank).clock.load(Relaxed))).collect();
        Picture { events: simulation.events(), running }
    }
}

/// What the last looks have seen.
pub struct HeldUp {
    pace: Pace,
    picture: Picture,
    since: Instant,
    sampler: Sampler,
    /// How often each of the picture's ranks was seen to spin.
    seen: Vec<u32>,
    told: bool,
}

impl HeldUp {
    pub fn new(now: Instant) -> HeldUp {
        HeldUp {
            pace: Pace::new(now),
            picture: Picture::default(),
            since: now,
            sampler: Sampler::default(),
            seen: Vec::new(),
            told: false,
        }
    }

    /// Begin anew, with what there is now.
    fn begin(&mut self, picture: Picture, now: Instant) {
        *self = HeldUp { seen: vec![0; picture.running.len()], picture, told: self.told, ..HeldUp::new(now) };
    }

    /// Look at each rank's samples, and sample it again. False: one of them does something, or cannot be seen.
    fn all_spin(&mut self, pid: &dyn Fn(u32) -> Option<i32>, now: Instant) -> bool {
        for ((rank, _), seen) in self.picture.running.iter().zip(&mut self.seen) {
            let Some(pid) = pid(*rank) else { return false };
            match self.sampler.look(*rank, now) {
                Seen::Spins => *seen += 1,
                Seen::Works => return false,
                Seen::Pending => continue,
                // It was not on the CPU, or is looked at for the first time.
                Seen::Nothing => {}
            }
            if !self.sampler.begin(*rank, pid, now) {
                return false;
            }
        }
        true
    }
}

impl Job {
    /// Look whether virtual time is held up by ranks that spin, if it is time to; tell the launcher, once.
    pub fn check_held_up(&mut self, now: Instant) {
        let (Some(simulation), Some(mut held)) = (&self.simulation, self.held_up.take()) else { return };
        if self.phase == Phase::Running && !held.told && held.pace.is_due(now) {
            let picture = Picture::of(simulation);
            let pid = |rank: u32| self.ranks[rank as usize].attachment.as_ref().filter(|a| a.alive).map(|a| a.pid);
            let few = !picture.running.is_empty() && picture.running.len() <= MOST;
            if picture != held.picture || !few || !held.all_spin(&pid, now) {
                held.begin(picture, now);
            } else if now.duration_since(held.since) >= LIMIT && held.seen.iter().all(|seen| *seen >= LEAST_SEEN) {
                held.told = true;
                let spinning =
                    picture.running.iter().filter_map(|(rank, _)| Some(SpinningRank { rank: *rank, pid: pid(*rank)? }));
                let reply = Reply::HeldUp { ranks: spinning.collect(), seconds: LIMIT.as_secs() };
                self.outbox.push((reply, Vec::new()));
            }
        }
        self.held_up = Some(held);
    }
}
