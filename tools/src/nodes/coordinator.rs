//! All nodes' daemons, made to look like one: [`crate::session`] submits a job to a socket, and this module's threads stand behind it.
//!
//! One thread per node reads what its agent says, and writes the ranks' output where the session reads it; one listens to the session; one
//! draws the conclusions from both (`Coordinator`). A node's fault ends the job on all others, and the session hears it with the node's name.

mod end;
mod outbox;
mod part;
mod replies;
mod stdin;
mod tracing;
mod waiting;

use super::frames::ToNode;
use super::sinks::Sinks;
use super::spawn_coordinator::{Order, SpawnCoordinator};
use super::start::{self, Agent};
use super::survivor_agreement::SurvivorAgreement;
use super::{PULSE, SILENT_PULSES};
use crate::daemon::Daemon;
use crate::threads;
use crate::trace::NodeRecording;
use end::Verdict;
use part::{Event, Part, listen};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stdin::{STDIN_BYTES, feed};
use tracing::Tracing;
use vmpi_shared::control::{Cause, Connection, JobSpec, NewRank, NodePart, Reply, Request, Stdio};
use vmpi_shared::ports::{Ports, Services, Told};
use waiting::Waiting;

/// When a job ends on one node, the others' ranks get so long between TERM and KILL.
const GRACE_MS: u64 = 100;
/// A node that has not finished so long after it was told to is given up.
const LAST_WORDS: Duration = Duration::from_secs(8);
/// So long all nodes' answers about their clocks are waited for when the job is over.
const LAST_STAMPS: Duration = Duration::from_secs(1);
/// The number of the only job that a coordinator ever has.
const JOB: u32 = 1;

/// A daemon for the session, behind which are these nodes' daemons, one per node of `spec.nodes`; and the thread that ends when all of
/// them have, with what they have recorded.
///
/// # Errors
/// No socket can be made.
pub fn conduct(agents: Vec<Agent>) -> io::Result<(Daemon, JoinHandle<Vec<NodeRecording>>)> {
    let (session, ours) = UnixStream::pair()?;
    let thread = threads::spawn(move || {
        let mut connection = Connection::new(ours);
        match take_job(&mut connection) {
            Ok((spec, fds)) => Coordinator::new(agents, spec, connection, fds).run(),
            Err(_) => {
                let mut children: Vec<Child> = agents.into_iter().map(|agent| agent.child).collect();
                start::end(&mut children);
                Vec::new()
            }
        }
    });
    let daemon = Daemon::with_connection(Connection::new(session), std::process::id() as i32, PathBuf::new());
    Ok((daemon, thread))
}

fn take_job(session: &mut Connection) -> io::Result<(JobSpec, Vec<OwnedFd>)> {
    let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let (Request::Submit { spec }, _) = session.receive::<Request>()?.ok_or_else(gone)? else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let mut fds = Vec::new();
    while fds.len() < spec.fds as usize {
        let (_, more) = session.receive::<Request>()?.ok_or_else(gone)?;
        fds.extend(more);
    }
    Ok((*spec, fds))
}

struct Coordinator {
    spec: JobSpec,
    parts: Vec<Part>,
    session: Connection,
    events: mpsc::Receiver<Event>,
    sinks: Arc<Sinks>,
    wired: bool,
    started: bool,
    /// Ends that came before all had started.
    early: Vec<Reply>,
    /// Why the job ends, and since when.
    verdict: Verdict,
    ending: Option<Instant>,
    stdin: Option<File>,
    /// For each node how much it still takes.
    stdin_window: Arc<(Mutex<Vec<u64>>, Condvar)>,
    /// Where groups of ranks meet, whatever their nodes.
    ports: Ports,
    services: Services,
    /// How the job grows.
    spawns: SpawnCoordinator,
    /// The nodes have been told that no rank will come any more.
    concluded: bool,
    /// The session has been told that a rank has too few CPUs.
    crowd_told: bool,
    /// The session has had the last word.
    is_over: bool,
    /// What survivors of deaths agree on.
    agreement: SurvivorAgreement,
    /// What a tool asks about the recording.
    tracing: Tracing,
    /// Who waits for whom.
    waiting: Waiting,
}

impl Coordinator {
    fn new(agents: Vec<Agent>, spec: JobSpec, session: Connection, fds: Vec<OwnedFd>) -> Coordinator {
        let (tell, events) = mpsc::channel();
        let mut files = fds.into_iter().map(File::from);
        let stdin = files.next();
        let sinks = Arc::new(Sinks::new(spec.stdio, files));
        let mut parts = Vec::new();
        for (number, agent) in agents.into_iter().enumerate() {
            let Agent { known, child, to, from } = agent;
            let (tell, sinks) = (tell.clone(), sinks.clone());
            threads::spawn(move || listen(number, from, &sinks, &tell));
            parts.push(Part::new(known, child, to));
        }
        let window = Arc::new((Mutex::new(vec![STDIN_BYTES; parts.len()]), Condvar::new()));
        if let Ok(stream) = session.stream().try_clone() {
            let tell = tell.clone();
            threads::spawn(move || {
                let mut session = Connection::new(stream);
                while let Ok(Some((request, _))) = session.receive::<Request>() {
                    let _ = tell.send(Event::Asked(request));
                }
                let _ = tell.send(Event::SessionOver);
            });
        }
        let identity = spec.nodes.as_ref().map_or(0, |nodes| nodes.identity);
        let (names, of_rank) = spec.nodes.as_ref().map(|n| (n.names.clone(), n.of_rank.clone())).unwrap_or_default();
        Coordinator {
            spawns: SpawnCoordinator::new(names, of_rank),
            concluded: false,
            crowd_told: false,
            is_over: false,
            ports: Ports::new(&format!("{identity:016x}"), JOB),
            services: Services::default(),
            agreement: SurvivorAgreement::default(),
            tracing: Tracing::default(),
            waiting: Waiting::default(),
            spec,
            parts,
            session,
            events,
            sinks,
            wired: false,
            started: false,
            early: Vec::new(),
            verdict: Verdict::default(),
            ending: None,
            stdin,
            stdin_window: window,
        }
    }

    fn tell(&self, number: usize, message: &ToNode) {
        self.parts[number].to.say(message);
    }

    fn ask_all(&self, request: &Request) {
        for number in 0..self.parts.len() {
            if self.parts[number].finished.is_none() {
                self.tell(number, &ToNode::Ask { request: request.clone() });
            }
        }
    }

    fn reply(&mut self, reply: &Reply) {
        // A session that is gone shows likewise.
        let _ = self.session.send(reply, &[]);
    }

    /// Until the session has heard the last word; what the nodes have recorded.
    fn run(mut self) -> Vec<NodeRecording> {
        self.reply(&Reply::Submitted { job: JOB });
        let cores = self.parts_of_spec().map(|part| part.v.saturating_mul(cores_of(part)));
        let universe = cores.fold(0, u32::saturating_add).max(self.spec.ranks);
        for number in 0..self.parts.len() {
            let mut spec = self.spec.clone();
            if let Some(nodes) = &mut spec.nodes {
                nodes.here = number as u32;
                nodes.universe = universe;
                let part = &nodes.parts[number];
                (spec.cpus, spec.spare_cpus) = (part.cpus.clone(), part.spare_cpus.clone());
                spec.beside.clone_from(&part.beside);
                spec.masks.clone_from(&part.masks);
                (spec.v, spec.bind) = (part.v, part.bind);
                nodes.parts.clear();
                // Those of other nodes are never looked at, but must be cores.
                let (here, of_rank) = (nodes.here, &nodes.of_rank);
                for (core, node) in spec.placement.iter_mut().zip(of_rank) {
                    *core = if *node == here { *core } else { 0 };
                }
            }
            spec.stdio = Stdio::PerRank;
            spec.fds = (spec.stdin_count() + 2 * spec.local_ranks().count()) as u32;
            self.tell(number, &ToNode::Submit { spec: Box::new(spec) });
        }
        // Behind the job: an agent passes nothing on before it has that.
        let readers = if self.spec.stdin.is_empty() { &[0][..] } else { &self.spec.stdin[..] };
        let of_rank = self.spec.nodes.as_ref().map_or(&[][..], |nodes| &nodes.of_rank[..]);
        let nodes: BTreeSet<usize> =
            readers.iter().filter_map(|rank| of_rank.get(*rank as usize)).map(|node| *node as usize).collect();
        let to = nodes.into_iter().filter_map(|node| Some((node, self.parts.get(node)?.to.clone()))).collect();
        if let Some(stdin) = self.stdin.take() {
            feed(stdin, to, self.stdin_window.clone());
        }
        if self.spec.trace {
            (0..self.parts.len()).for_each(|number| self.compare_clocks(number));
        }
        let mut pulse = Instant::now() + PULSE;
        let mut over: Option<Instant> = None;
        loop {
            let until = over.map_or(pulse, |since| pulse.min(since + LAST_STAMPS));
            let until = [self.tracing_until(), self.waiting_until()].into_iter().flatten().fold(until, Instant::min);
            match self.events.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Event::Said(number, said)) => {
                    self.parts[number].silent = 0;
                    self.on_word(number, said);
                }
                Ok(Event::Grown(number, ranks, ends)) => self.on_grown(number, ranks, &ends),
                Ok(Event::Time(number, asked, there, now)) => {
                    self.parts[number].silent = 0;
                    if let Some(next) = self.parts[number].exchange.heard(asked, there, now) {
                        self.tell(number, &ToNode::Time { number: next });
                    }
                }
                Ok(Event::Recorded(number)) => {
                    let part = &mut self.parts[number];
                    (part.silent, part.recorded_at) = (0, Some(Instant::now()));
                }
                Ok(Event::Records(number, records)) => self.parts[number].records = Some(records),
                Ok(Event::Gone(number, why)) => self.on_gone(number, &why),
                Ok(Event::Asked(request)) => self.on_request(request),
                Ok(Event::SessionOver) => return self.close(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return self.close(),
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < pulse => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    pulse = Instant::now() + PULSE;
                    self.on_pulse();
                }
            }
            self.conclude();
            self.conclude_tracing();
            self.conclude_waiting();
            if self.parts.iter().any(|part| part.finished.is_none()) {
                continue;
            }
            let since = *over.get_or_insert_with(Instant::now);
            if self.parts.iter().all(|part| part.exchange.is_quiet()) || since.elapsed() >= LAST_STAMPS {
                // What ranks have left running may still write, as long as the session listens.
                if !self.say_end() {
                    self.sinks.close();
                    return self.close();
                }
                return self.pass_on();
            }
        }
    }

    /// The job has ended well: pass on what its ranks have left running writes.
    fn pass_on(mut self) -> Vec<NodeRecording> {
        loop {
            match self.events.recv_timeout(PULSE) {
                Ok(Event::SessionOver) | Err(mpsc::RecvTimeoutError::Disconnected) => return self.close(),
                // The end of all streams is not told of any more.
                Ok(Event::Gone(..)) => self.sinks.close(),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => self.on_pulse(),
            }
        }
    }

    /// Begin to compare a node's clock with this one's.
    fn compare_clocks(&mut self, number: usize) {
        let first = self.parts[number].exchange.begin();
        self.tell(number, &ToNode::Time { number: first });
    }

    fn parts_of_spec(&self) -> impl Iterator<Item = &NodePart> {
        self.spec.nodes.iter().flat_map(|nodes| &nodes.parts)
    }

    /// Let the nodes end if no rank lives anywhere, and so nobody can spawn any more.
    fn conclude(&mut self) {
        let Some(world) = self.spawns.settled().filter(|_| self.started && !self.concluded) else { return };
        if self.parts.iter().all(|part| part.finished.is_some() || part.idle == Some(world)) {
            self.concluded = true;
            self.ask_all(&Request::Conclude);
        }
    }

    /// Ranks have been spawned on a node; who has asked for them is answered, too.
    fn on_grown(&mut self, number: usize, mut ranks: Vec<NewRank>, ends: &[OwnedFd]) {
        self.parts[number].silent = 0;
        for rank in &mut ranks {
            rank.node = Some(self.parts[number].name.clone());
        }
        let ends: Vec<i32> = ends.iter().map(AsRawFd::as_raw_fd).collect();
        ranks.iter().for_each(|rank| self.agreement.begins(rank.rank));
        // A session that is gone shows where it is listened to.
        let _ = self.session.send(&Reply::Grown { ranks }, &ends);
    }

    fn carry_out(&mut self, orders: Vec<Order>) {
        for order in orders {
            match order {
                Order::Step(world, step) => self.ask_all(&Request::Grow { world, step }),
                Order::Answer(told) => self.answer(vec![told]),
            }
        }
    }

    /// Answers to ranks, wherever they are.
    fn answer(&mut self, told: Vec<Told>) {
        for Told { rank, number, answer } in told {
            if let Some(&node) = self.spawns.of_rank().get(rank as usize) {
                self.tell(node as usize, &ToNode::Ask { request: Request::Answered { rank, number, answer } });
            }
        }
    }

    fn on_pulse(&mut self) {
        for number in 0..self.parts.len() {
            self.tell(number, &ToNode::Alive);
            let part = &mut self.parts[number];
            part.silent += 1;
            if part.finished.is_some() || self.is_over {
                continue;
            }
            let seconds = PULSE.as_secs() * u64::from(SILENT_PULSES);
            if part.silent > SILENT_PULSES {
                self.on_gone(number, &format!("nothing has been heard of it for {seconds} s"));
            } else if self
                .ending
                .is_some_and(|since| part.recorded_at.map_or(since, |at| at.max(since)).elapsed() > LAST_WORDS)
            {
                self.on_gone(number, "it did not end its part of the job");
            }
        }
    }

    fn on_request(&mut self, request: Request) {
        if let Request::Cancel { reason, code, grace_ms, .. } = &request {
            // Nodes are not late before their ranks' grace is over.
            let at = Instant::now() + Duration::from_millis(*grace_ms);
            self.ending = Some(self.ending.map_or(at, |old| old.min(at)));
            self.verdict.hear_first(Cause::Cancelled { reason: reason.clone(), code: *code }, *code);
        }
        if matches!(request, Request::Cancel { .. } | Request::Forward { .. }) {
            self.ask_all(&request);
        }
    }
}

/// Cores of a node, spare ones included.
fn cores_of(part: &NodePart) -> u32 {
    (part.cpus.len() + part.spare_cpus.len()) as u32
}
