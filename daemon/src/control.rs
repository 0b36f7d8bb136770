//! The server's side of the control protocol: who may ask what, and the answers.
//!
//! What clients say is checked before it is used; a client may be anything. By message, what is bounded, and where that is looked at (frames by role, descriptors, turns
//! and what is not read: `clients`; `daemon/tests/hostile.rs` and `fuzz/` send what breaks the bounds):
//!
//! | message | field: bound | where |
//! |---|---|---|
//! | `hello` | frame: 4 KiB; `protocol`: this one | `clients::most_bytes`, `hello` |
//! | `submit` | `ranks`, `apps`, `cpus`, `placement`, `stdin`, `stop`, `fds`, `nodes`: each other, `MOST_*`; memory, files and processes: the machine | `limits::check_spec`, `check_machine` |
//! | `fds` | `count`: those that have come; in all: `spec.fds` | `Channel::take_fds`, `descriptors` |
//! | `cancel`, `forward`, `signal` | `signal`: one of the system's; `grace_ms`: a day; `rank`: `Job::member` | `serve`, `job::end::send`, `signal_rank` |
//! | `attach` | `rank`: `Job::member`; `word`: the job's; the process: no other rank's, by its descent | `attach`, `Job::attach` |
//! | `abort`, `end_group` | `group`: ranks of the job, no more than there are; `reason`: 64 KiB | `spares_somebody`, `end_group`, `clip` |
//! | `ask` spawn | `parent`: ranks of the job, the asking one among them; `apps`, `candidates`, `counts`: 4096; ranks: the room left | `try_to_grow`, `choose_counts` |
//! | `ask` agree | `groups`: as `parent`; under way: 64 for each rank | `ask` |
//! | `ask` meet, ports, names | `ranks`: as `parent`; ports, visitors, names: 65536; a name: 4 KiB | `ask`, `ports` |
//! | `ask` pass, take | kept: 1024; `from`, `number`: looked up | `passed` |
//! | `answered` | `rank`: `Job::member`; ranks of `answer`: the job's room; kept: 64 for each rank | `answered`, `Answer::fits` |
//! | `grow` prepare | `world`, its ranks, `births`: each other, the room, the nodes, the programs, nobody who runs | `Growth::check` |
//! | `grow` begin, commit, abandon; `enrolled` | `world`: the one under way | `spread` |
//! | `wire` | `table`: a row for each node | `carrier::serve` |
//! | `heard` | `ranks`: `Job::member`, no more than there are | `dying_heard` |
//! | `carry` | the process: the one that was started for that; one at a time | `carry` |
//! | `listening`, `wired`, `lost`, `drained` | text: 64 KiB | `serve`, `clip` |
//! | `logs`, `show`, `why`, `matrix`, `trace`, `kill` | `job`: looked up | `serve`, `about_job` |
//! | `waits_part`, `trace_part`, `tool_told` | `number`, `tool`: given back, looked up; `files`: as `fds` | `serve`, `tool_told` |
//! | `finalized`, `conclude`, `jobs`, `shutdown` | nothing | |

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use vmpi_shared::check::CheckBoard;
use vmpi_shared::control::{Cause, JobSpec, NodeMap, PROTOCOL, Reply, Request};
use vmpi_shared::mem::bell::{Bell, Chime};
use vmpi_shared::simulate::SimulationSegment;

use crate::client::Role;
use crate::connection::SendError;
use crate::daemon::Daemon;
use crate::job::{self, AttachError, Job, Place};
use crate::log::{self, debug};
use crate::reap;

/// A day: nobody waits longer for ranks to end that have been told to.
const MOST_GRACE_MS: u64 = 24 * 3600 * 1000;

/// The longest sentence of a client's that anybody reads.
const MOST_TEXT_BYTES: usize = 64 << 10;

/// What a client says in words: as much as is read of it.
fn clip(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MOST_TEXT_BYTES));
    text
}

/// The message's type as it is written on the wire; what it carries (an environment) is not for messages.
fn name_of(request: &Request) -> String {
    let value = serde_json::to_value(request).unwrap_or_default();
    value.get("type").and_then(|name| name.as_str()).unwrap_or("?").to_owned()
}

impl Daemon {
    /// Answer one request of connection `token`.
    pub(crate) fn serve(&mut self, token: u64, request: Request) {
        let Some(client) = self.clients.get(&token) else { return };
        let (role, peer, waits) = (client.role, client.channel.peer(), client.waits_for.is_some());
        if let Role::Rank(id, rank) = role
            && !self.speaks_for(token, id, rank)
        {
            // The last words of a process whose number in the job belongs to another one by now.
            return;
        }
        match role {
            Role::Stranger => match request {
                Request::Hello { version, protocol } => self.hello(token, &clip(version), protocol),
                _ => self.refuse(token, "the first message must be hello".into(), 125),
            },
            Role::Tool => self.serve_tool(token, request, peer.pid, waits),
            Role::Launcher(None) => self.serve_launcher_without_job(token, request),
            Role::Launcher(Some(id)) => self.serve_launcher(token, id, request),
            Role::Carrier(id) => self.serve_carrier(token, id, request),
            Role::Rank(id, rank) => self.serve_rank(token, id, rank, request),
        }
    }

    /// What anybody may ask who has said hello.
    fn serve_anybody(&mut self, token: u64, role: Role, request: &Request) {
        match request {
            Request::Jobs => {
                let jobs = self.jobs.values().map(Job::report).collect();
                self.reply(token, &Reply::Jobs { jobs }, &[]);
            }
            Request::Show { job } => self.about_job(token, *job, |job| Reply::Show { job: Box::new(job.report()) }),
            request => {
                let reason = format!("a message of type {} makes no sense from {role}", name_of(request));
                self.refuse(token, reason, 125);
            }
        }
    }

    /// `waits`: its question before has no answer yet.
    fn serve_tool(&mut self, token: u64, request: Request, pid: i32, waits: bool) {
        match request {
            Request::Submit { spec } => self.submit(token, *spec),
            Request::Logs { job } => self.reply(token, &Reply::Logs { lines: crate::log::kept(job) }, &[]),
            Request::Carry { job } => self.carry(token, job, pid),
            Request::Attach { job, rank, word, face } => {
                debug!("job {job}: process {pid} attaches as rank {rank}");
                self.attach(token, job, rank, &word, clip(face), pid);
            }
            // What it asks goes to a job's launcher, which must not be kept busy with it.
            Request::Why { .. } | Request::Trace { .. } if waits => {
                self.refuse(token, "the question before is not answered yet".into(), 125);
            }
            Request::Why { job, here } => {
                let spread = self.jobs.get_mut(&job).filter(|job| !here && job.spec.nodes.is_some());
                match (spread, self.clients.get_mut(&token)) {
                    (Some(spread), Some(client)) => {
                        client.waits_for = Some(job);
                        spread.ask_all_who_waits(token);
                    }
                    _ => self.about_job(token, job, |job| Reply::Why { waits: Box::new(job.waits()) }),
                }
            }
            Request::Matrix { job, on } => self.about_job(token, job, |job| {
                if let Some(on) = on {
                    job.set_monitored(on);
                }
                Reply::Matrix { matrix: Box::new(job.matrix()) }
            }),
            Request::Trace { job: id, ask, path } => {
                let Some(job) = self.jobs.get_mut(&id) else {
                    return self.about_job(token, id, |_| Reply::Done);
                };
                if job.spec.nodes.is_some() {
                    if let Some(client) = self.clients.get_mut(&token) {
                        client.waits_for = Some(id);
                    }
                    return job.ask_all_for_trace(token, ask, path);
                }
                let (reply, files) = job.trace(ask);
                let fds: Vec<BorrowedFd> = files.iter().map(AsFd::as_fd).collect();
                self.reply(token, &reply, &fds);
            }
            Request::Signal { job, rank, signal } => self.about_job(token, job, |job| match rank {
                None => {
                    job.signal_all(signal);
                    Reply::Done
                }
                Some(rank) if job.signal_rank(rank, signal) => Reply::Done,
                Some(rank) => Reply::Refused { reason: format!("rank {rank} of job {} does not run", job.id), code: 1 },
            }),
            Request::Kill { job } => self.about_job(token, job, |job| {
                let reason = "by vmpictl kill".into();
                job.end(Cause::Cancelled { reason, code: 143 }, 143, libc::SIGTERM, job::SHUTDOWN_GRACE);
                Reply::Done
            }),
            Request::Shutdown => {
                self.reply(token, &Reply::ShuttingDown, &[]);
                self.drain("asked to");
            }
            request => self.serve_anybody(token, Role::Tool, &request),
        }
    }

    /// A launcher that has none yet, or whose job was over before it knew.
    fn serve_launcher_without_job(&mut self, token: u64, request: Request) {
        match request {
            Request::Submit { spec } => self.submit(token, *spec),
            // Of a job that was refused: they come behind and are closed.
            Request::Fds { count } => {
                if let Some(client) = self.clients.get_mut(&token) {
                    drop(client.channel.take_fds(count as usize));
                }
            }
            Request::Cancel { .. }
            | Request::Forward { .. }
            | Request::Wire { .. }
            | Request::Answered { .. }
            | Request::Grow { .. }
            | Request::EndGroup { .. }
            | Request::TracePart { .. }
            | Request::WaitsPart { .. }
            | Request::Heard { .. }
            | Request::Conclude => {}
            Request::ToolTold { tool, reply, files } => self.tool_told(token, tool, &reply, files),
            request => self.serve_anybody(token, Role::Launcher(None), &request),
        }
    }

    fn serve_launcher(&mut self, token: u64, id: u32, request: Request) {
        match request {
            Request::Fds { count } => return self.descriptors(token, id, count),
            Request::Answered { rank, number, answer } => return self.answered(token, id, rank, number, answer),
            Request::Grow { world, step } => return self.grow_spread(id, world, step),
            Request::ToolTold { tool, reply, files } => return self.tool_told(token, tool, &reply, files),
            _ => {}
        }
        match (request, self.jobs.get_mut(&id)) {
            (Request::Cancel { reason, code, signal, grace_ms }, Some(job)) => {
                let cause = Cause::Cancelled { reason: clip(reason), code };
                job.end(cause, code, signal, Duration::from_millis(grace_ms.min(MOST_GRACE_MS)));
            }
            (Request::Forward { signal }, Some(job)) => job.signal_all(signal),
            (Request::Wire { table }, Some(job)) => job.tell_carrier(Reply::Wire { table }),
            (Request::Conclude, Some(job)) => job.conclude_spread(),
            (Request::EndGroup { group, cause, code }, Some(job)) => job.end_group(&group, cause, code),
            (Request::Heard { ranks }, Some(job)) => job.dying_heard(&ranks),
            (Request::WaitsPart { number }, Some(job)) => job.waits_part(number),
            (Request::TracePart { number, ask }, Some(job)) => job.trace_part(number, ask),
            // The job is over.
            (
                Request::Cancel { .. }
                | Request::Forward { .. }
                | Request::Wire { .. }
                | Request::Conclude
                | Request::EndGroup { .. }
                | Request::Heard { .. }
                | Request::WaitsPart { .. }
                | Request::TracePart { .. },
                None,
            ) => {}
            (request, _) => self.serve_anybody(token, Role::Launcher(Some(id)), &request),
        }
    }

    fn serve_carrier(&mut self, token: u64, id: u32, request: Request) {
        let job = self.jobs.get_mut(&id);
        match (request, job) {
            (Request::Listening { port }, Some(job)) => {
                let capacity = job.node.header().ranks;
                job.outbox.push((Reply::Listening { port, capacity }, Vec::new()));
            }
            (Request::Enrolled { world, error }, Some(job)) => job.enrolled(world, error),
            (Request::Wired { by }, Some(job)) => job.carrier_wired(clip(by)),
            (Request::Lost { reason }, Some(job)) => job.carrier_lost(Some(clip(reason))),
            (Request::Drained, Some(job)) => job.carrier_drained(),
            // The job is over.
            (
                Request::Listening { .. }
                | Request::Enrolled { .. }
                | Request::Wired { .. }
                | Request::Lost { .. }
                | Request::Drained,
                None,
            ) => {}
            (request, _) => self.serve_anybody(token, Role::Carrier(id), &request),
        }
    }

    fn serve_rank(&mut self, token: u64, id: u32, rank: u32, request: Request) {
        match request {
            Request::Finalized => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.finalized(rank);
                }
            }
            Request::Abort { code, reason, group } => {
                // It may fail over the death of another, which counts as the cause.
                self.reap();
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.aborted(rank, code, clip(reason), group);
                }
            }
            Request::Ask { number, ask } => self.ask(token, id, rank, number, ask),
            Request::CheckBoard => self.check_board(token, id),
            Request::Found { finding } => {
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.findings.hear(*finding, job.ranks.len() as u32);
                }
            }
            request => self.serve_anybody(token, Role::Rank(id, rank), &request),
        }
    }

    /// The launcher of a job of several nodes answers a tool of this node, which may be gone.
    fn tool_told(&mut self, token: u64, tool: u64, reply: &Reply, files: u32) {
        let Some(files) = self.clients.get_mut(&token).and_then(|client| client.channel.take_fds(files as usize))
        else {
            return self.refuse(token, format!("{files} descriptors were announced but did not come"), 125);
        };
        if self.clients.get_mut(&tool).and_then(|client| client.waits_for.take()).is_some() {
            let fds: Vec<BorrowedFd> = files.iter().map(AsFd::as_fd).collect();
            self.reply(tool, reply, &fds);
        }
    }

    /// Tools that wait for what only the launcher of job `id`, which is over here, could have told.
    pub(crate) fn let_go_of_tools(&mut self, id: u32) {
        let waiting = self.clients.iter().filter(|(_, client)| client.waits_for == Some(id));
        let tokens: Vec<u64> = waiting.map(|(token, _)| *token).collect();
        for token in tokens {
            let reason = format!("job {id} has ended meanwhile on this node");
            self.reply(token, &Reply::Refused { reason, code: 1 }, &[]);
            if let Some(client) = self.clients.get_mut(&token) {
                client.waits_for = None;
            }
        }
    }

    /// Answer a question about a job.
    fn about_job(&mut self, token: u64, id: u32, answer: impl FnOnce(&mut Job) -> Reply) {
        let reply = match self.jobs.get_mut(&id) {
            Some(job) => answer(job),
            None => Reply::Refused { reason: format!("there is no job {id}"), code: 2 },
        };
        self.reply(token, &reply, &[]);
    }

    /// Is connection `token` that of the process which is `rank` now?
    fn speaks_for(&self, token: u64, id: u32, rank: u32) -> bool {
        let attachment = self.jobs.get(&id).and_then(|job| job.ranks.get(rank as usize)?.attachment.as_ref());
        attachment.is_none_or(|attachment| attachment.connection == Some(token))
    }

    fn hello(&mut self, token: u64, version: &str, protocol: u32) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let (peer, own) = (client.channel.peer(), nix::unistd::geteuid().as_raw());
        if peer.uid != own && peer.uid != 0 {
            let reason = format!("this vmpid serves user {own}, not user {}", peer.uid);
            self.refuse(token, reason, 125);
            return;
        }
        if protocol != PROTOCOL {
            let reason = format!(
                "this vmpid (pid {}) is version {} with protocol {PROTOCOL}, but you are version {version} with protocol \
                 {protocol}; end it (kill {0}) and try again",
                std::process::id(),
                env!("CARGO_PKG_VERSION"),
            );
            self.refuse(token, reason, 125);
            return;
        }
        client.role = Role::Tool;
        let version = env!("CARGO_PKG_VERSION").into();
        self.reply(token, &Reply::Hello { version, protocol: PROTOCOL, pid: std::process::id() as i32 }, &[]);
    }

    fn submit(&mut self, token: u64, spec: JobSpec) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let peer = client.channel.peer();
        client.role = Role::Launcher(None);
        self.turns.no_guest(token);
        if self.draining.is_some() {
            let reply = Reply::Refused { reason: "this vmpid is shutting down; try again".into(), code: 125 };
            self.reply(token, &reply, &[]);
            return;
        }
        let place = Place {
            calibration: self.calibration.clone(),
            hand_over: self.switching.hand_over,
            patience: self.switching.patience(),
            socket: self.dir.socket().to_string_lossy().into_owned(),
            name: self.name.clone(),
            allowed_cpus: crate::limits::allowed_cpus(),
            open_fds: self.open_fds(),
        };
        let (id, claim) = self.numbers.take();
        match Job::new(id, spec, peer, token, &place) {
            Ok(mut job) => {
                self.begun += 1;
                job.number = claim;
                debug!(
                    "job {id}: {} ranks of {} for vmpirun (pid {})",
                    job.spec.ranks, job.spec.apps[0].program, peer.pid
                );
                if job.carrier.is_some() {
                    crate::time_slice::ask_short();
                }
                if job.carrier.is_some() {
                    job.carrier_started(crate::carrier::start(&place.socket, id));
                }
                self.has_children |= job.carrier.is_some();
                self.add_job(id, job);
                if let Some(client) = self.clients.get_mut(&token) {
                    client.role = Role::Launcher(Some(id));
                }
                self.update_status();
            }
            Err(error) => {
                self.numbers.take_back();
                let reply = Reply::Refused { reason: error.to_string(), code: error.code() };
                self.reply(token, &reply, &[]);
            }
        }
    }

    fn descriptors(&mut self, token: u64, id: u32, count: u32) {
        let fds = self.clients.get_mut(&token).and_then(|client| client.channel.take_fds(count as usize));
        match (fds, self.jobs.get_mut(&id)) {
            (Some(fds), Some(job)) => {
                let (come, announced) = (job.fds.len() + fds.len(), job.spec.fds);
                if job.phase == job::Phase::Collecting && come > announced as usize {
                    let reason = format!("{come} descriptors came for a job that has announced {announced}");
                    return self.refuse(token, reason, 125);
                }
                job.add_fds(fds);
            }
            (None, _) => self.refuse(token, format!("{count} descriptors were announced but did not come"), 125),
            (Some(_), None) => {}
        }
    }

    pub(crate) fn attach(&mut self, token: u64, id: u32, rank: u32, word: &str, face: String, pid: i32) {
        // What a process says it is must not be what it cannot be.
        let above = self.rank_above(pid).filter(|above| *above != (id, rank));
        if let Some((its_job, its_rank)) = above {
            let reason = format!(
                "process {pid} was started by rank {its_rank} of job {its_job}, and cannot be rank {rank} of job {id}"
            );
            return self.refuse(token, reason, 125);
        }
        let Some(job) = self.jobs.get_mut(&id) else {
            self.refuse(token, format!("there is no job {id} (it may have ended)"), 125);
            return;
        };
        if job.keep_waiting(token, rank, word, &face, pid) {
            return;
        }
        let attached = job.attach(rank, word, face, pid, token);
        if let Err(AttachError::Taken { pid: of, .. }) = attached
            && reap::ancestors(pid).any(|above| above == of)
        {
            debug!(
                "job {id}: process {pid} was started by the MPI process {of} of rank {rank}, and is a program of its own"
            );
            return self.reply(token, &Reply::Apart { of }, &[]);
        }
        if let Err(error) = attached {
            self.refuse(token, error.to_string(), 125);
            return;
        }
        let entry = &job.ranks[rank as usize];
        let world = job.world_of(rank);
        let reply = Reply::Attached {
            job: id,
            rank,
            ranks: world.ranks.len() as u32,
            appnum: entry.appnum,
            universe: job.universe(&world),
            world,
            nodes: job.spec.nodes.as_ref().map(|nodes| NodeMap {
                identity: nodes.identity,
                names: nodes.names.clone(),
                of_rank: nodes.of_rank.clone(),
            }),
        };
        if let Some(client) = self.clients.get_mut(&token) {
            client.role = Role::Rank(id, rank);
            self.turns.no_guest(token);
        }
        self.watch_attached(id, rank);
        let Some((job, client)) = self.jobs.get(&id).zip(self.clients.get_mut(&token)) else { return };
        let mut fds = vec![job.node.fd(), job.segment.fd()];
        fds.extend(job.node.bell().map(Bell::fd));
        fds.extend(job.node.pids_fd());
        fds.extend(job.simulation.as_ref().map(SimulationSegment::fd));
        fds.extend(job.node.carrier_bell().into_iter().flat_map(Chime::fds));
        let sent = client.channel.send(&reply, &fds);
        self.sent(token, sent);
    }

    /// A rank wants to compare its collective calls with others': the first one's wish makes the board.
    fn check_board(&mut self, token: u64, id: u32) {
        let Some((job, client)) = self.jobs.get_mut(&id).zip(self.clients.get_mut(&token)) else { return };
        if job.check_board.is_none() {
            match CheckBoard::create() {
                Ok(board) => job.check_board = Some(board),
                Err(error) => return self.refuse(token, format!("no memory for --check: {error}"), 125),
            }
        }
        let fds: Vec<_> = job.check_board.as_ref().map(CheckBoard::fd).into_iter().collect();
        let sent = client.channel.send(&Reply::CheckBoard, &fds);
        self.sent(token, sent);
    }

    /// The carrier of a job presents itself.
    fn carry(&mut self, token: u64, id: u32, pid: i32) {
        let known = self.jobs.get_mut(&id).filter(|job| job.is_carried_by(pid));
        let Some((job, client)) = known.zip(self.clients.get_mut(&token)) else {
            return self.refuse(token, format!("process {pid} carries nothing for job {id}"), 125);
        };
        let (Some(nodes), Some(carrier), Some(bell)) =
            (job.spec.nodes.clone(), &mut job.carrier, job.node.carrier_bell())
        else {
            return self.refuse(token, format!("job {id} has one node only"), 125);
        };
        if carrier.connection.is_some() {
            return self.refuse(token, format!("job {id} has its carrier already"), 125);
        }
        carrier.connection = Some(token);
        client.role = Role::Carrier(id);
        self.turns.no_guest(token);
        let segments = [job.node.fd(), job.segment.fd()].into_iter().chain(job.node.pids_fd());
        let fds: Vec<BorrowedFd> = segments.chain(bell.fds()).chain(bell.own_fd()).collect();
        let sent = client.channel.send(&Reply::Carrying { nodes }, &fds);
        self.sent(token, sent);
    }

    /// Say no, and close when that has been said.
    pub(crate) fn refuse(&mut self, token: u64, reason: String, code: i32) {
        debug!("connection {token} refused: {reason}");
        if let Some(client) = self.clients.get_mut(&token) {
            client.closing = true;
        }
        self.reply(token, &Reply::Refused { reason, code }, &[]);
    }

    /// Send a message; a peer that is gone is closed.
    pub(crate) fn reply(&mut self, token: u64, reply: &Reply, fds: &[BorrowedFd]) {
        let Some(client) = self.clients.get_mut(&token) else { return };
        let sent = client.channel.send(reply, fds);
        self.sent(token, sent);
    }

    fn sent(&mut self, token: u64, sent: Result<(), SendError>) {
        match sent {
            Ok(()) => self.flush(token),
            Err(error) => {
                match (&error, self.clients.get(&token)) {
                    (SendError::Unread(_), Some(client)) => {
                        let (role, pid) = (client.role, client.channel.peer().pid);
                        log::line(&format!("the connection of {role} (pid {pid}) is closed: {error}"));
                    }
                    _ => debug!("connection {token}: {error}"),
                }
                self.close(token);
            }
        }
    }
}
