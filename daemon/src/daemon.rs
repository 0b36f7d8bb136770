//! The event loop: one thread (but for `kick`), one epoll, everything else is a handler that returns at once.
//!
//! Watched: the socket, its connections, signal-hook's two pipes (SIGCHLD; TERM, INT, HUP), the pidfds of MPI
//! processes that are not our children, the bells with which jobs that share cores ask for them. Deadlines (watchdog, grace times, one-job) are epoll_wait's timeout, so that an idle
//! daemon makes no system call at all. SIGCHLD comes last in each round: what a rank wrote before it ended is read first.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::Signal;
use vmpi_shared::control::Cause;
use vmpi_shared::mem::bell::Bell;
use vmpi_shared::ports::Services;
use vmpi_shared::sched::{lease, supervise};

use crate::arbiter::{self, Arbiter};
use crate::client::{Client, Role, Turns};
use crate::connection::Scratch;
use crate::job::{self, Job};
use crate::kick::Kickers;
use crate::limits::allowed_cpus;
use crate::log::debug;
use crate::numbers::Numbers;
use crate::reap::{self, Reaped};
use crate::runtime_dir::{RuntimeDir, RuntimeDirError};
use crate::status_page::StatusPage;
use crate::switch_cost::SwitchCost;
use crate::watchdog::LiveScene;
use crate::{limits, log};

pub(crate) const LISTENER: u64 = 0;
const TERMINATION: u64 = 1;
const CHILDREN: u64 = 2;
/// The bells of all jobs.
const BELLS: u64 = 3;
/// Tokens from here on are connections, or pidfds with this bit set.
const FIRST_TOKEN: u64 = 16;
const PIDFD_BIT: u64 = 1 << 63;
const EVENTS: usize = 512;
/// Descriptors of a job besides those of its ranks: segments, pids, bells, /dev/null and where streams are laid out.
const JOB_FDS: u64 = 16;

/// `--one-job`: how long to wait for the launcher, and how often to look meanwhile whether it lives.
const LAUNCHER_WAIT: Duration = Duration::from_secs(10);
const LAUNCHER_LOOK: Duration = Duration::from_millis(100);
/// The unit of epoll_wait's timeout.
const COARSE: Duration = Duration::from_millis(1);
/// How long the last replies may take at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub struct Options {
    pub runtime_dir: PathBuf,
    /// The user's runtime directory, which `runtime_dir` is or, as a rule, lies in.
    pub base: PathBuf,
    pub one_job: bool,
}

/// Why the daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    RuntimeDir(#[from] RuntimeDirError),
    #[error("cannot watch for {what}: {source}")]
    Watch { what: &'static str, source: io::Error },
}

pub struct Daemon {
    pub(crate) jobs: BTreeMap<u32, Job>,
    /// Published names (MPI_Publish_name).
    pub(crate) services: Services,
    pub(crate) clients: HashMap<u64, Client>,
    /// Jobs so far.
    pub(crate) begun: u32,
    pub(crate) numbers: Numbers,
    /// Set by TERM, INT, HUP or `Request::Shutdown`.
    pub(crate) draining: Option<Instant>,
    /// A connection that had submitted a job, or tried to, is gone.
    pub(crate) launcher_left: bool,
    pub(crate) dir: RuntimeDir,
    status: Option<StatusPage>,
    pub(crate) epoll: Epoll,
    pub(crate) listener: UnixListener,
    termination: UnixStream,
    children: UnixStream,
    pub(crate) scratch: Scratch,
    pub(crate) turns: Turns,
    next_token: u64,
    /// Spawned and attached processes: job and rank.
    processes: HashMap<i32, (u32, u32)>,
    /// Job, rank and process.
    pidfds: HashMap<u64, (u32, u32, i32)>,
    pub(crate) has_children: bool,
    /// Conclusions are being drawn from what has ended.
    reaping: bool,
    /// What jobs have left running.
    left: reap::Left,
    one_job: bool,
    started: Instant,
    /// A word that no other daemon has, for names of ports.
    pub(crate) name: String,
    pub(crate) arbiter: Arbiter,
    kickers: RefCell<Kickers>,
    /// What copies cost on this machine.
    pub(crate) calibration: vmpi_cma::calibrate::Calibration,
    pub(crate) switching: SwitchCost,
}

impl Daemon {
    /// Take the runtime directory, listen, watch for signals.
    ///
    /// # Errors
    /// A directory that cannot be used, or one that a live daemon serves.
    pub fn start(options: &Options) -> Result<Daemon, StartError> {
        let watch = |what| move |source: io::Error| StartError::Watch { what, source };
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o077));
        limits::raise_soft_limits();
        reap::become_subreaper();
        let mut dir = RuntimeDir::open(&options.runtime_dir)?;
        let launcher_left = options.one_job && dir.is_orphaned();
        dir.clear()?;
        // Before the socket: who can connect also finds the page.
        let status = StatusPage::create(&dir.flink())
            .inspect_err(|error| log::line(&format!("no status page for vmpictl: {error}")))
            .ok();
        let listener = dir.listen()?;
        let _ = nix::unistd::chdir("/");
        let (termination, on_termination) = UnixStream::pair().map_err(watch("signals"))?;
        let (children, on_child) = UnixStream::pair().map_err(watch("children"))?;
        for stream in [&termination, &children] {
            stream.set_nonblocking(true).map_err(watch("signals"))?;
        }
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            let end = on_termination.try_clone().map_err(watch("signals"))?;
            signal_hook::low_level::pipe::register(signal, end).map_err(watch("signals"))?;
        }
        signal_hook::low_level::pipe::register(libc::SIGCHLD, on_child).map_err(watch("children"))?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| watch("events")(e.into()))?;
        let add = |fd: std::os::fd::BorrowedFd, token| {
            epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, token)).map_err(|e| watch("events")(e.into()))
        };
        add(listener.as_fd(), LISTENER)?;
        add(termination.as_fd(), TERMINATION)?;
        add(children.as_fd(), CHILDREN)?;
        debug!("listening on {}", dir.socket().display());
        Ok(Daemon {
            calibration: vmpi_cma::calibrate::calibrate(&allowed_cpus()),
            switching: SwitchCost::measure(&allowed_cpus()),
            jobs: BTreeMap::new(),
            services: Services::default(),
            clients: HashMap::new(),
            begun: 0,
            numbers: Numbers::new(&options.base),
            draining: None,
            launcher_left,
            dir,
            status,
            epoll,
            listener,
            termination,
            children,
            scratch: Scratch::new(),
            turns: Turns::default(),
            next_token: FIRST_TOKEN,
            processes: HashMap::new(),
            pidfds: HashMap::new(),
            has_children: false,
            reaping: false,
            left: reap::Left::new(),
            one_job: options.one_job,
            started: Instant::now(),
            name: format!("{}.{:x}", std::process::id(), vmpi_shared::clock::monotonic_ns()),
            arbiter: Arbiter::default(),
            kickers: RefCell::default(),
        })
    }

    /// Serve until told to end; returns the exit code. Every process of every job is gone then.
    pub fn run(mut self) -> i32 {
        let mut events = [EpollEvent::empty(); EVENTS];
        loop {
            let now = Instant::now();
            self.run_deadlines(now);
            if self.is_done(now) {
                return 0;
            }
            let due = if self.turns.are_due() { Some(now) } else { self.next_deadline() };
            let count = match self.wait(&mut events, due, now) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(errno) => {
                    log::line(&format!("cannot wait for events: {errno}; ending"));
                    self.drain("the daemon cannot wait for events");
                    return 125;
                }
            };
            let mut reap = false;
            for event in &events[..count] {
                match event.data() {
                    LISTENER => self.accept(),
                    TERMINATION => {
                        empty(&self.termination);
                        self.drain("the daemon was told to end by a signal");
                    }
                    CHILDREN => {
                        empty(&self.children);
                        reap = true;
                    }
                    BELLS => self.bells_rung(),
                    token if token & PIDFD_BIT != 0 => self.attached_process_ended(token),
                    token => self.client_ready(token, event.events()),
                }
            }
            self.serve_backlog();
            if reap {
                self.reap();
                // A rank that died may have had no time to ring.
                self.decide(Instant::now());
            }
        }
    }

    /// Wait for events until `due`. epoll_wait counts in milliseconds; what is due sooner is waited for by ppoll.
    fn wait(&self, events: &mut [EpollEvent], due: Option<Instant>, now: Instant) -> nix::Result<usize> {
        let left = due.map(|due| due.saturating_duration_since(now)).filter(|left| !left.is_zero() && *left < COARSE);
        let Some(left) = left else { return self.epoll.wait(events, timeout_until(due, now)) };
        let mut fds = [PollFd::new(self.epoll.0.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut fds, Some(left.into()), None)?;
        self.epoll.wait(events, EpollTimeout::ZERO)
    }

    fn bells_rung(&mut self) {
        for job in self.jobs.values_mut() {
            if let Some(bell) = job.node.bell() {
                bell.quiet();
            }
            job.listen_to_dying();
        }
        self.decide(Instant::now());
    }

    /// Move cores between jobs where that is due.
    fn decide(&mut self, now: Instant) {
        self.arbiter.decide(&mut arbiter::LiveScene { jobs: &mut self.jobs }, now);
    }

    /// A job begins or has gone: whose core is whose?
    fn retake_cores(&mut self) {
        let jobs: Vec<(u32, Vec<Vec<u32>>)> = self.jobs.iter().map(|(id, job)| (*id, job.places_in_use())).collect();
        self.arbiter.retake(&jobs, &mut arbiter::LiveScene { jobs: &mut self.jobs }, Instant::now());
    }

    /// Take a job in; it gets the cores that no other job has.
    pub(crate) fn add_job(&mut self, id: u32, job: Job) {
        for fd in job.node.bell().into_iter().flat_map(Bell::heard_by) {
            if let Err(errno) = self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, BELLS)) {
                // It then gets its cores when the slots change.
                log::line(&format!("cannot listen to the bell of job {id}: {errno}"));
            }
        }
        for core in 0..job.spec.cpus.len() {
            if self.jobs.values().any(|other| other.uses_cpus_of(&job.spec, core)) {
                lease::begin_withheld(&job.node, core as u32);
            }
        }
        self.jobs.insert(id, job);
        self.retake_cores();
    }

    /// A job is about to grow, and may from now on use the cores that it was given as spare ones: those of other jobs are not its yet.
    pub(crate) fn claim_spare_cores(&mut self, id: u32) {
        let Some(job) = self.jobs.get(&id).filter(|job| !job.spare_in_use && !job.spec.spare_cpus.is_empty()) else {
            return;
        };
        let own = job.spec.cpus.len();
        for core in own..own + job.spec.spare_cpus.len() {
            if self.jobs.values().any(|other| other.id != id && other.uses_cpus_of(&job.spec, core)) {
                lease::begin_withheld(&job.node, core as u32);
            }
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            job.spare_in_use = true;
        }
        self.retake_cores();
    }

    pub(crate) fn new_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token - 1
    }

    /// Drop a connection and draw the consequences.
    pub(crate) fn close(&mut self, token: u64) {
        let Some(mut client) = self.clients.remove(&token) else { return };
        let _ = self.epoll.delete(client.channel.stream());
        self.gone(token, &mut client);
        match client.role {
            Role::Launcher(id) => {
                self.launcher_left = true;
                if let Some(job) = id.and_then(|id| self.jobs.get_mut(&id))
                    && job.launcher == Some(token)
                {
                    job.launcher = None;
                    job.end(Cause::LauncherDied, 125, Signal::SIGTERM as i32, job::FAILURE_GRACE);
                }
            }
            Role::Rank(id, rank) => {
                if let Some(attachment) =
                    self.jobs.get_mut(&id).and_then(|job| job.ranks.get_mut(rank as usize)?.attachment.as_mut())
                    && attachment.connection == Some(token)
                {
                    attachment.connection = None;
                }
            }
            Role::Carrier(id) => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.carrier_lost(None);
                }
            }
            Role::Stranger | Role::Tool => {}
        }
    }

    /// Remember an MPI process, and watch it if it is not a child of ours.
    pub(crate) fn watch_attached(&mut self, id: u32, rank: u32) {
        let Some(attachment) = self.jobs.get(&id).and_then(|job| job.ranks.get(rank as usize)?.attachment.as_ref())
        else {
            return;
        };
        if let Some(pidfd) = &attachment.pidfd {
            let token = self.next_token | PIDFD_BIT;
            self.next_token += 1;
            if self.epoll.add(pidfd, EpollEvent::new(EpollFlags::EPOLLIN, token)).is_ok() {
                self.pidfds.insert(token, (id, rank, attachment.pid));
            }
            self.processes.insert(attachment.pid, (id, rank));
        }
    }

    /// The job and rank to which a process belongs by its descent, if it shows: the nearest of its ancestors that is one.
    pub(crate) fn rank_above(&self, pid: i32) -> Option<(u32, u32)> {
        let known = |pid: i32| self.processes.get(&pid).copied();
        known(pid).or_else(|| reap::ancestors(pid).find_map(known))
    }

    fn attached_process_ended(&mut self, token: u64) {
        // Its last words, and its status if it is our child by now.
        let Some((id, rank, pid)) = self.pidfds.remove(&token) else { return };
        self.hear_last_words(id, rank);
        self.reap();
        if let Some(job) = self.jobs.get_mut(&id) {
            self.processes.remove(&pid);
            job.attachment_ended(rank, pid);
        }
    }

    fn hear_last_words(&mut self, id: u32, rank: u32) {
        let job = self.jobs.get(&id);
        let connection =
            job.and_then(|job| job.ranks.get(rank as usize)?.attachment.as_ref()).and_then(|a| a.connection);
        if let Some(connection) = connection {
            self.hear_out(connection);
        }
    }

    /// Collect all children that have ended, and draw the conclusions: first from those that something from outside has ended, since the others may have
    /// failed over their deaths.
    pub(crate) fn reap(&mut self) {
        // What a rank has said before its end may lead here again.
        if std::mem::replace(&mut self.reaping, true) {
            return;
        }
        let mut ended = Vec::new();
        loop {
            match reap::reap_one() {
                Reaped::Child(pid, how) => ended.push((pid, how)),
                Reaped::NoneEnded => break,
                Reaped::NoChildren => {
                    self.has_children = false;
                    break;
                }
            }
        }
        ended.sort_by_key(|(_, how)| !reap::is_from_outside(*how));
        for (pid, how) in ended {
            debug!("process {pid} ended: {how:?}");
            let Some((id, rank)) = self.processes.remove(&pid) else { continue };
            self.hear_last_words(id, rank);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.process_ended(rank, pid, how);
            }
        }
        self.reaping = false;
    }

    /// Whatever is due by now, in all jobs: spawning, watchdog, sweeps, replies.
    fn run_deadlines(&mut self, now: Instant) {
        if self.arbiter.next().is_some_and(|at| at <= now) {
            self.decide(now);
        }
        self.listen_again(now);
        let ids: Vec<u32> = self.jobs.keys().copied().collect();
        let only = ids.len() == 1;
        for id in ids {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for (pid, rank) in job.spawn_some() {
                self.has_children = true;
                self.processes.insert(pid, (id, rank));
            }
            job.check_wrappers(now);
            job.check_integrity(now);
            job.wake_declined();
            job.check_deadlock(now);
            job.check_misstated(now);
            job.check_endless(now);
            job.check_stalls(|core| self.arbiter.is_shared(id, core), now);
            job.check_hang(now);
            job.check_crowds(now);
            job.check_held_up(now);
            job.check_parting(now);
            job.let_die(now);
            if job.phase == job::Phase::Running {
                let taken = job.watchdog.tick(
                    &LiveScene { node: &job.node, spec: &job.spec, sampler: &job.sampler, kickers: &self.kickers },
                    now,
                );
                taken.into_iter().for_each(|rank| job.preempted.note(rank, now));
                supervise::assist(&job.node);
                job.check_strays(now);
                job.look(now);
            }
            job.mend();
            let wants_sweep = job.wants_sweep(now);
            self.conclude(id);
            if wants_sweep {
                self.sweep(id, only, now);
            }
            self.send_outbox(id);
        }
    }

    fn sweep(&mut self, id: u32, only: bool, now: Instant) {
        self.reap();
        let mut found = if self.has_children {
            reap::leftovers(id, only, |pid| self.processes.get(&pid).map(|(job, _)| *job), &self.left)
        } else {
            Vec::new()
        };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.leaves_helpers() {
            reap::forget_ended(&mut self.left);
            let own = found.extract_if(.., |process| reap::is_own(process)).collect();
            let stay = std::mem::replace(&mut found, own);
            self.left.extend(stay.iter().map(|process| (process.pid, process.began)));
            job.note_helpers(&stay);
        } else {
            job.note_helpers(&found);
        }
        reap::kill_each(&found);
        job.swept(found.len(), now);
    }

    /// Pass a job's replies to its launcher; forget the job when the last has been passed.
    fn send_outbox(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (launcher, finished) = (job.launcher, job.finished);
        let replies = std::mem::take(&mut job.outbox);
        let carrier = job.carrier.as_mut().and_then(|carrier| {
            let connection = carrier.connection?;
            Some((connection, std::mem::take(&mut carrier.outbox)))
        });
        if finished && let Some(job) = self.jobs.remove(&id) {
            // What ranks have left running may hold the open file, which else would be watched on.
            for fd in job.node.bell().into_iter().flat_map(Bell::heard_by) {
                let _ = self.epoll.delete(fd);
            }
            for rank in &job.ranks {
                self.processes.remove(&rank.pid);
                if let Some(connection) = rank.attachment.as_ref().and_then(|a| a.connection) {
                    self.close(connection);
                }
            }
            if let Some(client) = launcher.and_then(|token| self.clients.get_mut(&token)) {
                client.role = Role::Launcher(None);
            }
            if self.jobs.values().all(|job| job.carrier.is_none()) {
                crate::time_slice::give_back();
            }
            self.let_go_of_tools(id);
            self.services.withdraw(id);
            self.retake_cores();
            self.update_status();
        }
        if let Some((token, replies)) = carrier {
            replies.iter().for_each(|reply| self.reply(token, reply, &[]));
            if finished {
                self.close(token);
            }
        }
        for (reply, fds) in replies {
            if let Some(token) = launcher {
                let fds: Vec<BorrowedFd> = fds.iter().map(AsFd::as_fd).collect();
                self.reply(token, &reply, &fds);
            }
        }
    }

    /// Remember processes that a rank has spawned.
    pub(crate) fn watch_spawned(&mut self, id: u32, started: &[(i32, u32)]) {
        self.has_children |= !started.is_empty();
        self.processes.extend(started.iter().map(|(pid, rank)| (*pid, (id, *rank))));
    }

    /// Descriptors in use for all jobs and connections, as an estimate.
    pub(crate) fn open_fds(&self) -> u64 {
        self.clients.len() as u64 + self.jobs.values().map(|job| job.ranks.len() as u64 + JOB_FDS).sum::<u64>()
    }

    pub(crate) fn update_status(&self) {
        if let Some(status) = &self.status {
            status.set_jobs(self.jobs.len() as u32, u64::from(self.begun));
        }
    }

    /// End all jobs, take no more.
    pub(crate) fn drain(&mut self, reason: &str) {
        if self.draining.is_none() {
            debug!("ending: {reason}");
            self.draining = Some(Instant::now());
            for job in self.jobs.values_mut() {
                job.end(Cause::Shutdown, 143, Signal::SIGTERM as i32, job::SHUTDOWN_GRACE);
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let jobs = self.jobs.values().filter_map(Job::next_deadline).min();
        let launcher = (self.one_job && self.begun == 0).then(|| Instant::now() + LAUNCHER_LOOK);
        let last_words = self.draining.filter(|_| self.jobs.is_empty()).map(|_| Instant::now() + LAST_WORDS);
        [jobs, launcher, last_words, self.arbiter.next(), self.turns.next()].into_iter().flatten().min()
    }

    fn is_done(&self, now: Instant) -> bool {
        if !self.jobs.is_empty() {
            return false;
        }
        let all_said = !self.clients.values().any(|client| client.channel.is_backed_up());
        if let Some(since) = self.draining {
            return all_said || now.duration_since(since) > LAST_WORDS;
        }
        if self.one_job {
            // A launcher that lives comes, however much this machine has to do.
            let nobody_comes = self.begun == 0
                && ((now.duration_since(self.started) >= LAUNCHER_WAIT && !self.dir.has_launcher())
                    || (self.clients.is_empty() && self.dir.is_orphaned()));
            return nobody_comes || self.launcher_left || (self.begun > 0 && all_said);
        }
        false
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        reap::kill_all_descendants(&self.left);
    }
}

fn timeout_until(deadline: Option<Instant>, now: Instant) -> EpollTimeout {
    let Some(deadline) = deadline else { return EpollTimeout::NONE };
    // Rounded up, so that what is due has come when epoll_wait returns.
    let micros = deadline.saturating_duration_since(now).as_micros();
    EpollTimeout::try_from(i32::try_from(micros.div_ceil(1000)).unwrap_or(i32::MAX)).unwrap_or(EpollTimeout::MAX)
}

/// Read a signal pipe empty.
fn empty(mut stream: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!(io::Read::read(&mut stream, &mut bytes), Ok(count) if count == bytes.len()) {}
}
