//! The daemon's voice: errors as sentences on stderr, details only with `VMPI_LOG=debug`. The last lines of both are kept for `vmpictl logs`.

use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

use vmpi_shared::control::LogLine;

/// So many lines are kept.
const MOST_LINES: usize = 2048;
/// And so much of each.
const MOST_BYTES: usize = 4096;

static KEPT: Mutex<VecDeque<LogLine>> = Mutex::new(VecDeque::new());

/// Was `VMPI_LOG=debug` set when the daemon started?
pub fn is_debug() -> bool {
    static DEBUG: OnceLock<bool> = OnceLock::new();
    *DEBUG.get_or_init(|| std::env::var_os("VMPI_LOG").is_some_and(|value| value == "debug"))
}

/// Keep a line, and print it on stderr if `VMPI_LOG=debug`. One about a job begins `job 3: `.
macro_rules! debug {
    ($($arg:tt)*) => {
        $crate::log::detail(&format!($($arg)*))
    };
}
pub(crate) use debug;

/// See `debug`.
pub fn detail(text: &str) {
    keep(text);
    if is_debug() {
        print(text);
    }
}

/// Print a sentence on stderr; a closed stderr is no reason to end.
pub fn line(text: &str) {
    keep(text);
    print(text);
}

fn print(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "vmpid: {}", vmpi_shared::escape::indented(text));
}

fn keep(text: &str) {
    let at_s = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let Ok(mut kept) = KEPT.lock() else { return };
    if kept.len() == MOST_LINES {
        kept.pop_front();
    }
    // It may hold what a client has said.
    let text = &text[..text.floor_char_boundary(MOST_BYTES)];
    kept.push_back(LogLine { at_s, job: job_of(text), text: text.into() });
}

/// `job 3: ...` is about job 3.
fn job_of(text: &str) -> Option<u32> {
    text.strip_prefix("job ")?.split_once(':')?.0.parse().ok()
}

/// What is kept, of one job or of all.
pub fn kept(job: Option<u32>) -> Vec<LogLine> {
    let Ok(kept) = KEPT.lock() else { return Vec::new() };
    kept.iter().filter(|line| job.is_none() || line.job == job).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_job_are_found_and_old_ones_go() {
        detail("job 7: end, Success");
        detail("job 70: begins");
        detail("process 7 ended");
        let of_job: Vec<String> = kept(Some(7)).into_iter().map(|line| line.text).collect();
        assert_eq!(of_job, ["job 7: end, Success"]);
        (0..MOST_LINES).for_each(|_| detail("more"));
        assert_eq!((kept(None).len(), kept(Some(7)).len()), (MOST_LINES, 0));
    }
}
