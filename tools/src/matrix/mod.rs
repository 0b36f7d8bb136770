//! What went from rank to rank, in forms for people and programs: tables, CSV, JSON, a heat map.

mod heat;

use crate::failure::Failure;
use crate::table::{Table, bytes};
use serde_json::{Value, json};
use std::path::Path;
use vmpi_shared::control::JobReport;
use vmpi_shared::monitor::{BUCKETS, Counts, Matrix, Transfer};

pub use heat::HeatError;

/// A table of pairs is printed for so many ranks at most.
const MOST_COLUMNS: u32 = 16;

/// How a matrix is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    Csv,
    Json,
    Svg,
    Png,
}

impl Form {
    /// By the ending of a file's name.
    pub fn of(path: &str) -> Option<Form> {
        [(".csv", Form::Csv), (".json", Form::Json), (".svg", Form::Svg), (".png", Form::Png)]
            .into_iter()
            .find(|(ending, _)| path.ends_with(ending))
            .map(|(_, form)| form)
    }

    /// The matrix in this form.
    ///
    /// # Errors
    /// A PNG needs a font; pictures have a largest number of ranks.
    pub fn render(self, matrix: &Matrix) -> Result<Vec<u8>, HeatError> {
        Ok(match self {
            Form::Csv => csv(matrix).into_bytes(),
            Form::Json => format!("{:#}\n", as_json(matrix)).into_bytes(),
            Form::Svg => heat::svg(matrix)?.into_bytes(),
            Form::Png => heat::png(matrix)?,
        })
    }
}

/// The smallest size that falls into a bucket of the histogram.
fn least(bucket: usize) -> u64 {
    if bucket == 0 { 0 } else { 1 << (bucket - 1) }
}

/// A line per kind and pair.
pub fn csv(matrix: &Matrix) -> String {
    let sizes: Vec<String> = (0..BUCKETS).map(|bucket| format!("size_{}", least(bucket))).collect();
    let mut text = format!("kind,from,to,messages,bytes,{}\n", sizes.join(","));
    for entry in &matrix.entries {
        let counts = &entry.counts;
        let sizes = (0..BUCKETS).map(|bucket| counts.sizes.get(bucket).copied().unwrap_or(0).to_string());
        text.push_str(&format!(
            "{},{},{},{},{},{}\n",
            entry.kind.name(),
            entry.from,
            entry.to,
            counts.messages,
            counts.bytes,
            sizes.collect::<Vec<_>>().join(",")
        ));
    }
    text
}

/// With raw units and the meaning of the histogram's buckets.
pub fn as_json(matrix: &Matrix) -> Value {
    let mut value = json!(matrix);
    value["schema_version"] = json!(1);
    value["size_buckets"] = (0..BUCKETS).map(least).collect();
    value["totals"] = Transfer::ALL.iter().map(|kind| (kind.name().to_owned(), json!(matrix.total(*kind)))).collect();
    value
}

/// Totals, and the pairs of a small job.
pub fn text(matrix: &Matrix) -> String {
    let state = if matrix.on { "being counted" } else { "not being counted now" };
    let mut text = format!("job {}, {} ranks, {state}\n\n", matrix.job, matrix.ranks);
    let mut table = Table::new(&["KIND", "MESSAGES", "BYTES", "SIZES"]);
    for kind in Transfer::ALL {
        let total = matrix.total(kind);
        table.row(vec![kind.name().into(), total.messages.to_string(), total.bytes.to_string(), sizes(&total)]);
    }
    text.push_str(&table.to_string());
    if (1..=MOST_COLUMNS).contains(&matrix.ranks) {
        text.push_str("\nbytes of all kinds, from the rank at the left to the one at the top\n");
        let mut head = vec![String::new()];
        head.extend((0..matrix.ranks).map(|rank| rank.to_string()));
        let mut table = Table::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
        for from in 0..matrix.ranks {
            let mut row = vec![from.to_string()];
            row.extend((0..matrix.ranks).map(|to| match between(matrix, from, to) {
                (0, _) => ".".into(),
                (_, sum) => bytes(sum),
            }));
            table.row(row);
        }
        text.push_str(&table.to_string());
    }
    text
}

/// Messages and bytes of all kinds from one rank to another.
fn between(matrix: &Matrix, from: u32, to: u32) -> (u64, u64) {
    let pair = matrix.entries.iter().filter(|entry| entry.from == from && entry.to == to);
    pair.fold((0, 0), |(messages, bytes), entry| (messages + entry.counts.messages, bytes + entry.counts.bytes))
}

/// `0: 12, 1-1: 3, 512-1023: 7`.
fn sizes(counts: &Counts) -> String {
    let range = |bucket: usize| match bucket {
        0 | 1 => least(bucket).to_string(),
        last if last == BUCKETS - 1 => format!("{}..", bytes(least(last))),
        bucket => format!("{}..{}", bytes(least(bucket)), bytes(least(bucket + 1))),
    };
    let parts = counts.sizes.iter().enumerate().filter(|(_, count)| **count > 0);
    let text: Vec<String> = parts.map(|(bucket, count)| format!("{}: {count}", range(bucket))).collect();
    if text.is_empty() { "-".into() } else { text.join(", ") }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|e| Failure::own(format!("cannot write {}: {e}", path.display())))
}

fn rendered(form: Form, matrix: &Matrix) -> Result<Vec<u8>, Failure> {
    form.render(matrix).map_err(|error| Failure::own(error.to_string()))
}

/// `vmpirun --matrix FILE`.
///
/// # Errors
/// The file cannot be written, or the picture not be drawn.
pub fn save(matrix: &Matrix, path: &str) -> Result<(), Failure> {
    let form = Form::of(path).unwrap_or(Form::Csv);
    write(Path::new(path), &rendered(form, matrix)?)
}

/// `vmpirun --profile DIR`: the matrix in all forms, the job's report, and a file per rank with what it sent and got.
///
/// # Errors
/// As [`save`].
pub fn save_profile(matrix: &Matrix, report: Option<&JobReport>, dir: &str) -> Result<(), Failure> {
    let dir = Path::new(dir);
    std::fs::create_dir_all(dir).map_err(|e| Failure::own(format!("cannot make {}: {e}", dir.display())))?;
    for (name, form) in [("matrix.csv", Form::Csv), ("matrix.json", Form::Json), ("matrix.svg", Form::Svg)] {
        write(&dir.join(name), &rendered(form, matrix)?)?;
    }
    // Without a font there is no PNG; the SVG is there.
    if let Ok(png) = Form::Png.render(matrix) {
        write(&dir.join("matrix.png"), &png)?;
    }
    if let Some(report) = report {
        let mut value = json!(report);
        value["schema_version"] = json!(1);
        write(&dir.join("report.json"), format!("{value:#}\n").as_bytes())?;
    }
    for rank in 0..matrix.ranks {
        let own = |entry: &&vmpi_shared::monitor::Entry| entry.from == rank;
        let entries = matrix.entries.iter().filter(own).cloned().collect();
        let row = Matrix { entries, ..matrix.clone() };
        write(&dir.join(format!("rank.{rank}.csv")), csv(&row).as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use vmpi_shared::monitor::Entry;

    /// Each rank sends to its right neighbour, the farther the more.
    pub fn ring(ranks: u32) -> Matrix {
        let entry = |rank: u32| Entry {
            kind: Transfer::PointToPoint,
            from: rank,
            to: (rank + 1) % ranks,
            counts: Counts { messages: 1, bytes: 1 << (rank % 20), sizes: vec![0, 1] },
        };
        Matrix {
            job: 1,
            ranks,
            on: true,
            placement: vec![0; ranks as usize],
            nodes: Vec::new(),
            entries: (0..ranks).map(entry).collect(),
        }
    }

    #[test]
    fn forms() {
        let matrix = ring(3);
        let text = csv(&matrix);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("kind,from,to,messages,bytes,size_0,size_1,size_2,size_4,"), "{text}");
        assert!(lines.len() == 4 && lines[3].starts_with("point_to_point,2,0,1,4,0,1,0,"), "{text}");
        assert!(lines.iter().all(|line| line.split(',').count() == 5 + BUCKETS));
        let value = as_json(&matrix);
        assert_eq!(value["totals"]["point_to_point"]["bytes"], 7);
        assert_eq!(value["size_buckets"][BUCKETS - 1], 1u64 << 28);
        let text = super::text(&matrix);
        assert!(text.contains("point_to_point  3         7      1: 3"), "{text}");
        assert_eq!((Form::of("a.b.png"), Form::of("png")), (Some(Form::Png), None));
    }
}
