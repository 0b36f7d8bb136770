//! All nodes' daemons, made to look like one: [`crate::session`] submits a job to a socket, and this module's threads stand behind it.
//!
//! One thread per node reads what its agent says, and writes the ranks' output where the session reads it; one listens to the session; one
//! draws the conclusions from both (`Conductor`). A node's fault ends the job on all others, and the session hears it with the node's name.

mod end;
mod outbox;
mod tracing;
mod waiting;

use super::exchange::Exchange;
use super::frames::{self, Frame, FromNode, ToNode};
use super::mourners::Mourners;
use super::nursery::{Nursery, Order};
use super::place::Known;
use super::records::Arrivals;
use super::sinks::Sinks;
use super::start::{self, Agent};
use super::{PULSE, SILENT_PULSES};
use crate::daemon::Daemon;
use crate::threads;
use crate::trace::NodeRecording;
use end::Verdict;
use outbox::Outbox;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::Tracing;
use vmpi_shared::clock::boottime_ns;
use vmpi_shared::control::{Cause, Connection, JobReport, JobSpec, NewRank, NodePart, Reply, Request, Stdio};
use vmpi_shared::monitor::Matrix;
use vmpi_shared::ports::{self, Ports, Services, Told};
use vmpi_shared::trace::TraceMap;
use waiting::Waiting;

/// When a job ends on one node, the others' ranks get so long between TERM and KILL.
const GRACE_MS: u64 = 100;
/// A node that has not finished so long after it was told to is given up.
const LAST_WORDS: Duration = Duration::from_secs(8);
/// So long all nodes' answers about their clocks are waited for when the job is over.
const LAST_STAMPS: Duration = Duration::from_secs(1);
/// The number of the only job that a conductor ever has.
const JOB: u32 = 1;
/// Bytes of standard input on their way to rank 0.
const STDIN_BYTES: u64 = 256 << 10;

enum Event {
    Said(usize, FromNode),
    /// A node's clock, when it had got question `number`; and this one's when the answer came.
    Time(usize, u32, u64, u64),
    /// More of what a node has recorded has come.
    Recorded(usize),
    /// All of it that will.
    Records(usize, io::Result<File>),
    /// Ranks have been spawned on a node: the read ends of their streams.
    Grown(usize, Vec<NewRank>, Vec<OwnedFd>),
    /// An agent's end.
    Gone(usize, String),
    Asked(Request),
    /// The session wants no more.
    SessionOver,
}

/// What is known of a node's part of the job.
struct Part {
    name: String,
    child: Child,
    to: Outbox,
    /// The number of the job there.
    job: u32,
    addresses: Vec<std::net::IpAddr>,
    port: Option<u16>,
    /// Ranks for which its segments have room.
    capacity: u32,
    /// No rank lived there when this world was the newest one.
    idle: Option<u32>,
    pids: Option<Vec<i32>>,
    /// It has said its last word, or never will.
    finished: Option<(Cause, i32, Box<JobReport>)>,
    /// What its ranks sent, if that was counted.
    matrix: Option<Box<Matrix>>,
    refused: Option<(String, i32)>,
    /// How its clock stands to this one's.
    exchange: Exchange,
    /// What its ranks did and when, if that was recorded: how it is to be read, and when some of it came last.
    map: Option<Box<TraceMap>>,
    records: Option<io::Result<File>>,
    recorded_at: Option<Instant>,
    /// Pulses without a word.
    silent: u32,
}

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
            Ok((spec, fds)) => Conductor::new(agents, spec, connection, fds).run(),
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

struct Conductor {
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
    nursery: Nursery,
    /// The nodes have been told that no rank will come any more.
    concluded: bool,
    /// The session has had the last word.
    is_over: bool,
    /// What survivors of deaths agree on.
    mourners: Mourners,
    /// What a tool asks about the recording.
    tracing: Tracing,
    /// Who waits for whom.
    waiting: Waiting,
}

impl Conductor {
    fn new(agents: Vec<Agent>, spec: JobSpec, session: Connection, fds: Vec<OwnedFd>) -> Conductor {
        let (tell, events) = mpsc::channel();
        let mut files = fds.into_iter().map(File::from);
        let stdin = files.next();
        let sinks = Arc::new(Sinks::new(spec.stdio, files));
        let mut parts = Vec::new();
        for (number, agent) in agents.into_iter().enumerate() {
            let Agent { known: Known { name, facts, .. }, child, to, mut from } = agent;
            let (tell, sinks) = (tell.clone(), sinks.clone());
            threads::spawn(move || {
                let mut arrivals = Arrivals::default();
                let why = loop {
                    match frames::hear::<FromNode>(&mut from) {
                        Ok(Some(Frame::Bytes(stream, bytes))) => {
                            sinks.write(stream, &bytes);
                            let _ = tell.send(Event::Said(number, FromNode::Alive));
                        }
                        Ok(Some(Frame::Said(FromNode::Said { reply }))) if matches!(*reply, Reply::Grown { .. }) => {
                            // What they write comes behind.
                            let Reply::Grown { ranks } = *reply else { continue };
                            match sinks.add(&ranks) {
                                Ok(ends) => drop(tell.send(Event::Grown(number, ranks, ends))),
                                Err(errno) => break format!("no pipes for the output of its new ranks: {errno}"),
                            }
                        }
                        Ok(Some(Frame::Recorded(at, bytes))) => {
                            arrivals.take(at, &bytes);
                            let _ = tell.send(Event::Recorded(number));
                        }
                        Ok(Some(Frame::Said(FromNode::Time { number: asked, there }))) => {
                            let _ = tell.send(Event::Time(number, asked, there, boottime_ns()));
                        }
                        Ok(Some(Frame::Said(said))) => {
                            let completes = matches!(&said, FromNode::Said { reply } if matches!(**reply, Reply::Finished { .. } | Reply::TracePart { .. }));
                            if let Some(records) = completes.then(|| arrivals.end()).flatten() {
                                let _ = tell.send(Event::Records(number, records));
                            }
                            if tell.send(Event::Said(number, said)).is_err() {
                                return;
                            }
                        }
                        Ok(None) => break "the connection to it was closed".to_string(),
                        Err(e) => break format!("the connection to it broke: {e}"),
                    }
                };
                let _ = tell.send(Event::Gone(number, why));
            });
            parts.push(Part {
                name,
                child,
                to: Outbox::new(to),
                job: JOB,
                addresses: facts.addresses,
                port: None,
                capacity: 0,
                idle: None,
                pids: None,
                finished: None,
                matrix: None,
                refused: None,
                exchange: Exchange::default(),
                map: None,
                records: None,
                recorded_at: None,
                silent: 0,
            });
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
        Conductor {
            nursery: Nursery::new(names, of_rank),
            concluded: false,
            is_over: false,
            ports: Ports::new(&format!("{identity:016x}"), JOB),
            services: Services::default(),
            mourners: Mourners::default(),
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
        let Some(world) = self.nursery.settled().filter(|_| self.started && !self.concluded) else { return };
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
        ranks.iter().for_each(|rank| self.mourners.begins(rank.rank));
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
            if let Some(&node) = self.nursery.of_rank().get(rank as usize) {
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

    fn on_word(&mut self, number: usize, said: FromNode) {
        match said {
            FromNode::Said { reply } => self.on_reply(number, *reply),
            FromNode::Failed { reason, code } => {
                if self.parts[number].pids.is_none() && self.parts[number].refused.is_none() {
                    self.parts[number].refused = Some((reason.clone(), code));
                }
                self.on_gone(number, &reason);
            }
            FromNode::StdinTaken { bytes } => {
                let (window, changed) = &*self.stdin_window;
                if let Ok(mut window) = window.lock() {
                    window[number] += bytes;
                }
                changed.notify_all();
            }
            FromNode::Hello { .. } | FromNode::Alive | FromNode::Time { .. } => {}
        }
    }

    fn on_reply(&mut self, number: usize, reply: Reply) {
        match reply {
            Reply::Submitted { job } => self.parts[number].job = job,
            Reply::Listening { port, capacity } => {
                self.parts[number].port = Some(port);
                self.parts[number].capacity = capacity;
                let ports: Option<Vec<u16>> = self.parts.iter().map(|part| part.port).collect();
                if let Some(ports) = ports.filter(|_| !self.wired) {
                    self.wired = true;
                    let at = |(part, port): (&Part, u16)| {
                        part.addresses.iter().map(|address| SocketAddr::new(*address, port)).collect()
                    };
                    let table = self.parts.iter().zip(ports).map(at).collect();
                    self.ask_all(&Request::Wire { table });
                }
            }
            Reply::Started { pids } => {
                self.parts[number].pids = Some(pids);
                let all: Option<Vec<i32>> = self.pids_by_rank();
                if let Some(pids) = all.filter(|_| !self.started) {
                    self.started = true;
                    self.reply(&Reply::Started { pids });
                    for reply in std::mem::take(&mut self.early) {
                        self.reply(&reply);
                    }
                    let cores: Vec<u32> = self.parts_of_spec().map(cores_of).collect();
                    let capacity = self.parts.iter().map(|part| part.capacity).min().unwrap_or(0);
                    let orders = self.nursery.open(&cores, capacity);
                    self.carry_out(orders);
                }
            }
            Reply::Asked { rank, number, ask, contexts } => match self.nursery.ask(rank, number, ask, contexts) {
                Ok(orders) => self.carry_out(orders),
                Err(ask) => {
                    let [contexts @ .., _] = contexts;
                    let known = (&mut self.ports, &mut self.services);
                    let told = ports::serve(known, JOB, (rank, number), ask, || contexts);
                    let told = told.unwrap_or_else(|ask| self.mourners.serve((rank, number), ask, contexts));
                    self.answer(told);
                }
            },
            Reply::Grew { world, stage, error } => {
                let orders = self.nursery.heard(number, world, stage, error);
                self.carry_out(orders);
            }
            Reply::Vacant { rank } => self.nursery.vacant(rank),
            Reply::Idle { world } => self.parts[number].idle = Some(world),
            Reply::Ended { rank } => {
                self.ports.forget(rank.rank);
                self.nursery.ended(rank.rank);
                let told = self.mourners.ended(&rank);
                self.answer(told);
                let reply = Reply::Ended { rank };
                match self.started {
                    true => self.reply(&reply),
                    false => self.early.push(reply),
                }
            }
            Reply::Finished { cause, code, report, matrix, trace } => {
                self.parts[number].matrix = matrix;
                self.parts[number].map = trace;
                if self.spec.trace {
                    self.compare_clocks(number);
                }
                self.tracing.missed(number, "its part of the job is over");
                self.waiting.missed(number);
                self.parts[number].finished = Some((cause.clone(), code, report));
                let goes_on = matches!(cause, Cause::Success)
                    || (!self.spec.kill_on_failure
                        && matches!(
                            cause,
                            Cause::RankFailed { .. } | Cause::Unfinished { .. } | Cause::GroupAborted { .. }
                        ));
                self.judge(number, cause, code, !goes_on);
            }
            Reply::GroupEnded { group, cause, code } => {
                for other in (0..self.parts.len()).filter(|other| *other != number) {
                    let (group, cause) = (group.clone(), cause.clone());
                    self.tell(other, &ToNode::Ask { request: Request::EndGroup { group, cause, code } });
                }
            }
            Reply::Crashed { mut crash } => {
                crash.node = self.parts[number].name.clone();
                self.reply(&Reply::Crashed { crash });
            }
            Reply::Still { still } => self.on_still(number, still),
            Reply::WhyAsked { tool } => self.on_why_asked(number, tool),
            Reply::WaitsPart { number: asked, still, waits } => self.waiting.heard(number, asked, still, Some(*waits)),
            Reply::TraceAsked { tool, ask, path } => self.on_trace_asked(number, tool, ask, path),
            Reply::TracePart { number: asked, on, refused, map } => {
                let records = self.parts[number].records.take();
                self.tracing.heard(number, asked, on, refused, map, records);
            }
            Reply::Refused { reason, code } => {
                self.parts[number].refused = Some((reason.clone(), code));
                self.on_gone(number, &reason);
            }
            _ => {}
        }
    }

    /// Pids in the order of ranks, if all nodes have told theirs.
    fn pids_by_rank(&self) -> Option<Vec<i32>> {
        let nodes = self.spec.nodes.as_ref()?;
        let mut of_node: Vec<std::slice::Iter<i32>> =
            self.parts.iter().map(|part| part.pids.as_ref().map(|pids| pids.iter())).collect::<Option<_>>()?;
        Some(nodes.of_rank.iter().map(|node| of_node[*node as usize].next().copied().unwrap_or(0)).collect())
    }

    fn on_request(&mut self, request: Request) {
        if let Request::Cancel { reason, code, .. } = &request {
            self.ending.get_or_insert_with(Instant::now);
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

/// Pass standard input on to the nodes of those who read it, a window at a time.
fn feed(mut stdin: File, to: Vec<(usize, Outbox)>, window: Arc<(Mutex<Vec<u64>>, Condvar)>) {
    threads::spawn(move || {
        let mut bytes = vec![0; 32 << 10];
        loop {
            let (open, changed) = &*window;
            let Ok(mut room) = open.lock() else { return };
            while to.iter().any(|(node, _)| room[*node] < bytes.len() as u64) {
                room = match changed.wait(room) {
                    Ok(room) => room,
                    Err(_) => return,
                };
            }
            drop(room);
            let count = match stdin.read(&mut bytes) {
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            let mut frame = Vec::new();
            let made = match count {
                0 => frames::say(&mut frame, &ToNode::StdinEnd),
                _ => frames::pass(&mut frame, 0, &bytes[..count]),
            };
            let passed = to.iter().filter(|(_, to)| to.pass(frame.clone())).count();
            if made.is_err() || passed == 0 || count == 0 {
                return;
            }
            if let Ok(mut room) = open.lock() {
                to.iter().for_each(|(node, _)| room[*node] -= count as u64);
            }
        }
    });
}
