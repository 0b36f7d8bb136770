//! Plain columns for people, and figures with units.

use vmpi_shared::escape;

/// Columns padded to their widest cell, the last one not.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Table {
        Table { rows: vec![head.iter().map(|cell| cell.to_string()).collect()] }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let rows: Vec<Vec<_>> =
            self.rows.iter().map(|row| row.iter().map(|cell| escape::word(cell)).collect()).collect();
        let width = |column: usize| {
            rows.iter().filter_map(|row: &Vec<_>| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &rows {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
            writeln!(f, "{}", cells.join("  ").trim_end())?;
        }
        Ok(())
    }
}

/// `0`, `512`, `1.5K`, `20M`: bytes in powers of 1024.
pub fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = "";
    for next in ["K", "M", "G", "T"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit.is_empty() || value >= 10.0 { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

/// `0.52s`, `12.3s`, `4m07s`, `3h12m`.
pub fn seconds(s: f64) -> String {
    let whole = s as u64;
    match whole {
        0..10 => format!("{s:.3}s"),
        10..60 => format!("{s:.1}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

/// A share of a whole as whole percents; `-` where there is no whole.
pub fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0}", 100.0 * part / whole) } else { "-".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let all: Vec<String> = [0, 512, 1536, 20 << 20].into_iter().map(bytes).collect();
        assert_eq!(all, ["0", "512", "1.5K", "20M"]);
        let all: Vec<String> = [0.5204, 12.34, 247.0, 11540.0].into_iter().map(seconds).collect();
        assert_eq!(all, ["0.520s", "12.3s", "4m07s", "3h12m"]);
        assert_eq!((percent(1.0, 3.0), percent(1.0, 0.0)), ("33".into(), "-".into()));
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["JOB", "NAME"]);
        table.row(vec!["1".into(), "x".into()]);
        assert_eq!(table.to_string(), "JOB  NAME\n1    x\n");
        table.row(vec!["\x1b".into(), "a\nb".into()]);
        assert_eq!(table.to_string(), "JOB     NAME\n1       x\n\\u001b  a\\u000ab\n");
    }
}
