//! The daemon answers what ranks ask for dynamic processes: spawn, ports, service names; and passes descriptors on.
//!
//! In a job of several nodes the launcher answers, which sees them all (`tools/src/nodes/coordinator.rs`): questions go there, answers come back.
//! The rank that asked waits suspended; whoever answers also wakes it, after the answer is on its way. Death story: a rank that
//! dies while it waits is forgotten when its job learns of it (`Ports::forget`); the job's end ends all waits.

use std::os::fd::{AsFd, BorrowedFd};

use vmpi_shared::agreement::{Contribution, Key};
use vmpi_shared::control::Reply;
use vmpi_shared::dynamic::{Answer, Ask, InterContexts, NewContexts, Ranks, Why};
use vmpi_shared::escape::Names;
use vmpi_shared::ports::{self, Told};
use vmpi_shared::sched;
use vmpi_shared::spawn_protocol::Step;

use crate::daemon::Daemon;
use crate::job::Job;
use crate::job::spawn_on_nodes::{Waiting, name_of};
use crate::log::debug;

/// Answers for each rank that may wait here for a death to be known: a rank has as many as it has threads.
const EARLY_ANSWERS: usize = 64;

/// Agreements for each rank of a job that may be under way at a time.
const AGREEMENTS: usize = 64;

fn denied(why: Why, reason: impl ToString) -> Answer {
    Answer::Denied { why, reason: reason.to_string() }
}

impl Job {
    /// The ranks whose failures are numbered up to `most`, in the order in which they failed.
    fn failed_ranks(&self, most: u32) -> Vec<u32> {
        let numbered = |rank: u32| Some((self.node.failure(rank).filter(|number| *number <= most)?, rank));
        let mut failed: Vec<(u32, u32)> = (0..self.ranks.len() as u32).filter_map(numbered).collect();
        failed.sort_unstable();
        failed.into_iter().map(|(_, rank)| rank).collect()
    }

    /// Are the failures that an answer tells of known to this node's ranks?
    fn knows(&self, answer: &Answer) -> bool {
        match answer {
            Answer::Agreed { failed, .. } => failed.iter().all(|rank| self.node.failure(rank).is_some()),
            _ => true,
        }
    }

    /// Decide what can be decided: who gets which answer.
    fn conclude(&mut self) -> Vec<Told> {
        if self.agreements.is_empty() {
            return Vec::new();
        }
        let mut agreements = std::mem::take(&mut self.agreements);
        let (failed, segment) = (self.failed_ranks(u32::MAX), &self.segment);
        let told = agreements.conclude(
            |rank| self.is_gone(rank),
            &failed,
            |inter, _| match inter {
                false => [segment.new_context(), 0, 0],
                true => std::array::from_fn(|_| segment.new_context()),
            },
        );
        self.agreements = agreements;
        told
    }
}

impl Daemon {
    /// Serve question `number` of `rank`.
    pub(crate) fn ask(&mut self, token: u64, id: u32, rank: u32, number: u64, ask: Ask) {
        match &ask {
            Ask::Spawn { apps, variables, .. } => {
                debug!("job {id}: rank {rank} asks to spawn {apps:?} on top of {:?}", Names(variables));
            }
            ask => debug!("job {id}: rank {rank} asks {ask:?}"),
        }
        let open_fds = self.open_fds();
        let spread = self.jobs.get(&id).is_some_and(|job| job.spec.nodes.is_some());
        if matches!(ask, Ask::Spawn { .. }) && !spread {
            self.claim_spare_cores(id);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let makes_sense =
            |ranks: &Ranks| ranks.fit(job.ranks.len() as u32) && ranks.iter().any(|member| member == rank);
        let answer = match ask {
            Ask::Pass { takers } => {
                let passed = self.clients.get_mut(&token).and_then(|client| client.channel.take_fds(1)?.pop());
                match passed {
                    Some(_) if job.passed.is_full() => {
                        let most = crate::passed::Passed::MOST;
                        denied(Why::Descriptor, format!("{most} descriptors of this job wait to be taken already"))
                    }
                    Some(passed) => {
                        job.passed.put((rank, number), passed, takers);
                        Answer::Done
                    }
                    None => denied(Why::Descriptor, "no descriptor came along"),
                }
            }
            Ask::Take { from, number: passed } => match job.passed.take((from, passed)) {
                Ok(passed) => return self.answer_with(token, id, rank, (number, Answer::Done), &[passed.as_fd()]),
                Err(error) => denied(Why::Descriptor, error),
            },
            Ask::Spawn { parent, .. } if job.spec.nodes.is_some() && !makes_sense(&parent) => {
                denied(Why::Spawn, "the group that spawns makes no sense")
            }
            Ask::Spawn { apps, parent, errhandler, .. } if job.spec.nodes.is_some() => {
                let variables = job.variables_of(rank);
                let ask = Ask::Spawn { apps, parent, errhandler, variables };
                return self.ask_launcher(id, rank, number, ask);
            }
            Ask::Spawn { apps, parent, errhandler, .. } => {
                let (answer, started) = job.grow(rank, &apps, parent, errhandler, open_fds);
                self.watch_spawned(id, &started);
                answer
            }
            Ask::Agree { context, number: agreement, groups, shrink, flag, acknowledged, .. } => {
                let fit = groups.iter().all(|group| group.fit(job.ranks.len() as u32));
                if !fit || !groups.iter().any(|group| group.iter().any(|member| member == rank)) {
                    denied(Why::Port, "the groups make no sense")
                } else {
                    let known = job.failed_ranks(acknowledged).into_iter().collect();
                    if job.spec.nodes.is_some() {
                        let ask =
                            Ask::Agree { context, number: agreement, groups, shrink, flag, acknowledged: 0, known };
                        return self.ask_launcher(id, rank, number, ask);
                    }
                    // Each of its threads waits for one.
                    if job.agreements.len() >= job.ranks.len() * AGREEMENTS {
                        return self.answer(
                            token,
                            id,
                            rank,
                            number,
                            denied(Why::Port, "too many agreements are under way"),
                        );
                    }
                    let key = Key { context, number: agreement, shrink };
                    let contribution = Contribution { number, flag, known, contexts: InterContexts::default() };
                    job.agreements.add(key, groups, rank, contribution);
                    return;
                }
            }
            Ask::Meet { ranks, .. } if !makes_sense(&ranks) => denied(Why::Port, "the group makes no sense"),
            ask => return self.ask_about_ports(id, rank, number, ask),
        };
        self.answer(token, id, rank, number, answer);
    }

    /// In a job of several nodes: let the launcher answer.
    fn ask_launcher(&mut self, id: u32, rank: u32, number: u64, ask: Ask) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // Numbered apart on each node: whose they are does not matter.
        let contexts = match ask {
            Ask::Meet { .. } | Ask::Spawn { .. } | Ask::Agree { .. } => {
                std::array::from_fn(|_| job.segment.new_context_without_cell())
            }
            _ => NewContexts::default(),
        };
        job.outbox.push((Reply::Asked { rank, number, ask, contexts }, Vec::new()));
    }

    fn ask_about_ports(&mut self, id: u32, rank: u32, number: u64, ask: Ask) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.spec.nodes.is_some() {
            return self.ask_launcher(id, rank, number, ask);
        }
        let contexts = || -> InterContexts { std::array::from_fn(|_| job.segment.new_context_without_cell()) };
        let told = ports::serve((&mut job.ports, &mut self.services), id, (rank, number), ask, contexts);
        for told in told.unwrap_or_default() {
            self.answer_rank(id, told.rank, told.number, told.answer);
        }
    }

    /// An answer to a rank, wherever it asked from: over its connection.
    pub(crate) fn answer_rank(&mut self, id: u32, rank: u32, number: u64, answer: Answer) {
        let attachment = self.jobs.get(&id).and_then(|job| job.ranks.get(rank as usize)?.attachment.as_ref());
        // A rank that is gone waits for nothing.
        if let Some(token) = attachment.and_then(|attachment| attachment.connection) {
            self.answer(token, id, rank, number, answer);
        }
    }

    /// Answer those whose agreements are decided.
    pub(crate) fn conclude(&mut self, id: u32) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        for told in job.conclude() {
            self.answer_rank(id, told.rank, told.number, told.answer);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (known, early) =
            std::mem::take(&mut job.early_answers).into_iter().partition(|(.., answer)| job.knows(answer));
        job.early_answers = early;
        for (rank, number, answer) in known {
            self.answer_rank(id, rank, number, answer);
        }
    }

    /// The launcher answers what a rank has asked. What it says of deaths is to be known here before the rank hears it.
    pub(crate) fn answered(&mut self, token: u64, id: u32, rank: u32, number: u64, answer: Answer) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let capacity = job.node.header().ranks;
        if job.member(rank).is_none() || !answer.fits(capacity) {
            let reason =
                format!("an answer to rank {rank} names ranks that job {id} cannot have (it has room for {capacity})");
            return self.refuse(token, reason, 125);
        }
        if !job.knows(&answer) {
            if job.early_answers.len() >= job.ranks.len() * EARLY_ANSWERS {
                let reason = format!("too many answers for job {id} tell of deaths that are not known here");
                return self.refuse(token, reason, 125);
            }
            return job.early_answers.push((rank, number, answer));
        }
        self.answer_rank(id, rank, number, answer);
    }

    fn answer(&mut self, token: u64, id: u32, rank: u32, number: u64, answer: Answer) {
        self.answer_with(token, id, rank, (number, answer), &[]);
    }

    fn answer_with(
        &mut self,
        token: u64,
        id: u32,
        rank: u32,
        (number, answer): (u64, Answer),
        files: &[BorrowedFd<'_>],
    ) {
        self.reply(token, &Reply::Answer { number, answer }, files);
        if let Some(job) = self.jobs.get(&id) {
            sched::wake(&job.node, rank);
        }
    }
}

impl Daemon {
    /// A step of the launcher's in starting world `world`.
    pub(crate) fn grow_spread(&mut self, id: u32, world: u32, step: Step) {
        debug!("job {id}: world {world}: {}", name_of(&step));
        let open_fds = self.open_fds();
        if let Step::Prepare { growth } = &step
            && let Some(job) = self.jobs.get(&id)
            && growth.births.iter().any(|birth| job.is_here(birth))
        {
            self.claim_spare_cores(id);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match step {
            Step::Prepare { growth } => job.prepare(world, *growth, open_fds),
            Step::Begin => {
                let started = job.begin_world(world);
                self.watch_spawned(id, &started);
            }
            Step::Commit => {
                for Waiting { token, rank, word, face, pid } in job.commit(world) {
                    if self.clients.contains_key(&token) {
                        self.attach(token, id, rank, &word, face, pid);
                    }
                }
                // Some may have ended meanwhile.
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.settle_world(world);
                }
            }
            Step::Abandon => job.abandon_world(world),
        }
    }
}
