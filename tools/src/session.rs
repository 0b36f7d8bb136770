//! A job under way: one loop over signals, the daemon, the ranks' output, and the clock.
//!
//! Death stories: a rank's death is the daemon's to notice (`Ended`, `Finished`); the daemon's death shows as the end
//! of the connection, and this process then kills what is left of the job, as if the daemon had not ended it long after it
//! was told to; this process's death shows to the daemon the same way. Nothing here blocks: sinks are written only as far as they take it, so a signal is seen at once.

use crate::cli::{OnDeadlock, RunOptions};
use crate::crash::{self, Crashes};
use crate::daemon::{self, Daemon, Loss, Orphans};
use crate::failure::{Failure, code};
use crate::grace::{Demands, grace};
use crate::mpir;
use crate::output::{Routes, SinkError, Streams};
use crate::signals::Signals;
use crate::sites::{SiteSeen, Sites};
use crate::stdin;
use crate::trace::Recording;
use crate::why::Why;
use crate::{hosts, outcome};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use vmpi_shared::control::{
    self, Cause, Connection, Helper, JobReport, JobSpec, NewRank, RankEnd, Reply, Request, Stdio,
};
use vmpi_shared::crash::{Crash, OnCrash};
use vmpi_shared::escape;
use vmpi_shared::monitor::Matrix;
use vmpi_shared::waits::JobWaits;

/// The daemon gets so long to end a job after the grace before this process does it.
const BACKSTOP: Duration = Duration::from_secs(10);
/// After how long it is said that vmpirun waits for what ranks have left running.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the session ended.
#[derive(Debug)]
pub struct Finished {
    pub job: u32,
    /// `None`: the daemon has not told the end.
    pub cause: Option<Cause>,
    /// Then what has become of it, and of the ranks.
    pub lost: Option<String>,
    pub report: Option<JobReport>,
    /// If transfers were counted.
    pub matrix: Option<Matrix>,
    /// If what ranks did was recorded.
    pub trace: Option<Recording>,
    pub ends: Vec<RankEnd>,
    /// Ranks that others spawned.
    pub spawned: Vec<NewRank>,
    /// Ranks that have ended badly, with their call stacks.
    pub crashes: Vec<Crash>,
    /// vmpirun's own reason to end the job, which stands before the cause.
    pub own: Option<Failure>,
    /// Nothing more is to be said: the reader of the output has gone.
    pub quiet: bool,
    /// From where ranks were seen waiting, if a page is to tell it.
    pub sites: Vec<SiteSeen>,
}

/// Submit the job and carry it to its end. All output is written, all processes are gone when this returns.
///
/// # Errors
/// The daemon refuses the job, or the connection breaks before it started.
pub fn run(
    daemon: &mut Daemon,
    spec: &JobSpec,
    routes: Option<Routes>,
    options: &RunOptions,
    signals: Signals,
) -> Result<Finished, Failure> {
    let streams = submit(daemon, spec, routes)?;
    let mut session = Session {
        streams,
        spec,
        signals,
        options,
        deadline: options.timeout_s.map(|s| Instant::now() + Duration::from_secs(s)),
        job: 0,
        first: Vec::new(),
        demands: Demands::default(),
        give_up: None,
        ends: Vec::new(),
        spawned: Vec::new(),
        crashes: Crashes::default(),
        own: None,
        quiet: false,
        sites: Sites::default(),
    };
    let last = session.until_end(daemon);
    let mut lost = None;
    let (cause, report, matrix, trace) = match last {
        Last::Finished(cause, report, matrix, trace) => {
            (Some(cause), Some(*report), matrix.map(|matrix| *matrix), trace)
        }
        Last::Lost(loss) => {
            lost = Some(session.end_from_here(daemon, &loss));
            (None, None, None, None)
        }
        Last::Refused(why) => return Err(why),
    };
    if let (Some(Cause::Success), Some(report)) = (&cause, &report)
        && !report.helpers.is_empty()
    {
        session.hear_out(daemon, &report.helpers);
    }
    session.drain();
    session.tell_crashes(Instant::now(), true);
    let Session { job, ends, spawned, crashes, own, quiet, sites, .. } = session;
    let crashes = crashes.into_list();
    let sites = sites.into_list();
    Ok(Finished { job, cause, lost, report, matrix, trace, ends, spawned, crashes, own, quiet, sites })
}

/// Why the job could not be handed over: what the daemon said last, if it said something.
fn lost(connection: &mut Connection, error: &io::Error) -> Failure {
    let _ = connection.stream().set_read_timeout(Some(Duration::from_secs(1)));
    while let Ok(Some((reply, _))) = connection.receive::<Reply>() {
        if let Reply::Refused { reason, code } = reply {
            return Failure::new(code, reason);
        }
    }
    Failure::own(format!("the connection to vmpid broke while the job was handed over: {error}"))
}

/// Send the job and the descriptors that it asks for.
fn submit(daemon: &mut Daemon, spec: &JobSpec, routes: Option<Routes>) -> Result<Streams, Failure> {
    // With several nodes one descriptor: the coordinator deals out what comes.
    let several = daemon.is_of_several_nodes();
    let readers = if several { spec.stdin.len().min(1) } else { spec.stdin.len() };
    let stdin = stdin::connect(readers).map_err(|e| Failure::own(format!("cannot pass standard input on: {e}")))?;
    let connection = &mut daemon.connection;
    hand_over(connection, spec, routes, &stdin).map_err(|error| lost(connection, &error))
}

fn hand_over(
    connection: &mut Connection,
    spec: &JobSpec,
    routes: Option<Routes>,
    stdin: &[OwnedFd],
) -> io::Result<Streams> {
    connection.send(&Request::Submit { spec: Box::new(spec.clone()) }, &[])?;
    let mut give = |fds: &[i32]| -> io::Result<()> {
        loop {
            match connection.send(&Request::Fds { count: fds.len() as u32 }, fds) {
                // Too many descriptors in flight (unix(7)): the daemon is about to take them.
                Err(e) if e.raw_os_error() == Some(libc::ETOOMANYREFS) => std::thread::sleep(Duration::from_millis(1)),
                done => return done,
            }
        }
    };
    for inputs in stdin.chunks(control::MAX_FDS) {
        give(&inputs.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>())?;
    }
    match (spec.stdio, routes) {
        (Stdio::PerRank, Some(routes)) => {
            routes.connect(control::MAX_FDS, |ends| give(&ends.iter().map(AsRawFd::as_raw_fd).collect::<Vec<_>>()))
        }
        _ => {
            give(&[libc::STDOUT_FILENO, libc::STDERR_FILENO])?;
            Streams::none()
        }
    }
}

struct Session<'a> {
    streams: Streams,
    spec: &'a JobSpec,
    signals: Signals,
    options: &'a RunOptions,
    deadline: Option<Instant>,
    job: u32,
    /// The processes of the ranks that this process started, in order.
    first: Vec<i32>,
    demands: Demands,
    /// When this process stops waiting for the daemon to end the job.
    give_up: Option<Instant>,
    ends: Vec<RankEnd>,
    spawned: Vec<NewRank>,
    crashes: Crashes,
    own: Option<Failure>,
    quiet: bool,
    sites: Sites,
}

enum Last {
    Finished(Cause, Box<JobReport>, Option<Box<Matrix>>, Option<Recording>),
    /// The daemon does not see to the job any more.
    Lost(Loss),
    Refused(Failure),
}

#[derive(Copy, Clone, Default)]
struct Ready {
    daemon: bool,
    output: bool,
}

impl Session<'_> {
    fn until_end(&mut self, daemon: &mut Daemon) -> Last {
        loop {
            let ready = self.wait(Some(daemon.connection.stream().as_fd()), self.next_deadline());
            for signal in self.signals.take() {
                self.on_signal(daemon, signal);
            }
            let now = Instant::now();
            if ready.output {
                self.streams.read_some(now);
            }
            self.streams.flush_partial(Some(now));
            if let Err(why) = self.streams.write_some() {
                self.on_sink_error(daemon, &why);
            }
            self.tell_crashes(now, false);
            self.sites.look(now);
            if self.deadline.is_some_and(|at| at <= now) {
                self.deadline = None;
                let seconds = self.options.timeout_s.unwrap_or(0);
                self.cancel(daemon, format!("it ran longer than the --timeout of {seconds} s"), code::TIMEOUT, None);
            }
            if self.give_up.is_some_and(|at| at <= now) {
                return Last::Lost(Loss::Silent);
            }
            if ready.daemon
                && let Some(last) = self.on_reply(daemon)
            {
                return last;
            }
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        [self.deadline, self.give_up, self.streams.next_prompt(), self.crashes.due(), self.sites.due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Sleep until something can be done.
    fn wait(&self, daemon: Option<BorrowedFd<'_>>, until: Option<Instant>) -> Ready {
        let mut fds: Vec<PollFd<'_>> =
            self.signals.sockets().map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
        let signals = fds.len();
        fds.extend(daemon.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let outputs = fds.len();
        if !self.streams.full() {
            fds.push(PollFd::new(self.streams.readable(), PollFlags::POLLIN));
        }
        let sinks = fds.len();
        fds.extend(self.streams.waiting().map(|sink| PollFd::new(sink.fd(), PollFlags::POLLOUT)));
        let timeout = until.map_or(PollTimeout::NONE, |at| {
            let ms = at.saturating_duration_since(Instant::now()).as_millis() + 1;
            PollTimeout::try_from(ms).unwrap_or(PollTimeout::MAX)
        });
        if poll(&mut fds, timeout).unwrap_or(0) <= 0 {
            return Ready::default();
        }
        let any = |fds: &[PollFd<'_>]| fds.iter().any(|fd| fd.any().unwrap_or(false));
        Ready { daemon: any(&fds[signals..outputs]), output: any(&fds[outputs..sinks]) }
    }

    fn on_signal(&mut self, daemon: &mut Daemon, signal: Signal) {
        match signal {
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT => {
                let what = match signal {
                    Signal::SIGINT => "interrupted (Ctrl-C)".to_string(),
                    other => format!("vmpirun got {}", other.as_str()),
                };
                self.cancel(daemon, what, 128 + signal as i32, Some(signal));
            }
            Signal::SIGTSTP => {
                // SIGTSTP itself has no effect on the ranks: their process group has no terminal.
                self.forward(daemon, Signal::SIGSTOP);
                if daemon.is_of_several_nodes() {
                    // Its threads stop with this process: let them pass it on first.
                    std::thread::sleep(Duration::from_millis(100));
                }
                let _ = nix::sys::signal::raise(Signal::SIGSTOP);
            }
            other => self.forward(daemon, other),
        }
    }

    /// Kill what is left of the job, and say why the daemon did not.
    fn end_from_here(&self, daemon: &Daemon, loss: &Loss) -> String {
        let first = (0..).zip(self.first.iter().copied());
        let ranks: Vec<(u32, i32)> =
            first.chain(self.spawned.iter().map(|spawned| (spawned.rank, spawned.pid))).collect();
        daemon::end_job(&daemon.socket, daemon.pid, loss, &Orphans { job: self.job, ranks: &ranks })
    }

    fn forward(&mut self, daemon: &mut Daemon, signal: Signal) {
        // A broken connection shows when it is read.
        let _ = daemon.connection.send(&Request::Forward { signal: signal as i32 }, &[]);
    }

    /// Ask the daemon to end the job, since a signal `by` wants it or for another reason; the second time at once, the third time do not wait for the daemon.
    fn cancel(&mut self, daemon: &mut Daemon, reason: String, code: i32, by: Option<Signal>) {
        let now = Instant::now();
        let Some(demands) = self.demands.note(now) else { return };
        let at_once = demands > 1 || by == Some(Signal::SIGQUIT);
        let grace = if demands > 1 { Duration::ZERO } else { grace(self.options.kill_after_s, by) };
        let at = now + grace + BACKSTOP;
        self.give_up = Some(if demands > 2 { now } else { self.give_up.map_or(at, |old| old.min(at)) });
        if self.own.is_none() && !self.quiet {
            self.own = Some(Failure::new(code, format!("the job was ended: {reason}")));
        }
        let (signal, grace_ms) = (if at_once { libc::SIGKILL } else { libc::SIGTERM }, grace.as_millis() as u64);
        let _ = daemon.connection.send(&Request::Cancel { reason, code, signal, grace_ms }, &[]);
    }

    fn on_sink_error(&mut self, daemon: &mut Daemon, why: &SinkError) {
        if self.demands.any() {
            return;
        }
        match why {
            SinkError::Closed(_) => {
                self.quiet = true;
                self.cancel(daemon, why.to_string(), 128 + libc::SIGPIPE, None);
            }
            SinkError::Failed { .. } => {
                self.cancel(daemon, why.to_string(), code::OWN, None);
            }
        }
    }

    fn on_reply(&mut self, daemon: &mut Daemon) -> Option<Last> {
        match daemon.connection.receive::<Reply>() {
            Ok(Some((reply, fds))) => match reply {
                Reply::Submitted { job } => self.job = job,
                Reply::Started { pids } => self.started(daemon, pids),
                Reply::Grown { ranks } => {
                    if let Err(why) = self.streams.add(&ranks, fds, self.options) {
                        self.cancel(daemon, why.sentence, code::OWN, None);
                    }
                    self.spawned.extend(ranks);
                    self.tell_debugger();
                }
                Reply::Ended { rank } => self.ends.push(rank),
                Reply::Deadlock { waits } => self.on_deadlock(daemon, *waits),
                Reply::Hang { waits, seconds } => self.on_hang(*waits, seconds),
                Reply::Crowded { rank, threads, cpus, idle } if !self.options.quiet => {
                    if let Some(note) = outcome::crowded(self.spec, (rank, threads, cpus), idle) {
                        let _ = writeln!(io::stderr(), "vmpirun: note: {note}");
                    }
                }
                Reply::HeldUp { ranks, seconds } if self.options.on_deadlock != OnDeadlock::Ignore => {
                    let reason = crate::simulate::held_up(&ranks, seconds);
                    self.cancel(daemon, reason, code::DEADLOCK, None);
                }
                Reply::Dying { dying } => {
                    let (ranks, seen) = (vec![dying.rank], crash::look(dying));
                    // Names can be found when it is gone, too.
                    let _ = daemon.connection.send(&Request::Heard { ranks }, &[]);
                    self.crashes.seen(seen, self.ends_by_crash());
                }
                Reply::Crashed { crash } => self.crashes.add(*crash, self.ends_by_crash()),
                Reply::Finished { cause, report, matrix, trace, .. } => {
                    let segment = fds.into_iter().next().map(File::from);
                    let trace = trace.zip(segment).map(|(map, segment)| Recording { map, segment });
                    return Some(Last::Finished(cause, report, matrix, trace));
                }
                Reply::Refused { reason, code } => return Some(Last::Refused(Failure::new(code, reason))),
                _ => {}
            },
            Ok(None) => return Some(Last::Lost(Loss::Closed)),
            Err(error) => return Some(Last::Lost(Loss::of(error))),
        }
        None
    }

    fn on_deadlock(&mut self, daemon: &mut Daemon, waits: JobWaits) {
        if self.options.on_deadlock == OnDeadlock::Ignore {
            return;
        }
        let why = Why::look(waits);
        let limited = why.waits.limit().is_some();
        let ends = limited || self.options.on_deadlock == OnDeadlock::Abort;
        let next = if ends { String::new() } else { why.next_steps() };
        let _ = write!(io::stderr(), "vmpirun: {}{next}", escape::lines(&why.text()));
        if limited {
            self.cancel(daemon, "memory for messages has ended".into(), code::OWN, None);
        } else if self.options.on_deadlock == OnDeadlock::Abort {
            self.cancel(daemon, "none of its ranks can go on".into(), code::DEADLOCK, None);
        }
    }

    fn on_hang(&mut self, waits: JobWaits, seconds: u64) {
        let why = Why::look(waits);
        let _ = write!(io::stderr(), "vmpirun: {}{}", escape::lines(&why.hang_text(seconds)), why.next_steps());
    }

    /// Does the job end if a rank does?
    fn ends_by_crash(&self) -> bool {
        let options = self.options;
        options.kill_on_failure && !options.recovery && options.on_crash != OnCrash::Gdb
    }

    /// Tell of ranks that have ended badly, behind what they have written.
    fn tell_crashes(&mut self, now: Instant, last: bool) {
        let Some(text) = self.crashes.news(now, last, self.options.on_crash) else { return };
        if !last {
            self.streams.read_some(now);
            self.streams.flush_partial(None);
            let _ = self.streams.write_some();
        }
        if !self.quiet {
            let _ = write!(io::stderr(), "{}", escape::lines(&text));
        }
    }

    fn started(&mut self, daemon: &mut Daemon, pids: Vec<i32>) {
        for &rank in &self.options.gdb {
            if let Some(&pid) = pids.get(rank as usize) {
                eprintln!(
                    "vmpirun: rank {rank} is stopped before its main; attach with: gdb -p {pid}   (or let it go: kill -CONT {pid})"
                );
            }
        }
        self.first = pids;
        // Pids of other nodes mean nothing here, and who waits for a debugger is not to be stopped.
        let (page, text) = (self.options.report_html.is_some(), self.options.report.is_some());
        if (page || text) && self.spec.nodes.is_none() && self.spec.stop.is_empty() {
            self.sites.begin(&self.first, !page, Instant::now());
        }
        self.tell_debugger();
        if !self.spec.stop.is_empty() && self.options.gdb.is_empty() {
            // They were stopped for the debugger, which has seen them now.
            self.forward(daemon, Signal::SIGCONT);
        }
    }

    /// Fill the table in which debuggers find the ranks.
    fn tell_debugger(&self) {
        let own = hosts::own_name();
        let started = (0..).zip(&self.first).map(|(rank, pid)| mpir::Process {
            host: self.spec.node_of(rank).unwrap_or(&own).into(),
            executable: outcome::app_of(self.spec, rank).map_or_else(String::new, |app| app.program.clone()),
            pid: *pid,
        });
        let spawned = self.spawned.iter().map(|rank| mpir::Process {
            host: rank.node.clone().unwrap_or_else(|| own.clone()),
            executable: rank.program.clone(),
            pid: rank.pid,
        });
        mpir::tell(&started.chain(spawned).collect::<Vec<_>>());
    }

    /// The job has ended well, and processes that its ranks have started go on: pass on what they write, as long as they hold the ranks' output
    /// open. A signal that ends vmpirun ends them.
    fn hear_out(&mut self, daemon: &Daemon, helpers: &[Helper]) {
        let mut note = (!self.options.quiet).then(|| Instant::now() + PATIENCE);
        while self.streams.are_open() {
            let until = [note, self.deadline, self.streams.next_prompt()].into_iter().flatten().min();
            let ready = self.wait(None, until);
            let now = Instant::now();
            if ready.output {
                self.streams.read_some(now);
            }
            self.streams.flush_partial(Some(now));
            match self.streams.write_some() {
                Ok(()) => {}
                Err(SinkError::Closed(_)) => self.quiet = true,
                Err(why) => drop(self.own.get_or_insert_with(|| Failure::own(why.to_string()))),
            }
            let signal =
                self.signals.take().into_iter().find(|signal| {
                    matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT)
                });
            let why = match signal {
                Some(Signal::SIGINT) => Some(("interrupted (Ctrl-C)".to_string(), 128 + Signal::SIGINT as i32)),
                Some(signal) => Some((format!("vmpirun got {}", signal.as_str()), 128 + signal as i32)),
                None if self.deadline.is_some_and(|at| at <= now) => Some((
                    format!("longer than the --timeout of {} s", self.options.timeout_s.unwrap_or(0)),
                    code::TIMEOUT,
                )),
                None => None,
            };
            if let Some((why, code)) = why {
                let names = outcome::processes(helpers);
                let fate = match daemon.is_of_several_nodes() {
                    true => "goes on without anybody who reads its output",
                    false => "was ended",
                };
                daemon::kill_job(&daemon.socket, self.job, &[]);
                let sentence = format!("{why}: all ranks had ended well; what they had left running {fate}: {names}");
                self.own = Some(Failure::new(code, sentence));
                return;
            }
            if self.quiet || self.own.is_some() {
                return;
            }
            if note.is_some_and(|at| at <= now) {
                note = None;
                eprintln!(
                    "vmpirun: note: all ranks have ended; what they left running still holds their output: {}",
                    outcome::processes(helpers)
                );
            }
        }
    }

    /// Every process is gone: read what the pipes still hold, and write all of it. Only signals cut this short.
    fn drain(&mut self) {
        loop {
            let read = !self.streams.full() && self.streams.read_some(Instant::now());
            if !read && !self.streams.full() {
                break;
            }
            if !self.write_until(|streams| !streams.full()) {
                return;
            }
        }
        self.streams.flush_partial(None);
        self.write_until(|streams| streams.waiting().next().is_none());
    }

    fn write_until(&mut self, done: impl Fn(&Streams) -> bool) -> bool {
        loop {
            match self.streams.write_some() {
                Ok(()) => {}
                Err(SinkError::Closed(_)) => self.quiet = true,
                Err(why) => drop(self.own.get_or_insert_with(|| Failure::own(why.to_string()))),
            }
            if done(&self.streams) {
                return true;
            }
            self.wait(None, None);
            let came = self.signals.take();
            if came
                .iter()
                .any(|signal| matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT))
            {
                self.streams.discard();
                return false;
            }
        }
    }
}
