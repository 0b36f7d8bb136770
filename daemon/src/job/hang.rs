//! A job in which nothing comes about, though nobody can prove that it never will (`vmpirun --on-hang`).
//!
//! Progress is: a rank has sent or received a message, or a wait in MPI has ended. If there has been none for as long as the user says, the launcher is
//! told what each rank does: it waits in MPI, or it used the CPU lately (it computes, or asks MPI again and again), or it sleeps elsewhere. Once, until there
//! is progress again. What is proven to be a deadlock is told as one (`deadlock`), and not here.

use std::time::{Duration, Instant};

use vmpi_shared::control::Reply;
use vmpi_shared::mem::sync::Ordering::Relaxed;

use crate::job::pace::Pace;
use crate::job::{Job, Phase};

/// A rank that used more of a CPU than this, in percent, does something.
const BUSY_PERCENT: u64 = 5;

/// What the last looks have seen.
pub struct HangWatch {
    pace: Pace,
    progress: u64,
    since: Instant,
    /// The CPU time of each rank's process when half of the time was over, in clock ticks.
    half: Option<(Instant, Vec<(u64, bool)>)>,
    told: bool,
}

impl HangWatch {
    pub fn new(now: Instant) -> HangWatch {
        HangWatch { pace: Pace::new(now), progress: 0, since: now, half: None, told: false }
    }
}

/// User and system time of a process, in clock ticks, and whether it runs or waits for a CPU right now.
fn cpu_ticks(pid: i32) -> (u64, bool) {
    let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
    stat.map_or((0, false), |stat| (stat.utime + stat.stime, stat.state == 'R'))
}

impl Job {
    /// Look whether anything has come about lately, if the user wants to know and it is time to.
    pub fn check_hang(&mut self, now: Instant) {
        if self.spec.hang_s == 0 || self.phase != Phase::Running || !self.hang.pace.is_due(now) {
            return;
        }
        let progress = self.progress();
        if progress != self.hang.progress || self.has_dying() {
            self.hang = HangWatch { progress, ..HangWatch::new(now) };
            return;
        }
        let (quiet, limit) = (now.duration_since(self.hang.since), Duration::from_secs(self.spec.hang_s));
        if quiet * 2 >= limit && self.hang.half.is_none() {
            self.hang.half = Some((now, self.cpu_times()));
        }
        if quiet < limit || std::mem::replace(&mut self.hang.told, true) || self.is_told_as_deadlock() {
            return;
        }
        let mut waits = self.waits();
        if let Some((since, before)) = &self.hang.half {
            let ticks = (now.duration_since(*since).as_secs_f64() * procfs::ticks_per_second() as f64).max(1.0);
            for ((rank, (before, _)), (after, runs)) in waits.ranks.iter_mut().zip(before).zip(self.cpu_times()) {
                // Where many want the CPU, it may have got little of it.
                let percent = (after.saturating_sub(*before) as f64 * 100.0 / ticks) as u64;
                rank.is_busy = Some(runs || percent > BUSY_PERCENT).filter(|_| rank.call.is_empty());
            }
        }
        self.outbox.push((Reply::Hang { waits: Box::new(waits), seconds: self.spec.hang_s }, Vec::new()));
    }

    /// When the next look is due.
    pub fn next_hang_look(&self) -> Option<Instant> {
        (self.spec.hang_s > 0).then_some(self.hang.pace.next())
    }

    /// A number that changes with each message and each end of a wait.
    fn progress(&self) -> u64 {
        let of = |rank: u32| {
            let descriptor = self.node.rank(rank);
            [&descriptor.sent_messages, &descriptor.received_messages, &descriptor.wait_ticks]
                .map(|count| count.load(Relaxed))
                .into_iter()
                .fold(0, u64::wrapping_add)
        };
        // A rank that has come or gone is progress, too.
        (0..self.ranks.len() as u32).map(of).fold(u64::from(self.remaining) + self.live as u64, u64::wrapping_add)
    }

    fn cpu_times(&self) -> Vec<(u64, bool)> {
        let pid = |entry: &crate::rank::Rank| entry.attachment.as_ref().map_or(entry.pid, |a| a.pid);
        self.ranks.iter().map(|entry| if entry.over { (0, false) } else { cpu_ticks(pid(entry)) }).collect()
    }
}
