//! Ranks that are about to end badly: the launcher looks at them before they do (`vmpi_shared::crash`).

use std::time::{Duration, Instant};

use vmpi_shared::control::Reply;
use vmpi_shared::crash::{OnCrash, Way};
use vmpi_shared::node::last_words;
use vmpi_shared::sched;

use super::{Job, Phase};
use crate::rank::Member;

/// Ranks of one program often fail in the same place: the first death, which ends the job, waits until no more have come for so long...
const QUIET: Duration = Duration::from_millis(50);
/// ...and at most so long.
const LONGEST: Duration = Duration::from_secs(2);

/// Those that have been looked at, and may go on to their end soon.
#[derive(Default)]
pub(super) struct Deathbeds {
    ranks: Vec<u32>,
    since: Option<Instant>,
    due: Option<Instant>,
    /// Some stay for a debugger.
    held: bool,
}

impl Job {
    /// Tell the launcher of ranks that have said their last words.
    pub fn listen_to_dying(&mut self) {
        let pid_of = |rank: u32| {
            self.ranks.get(rank as usize).map_or(0, |entry| entry.attachment.as_ref().map_or(entry.pid, |a| a.pid))
        };
        let now = Instant::now();
        for dying in last_words::listen(&self.node, pid_of) {
            let rank = dying.rank;
            // The others of its core need not wait for the end of it.
            sched::take_core(&self.node, rank);
            self.deathbeds.since.get_or_insert(now);
            // Who ends because it has been told to (a handler of SIGTERM) is no news.
            let obeys = self.phase == Phase::Ending && matches!(dying.way, Way::Exit { .. });
            if self.launcher.is_none() || obeys {
                last_words::heard(&self.node, rank, false);
                continue;
            }
            self.outbox.push((Reply::Dying { dying }, Vec::new()));
        }
    }

    /// The launcher has looked at them.
    pub fn dying_heard(&mut self, ranks: &[u32]) {
        let now = Instant::now();
        let known = ranks.iter().filter_map(|rank| self.member(*rank)).map(Member::number);
        // No more than there are, however often they are named.
        let known: Vec<u32> = known.take(self.ranks.len()).collect();
        for rank in known {
            if self.spec.on_crash == OnCrash::Gdb {
                self.deathbeds.held = true;
                last_words::heard(&self.node, rank, true);
                continue;
            }
            let beds = &mut self.deathbeds;
            beds.ranks.push(rank);
            let longest = *beds.since.get_or_insert(now) + LONGEST;
            // Where the job goes on, others wait to learn of it.
            let quiet = if self.spec.recovery { Duration::ZERO } else { QUIET };
            beds.due = Some((now + quiet).min(longest));
        }
    }

    /// Is there a rank that is about to end, or stays before its end?
    pub fn has_dying(&self) -> bool {
        self.deathbeds.held || self.deathbeds.since.is_some()
    }

    pub(super) fn deaths_due(&self) -> Option<Instant> {
        self.deathbeds.due
    }

    /// Let those go on to their end whose time has come.
    pub fn let_die(&mut self, now: Instant) {
        if self.deathbeds.due.is_some_and(|due| due <= now) {
            let beds = std::mem::take(&mut self.deathbeds);
            beds.ranks.iter().for_each(|rank| last_words::heard(&self.node, *rank, false));
        }
    }
}
