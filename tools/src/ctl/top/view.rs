//! What happened between two looks at the jobs, as rows.

use crate::ctl::show::dash;
use crate::failure::Failure;
use crate::table::{Table, bytes, percent};
use std::cmp::Ordering;
use std::collections::HashMap;
use vmpi_shared::control::{CoreReport, JobReport, RankReport};

pub(super) type Jobs = Vec<(i32, JobReport)>;

/// A core's time in the interval, as shares.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CoreLine {
    pub(super) job: u32,
    pub(super) cpu: u32,
    pub(super) ranks: u32,
    pub(super) running: Option<u32>,
    pub(super) ready: u32,
    pub(super) handoffs_per_s: f64,
    /// Running, hand-off, idle, other jobs, starting, ending: seconds of the interval.
    pub(super) parts: [f64; 6],
}

/// A rank's time in the interval.
#[derive(Clone, Debug)]
pub(super) struct RankLine {
    pub(super) job: u32,
    pub(super) rank: RankReport,
    /// Running, ready, waiting, away, starting, ending.
    pub(super) parts: [f64; 6],
    pub(super) sent_per_s: f64,
}

/// What happened between two looks.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) jobs: usize,
    pub(super) cores: Vec<CoreLine>,
    pub(super) ranks: Vec<RankLine>,
    pub(super) interval_s: f64,
}

fn parts_of_core(core: &CoreReport) -> [f64; 6] {
    [core.running_s, core.handoff_s, core.idle_s, core.withheld_s, core.starting_s, core.ending_s]
}

fn parts_of_rank(rank: &RankReport) -> [f64; 6] {
    [rank.rtime_s, rank.ready_s, rank.wait_s, rank.away_s, rank.starting_s, rank.ending_s]
}

fn difference(now: [f64; 6], before: Option<[f64; 6]>) -> [f64; 6] {
    let before = before.unwrap_or_default();
    std::array::from_fn(|at| (now[at] - before[at]).max(0.0))
}

impl View {
    pub(super) fn between(before: &Jobs, now: &Jobs, interval_s: f64) -> View {
        let key = |daemon: i32, job: u32, number: u32| (daemon, job, number);
        let mut cores = HashMap::new();
        let mut ranks = HashMap::new();
        for (daemon, job) in before {
            cores.extend(job.cores.iter().map(|core| (key(*daemon, job.job, core.cpu), core)));
            ranks.extend(job.rank_list.iter().map(|rank| (key(*daemon, job.job, rank.rank), rank)));
        }
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / interval_s.max(1e-9);
        let mut view = View { jobs: now.len(), interval_s, ..View::default() };
        for (daemon, job) in now {
            for core in &job.cores {
                let old = cores.get(&key(*daemon, job.job, core.cpu));
                view.cores.push(CoreLine {
                    job: job.job,
                    cpu: core.cpu,
                    ranks: core.ranks,
                    running: core.running,
                    ready: core.ready,
                    handoffs_per_s: rate(core.handoffs, old.map_or(0, |old| old.handoffs)),
                    parts: difference(parts_of_core(core), old.map(|old| parts_of_core(old))),
                });
            }
            for rank in &job.rank_list {
                let old = ranks.get(&key(*daemon, job.job, rank.rank));
                view.ranks.push(RankLine {
                    job: job.job,
                    rank: rank.clone(),
                    parts: difference(parts_of_rank(rank), old.map(|old| parts_of_rank(old))),
                    sent_per_s: rate(rank.sent_bytes, old.map_or(0, |old| old.sent_bytes)),
                });
            }
        }
        view
    }

    pub(super) fn head(&self) -> String {
        let jobs = if self.jobs == 1 { "1 job".into() } else { format!("{} jobs", self.jobs) };
        format!("vmpi: {jobs}, {} ranks on {} cores, over {:.1} s", self.ranks.len(), self.cores.len(), self.interval_s)
    }
}

pub(super) const CORE_HEAD: [&str; 9] =
    ["JOB", "CPU", "RANKS", "RUNS", "READY", "BUSY%", "HAND-OFF%", "IDLE%", "HAND-OFFS/S"];
pub(super) const RANK_HEAD: [&str; 11] =
    ["JOB", "RANK", "PID", "CPU", "STATE", "BUSY%", "READY%", "WAIT%", "TX/S", "RSS", "WAITING-ON"];

fn core_cells(line: &CoreLine) -> Vec<String> {
    let whole = line.parts.iter().sum();
    vec![
        line.job.to_string(),
        line.cpu.to_string(),
        line.ranks.to_string(),
        line.running.map_or_else(|| "-".into(), |rank| rank.to_string()),
        line.ready.to_string(),
        percent(line.parts[0], whole),
        percent(line.parts[1], whole),
        percent(line.parts[2], whole),
        format!("{:.0}", line.handoffs_per_s),
    ]
}

pub(super) fn rank_cells(line: &RankLine) -> Vec<String> {
    let whole = line.parts.iter().sum();
    let rank = &line.rank;
    vec![
        line.job.to_string(),
        rank.rank.to_string(),
        rank.pid.to_string(),
        rank.cpu.to_string(),
        rank.state.clone(),
        percent(line.parts[0], whole),
        percent(line.parts[1], whole),
        percent(line.parts[2], whole),
        bytes(line.sent_per_s as u64),
        bytes(rank.rss_bytes),
        dash(&rank.waiting_on),
    ]
}

/// What a column is sorted by.
#[derive(PartialEq, PartialOrd)]
enum Value<'a> {
    Number(f64),
    Text(&'a str),
}

fn value(line: &RankLine, column: usize) -> Value<'_> {
    let whole = line.parts.iter().sum::<f64>().max(1e-12);
    let rank = &line.rank;
    match RANK_HEAD[column] {
        "JOB" => Value::Number(line.job.into()),
        "PID" => Value::Number(rank.pid.into()),
        "CPU" => Value::Number(rank.cpu.into()),
        "STATE" => Value::Text(&rank.state),
        "BUSY%" => Value::Number(line.parts[0] / whole),
        "READY%" => Value::Number(line.parts[1] / whole),
        "WAIT%" => Value::Number(line.parts[2] / whole),
        "TX/S" => Value::Number(line.sent_per_s),
        "RSS" => Value::Number(rank.rss_bytes as f64),
        "WAITING-ON" => Value::Text(&rank.waiting_on),
        _ => Value::Number(rank.rank.into()),
    }
}

/// Which ranks are shown, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// A column of `RANK_HEAD`; `None`: by job and rank.
    pub(super) column: Option<usize>,
    /// The other way round than is natural: figures of what happens the largest first, all else the smallest.
    pub(super) reversed: bool,
    /// Words that must all be in a row.
    pub(super) filter: String,
}

impl Order {
    /// # Errors
    /// No column has this name.
    pub(super) fn new(sort: Option<&str>, filter: Option<&str>) -> Result<Order, Failure> {
        let column = sort.map(|name| {
            let wanted = name.trim_end_matches('%');
            let found = RANK_HEAD.iter().position(|head| head.trim_end_matches('%').eq_ignore_ascii_case(wanted));
            found.ok_or_else(|| {
                Failure::usage(format!("--sort {name}: there is no such column; these are: {}", RANK_HEAD.join(", ")))
            })
        });
        Ok(Order { column: column.transpose()?, reversed: false, filter: filter.unwrap_or_default().into() })
    }

    /// Does this column begin with the largest?
    fn falls(&self, column: usize) -> bool {
        matches!(RANK_HEAD[column], "BUSY%" | "READY%" | "WAIT%" | "TX/S" | "RSS") != self.reversed
    }

    /// The mark beside its column's name.
    pub(super) fn arrow(&self, column: usize) -> &'static str {
        match self.column {
            Some(own) if own == column => {
                if self.falls(column) {
                    "\u{25be}"
                } else {
                    "\u{25b4}"
                }
            }
            _ => "",
        }
    }

    pub(super) fn of<'a>(&self, view: &'a View) -> Vec<&'a RankLine> {
        let words: Vec<String> = self.filter.split_whitespace().map(str::to_lowercase).collect();
        let fits = |line: &&RankLine| {
            let row = rank_cells(line).join(" ").to_lowercase();
            words.iter().all(|word| row.contains(word.as_str()))
        };
        let mut lines: Vec<&RankLine> = view.ranks.iter().filter(fits).collect();
        if let Some(column) = self.column {
            let by = |a: &&RankLine, b: &&RankLine| {
                value(a, column).partial_cmp(&value(b, column)).unwrap_or(Ordering::Equal)
            };
            lines.sort_by(|a, b| if self.falls(column) { by(b, a) } else { by(a, b) });
        }
        lines
    }
}

/// As plain tables.
pub(super) fn plain(view: &View, order: &Order) -> String {
    let mut cores = Table::new(&CORE_HEAD);
    view.cores.iter().for_each(|line| cores.row(core_cells(line)));
    let mut ranks = Table::new(&RANK_HEAD);
    order.of(view).into_iter().for_each(|line| ranks.row(rank_cells(line)));
    format!("{}\n\n{cores}\n{ranks}", view.head())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn jobs(running_s: f64, idle_s: f64, handoffs: u64) -> Jobs {
        let core = CoreReport { cpu: 1, ranks: 2, running_s, idle_s, handoffs, ..CoreReport::default() };
        let rank = |rank: u32, rtime_s: f64, wait_s: f64| RankReport {
            rank,
            rtime_s,
            wait_s,
            state: if rank == 0 { "SUSPENDED" } else { "READY" }.into(),
            waiting_on: if rank == 0 { "receive peer=0 tag=1" } else { "" }.into(),
            ..RankReport::default()
        };
        let rank_list = vec![rank(0, running_s, idle_s), rank(1, 0.0, running_s + idle_s)];
        vec![(7, JobReport { job: 3, cores: vec![core], rank_list, ..JobReport::default() })]
    }

    #[test]
    fn what_is_shown_is_the_interval() {
        let view = View::between(&jobs(10.0, 0.0, 100), &jobs(10.75, 0.25, 300), 1.0);
        assert_eq!(view.cores[0].parts, [0.75, 0.0, 0.25, 0.0, 0.0, 0.0]);
        assert!((view.cores[0].handoffs_per_s - 200.0).abs() < 1e-9);
        let text = plain(&view, &Order::default());
        assert!(text.contains("vmpi: 1 job, 2 ranks on 1 cores, over 1.0 s"), "{text}");
        assert!(text.lines().any(|line| line.starts_with("3    1    2") && line.contains("75")), "{text}");
    }

    #[test]
    fn rows_are_chosen_and_put_in_order() {
        let view = View::between(&jobs(0.0, 0.0, 0), &jobs(0.6, 0.4, 1), 1.0);
        let shown = |order: &Order| order.of(&view).iter().map(|line| line.rank.rank).collect::<Vec<_>>();
        let order = |sort: &str| Order::new(Some(sort), None).unwrap();
        assert_eq!(shown(&Order::default()), [0, 1]);
        assert_eq!(shown(&order("busy")), [0, 1], "the busiest first");
        assert_eq!(shown(&order("WAIT%")), [1, 0]);
        assert_eq!(shown(&Order { reversed: true, ..order("WAIT%") }), [0, 1]);
        assert_eq!(shown(&order("state")), [1, 0], "READY before SUSPENDED");
        assert_eq!(
            (order("state").arrow(4), order("state").arrow(5), order("busy").arrow(5)),
            ("\u{25b4}", "", "\u{25be}")
        );
        let filter = |words: &str| Order::new(None, Some(words)).unwrap();
        assert_eq!(shown(&filter("suspended PEER=0")), [0]);
        assert_eq!(shown(&filter("suspended peer=1")), [] as [u32; 0]);
        let refused = Order::new(Some("colour"), None).unwrap_err();
        assert!(refused.sentence.contains("--sort colour") && refused.sentence.contains("WAIT%"), "{refused:?}");
    }
}
