//! The table of cores that `vmpirun --report=full` prints on stderr.

/// What matters of one core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    pub cpu: u32,
    pub ranks: u32,
    pub handoffs: u64,
    pub max_running: u32,
    pub violations: u64,
}

/// The rows of the table, wherever in `stderr` it stands; empty if there is none.
pub fn cores(stderr: &str) -> Vec<Core> {
    let mut lines = stderr.lines().skip_while(|line| !line.starts_with("CPU "));
    let Some(head) = lines.next() else { return Vec::new() };
    let names: Vec<&str> = head.split_whitespace().collect();
    lines
        .map(|line| line.split_whitespace().collect::<Vec<&str>>())
        .take_while(|cells| cells.len() == names.len())
        .map(|cells| {
            let cell = |name: &str| names.iter().position(|n| *n == name).and_then(|i| cells[i].parse().ok());
            Core {
                cpu: cell("CPU").unwrap_or(0) as u32,
                ranks: cell("RANKS").unwrap_or(0) as u32,
                handoffs: cell("HAND-OFFS").unwrap_or(0),
                // A column that is missing or unreadable must not pass for a good one.
                max_running: cell("MAX-RUNNING").unwrap_or(u64::from(u32::MAX)) as u32,
                violations: cell("VIOLATIONS").unwrap_or(u64::MAX),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_between_other_lines() {
        let text = "vmpirun: V 3\nCPU  RANKS  HAND-OFFS  RUNNING  IDLE  HAND-OFF  MAX-RUNNING  VIOLATIONS\n0    3      120        1.2s     0s    3ms       1            0\n1    2      99         1s       0s    3ms       2            7\nbye\n";
        let found = cores(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], Core { cpu: 1, ranks: 2, handoffs: 99, max_running: 2, violations: 7 });
        assert_eq!(cores("nothing"), []);
    }
}
