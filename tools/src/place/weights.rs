//! How much two ranks have to do with each other: from a file that `--matrix` has written, or a matrix itself.

use crate::failure::Failure;
use std::collections::BTreeMap;
use vmpi_shared::monitor::Matrix;

/// A message costs as much as so many bytes: over TCP about 8 us, in which time 32 KiB go (`cargo xtask bench nodes`).
pub const MESSAGE_BYTES: u64 = 32 << 10;

/// Symmetric; a rank has nothing to do with itself.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    of: Vec<BTreeMap<usize, u64>>,
}

impl Weights {
    pub fn new(ranks: usize) -> Weights {
        Weights { of: vec![BTreeMap::new(); ranks] }
    }

    /// What has gone in both directions, by all ways, among `ranks` ranks.
    pub fn of(matrix: &Matrix, ranks: usize) -> Weights {
        let mut weights = Weights::new(ranks);
        for entry in &matrix.entries {
            weights.add(entry.from as usize, entry.to as usize, cost(entry.counts.messages, entry.counts.bytes));
        }
        weights
    }

    /// From a file in CSV or JSON.
    ///
    /// # Errors
    /// Exit code 2: it cannot be read, a line makes no sense, or it knows of more than `ranks` ranks.
    pub fn read(path: &str, ranks: usize) -> Result<Weights, Failure> {
        let failed = |why: String| Failure::usage(format!("--map-by affinity:{path}: {why}"));
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let pairs = if text.trim_start().starts_with('{') { from_json(&text) } else { from_csv(&text) };
        let pairs = pairs.map_err(failed)?;
        if let Some(most) = pairs.iter().map(|(from, to, _)| (*from).max(*to)).max()
            && most >= ranks
        {
            return Err(failed(format!("it is of a job with rank {most}, and this one has {ranks} ranks")));
        }
        let mut weights = Weights::new(ranks);
        pairs.into_iter().for_each(|(from, to, weight)| weights.add(from, to, weight));
        Ok(weights)
    }

    pub fn add(&mut self, a: usize, b: usize, weight: u64) {
        if a == b || a.max(b) >= self.of.len() {
            return;
        }
        for (a, b) in [(a, b), (b, a)] {
            let sum = self.of[a].entry(b).or_insert(0);
            *sum = sum.saturating_add(weight);
        }
    }

    pub fn between(&self, a: usize, b: usize) -> u64 {
        self.of[a].get(&b).copied().unwrap_or(0)
    }

    /// Whom rank `a` has to do with.
    pub fn others(&self, a: usize) -> impl Iterator<Item = (usize, u64)> {
        self.of[a].iter().map(|(b, weight)| (*b, *weight))
    }

    /// Each pair once.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let ranks = self.of.iter().enumerate();
        ranks.flat_map(|(a, others)| others.range(a..).map(move |(b, weight)| (a, *b, *weight)))
    }
}

fn cost(messages: u64, bytes: u64) -> u64 {
    bytes.saturating_add(messages.saturating_mul(MESSAGE_BYTES))
}

type Pairs = Vec<(usize, usize, u64)>;

fn from_json(text: &str) -> Result<Pairs, String> {
    let matrix: Matrix = serde_json::from_str(text).map_err(|e| format!("it is no matrix of vmpirun --matrix: {e}"))?;
    let pair = |entry: &vmpi_shared::monitor::Entry| {
        (entry.from as usize, entry.to as usize, cost(entry.counts.messages, entry.counts.bytes))
    };
    Ok(matrix.entries.iter().map(pair).collect())
}

fn from_csv(text: &str) -> Result<Pairs, String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    if !lines.next().is_some_and(|(_, head)| head.starts_with("kind,from,to,messages,bytes")) {
        return Err("it is no matrix of vmpirun --matrix (kind,from,to,messages,bytes,...)".into());
    }
    lines
        .map(|(number, line)| {
            let mut words = line.split(',').skip(1).map(|word| word.trim().parse::<u64>());
            let mut next = || words.next().and_then(Result::ok);
            match (next(), next(), next(), next()) {
                (Some(from), Some(to), Some(messages), Some(bytes)) => {
                    Ok((from as usize, to as usize, cost(messages, bytes)))
                }
                _ => Err(format!("line {}: `{line}` is not kind,from,to,messages,bytes", number + 1)),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::{as_json, csv, tests::ring};

    #[test]
    fn what_matrix_writes_is_read_again() {
        let matrix = ring(5);
        for text in [csv(&matrix), as_json(&matrix).to_string()] {
            let path = std::env::temp_dir().join(format!("vmpi-weights-{}-{}", std::process::id(), text.len()));
            std::fs::write(&path, &text).unwrap();
            let path = path.display().to_string();
            let weights = Weights::read(&path, 5).unwrap();
            assert_eq!(weights.between(3, 4), (1 << 3) + MESSAGE_BYTES);
            assert_eq!((weights.between(4, 0), weights.between(0, 2)), ((1 << 4) + MESSAGE_BYTES, 0));
            assert_eq!(weights.pairs().count(), 5);
            let few = Weights::read(&path, 3).unwrap_err();
            assert!(few.code == 2 && few.sentence.contains("rank 4"), "{few}");
            std::fs::remove_file(&path).unwrap();
        }
        assert_eq!(Weights::read("/nonexistent/matrix", 2).unwrap_err().code, 2);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let head = "kind,from,to,messages,bytes,size_0\n";
        let why = from_csv(&format!("{head}point_to_point,0,1,2,3,4\npoint_to_point,x,1,2,3\n")).unwrap_err();
        assert!(why.contains("line 3"), "{why}");
        assert!(from_csv("a,b\n").is_err() && from_json("{}").is_err());
        assert_eq!(from_csv(head).unwrap(), []);
    }
}
