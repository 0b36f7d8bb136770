//! Polls that find nothing: when they let other ranks run, and when the next one may find nothing at a glance.
//!
//! Who polls between pieces of its work (MPI_Test after each update of a table) would pass its core on at each poll, for nothing if the ranks that wait for
//! it poll, too: two ranks a core made HPCC's MPIRandomAccess 25 times as slow as it is now. So it keeps the core for a while if all that are READY there have
//! polled in vain and nothing has come for them since. Whoever became READY by a message, or has got one meanwhile, runs at once.
//!
//! Between two such looks ([`LOOK_EVERY`] polls) a poll compares what could have changed, and takes no step of its own.

use super::Endpoint;
use crate::mem::sync::{AtomicU64, Ordering};
use crate::sched::{self, RunState, Wait, lease, run_queue};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

const RELAXED: Ordering = Ordering::Relaxed;

/// Polls of a turn while others wait: what so many take is about what a hand-over does, which bounds what a rank costs that does nothing else.
const MOST_POLLS: u32 = 128;
/// And so long at most: the others may have work of their own between their polls.
const LONGEST_S: f64 = 50e-6;
/// From one poll to the next, if the rank has the core, in the mean between two close looks: it has worked.
const WORK_S: f64 = 50e-6;
/// A rank that has polled for so long, without such work, has nothing to do.
const IDLE_S: f64 = 200e-6;
/// Polls from one close look to the next.
const LOOK_EVERY: u32 = 16;

/// CPU time of this process: its other threads may work while this one sleeps between its polls.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}

/// All words of a set of ranks in one: 0 only if it is empty (or by an accident that the next look ends).
#[inline]
fn fold(set: &[AtomicU64]) -> u64 {
    match set {
        [one] => one.load(Ordering::SeqCst),
        words => words.iter().fold(0, |all, word| all.rotate_left(1) ^ word.load(Ordering::SeqCst)),
    }
}

impl Endpoint {
    /// A poll for a message has found nothing: let the others of this core run, unless they could only poll in vain as well. True if some ran.
    pub fn poll_missed(&mut self) -> bool {
        if self.may_stay() {
            return false;
        }
        let give = if self.only_polls(cpu_time) { sched::yield_core } else { sched::pass_turn };
        let rank = self.node.rank(self.me);
        rank.wait_kind.store(Wait::Poll as u32, RELAXED);
        let ran = give(&self.node, self.me);
        rank.wait_kind.store(Wait::None as u32, RELAXED);
        if ran {
            self.polls.looked_at = self.node.now();
        }
        self.polls.ready = 0;
        ran
    }

    /// Has this rank done nothing but poll for a while? Who computes between its polls has no use for more ranks on its core; who sleeps between them has
    /// (HyPhy's master), and uses little of the CPU.
    fn only_polls(&mut self, cpu_time: impl FnOnce() -> Duration) -> bool {
        let now = self.node.now();
        let ticks = |seconds: f64| (seconds * self.node.header().ticks_per_second) as u64;
        let polls = u64::from(self.polls.count.wrapping_sub(self.polls.looked));
        if now.saturating_sub(self.polls.looked_at) > polls.saturating_mul(ticks(WORK_S)) {
            let (used, polls) = (cpu_time(), self.polls.count.wrapping_sub(self.polls.counted));
            if used.saturating_sub(self.polls.used).as_secs_f64() > f64::from(polls) * WORK_S {
                self.polls.since = now;
            }
            (self.polls.used, self.polls.counted) = (used, self.polls.count);
        }
        (self.polls.looked_at, self.polls.looked) = (now, self.polls.count);
        now.saturating_sub(self.polls.since) >= ticks(IDLE_S)
    }

    /// Do others wait for this core of whom none has a reason to run now, and not for long?
    fn may_stay(&mut self) -> bool {
        let (rank, core) = (self.node.rank(self.me), self.node.core_of(self.me));
        let set = self.node.ready(core);
        let ready = fold(set);
        self.polls.count = self.polls.count.wrapping_add(1);
        if ready == 0 || self.node.header().recovery != 0 || self.is_revoked(core) {
            return false;
        }
        let turn = rank.switches.load(RELAXED);
        if self.polls.turn != turn {
            (self.polls.turn, self.polls.first, self.polls.ready) = (turn, self.polls.count, 0);
        }
        let polls = self.polls.count.wrapping_sub(self.polls.first);
        let ran_s = self.node.now().saturating_sub(rank.t.load(RELAXED)) as f64 / self.node.header().ticks_per_second;
        if polls >= MOST_POLLS || ran_s >= LONGEST_S || run_queue::members(set).any(|other| self.has_reason(other)) {
            return false;
        }
        self.polls.ready = ready;
        true
    }

    /// Is another job to have the core?
    #[inline]
    fn is_revoked(&self, core: u32) -> bool {
        self.node.core(core).lease.load(Ordering::SeqCst) == lease::REVOKED
    }

    /// Has a READY rank anything to do that is known of? Not if it polled, and nothing has come since.
    fn has_reason(&self, rank: u32) -> bool {
        rank >= self.node.header().ranks
            || self.node.rank(rank).wait_kind.load(RELAXED) != Wait::Poll as u32
            || self.job.inbox(rank).has_mail()
    }

    /// What `misses_again` compares with: completions and unexpected messages so far. `None` if there is something to do that comes
    /// from nowhere else.
    pub fn settled(&self) -> Option<u64> {
        let idle = self.outgoing.is_empty() && self.queues().head.service.first == 0;
        idle.then(|| self.inbox().ends.events.load(RELAXED))
    }

    /// Would a poll that found nothing when `settled` said `events`, and after which this rank has done nothing in MPI, find nothing now?
    /// Touches no queue: they may be lent.
    #[inline]
    pub fn misses_again(&mut self, events: u64) -> bool {
        let (rank, core) = (self.node.rank(self.me), self.node.core_of(self.me));
        let inbox = self.inbox();
        let nothing_new = !inbox.has_mail()
            && inbox.ends.events.load(RELAXED) == events
            && fold(self.node.ready(core)) == self.polls.ready
            && rank.state.load(RELAXED) == RunState::Running.word()
            && !self.is_revoked(core)
            && !self.polls.count.wrapping_add(1).is_multiple_of(LOOK_EVERY);
        // Otherwise the close look counts it.
        self.polls.count = self.polls.count.wrapping_add(u32::from(nothing_new));
        nothing_new
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::job::{JobConfig, JobSegment};
    use crate::matching::envelope::Envelope;
    use crate::node::{NodeConfig, NodeSegment};

    /// Rank 0 of a core that it shares with three others, and runs on.
    fn rank_of_four() -> Endpoint {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 4)).unwrap();
        let endpoint = Endpoint::new(node, JobSegment::create(&JobConfig::for_ranks(4)).unwrap(), 0);
        sched::enter(&endpoint.node, 0);
        endpoint
    }

    fn make_ready(endpoint: &Endpoint, rank: u32, wait: Wait) {
        endpoint.node.rank(rank).wait_kind.store(wait as u32, RELAXED);
        run_queue::insert(endpoint.node.ready(0), rank);
    }

    #[test]
    fn it_stays_while_the_others_could_only_poll_as_well() {
        let mut endpoint = rank_of_four();
        assert!(!endpoint.may_stay(), "nobody waits for the core");
        make_ready(&endpoint, 1, Wait::Poll);
        make_ready(&endpoint, 2, Wait::Poll);
        assert!(endpoint.may_stay());
        endpoint.job.inbox(2).push(&Envelope::EMPTY).unwrap();
        assert!(!endpoint.may_stay(), "a message has come for one of them");
    }

    #[test]
    fn who_got_ready_by_a_message_runs_at_once() {
        let mut endpoint = rank_of_four();
        make_ready(&endpoint, 1, Wait::Poll);
        make_ready(&endpoint, 3, Wait::None);
        assert!(!endpoint.may_stay());
    }

    #[test]
    fn it_does_not_stay_for_long() {
        let mut endpoint = rank_of_four();
        make_ready(&endpoint, 1, Wait::Poll);
        let polls = (0..10 * MOST_POLLS).take_while(|_| endpoint.may_stay()).count();
        // Less if this thread was interrupted for that long.
        assert!(polls <= MOST_POLLS as usize, "{polls} polls");
        endpoint.node.rank(0).switches.fetch_add(1, RELAXED);
        endpoint.node.rank(0).t.store(endpoint.node.now().saturating_sub(1 << 40), RELAXED);
        assert!(!endpoint.may_stay(), "its turn has been long");
    }

    /// Clocks that go on by so much from poll to poll, for half a second: that of the wall, and that of the CPU.
    fn offers(between_s: f64, worked_s: f64, polls_a_look: u32) -> bool {
        let mut endpoint = rank_of_four();
        let ticks = (between_s * endpoint.node.header().ticks_per_second) as u64;
        let looks = (0.5 / between_s) as u32 / polls_a_look;
        endpoint.polls.since = endpoint.node.now();
        let mut used = Duration::from_secs(1);
        let mut only_polls = endpoint.only_polls(|| used);
        assert!(!only_polls, "it has just begun");
        for _ in 0..looks {
            // The clock cannot be set: what is remembered goes back instead.
            let passed = ticks * u64::from(polls_a_look);
            endpoint.polls.looked_at = endpoint.node.now().saturating_sub(passed);
            endpoint.polls.since = endpoint.polls.since.saturating_sub(passed);
            endpoint.polls.count += polls_a_look;
            used += Duration::from_secs_f64(worked_s * f64::from(polls_a_look));
            only_polls = endpoint.only_polls(|| used);
        }
        only_polls
    }

    #[test]
    fn only_who_does_not_work_between_polls_takes_others_over() {
        // A tight loop, an interpreter's, one that computes for a quarter of a millisecond.
        let works = |between_s: f64, polls_a_look| !offers(between_s, between_s, polls_a_look);
        assert!(!works(20e-9, LOOK_EVERY) && !works(10e-6, LOOK_EVERY) && !works(10e-6, 1));
        assert!(works(250e-6, LOOK_EVERY) && works(250e-6, 1));
        // usleep(100) of an interpreter.
        assert!(offers(170e-6, 20e-6, LOOK_EVERY) && offers(170e-6, 20e-6, 1));
    }

    /// Each of these changes is one.
    #[test]
    fn a_poll_looks_closely_when_something_has_changed() {
        type Change = fn(&Endpoint);
        let changes: [(&str, Change); 4] = [
            ("a message", |endpoint| endpoint.job.inbox(0).push(&Envelope::EMPTY).unwrap()),
            ("an event", |endpoint| endpoint.job.inbox(0).count_event()),
            ("a READY rank", |endpoint| make_ready(endpoint, 1, Wait::None)),
            ("a lost core", |endpoint| endpoint.node.rank(0).state.store(RunState::Away.word(), RELAXED)),
        ];
        for (what, change) in changes {
            let mut endpoint = rank_of_four();
            let events = endpoint.settled().expect("nothing is under way");
            assert!(endpoint.misses_again(events));
            change(&endpoint);
            assert!(!endpoint.misses_again(events), "{what}");
        }
    }

    #[test]
    fn each_sixteenth_poll_looks_closely() {
        let mut endpoint = rank_of_four();
        let events = endpoint.settled().unwrap();
        for _ in 0..3 {
            let glances = (0..100).take_while(|_| endpoint.misses_again(events)).count();
            assert!(glances < LOOK_EVERY as usize, "{glances}");
            assert!(!endpoint.may_stay(), "counts");
        }
        let glances = (0..100).take_while(|_| endpoint.misses_again(events)).count();
        assert_eq!(glances, LOOK_EVERY as usize - 1);
    }
}
