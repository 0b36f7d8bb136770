//! A rank whose threads want more CPUs than it has, while CPUs of the job have nothing to do: the launcher is told, once.
//!
//! A hybrid program that nobody has told of its CPUs runs at a fraction of its speed, and nothing else shows it. Looks come with the watchdog's, four times a
//! second at most, and only at ranks that hold a core; a rank with no more threads than CPUs costs one read of its `stat`.

use std::time::Instant;

use vmpi_shared::control::Reply;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::lease;

use crate::job::pace::Pace;
use crate::job::{Job, Phase};

/// So many looks in a row must find it so: threads come and go, and a serial part of one rank is no waste.
const LOOKS: u32 = 3;

/// What the last looks have seen.
pub struct Crowds {
    pace: Pace,
    /// The rank that was crowded at the last look, and at how many in a row.
    seen: Option<(u32, u32)>,
    told: bool,
}

impl Crowds {
    pub fn new(now: Instant) -> Crowds {
        Crowds { pace: Pace::new(now), seen: None, told: false }
    }

    /// One more look, which has found `crowded`. True if that is enough to tell.
    fn note(&mut self, crowded: Option<u32>) -> bool {
        self.seen = crowded.map(|rank| match self.seen {
            Some((known, looks)) if known == rank => (rank, looks + 1),
            _ => (rank, 1),
        });
        self.told = self.seen.is_some_and(|(_, looks)| looks >= LOOKS);
        self.told
    }
}

/// Threads of a process that run, or could if they had a CPU; not counted if it has no more than `cpus` at all.
fn runnable_threads(pid: i32, cpus: usize) -> usize {
    let Ok(process) = procfs::process::Process::new(pid) else { return 0 };
    if process.stat().map_or(0, |stat| stat.num_threads) <= cpus as i64 {
        return 0;
    }
    let runs = |task: &procfs::process::Task| task.stat().is_ok_and(|stat| stat.state == 'R');
    process.tasks().map_or(0, |tasks| tasks.flatten().filter(runs).count())
}

fn is_idle(node: &NodeSegment, core: u32) -> bool {
    node.running_on(core).is_none() && !lease::is_awaited(node, core)
}

impl Job {
    /// Look whether a rank has too few CPUs, if it is time to and nobody has been told.
    pub fn check_crowds(&mut self, now: Instant) {
        let wanted = self.spec.bind && self.phase == Phase::Running && !self.crowds.told;
        if !wanted || !self.crowds.pace.is_due(now) {
            return;
        }
        let cores = self.spec.all_cpus().count() as u32;
        let idle: Vec<u32> = (0..cores).filter(|core| is_idle(&self.node, *core)).collect();
        let crowded = if idle.is_empty() { None } else { self.most_crowded(&idle) };
        let looks_enough = self.crowds.note(crowded.as_ref().map(|(rank, ..)| *rank));
        if let Some((rank, threads, cpus)) = crowded.filter(|_| looks_enough) {
            let idle = idle.iter().flat_map(|core| self.spec.place(*core as usize)).collect();
            self.outbox.push((Reply::Crowded { rank, threads, cpus, idle }, Vec::new()));
        }
    }

    /// The rank with the most threads without a CPU among those that hold a core, how many of its threads run, and how many CPUs they have. CPUs of `idle` cores
    /// that it may use are no help that it lacks.
    fn most_crowded(&self, idle: &[u32]) -> Option<(u32, u32, u32)> {
        let running = (0..self.spec.cpus.len() as u32).filter_map(|core| Some((core, self.node.running_on(core)?)));
        let crowd = running.filter_map(|(core, rank)| {
            let entry = self.ranks.get(rank as usize).filter(|entry| !entry.over)?;
            let mask = self.spec.masks.get(core as usize).filter(|mask| !mask.is_empty());
            let cpus: Vec<u32> = mask.cloned().unwrap_or_else(|| self.spec.place(core as usize).collect());
            let has = |core: &u32| self.spec.place(*core as usize).all(|cpu| cpus.contains(&cpu));
            if idle.iter().all(has) {
                return None;
            }
            let pid = entry.attachment.as_ref().map_or(entry.pid, |attachment| attachment.pid);
            let threads = runnable_threads(pid, cpus.len());
            (threads > cpus.len()).then_some((rank, threads as u32, cpus.len() as u32))
        });
        crowd.max_by_key(|(_, threads, cpus)| threads - cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_when_it_lasts() {
        let mut crowds = Crowds::new(Instant::now());
        let told: Vec<bool> =
            [Some(1), Some(1), None, Some(1), Some(2), Some(2), Some(2)].map(|seen| crowds.note(seen)).to_vec();
        assert_eq!(told, [false, false, false, false, false, false, true]);
    }

    #[test]
    fn threads_that_want_a_cpu_are_counted() {
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
            let own = std::process::id() as i32;
            let (seen, with_many) = (runnable_threads(own, 1), runnable_threads(own, 1000));
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(seen >= 3, "{seen}");
            assert_eq!(with_many, 0);
        });
    }
}
