//! How a job ends: the first cause decides (`Job::end`). All ranks get the cause's signal (TERM unless the launcher chose
//! another) and CONT, so that stopped ones act on it; after the grace time KILL, again and again until no process is
//! left (`reap::leftovers` finds the ones that left the process group). Only then `Finished` goes out, which names what the ranks had started.
//! A job whose ranks all ended well goes the same way with no grace, but what they left running in the background stays.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use vmpi_shared::control::{Cause, Ended, Helper, JobReport, RankEnd, Reply};
use vmpi_shared::dynamic::Ranks;
use vmpi_shared::sched::{self, RunState};

use super::{Job, Phase};
use crate::log::debug;
use crate::rank::Rank;
use crate::reap::{self, Descendant};

/// From TERM to KILL when a rank failed or the launcher is gone.
pub const FAILURE_GRACE: Duration = Duration::from_millis(100);
/// From TERM to KILL when the daemon shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_millis(500);
/// How long a wrapper script may go on after the MPI process below it died.
const WRAPPER_GRACE: Duration = Duration::from_secs(1);
/// How long the others may go on after a rank has left with 0 and without MPI_Finalize, unless they only wait.
const PARTING_GRACE: Duration = Duration::from_secs(2);
/// First and longest time between two sweeps for survivors.
const SWEEP_FIRST: Duration = Duration::from_millis(10);
const SWEEP_LONGEST: Duration = Duration::from_millis(500);

/// The end has begun.
pub(super) struct Ending {
    pub(super) at: Instant,
    pause: Duration,
}

/// When a job's end began: ticks, and how long each core had been idle by then.
pub struct Ends {
    pub at: u64,
    pub idle: Vec<u64>,
}

/// A rank has left with 0 and without MPI_Finalize: that fails the job, but programs in which all do so are common, and what the others still have to
/// say is not lost.
pub(super) struct Parting {
    cause: Cause,
    at: Instant,
}

impl Job {
    /// The rank has returned from MPI_Finalize.
    pub fn finalized(&mut self, rank: u32) {
        self.ranks[rank as usize].finalized = true;
    }

    /// The rank calls MPI_Abort. With fault tolerance the others of its communicator die with it, and the rest goes on.
    pub fn aborted(&mut self, rank: u32, code: i32, reason: String, group: Option<Ranks>) {
        let pid = self.ranks[rank as usize].attachment.as_ref().map_or(0, |a| a.pid);
        let exit = never_zero(code);
        match group.filter(|group| self.spec.recovery && self.spares_somebody(rank, group)) {
            None => self.end_by_failure(Cause::Aborted { rank, pid, code, reason }, exit),
            Some(group) => {
                let cause = Cause::GroupAborted { rank, pid, code, reason, ranks: group.len() as u32 };
                if self.spec.nodes.is_some() {
                    let told = Reply::GroupEnded { group: group.clone(), cause: cause.clone(), code: exit };
                    self.outbox.push((told, Vec::new()));
                }
                self.end_group(&group, cause, exit);
            }
        }
    }

    /// Does `group`, which `rank` wants to end, make sense, and does somebody live outside of it? Who lives on other nodes is not known here.
    fn spares_somebody(&self, rank: u32, group: &Ranks) -> bool {
        let ranks = self.ranks.len() as u32;
        let members: BTreeSet<u32> = if group.fit(ranks) { group.iter().collect() } else { BTreeSet::new() };
        let may_live = |other: u32| !self.spec.is_local(other) || !self.is_gone(other);
        members.contains(&rank) && (0..ranks).any(|other| !members.contains(&other) && may_live(other))
    }

    /// End the ranks of `group` that are here; their deaths are then told of as any others.
    pub fn end_group(&mut self, group: &Ranks, cause: Cause, code: i32) {
        debug!("job {}: end of {group:?}, {cause:?}", self.id);
        self.verdict.get_or_insert((cause, code));
        // No more than there are: a few bytes can name four thousand million of them.
        for rank in group.iter().take(self.ranks.len()).filter(|&rank| !self.is_gone(rank)) {
            self.signal_rank(rank, Signal::SIGKILL as i32);
        }
    }

    /// A child of the daemon has been reaped: the rank's process, or a grandchild that outlived its parent.
    pub fn process_ended(&mut self, rank: u32, pid: i32, ended: Ended) {
        let entry = &mut self.ranks[rank as usize];
        if let Some(attachment) = &mut entry.attachment
            && attachment.pid == pid
        {
            self.live -= u32::from(attachment.alive && entry.pid != pid);
            attachment.alive = false;
            attachment.pidfd = None;
            attachment.ended = Some(ended);
        }
        if entry.pid == pid {
            self.live -= 1;
            entry.ended = Some(ended);
        }
        self.settle(rank);
    }

    /// The pidfd of a grandchild says that it is gone; its parent knows how.
    pub fn attachment_ended(&mut self, rank: u32, pid: i32) {
        if let Some(attachment) = &mut self.ranks[rank as usize].attachment
            && attachment.pid == pid
        {
            self.live -= u32::from(attachment.alive);
            attachment.alive = false;
            attachment.pidfd = None;
        }
        self.settle(rank);
    }

    /// Draw the conclusions from what is known about a rank's processes.
    pub(crate) fn settle(&mut self, rank: u32) {
        let state = self.node.state(rank);
        let entry = &mut self.ranks[rank as usize];
        if entry.over || entry.held {
            return;
        }
        entry.finalized |= state == RunState::Finalized;
        let initialized = entry.attachment.is_some();
        let mpi_gone = entry.attachment.as_ref().is_some_and(|a| !a.alive);
        let gone = entry.ended.is_some() && (mpi_gone || !initialized);
        if (mpi_gone || gone) && !entry.died {
            entry.died = true;
            sched::rank_died(&self.node, rank);
            if self.spec.recovery && !entry.finalized && !entry.abandoned {
                self.undone.extend(sched::failure::publish(&self.node, &self.segment, rank));
                // Whoever died may have been about to.
                if let Some(bell) = self.node.carrier_bell() {
                    bell.ring();
                }
            }
            // Once it counts as failed, where it does: until then who copies is told that there is no such process.
            self.node.end_pid(rank);
        }
        if gone {
            sched::outside::over(&self.node, rank);
        }
        let finalized = entry.finalized;
        let unfinished = mpi_gone && !finalized;
        // A wrapper's 0 does not hide how the MPI process below it ended.
        let below = entry.attachment.as_ref().and_then(|a| a.ended).filter(|ended| ended.code() != 0);
        if entry.abandoned {
            if gone {
                entry.over = true;
                self.remaining -= 1;
                self.vacate(rank);
                self.end_if_all_over();
            }
            return;
        }
        let ended = match entry.ended {
            Some(Ended::Exited(0)) => Some(below.unwrap_or(Ended::Exited(0))),
            Some(ended) => Some(ended),
            None => None,
        };
        let pid = entry.attachment.as_ref().map_or(entry.pid, |a| a.pid);
        match ended {
            Some(ended) if ended.code() != 0 || (gone && unfinished) => {
                let cause = Cause::RankFailed { rank, pid, ended, finalized, initialized };
                match ended.code() {
                    0 => self.left(cause),
                    code => self.fail(cause, code),
                }
            }
            None if unfinished && entry.wrapper_deadline.is_none() => {
                let at = Instant::now() + WRAPPER_GRACE;
                entry.wrapper_deadline = Some(at);
                self.next_wrapper.get_or_insert(at);
            }
            _ => {}
        }
        if let (true, Some(ended)) = (gone, ended) {
            let why_killed = self.why_killed(ended);
            self.rank_over(RankEnd { rank, pid, ended, initialized, finalized, rtime_s: 0.0, switches: 0, why_killed });
        }
    }

    /// What is known of the signal that has ended a rank, if it was SIGKILL and not from here.
    fn why_killed(&self, ended: Ended) -> String {
        let killed = ended == Ended::Signaled(Signal::SIGKILL as i32);
        if killed && !self.killing { self.kills.of_killed() } else { String::new() }
    }

    fn rank_over(&mut self, mut end: RankEnd) {
        if end.initialized {
            let report = sched::rank_report(&self.node, end.rank);
            end.rtime_s = report.rtime_s;
            end.switches = report.switches;
        }
        self.ranks[end.rank as usize].over = true;
        self.ports.forget(end.rank);
        self.remaining -= 1;
        if self.refusal.is_some() {
            return;
        }
        let number = end.rank;
        debug!("job {}: rank {number} (pid {}) has ended: {:?}", self.id, end.pid, end.ended);
        let reply = (Reply::Ended { rank: end }, Vec::new());
        match self.phase {
            Phase::Collecting | Phase::Spawning(_) => self.early.push(reply),
            Phase::Running | Phase::Ending => self.outbox.push(reply),
        }
        self.vacate(number);
        self.end_if_all_over();
    }

    /// The job is done when all its processes are, those that others spawned included.
    pub(crate) fn end_if_all_over(&mut self) {
        if self.remaining == 0 && self.ending.is_none() {
            if self.carrier.is_some() && !self.may_conclude() {
                return;
            }
            if let Some(carrier) = self.carrier.as_mut().filter(|carrier| !carrier.drained) {
                if !std::mem::replace(&mut carrier.asked_to_drain, true) {
                    self.tell_carrier(Reply::Drain);
                }
                return;
            }
            let (cause, code) = self.verdict.take().unwrap_or((Cause::Success, 0));
            self.end(cause, code, Signal::SIGKILL as i32, Duration::ZERO);
        }
    }

    /// A rank failed: the first failure is the job's verdict, and its end unless others may go on.
    fn fail(&mut self, cause: Cause, code: i32) {
        if self.verdict.is_some() {
            return;
        }
        if self.spec.kill_on_failure {
            self.end_by_failure(cause, code);
        } else {
            self.verdict = Some((cause, code));
        }
    }

    /// A rank has left with 0 and without MPI_Finalize.
    fn left(&mut self, cause: Cause) {
        if self.phase != Phase::Running || !self.spec.kill_on_failure || self.verdict.is_some() {
            return self.fail(cause, 1);
        }
        self.parting.get_or_insert(Parting { cause, at: Instant::now() + PARTING_GRACE });
    }

    /// Has a rank left the others behind, who will be ended for that?
    pub fn is_parting(&self) -> bool {
        self.parting.is_some()
    }

    /// When to look whether those that a rank has left behind are to be ended.
    pub(super) fn parting_due(&self) -> Option<Instant> {
        self.parting.as_ref().map(|parting| parting.at.min(self.next_look()))
    }

    /// End those that a rank has left behind, if their time is over or all of them wait.
    pub fn check_parting(&mut self, now: Instant) {
        // The other nodes' ranks are not seen from here: they have their time.
        let all_wait = || self.spec.nodes.is_none() && self.is_still();
        let is_over = self.parting.as_ref().is_some_and(|parting| parting.at <= now || all_wait());
        if self.phase == Phase::Running
            && is_over
            && let Some(parting) = self.parting.take()
        {
            self.end_by_failure(parting.cause, 1);
        }
    }

    pub(super) fn end_by_failure(&mut self, cause: Cause, code: i32) {
        self.end(cause, code, Signal::SIGTERM as i32, FAILURE_GRACE);
    }

    /// Begin the end: the first cause stays; a later call can only make it faster.
    pub fn end(&mut self, cause: Cause, code: i32, signal: i32, grace: Duration) {
        let now = Instant::now();
        debug!("job {}: end, {cause:?}", self.id);
        if self.ending.is_none() {
            if let Phase::Spawning(_) | Phase::Collecting = self.phase
                && self.refusal.is_none()
            {
                self.say_started();
            }
            self.fds.clear();
            if !matches!(cause, Cause::Success) && self.refusal.is_none() {
                // Before a signal ends them.
                let of_rank = |pid: i32| self.ranks.iter().any(|rank| rank.pid == pid).then_some(self.id);
                let found = reap::leftovers(self.id, false, of_rank, &reap::Left::new());
                self.note_helpers(&found);
            }
            self.tell_carrier(Reply::Quit);
            // What ends the job is its cause, not a death that it has survived; but the first to leave was the first cause.
            self.verdict = Some(self.parting.take().map_or((cause, code), |parting| (parting.cause, 1)));
            self.phase = Phase::Ending;
            let idle = (0..self.node.header().cores).map(|core| sched::outside::idle_of(&self.node, core)).collect();
            self.ends = Some(Ends { at: self.node.now(), idle });
            self.ending = Some(Ending { at: now + grace, pause: SWEEP_FIRST });
        }
        if let Some(ending) = &mut self.ending {
            ending.at = ending.at.min(now + grace);
        }
        self.killing |= signal == Signal::SIGKILL as i32;
        self.signal_all(signal);
        if signal != Signal::SIGKILL as i32 {
            self.signal_all(Signal::SIGCONT as i32);
        }
    }

    /// Pass a signal to all processes of the job's groups.
    pub fn signal_all(&self, signal: i32) {
        let alive = self.ranks.iter().filter(|rank| rank.pid != 0 && rank.ended.is_none());
        let groups: BTreeSet<i32> = alive.map(|rank| rank.group).collect();
        for group in groups {
            send(group, signal, true);
        }
        // Grandchildren that outlived the spawned process, if it was the last of the group.
        for attachment in self.ranks.iter().filter(|r| r.ended.is_some()).filter_map(|r| r.attachment.as_ref()) {
            if attachment.alive {
                send(attachment.pid, signal, false);
            }
        }
    }

    /// Pass a signal to the processes of one rank; false if it has none.
    pub fn signal_rank(&self, rank: u32, signal: i32) -> bool {
        let Some(entry) = self.member(rank).map(|member| &self.ranks[member.index()]) else { return false };
        let mut any = false;
        if entry.pid != 0 && entry.ended.is_none() {
            send(entry.pid, signal, false);
            any = true;
        }
        if let Some(attachment) = entry.attachment.as_ref().filter(|a| a.alive && a.pid != entry.pid) {
            send(attachment.pid, signal, false);
            any = true;
        }
        any
    }

    /// Look now and then whether a rank has scribbled over the shared memory; if so, end the job, which can only hang.
    pub fn check_integrity(&mut self, now: Instant) {
        if self.phase != Phase::Running || !self.integrity.is_due(now) {
            return;
        }
        let damage = self.integrity.check(&self.node, &self.segment, &self.placement);
        let damage = damage.or_else(|| self.odd_state()).or_else(|| self.odd_inbox());
        if let Some(damage) = damage {
            self.end_damaged(&damage);
        }
    }

    /// A state that a rank cannot be in, as far as is known of its process.
    fn odd_state(&self) -> Option<String> {
        self.living().find_map(|rank| {
            let attachment = self.ranks[rank as usize].attachment.as_ref()?;
            let state = self.node.state(rank);
            let is_odd = match state {
                // Who has had its core is behind that.
                RunState::Init => self.node.switches(rank) > 0,
                RunState::Dead | RunState::Remote => true,
                _ => false,
            };
            (is_odd && attachment.alive).then(|| format!("the state of rank {rank} is {}", state.name()))
        })
    }

    /// An inbox in which senders go round for ever. (Those of jobs in virtual time are closed.)
    fn odd_inbox(&self) -> Option<String> {
        let mut living = self.living().filter(|_| self.simulation.is_none());
        living.find_map(|rank| {
            let damage = self.segment.inbox(rank).damage()?;
            Some(format!("the inbox of rank {rank}: {damage}"))
        })
    }

    /// What is seen in the shared memory, which nothing in vmpi leaves there.
    pub(super) fn end_damaged(&mut self, damage: &str) {
        let reason = format!(
            "its shared memory has been overwritten ({damage}): one of its ranks writes where it must not (a stray \
             pointer, an index out of range)"
        );
        self.end_by_failure(Cause::Internal { reason }, 125);
    }

    /// A rank whose wrapper still runs a while after its MPI process died without MPI_Finalize.
    pub fn check_wrappers(&mut self, now: Instant) {
        if self.next_wrapper.is_none_or(|at| at > now) {
            return;
        }
        let waiting = |r: &&Rank| !r.over && r.ended.is_none();
        self.next_wrapper =
            self.ranks.iter().filter(waiting).filter_map(|r| r.wrapper_deadline).filter(|at| *at > now).min();
        let late = self.ranks.iter().position(|r| waiting(&r) && r.wrapper_deadline.is_some_and(|at| at <= now));
        let Some(rank) = late else { return };
        let entry = &mut self.ranks[rank];
        entry.wrapper_deadline = None;
        self.left_unfinished(rank as u32);
    }

    /// The MPI process of `rank` has ended without MPI_Finalize, and the one that had started it does not end.
    pub fn left_unfinished(&mut self, rank: u32) {
        let entry = &self.ranks[rank as usize];
        let (parent, pid) = (entry.pid, entry.attachment.as_ref().map_or(0, |a| a.pid));
        self.fail(Cause::Unfinished { rank, pid, parent }, 1);
    }

    /// In Ending: is it time to kill and look for survivors?
    pub fn wants_sweep(&self, now: Instant) -> bool {
        // Killed before it has said that the job ends here, the carrier would look like the cause from the other nodes.
        let parted = self.carrier.as_ref().is_none_or(|carrier| carrier.connection.is_none());
        self.ending.as_ref().is_some_and(|ending| ending.at <= now || (self.all_reaped() && parted))
    }

    /// Kill what is left; `survivors`: processes found outside the groups and sent KILL. Ends the job if there were none.
    pub fn swept(&mut self, survivors: usize, now: Instant) {
        self.killing = true;
        self.signal_all(Signal::SIGKILL as i32);
        let done = survivors == 0 && self.all_reaped();
        if let Some(ending) = &mut self.ending {
            ending.at = now + ending.pause;
            ending.pause = (ending.pause * 2).min(SWEEP_LONGEST);
        }
        if done {
            self.finish();
        }
    }

    /// Has the job ended well? Then what its ranks have left running stays.
    pub fn leaves_helpers(&self) -> bool {
        matches!(self.verdict, Some((Cause::Success, _)))
    }

    /// Processes of the job: those that are no ranks, and not vmpi's own, were started by ranks.
    pub fn note_helpers(&mut self, found: &[Descendant]) {
        let is_rank = |pid: i32| {
            self.ranks.iter().any(|rank| rank.pid == pid || rank.attachment.as_ref().is_some_and(|a| a.pid == pid))
        };
        let new: Vec<Helper> = found
            .iter()
            .filter(|process| !is_rank(process.pid) && !reap::is_own(process))
            .filter(|process| self.helpers.iter().all(|known| known.pid != process.pid))
            .map(|process| Helper { node: None, pid: process.pid, name: process.name.clone() })
            .collect();
        self.helpers.extend(new);
    }

    /// All spawned processes have been reaped and no attached process lives.
    pub fn all_reaped(&self) -> bool {
        self.live == 0
    }

    fn finish(&mut self) {
        self.finished = true;
        if let Some(error) = self.refusal.take() {
            self.outbox.push((Reply::Refused { reason: error.to_string(), code: error.code() }, Vec::new()));
            return;
        }
        // One moment for all, so that clocks and trace tell the same.
        let end = self.node.moment();
        debug!("job {}: over", self.id);
        let helpers = std::mem::take(&mut self.helpers);
        let report = Box::new(JobReport { helpers, ..self.report_at(end.ticks) });
        let (cause, code) = self.verdict.clone().unwrap_or((Cause::Success, 0));
        let matrix = self.monitored.then(|| Box::new(self.matrix()));
        let (trace, file) = match (self.trace_map(Some(end)), self.trace_file()) {
            (Some(map), Ok(file)) => (Some(map), vec![file]),
            _ => (None, Vec::new()),
        };
        self.outbox.push((Reply::Finished { cause, code, report, matrix, trace }, file));
    }
}

fn send(pid: i32, signal: i32, group: bool) {
    let Ok(signal) = Signal::try_from(signal) else { return };
    // 0 is the daemon's own group, -1 everybody.
    if pid <= 0 {
        return;
    }
    let pid = Pid::from_raw(pid);
    let _ = if group { killpg(pid, signal) } else { kill(pid, signal) };
}

/// An exit code whose low byte, all that a shell sees, is not 0.
fn never_zero(code: i32) -> i32 {
    if code & 0xff == 0 { 1 } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abort_code_never_looks_like_success() {
        assert_eq!([0, 256, 1, 255, -1, 65536].map(never_zero), [1, 1, 1, 255, -1, 1]);
    }
}
