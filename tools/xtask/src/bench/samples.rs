//! What the runs have measured, by figure, place on the x axis, system and round; and the lines of programs from which it comes.

use crate::statistics::{median, median_ratio, percentile};
use std::collections::BTreeMap;

/// A line that a program printed for us (`tests/programs/bench/bench.h`).
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// A measurement; `system` if the program says itself of what.
    Measured { figure: &'a str, x: u64, value: f64, system: Option<&'a str> },
    /// Something that must be the same in all runs.
    Fact { name: &'a str, value: &'a str },
}

/// None: a line of no concern to us.
pub fn parse(line: &str) -> Option<Line<'_>> {
    let mut words = line.split_whitespace();
    match words.next()? {
        "@" => {
            let (figure, x, value) = (words.next()?, words.next()?.parse().ok()?, words.next()?.parse::<f64>().ok()?);
            let system = words.next();
            let sound = value.is_finite() && value >= 0.0 && words.next().is_none();
            sound.then_some(Line::Measured { figure, x, value, system })
        }
        "=" => {
            let fact = Line::Fact { name: words.next()?, value: words.next()? };
            words.next().is_none().then_some(fact)
        }
        _ => None,
    }
}

/// How often ranks came to another core, from the line that `vmpirun --json` prints; None: another line.
pub fn moves(line: &str) -> Option<f64> {
    let value: serde_json::Value = serde_json::from_str(line.starts_with('{').then_some(line)?).ok()?;
    value["report"]["cores"].as_array()?.iter().map(|core| core["moves"].as_f64()).sum()
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub figure: String,
    pub x: u64,
    pub system: String,
}

/// Values by round.
pub type Rounds = BTreeMap<usize, f64>;

#[derive(Default)]
pub struct Samples {
    values: BTreeMap<Key, Rounds>,
    /// Who said what, by name of the fact.
    facts: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Why a run gave nothing, by what was run.
    pub missing: BTreeMap<String, String>,
    /// Those of them that no peer is to blame for.
    pub failures: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub median: f64,
    pub p5: f64,
    pub p95: f64,
    pub rounds: usize,
}

impl Samples {
    pub fn add(&mut self, round: usize, figure: &str, x: u64, system: &str, value: f64) {
        let key = Key { figure: figure.into(), x, system: system.into() };
        self.values.entry(key).or_default().insert(round, value);
    }

    pub fn add_fact(&mut self, name: &str, value: &str, who: &str) {
        let said = self.facts.entry(name.into()).or_default().entry(value.into()).or_default();
        if !said.iter().any(|known| known == who) {
            said.push(who.into());
        }
    }

    pub fn rounds(&self, figure: &str, x: u64, system: &str) -> Option<&Rounds> {
        self.values.get(&Key { figure: figure.into(), x, system: system.into() })
    }

    pub fn summary(&self, figure: &str, x: u64, system: &str) -> Option<Summary> {
        let all: Vec<f64> = self.rounds(figure, x, system)?.values().copied().collect();
        let (p5, p95) = (percentile(&all, 5.0), percentile(&all, 95.0));
        Some(Summary { median: median(&all), p5, p95, rounds: all.len() })
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Rounds)> {
        self.values.iter()
    }

    /// The places on the x axis at which a figure has anything.
    pub fn places(&self, figure: &str) -> Vec<u64> {
        let mut places: Vec<u64> = self.values.keys().filter(|key| key.figure == figure).map(|key| key.x).collect();
        places.dedup();
        places
    }

    /// The facts about which runs disagree: a sentence each.
    pub fn disagreements(&self) -> Vec<String> {
        let told = |(value, who): (&String, &Vec<String>)| format!("{value} ({})", who.join(", "));
        let differing = self.facts.iter().filter(|(_, values)| values.len() > 1);
        differing
            .map(|(name, values)| format!("{name} differs: {}", values.iter().map(told).collect::<Vec<_>>().join("; ")))
            .collect()
    }

    pub fn facts(&self) -> impl Iterator<Item = (&String, Vec<&String>)> {
        self.facts.iter().map(|(name, values)| (name, values.keys().collect()))
    }
}

/// The median of the ratios of values of the same round; None if no round has both.
pub fn ratio(values: &Rounds, base: &Rounds) -> Option<f64> {
    let pairs = values.iter().filter_map(|(round, value)| Some((*value, *base.get(round)?))).filter(|(_, b)| *b > 0.0);
    let (values, base): (Vec<f64>, Vec<f64>) = pairs.unzip();
    (!values.is_empty()).then(|| median_ratio(&values, &base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood_or_left_alone() {
        let measured = |figure, x, value, system| Some(Line::Measured { figure, x, value, system });
        assert_eq!(parse("@ ring 4 1.25"), measured("ring", 4, 1.25, None));
        assert_eq!(parse("@ ring 4 1.25 futex"), measured("ring", 4, 1.25, Some("futex")));
        assert_eq!(parse("= checksum 00ff"), Some(Line::Fact { name: "checksum", value: "00ff" }));
        let others = [
            "",
            "@",
            "@ ring",
            "@ ring x 1",
            "@ ring 4 inf",
            "@ ring 4 nan",
            "@ ring 4 -1",
            "@ ring 4 1 a b",
            "= a",
            "= a b c",
            "[warn] x",
        ];
        others.iter().for_each(|line| assert_eq!(parse(line), None, "{line}"));
    }

    #[test]
    fn moves_are_those_of_all_cores() {
        assert_eq!(moves(r#"{"report":{"cores":[{"moves":3},{"moves":4}]}}"#), Some(7.0));
        assert_eq!(moves(r#"{"report":{"cores":[{"moves":3},{}]}}"#), None);
        assert_eq!([moves("3"), moves("{"), moves("{}"), moves("@ f 1 2")], [None; 4]);
    }

    #[test]
    fn ratios_pair_what_the_same_round_measured() {
        let values = Rounds::from([(0, 10.0), (2, 40.0), (3, 5.0)]);
        let base = Rounds::from([(0, 5.0), (1, 1.0), (2, 10.0), (3, 1.0)]);
        assert_eq!(ratio(&values, &base), Some(4.0));
        assert_eq!(ratio(&values, &Rounds::from([(7, 1.0)])), None);
        assert_eq!(ratio(&values, &Rounds::from([(0, 0.0)])), None);
    }

    #[test]
    fn samples_are_found_again() {
        let mut samples = Samples::default();
        for (round, value) in [3.0, 1.0, 2.0].into_iter().enumerate() {
            samples.add(round, "ring", 4, "a", value);
        }
        samples.add(0, "ring", 2, "b", 9.0);
        samples.add(0, "barrier", 8, "a", 9.0);
        let summary = samples.summary("ring", 4, "a").unwrap();
        assert_eq!((summary.median, summary.rounds), (2.0, 3));
        assert!((summary.p5 - 1.1).abs() < 1e-9 && (summary.p95 - 2.9).abs() < 1e-9);
        assert_eq!(samples.summary("ring", 2, "a"), None);
        assert_eq!(samples.places("ring"), [2, 4]);
    }

    #[test]
    fn disagreement_names_who_said_what() {
        let mut samples = Samples::default();
        samples.add_fact("checksum", "1", "a");
        samples.add_fact("checksum", "1", "a");
        assert_eq!(samples.disagreements(), Vec::<String>::new());
        samples.add_fact("checksum", "2", "b");
        assert_eq!(samples.disagreements(), ["checksum differs: 1 (a); 2 (b)"]);
    }
}
