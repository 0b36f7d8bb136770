//! From where in the program ranks wait, by file and line: seen by looks now and then, for a report that was asked for (`--report-html`, `--report`).
//!
//! A look takes the call stacks of a few ranks that sleep; each is stopped for about a millisecond and waits on. The looks take a small part of this process's time,
//! so a short or large run has few of them. Whether such a rank waits for a message or for its core is not seen here: how long it did either is in what was recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::stack::{self, Names, StackError};
use nix::time::{ClockId, clock_gettime};

/// The first look comes so long after the ranks have started, and others at least so much later each.
const FIRST: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(50);
/// Looks take one in so many parts of a CPU's time; where the times of the run are what was asked for, of this.
const PART: u32 = 20;
const SELDOM: u32 = 50;
/// Ranks of a look.
const MOST_RANKS: usize = 4;
/// Calls in which nothing is waited for that the program could change.
const EDGES: [&str; 4] = ["MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Session_init"];

/// A call of the program, and how often which ranks were seen asleep in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteSeen {
    pub function: String,
    /// `file.c:12`, or `program+0x1234`.
    pub place: String,
    /// The program's function.
    pub caller: String,
    pub looks: u64,
    pub ranks: BTreeSet<u32>,
}

/// The looks of a run.
#[derive(Default)]
pub struct Sites {
    pids: Vec<i32>,
    next: Option<Instant>,
    part: u32,
    names: Names,
    seen: BTreeMap<(String, String, String), (u64, BTreeSet<u32>)>,
}

impl Sites {
    /// The ranks are these processes, all of this node.
    pub fn begin(&mut self, pids: &[i32], seldom: bool, now: Instant) {
        self.part = if seldom { SELDOM } else { PART };
        self.pids = pids.to_vec();
        self.next = Some(now + FIRST);
    }

    /// When the next look is due.
    pub fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Look, if it is time to.
    pub fn look(&mut self, now: Instant) {
        if self.next.is_none_or(|at| at > now) {
            return;
        }
        let mut asleep: Vec<u32> =
            (0..self.pids.len() as u32).filter(|rank| sleeps(self.pids[*rank as usize])).collect();
        fastrand::shuffle(&mut asleep);
        let before = cpu_time();
        for rank in asleep.into_iter().take(MOST_RANKS) {
            match stack::site(self.pids[rank as usize], &mut self.names, None) {
                Ok((Some(site), _)) if !EDGES.contains(&site.function.as_str()) => {
                    // What touches the buffer of a deferred call has called nothing.
                    let function = if site.function.is_empty() { "(a deferred call)".into() } else { site.function };
                    let (looks, ranks) = self.seen.entry((function, site.place, site.caller)).or_default();
                    *looks += 1;
                    ranks.insert(rank);
                }
                // A debugger has it.
                Err(StackError::Traced { .. }) => {
                    self.next = None;
                    return;
                }
                // It has gone, computes by now, or sleeps outside MPI.
                Ok(_) | Err(_) => {}
            }
        }
        self.next = Some(Instant::now() + PAUSE.max(cpu_time().saturating_sub(before) * self.part));
    }

    /// What was seen, the most first.
    pub fn into_list(self) -> Vec<SiteSeen> {
        let seen = self.seen.into_iter().map(|((function, place, caller), (looks, ranks))| SiteSeen {
            function,
            place,
            caller,
            looks,
            ranks,
        });
        let mut list: Vec<SiteSeen> = seen.collect();
        list.sort_by_key(|site| std::cmp::Reverse(site.looks));
        list
    }
}

/// What this process has used: a look that waits for a busy CPU has cost nothing.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Is the process's first thread asleep, so that a stop of it changes nothing?
fn sleeps(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_seen_comes_first_and_looks_keep_their_distance() {
        let mut sites = Sites::default();
        let now = Instant::now();
        assert_eq!(sites.due(), None);
        sites.begin(&[], false, now);
        sites.look(now);
        assert_eq!(sites.due(), Some(now + FIRST), "not yet");
        sites.look(now + FIRST);
        assert!(sites.due().is_some_and(|at| at >= now + PAUSE));
        let mut note = |line: &str, looks: u64, ranks: &[u32]| {
            let key = ("MPI_Recv".to_owned(), line.to_owned(), "main".to_owned());
            sites.seen.insert(key, (looks, ranks.iter().copied().collect()));
        };
        note("a.c:1", 2, &[1]);
        note("a.c:9", 7, &[0, 1]);
        let places: Vec<(String, u64)> = sites.into_list().into_iter().map(|site| (site.place, site.looks)).collect();
        assert_eq!(places, [("a.c:9".into(), 7), ("a.c:1".into(), 2)]);
    }
}
