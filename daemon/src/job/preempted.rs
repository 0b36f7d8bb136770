//! Strays: ranks that compute outside MPI without a core, since the watchdog gave theirs to others. They share a CPU with those until they call MPI again,
//! though another core, or that one by now, may have nothing to do: then they get it (`sched::regrant`).
//!
//! Who got a core so is a guest there: it gives way as soon as a rank of that core is READY, and is a stray again. Looks: every 20 ms while there are
//! strays, every 10 ms while there are guests; strays that sleep are looked at ever less often, and whoever calls MPI is none any more.

use std::time::{Duration, Instant};

use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::regrant;
use vmpi_shared::sched::{self, RunState, lease};
use vmpi_shared::trace::Given;

use crate::job::Job;
use crate::log::debug;
use crate::watchdog::process_cpu_time_ns;

const TICK: Duration = Duration::from_millis(20);
const GUEST_TICK: Duration = Duration::from_millis(10);
const LONGEST_TICK: Duration = Duration::from_millis(250);
/// CPU time is compared over so long at least.
const SAMPLE: Duration = Duration::from_millis(18);
/// A core that has been idle for so long has nothing to do; those of ranks that communicate are idle for shorter.
const IDLE_S: f64 = 15e-3;

/// What can be asked about ranks and cores.
trait PreemptedScene {
    fn state(&self, rank: u32) -> RunState;
    fn core_of(&self, rank: u32) -> u32;
    fn switches(&self, rank: u32) -> u64;
    /// CPU time of the rank's process; `None`: it is gone.
    fn cpu_time_ns(&self, rank: u32) -> Option<u64>;
    /// A core with nothing to do that the rank may have.
    fn core_for(&self, rank: u32) -> Option<u32>;
    /// Does a READY rank, or another job, wait for the core?
    fn is_wanted(&self, core: u32) -> bool;
    /// Give it the core. False if something has happened meanwhile.
    fn give(&mut self, rank: u32, core: u32) -> bool;
    fn take(&mut self, rank: u32) -> bool;
}

struct Stray {
    rank: u32,
    /// CPU time, and when it was that.
    sample: Option<(Instant, u64)>,
}

#[derive(Default)]
pub struct Preempted {
    preempted: Vec<Stray>,
    /// Ranks and their `switches` since they are guests.
    borrowers: Vec<(u32, u64)>,
    pause: Duration,
    next: Option<Instant>,
}

impl Preempted {
    /// The core of `rank` was taken away.
    pub fn note(&mut self, rank: u32, now: Instant) {
        if self.preempted.iter().all(|stray| stray.rank != rank) {
            self.preempted.push(Stray { rank, sample: None });
        }
        self.pause = TICK;
        self.next = Some(self.next.map_or(now + TICK, |next| next.min(now + TICK)));
    }

    /// When to look; `None`: there are none.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    fn tick(&mut self, scene: &mut dyn PreemptedScene, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        self.dismiss_guests(scene);
        self.preempted.retain(|stray| scene.state(stray.rank) == RunState::Away);
        let mut on_core = std::collections::BTreeMap::<u32, u32>::new();
        for stray in &self.preempted {
            *on_core.entry(scene.core_of(stray.rank)).or_default() += 1;
        }
        // Those that could have a core sleep.
        let mut asleep = !self.preempted.is_empty();
        let borrowers = &mut self.borrowers;
        self.preempted.retain_mut(|stray| {
            let rank = stray.rank;
            let Some(core) = scene.core_for(rank) else {
                (stray.sample, asleep) = (None, false);
                return true;
            };
            let Some(cpu_ns) = scene.cpu_time_ns(rank) else { return false };
            let Some((at, before)) = stray.sample else {
                (stray.sample, asleep) = (Some((now, cpu_ns)), false);
                return true;
            };
            let elapsed = now.duration_since(at);
            if elapsed < SAMPLE {
                asleep = false;
                return true;
            }
            stray.sample = Some((now, cpu_ns));
            // Half of what is left to it beside the others there.
            let share = 2 * u64::from(1 + on_core.get(&scene.core_of(rank)).copied().unwrap_or(0));
            if cpu_ns.saturating_sub(before).saturating_mul(share) < elapsed.as_nanos() as u64 {
                return true;
            }
            asleep = false;
            let given = scene.give(rank, core);
            if given {
                borrowers.push((rank, scene.switches(rank)));
                debug!("rank {rank} computes outside MPI without a core, and gets core {core}, which is idle");
            }
            !given
        });
        self.pause = if asleep { (self.pause * 2).min(LONGEST_TICK) } else { TICK };
        let guest_tick = (!self.borrowers.is_empty()).then_some(GUEST_TICK);
        let stray_tick = (!self.preempted.is_empty()).then_some(self.pause);
        self.next = [guest_tick, stray_tick].into_iter().flatten().min().map(|tick| now + tick);
    }

    /// Guests of a core that others want give way; those that have left it since are guests no more.
    fn dismiss_guests(&mut self, scene: &mut dyn PreemptedScene) {
        let preempted = &mut self.preempted;
        self.borrowers.retain(|(rank, switches)| {
            if scene.state(*rank) != RunState::Running || scene.switches(*rank) != *switches {
                return false;
            }
            let gives_way = scene.is_wanted(scene.core_of(*rank)) && scene.take(*rank);
            if gives_way {
                preempted.push(Stray { rank: *rank, sample: None });
            }
            !gives_way
        });
    }
}

/// A job's node segment and processes.
struct LiveScene<'a> {
    node: &'a NodeSegment,
    pid: &'a dyn Fn(u32) -> Option<i32>,
    given: Vec<(u32, Given)>,
}

impl PreemptedScene for LiveScene<'_> {
    fn state(&self, rank: u32) -> RunState {
        self.node.state(rank)
    }

    fn core_of(&self, rank: u32) -> u32 {
        self.node.core_of(rank)
    }

    fn switches(&self, rank: u32) -> u64 {
        self.node.switches(rank)
    }

    fn cpu_time_ns(&self, rank: u32) -> Option<u64> {
        process_cpu_time_ns((self.pid)(rank)?)
    }

    fn core_for(&self, rank: u32) -> Option<u32> {
        regrant::core_for(self.node, rank, (IDLE_S * self.node.header().ticks_per_second) as u64)
    }

    fn is_wanted(&self, core: u32) -> bool {
        lease::is_awaited(self.node, core)
    }

    fn give(&mut self, rank: u32, core: u32) -> bool {
        let Some(pid) = (self.pid)(rank) else { return false };
        let given = regrant::regrant(self.node, (rank, pid), core);
        self.given.extend(given.map(|given| (rank, given)));
        given.is_some()
    }

    fn take(&mut self, rank: u32) -> bool {
        sched::take_core(self.node, rank)
    }
}

impl Job {
    /// Give idle cores to ranks that compute without one.
    pub fn check_strays(&mut self, now: Instant) {
        // Not the number in shared memory, which the rank could change.
        let ranks = &self.ranks;
        let attached = |rank: u32| ranks.get(rank as usize)?.attachment.as_ref().filter(|process| process.alive);
        let pid = |rank: u32| attached(rank).map(|process| process.pid);
        let mut scene = LiveScene { node: &self.node, pid: &pid, given: Vec::new() };
        self.preempted.tick(&mut scene, now);
        for (rank, given) in scene.given {
            self.watchdog.note_given(rank, self.node.switches(rank));
            if let Some(recording) = &mut self.recording {
                recording.note_given(rank, given);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Core 0 has a rank that computes, core 1 may be idle.
    #[derive(Default)]
    struct Stage {
        states: Vec<RunState>,
        cores: Vec<u32>,
        cpu_ns: Vec<u64>,
        idle: Option<u32>,
        wanted: bool,
        gives: Vec<(u32, u32)>,
    }

    impl PreemptedScene for Stage {
        fn state(&self, rank: u32) -> RunState {
            self.states[rank as usize]
        }
        fn core_of(&self, rank: u32) -> u32 {
            self.cores[rank as usize]
        }
        fn switches(&self, rank: u32) -> u64 {
            self.gives.iter().filter(|(to, _)| *to == rank).count() as u64
        }
        fn cpu_time_ns(&self, rank: u32) -> Option<u64> {
            Some(self.cpu_ns[rank as usize])
        }
        fn core_for(&self, _: u32) -> Option<u32> {
            self.idle
        }
        fn is_wanted(&self, _: u32) -> bool {
            self.wanted
        }
        fn give(&mut self, rank: u32, core: u32) -> bool {
            self.gives.push((rank, core));
            (self.states[rank as usize], self.cores[rank as usize]) = (RunState::Running, core);
            self.idle = None;
            true
        }
        fn take(&mut self, rank: u32) -> bool {
            self.states[rank as usize] = RunState::Away;
            true
        }
    }

    /// `ranks` strays of core 0, each of which uses this part of the time that passes.
    fn stage(ranks: usize) -> Stage {
        Stage {
            states: vec![RunState::Away; ranks],
            cores: vec![0; ranks],
            cpu_ns: vec![0; ranks],
            idle: Some(1),
            ..Stage::default()
        }
    }

    /// So many milliseconds pass. How often was looked?
    fn pass(preempted: &mut Preempted, stage: &mut Stage, from: Instant, ms: u64, percent: u64) -> u32 {
        let mut looks = 0;
        for t in 0..ms {
            stage.cpu_ns.iter_mut().for_each(|ns| *ns += percent * 10_000);
            let now = from + Duration::from_millis(t);
            looks += u32::from(preempted.next().is_some_and(|next| next <= now));
            preempted.tick(stage, now);
        }
        looks
    }

    fn noted(ranks: u32, now: Instant) -> Preempted {
        let mut preempted = Preempted::default();
        (0..ranks).for_each(|rank| preempted.note(rank, now));
        preempted
    }

    #[test]
    fn who_computes_gets_the_idle_core() {
        let (mut stage, start) = (stage(3), Instant::now());
        let mut preempted = noted(3, start);
        // Four share a CPU.
        pass(&mut preempted, &mut stage, start, 50, 25);
        assert_eq!(stage.gives, [(0, 1)]);
        // One core more, one rank more.
        stage.idle = Some(2);
        pass(&mut preempted, &mut stage, start + Duration::from_millis(50), 50, 33);
        assert_eq!(stage.gives, [(0, 1), (1, 2)]);
    }

    #[test]
    fn who_sleeps_gets_none_and_is_looked_at_ever_less_often() {
        let (mut stage, start) = (stage(1), Instant::now());
        let mut preempted = noted(1, start);
        let looks = pass(&mut preempted, &mut stage, start, 10_000, 2);
        assert!(stage.gives.is_empty() && looks <= 50, "{looks} looks");
        pass(&mut preempted, &mut stage, start + Duration::from_secs(10), 600, 50);
        assert_eq!(stage.gives, [(0, 1)], "it has woken up");
    }

    #[test]
    fn a_guest_gives_way_at_once() {
        let (mut stage, start) = (stage(1), Instant::now());
        let mut preempted = noted(1, start);
        pass(&mut preempted, &mut stage, start, 50, 50);
        assert_eq!(stage.states[0], RunState::Running);
        stage.wanted = true;
        pass(&mut preempted, &mut stage, start + Duration::from_millis(50), 11, 50);
        assert_eq!(stage.states[0], RunState::Away);
        // And comes back when the core has nothing to do again.
        (stage.wanted, stage.idle) = (false, Some(1));
        pass(&mut preempted, &mut stage, start + Duration::from_millis(61), 60, 50);
        assert_eq!(stage.gives, [(0, 1), (0, 1)]);
    }

    #[test]
    fn who_came_into_mpi_is_none_any_more() {
        let (mut stage, start) = (stage(2), Instant::now());
        let mut preempted = noted(2, start);
        stage.states[0] = RunState::Running;
        stage.states[1] = RunState::Suspended;
        pass(&mut preempted, &mut stage, start, 50, 50);
        assert!(stage.gives.is_empty() && preempted.next().is_none());
    }
}
