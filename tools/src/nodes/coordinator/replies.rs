//! What the nodes' daemons say, and what the coordinator makes of it.

use super::super::frames::{FromNode, ToNode};
use super::{Coordinator, JOB, Part, cores_of};
use std::net::SocketAddr;
use vmpi_shared::control::{Cause, JobReport, Reply, Request};
use vmpi_shared::dynamic::{Ask, NewContexts};
use vmpi_shared::ports;

impl Coordinator {
    pub(super) fn on_word(&mut self, number: usize, said: FromNode) {
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
            Reply::Listening { port, capacity } => self.on_listening(number, port, capacity),
            Reply::Started { pids } => self.on_started(number, pids),
            Reply::Asked { rank, number, ask, contexts } => self.on_asked(rank, number, ask, contexts),
            Reply::Grew { world, stage, error } => {
                let orders = self.spawns.heard(number, world, stage, error);
                self.carry_out(orders);
            }
            Reply::Vacant { rank } => self.spawns.vacant(rank),
            Reply::Idle { world } => self.parts[number].idle = Some(world),
            Reply::Ended { rank } => {
                self.ports.forget(rank.rank);
                self.spawns.ended(rank.rank);
                let told = self.agreement.ended(&rank);
                self.answer(told);
                let reply = Reply::Ended { rank };
                match self.started {
                    true => self.reply(&reply),
                    false => self.early.push(reply),
                }
            }
            Reply::Finished { cause, code, report, matrix, trace } => {
                (self.parts[number].matrix, self.parts[number].map) = (matrix, trace);
                self.on_finished(number, cause, code, report);
            }
            Reply::GroupEnded { group, cause, code } => {
                for other in (0..self.parts.len()).filter(|other| *other != number) {
                    let (group, cause) = (group.clone(), cause.clone());
                    self.tell(other, &ToNode::Ask { request: Request::EndGroup { group, cause, code } });
                }
            }
            // Of all nodes, once.
            Reply::Crowded { .. } if self.crowd_told => {}
            Reply::Crowded { .. } => {
                self.crowd_told = true;
                self.reply(&reply);
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

    /// A node's carrier can be reached; when all can, they are told of each other.
    fn on_listening(&mut self, number: usize, port: u16, capacity: u32) {
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

    /// A node's ranks run; when all nodes' do, the session hears it.
    fn on_started(&mut self, number: usize, pids: Vec<i32>) {
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
            let orders = self.spawns.open(&cores, capacity);
            self.carry_out(orders);
        }
    }

    /// A rank asks what only the whole job knows.
    fn on_asked(&mut self, rank: u32, number: u64, ask: Ask, contexts: NewContexts) {
        match self.spawns.ask(rank, number, ask, contexts) {
            Ok(orders) => self.carry_out(orders),
            Err(ask) => {
                let [contexts @ .., _] = contexts;
                let known = (&mut self.ports, &mut self.services);
                let told = ports::serve(known, JOB, (rank, number), ask, || contexts);
                let told = told.unwrap_or_else(|ask| self.agreement.serve((rank, number), ask, contexts));
                self.answer(told);
            }
        }
    }

    fn on_finished(&mut self, number: usize, cause: Cause, code: i32, report: Box<JobReport>) {
        if self.spec.trace {
            self.compare_clocks(number);
        }
        self.tracing.missed(number, "its part of the job is over");
        self.waiting.missed(number);
        self.parts[number].finished = Some((cause.clone(), code, report));
        let a_rank_failed =
            matches!(cause, Cause::RankFailed { .. } | Cause::Unfinished { .. } | Cause::GroupAborted { .. });
        let goes_on = matches!(cause, Cause::Success) || (!self.spec.kill_on_failure && a_rank_failed);
        self.judge(number, cause, code, !goes_on);
    }

    /// Pids in the order of ranks, if all nodes have told theirs.
    fn pids_by_rank(&self) -> Option<Vec<i32>> {
        let nodes = self.spec.nodes.as_ref()?;
        let mut of_node: Vec<std::slice::Iter<i32>> =
            self.parts.iter().map(|part| part.pids.as_ref().map(|pids| pids.iter())).collect::<Option<_>>()?;
        Some(nodes.of_rank.iter().map(|node| of_node[*node as usize].next().copied().unwrap_or(0)).collect())
    }
}
