//! Who waits for whom, and does everybody?
//!
//! A job is deadlocked if each of its ranks is SUSPENDED and nothing can end a wait. That is proven by looks that find the same still
//! picture: a rank that is SUSPENDED twice with the same count of switches has not run in between, so nobody has sent
//! or changed anything. What else could end a wait must be excluded: a message in an inbox or data on its way; the daemon, which
//! answers questions (spawn, agreement, names), mends, and ends those whom a rank has left; a rank that has not come to MPI_Init yet, or has left MPI and may come back
//! with a session; a thread that is not in MPI. Where one of these cannot be excluded, nothing is reported: `vmpictl why` still tells
//! what is known.
//!
//! Of a job of several nodes each daemon sees its own ranks. It tells the launcher when these have been found still, its carrier among them, and what has gone to
//! other nodes and come from there; the launcher, who hears that of all, asks once more, and draws the conclusion (`tools/src/nodes/coordinator/waiting.rs`).

use std::time::Instant;

use vmpi_shared::control::Reply;
use vmpi_shared::endpoint::inspect;
use vmpi_shared::mem::sync::Ordering::SeqCst;
use vmpi_shared::proc;
use vmpi_shared::sched::{RunState, Wait, carrier_bell, report};
use vmpi_shared::waits::{CommInfo, Deferred, JobWaits, RankWait, Still, WaitKind, WaitOn};

use crate::job::pace::Pace;
use crate::job::{Job, Phase};
use crate::rank::Rank;

/// Looks that must agree with the first one. After the second all that had been sent to the daemon before the first one has been read.
const CONFIRMATIONS: u32 = 2;
/// Waits and messages listed per rank.
const MOST: usize = 32;
/// Calls that end by an answer of the daemon (`sched::report::CALLS`).
const DAEMON_CALLS: [u32; 4] = [9, 10, 11, 12];

/// What the last looks have seen.
pub struct Detector {
    pace: Pace,
    picture: Option<Picture>,
    confirmed: u32,
}

/// A job, or the part of it on this node, in which all ranks are suspended.
#[derive(PartialEq, Eq)]
struct Picture {
    /// How often each of them has been switched in.
    switches: Vec<u64>,
    /// In a job of several nodes: what the carrier has sent and acted on.
    frames: Option<(u64, u64)>,
}

impl Detector {
    pub fn new(now: Instant) -> Detector {
        Detector { pace: Pace::new(now), picture: None, confirmed: 0 }
    }
}

/// Threads of a process.
pub(super) fn threads_of(pid: i32) -> Option<usize> {
    std::fs::read_dir(proc::directory(pid)?.join("task")).ok().map(Iterator::count)
}

impl Job {
    /// Look whether the job is deadlocked, if it is time to; tell the launcher, once for each picture.
    pub fn check_deadlock(&mut self, now: Instant) {
        if self.phase != Phase::Running || !self.detector.pace.is_due(now) {
            return;
        }
        // In virtual time a message may be on its way to a rank that waits, and to nobody's inbox.
        let moves = self.simulation.as_ref().is_some_and(|simulation| !simulation.is_stalled());
        let picture = if moves { None } else { self.still_picture() };
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
            let reply = match self.still() {
                Some(still) => Reply::Still { still },
                None => Reply::Deadlock { waits: Box::new(self.waits()) },
            };
            self.outbox.push((reply, Vec::new()));
        }
    }

    /// In a job of several nodes: this node's part of it, if that has been found still.
    fn still(&self) -> Option<Still> {
        let Picture { switches, frames } = self.detector.picture.as_ref()?;
        let (sent, received) = (*frames)?;
        let (living, switches) = (switches.len() as u32, switches.iter().sum());
        let asking = self.living().filter(|rank| self.asks(*rank)).collect();
        Some(Still { living, switches, sent, received, asking })
    }

    /// The launcher asks what the ranks here wait for, and whether they have been still since this node has said so.
    pub fn waits_part(&mut self, number: u64) {
        let still = self.still().filter(|_| self.is_deadlocked() && !self.is_moved_from_outside());
        if still.is_none() {
            // It is told anew when that has become so.
            self.detector.confirmed = self.detector.confirmed.min(CONFIRMATIONS - 1);
        }
        let waits = Box::new(self.waits());
        self.outbox.push((Reply::WaitsPart { number, still, waits }, Vec::new()));
    }

    /// A tool of this node asks for all nodes: the launcher, who hears them all, answers.
    pub fn ask_all_who_waits(&mut self, tool: u64) {
        self.outbox.push((Reply::WhyAsked { tool }, Vec::new()));
    }

    /// When the next look is due.
    pub fn next_look(&self) -> Instant {
        self.detector.pace.next()
    }

    /// Have the last two looks found all ranks that live waiting, and none of them has run since?
    pub fn is_still(&self) -> bool {
        self.detector.confirmed > 0 && self.still_picture() == self.detector.picture
    }

    /// Has what is there now been found to be a deadlock, as far as this node sees?
    fn is_deadlocked(&self) -> bool {
        self.detector.confirmed >= CONFIRMATIONS && self.still_picture() == self.detector.picture
    }

    /// Is what is there now told as a deadlock?
    pub fn is_told_as_deadlock(&self) -> bool {
        self.spec.nodes.is_none() && self.is_deadlocked()
    }

    /// How things stand, if there are ranks and all of them are suspended with nothing in their inboxes.
    fn still_picture(&self) -> Option<Picture> {
        let mut switches = Vec::new();
        for rank in self.living() {
            self.ranks[rank as usize].attachment.as_ref()?;
            switches.push(inspect::is_suspended(&self.node, &self.segment, rank)?);
        }
        if self.spec.nodes.is_none() {
            return (!switches.is_empty()).then_some(Picture { switches, frames: None });
        }
        // Those of other nodes may wait for each other when none is left here. The carrier last: what a rank had given it before has been sent by then.
        let stand = carrier_bell::stand(&self.node).filter(|stand| !stand.holds)?;
        Some(Picture { switches, frames: Some((stand.sent, stand.received)) })
    }

    /// Could something end a wait though no rank of the job runs?
    fn is_moved_from_outside(&self) -> bool {
        self.is_parting()
            || self.has_dying()
            || !self.agreements.is_empty()
            || !self.undone_is_empty()
            || self.living().any(|rank| {
                // Of several nodes the launcher knows who waits at a port.
                let is_answered = || self.spec.nodes.is_none() && self.ports.visitor(rank).is_none();
                self.asks(rank) && is_answered()
                    || inspect::is_moving(&self.node, &self.segment, rank)
                    || self.has_thread_elsewhere(&self.ranks[rank as usize], rank)
            })
    }

    /// The ranks that have not ended, on this node.
    pub(crate) fn living(&self) -> impl Iterator<Item = u32> {
        let living = self.ranks.iter().zip(0..).filter(|(entry, _)| !entry.over && !entry.died);
        living.map(|(_, rank)| rank)
    }

    /// Has `rank` asked the daemon, or by it the launcher, for something?
    fn asks(&self, rank: u32) -> bool {
        DAEMON_CALLS.contains(&self.node.rank(rank).call.load(SeqCst))
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
        let mut waits = JobWaits {
            job: self.id,
            program: self.spec.apps.iter().map(|app| app.program.as_str()).collect::<Vec<_>>().join(" : "),
            // Of several nodes only their launcher knows.
            deadlock: self.is_told_as_deadlock(),
            ranks,
            comms: contexts.into_iter().map(|context| self.comm_info(context)).collect(),
        };
        waits.name_senders();
        waits
    }

    fn comm_info(&self, context: u32) -> CommInfo {
        let known = self.segment.find_roster(context);
        let members = known.as_ref().map_or_else(Vec::new, |roster| roster.members());
        let limit = self.ranks.len() as u32;
        CommInfo {
            context,
            name: known.as_ref().map_or_else(String::new, |roster| roster.name()),
            members: members.into_iter().map(|rank| rank.filter(|rank| *rank < limit)).collect(),
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
        if report::is_deferred(&wait.call) {
            let whereabouts = self.node.whereabouts(rank);
            let function = report::LEFT_CALLS.get(whereabouts.left_call.load(SeqCst) as usize).copied();
            let (function, address) = (function.unwrap_or("").into(), whereabouts.left_at.load(SeqCst));
            wait.deferred = Some(Deferred { function, address, site: None });
        }
        wait.waiting_s = self.node.seconds(self.node.now().saturating_sub(descriptor.t.load(SeqCst)));
        let seen = inspect::look(&self.segment, rank, MOST);
        wait.unexpected_count = seen.unexpected_count;
        wait.unexpected = seen.unexpected;
        wait.crowd = seen.crowd;
        contexts.extend(wait.unexpected.iter().map(|message| message.context & !1));
        let plain = |kind, peer, ranks| WaitOn { kind, peer, tag: -2, ranks, ..WaitOn::default() };
        if self.asks(rank) {
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
            wait.waits = vec![probe];
        } else if !seen.awaited.is_empty() {
            wait.more = seen.awaited_count - seen.awaited.len() as u32;
            wait.any = seen.missing > 0 && seen.missing < seen.awaited_count;
            wait.waits = seen.awaited;
        } else if call == 8 {
            wait.waits = vec![plain(WaitKind::Window, descriptor.peer.load(SeqCst), Vec::new())];
        } else if let Some((context, from)) = self.simulation.as_ref().and_then(|simulation| simulation.awaits(rank)) {
            wait.waits = vec![WaitOn { context, ..plain(WaitKind::Collective, -1, vec![from]) }];
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

    /// The members of a communicator, of those on this node, that do not wait in its collective cell.
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
        let is_here = |rank: &u32| (*rank as usize) < self.ranks.len() && self.spec.is_local(*rank);
        wait.ranks = members.filter(|rank| is_here(rank) && !is_in(*rank)).collect();
        wait
    }
}
