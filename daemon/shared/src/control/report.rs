//! A job, its cores and its ranks as tools are told of them.

use super::check::Findings;
use crate::trace::regions::OTHERS;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A job as `vmpictl ps` and `show` print it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobReport {
    pub job: u32,
    pub program: String,
    pub ranks: u32,
    pub v: u32,
    pub launcher_pid: i32,
    pub elapsed_s: f64,
    pub policy: String,
    #[serde(default)]
    pub balance: String,
    pub faces: Vec<String>,
    pub cores: Vec<CoreReport>,
    pub rank_list: Vec<RankReport>,
    /// Facts about transports: what was chosen and why.
    pub notes: Vec<String>,
    /// Performance counters that are counted: what the numbers of cores and ranks are.
    #[serde(default)]
    pub counters: Vec<String>,
    /// What its ranks were seen waiting for, the most first.
    #[serde(default)]
    pub waits: Vec<WaitShare>,
    /// The program's own regions, those first in which ranks were longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<RegionReport>,
    /// Of a simulated job: what it would take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulation: Option<SimulationReport>,
    /// What `vmpirun --check` has found so far.
    #[serde(default, skip_serializing_if = "Findings::is_empty")]
    pub findings: Findings,
    /// Of a job that has ended: what its ranks had started and not waited for. A good end leaves it running, any other ends it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<Helper>,
}

/// A simulated job in virtual time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationReport {
    pub machine: String,
    /// Until the last rank's last call of MPI.
    pub predicted_s: f64,
    pub computing: Spread3,
    /// What sending and receiving has kept ranks busy.
    pub sending: Spread3,
    pub waiting: Spread3,
    pub messages: u64,
    /// What the simulation itself has gone through.
    pub events: u64,
    /// In so many rounds: each begins with a new lower bound on what may still happen.
    pub rounds: u64,
}

/// The least, the mean and the most of all ranks, in seconds.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread3 {
    pub min_s: f64,
    pub mean_s: f64,
    pub max_s: f64,
}

/// A process that a rank has started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helper {
    /// Its node, in a job of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub pid: i32,
    pub name: String,
}

/// For how long ranks, all together, were seen waiting for something (`sched::report::CALLS`), by looks now and then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    pub call: String,
    pub seen_s: f64,
}

/// A region that the program has named (MPIX_Region_begin), over all ranks that were in it. Times of one that is open end with its last end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionReport {
    pub name: String,
    /// Ranks that were in it, and how often all together.
    pub ranks: u32,
    pub entered: u64,
    /// How long a rank was in it: the least, all together, the most, and whose that is.
    pub min_s: f64,
    pub sum_s: f64,
    pub max_s: f64,
    pub max_rank: u32,
    /// Of it, all together, waiting in MPI, and for a core.
    pub wait_s: f64,
    pub ready_s: f64,
    /// Ranks that have begun it and not ended it; ends without a begin.
    pub open: u32,
    pub strays: u64,
}

impl RegionReport {
    pub fn mean_s(&self) -> f64 {
        self.sum_s / f64::from(self.ranks.max(1))
    }

    /// What several ranks, or nodes, tell of regions: each once, those first in which ranks were longest. Where each rank has names of its own the shortest ones
    /// are told together.
    pub fn together(told: impl IntoIterator<Item = RegionReport>) -> Vec<RegionReport> {
        let mut known: BTreeMap<String, RegionReport> = BTreeMap::new();
        for region in told {
            match known.get_mut(&region.name) {
                Some(all) => all.add(region),
                None => drop(known.insert(region.name.clone(), region)),
            }
        }
        let mut all: Vec<RegionReport> = known.into_values().collect();
        let sort = |all: &mut Vec<RegionReport>| {
            all.sort_by(|a, b| b.sum_s.total_cmp(&a.sum_s).then_with(|| a.name.cmp(&b.name)));
        };
        sort(&mut all);
        if all.len() > MOST_REGIONS {
            let mut others = RegionReport { name: OTHERS.into(), ..RegionReport::default() };
            all.split_off(MOST_REGIONS - 1).into_iter().for_each(|region| others.add(region));
            match all.iter_mut().find(|region| region.name == OTHERS) {
                Some(known) => known.add(others),
                None => all.push(others),
            }
            sort(&mut all);
        }
        all
    }

    fn add(&mut self, more: RegionReport) {
        if more.max_s > self.max_s {
            self.max_rank = more.max_rank;
        }
        self.min_s = match (self.ranks, more.ranks) {
            (0, _) => more.min_s,
            (_, 0) => self.min_s,
            _ => self.min_s.min(more.min_s),
        };
        self.ranks = self.ranks.saturating_add(more.ranks);
        self.entered = self.entered.saturating_add(more.entered);
        self.sum_s += more.sum_s;
        self.max_s = self.max_s.max(more.max_s);
        self.wait_s += more.wait_s;
        self.ready_s += more.ready_s;
        self.open = self.open.saturating_add(more.open);
        self.strays = self.strays.saturating_add(more.strays);
    }
}

/// Regions of a report.
const MOST_REGIONS: usize = 512;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CoreReport {
    /// Its node, in a job of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub cpu: u32,
    pub ranks: u32,
    pub running: Option<u32>,
    pub ready: u32,
    pub handoffs: u64,
    pub running_s: f64,
    pub idle_s: f64,
    pub handoff_s: f64,
    /// Time that the core was another job's.
    pub withheld_s: f64,
    /// Time in which none of its ranks ran, while one of them had not come to the end of MPI_Init yet; while one had left MPI_Finalize, or the
    /// job was ended (`sched::outside`).
    #[serde(default)]
    pub starting_s: f64,
    #[serde(default)]
    pub ending_s: f64,
    /// Time since the job's segments were made: what the six add up to.
    pub wall_s: f64,
    /// Largest number of ranks ever RUNNING at one time on this core (SPECIFICATION 2.1: at most 1), and how often it was more than one.
    pub max_running: u32,
    pub violations: u64,
    /// Core-POV timer.
    pub ptime_s: f64,
    /// Ranks that have come here from other cores, counted at each move.
    #[serde(default)]
    pub moves: u32,
    /// Performance counters: what ranks counted on this core.
    #[serde(default)]
    pub counters: Vec<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankReport {
    pub rank: u32,
    pub pid: i32,
    pub cpu: u32,
    pub state: String,
    pub face: String,
    /// Call, peer and tag that the rank waits for, if SUSPENDED.
    pub waiting_on: String,
    pub switches: u64,
    pub rtime_s: f64,
    pub ready_s: f64,
    pub wait_s: f64,
    pub away_s: f64,
    /// Before the end of MPI_Init, and after MPI_Finalize (or its death there) until its processes had ended.
    #[serde(default)]
    pub starting_s: f64,
    #[serde(default)]
    pub ending_s: f64,
    /// From its start to its end: what the six add up to.
    #[serde(default)]
    pub wall_s: f64,
    pub sent_messages: u64,
    pub sent_bytes: u64,
    pub received_messages: u64,
    pub received_bytes: u64,
    pub unexpected: u64,
    pub rss_bytes: u64,
    pub warn: String,
    /// Which MPI_COMM_WORLD (`World::number`), and the rank there.
    #[serde(default)]
    pub world: u32,
    #[serde(default)]
    pub world_rank: u32,
    /// How often it has moved to another core.
    #[serde(default)]
    pub moves: u32,
    /// Performance counters, as they stood when it last left a core.
    #[serde(default)]
    pub counters: Vec<u64>,
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn region(name: &str, rank: u32, time_s: f64) -> RegionReport {
        let (sum_s, min_s, max_s, wait_s) = (time_s, time_s, time_s, time_s / 2.0);
        let name = name.to_owned();
        RegionReport {
            name,
            ranks: 1,
            entered: 2,
            min_s,
            sum_s,
            max_s,
            max_rank: rank,
            wait_s,
            ..RegionReport::default()
        }
    }

    #[test]
    fn regions_of_ranks_are_told_together() {
        let stray = RegionReport { name: "a".into(), strays: 3, ..RegionReport::default() };
        let all = RegionReport::together([stray, region("a", 4, 1.0), region("b", 0, 9.0), region("a", 5, 3.0)]);
        assert_eq!(all.iter().map(|region| region.name.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let expected = RegionReport {
            ranks: 2,
            entered: 4,
            min_s: 1.0,
            sum_s: 4.0,
            wait_s: 2.0,
            strays: 3,
            ..region("a", 5, 3.0)
        };
        assert_eq!(all[1], expected);
        assert_eq!(all[1].mean_s(), 2.0);
    }

    #[test]
    fn names_without_end_end() {
        let all = RegionReport::together((0..5000).map(|n| region(&format!("rank {n}"), n, f64::from(n))));
        assert_eq!(all.len(), MOST_REGIONS);
        let others = all.iter().find(|region| region.name == OTHERS).expect("the rest");
        assert_eq!((others.ranks, others.entered), (5000 - 511, 2 * (5000 - 511)));
        let whole: f64 = all.iter().map(|region| region.sum_s).sum();
        assert_eq!(whole, f64::from(5000 * 4999 / 2));
        // What is told of nodes that have such each is no more.
        assert_eq!(RegionReport::together(all.iter().cloned().chain(all.iter().cloned())).len(), MOST_REGIONS);
    }
}
