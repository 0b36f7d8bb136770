//! What stands before a line: the rank, in the dialect that was asked for, and the time.
#![allow(unsafe_code)]

use crate::cli::Label;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How lines are marked.
#[derive(Copy, Clone, Debug, Default)]
pub struct Labels {
    pub label: Option<Label>,
    pub timestamp: bool,
    /// Digits of the largest rank.
    pub width: usize,
}

impl Labels {
    pub fn new(label: Option<Label>, timestamp: bool, ranks: u32) -> Labels {
        Labels { label, timestamp, width: ranks.saturating_sub(1).to_string().len() }
    }

    /// The text before a line of the stdout (`error`: stderr) of this rank of this world (1: those that vmpirun started).
    pub fn prefix(&self, world: u32, rank: u32, error: bool) -> String {
        let stream = if error { "stderr" } else { "stdout" };
        let time = if self.timestamp {
            local_time(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
        } else {
            String::new()
        };
        match self.label {
            None if self.timestamp => format!("{time} "),
            None => String::new(),
            Some(Label::Srun) => {
                let gap = if self.timestamp { " " } else { "" };
                let spawned = if world > 1 { format!("{world}.") } else { String::new() };
                format!("{time}{gap}{spawned}{rank:0width$}: ", width = self.width)
            }
            Some(Label::Hydra) if world > 1 => format!("{time}[{world}:{rank}] "),
            Some(Label::Hydra) => format!("{time}[{rank}] "),
            Some(Label::OpenMpi) => format!("{time}[{world},{rank}]<{stream}>:"),
        }
    }
}

/// `2026-11-21T13:22:10.123`, local time; `now`: since 1970.
pub fn local_time(now: Duration) -> String {
    let seconds = now.as_secs() as libc::time_t;
    // SAFETY: tm is plain data, for which all zeros is a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live locals; localtime_r keeps neither.
    unsafe { libc::localtime_r(&seconds, &mut tm) };
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        tm.tm_year + 1900,
        tm.tm_mon + 1,
        tm.tm_mday,
        tm.tm_hour,
        tm.tm_min,
        tm.tm_sec,
        now.subsec_millis()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects() {
        let prefix = |label, ranks| Labels::new(label, false, ranks).prefix(1, 3, true);
        assert_eq!(prefix(Some(Label::Srun), 12), "03: ");
        assert_eq!(prefix(Some(Label::Srun), 4), "3: ");
        assert_eq!(prefix(Some(Label::Hydra), 12), "[3] ");
        assert_eq!(prefix(Some(Label::OpenMpi), 12), "[1,3]<stderr>:");
        assert_eq!(prefix(None, 12), "");
        let spawned = |label| Labels::new(Some(label), false, 1).prefix(2, 3, false);
        assert_eq!([Label::Srun, Label::Hydra, Label::OpenMpi].map(spawned), ["2.3: ", "[2:3] ", "[2,3]<stdout>:"]);
        let timed = Labels::new(None, true, 1).prefix(1, 0, false);
        assert_eq!(timed.len(), "2026-11-21T13:22:10.123 ".len());
    }
}
