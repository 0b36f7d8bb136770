//! Two runs side by side: what `vmpictl compare` prints.
//!
//! Reading order: `read` (a file becomes figures), this file (figures of two become rows and words).

mod read;

pub use read::{Figure, Group, Run, Unit, read};

use crate::table::{Table, bytes, seconds};
use serde_json::{Value, json};

/// A change of less than this share is none.
const SAME: f64 = 0.02;
/// So many rows are told; all are in the JSON.
const MOST_ROWS: usize = 40;

/// A figure of both runs; `None`: one does not have it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub group: Group,
    pub name: String,
    pub unit: Unit,
    pub a: Option<f64>,
    pub b: Option<f64>,
}

impl Row {
    pub fn difference(&self) -> f64 {
        self.b.unwrap_or(0.0) - self.a.unwrap_or(0.0)
    }

    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.a?, self.b?);
        (a > 0.0).then(|| b / a)
    }
}

/// Both runs.
#[derive(Debug)]
pub struct Comparison<'a> {
    pub a: &'a Run,
    pub b: &'a Run,
    /// Times first, each kind of figure with the largest differences first.
    pub rows: Vec<Row>,
}

impl<'a> Comparison<'a> {
    /// # Errors
    /// They have nothing in common; in words.
    pub fn new(a: &'a Run, b: &'a Run) -> Result<Comparison<'a>, String> {
        let mut rows: Vec<Row> = a.figures.iter().map(|figure| row(figure, Some(figure.value), None)).collect();
        for figure in &b.figures {
            let is_it =
                |row: &&mut Row| row.group == figure.group && row.name == figure.name && row.unit == figure.unit;
            match rows.iter_mut().find(is_it) {
                Some(row) => row.b = Some(figure.value),
                None => rows.push(row(figure, None, Some(figure.value))),
            }
        }
        if !rows.iter().any(|row| row.a.is_some() && row.b.is_some()) {
            return Err(format!(
                "{} is {} and {} is {}: they have no figure in common; compare two of a kind",
                a.file, a.kind, b.file, b.kind
            ));
        }
        // What both do not have when the kinds differ says nothing.
        rows.retain(|row| a.kind == b.kind || (row.a.is_some() && row.b.is_some()));
        rows.sort_by(|x, y| {
            let size = |row: &Row| row.difference().abs();
            let larger = x.unit.cmp(&y.unit).then_with(|| size(y).total_cmp(&size(x)));
            larger.then_with(|| (x.group, &x.name).cmp(&(y.group, &y.name)))
        });
        Ok(Comparison { a, b, rows })
    }

    /// What stands out, in words.
    pub fn sentences(&self) -> Vec<String> {
        let mut told = Vec::new();
        let (a, b) = (self.a, self.b);
        if a.program != b.program && !a.program.is_empty() && !b.program.is_empty() {
            told.push(format!("These are different programs: {} and {}.", a.program, b.program));
        }
        let setup: Vec<String> = [("ranks", a.ranks, b.ranks), ("V", a.v, b.v)]
            .into_iter()
            .filter_map(|(what, a, b)| Some((what, a?, b?)))
            .filter(|(_, a, b)| a != b)
            .map(|(what, a, b)| format!("{what} is {b} instead of {a}"))
            .collect();
        if !setup.is_empty() {
            told.push(format!("In the second run {}.", setup.join(", and ")));
        }
        if let (Some(a), Some(b)) = (a.wall_s, b.wall_s) {
            told.push(wall(a, b));
        }
        told.extend(self.most(|row| row.group == Group::Ranks, "Of all ranks' time"));
        told.extend(self.most(|row| row.group == Group::Waits, "Of what ranks wait in"));
        told.extend(self.most(|row| row.group == Group::Regions, "Of the program's own regions"));
        told.extend(self.traffic());
        told
    }

    /// The largest change of one group.
    fn most(&self, of: impl Fn(&Row) -> bool, head: &str) -> Option<String> {
        let row = self.rows.iter().find(|row| of(row) && row.a.is_some() && row.b.is_some())?;
        let largest = row.a.unwrap_or(0.0).max(row.b.unwrap_or(0.0));
        if row.difference().abs() < SAME * largest || largest <= 0.0 {
            return None;
        }
        let way = if row.difference() > 0.0 { "more" } else { "less" };
        let (a, b) = (seconds(row.a?), seconds(row.b?));
        let name = match row.group {
            Group::Regions => format!("`{}`", row.name),
            _ => row.name.clone(),
        };
        Some(format!("{head}, {name} changed most: {b} instead of {a}, {} {way}.", seconds(row.difference().abs())))
    }

    fn traffic(&self) -> Option<String> {
        let row = self.rows.iter().find(|row| row.unit == Unit::Bytes && row.a.is_some() && row.b.is_some())?;
        let (a, b) = (row.a?, row.b?);
        ((a - b).abs() > SAME * a.max(b))
            .then(|| format!("{}: {} instead of {}.", row.name, bytes(b.round() as u64), bytes(a.round() as u64)))
    }

    pub fn text(&self) -> String {
        let mut text = format!("A: {}\nB: {}\n", self.a.title(), self.b.title());
        self.sentences().iter().for_each(|sentence| text.push_str(&format!("{sentence}\n")));
        let mut table = Table::new(&["WHAT", "A", "B", "B-A", "B/A"]);
        for row in self.rows.iter().take(MOST_ROWS) {
            let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| row.unit.show(value));
            let sign = if row.difference() < 0.0 { "-" } else { "+" };
            let difference = match (row.a, row.b) {
                (Some(_), Some(_)) => format!("{sign}{}", row.unit.show(row.difference().abs())),
                _ => "-".into(),
            };
            let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let name = format!("{}{}", row.group.before(), row.name);
            table.row(vec![name, show(row.a), show(row.b), difference, ratio]);
        }
        let left_out = match self.rows.len().saturating_sub(MOST_ROWS) {
            0 => String::new(),
            more => format!("{more} more, which differ less, are in the output of --json\n"),
        };
        format!("{text}\n{table}{left_out}")
    }

    pub fn json(&self) -> Value {
        let run = |run: &Run| json!({ "file": run.file, "kind": run.kind.name(), "program": run.program, "ranks": run.ranks, "v": run.v, "wall_s": run.wall_s });
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "group": row.group.name(),
                    "name": row.name,
                    "unit": row.unit.name(),
                    "a": row.a,
                    "b": row.b,
                    "difference": row.a.and(row.b).map(|_| row.difference()),
                    "ratio": row.ratio(),
                })
            })
            .collect();
        json!({ "schema_version": 1, "a": run(self.a), "b": run(self.b), "figures": rows, "sentences": self.sentences() })
    }
}

fn row(figure: &Figure, a: Option<f64>, b: Option<f64>) -> Row {
    Row { group: figure.group, name: figure.name.clone(), unit: figure.unit, a, b }
}

fn wall(a: f64, b: f64) -> String {
    let (shown_a, shown_b) = (seconds(a), seconds(b));
    if a <= 0.0 || (a - b).abs() < SAME * a.max(b) {
        return format!("Both took as long: {shown_a} and {shown_b}.");
    }
    let share = 100.0 * (b - a).abs() / a;
    let way = if b < a { "less" } else { "more" };
    format!("The second run took {shown_b} instead of {shown_a}: {share:.0} % {way}.")
}

#[cfg(test)]
mod tests;
