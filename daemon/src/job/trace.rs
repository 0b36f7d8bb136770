//! Recording what a job's ranks do and when (`vmpi_shared::trace`): on, off, and handing it to who asks.
//!
//! The daemon reads no record itself: who asks gets a descriptor of the job segment, for reading only, and a map of it. A long trace of
//! many ranks then costs the daemon, which has cores to watch, nothing.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::time::{ClockId, clock_gettime};
use vmpi_shared::clock::Moment;
use vmpi_shared::control::{Reply, TraceAsk};
use vmpi_shared::node::recording;
use vmpi_shared::sched::report;
use vmpi_shared::trace::{Given, TraceMap};

use crate::job::Job;
use crate::simulation;

/// A recording.
pub struct Recording {
    since: u64,
    /// When it began, nearly.
    began: Moment,
    /// Records of each rank from before it.
    skip: Vec<u64>,
    /// How everything stood when it ended.
    stopped: Option<Box<TraceMap>>,
    /// Cores given to ranks outside MPI.
    given: Vec<(u32, Given)>,
}

/// So many of them are kept: the newest.
const MOST_GIVEN: usize = 1 << 16;

impl Recording {
    /// From before the first rank.
    pub fn from_the_start(since: u64, began: Moment) -> Recording {
        Recording { since, began, skip: Vec::new(), stopped: None, given: Vec::new() }
    }

    /// The daemon has given a core to `rank`.
    pub fn note_given(&mut self, rank: u32, given: Given) {
        if self.stopped.is_none() {
            if self.given.len() == MOST_GIVEN {
                self.given.drain(..MOST_GIVEN / 2);
            }
            self.given.push((rank, given));
        }
    }
}

impl Job {
    /// What a tool asks about the recording.
    pub fn trace(&mut self, ask: TraceAsk) -> (Reply, Vec<OwnedFd>) {
        let refuse = |reason: String| (Reply::Refused { reason, code: 1 }, Vec::new());
        match (ask, &self.recording) {
            (TraceAsk::Start | TraceAsk::Stop, _) if self.simulation.is_some() => {
                return refuse(format!(
                    "job {} is simulated: it is traced from its start to its end (vmpirun --trace), or not",
                    self.id
                ));
            }
            (TraceAsk::Start, Some(Recording { stopped: None, .. })) => {
                return refuse(format!("job {} is being traced already", self.id));
            }
            (TraceAsk::Start, _) => {
                let skip = (0..self.ranks.len() as u32).map(|rank| self.segment.trace(rank).written()).collect();
                let began = self.node.moment();
                self.recording = Some(Recording { skip, ..Recording::from_the_start(began.ticks, began) });
                recording::switch(&self.node, true);
                return (Reply::Done, Vec::new());
            }
            (_, None) => {
                return refuse(format!(
                    "job {} has not been traced; begin with `vmpictl trace {} start`",
                    self.id, self.id
                ));
            }
            (TraceAsk::Stop, Some(Recording { stopped: Some(_), .. })) => {
                return refuse(format!("job {} is not being traced any more", self.id));
            }
            (TraceAsk::Stop, _) => {
                let map = self.trace_map(None).map(|map| Box::new(TraceMap { on: false, ..*map }));
                recording::switch(&self.node, false);
                if let Some(recording) = &mut self.recording {
                    recording.stopped = map;
                }
                return (Reply::Done, Vec::new());
            }
            (TraceAsk::Export, _) => {}
        }
        match (self.trace_map(None), self.trace_file()) {
            (Some(map), Ok(file)) => (Reply::Trace { map }, vec![file]),
            (_, Err(error)) => refuse(format!("the trace of job {} cannot be handed over: {error}", self.id)),
            (None, _) => refuse(format!("job {} has not been traced", self.id)),
        }
    }

    /// A tool of this node asks for all nodes: the launcher, who has them all, answers.
    pub fn ask_all_for_trace(&mut self, tool: u64, ask: TraceAsk, path: String) {
        self.outbox.push((Reply::TraceAsked { tool, ask, path }, Vec::new()));
    }

    /// This node's part of such a question.
    pub fn trace_part(&mut self, number: u64, ask: TraceAsk) {
        let (reply, files) = self.trace(ask);
        let (refused, map) = match reply {
            Reply::Refused { reason, .. } => (Some(reason), None),
            Reply::Trace { map } => (None, Some(map)),
            _ => (None, None),
        };
        let on = self.recording.as_ref().is_some_and(|recording| recording.stopped.is_none());
        self.outbox.push((Reply::TracePart { number, on, refused, map }, files));
    }

    /// How the recording is to be read; `None`: there is none. It goes until `end`, if the job is over, or until now.
    pub fn trace_map(&self, end: Option<Moment>) -> Option<Box<TraceMap>> {
        let recording = self.recording.as_ref()?;
        if let Some(map) = &recording.stopped {
            return Some(map.clone());
        }
        let ns = |clock| clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
        let rank = |rank: u32| {
            let skip = recording.skip.get(rank as usize).copied().unwrap_or(0);
            let mut stand = report::stand(&self.node, rank, skip);
            let entry = &self.ranks[rank as usize];
            stand.given = recording.given.iter().filter(|(to, _)| *to == rank).map(|(_, given)| *given).collect();
            stand.pid = entry.attachment.as_ref().map_or(entry.pid, |attachment| attachment.pid);
            stand
        };
        let header = self.node.header();
        let ranks = (0..self.ranks.len() as u32).map(rank).collect();
        let cores = (0..header.cores).map(|core| report::stand_of_core(&self.node, core)).collect();
        // After the look at ranks that live.
        let end = end.unwrap_or_else(|| self.node.moment());
        let since_then = ns(ClockId::CLOCK_BOOTTIME).saturating_sub(end.boottime_ns);
        let map = TraceMap {
            job: self.id,
            program: self.spec.apps.iter().map(|app| app.program.as_str()).collect::<Vec<_>>().join(" : "),
            on: !self.finished,
            since: recording.since,
            ticks_per_second: header.ticks_per_second,
            ranks_stay: header.balance == 0,
            ends_at: self.ends.as_ref().map_or(0, |ends| ends.at),
            cores,
            counters: self.spec.counters.clone(),
            rings: self.segment.rings(),
            ranks,
            until: end.ticks,
            boottime_ns: end.boottime_ns,
            realtime_ns: ns(ClockId::CLOCK_REALTIME).saturating_sub(since_then),
            began: recording.began,
            within_ns: recording.began.within_ns.max(end.within_ns),
        };
        Some(Box::new(match &self.simulation {
            Some(simulation) => simulation::in_virtual_time(map, simulation),
            None => map,
        }))
    }

    /// The job segment, for reading only.
    pub fn trace_file(&self) -> std::io::Result<OwnedFd> {
        File::open(format!("/proc/self/fd/{}", self.segment.fd().as_raw_fd())).map(OwnedFd::from)
    }
}
