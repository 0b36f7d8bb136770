//! A rank that goes round in MPI for ever: something in the memory that it shares cannot come about any more.
//!
//! Ranks trust what lies there where to check it would make every message dearer: the links of a list, the turn of a place. Where one has been written over they go round
//! a few instructions of the library; such a rank is RUNNING as if it computed, and all wait for it. What tells it apart is seen from outside (`sampler`): it has used
//! the CPU for seconds in one turn, and whenever that was looked at it was in vmpi's library, in one of a handful of states. Work changes its state with each step,
//! what polls comes back to the program, and what vmpi itself watches for it watches for a millisecond. What a rank may rightly wait for in this way is a step of
//! another process of its node; so all of these are asked, as for a core that goes to nobody (`stalled`), and must have gone on since.
//!
//! Where the kernel lets nobody sample, such a job hangs until somebody looks (`vmpictl stacks`).

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Instant;

use vmpi_shared::control::Cause;
use vmpi_shared::proc;
use vmpi_shared::sched::RunState;

use crate::job::pace::Pace;
use crate::job::stalled::{Process, waits};
use crate::job::{Job, Phase};
use crate::log::debug;
use crate::sampler::Sampler;
use crate::watchdog::process_cpu_time_ns;

/// A rank that has used so much CPU time in one turn is looked at; one that was seen to work, again after up to 2^`MOST_DOUBLINGS` times that.
const SUSPECT_NS: u64 = 2_000_000_000;
const MOST_DOUBLINGS: u32 = 6;
/// So many samples, in so many looks at least, are enough if only one in `REPEATS` is of a state that was not seen before.
const ENOUGH: usize = 200;
const LEAST_LOOKS: u32 = 12;
const REPEATS: usize = 8;
/// Looks from the question to the verdict, at least.
const ASKED: u32 = 2;

/// What the last looks have seen.
pub struct Endless {
    pace: Pace,
    sampler: Sampler,
    suspects: Vec<Suspect>,
}

/// A rank in one turn.
struct Suspect {
    rank: u32,
    pid: i32,
    turn: u64,
    /// It is looked at from this CPU time on.
    from_ns: u64,
    worked: u32,
    /// Where the library's instructions lie.
    library: Vec<Range<u64>>,
    seen: Trail,
    since: Instant,
    asked: Option<(Instant, u32, Vec<(Process, u64)>)>,
}

/// What samples of one rank have in common.
#[derive(Default)]
struct Trail {
    states: BTreeSet<u64>,
    samples: usize,
    looks: u32,
}

impl Trail {
    /// Take in what one look has brought: where the rank was, and in which state. False: it is not in an endless loop of the library.
    fn add(&mut self, samples: &[(u64, u64)], library: &[Range<u64>]) -> bool {
        self.looks += 1;
        self.samples += samples.len();
        self.states.extend(samples.iter().map(|(_, state)| *state));
        let is_within = |at: u64| library.iter().any(|part| part.contains(&at));
        samples.iter().all(|(at, _)| is_within(*at))
            && (self.samples < ENOUGH || self.states.len() * REPEATS <= self.samples)
    }

    fn is_enough(&self) -> bool {
        self.samples >= ENOUGH && self.looks >= LEAST_LOOKS
    }
}

impl Endless {
    pub fn new(now: Instant) -> Endless {
        Endless { pace: Pace::new(now), sampler: Sampler::default(), suspects: Vec::new() }
    }
}

impl Job {
    /// Look whether there is such a rank, if it is time to; if so, end the job.
    pub fn check_endless(&mut self, now: Instant) {
        if self.phase != Phase::Running || !self.endless.pace.is_due(now) {
            return;
        }
        let mut before = std::mem::take(&mut self.endless.suspects);
        if self.has_dying() || self.is_parting() || !self.undone_is_empty() {
            return;
        }
        let mut suspects = Vec::new();
        for (rank, pid, turn) in self.in_one_turn() {
            let Some(used) = process_cpu_time_ns(pid) else { continue };
            let known = before.iter().position(|known| (known.rank, known.pid, known.turn) == (rank, pid, turn));
            let mut suspect = match known {
                Some(at) => before.swap_remove(at),
                None => Suspect::new((rank, pid, turn), used, now),
            };
            if used >= suspect.from_ns && self.look_for_an_end(&mut suspect, used, now) {
                return self.end_endless(&suspect, now);
            }
            suspects.push(suspect);
        }
        self.endless.suspects = suspects;
    }

    /// Ranks that run, if all the others wait in MPI.
    fn in_one_turn(&self) -> Vec<(u32, i32, u64)> {
        let mut running = Vec::new();
        for rank in self.living() {
            let state = self.node.state(rank);
            let Some(attachment) = self.ranks[rank as usize].attachment.as_ref().filter(|one| one.alive) else {
                return Vec::new();
            };
            match state {
                RunState::Running => running.push((rank, attachment.pid, self.node.switches(rank))),
                state if waits(state) => {}
                _ => return Vec::new(),
            }
        }
        running
    }

    /// Take in what was sampled since the last look, and sample until the next; true: it is certain.
    fn look_for_an_end(&mut self, suspect: &mut Suspect, used: u64, now: Instant) -> bool {
        let samples = self.endless.sampler.take(suspect.rank);
        if suspect.library.is_empty() {
            (suspect.library, suspect.since) = (library_of(suspect.pid), now);
        }
        if let Some(samples) = samples
            && !suspect.seen.add(&samples, &suspect.library)
        {
            suspect.work(used);
            return false;
        }
        if suspect.seen.is_enough() {
            match &suspect.asked {
                None => suspect.asked = Some((now, suspect.seen.looks, self.ask_all())),
                Some((at, looks, asked)) if suspect.seen.looks >= looks + ASKED => {
                    if self.are_all_back(asked, now.duration_since(*at)) {
                        return true;
                    }
                    self.ask_all();
                }
                Some(_) => {}
            }
        }
        if !self.endless.sampler.begin(suspect.rank, suspect.pid, now) {
            suspect.work(used);
        }
        false
    }

    fn end_endless(&mut self, suspect: &Suspect, now: Instant) {
        let Suspect { rank, seen, since, .. } = suspect;
        debug!("job {}: rank {rank} in {} states of {} samples", self.id, seen.states.len(), seen.samples);
        let seconds = now.duration_since(*since).as_secs_f64();
        let reason = format!(
            "rank {rank} has gone round a few instructions of vmpi's library for {seconds:.1} s, and nothing will end that: its shared memory has \
             been overwritten (one of its ranks writes where it must not: a stray pointer, an index out of range), or vmpi has a fault; if no rank \
             does such a thing, please report it"
        );
        self.end_by_failure(Cause::Internal { reason }, 125);
    }
}

impl Suspect {
    fn new((rank, pid, turn): (u32, i32, u64), used: u64, now: Instant) -> Suspect {
        let from_ns = used + SUSPECT_NS;
        let (library, seen) = (Vec::new(), Trail::default());
        Suspect { rank, pid, turn, from_ns, worked: 0, library, seen, since: now, asked: None }
    }

    /// It works, or nobody can see whether it does: look again later.
    fn work(&mut self, used: u64) {
        self.worked = (self.worked + 1).min(MOST_DOUBLINGS);
        self.from_ns = used + (SUSPECT_NS << self.worked);
        self.library.clear();
        (self.seen, self.asked) = (Trail::default(), None);
    }
}

/// Where a rank has vmpi's library's instructions, by whichever of its names.
fn library_of(pid: i32) -> Vec<Range<u64>> {
    let maps = proc::directory(pid).and_then(|dir| std::fs::read_to_string(dir.join("maps")).ok());
    maps.unwrap_or_default().lines().filter_map(library_in).collect()
}

/// A line of /proc/PID/maps.
fn library_in(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let (name, (from, to)) = (line.rsplit_once('/')?.1, range.split_once('-')?);
    let is_ours = rights.contains('x') && (name.starts_with("libmpi") || name.starts_with("libvmpi_"));
    let number = |text| u64::from_str_radix(text, 16).ok();
    is_ours.then_some(number(from)?..number(to)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: Range<u64> = 1000..2000;

    fn trail(samples: impl Iterator<Item = (u64, u64)>) -> (bool, bool) {
        let (all, mut trail): (Vec<_>, _) = (samples.collect(), Trail::default());
        let goes_on = all.chunks(20).all(|look| trail.add(look, &[LIBRARY]));
        (goes_on, trail.is_enough())
    }

    #[test]
    fn a_handful_of_states_in_the_library_is_endless() {
        assert_eq!(trail((0..400).map(|n| (1000 + n % 20, n % 20))), (true, true));
        assert_eq!(trail((0..180).map(|n| (1000 + n % 20, n % 20))), (true, false), "too few");
    }

    #[test]
    fn what_works_or_comes_back_to_the_program_is_not() {
        assert!(!trail((0..400).map(|n| (1000 + n % 30, n))).0, "each state is new");
        assert!(!trail((0..400).map(|n| (1000 + n % 100, n % 100))).0, "a long loop");
        assert!(!trail((0..400).map(|n| (if n == 390 { 5 } else { 1000 + n % 30 }, n % 30))).0, "once in the program");
    }

    #[test]
    fn the_library_is_known_by_its_names() {
        let line = |rights: &str, name: &str| format!("7f00-7f10 {rights} 00000000 fd:00 12 {name}");
        for name in ["/x/vmpi/openmpi/libmpi.so.40", "/t/release/libvmpi_openmpi.so", "/l/libmpi_abi.so.1"] {
            assert_eq!(library_in(&line("r-xp", name)), Some(0x7f00..0x7f10), "{name}");
        }
        let others = [("rw-p", "/x/libmpi.so.40"), ("r-xp", "/l/libc.so.6"), ("r-xp", "[vdso]"), ("r-xp", "")];
        for (rights, name) in others {
            assert_eq!(library_in(&line(rights, name)), None, "{rights} {name}");
        }
    }
}
