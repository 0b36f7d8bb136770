//! What a job's ranks wait for, by looks now and then from outside: they do not count it themselves, since that would make every wait dearer.

use std::time::{Duration, Instant};

use vmpi_shared::control::WaitShare;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::RunState;
use vmpi_shared::sched::report::CALLS;

/// Two looks are at least so far apart; a longer time counts as so long, since nobody looked at what was between.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(300);

/// Time that ranks were seen waiting, by what for (`CALLS`).
#[derive(Debug, Default)]
pub struct Looks {
    last: Option<Instant>,
    seconds: [f64; CALLS.len()],
}

impl Looks {
    /// Look at these ranks, if the last look is not too near.
    pub fn look(&mut self, node: &NodeSegment, ranks: impl Iterator<Item = u32>, now: Instant) {
        let since = self.last.map(|last| now.saturating_duration_since(last));
        if since.is_some_and(|since| since < SHORTEST) {
            return;
        }
        self.last = Some(now);
        let Some(span) = since.map(|since| since.min(LONGEST).as_secs_f64()) else { return };
        for rank in ranks.filter(|rank| matches!(node.state(*rank), RunState::Suspended | RunState::Tended)) {
            if let Some(sum) = self.seconds.get_mut(node.rank(rank).call.load(Relaxed) as usize) {
                *sum += span;
            }
        }
    }

    /// What was seen, the most first.
    pub fn shares(&self) -> Vec<WaitShare> {
        let seen = CALLS.iter().zip(self.seconds).filter(|(call, seconds)| !call.is_empty() && *seconds > 0.0);
        let mut shares: Vec<WaitShare> =
            seen.map(|(call, seconds)| WaitShare { call: (*call).to_owned(), seen_s: seconds }).collect();
        shares.sort_by(|a, b| b.seen_s.total_cmp(&a.seen_s));
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::node::NodeConfig;

    #[test]
    fn who_waits_is_seen_for_as_long_as_nobody_looked() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 3)).unwrap();
        let call = |name: &str| CALLS.iter().position(|call| *call == name).unwrap() as u32;
        for (rank, state, name) in
            [(0, RunState::Suspended, "collective"), (1, RunState::Tended, "receive"), (2, RunState::Running, "send")]
        {
            node.rank(rank).state.store(state.word(), Relaxed);
            node.rank(rank).call.store(call(name), Relaxed);
        }
        let (mut looks, start) = (Looks::default(), Instant::now());
        let mut look = |ms: u64, ranks: std::ops::Range<u32>| {
            looks.look(&node, ranks, start + Duration::from_millis(ms));
            looks.shares().iter().map(|share| (share.call.clone(), (share.seen_s * 1e3).round())).collect::<Vec<_>>()
        };
        assert_eq!(look(0, 0..3), []);
        assert_eq!(look(4, 0..3), [], "too near");
        assert_eq!(look(10, 0..1), [("collective".into(), 10.0)]);
        assert_eq!(look(30, 0..3), [("collective".into(), 30.0), ("receive".into(), 20.0)]);
        assert_eq!(look(9030, 1..3), [("receive".to_string(), 320.0), ("collective".into(), 30.0)]);
    }
}
