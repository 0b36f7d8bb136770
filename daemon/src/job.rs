//! One job: its ranks from spawn to end, its verdict, its end.
//!
//! A job speaks to its launcher by pushing replies into `outbox`; the daemon sends them. Nothing here blocks. How it ends: [`end`].

mod carrier;
mod crowded;
pub mod deadlock;
mod declined;
mod end;
mod endless;
pub mod hang;
mod held_up;
mod last_words;
mod misstated;
mod next_program;
mod pace;
pub mod preempted;
pub mod report;
mod segments;
pub mod spawn_here;
pub mod spawn_on_nodes;
pub mod stalled;
pub mod trace;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use vmpi_shared::agreement::Agreements;
use vmpi_shared::check::CheckBoard;
use vmpi_shared::control::Findings;
use vmpi_shared::control::{Cause, Helper, JobSpec, Reply, Stdio, env};
use vmpi_shared::dynamic::{Answer, World};
use vmpi_shared::job::JobSegment;
use vmpi_shared::mem::bell::Chime;
use vmpi_shared::mem::segment::SegmentError;
use vmpi_shared::node::{NodeSegment, Patience};
use vmpi_shared::ports::Ports;
use vmpi_shared::sched::{self, RunState};
use vmpi_shared::simulate::SimulationSegment;

use crate::connection::Peer;
use crate::integrity::Integrity;
use crate::limits;
use crate::looks::Looks;
use crate::oom::Kills;
use crate::passed::Passed;
use crate::rank::{Attachment, Member, Rank};
use crate::reap;
use crate::sampler::Sampler;
use crate::simulation;
use crate::spawn::{Identity, Inherited, SpawnError, Spawner, Start, Streams};
use crate::watchdog::Watchdog;
pub use carrier::Carrier;
use crowded::Crowds;
use deadlock::Detector;
use end::Ending;
pub use end::{FAILURE_GRACE, SHUTDOWN_GRACE};
use endless::Endless;
use hang::HangWatch;
use held_up::HeldUp;
use last_words::Deathbeds;
use misstated::Misstated;
use preempted::Preempted;
use segments::{job_config, node_segment};
use spawn_here::RankNumbers;
use spawn_on_nodes::Spread;
use stalled::Stalls;
use trace::Recording;

/// Ranks started between two looks at the sockets.
const SPAWN_SLICE: u32 = 32;
/// Time between two attempts to mend a core, or two looks whether the carrier has told of a death.
const MEND_PAUSE: Duration = Duration::from_millis(1);

/// Why a job could not begin.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Limit(#[from] limits::LimitError),
    #[error("cannot make the job's shared memory: {0}")]
    Segment(#[from] SegmentError),
    #[error("an argument or a variable of the job holds a NUL byte: {0}")]
    Nul(#[from] std::ffi::NulError),
    #[error("cannot make the bell with which ranks call the daemon: {0}")]
    Bell(std::io::Error),
    #[error("cannot open /dev/null: {0}")]
    Null(std::io::Error),
    #[error(transparent)]
    Simulation(#[from] simulation::Problem),
}

impl SubmitError {
    pub fn code(&self) -> i32 {
        match self {
            SubmitError::Limit(error) => error.code(),
            SubmitError::Nul(_) | SubmitError::Simulation(_) => 2,
            SubmitError::Segment(_) | SubmitError::Bell(_) | SubmitError::Null(_) => 125,
        }
    }
}

/// Why a rank may not attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    #[error("job {job} has no rank {rank}: it has {ranks} ranks")]
    NoSuchRank { job: u32, rank: u32, ranks: u32 },
    #[error(
        "the process was started for another job than job {job} of this vmpid ({} says which); has its vmpid been started anew meanwhile?",
        env::JOB
    )]
    OtherJob { job: u32 },
    #[error(
        "rank {rank} of job {job} is process {pid} already, which has not called MPI_Finalize and ended; one rank is one MPI process \
         at a time, and a process can start MPI once"
    )]
    Taken { job: u32, rank: u32, pid: i32 },
    #[error(
        "rank {rank} of job {job} was process {pid}, which has ended without MPI_Finalize; no other can take its place"
    )]
    Unfinished { job: u32, rank: u32, pid: i32 },
    #[error("job {job} is ending")]
    Ending { job: u32 },
    #[error("process {pid} cannot be watched: {source}")]
    Unwatchable { pid: i32, source: std::io::Error },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Waiting for the launcher's descriptors.
    Collecting,
    /// Starting ranks; this one is next.
    Spawning(u32),
    Running,
    /// The verdict is known; processes are being ended.
    Ending,
}

pub struct Job {
    pub id: u32,
    /// What keeps its number from the jobs of other daemons.
    pub number: Option<UnixDatagram>,
    pub spec: JobSpec,
    /// In the environment of its ranks.
    word: String,
    pub node: NodeSegment,
    pub segment: JobSegment,
    /// Of a job in virtual time.
    pub simulation: Option<SimulationSegment>,
    /// What `--check` has found, and where its ranks compare their calls.
    pub findings: Findings,
    pub check_board: Option<CheckBoard>,
    pub launcher: Option<u64>,
    launcher_pid: i32,
    pub phase: Phase,
    pub ranks: Vec<Rank>,
    /// All groups of ranks that were started together; the first is the launcher's.
    worlds: Vec<World>,
    /// The worlds of second and later programs of scripts: by first world and how many programs came before.
    again: BTreeMap<(usize, u32), World>,
    /// Numbers for ranks to come.
    room: RankNumbers,
    pub ports: Ports,
    pub agreements: Agreements,
    /// What the launcher has answered to ranks here, as long as a death of which it tells is not known on this node: rank, number, answer.
    pub early_answers: Vec<(u32, u64, Answer)>,
    /// Descriptors on their way from rank to rank.
    pub passed: Passed,
    /// Cores that dead ranks have left in the middle of a step.
    undone: Vec<u32>,
    pub watchdog: Watchdog,
    pub sampler: RefCell<Sampler>,
    looks: Looks,
    pub preempted: Preempted,
    integrity: Integrity,
    detector: Detector,
    hang: HangWatch,
    crowds: Crowds,
    held_up: Option<HeldUp>,
    misstated: Misstated,
    endless: Endless,
    stalls: Stalls,
    /// Transfers are or were counted.
    monitored: bool,
    recording: Option<Recording>,
    /// The core of each rank, as nobody but the daemon can change it.
    placement: Vec<u32>,
    /// It has spawned, so that its spare cores count among its cores.
    pub spare_in_use: bool,
    /// Replies to the launcher, in order, with descriptors.
    pub outbox: Vec<(Reply, Vec<OwnedFd>)>,
    /// The job is over and can be dropped once `outbox` is sent.
    pub finished: bool,
    started: Instant,
    spawner: Spawner,
    null: OwnedFd,
    pub fds: Vec<OwnedFd>,
    /// Ends that came before `Started`.
    early: Vec<(Reply, Vec<OwnedFd>)>,
    /// Ranks that are not over.
    remaining: u32,
    /// Processes that live or have not been reaped: spawned ones and attached ones.
    live: u32,
    /// The earliest wrapper deadline.
    next_wrapper: Option<Instant>,
    /// A rank has left without MPI_Finalize, and the others have a moment more.
    parting: Option<end::Parting>,
    deathbeds: Deathbeds,
    /// Whom the kernel had ended for want of memory when it began.
    kills: Kills,
    /// It has been sent SIGKILL from here.
    killing: bool,
    verdict: Option<(Cause, i32)>,
    refusal: Option<SpawnError>,
    /// Processes that ranks have started, as far as the end has found them.
    helpers: Vec<Helper>,
    ending: Option<Ending>,
    /// When its end began, by its clocks.
    ends: Option<end::Ends>,
    /// Who carries messages to other nodes, in a job of several.
    pub carrier: Option<Carrier>,
    /// How it grows, in a job of several.
    spread: Spread,
}

impl Job {
    /// Check the specification and make the segments; no process is started before all descriptors have arrived.
    ///
    /// # Errors
    /// What does not fit, with the exit code that says so.
    pub fn new(id: u32, spec: JobSpec, peer: Peer, launcher: u64, place: &Place) -> Result<Job, SubmitError> {
        limits::check_spec(&spec, &place.allowed_cpus)?;
        limits::check_machine(&spec, place.open_fds)?;
        let said = |name| spec.apps.iter().flat_map(|app| &app.env).find(|(n, _)| n == name).map(|(_, v)| v.as_str());
        let room = spawn_here::room_for(spec.ranks, peer.pid, limits::unexpected_bytes(said(env::UNEXPECTED_BYTES))?);
        let capacity = room.ranks;
        let mut node = node_segment(id, &spec, capacity, place)?;
        let simulation =
            spec.simulation.as_ref().map(|simulation| simulation::create(simulation, spec.ranks)).transpose()?;
        let config = job_config(&spec, &room, place);
        let config = if simulation.is_some() { simulation::config(&config) } else { config };
        let segment = JobSegment::create_with_room(&config, spec.ranks)?;
        let simulation_is_on = simulation.is_some();
        if simulation_is_on {
            node.set_simulated();
            segment.simulate();
        }
        if let Some(nodes) = &spec.nodes {
            node.spread(|rank| rank < spec.ranks && !spec.is_local(rank));
            node.set_carrier_bell(Chime::new().map_err(SubmitError::Bell)?);
            segment.set_node(nodes.here, nodes.names.len() as u32);
        }
        let recording = spec.trace.then(|| Recording::from_the_start(node.header().started_at, node.moment()));
        let word = format!("{}.{id}", place.name);
        let null = std::fs::File::options().read(true).write(true).open("/dev/null").map_err(SubmitError::Null)?;
        let identity = Identity { socket: &place.socket, word: &word, job: id };
        let spawner = Spawner::new(&spec, &identity, Inherited::from_launcher(peer.pid))?;
        let integrity = Integrity::of(&node, &segment);
        let programs = spec.apps.iter().zip(0u32..).flat_map(|(app, n)| (0..app.ranks).map(move |_| n));
        let rank = |(rank, app): (u32, u32)| {
            // Those of other nodes are over for this one.
            let over = !spec.is_local(rank);
            Rank { over, ..Rank::new(0, rank, spawner.program_of(app as usize), app) }
        };
        let ranks = (0..).zip(programs).map(rank).collect();
        let remaining = spec.local_ranks().count() as u32;
        let carrier = spec.nodes.is_some().then(Carrier::default);
        let world = World { number: 1, ranks: (0..spec.ranks).collect(), ..World::default() };
        Ok(Job {
            id,
            number: None,
            word,
            node,
            segment,
            simulation,
            findings: Findings::default(),
            check_board: None,
            launcher: Some(launcher),
            launcher_pid: peer.pid,
            phase: Phase::Collecting,
            ranks,
            worlds: vec![world],
            again: BTreeMap::new(),
            room: RankNumbers::new(spec.ranks, capacity),
            ports: Ports::new(&place.name, id),
            agreements: Agreements::default(),
            early_answers: Vec::new(),
            passed: Passed::default(),
            undone: Vec::new(),
            watchdog: Watchdog::with_room(&spec, capacity),
            sampler: RefCell::default(),
            looks: Looks::default(),
            preempted: Preempted::default(),
            integrity,
            detector: Detector::new(Instant::now()),
            hang: HangWatch::new(Instant::now()),
            crowds: Crowds::new(Instant::now()),
            held_up: simulation_is_on.then(|| HeldUp::new(Instant::now())),
            misstated: Misstated::new(Instant::now()),
            endless: Endless::new(Instant::now()),
            stalls: Stalls::new(Instant::now()),
            monitored: spec.monitor,
            recording,
            placement: spec.placement.clone(),
            spare_in_use: false,
            outbox: vec![(Reply::Submitted { job: id }, Vec::new())],
            finished: false,
            started: Instant::now(),
            spawner,
            null: null.into(),
            fds: Vec::new(),
            early: Vec::new(),
            remaining,
            live: 0,
            next_wrapper: None,
            parting: None,
            deathbeds: Deathbeds::default(),
            kills: Kills::now(),
            killing: false,
            verdict: None,
            refusal: None,
            ending: None,
            helpers: Vec::new(),
            ends: None,
            carrier,
            spread: Spread::default(),
            spec,
        })
    }

    /// Descriptors from the launcher; spawning begins when the last has come.
    pub fn add_fds(&mut self, fds: Vec<OwnedFd>) {
        if self.phase != Phase::Collecting {
            return;
        }
        self.fds.extend(fds);
        self.begin();
    }

    /// Begin to start ranks if everything for that is there.
    fn begin(&mut self) {
        let wired = self.carrier.as_ref().is_none_or(|carrier| carrier.wired);
        if self.phase == Phase::Collecting && self.fds.len() >= self.spec.fds as usize && wired {
            self.phase = Phase::Spawning(0);
        }
    }

    /// Start some ranks; returns their processes. Call again while `phase` is Spawning.
    pub fn spawn_some(&mut self) -> Vec<(i32, u32)> {
        let Phase::Spawning(first) = self.phase else { return Vec::new() };
        let end = (first + SPAWN_SLICE).min(self.spec.ranks);
        let mut spawned = Vec::with_capacity(SPAWN_SLICE as usize);
        for rank in first..end {
            if !self.spec.is_local(rank) {
                continue;
            }
            match self.spawn_one(rank) {
                Ok(pid) => spawned.push((pid, rank)),
                Err(error) => {
                    let reason = error.to_string();
                    self.refusal = Some(error);
                    self.end(Cause::Internal { reason }, 125, Signal::SIGKILL as i32, Duration::ZERO);
                    return spawned;
                }
            }
        }
        if end < self.spec.ranks {
            self.phase = Phase::Spawning(end);
        } else {
            self.phase = Phase::Running;
            self.say_started();
            // A node may have none of the ranks that vmpirun starts.
            self.end_if_all_over();
        }
        spawned
    }

    fn spawn_one(&mut self, rank: u32) -> Result<i32, SpawnError> {
        let null = self.null.as_fd();
        let stdin = match self.spec.local_readers().position(|reader| reader == rank) {
            Some(number) => self.fds[number].as_fd(),
            None => null,
        };
        let local = |ranks: u32| (0..ranks).filter(|rank| self.spec.is_local(*rank)).count();
        let (local_rank, local_size) = match self.spec.nodes {
            Some(_) => (local(rank), local(self.spec.ranks)),
            None => (rank as usize, self.spec.ranks as usize),
        };
        let outputs = self.spec.stdin_count();
        let (out, err) = match self.spec.stdio {
            Stdio::Shared => (outputs, outputs + 1),
            Stdio::PerRank => (outputs + 2 * local_rank, outputs + 1 + 2 * local_rank),
        };
        let streams = Streams { stdin, stdout: self.fds[out].as_fd(), stderr: self.fds[err].as_fd() };
        // A group exists as long as a member is not reaped; its number may then belong to strangers.
        let group =
            self.ranks[..rank as usize].iter().rev().find(|r| r.pid != 0 && r.ended.is_none()).map_or(0, |r| r.group);
        let entry = &self.ranks[rank as usize];
        let start = Start {
            rank,
            program: entry.program,
            core: self.spec.placement[rank as usize],
            world_rank: rank,
            world_size: self.spec.ranks,
            local_rank: local_rank as u32,
            local_size: local_size as u32,
            stop: self.spec.stop.contains(&rank),
        };
        let process = self.spawner.spawn(&start, group, streams)?;
        let entry = &mut self.ranks[rank as usize];
        self.live += 1;
        entry.pid = process.pid;
        entry.group = process.group;
        Ok(process.pid)
    }

    /// Give up the launcher's pipes, so that it sees the end of the ranks' output (what all ranks share is kept for those
    /// to come); then tell it the pids.
    fn say_started(&mut self) {
        match self.spec.stdio {
            Stdio::PerRank => self.fds.clear(),
            Stdio::Shared => drop(self.fds.drain(..self.spec.stdin_count().min(self.fds.len()))),
        }
        let pids = self.ranks.iter().map(|rank| rank.pid).filter(|pid| *pid != 0).collect();
        self.outbox.push((Reply::Started { pids }, Vec::new()));
        self.outbox.append(&mut self.early);
    }

    /// `rank`, which a client has named, if the job has one of this number.
    pub fn member(&self, rank: u32) -> Option<Member> {
        Member::check(rank, self.ranks.len(), self.node.header().ranks)
    }

    /// May this process be `rank`? Remember it if so, and watch it if it is not the spawned one.
    ///
    /// # Errors
    /// Another job's word, no such rank, or a second process for one rank.
    pub fn attach(
        &mut self,
        rank: u32,
        word: &str,
        face: String,
        pid: i32,
        connection: u64,
    ) -> Result<(), AttachError> {
        if word != self.word {
            return Err(AttachError::OtherJob { job: self.id });
        }
        let Some(member) = self.member(rank) else {
            return Err(AttachError::NoSuchRank { job: self.id, rank, ranks: self.ranks.len() as u32 });
        };
        let entry = &mut self.ranks[member.index()];
        if self.phase == Phase::Ending || entry.over || entry.abandoned || entry.held {
            return Err(AttachError::Ending { job: self.id });
        }
        if let Some(old) = &entry.attachment {
            let finalized = entry.finalized || self.node.state(rank) == RunState::Finalized;
            // The same process: it has called exec.
            let left = !old.alive || old.pid == pid || old.has_ended();
            let pid = old.pid;
            match (finalized, left) {
                (true, true) => self.begin_again(rank),
                // A script's next program.
                (false, true) if !old.alive || old.has_ended() => {
                    self.left_unfinished(rank);
                    return Err(AttachError::Unfinished { job: self.id, rank, pid });
                }
                _ => return Err(AttachError::Taken { job: self.id, rank, pid }),
            }
        }
        let entry = &mut self.ranks[rank as usize];
        let mut pidfd = None;
        if pid != entry.pid {
            pidfd = Some(reap::pidfd_open(pid).map_err(|source| AttachError::Unwatchable { pid, source })?);
            self.live += 1;
        }
        self.node.set_pid(rank, pid);
        vmpi_shared::node::last_words::begin(&self.node, rank);
        self.watchdog.wake(Instant::now());
        entry.attachment =
            Some(Attachment { pid, connection: Some(connection), face, alive: true, ended: None, pidfd });
        Ok(())
    }

    /// MPI_UNIVERSE_SIZE in `world`: in one that was spawned not fewer than those who spawned it and its own; 0: the attribute is not set.
    pub fn universe(&self, world: &World) -> u32 {
        match (self.spec.universe_size(), &world.parent) {
            (0, _) => 0,
            (size, None) => size,
            (size, Some(parent)) => size.max((parent.ranks.len() + world.ranks.len()) as u32),
        }
    }

    /// When `tick` wants to be called.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Collecting => None,
            // At once: an instant in the past.
            Phase::Spawning(_) => Some(self.started),
            Phase::Running => {
                let waits = !self.undone.is_empty() || !self.early_answers.is_empty();
                let mend = waits.then(|| Instant::now() + MEND_PAUSE);
                let looks = [self.watchdog.next(), self.preempted.next(), self.next_wrapper, self.next_hang_look()];
                let ends = [self.parting_due(), self.deaths_due(), mend, self.next_declined()];
                looks.into_iter().chain(ends).flatten().min()
            }
            Phase::Ending => self.ending.as_ref().map(|ending| ending.at).into_iter().chain(self.deaths_due()).min(),
        }
    }

    /// Mend what dead ranks have left half-done, as far as nobody is at it right now.
    pub fn mend(&mut self) {
        self.undone.retain(|core| !sched::recover::mend(&self.node, *core));
    }

    /// See what the ranks wait for.
    pub fn look(&mut self, now: Instant) {
        let here = (0..self.ranks.len() as u32).filter(|rank| !self.ranks[*rank as usize].over);
        self.looks.look(&self.node, here, now);
    }

    /// Is there nothing to mend?
    pub fn undone_is_empty(&self) -> bool {
        self.undone.is_empty()
    }

    /// Will `rank` take part in nothing any more?
    pub fn is_gone(&self, rank: u32) -> bool {
        self.ranks.get(rank as usize).is_none_or(|entry| entry.over || entry.died || entry.finalized)
    }

    /// The CPUs of each of the cores that ranks of this job may run on.
    pub fn places_in_use(&self) -> Vec<Vec<u32>> {
        let spare = if self.spare_in_use { self.spec.spare_cpus.len() } else { 0 };
        (0..self.spec.cpus.len() + spare).map(|core| self.spec.place(core).collect()).collect()
    }

    /// May a rank of this job run on one of the CPUs of `core` of that one?
    pub fn uses_cpus_of(&self, other: &JobSpec, core: usize) -> bool {
        self.places_in_use().iter().flatten().any(|cpu| other.place(core).any(|its| its == *cpu))
    }
}

/// What a job needs to know about its daemon.
pub struct Place {
    pub socket: String,
    /// A word that no other daemon has.
    pub name: String,
    /// What copies cost on this machine, measured when the daemon started.
    pub calibration: vmpi_cma::calibrate::Calibration,
    /// What follows from what switching costs, measured then, too.
    pub patience: Patience,
    /// From one rank of a core to the next.
    pub hand_over: Option<Duration>,
    /// Cpus that the daemon may use.
    pub allowed_cpus: Vec<u32>,
    /// Descriptors in use for other jobs and connections.
    pub open_fds: u64,
}
