//! What is printed and written of an experiment: tables, bars, JSON.

use super::experiment::{Bar, Experiment, Figure, Reference, Scope, Variant};
use super::samples::{Rounds, Samples, Summary, ratio};
use super::system::{Kind, SYSTEMS, System, counterpart};
use serde_json::{Value, json};

/// The machine and the moment.
pub struct Circumstances {
    pub rounds: usize,
    pub cpu: String,
    pub kernel: String,
    pub commit: String,
    pub load_before: String,
    pub load_after: String,
}

/// An experiment with what it measured.
pub struct Report<'a> {
    pub experiment: &'a Experiment,
    pub samples: &'a Samples,
    pub scope: &'a Scope,
    pub circumstances: &'a Circumstances,
}

/// How vmpi stands to a bar at one place.
#[derive(Debug)]
pub struct Verdict {
    pub says: &'static str,
    pub figure: &'static str,
    pub x: u64,
    pub of: String,
    /// The system that the bar is taken from.
    pub against: String,
    /// The most that vmpi may have: median of the reference times the factor.
    pub limit: f64,
    /// vmpi's value in bars: met if at most 1.
    pub share: f64,
}

/// Three digits that count.
pub fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.09995 => format!("{value:.3}"),
        v if v >= 0.009995 => format!("{value:.4}"),
        v if v >= 0.0009995 => format!("{value:.5}"),
        _ => format!("{value:.1e}"),
    }
}

impl Report<'_> {
    /// A system's title, or the name that a program gave.
    pub fn title<'a>(&self, name: &'a str) -> &'a str {
        let system = || SYSTEMS.iter().find(|system| system.name == name).map(|system| system.title);
        self.variant(name).map(|variant| variant.title).or_else(system).unwrap_or(name)
    }

    pub fn variant(&self, name: &str) -> Option<&'static Variant> {
        self.experiment.variants.iter().find(|variant| variant.name == name)
    }

    /// Everything that a figure has values of: variants, the systems as they are listed, then floors and others by name.
    pub fn columns(&self, figure: &str) -> Vec<String> {
        let variants = self.experiment.variants;
        let mut columns: Vec<String> = variants.iter().map(|variant| variant.name.to_string()).collect();
        columns.extend(self.scope.mpis().map(|system| system.name.to_string()));
        let measured: Vec<&str> =
            self.samples.iter().filter(|(key, _)| key.figure == figure).map(|(key, _)| key.system.as_str()).collect();
        columns.retain(|name| measured.contains(&name.as_str()) || self.scope.systems.iter().any(|s| s.name == name));
        for name in &measured {
            if !columns.iter().any(|known| known == name) {
                columns.push((*name).into());
            }
        }
        if !variants.is_empty() || measured.iter().all(|name| SYSTEMS.iter().all(|system| system.name != *name)) {
            columns.retain(|name| measured.contains(&name.as_str()));
        }
        columns
    }

    fn rows(&self, figure: &Figure) -> Vec<u64> {
        let mut places = self.samples.places(figure.name);
        places.retain(|x| figure.rows.is_none_or(|rows| rows.contains(x)));
        places
    }

    /// How often a system's value is that of its counterpart, vmpi: where there are variants, of the first.
    fn ratio_to_vmpi(&self, figure: &str, x: u64, name: &str) -> Option<f64> {
        let against = |base| ratio(self.samples.rounds(figure, x, name)?, self.samples.rounds(figure, x, base)?);
        if let Some(first) = self.experiment.variants.first() {
            return if name == first.name { None } else { against(first.name) };
        }
        let system: &System = SYSTEMS.iter().find(|system| system.name == name).or(self.scope.floor())?;
        if system.kind == Kind::Vmpi {
            return None;
        }
        against(counterpart(system, &self.scope.systems)?.name)
    }

    /// The peer that is best at a place, by its median.
    fn best_peer(&self, figure: &str, x: u64) -> Option<&'static str> {
        let peers = self.scope.mpis().filter(|system| system.kind == Kind::Peer);
        let with = peers.filter_map(|peer| Some((peer.name, self.samples.summary(figure, x, peer.name)?.median)));
        with.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
    }

    fn reference(&self, bar: &Bar, x: u64, of: &str) -> Option<(String, Rounds)> {
        let rounds = |name: &str, x| Some((name.to_string(), self.samples.rounds(bar.figure, x, name)?.clone()));
        match bar.reference {
            Reference::System(name) | Reference::AtBest(name) => rounds(name, x),
            Reference::BestPeer => rounds(self.best_peer(bar.figure, x)?, x),
            Reference::OwnFirst => rounds(of, *self.samples.places(bar.figure).first()?),
            Reference::Absolute => {
                let own = self.samples.rounds(bar.figure, x, of)?;
                Some(("a fixed value".into(), own.keys().map(|round| (*round, 1.0)).collect()))
            }
        }
    }

    /// Where vmpi stands to the bars; a bar whose reference was not measured has no verdict.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for bar in self.experiment.bars {
            let within = |x: &u64| (bar.from..=bar.to).contains(x);
            let before = verdicts.len();
            for x in self.samples.places(bar.figure).into_iter().filter(within) {
                // The first that has been measured: the faces differ in nothing that a bar is about.
                for of in self.experiment.judged {
                    let Some(own) = self.samples.rounds(bar.figure, x, of) else { continue };
                    let Some((against, reference)) = self.reference(bar, x, of) else { continue };
                    let Some(share) = ratio(own, &reference) else { continue };
                    let limit =
                        crate::statistics::median(&reference.values().copied().collect::<Vec<_>>()) * bar.factor;
                    let (says, figure, share) = (bar.says, bar.figure, share / bar.factor);
                    verdicts.push(Verdict { says, figure, x, of: (*of).into(), against, limit, share });
                    break;
                }
            }
            if let Reference::AtBest(_) = bar.reference {
                let best = verdicts.drain(before..).min_by(|a: &Verdict, b| a.share.total_cmp(&b.share));
                verdicts.extend(best);
            }
        }
        verdicts
    }

    /// All tables and verdicts, as Markdown that is readable as it is.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.experiment.name, wrapped(self.experiment.about));
        let base = self.experiment.variants.first().map_or("vmpi", |variant| variant.title);
        text += match self.circumstances.rounds {
            1 => format!("\nOne round: a trial, with short batches. After a value, how many times that of {base} it is.\n"),
            n => format!(
                "\nMedians of {n} rounds (5th-95th percentile), then how many times the value of {base}, round by round; [n]: of n rounds only.\n"
            ),
        }
        .as_str();
        // What was not had is said below.
        for figure in self.experiment.figures.iter().filter(|figure| !self.rows(figure).is_empty()) {
            text += &format!("\n## {}, {}\n\n{}", figure.title, figure.unit, aligned(&self.table(figure)));
        }
        let verdicts = self.verdicts();
        if !verdicts.is_empty() {
            text += &format!("\n## Bars\n\n{}", aligned(&self.verdict_table(&verdicts)));
        }
        if !self.samples.missing.is_empty() {
            text += "\nNot had:\n";
            self.samples.missing.iter().for_each(|(what, why)| text += &format!("- {what}: {why}\n"));
        }
        for (name, values) in self.samples.facts() {
            let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
            text += &format!("\n{name}: {}\n", values.join(" and "));
        }
        let c = self.circumstances;
        let cpus = super::system::list(&self.scope.cpus);
        text += &format!("\nCPUs {cpus} of {}, Linux {}, vmpi {}.", c.cpu, c.kernel, c.commit);
        text + &format!(" Load average before {}, after {}.\n", c.load_before, c.load_after)
    }

    fn table(&self, figure: &Figure) -> Vec<Vec<String>> {
        let columns = self.columns(figure.name);
        let mut table = vec![vec![self.experiment.x.title.to_string()]];
        table[0].extend(columns.iter().map(|name| self.title(name).to_string()));
        for x in self.rows(figure) {
            let mut row = vec![(self.experiment.x.show)(x)];
            row.extend(columns.iter().map(|name| self.cell(figure.name, x, name)));
            table.push(row);
        }
        table
    }

    fn cell(&self, figure: &str, x: u64, name: &str) -> String {
        let Some(Summary { median, p5, p95, rounds }) = self.samples.summary(figure, x, name) else {
            return "-".into();
        };
        let mut cell = short(median);
        if rounds > 1 {
            cell += &format!(" ({}-{})", short(p5), short(p95));
        }
        if let Some(ratio) = self.ratio_to_vmpi(figure, x, name) {
            cell += &format!(" {}x", short(ratio));
        }
        if rounds < self.circumstances.rounds {
            cell += &format!(" [{rounds}]");
        }
        cell
    }

    fn verdict_table(&self, verdicts: &[Verdict]) -> Vec<Vec<String>> {
        let head = ["figure", self.experiment.x.title, "bar", "of", "limit", "value", "", "value / limit"];
        let mut table = vec![head.map(String::from).to_vec()];
        for verdict in verdicts {
            let value = self.samples.summary(verdict.figure, verdict.x, &verdict.of).map_or(0.0, |s| s.median);
            let against =
                if verdict.against == verdict.of { "itself".into() } else { self.title(&verdict.against).to_string() };
            table.push(vec![
                self.experiment.figures.iter().find(|f| f.name == verdict.figure).map_or("", |f| f.title).into(),
                (self.experiment.x.show)(verdict.x),
                format!("{}: {}", self.title(&verdict.of), verdict.says),
                against,
                short(verdict.limit),
                short(value),
                if verdict.share <= 1.0 { "met".into() } else { "missed".into() },
                short(verdict.share),
            ]);
        }
        table
    }

    pub fn json(&self) -> Value {
        let c = self.circumstances;
        let figures: Vec<Value> = self.experiment.figures.iter().map(|figure| self.figure_json(figure)).collect();
        let verdict = |v: &Verdict| {
            json!({ "figure": v.figure, "x": v.x, "bar": v.says, "system": v.of, "against": v.against,
                    "limit": v.limit, "share_of_limit": v.share, "met": v.share <= 1.0 })
        };
        let system = |s: &&'static System| json!({ "name": s.name, "title": s.title, "run": s.how(&self.scope.cpus) });
        let variant = |v: &Variant| json!({ "name": v.name, "title": v.title, "flags": v.flags });
        let facts: serde_json::Map<String, Value> =
            self.samples.facts().map(|(name, values)| (name.clone(), json!(values))).collect();
        json!({
            "schema_version": 2,
            "experiment": self.experiment.name,
            "about": self.experiment.about,
            "x": self.experiment.x.title,
            "rounds": c.rounds,
            "machine": { "cpu": c.cpu, "kernel": c.kernel, "cpus": self.scope.cpus },
            "commit": c.commit,
            "load_average_before": c.load_before,
            "load_average_after": c.load_after,
            "systems": self.scope.systems.iter().map(system).collect::<Vec<_>>(),
            "variants": self.experiment.variants.iter().map(variant).collect::<Vec<_>>(),
            "figures": figures,
            "bars": self.verdicts().iter().map(verdict).collect::<Vec<_>>(),
            "missing": self.samples.missing,
            "facts": facts,
        })
    }

    fn figure_json(&self, figure: &Figure) -> Value {
        let mut rows = Vec::new();
        for (key, rounds) in self.samples.iter().filter(|(key, _)| key.figure == figure.name) {
            let Some(summary) = self.samples.summary(&key.figure, key.x, &key.system) else { continue };
            rows.push(json!({
                "x": key.x, "system": key.system, "title": self.title(&key.system),
                "median": summary.median, "p5": summary.p5, "p95": summary.p95,
                "samples": rounds.iter().map(|(round, value)| json!({ "round": round, "value": value })).collect::<Vec<_>>(),
                "ratio_to_vmpi": self.ratio_to_vmpi(&key.figure, key.x, &key.system),
            }));
        }
        json!({ "name": figure.name, "title": figure.title, "unit": figure.unit, "rows": rows })
    }
}

/// Words in lines of at most 110 characters.
pub fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 110 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

/// A Markdown table whose columns stand below each other.
pub fn aligned(table: &[Vec<String>]) -> String {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| table.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0).max(3)).collect();
    let line = |row: &[String]| {
        let cell = |(column, width): (usize, &usize)| format!("{:<width$}", row.get(column).map_or("", String::as_str));
        format!("| {} |\n", widths.iter().enumerate().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let mut text = String::new();
    for (place, row) in table.iter().enumerate() {
        text += &line(row);
        if place == 0 {
            text += &line(&widths.iter().map(|width| "-".repeat(*width)).collect::<Vec<_>>());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::experiment::EXPERIMENTS;
    use crate::bench::system::choose;

    fn circumstances() -> Circumstances {
        let text = String::new;
        Circumstances {
            rounds: 2,
            cpu: text(),
            kernel: text(),
            commit: text(),
            load_before: text(),
            load_after: text(),
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 1234.4, 99.96, 12.345, 1.2345, 0.9996, 0.12345, 0.00123, 0.000123].map(short),
            ["0", "1234", "100", "12.3", "1.23", "1.00", "0.123", "0.00123", "1.2e-4"]
        );
    }

    #[test]
    fn text_is_wrapped_at_words() {
        let lines = wrapped(&"word ".repeat(50));
        assert_eq!(lines.lines().map(str::len).collect::<Vec<_>>(), [109, 109, 29]);
        assert_eq!(wrapped(""), "");
    }

    #[test]
    fn tables_are_aligned() {
        let rows = [vec!["a".to_string(), "long head".into()], vec!["wide cell".into(), "b".into()]];
        assert_eq!(aligned(&rows), "| a         | long head |\n| --------- | --------- |\n| wide cell | b         |\n");
    }

    #[test]
    fn of_a_bar_at_the_best_place_that_place_is_judged() {
        let balance = EXPERIMENTS.iter().find(|experiment| experiment.name == "balance").unwrap();
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let mut samples = Samples::default();
        for (v, steal, ideal) in [(2, 27.6, 26.2), (4, 27.1, 21.8), (8, 31.0, 19.7)] {
            samples.add(0, "uneven", v, "steal", steal);
            samples.add(0, "uneven", v, "ideal, balanced", ideal);
        }
        let circumstances = circumstances();
        let report = Report { experiment: balance, samples: &samples, scope: &scope, circumstances: &circumstances };
        let verdicts = report.verdicts();
        assert_eq!(verdicts.iter().map(|verdict| (verdict.figure, verdict.x)).collect::<Vec<_>>(), [("uneven", 2)]);
        assert!((verdicts[0].share - 27.6 / 26.2 / 1.1).abs() < 1e-9);
    }

    #[test]
    fn bars_are_judged_round_by_round() {
        let latency = EXPERIMENTS.iter().find(|experiment| experiment.name == "latency").unwrap();
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let mut samples = Samples::default();
        for (round, scale) in [(0, 1.0), (1, 10.0)] {
            samples.add(round, "ring", 32, "vmpi-openmpi", 5.2 * scale);
            samples.add(round, "ring", 32, "futex", 4.0 * scale);
            samples.add(round, "ring", 4, "vmpi-openmpi", 3.0 * scale);
            samples.add(round, "ring", 4, "mpich4", 500.0);
            samples.add(round, "ring", 4, "openmpi4-yield", 2.0 * scale);
        }
        let circumstances = circumstances();
        let report = Report { experiment: latency, samples: &samples, scope: &scope, circumstances: &circumstances };
        let verdicts = report.verdicts();
        let shares: Vec<(u64, &str, f64)> = verdicts.iter().map(|v| (v.x, v.against.as_str(), v.share)).collect();
        assert_eq!(shares.len(), 2, "{verdicts:?}");
        assert_eq!((shares[0].0, shares[0].1), (4, "openmpi4-yield"));
        assert!((shares[0].2 - 1.5).abs() < 1e-9);
        assert_eq!((shares[1].0, shares[1].1), (32, "futex"));
        assert!((shares[1].2 - 1.0).abs() < 1e-9);
        let text = report.markdown();
        assert!(text.contains("missed") && text.contains("met") && text.contains("0.667x"), "{text}");
        assert!(
            text.contains("## ring hop") && !text.contains("## barrier"),
            "figures without values have no table\n{text}"
        );
        let json = report.json();
        assert_eq!(json["bars"][0]["met"], false);
        assert_eq!(json["figures"][0]["rows"].as_array().unwrap().len(), 5);
    }
}
