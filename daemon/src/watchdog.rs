//! The watchdog: not every wait is in MPI, and not every rank comes back to MPI soon.
//!
//! It takes the core from a RUNNING rank, but only while a READY one waits for that core, if
//! - the rank's process sleeps in the kernel: no CPU time between two looks, and no thread runnable (`--on-block release`);
//!   stopped and traced threads count as asleep, and so does a process that is asleep now and has used less than a
//!   quarter of the last 20 ms or more (it polls with short sleeps: measured, exact stillness finds such a one
//!   only after 2 to 12 s); or
//! - the rank spins on memory (`spin`); or
//! - the rank has reached no scheduling point for its quantum. Each time that happens the rank's quantum is divided by
//!   10, down to 20 ms, so that programs that spin on memory or files make progress; each voluntary switch
//!   doubles it, up to the job's.
//!
//! A rank that was found asleep within the last second is looked at every millisecond, and the job at least every 5 ms: it
//! will sleep again, and then its core goes on after 1 to 2 ms instead of 5 to 250.
//!
//! It looks every 5 ms while some rank waits for a core that another holds, else after 10, 20 ... 250 ms (20 while a rank runs on a core that
//! has others): an idle job costs four looks a second of a few loads each. A job that waits in MPI alone is never touched. Where ranks compute, each look takes
//! some 30 us from one of them (on a virtual machine), so a core on which all were found at work is looked at every 20 ms; who then seems
//! to have slept for a part of them is looked at again at once.

mod spin;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use vmpi_shared::control::{JobSpec, OnBlock};
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::proc;
use vmpi_shared::sched::{self, RunState, lease};

use crate::kick::Kickers;
use crate::log::debug;
use crate::sampler::{Sampler, Seen};
use crate::time_slice;
use spin::{KNOWN_TICK, LEAST_HELD_NS, Spins, Verdict};

const TICK: Duration = Duration::from_millis(5);
/// The same for a core on which ranks were always found at work, and so long a rank may hold it before it is looked at as often as any.
const WORK_TICK: Duration = Duration::from_millis(20);
const WORK_STRETCH: Duration = Duration::from_millis(10);
/// The same while a rank that holds a wanted core was found asleep within the last `NAP_MEMORY`.
const NAP_TICK: Duration = Duration::from_millis(1);
const NAP_MEMORY: Duration = Duration::from_secs(1);
const LONGEST_TICK: Duration = Duration::from_millis(250);
/// The same while a rank that has used its CPU since the last look holds a core that has others: one of them may become READY behind it any time.
const SHARED_TICK: Duration = Duration::from_millis(20);
/// Two looks at a sleeping process are at least so far apart.
const SAMPLE_GAP: Duration = Duration::from_millis(2);
const NAP_SAMPLE_GAP: Duration = Duration::from_micros(800);
/// How long to watch a rank that polls, and the largest part of that time (one in ...) that it may use.
const POLL_WINDOW: Duration = Duration::from_millis(20);
const POLL_SHARE: u64 = 4;
/// Who has used less than this part (in percent) of the time between two looks may be asleep by now.
const WORK_PERCENT: u64 = 75;
const SHORTEST_QUANTUM_NS: u64 = 20_000_000;

/// What the watchdog can ask about the job.
pub trait Scene {
    /// The rank that holds `core`.
    fn running_on(&self, core: u32) -> Option<u32>;
    /// Does a READY rank wait for `core`?
    fn is_wanted(&self, core: u32) -> bool;
    /// How long its rank has held `core`.
    fn running_for_ns(&self, core: u32) -> u64;
    fn switches(&self, rank: u32) -> u64;
    /// CPU time of the rank's process; `None`: it is gone.
    fn cpu_time_ns(&self, rank: u32) -> Option<u64>;
    /// No thread of the rank's process could run now.
    fn is_asleep(&self, rank: u32) -> bool;
    /// Take the core from the rank; false if it gave it up meanwhile.
    fn take_core(&self, rank: u32) -> bool;
    /// Does the core have more than one rank?
    fn is_shared(&self, core: u32) -> bool;
    /// Observe the rank's process for a while; false if that is not permitted.
    fn begin_sample(&self, rank: u32, now: Instant) -> bool;
    fn sampled(&self, rank: u32, now: Instant) -> Seen;
    fn is_running(&self, rank: u32) -> bool;
    fn core_of(&self, rank: u32) -> u32;
    /// Have the kernel choose anew, again and again for a while, who runs on the CPUs of these cores.
    fn kick(&self, cores: &[u32]);
    /// Give the rank's threads short slices of CPU time, or the usual ones again.
    fn slices(&self, rank: u32, short: bool);
}

/// One core as last seen while somebody waited for it.
#[derive(Copy, Clone)]
struct Look {
    rank: u32,
    /// Of the rank; a change means that it has left and come back.
    switches: u64,
    at: Instant,
    cpu_time_ns: u64,
    /// When the wait for this core was first seen.
    wanted_since: Instant,
    /// CPU time then.
    first_cpu_time_ns: u64,
}

impl Look {
    /// Has the process hardly run, since the last look or since somebody waits?
    fn is_still(&self, now: Instant, cpu_time_ns: u64) -> bool {
        let waited = now.duration_since(self.wanted_since);
        let used_ns = cpu_time_ns.saturating_sub(self.first_cpu_time_ns);
        cpu_time_ns == self.cpu_time_ns
            || (waited >= POLL_WINDOW && used_ns.saturating_mul(POLL_SHARE) <= waited.as_nanos() as u64)
    }

    /// Has the process run for most of the time since this look?
    fn has_worked(&self, now: Instant, cpu_time_ns: u64) -> bool {
        let used_ns = cpu_time_ns.saturating_sub(self.cpu_time_ns);
        used_ns.saturating_mul(100) >= (now.duration_since(self.at).as_nanos() as u64).saturating_mul(WORK_PERCENT)
    }
}

struct Quantum {
    now_ns: u64,
    switches: u64,
}

/// The watchdog of one job.
pub struct Watchdog {
    cores: Vec<Option<Look>>,
    /// For each core the time until the next look, as long as nobody there is found asleep.
    ticks: Vec<Duration>,
    quanta: Vec<Quantum>,
    /// Who held each core that nobody wanted, and its CPU time.
    holders: Vec<Option<(u32, u64)>>,
    /// When each rank was last found asleep outside MPI.
    naps: Vec<Option<Instant>>,
    last_nap: Option<Instant>,
    /// Who has lost its core in this look.
    taken: Vec<u32>,
    spins: Spins,
    next_kick: Option<Instant>,
    /// 0: never.
    quantum_ns: u64,
    release_on_block: bool,
    pause: Duration,
    next: Option<Instant>,
}

impl Watchdog {
    pub fn new(spec: &JobSpec) -> Watchdog {
        let quantum_ns = spec.quantum_ms.saturating_mul(1_000_000);
        Watchdog {
            cores: vec![None; spec.all_cpus().count()],
            ticks: vec![TICK; spec.all_cpus().count()],
            quanta: (0..spec.ranks).map(|_| Quantum { now_ns: quantum_ns, switches: 0 }).collect(),
            holders: vec![None; spec.all_cpus().count()],
            naps: vec![None; spec.ranks as usize],
            last_nap: None,
            taken: Vec::new(),
            spins: Spins::new(spec.ranks as usize),
            next_kick: None,
            quantum_ns,
            release_on_block: spec.on_block == OnBlock::Release,
            pause: TICK,
            next: None,
        }
    }

    /// As `new`, for a job whose segments have room for `ranks` ranks: any of them may be found on a core.
    pub fn with_room(spec: &JobSpec, ranks: u32) -> Watchdog {
        let mut dog = Watchdog::new(spec);
        let quantum_ns = dog.quantum_ns;
        dog.quanta.resize_with(ranks as usize, || Quantum { now_ns: quantum_ns, switches: 0 });
        dog.naps.resize(ranks as usize, None);
        dog.spins.resize(ranks as usize);
        dog
    }

    /// Begin to look; called when a rank attaches (a job of programs without MPI needs no watchdog).
    pub fn wake(&mut self, now: Instant) {
        self.pause = TICK;
        let soon = now + TICK;
        self.next = Some(self.next.map_or(soon, |next| next.min(soon)));
    }

    /// When to call `tick`; `None`: no rank has attached.
    pub fn next(&self) -> Option<Instant> {
        self.next.into_iter().chain(self.next_kick).min()
    }

    /// Look at all cores, if it is time to. The ranks from which a core was taken.
    pub fn tick(&mut self, scene: &dyn Scene, now: Instant) -> Vec<u32> {
        self.kick_spinners(scene, now);
        if self.next.is_none_or(|next| next > now) {
            return std::mem::take(&mut self.taken);
        }
        let mut tick: Option<Duration> = None;
        for core in 0..self.cores.len() as u32 {
            if let Some(soon) = self.look(core, scene, now) {
                tick = Some(tick.map_or(soon, |tick| tick.min(soon)));
            }
        }
        let napping = self.last_nap.is_some_and(|at| now.duration_since(at) < NAP_MEMORY);
        let mut working = false;
        for core in 0..self.cores.len() as u32 {
            working |= self.works_on_shared(core, scene);
        }
        let longest = if napping {
            TICK
        } else if working {
            SHARED_TICK
        } else {
            LONGEST_TICK
        };
        self.pause = tick.unwrap_or((self.pause * 2).clamp(TICK, longest));
        self.next = Some(now + self.pause);
        std::mem::take(&mut self.taken)
    }

    /// Does `core`, which has several ranks, have one that has used its CPU since the last look?
    fn works_on_shared(&mut self, core: u32, scene: &dyn Scene) -> bool {
        let holder = scene.running_on(core).filter(|_| scene.is_shared(core));
        let seen = holder.and_then(|rank| Some((rank, scene.cpu_time_ns(rank)?)));
        let before = std::mem::replace(&mut self.holders[core as usize], seen);
        seen.is_some() && seen != before
    }

    /// Ranks that were seen to spin give way at once, or share their CPU in short turns.
    fn kick_spinners(&mut self, scene: &dyn Scene, now: Instant) {
        if !self.spins.any_known() {
            self.next_kick = None;
            return;
        }
        if self.next_kick.is_some_and(|next| next > now) {
            return;
        }
        let cores = self.spins.shared_cores(scene, now);
        for core in 0..self.cores.len() as u32 {
            let rank = scene.running_on(core).filter(|rank| self.spins.is_known(*rank));
            let has_run = scene.running_for_ns(core) >= LEAST_HELD_NS;
            if let Some(rank) = rank.filter(|_| has_run && scene.is_wanted(core)) {
                self.take(core, (rank, scene.switches(rank)), scene);
            }
        }
        scene.kick(&cores);
        // Somebody may come to want the core of a known one that has it.
        self.next_kick = self.spins.any_known().then(|| now + if cores.is_empty() { NAP_TICK } else { KNOWN_TICK });
    }

    /// Take the core from a rank that spins.
    fn take(&mut self, core: u32, (rank, switches): (u32, u64), scene: &dyn Scene) {
        if scene.take_core(rank) {
            self.taken.push(rank);
            self.quanta[rank as usize].switches = switches.saturating_add(1);
            debug!("rank {rank} spins outside MPI; core {core} goes on");
        }
    }

    /// A core was given to a rank outside MPI: a switch, but not one that the rank wanted.
    pub fn note_given(&mut self, rank: u32, switches: u64) {
        self.quanta[rank as usize].switches = switches;
    }

    /// Look at one core; when to look again, if somebody waits for it.
    fn look(&mut self, core: u32, scene: &dyn Scene, now: Instant) -> Option<Duration> {
        let at = core as usize;
        let (seen, tick) = (self.cores[at].take(), self.ticks[at]);
        self.ticks[at] = TICK;
        let rank = scene.running_on(core)?;
        if !scene.is_wanted(core) {
            return None;
        }
        let naps = self.naps_often(rank, now);
        let soon = if naps { NAP_TICK } else { TICK };
        let switches = scene.switches(rank);
        self.recover(rank, switches);
        let Some(cpu_time_ns) = scene.cpu_time_ns(rank) else { return Some(soon) };
        let before = seen.filter(|look| look.rank == rank && look.switches == switches);
        let mut look = Look { rank, switches, at: now, cpu_time_ns, wanted_since: now, first_cpu_time_ns: cpu_time_ns };
        // Somebody has come and gone.
        let mut works = seen.is_some();
        if let Some(before) = before {
            look.wanted_since = before.wanted_since;
            look.first_cpu_time_ns = before.first_cpu_time_ns;
            works = before.has_worked(now, cpu_time_ns);
            let gap = now.duration_since(before.at);
            let least = if naps { NAP_SAMPLE_GAP } else { SAMPLE_GAP };
            if gap < least {
                look = before;
            } else if self.release_on_block && before.is_still(now, cpu_time_ns) && scene.is_asleep(rank) {
                if scene.take_core(rank) {
                    self.taken.push(rank);
                    self.naps[rank as usize] = Some(now);
                    self.last_nap = Some(now);
                    self.quanta[rank as usize].switches = switches.saturating_add(1);
                    debug!("rank {rank} sleeps outside MPI; core {core} goes on");
                }
                return Some(soon);
            }
        }
        let quantum_ns = self.quanta[rank as usize].now_ns;
        let waited_ns = now.duration_since(look.wanted_since).as_nanos() as u64;
        let held_ns = scene.running_for_ns(core).min(waited_ns);
        if self.quantum_ns != 0 {
            match self.spins.judge((rank, switches), held_ns, scene, now) {
                Verdict::Nothing => {}
                Verdict::Look(soon) => {
                    self.cores[at] = Some(look);
                    return Some(soon);
                }
                Verdict::Take => {
                    self.take(core, (rank, switches), scene);
                    return Some(soon);
                }
            }
        }
        if self.quantum_ns != 0 && held_ns >= quantum_ns {
            if scene.take_core(rank) {
                self.taken.push(rank);
                debug!("rank {rank} held core {core} for {} ms while others were ready", quantum_ns / 1_000_000);
                let quantum = &mut self.quanta[rank as usize];
                quantum.now_ns = (quantum_ns / 10).max(SHORTEST_QUANTUM_NS.min(self.quantum_ns));
                // Getting the core back counts as a switch, but not as one that the rank wanted.
                quantum.switches = switches.saturating_add(1);
            }
            return Some(soon);
        }
        let first_of_long = before.is_none() && scene.running_for_ns(core) >= WORK_STRETCH.as_nanos() as u64;
        self.cores[at] = Some(look);
        if naps || seen.is_none() {
            return Some(soon);
        }
        if !works {
            return Some(if tick > TICK { SAMPLE_GAP } else { TICK });
        }
        self.ticks[at] = (tick * 2).min(WORK_TICK);
        let next = if first_of_long { TICK } else { self.ticks[at] };
        let quantum_left =
            if self.quantum_ns == 0 { Duration::MAX } else { Duration::from_nanos(quantum_ns - held_ns) };
        Some(next.min(quantum_left.max(TICK)))
    }

    fn naps_often(&self, rank: u32, now: Instant) -> bool {
        self.naps[rank as usize].is_some_and(|at| now.duration_since(at) < NAP_MEMORY)
    }

    /// Double the rank's quantum once for each voluntary switch since the last look.
    fn recover(&mut self, rank: u32, switches: u64) {
        let quantum = &mut self.quanta[rank as usize];
        let seen = switches.saturating_sub(quantum.switches).min(32);
        quantum.switches = quantum.switches.max(switches);
        quantum.now_ns = quantum.now_ns.saturating_mul(1 << seen).min(self.quantum_ns);
    }
}

/// A job's node segment and processes, as the watchdog sees them.
pub struct LiveScene<'a> {
    pub node: &'a NodeSegment,
    pub spec: &'a JobSpec,
    pub sampler: &'a RefCell<Sampler>,
    pub kickers: &'a RefCell<Kickers>,
}

impl Scene for LiveScene<'_> {
    fn running_on(&self, core: u32) -> Option<u32> {
        self.node.running_on(core)
    }

    fn is_wanted(&self, core: u32) -> bool {
        lease::is_awaited(self.node, core)
    }

    fn running_for_ns(&self, core: u32) -> u64 {
        self.node.running_for_ns(core)
    }

    fn switches(&self, rank: u32) -> u64 {
        self.node.switches(rank)
    }

    fn cpu_time_ns(&self, rank: u32) -> Option<u64> {
        process_cpu_time_ns(self.node.pid(rank))
    }

    fn is_asleep(&self, rank: u32) -> bool {
        all_threads_asleep(self.node.pid(rank))
    }

    fn take_core(&self, rank: u32) -> bool {
        sched::take_core(self.node, rank)
    }

    fn is_shared(&self, core: u32) -> bool {
        self.node.core(core).ranks.load(Relaxed) > 1
    }

    fn begin_sample(&self, rank: u32, now: Instant) -> bool {
        self.sampler.borrow_mut().begin(rank, self.node.pid(rank), now)
    }

    fn sampled(&self, rank: u32, now: Instant) -> Seen {
        self.sampler.borrow_mut().look(rank, now)
    }

    fn is_running(&self, rank: u32) -> bool {
        self.node.state(rank) == RunState::Running
    }

    fn core_of(&self, rank: u32) -> u32 {
        self.node.core_of(rank)
    }

    fn slices(&self, rank: u32, short: bool) {
        if let Some(pid) = Some(self.node.pid(rank)).filter(|pid| *pid > 0) {
            time_slice::ask_short_for_process(pid, short);
        }
    }

    fn kick(&self, cores: &[u32]) {
        // Unbound ranks may be anywhere.
        if self.node.header().bind != 0 && self.spec.masks.is_empty() {
            let mut kickers = self.kickers.borrow_mut();
            cores.iter().flat_map(|core| self.spec.place(*core as usize)).for_each(|cpu| kickers.kick(cpu));
        }
    }
}

/// CPU time of all threads of a process, by its clock: one system call, exact to the nanosecond.
#[allow(unsafe_code)]
pub fn process_cpu_time_ns(pid: i32) -> Option<u64> {
    if pid <= 0 {
        return None;
    }
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: two calls that write only their out-parameters.
    let failed =
        unsafe { libc::clock_getcpuclockid(pid, &mut clock) != 0 || libc::clock_gettime(clock, &mut time) != 0 };
    (!failed).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// No thread of the process is running or waiting for a cpu. False if that cannot be read.
pub fn all_threads_asleep(pid: i32) -> bool {
    let threads = proc::directory(pid).and_then(|directory| std::fs::read_dir(directory.join("task")).ok());
    let Some(threads) = threads else { return false };
    let mut seen = false;
    for thread in threads.flatten() {
        // A thread that ended meanwhile does not run.
        let Ok(stat) = std::fs::read_to_string(thread.path().join("stat")) else { continue };
        // The name in parentheses may hold anything; the state follows the last one.
        match stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()) {
            Some('R') | None => return false,
            Some(_) => seen = true,
        }
    }
    seen
}

#[cfg(test)]
mod tests;
