//! A finished job in two lines: how busy its cores were, what its ranks waited for, and what to try.
//!
//! Every word follows from a figure of the report, and says which; where the figures say nothing, so does this.

use crate::table::{percent, seconds};
use std::fmt;
use vmpi_shared::control::{CoreReport, JobReport, JobSpec, RankReport};

/// From this share on something is worth a word.
const NOTABLE: f64 = 0.10;
/// From this share on cores are busy.
const BUSY: f64 = 0.90;
/// A hand-off that takes so long did not get the CPU.
const DISTURBED_S: f64 = 1e-3;

/// What a job was, apart from its clocks.
#[derive(Copy, Clone, Debug, Default)]
pub struct Setup<'a> {
    pub v: u32,
    /// `--balance`
    pub balance: &'a str,
    pub nodes: usize,
}

/// Something that may make the job faster, and the figure that speaks for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Try {
    /// Cores without a rank, of so many.
    Ranks {
        idle_cores: usize,
        cores: usize,
    },
    /// Other jobs had so much of the cores.
    Alone {
        share: f64,
    },
    /// A hand-off took so long on average that something else must have had the CPUs.
    Quieter {
        each_s: f64,
        handoff: f64,
    },
    FewerPerCore {
        v: u32,
        handoff: f64,
    },
    MorePerCore {
        v: u32,
        idle: f64,
    },
    /// One core ran so long, where all did so on average.
    Balance {
        to: &'static str,
        cpu: u32,
        longest_s: f64,
        mean_s: f64,
    },
    /// The same where ranks move already, or cannot.
    Spread {
        cpu: u32,
        longest_s: f64,
        mean_s: f64,
        rank: u32,
    },
    Placement {
        nodes: usize,
    },
    /// Ranks were without a core outside MPI.
    Away {
        share: f64,
        rank: u32,
    },
    MoreCores {
        busy: f64,
    },
}

fn percents(share: f64) -> String {
    format!("{} %", percent(share, 1.0))
}

impl fmt::Display for Try {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Try::Ranks { idle_cores, cores } => {
                write!(f, "-n {cores} or more, since {idle_cores} of the {cores} cores had no rank")
            }
            Try::Alone { share } => {
                write!(f, "running alone, since other jobs had the cores for {} of the time", percents(*share))
            }
            Try::Quieter { each_s, handoff } => write!(
                f,
                "a quieter machine, since hand-offs took {} at {:.1} ms each, which take microseconds where nothing else has the CPUs",
                percents(*handoff),
                each_s * 1e3
            ),
            Try::FewerPerCore { v, handoff } => {
                write!(f, "-V {v} or larger messages, since hand-offs took {}", percents(*handoff))
            }
            Try::MorePerCore { v, idle } => write!(
                f,
                "-V {v} (or -V auto), since the cores were idle alike for {} while their ranks waited",
                percents(*idle)
            ),
            Try::Balance { to, cpu, longest_s, mean_s } => write!(
                f,
                "--balance {to}, since CPU {cpu} ran ranks for {} where the mean is {}",
                seconds(*longest_s),
                seconds(*mean_s)
            ),
            Try::Spread { cpu, longest_s, mean_s, rank } => write!(
                f,
                "giving rank {rank}, which ran longest, less work, since CPU {cpu} ran ranks for {} where the mean is {}",
                seconds(*longest_s),
                seconds(*mean_s)
            ),
            Try::Placement { nodes } => write!(
                f,
                "another placement on the {nodes} nodes, if `--matrix m.json` and `vmpictl matrix m.json --place` find one"
            ),
            Try::Away { share, rank } => write!(
                f,
                "calling MPI more often or waiting less in the kernel, since ranks were outside MPI without their core for {} of \
                 their time (rank {rank} longest)",
                percents(*share)
            ),
            Try::MoreCores { busy } => {
                write!(f, "more cores, since these were busy for {}", percents(*busy))
            }
        }
    }
}

/// The two lines.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How busy the cores were.
    pub busy: String,
    /// What was waited for, and by whom.
    pub waits: String,
    pub tries: Vec<Try>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.busy)?;
        writeln!(f, "{} {}", self.waits, self.advice())
    }
}

/// A core's time without start-up and end, and a rank's.
pub(super) fn inside_core(core: &CoreReport) -> f64 {
    core.running_s + core.idle_s + core.handoff_s + core.withheld_s
}

pub(super) fn inside_rank(rank: &RankReport) -> f64 {
    rank.rtime_s + rank.ready_s + rank.wait_s + rank.away_s
}

/// The one with the most.
fn most<T>(list: &[T], of: impl Fn(&T) -> f64) -> Option<&T> {
    list.iter().max_by(|a, b| of(a).total_cmp(&of(b)))
}

impl Verdict {
    pub fn new(report: &JobReport, setup: &Setup<'_>) -> Verdict {
        let (cores, ranks) = (&report.cores[..], &report.rank_list[..]);
        let sum = |of: fn(&CoreReport) -> f64| cores.iter().map(of).sum::<f64>();
        let inside = sum(inside_core);
        let outside = sum(|core| core.starting_s + core.ending_s);
        let entered = ranks.iter().any(|rank| inside_rank(rank) > 0.0);
        if inside <= 0.0 || !entered {
            let busy = format!("No rank came to the end of MPI_Init; the job was there for {}.", seconds(wall(cores)));
            return Verdict { busy, waits: "Nothing was waited for in MPI.".into(), tries: Vec::new() };
        }
        let share = |of: fn(&CoreReport) -> f64| sum(of) / inside;
        let (busy, idle, handoff) =
            (share(|core| core.running_s), share(|core| core.idle_s), share(|core| core.handoff_s));
        let each = inside / cores.len() as f64;
        let mut line = format!(
            "The {} ran ranks for {} of the {} between start-up and end; idle {}, hand-offs {}.",
            plural(cores.len(), "core"),
            percents(busy),
            seconds(each),
            percents(idle),
            percents(handoff)
        );
        if outside / (inside + outside) >= NOTABLE {
            let took = seconds(outside / cores.len() as f64);
            line.push_str(&format!(
                " Start-up and end took {took} more, {} of the run.",
                percents(outside / (inside + outside))
            ));
        }
        let tries = tries(cores, ranks, setup);
        Verdict { busy: line, waits: waits(report), tries }
    }

    /// Of a job that vmpirun has started.
    pub fn of(report: &JobReport, spec: &JobSpec) -> Verdict {
        let nodes = spec.nodes.as_ref().map_or(1, |nodes| nodes.names.len());
        Verdict::new(report, &Setup { v: spec.v, balance: spec.balance.name(), nodes })
    }

    /// What to try, as a sentence.
    pub fn advice(&self) -> String {
        match &self.tries[..] {
            [] => "Nothing stands out that vmpirun's flags could change.".into(),
            tries => format!("Try {}.", tries.iter().map(Try::to_string).collect::<Vec<_>>().join("; or ")),
        }
    }
}

fn plural(n: usize, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

fn wall(cores: &[CoreReport]) -> f64 {
    cores.iter().map(|core| core.wall_s).fold(0.0, f64::max)
}

/// What ranks waited for, and who most.
fn waits(report: &JobReport) -> String {
    let ranks = &report.rank_list[..];
    let sum = |of: fn(&RankReport) -> f64| ranks.iter().map(of).sum::<f64>();
    let whole = sum(inside_rank);
    let part = |rank: &RankReport| rank.wait_s / inside_rank(rank).max(1e-12);
    let mut text = format!(
        "Ranks waited in MPI for {} of their time and for their core for {}",
        percents(sum(|rank| rank.wait_s) / whole),
        percents(sum(|rank| rank.ready_s) / whole)
    );
    let longest = most(ranks, |rank| rank.wait_s).filter(|rank| ranks.len() > 1 && part(rank) >= NOTABLE);
    if let Some(rank) = longest {
        text.push_str(&format!(" (rank {} waited longest in MPI: {})", rank.rank, percents(part(rank))));
    }
    let seen: f64 = report.waits.iter().map(|share| share.seen_s).sum();
    let told: Vec<String> = report
        .waits
        .iter()
        .filter(|share| share.seen_s >= NOTABLE * seen)
        .map(|share| format!("{} {}", in_words(&share.call), percents(share.seen_s / seen)))
        .collect();
    if !told.is_empty() {
        text.push_str(&format!("; seen waiting {}", told.join(", ")));
    }
    text + "."
}

/// What a wait of `sched::report::CALLS` is for.
fn in_words(call: &str) -> &str {
    match call {
        "receive" => "to receive",
        "send" => "to send",
        "wait" => "for requests",
        "probe" => "for a message to probe",
        "collective" => "in collective calls",
        "inbox space" => "for room at a receiver",
        "finalize" => "in MPI_Finalize",
        "window" => "for one-sided operations",
        "spawn" => "in MPI_Comm_spawn",
        "accept or connect" => "for the other side of a port",
        "agreement" => "for an agreement",
        other => other,
    }
}

fn tries(cores: &[CoreReport], ranks: &[RankReport], setup: &Setup<'_>) -> Vec<Try> {
    let sum = |of: fn(&CoreReport) -> f64| cores.iter().map(of).sum::<f64>();
    let inside = sum(inside_core);
    let share = |of: fn(&CoreReport) -> f64| sum(of) / inside;
    let (busy, idle, handoff) = (share(|core| core.running_s), share(|core| core.idle_s), share(|core| core.handoff_s));
    let mut tries = Vec::new();
    let withheld = share(|core| core.withheld_s);
    if withheld >= NOTABLE {
        tries.push(Try::Alone { share: withheld });
    }
    let idle_cores = cores.iter().filter(|core| core.ranks == 0 && core.running_s <= 0.0).count();
    if idle_cores > 0 {
        tries.push(Try::Ranks { idle_cores, cores: cores.len() });
    }
    let handoffs: u64 = cores.iter().map(|core| core.handoffs).sum();
    let each_s = sum(|core| core.handoff_s) / handoffs.max(1) as f64;
    if handoff >= NOTABLE && handoffs > 0 && each_s >= DISTURBED_S {
        tries.push(Try::Quieter { each_s, handoff });
    } else if handoff >= NOTABLE && setup.v > 1 {
        tries.push(Try::FewerPerCore { v: setup.v - 1, handoff });
    }
    if idle >= NOTABLE && idle_cores == 0 {
        let mean_s = sum(|core| core.running_s) / cores.len() as f64;
        let longest = most(cores, |core| core.running_s).map_or((0, 0.0), |core| (core.cpu, core.running_s));
        let each = inside / cores.len() as f64;
        if longest.1 - mean_s >= NOTABLE * each {
            let (cpu, longest_s) = longest;
            let rank = most(ranks, |rank| rank.rtime_s).map_or(0, |rank| rank.rank);
            tries.push(match (setup.balance, setup.nodes > 1 || ranks.len() <= cores.len()) {
                ("none" | "rescue", false) => Try::Balance { to: "steal", cpu, longest_s, mean_s },
                ("steal", false) => Try::Balance { to: "refine", cpu, longest_s, mean_s },
                _ => Try::Spread { cpu, longest_s, mean_s, rank },
            });
        } else if handoff < NOTABLE {
            tries.push(Try::MorePerCore { v: setup.v + 1, idle });
        }
        if setup.nodes > 1 {
            tries.push(Try::Placement { nodes: setup.nodes });
        }
    }
    let whole: f64 = ranks.iter().map(inside_rank).sum();
    let away: f64 = ranks.iter().map(|rank| rank.away_s).sum::<f64>() / whole;
    if away >= NOTABLE {
        let rank = most(ranks, |rank| rank.away_s).map_or(0, |rank| rank.rank);
        tries.push(Try::Away { share: away, rank });
    }
    if busy >= BUSY && tries.is_empty() {
        tries.push(Try::MoreCores { busy });
    }
    tries.truncate(2);
    tries
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::WaitShare;

    fn core(cpu: u32, running_s: f64, idle_s: f64, handoff_s: f64) -> CoreReport {
        CoreReport { cpu, ranks: 2, running_s, idle_s, handoff_s, wall_s: 1.0, ..CoreReport::default() }
    }

    fn rank(rank: u32, rtime_s: f64, ready_s: f64, wait_s: f64) -> RankReport {
        RankReport { rank, rtime_s, ready_s, wait_s, ..RankReport::default() }
    }

    fn report(cores: Vec<CoreReport>, rank_list: Vec<RankReport>) -> JobReport {
        JobReport { cores, rank_list, ..JobReport::default() }
    }

    fn four(rtime_s: f64) -> Vec<RankReport> {
        (0..4).map(|number| rank(number, rtime_s, 0.1, 0.9 - rtime_s)).collect()
    }

    fn tried(report: &JobReport, v: u32, balance: &str, nodes: usize) -> Vec<Try> {
        Verdict::new(report, &Setup { v, balance, nodes }).tries
    }

    #[test]
    fn the_words_are_the_figures() {
        let mut job = report(vec![core(0, 0.8, 0.15, 0.05), core(1, 0.7, 0.25, 0.05)], four(0.4));
        job.rank_list[2].wait_s = 0.7;
        job.waits = [("collective", 3.0), ("receive", 1.0), ("send", 0.1)]
            .map(|(call, seen_s)| WaitShare { call: call.into(), seen_s })
            .to_vec();
        let text = Verdict::new(&job, &Setup { v: 2, balance: "rescue", nodes: 1 }).to_string();
        assert_eq!(
            text,
            "The 2 cores ran ranks for 75 % of the 1.000s between start-up and end; idle 20 %, hand-offs 5 %.\n\
             Ranks waited in MPI for 52 % of their time and for their core for 10 % (rank 2 waited longest in MPI: 58 %); seen \
             waiting in collective calls 73 %, to receive 24 %. Try -V 3 (or -V auto), since the cores were idle alike for 20 % while \
             their ranks waited.\n"
        );
        // Start-up is told where it is long.
        job.cores.iter_mut().for_each(|core| core.starting_s = 1.0);
        let text = Verdict::new(&job, &Setup { v: 2, balance: "rescue", nodes: 1 }).busy;
        assert!(text.ends_with(" Start-up and end took 1.000s more, 50 % of the run."), "{text}");
        assert!(text.contains("75 % of the 1.000s"), "it is none of the cores' time: {text}");
    }

    #[test]
    fn what_to_try_follows_from_the_figures() {
        let job = |cores: [(f64, f64, f64); 2], ranks: Vec<RankReport>| {
            let [a, b] = cores;
            report(vec![core(0, a.0, a.1, a.2), core(1, b.0, b.1, b.2)], ranks)
        };
        let even = job([(0.5, 0.45, 0.05), (0.5, 0.45, 0.05)], four(0.25));
        assert_eq!(tried(&even, 2, "rescue", 1), [Try::MorePerCore { v: 3, idle: 0.45 }]);
        assert_eq!(tried(&even, 2, "none", 2), [Try::MorePerCore { v: 3, idle: 0.45 }, Try::Placement { nodes: 2 }]);
        let uneven = job([(0.9, 0.1, 0.0), (0.3, 0.7, 0.0)], four(0.3));
        let balance = |to| Try::Balance { to, cpu: 0, longest_s: 0.9, mean_s: 0.6 };
        assert_eq!(tried(&uneven, 2, "rescue", 1), [balance("steal")]);
        assert_eq!(tried(&uneven, 2, "steal", 1), [balance("refine")]);
        let mut ranks = four(0.3);
        ranks[3].rtime_s = 0.5;
        let uneven = job([(0.9, 0.1, 0.0), (0.3, 0.7, 0.0)], ranks);
        let spread = Try::Spread { cpu: 0, longest_s: 0.9, mean_s: 0.6, rank: 3 };
        assert_eq!(tried(&uneven, 2, "refine", 1), std::slice::from_ref(&spread));
        assert_eq!(
            tried(&uneven, 2, "none", 2),
            [spread, Try::Placement { nodes: 2 }],
            "ranks do not move between nodes"
        );
        let costly = job([(0.5, 0.2, 0.3), (0.5, 0.2, 0.3)], four(0.25));
        assert_eq!(tried(&costly, 3, "rescue", 1), [Try::FewerPerCore { v: 2, handoff: 0.3 }]);
        assert_eq!(tried(&costly, 1, "rescue", 1), [], "nobody else is there to hand over to");
        let with = |handoffs: u64| {
            let mut job = costly.clone();
            job.cores.iter_mut().for_each(|core| core.handoffs = handoffs);
            job
        };
        assert_eq!(tried(&with(3000), 3, "rescue", 1), [Try::FewerPerCore { v: 2, handoff: 0.3 }]);
        assert_eq!(tried(&with(100), 3, "rescue", 1), [Try::Quieter { each_s: 0.003, handoff: 0.3 }]);
        let busy = job([(0.95, 0.05, 0.0), (0.95, 0.05, 0.0)], four(0.475));
        assert_eq!(tried(&busy, 2, "rescue", 1), [Try::MoreCores { busy: 0.95 }]);
        let good = job([(0.85, 0.08, 0.07), (0.85, 0.08, 0.07)], four(0.42));
        assert_eq!(tried(&good, 2, "rescue", 1), []);
        let mut half = even.clone();
        half.cores[1] = CoreReport { ranks: 0, ..core(1, 0.0, 1.0, 0.0) };
        assert_eq!(tried(&half, 2, "rescue", 1), [Try::Ranks { idle_cores: 1, cores: 2 }]);
        let mut shared = busy.clone();
        shared.cores.iter_mut().for_each(|core| core.withheld_s = 1.0);
        assert_eq!(tried(&shared, 2, "rescue", 1), [Try::Alone { share: 0.5 }]);
        let mut asleep = busy;
        asleep.rank_list[1].away_s = 1.0;
        assert_eq!(tried(&asleep, 2, "rescue", 1), [Try::Away { share: 0.2, rank: 1 }]);
    }

    #[test]
    fn a_job_without_mpi_has_nothing_to_say() {
        let core = CoreReport { starting_s: 2.0, wall_s: 2.0, ..CoreReport::default() };
        let job = report(vec![core], vec![RankReport { starting_s: 2.0, ..RankReport::default() }]);
        let verdict = Verdict::new(&job, &Setup::default());
        assert_eq!(verdict.busy, "No rank came to the end of MPI_Init; the job was there for 2.000s.");
        assert_eq!(verdict.tries, []);
        let nothing = Verdict::new(&JobReport::default(), &Setup::default()).to_string();
        assert_eq!(nothing.lines().count(), 2, "{nothing}");
        assert!(!nothing.contains("NaN"), "{nothing}");
    }
}
