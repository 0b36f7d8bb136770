//! The daemon answers what ranks ask for dynamic processes: spawn, ports, service names.
//!
//! The rank that asked waits suspended; whoever answers also wakes it, after the answer is on its way. Death story: a rank that
//! dies while it waits is forgotten when its job learns of it (`Ports::forget`); the job's end ends all waits.

use vmpi_shared::control::Reply;
use vmpi_shared::dynamic::{Answer, Ask, InterContexts, Why};
use vmpi_shared::sched;

use crate::agreement::{Contribution, Key};
use crate::daemon::Daemon;
use crate::debug;
use crate::ports::{PortError, Visitor};

/// A published service.
pub struct Service {
    pub port: String,
    /// The job that published it.
    pub job: u32,
}

fn denied(why: Why, reason: impl ToString) -> Answer {
    Answer::Denied { why, reason: reason.to_string() }
}

impl From<PortError> for Answer {
    fn from(error: PortError) -> Answer {
        denied(Why::Port, error)
    }
}

impl Daemon {
    /// Serve question `number` of `rank`.
    pub(crate) fn ask(&mut self, token: u64, id: u32, rank: u32, number: u64, ask: Ask) {
        debug!("job {id}: rank {rank} asks {ask:?}");
        let open_fds = self.open_fds();
        if matches!(ask, Ask::Spawn { .. }) {
            self.claim_spare_cores(id);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let answer = match ask {
            Ask::Spawn { apps, parent, errhandler } => {
                let (answer, started) = job.grow(rank, &apps, parent, errhandler, open_fds);
                self.watch_spawned(id, &started);
                answer
            }
            Ask::OpenPort => Answer::Port { port: job.ports.open() },
            Ask::ClosePort { port } => match job.ports.close(&port) {
                Ok(waiting) => {
                    for visitor in waiting {
                        self.answer(visitor.token, id, visitor.root, visitor.number, PortError::NotOpen.into());
                    }
                    Answer::Done
                }
                Err(error) => error.into(),
            },
            Ask::Publish { service, port } => self.publish(id, service, port),
            Ask::Unpublish { service, port } => match self.services.get(&service) {
                Some(known) if known.job == id && known.port == port => {
                    self.services.remove(&service);
                    Answer::Done
                }
                Some(_) => denied(Why::Service, format!("\"{service}\" is published with another port")),
                None => denied(Why::Service, format!("\"{service}\" is not published")),
            },
            Ask::Lookup { service } => match self.services.get(&service) {
                Some(known) => Answer::Port { port: known.port.clone() },
                None => denied(
                    Why::Name,
                    format!("\"{service}\" is not published (names are known within one job of vmpirun, or one vmpid)"),
                ),
            },
            Ask::Agree { context, number: agreement, groups, shrink, flag, acknowledged } => {
                let fit = groups.iter().all(|group| group.fit(job.ranks.len() as u32));
                if !fit || !groups.iter().any(|group| group.iter().any(|member| member == rank)) {
                    denied(Why::Port, "the groups make no sense")
                } else {
                    let key = Key { context, number: agreement, shrink };
                    job.agreements.add(key, groups, rank, Contribution { token, number, flag, acknowledged });
                    return;
                }
            }
            Ask::Meet { port, accept, ranks } => {
                if !ranks.fit(job.ranks.len() as u32) || !ranks.iter().any(|member| member == rank) {
                    denied(Why::Port, "the group makes no sense")
                } else {
                    let visitor = Visitor { accepts: accept, ranks, root: rank, token, number };
                    match self.meet(id, &port, &visitor) {
                        Some(answer) => answer,
                        None => return,
                    }
                }
            }
        };
        self.answer(token, id, rank, number, answer);
    }

    fn publish(&mut self, id: u32, service: String, port: String) -> Answer {
        if self.services.contains_key(&service) {
            return denied(Why::Service, format!("\"{service}\" is published already"));
        }
        self.services.insert(service, Service { port, job: id });
        Answer::Done
    }

    /// The answer to a visitor of a port; `None`: it waits.
    fn meet(&mut self, id: u32, port: &str, visitor: &Visitor) -> Option<Answer> {
        let job = self.jobs.get_mut(&id)?;
        let other = match job.ports.meet(port, visitor) {
            Ok(other) => other?,
            Err(error) => return Some(error.into()),
        };
        let contexts: InterContexts = std::array::from_fn(|_| job.segment.new_context_without_cell());
        let met = Answer::Met { ranks: visitor.ranks.clone(), contexts };
        self.answer(other.token, id, other.root, other.number, met);
        Some(Answer::Met { ranks: other.ranks, contexts })
    }

    /// Answer those whose agreements are decided.
    pub(crate) fn conclude(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        for (rank, contribution, answer) in job.conclude() {
            self.answer(contribution.token, id, rank, contribution.number, answer);
        }
    }

    fn answer(&mut self, token: u64, id: u32, rank: u32, number: u64, answer: Answer) {
        self.reply(token, &Reply::Answer { number, answer }, &[]);
        if let Some(job) = self.jobs.get(&id) {
            sched::wake(&job.node, rank);
        }
    }

    /// A job is over: what it published goes with it.
    pub(crate) fn withdraw(&mut self, job: u32) {
        self.services.retain(|_, service| service.job != job);
    }
}
