//! A job that is told to end: how long its ranks have between TERM and KILL, and what counts as being told again.

use nix::sys::signal::Signal;
use std::time::{Duration, Instant};

/// After Ctrl-C, a hang-up, the end of `--timeout`: somebody waits, and ranks without a handler have ended by then.
const SHORT: Duration = Duration::from_secs(2);
/// After SIGTERM, by which batch systems and timeout(1) announce the end of a job's time, so that it may write a checkpoint. As long as Slurm's KillWait.
const LONG: Duration = Duration::from_secs(30);
/// timeout(1) signals its child and then its process group, to which the child belongs: that is one demand.
const SAME: Duration = Duration::from_millis(250);

/// How long ranks have if vmpirun got `signal` (`None`: it ends the job of its own accord); `--kill-after` says otherwise.
pub fn grace(kill_after_s: Option<u64>, signal: Option<Signal>) -> Duration {
    let usual = if signal == Some(Signal::SIGTERM) { LONG } else { SHORT };
    kill_after_s.map_or(usual, Duration::from_secs)
}

/// How often the job's end has been demanded.
#[derive(Default)]
pub struct Demands {
    count: u32,
    last: Option<Instant>,
}

impl Demands {
    pub fn any(&self) -> bool {
        self.count > 0
    }

    /// One more; returns how many there are, and `None` if it is the one before come twice.
    pub fn note(&mut self, now: Instant) -> Option<u32> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < SAME) {
            return None;
        }
        self.last = Some(now);
        self.count += 1;
        Some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_twice_is_one_demand() {
        let (mut demands, now) = (Demands::default(), Instant::now());
        assert!(!demands.any());
        let after = |ms: u64| now + Duration::from_millis(ms);
        let told: Vec<_> = [0, 1, 200, 400, 500, 3000].into_iter().map(|ms| demands.note(after(ms))).collect();
        assert_eq!(told, [Some(1), None, None, Some(2), None, Some(3)]);
        assert!(demands.any());
    }

    #[test]
    fn a_batch_system_leaves_time_for_a_checkpoint() {
        assert_eq!(grace(None, Some(Signal::SIGTERM)), LONG);
        assert_eq!(grace(None, Some(Signal::SIGINT)), SHORT);
        assert_eq!(grace(None, None), SHORT);
        assert_eq!(grace(Some(5), Some(Signal::SIGTERM)), Duration::from_secs(5));
        assert_eq!(grace(Some(0), None), Duration::ZERO);
    }
}
