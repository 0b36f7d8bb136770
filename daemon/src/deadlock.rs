//! Who waits for whom, and does everybody?
//!
//! A job is deadlocked if each of its ranks is SUSPENDED and nothing can end a wait. That is proven by looks that find the same still
//! picture: a rank that is SUSPENDED twice with the same count of switches has not run in between, so nobody has sent
//! or changed anything. What else could end a wait must be excluded: a message in an inbox or data on its way; the daemon, which
//! answers questions (spawn, agreement, names) and mends; ranks on other nodes; a rank that has not come to MPI_Init yet, or has left MPI and may come back
//! with a session; a thread that is not in MPI. Where one of these cannot be excluded, nothing is reported: `vmpictl why` still tells
//! what is known.

use std::time::{Duration, Instant};

use vmpi_shared::control::Reply;
use vmpi_shared::matching::look;
use vmpi_shared::mem::sync::Ordering::SeqCst;
use vmpi_shared::sched::{RunState, Wait, report};
use vmpi_shared::waits::{CommInfo, JobWaits, RankWait, WaitKind, WaitOn};

use crate::job::{Job, Phase};
use crate::rank::Rank;

/// Time between two looks; they come with the watchdog's.
const PAUSE: Duration = Duration::from_millis(240);
/// Looks that must agree with the first one. After the second all that had been sent to the daemon before the first one has been read.
const CONFIRMATIONS: u32 = 2;
/// Waits and messages listed per rank.
const MOST: usize = 32;
/// Calls that end by an answer of the daemon (`sched::report::CALLS`).
const DAEMON_CALLS: [u32; 3] = [9, 10, 11];

/// What the last looks have seen.
pub struct Detector {
    next: Instant,
    /// The ranks' switches when all of them were suspended.
    picture: Option<Vec<u64>>,
    confirmed: u32,
}

impl Detector {
    pub fn new(now: Instant) -> Detector {
        Detector { next: now + PAUSE, picture: None, confirmed: 0 }
    }
}

/// Threads of a process.
fn threads_of(pid: i32) -> Option<usize> {
    std::fs::read_dir(format!("/proc/{pid}/task")).ok().map(Iterator::count)
}

impl Job {
    /// Look whether the job is deadlocked, if it is time to; tell the launcher, once for each picture.
    pub fn check_deadlock(&mut self, now: Instant) {
        if self.phase != Phase::Running || now < self.detector.next {
            return;
        }
        self.detector.next = now + PAUSE;
        let picture = self.still_picture();
        if picture.is_none() || picture != self.detector.picture {
            self.detector.picture = picture;
            self.detector.confirmed = 0;
            return;
        }
        self.detector.confirmed = self.detector.confirmed.saturating_add(1);
        if self.detector.confirmed == CONFIRMATIONS {
            if self.is_moved_from_outside() {
                // It may be over soon: look again.
                self.detector.confirmed = 0;
                return;
            }
            let waits = Box::new(self.waits());
            self.outbox.push((Reply::Deadlock { waits }, Vec::new()));
        }
    }

    /// When the next look is due.
    pub fn next_look(&self) -> Instant {
        self.detector.next
    }

    /// Have the last two looks found all ranks that live waiting, and none of them has run since?
    pub fn is_still(&self) -> bool {
        self.detector.confirmed > 0 && self.still_picture() == self.detector.picture
    }

    /// Has what is there now been found to be a deadlock?
    fn is_deadlocked(&self) -> bool {
        self.detector.confirmed >= CONFIRMATIONS && self.still_picture() == self.detector.picture
    }

    /// The ranks' switches, if there are ranks and all of them are suspended with nothing in their inboxes.
    fn still_picture(&self) -> Option<Vec<u64>> {
        let mut picture = Vec::new();
        for (entry, rank) in self.ranks.iter().zip(0..) {
            if entry.over || entry.died {
                continue;
            }
            let suspended = entry.attachment.is_some() && self.node.state(rank) == RunState::Suspended;
            let descriptor = self.node.rank(rank);
            if !suspended || descriptor.wake.load(SeqCst) != 0 || !self.segment.inbox(rank).is_quiet() {
                return None;
            }
            picture.push(self.node.switches(rank));
        }
        (!picture.is_empty()).then_some(picture)
    }

    /// Could something end a wait though no rank of the job runs?
    fn is_moved_from_outside(&self) -> bool {
        // Of other nodes' ranks nothing is known here.
        self.spec.nodes.is_some()
            || !self.agreements.is_empty()
            || !self.undone_is_empty()
            || self.ranks.iter().zip(0..).any(|(entry, rank)| {
                !entry.over
                    && !entry.died
                    && (DAEMON_CALLS.contains(&self.node.rank(rank).call.load(SeqCst))
                        && self.ports.visitor(rank).is_none()
                        || look::is_moving(&self.segment, rank)
                        || self.has_thread_elsewhere(entry, rank))
            })
    }

    /// With MPI_THREAD_MULTIPLE: is there a thread that does not wait in MPI?
    fn has_thread_elsewhere(&self, entry: &Rank, rank: u32) -> bool {
        let waiting = self.node.rank(rank).waiting_threads.load(SeqCst) as usize;
        let pid = entry.attachment.as_ref().map_or(entry.pid, |attachment| attachment.pid);
        waiting != 0 && threads_of(pid).is_none_or(|threads| threads > waiting)
    }

    /// What everybody waits for.
    pub fn waits(&self) -> JobWaits {
        let mut contexts = Vec::new();
        let ranks: Vec<RankWait> =
            (0..self.ranks.len() as u32).map(|rank| self.rank_waits(rank, &mut contexts)).collect();
        contexts.sort_unstable();
        contexts.dedup();
        JobWaits {
            job: self.id,
            program: self.spec.apps.iter().map(|app| app.program.as_str()).collect::<Vec<_>>().join(" : "),
            deadlock: self.is_deadlocked(),
            ranks,
            comms: contexts.into_iter().map(|context| self.comm_info(context)).collect(),
        }
    }

    fn comm_info(&self, context: u32) -> CommInfo {
        let known = self.segment.roster(context);
        let members = known.as_ref().map_or_else(Vec::new, |roster| roster.members());
        let limit = self.ranks.len() as u32;
        CommInfo {
            context,
            name: known.as_ref().map_or_else(String::new, |roster| roster.name()),
            members: members.into_iter().flatten().filter(|rank| *rank < limit).collect(),
        }
    }

    fn rank_waits(&self, rank: u32, contexts: &mut Vec<u32>) -> RankWait {
        let entry = &self.ranks[rank as usize];
        let world = &self.worlds[entry.world];
        let mut wait = RankWait {
            rank,
            pid: entry.attachment.as_ref().map_or(entry.pid, |a| a.pid),
            world: world.number,
            world_rank: entry.world_rank,
            ..RankWait::default()
        };
        if let Some(nodes) = self.spec.nodes.as_ref().filter(|_| !self.spec.is_local(rank)) {
            wait.state = RunState::Remote.name().into();
            let node = nodes.of_rank.get(rank as usize).and_then(|node| nodes.names.get(*node as usize));
            wait.node = node.cloned().unwrap_or_default();
            return wait;
        }
        let state = self.node.state(rank);
        wait.state = match state {
            _ if entry.over || entry.died => "ENDED".into(),
            _ if entry.attachment.is_none() => "STARTING".into(),
            state => state.name().into(),
        };
        if entry.over || entry.died || !matches!(state, RunState::Suspended | RunState::Tended) {
            return wait;
        }
        let descriptor = self.node.rank(rank);
        let call = descriptor.call.load(SeqCst);
        let (kind, operand) = (descriptor.wait_kind.load(SeqCst), descriptor.wait_operand.load(SeqCst));
        wait.call = report::CALLS.get(call as usize).copied().unwrap_or("?").into();
        wait.waiting_s = self.node.seconds(self.node.now().saturating_sub(descriptor.t.load(SeqCst)));
        let seen = look::look(&self.segment, rank, MOST);
        wait.unexpected_count = seen.unexpected_count;
        wait.unexpected = seen.unexpected;
        contexts.extend(wait.unexpected.iter().map(|message| message.context & !1));
        let plain = |kind, peer, ranks| WaitOn { kind, peer, tag: -2, ranks, ..WaitOn::default() };
        if DAEMON_CALLS.contains(&call) {
            let kind = match self.ports.visitor(rank) {
                Some(visitor) if visitor.accepts => WaitKind::Connect,
                Some(_) => WaitKind::Accept,
                None => WaitKind::Daemon,
            };
            wait.waits = vec![plain(kind, -1, Vec::new())];
        } else if kind == Wait::Cell as u32 {
            wait.waits = vec![self.missing_in_cell(operand)];
        } else if kind == Wait::Space as u32 {
            wait.waits = vec![plain(WaitKind::Space, -1, vec![operand])];
        } else if let Some(probe) = seen.probe {
            wait.waits = vec![self.with_sender(probe)];
        } else if !seen.awaited.is_empty() {
            wait.more = seen.awaited_count - seen.awaited.len() as u32;
            wait.any = seen.missing > 0 && seen.missing < seen.awaited_count;
            wait.waits = seen.awaited.into_iter().map(|wait| self.with_sender(wait)).collect();
        } else if call == 8 {
            wait.waits = vec![plain(WaitKind::Window, descriptor.peer.load(SeqCst), Vec::new())];
        } else if call == 5 {
            wait.waits = vec![plain(WaitKind::Collective, -1, Vec::new())];
        }
        let limit = self.ranks.len() as u32;
        wait.waits.iter_mut().for_each(|wait| wait.ranks.retain(|rank| *rank < limit));
        let message = |wait: &&WaitOn| {
            use WaitKind::{Collective, Probe, Receive, Send};
            matches!(wait.kind, Receive | Send | Probe | Collective)
        };
        contexts.extend(wait.waits.iter().filter(message).map(|wait| wait.context & !1));
        wait
    }

    /// The members of a communicator that do not wait in its collective cell.
    fn missing_in_cell(&self, cell: u32) -> WaitOn {
        let mut wait = WaitOn { kind: WaitKind::Collective, peer: -1, tag: -2, ..WaitOn::default() };
        let Some(roster) = self.segment.roster_of_cell(cell) else { return wait };
        wait.context = roster.context();
        let is_in = |rank: u32| {
            let descriptor = self.node.rank(rank);
            let state = self.node.state(rank);
            matches!(state, RunState::Suspended | RunState::Tended)
                && descriptor.wait_kind.load(SeqCst) == Wait::Cell as u32
                && descriptor.wait_operand.load(SeqCst) == cell
        };
        let members = roster.members().into_iter().flatten();
        wait.ranks = members.filter(|rank| (*rank as usize) < self.ranks.len() && !is_in(*rank)).collect();
        wait
    }

    /// Name the ranks that could send the message that a receive without a request, or one from any source, waits for.
    fn with_sender(&self, mut wait: WaitOn) -> WaitOn {
        if !wait.ranks.is_empty() || wait.kind == WaitKind::Send {
            return wait;
        }
        let Some(roster) = self.segment.roster(wait.context) else { return wait };
        match u32::try_from(wait.peer) {
            Ok(peer) => wait.ranks.extend(roster.member(peer)),
            Err(_) => {
                let members = roster.members();
                // Members on other nodes are not enrolled here: then who could send is not known.
                if self.spec.nodes.is_none() || members.iter().all(Option::is_some) {
                    wait.ranks.extend(members.into_iter().flatten());
                }
            }
        }
        wait
    }
}
