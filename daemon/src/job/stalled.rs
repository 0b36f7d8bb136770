//! A core that nobody takes, though there are ranks for it: something in the shared memory says what is not so.
//!
//! Ranks pass a core on by a few words (its holder, who watches it, who is READY for it). A rank that writes over one of these with a value that could be there
//! leaves a core that is passed on to nobody, and a job that hangs in silence; so would a wake-up that vmpi loses. What is seen: no rank runs on the
//! core, one is READY for it, or is tended by nobody, or has mail that nobody takes in, and nothing about that changes.
//!
//! A machine on which processes wait for a CPU for seconds looks the same, and so do processes that were stopped. Hence all that could be in the middle of a step
//! are asked: who waits in MPI is woken once in vain (it looks whether it has its core, and sleeps again), and only if each of them has used the CPU since and sleeps
//! again, if whoever runs elsewhere has had the CPU, too, and the core is as it was, it is certain that nobody will take it.

use std::time::{Duration, Instant};

use vmpi_shared::control::Cause;
use vmpi_shared::endpoint::inspect;
use vmpi_shared::mem::sync::Ordering::SeqCst;
use vmpi_shared::sched::{self, RunState};

use crate::job::deadlock::threads_of;
use crate::job::pace::Pace;
use crate::job::{Job, Phase};
use crate::log::debug;
use crate::watchdog::{all_threads_asleep, process_cpu_time_ns};

/// Looks that must find the same before the ranks are asked, and so many more after that.
const STILL: u32 = 4;
const ASKED: u32 = 2;
/// A rank that runs elsewhere has had the CPU for so long since: far more than a step takes.
const RAN_NS: u64 = 5_000_000;
/// A rank of one thread that waits in MPI and has computed at least half of so long a time is in a step that does not end, or in a signal handler that does not.
const ENDLESS: Duration = Duration::from_secs(5);

/// What the last looks have seen.
pub struct Stalls {
    pace: Pace,
    cores: Vec<Option<Stall>>,
}

struct Stall {
    picture: Picture,
    since: Instant,
    looks: u32,
    asked_at: Instant,
    /// The CPU time of each living process when they were asked.
    asked: Vec<(Process, u64)>,
}

/// A core on which no rank runs, and for which there are some.
#[derive(PartialEq, Eq)]
struct Picture {
    holder: u32,
    /// Its ranks: state, and how often each has been switched in.
    ranks: Vec<(u32, RunState, u64)>,
    /// The first one that would run, or look into its mail.
    for_whom: u32,
}

/// Who may be in the middle of a step.
#[derive(Copy, Clone)]
pub(super) enum Process {
    Rank { rank: u32, pid: i32 },
    Carrier { pid: i32 },
}

impl Process {
    fn pid(self) -> i32 {
        match self {
            Process::Rank { pid, .. } | Process::Carrier { pid } => pid,
        }
    }
}

pub(super) fn waits(state: RunState) -> bool {
    matches!(state, RunState::Suspended | RunState::Tended | RunState::Ready)
}

impl Stalls {
    pub fn new(now: Instant) -> Stalls {
        Stalls { pace: Pace::new(now), cores: Vec::new() }
    }
}

impl Job {
    /// Look whether there is such a core, if it is time to; if so, end the job. `is_shared`: of which cores another job may have the CPU.
    pub fn check_stalls(&mut self, is_shared: impl Fn(u32) -> bool, now: Instant) {
        if self.phase != Phase::Running || !self.stalls.pace.is_due(now) {
            return;
        }
        if self.has_dying() || self.is_parting() || !self.undone_is_empty() {
            self.stalls.cores.clear();
            return;
        }
        let cores = self.node.header().cores as usize;
        self.stalls.cores.resize_with(cores, || None);
        for core in 0..cores {
            let before = self.stalls.cores[core].take();
            let Some(picture) = self.picture_of(core as u32, is_shared(core as u32)) else { continue };
            let mut stall = match before {
                Some(before) if before.picture == picture => before,
                _ => Stall { picture, since: now, looks: 0, asked_at: now, asked: Vec::new() },
            };
            stall.looks += 1;
            if stall.looks == STILL {
                stall.asked = self.ask_all();
                stall.asked_at = now;
            } else if stall.looks >= STILL + ASKED {
                if self.are_all_back(&stall.asked, now.duration_since(stall.asked_at)) {
                    return self.end_stalled(core as u32, &stall, now);
                }
                // They are woken again; what they have used counts from the first time.
                self.ask_all();
            }
            self.stalls.cores[core] = Some(stall);
        }
    }

    fn picture_of(&self, core: u32, is_shared: bool) -> Option<Picture> {
        let holder = self.node.core(core).holder.load(SeqCst);
        if holder == sched::WITHHELD && is_shared {
            // Another job has it.
            return None;
        }
        let here = self.living().filter(|rank| self.node.core_of(*rank) == core);
        let ranks: Vec<_> = here.map(|rank| (rank, self.node.state(rank), self.node.switches(rank))).collect();
        if ranks.iter().any(|(rank, state, _)| *state == RunState::Running && sched::holder_rank(holder) == Some(*rank))
        {
            return None;
        }
        // Data that is on its way comes to those that wait from ranks outside MPI, or from other nodes; else one of them moves it.
        let all_wait = self.spec.nodes.is_none() && self.living().all(|rank| waits(self.node.state(rank)));
        let has_use = |rank: u32, state: RunState| match state {
            RunState::Ready | RunState::Tended | RunState::Running => true,
            RunState::Suspended => {
                inspect::is_suspended(&self.node, &self.segment, rank).is_none()
                    || all_wait && inspect::is_moving(&self.node, &self.segment, rank)
            }
            _ => false,
        };
        let for_whom = ranks.iter().find(|(rank, state, _)| has_use(*rank, *state)).map(|(rank, ..)| *rank)?;
        Some(Picture { holder, ranks, for_whom })
    }

    /// Wake all who wait in MPI, to look and to sleep again; their CPU times before that, and those of the others.
    pub(super) fn ask_all(&self) -> Vec<(Process, u64)> {
        let ranks = self.living().filter_map(|rank| {
            let entry = &self.ranks[rank as usize];
            // Who has not come to MPI yet, or has left it, is in no step.
            let comes = !matches!(self.node.state(rank), RunState::Init | RunState::Finalized);
            let pid = entry.attachment.as_ref().filter(|_| comes)?.pid;
            Some(Process::Rank { rank, pid })
        });
        let carrier = self.carrier.as_ref().map(|carrier| Process::Carrier { pid: carrier.pid });
        let before: Vec<_> =
            ranks.chain(carrier).map(|process| (process, process_cpu_time_ns(process.pid()).unwrap_or(0))).collect();
        for (process, _) in &before {
            match process {
                Process::Rank { rank, .. } => sched::rouse(&self.node, *rank),
                Process::Carrier { .. } => {
                    self.node.carrier_bell().into_iter().for_each(|bell| bell.ring());
                }
            }
        }
        before
    }

    /// Has each of them gone on since they were asked, `passed` ago, and has nobody who waits anything left to do?
    pub(super) fn are_all_back(&self, asked: &[(Process, u64)], passed: Duration) -> bool {
        asked.iter().all(|(process, before)| {
            let pid = process.pid();
            let used = process_cpu_time_ns(pid).map_or(0, |after| after.saturating_sub(*before));
            if used > 0 && all_threads_asleep(pid) {
                // Whatever it is said to be: it has gone on, and is in no step.
                return !is_stopped(pid);
            }
            match process {
                Process::Rank { rank, .. } if !waits(self.node.state(*rank)) => used >= RAN_NS,
                Process::Rank { .. } => {
                    passed >= ENDLESS && u128::from(used) >= passed.as_nanos() / 2 && threads_of(pid) == Some(1)
                }
                Process::Carrier { .. } => false,
            }
        })
    }

    fn end_stalled(&mut self, core: u32, stall: &Stall, now: Instant) {
        let Picture { holder, ranks, for_whom } = &stall.picture;
        debug!("job {}: core {core} is stalled: holder {holder:#x}, {ranks:?}", self.id);
        let state = self.node.state(*for_whom).name();
        let seconds = now.duration_since(stall.since).as_secs_f64();
        // What is written over cannot be told from what vmpi has forgotten.
        let reason = format!(
            "core {core} goes to nobody, its holder being {holder:#x}, and rank {for_whom} has been {state} there for {seconds:.1} s: its shared \
             memory has been overwritten (one of its ranks writes where it must not: a stray pointer, an index out of range), or vmpi has lost a \
             wake-up; if no rank does such a thing, please report it"
        );
        self.end_by_failure(Cause::Internal { reason }, 125);
    }
}

/// Stopped by a signal or a debugger, or held by the kernel: it may be in the middle of a step for as long as that lasts.
fn is_stopped(pid: i32) -> bool {
    let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| matches!(stat.state, 'T' | 't' | 'D'))
}
