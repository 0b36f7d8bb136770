//! Which V to run with, from what earlier runs took. No files, no clocks.

use serde::{Deserialize, Serialize};

/// Without `-n`: the ranks per core to try.
const DEGREES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];
/// Idle time that is worth filling with more ranks, as a part of the cores' time.
const IDLE: f64 = 0.05;
/// With a fixed number of ranks, idle time at which fewer cores may do.
const IDLE_CORES: f64 = 0.4;
/// Hand-off time that is worth saving.
const HANDOFF: f64 = 0.02;
/// Times that differ by less than this part may be the same.
const ALIKE: f64 = 0.1;
/// Runs of each V that are remembered; the middle one counts.
pub const KEPT: usize = 5;

/// One run that ended well.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub elapsed_s: f64,
    /// Parts of the cores' time in which they were idle, and in which they were handed from rank to rank.
    pub idle: f64,
    pub handoff: f64,
}

impl Run {
    /// Could a clock have shown this?
    pub fn is_sane(&self) -> bool {
        self.elapsed_s > 0.0
            && self.elapsed_s.is_finite()
            && [self.idle, self.handoff].iter().all(|part| (0.0..=1.5).contains(part))
    }
}

/// What is known of one V.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub v: u32,
    /// The last ones, oldest first.
    pub runs: Vec<Run>,
    /// Runs in which a rank failed, since the last that ended well.
    pub failures: u32,
}

impl Record {
    fn median(&self, of: fn(&Run) -> f64) -> f64 {
        let mut values: Vec<f64> = self.runs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::INFINITY)
    }

    fn elapsed_s(&self) -> f64 {
        self.median(|run| run.elapsed_s)
    }
}

/// V, and why in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub v: u32,
    pub why: String,
}

/// The Vs among which to choose, ascending; the first one is the first run's.
///
/// With a fixed number of ranks each stands for a number of cores: all of them first, then half of that, and so on.
pub fn candidates(ranks: Option<u32>, cores: u32) -> Vec<u32> {
    let Some(ranks) = ranks else { return DEGREES.to_vec() };
    let mut used = ranks.min(cores).max(1);
    let mut degrees = Vec::new();
    loop {
        degrees.push(ranks.div_ceil(used));
        if used == 1 {
            break;
        }
        used = used.div_ceil(2);
    }
    degrees.dedup();
    degrees
}

/// Choose among `candidates`, which are ascending and not empty. `fixed`: the number of ranks is given.
///
/// Starts with the first one; looks where the counters point (more ranks per core while cores idle, fewer while they are busy
/// handing over), one step from the fastest so far, and stays when both steps are known to be slower or promise nothing.
pub fn choose(records: &[Record], candidates: &[u32], fixed: bool) -> Choice {
    let known = |v: u32| records.iter().find(|record| record.v == v);
    let runs = |v: u32| known(v).map_or(0, |record| record.runs.len());
    let fails = |v: u32| runs(v) == 0 && known(v).is_some_and(|record| record.failures > 0);
    let measured = || candidates.iter().filter_map(|v| known(*v)).filter(|record| !record.runs.is_empty());
    let Some(best) = measured().min_by(|a, b| a.elapsed_s().total_cmp(&b.elapsed_s())) else {
        return first(candidates, fails, fixed);
    };
    let (idle, handoff) = (best.median(|run| run.idle), best.median(|run| run.handoff));
    let counters =
        format!("cores were idle {:.0} % of the time and handed over {:.0} %", 100.0 * idle, 100.0 * handoff);
    let at = candidates.iter().position(|v| *v == best.v).unwrap_or(0);
    let above = candidates[at + 1..].iter().copied().find(|v| !fails(*v));
    let below = candidates[..at].iter().rev().copied().find(|v| !fails(*v));
    let above = above.filter(|_| idle > if fixed { IDLE_CORES } else { IDLE });
    let below = below.filter(|_| handoff > HANDOFF);
    let order = if idle >= handoff { [above, below] } else { [below, above] };
    for v in order.into_iter().flatten() {
        if runs(v) == 0 {
            return Choice { v, why: format!("to try it: with V = {}, the best so far, {counters}", best.v) };
        }
        let alike = known(v).is_some_and(|record| record.elapsed_s() < best.elapsed_s() * (1.0 + ALIKE));
        if runs(v) < 2 && alike {
            return Choice { v, why: format!("once more: one run of it was about as fast as V = {}", best.v) };
        }
    }
    if best.runs.len() < 2 {
        return Choice { v: best.v, why: format!("once more: the fastest so far, {}; {counters}", seconds(best)) };
    }
    let others: Vec<String> =
        measured().filter(|r| r.v != best.v).map(|r| format!("V = {} {}", r.v, seconds(r))).collect();
    let against = match others.is_empty() {
        true => "nothing speaks for another".to_string(),
        false => format!("against {}", others.join(", ")),
    };
    Choice { v: best.v, why: format!("the fastest: {}, {against}; {counters}", seconds(best)) }
}

fn seconds(record: &Record) -> String {
    format!("{:.2} s", record.elapsed_s())
}

/// Nothing is known that would help.
fn first(candidates: &[u32], fails: impl Fn(u32) -> bool, fixed: bool) -> Choice {
    let works = candidates.iter().copied().find(|v| !fails(*v));
    let v = works.unwrap_or(candidates[0]);
    let how = if fixed { "all cores" } else { "one rank per core, as without vmpi" };
    let why = match works {
        Some(v) if v == candidates[0] => format!("the first run of this program here: {how}; later ones learn from it"),
        Some(_) => "since it failed with fewer".to_string(),
        None => format!("since it failed with every V: {how}"),
    };
    Choice { v, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose run with `v` takes what `model` says: how `-V auto` goes through it in `turns` runs.
    fn play(candidates: &[u32], fixed: bool, turns: usize, model: impl Fn(u32) -> Option<Run>) -> Vec<u32> {
        let mut records: Vec<Record> = Vec::new();
        let mut went = Vec::new();
        for _ in 0..turns {
            let choice = choose(&records, candidates, fixed);
            assert!(candidates.contains(&choice.v) && !choice.why.contains('\n'));
            went.push(choice.v);
            if !records.iter().any(|record| record.v == choice.v) {
                records.push(Record { v: choice.v, ..Record::default() });
            }
            let record = records.iter_mut().find(|record| record.v == choice.v).unwrap();
            match model(choice.v) {
                Some(run) => record.runs.push(run),
                None => record.failures += 1,
            }
        }
        went
    }

    fn run(elapsed_s: f64, idle: f64, handoff: f64) -> Option<Run> {
        Some(Run { elapsed_s, idle, handoff })
    }

    #[test]
    fn idle_cores_get_more_ranks_until_that_no_longer_pays() {
        // The best is at 4.
        let model = |v: u32| {
            run((f64::from(v) - 4.0).abs() + 10.0 / f64::from(v) + 5.0, 0.5 / f64::from(v), 0.01 * f64::from(v))
        };
        let went = play(&candidates(None, 2), false, 20, model);
        assert_eq!(went[..4], [1, 2, 3, 4]);
        assert!(went[12..].iter().all(|v| *v == 4), "{went:?}");
    }

    #[test]
    fn busy_cores_stay_as_they_are() {
        let went = play(&candidates(None, 2), false, 6, |v| run(f64::from(v), 0.01, 0.0));
        assert_eq!(went, [1; 6]);
    }

    #[test]
    fn a_number_of_ranks_that_fails_is_not_tried_again() {
        let model = |v: u32| if v == 2 { None } else { run(10.0 / f64::from(v), 0.3, 0.0) };
        let went = play(&candidates(None, 2), false, 20, model);
        assert_eq!(went.iter().filter(|v| **v == 2).count(), 1);
        assert_eq!(went.last(), Some(&16));
        // One that always fails stays with the first.
        let went = play(&candidates(None, 2), false, 12, |_| None);
        assert_eq!(went.last(), Some(&1));
    }

    #[test]
    fn with_ranks_given_v_is_a_number_of_cores() {
        assert_eq!(candidates(Some(6), 2), [3, 6]);
        assert_eq!(candidates(Some(16), 8), [2, 4, 8, 16]);
        assert_eq!(candidates(Some(1), 8), [1]);
        assert_eq!(candidates(Some(7), 4), [2, 4, 7]);
        // Cores that have something to do are kept; idle ones are given up, and taken back if that was wrong.
        assert_eq!(play(&[2, 4, 8], true, 5, |_| run(1.0, 0.2, 0.01)), [2; 5]);
        let went = play(&[2, 4, 8], true, 8, |v| run(f64::from(v), 0.6, 0.01));
        assert_eq!((went[0], went[1], went[7]), (2, 4, 2));
    }

    #[test]
    fn the_sentence_says_what_was_measured() {
        let record =
            |v, elapsed_s| Record { v, runs: vec![Run { elapsed_s, idle: 0.31, handoff: 0.02 }; 2], failures: 0 };
        let tried = choose(&[record(1, 2.0)], &[1, 2], false);
        assert_eq!(
            tried.why,
            "to try it: with V = 1, the best so far, cores were idle 31 % of the time and handed over 2 %"
        );
        let settled = choose(&[record(1, 2.0), record(2, 1.5)], &[1, 2], false);
        assert_eq!(settled.v, 2);
        assert!(
            settled.why.starts_with("the fastest: 1.50 s, against V = 1 2.00 s; cores were idle 31 %"),
            "{}",
            settled.why
        );
    }
}
