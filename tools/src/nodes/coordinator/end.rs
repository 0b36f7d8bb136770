//! How a job of several nodes ends: which node's word is the verdict, and the last word to the session.

use super::{Coordinator, GRACE_MS, JOB};
use crate::failure::code;
use crate::nodes::start;
use crate::trace::{NodeRecording, Recording};
use nix::sys::signal::Signal;
use std::time::Instant;
use vmpi_shared::control::{Cause, CoreReport, Helper, JobReport, RegionReport, Reply, Request};
use vmpi_shared::monitor::Matrix;

/// Why the job ends: what has weighed most of what was heard; success, if nothing was.
#[derive(Default)]
pub(super) struct Verdict(Option<(Cause, i32)>);

impl Verdict {
    /// One more cause. What a rank did to end the job says more than what followed from it elsewhere, and the user's own
    /// wish says more than either; of two alike the first stays.
    fn hear(&mut self, cause: Cause, code: i32) {
        let weight = |cause: &Cause| match cause {
            Cause::Success => 0,
            Cause::RankFailed { .. }
            | Cause::Unfinished { .. }
            | Cause::Aborted { .. }
            | Cause::GroupAborted { .. } => 2,
            Cause::Cancelled { .. } => 3,
            _ => 1,
        };
        if weight(&cause) > self.0.as_ref().map_or(0, |(known, _)| weight(known)) {
            self.0 = Some((cause, code));
        }
    }

    /// A cause that counts only if nothing has been heard before.
    pub(super) fn hear_first(&mut self, cause: Cause, code: i32) {
        self.0.get_or_insert((cause, code));
    }

    fn take(&mut self) -> (Cause, i32) {
        self.0.take().unwrap_or((Cause::Success, 0))
    }
}

impl Coordinator {
    /// A node takes no part any more, without having said how its part of the job ended.
    pub(super) fn on_gone(&mut self, number: usize, why: &str) {
        self.parts[number].exchange.give_up();
        self.tracing.missed(number, why);
        self.waiting.missed(number);
        if self.parts[number].finished.is_some() {
            return;
        }
        let part = &mut self.parts[number];
        let reason = format!("node {}: {why}", part.name);
        let cause = Cause::Internal { reason };
        part.finished = Some((cause.clone(), code::OWN, Box::default()));
        self.judge(number, cause, code::OWN, true);
    }

    /// What a node's part of the job has come to: the most telling cause is the job's.
    pub(super) fn judge(&mut self, number: usize, cause: Cause, code: i32, ends: bool) {
        let name = &self.parts[number].name;
        let cause = match cause {
            // It names the other node; this says who noticed.
            Cause::Internal { reason } if !reason.starts_with("node ") => {
                Cause::Internal { reason: format!("on node {name}: {reason}") }
            }
            Cause::Shutdown => Cause::Internal { reason: format!("node {name}: its vmpid was shut down or has died") },
            Cause::LauncherDied => Cause::Internal { reason: format!("node {name}: its agent has died") },
            other => other,
        };
        let told = matches!(cause, Cause::Cancelled { .. }) && self.ending.is_some();
        if !told {
            self.verdict.hear(cause, code);
        }
        if ends && self.ending.is_none() {
            self.ending = Some(Instant::now());
            let reason = format!("it ended on node {}", self.parts[number].name);
            let signal = Signal::SIGTERM as i32;
            self.ask_all(&Request::Cancel { reason, code: code::OWN, signal, grace_ms: GRACE_MS });
        }
    }

    /// The last word to the session; true: processes that ranks have started stay.
    pub(super) fn say_end(&mut self) -> bool {
        self.is_over = true;
        let refused = self.parts.iter().find_map(|part| Some((part.name.clone(), part.refused.clone()?)));
        if let Some((name, (reason, code))) = refused.filter(|_| !self.started) {
            self.reply(&Reply::Refused { reason: format!("node {name}: {reason}"), code });
            return false;
        }
        if !self.started {
            let pids = Vec::new();
            self.reply(&Reply::Started { pids });
            for reply in std::mem::take(&mut self.early) {
                self.reply(&reply);
            }
        }
        let mut report = JobReport::default();
        for part in &mut self.parts {
            let Some((_, _, its)) = part.finished.take() else { continue };
            let JobReport { cores, rank_list, notes, faces, helpers, waits, regions, elapsed_s, findings, .. } = *its;
            report.elapsed_s = report.elapsed_s.max(elapsed_s);
            for share in waits {
                match report.waits.iter_mut().find(|known| known.call == share.call) {
                    Some(known) => known.seen_s += share.seen_s,
                    None => report.waits.push(share),
                }
            }
            report.regions.extend(regions);
            report.findings.left_out += findings.left_out;
            findings.list.into_iter().for_each(|finding| report.findings.add(finding));
            report.helpers.extend(helpers.into_iter().map(|its| Helper { node: Some(part.name.clone()), ..its }));
            report.cores.extend(cores.into_iter().map(|core| CoreReport { node: Some(part.name.clone()), ..core }));
            report.rank_list.extend(rank_list);
            report.notes.extend(notes.into_iter().map(|note| format!("node {}: {note}", part.name)));
            report.faces.extend(faces.into_iter().filter(|face| !face.is_empty()));
        }
        report.rank_list.sort_by_key(|rank| rank.rank);
        report.regions = RegionReport::together(std::mem::take(&mut report.regions));
        report.waits.sort_by(|a, b| b.seen_s.total_cmp(&a.seen_s));
        report.faces.sort();
        report.faces.dedup();
        (report.ranks, report.v, report.job) = (self.spec.ranks, self.spec.v, JOB);
        report.counters.clone_from(&self.spec.counters);
        (report.policy, report.balance) = (self.spec.policy.name().into(), self.spec.balance.name().into());
        let (cause, code) = self.verdict.take();
        let matrix = self.matrix().map(Box::new);
        let stays = matches!(cause, Cause::Success) && !report.helpers.is_empty();
        self.reply(&Reply::Finished { cause, code, report: Box::new(report), matrix, trace: None });
        stays
    }

    /// What went from rank to rank, if that was counted: each node has counted what its own ranks sent.
    fn matrix(&mut self) -> Option<Matrix> {
        let of_rank = self.spawns.of_rank();
        let counted: Vec<Option<Box<Matrix>>> = self.parts.iter_mut().map(|part| part.matrix.take()).collect();
        let core = |(rank, node): (usize, &u32)| {
            counted[*node as usize].as_ref().and_then(|its| its.placement.get(rank)).copied().unwrap_or(0)
        };
        let placement = of_rank.iter().enumerate().map(core).collect();
        let all = counted.into_iter().flatten().map(|its| *its).reduce(Matrix::with)?;
        Some(Matrix { placement, nodes: of_rank.to_vec(), ..all })
    }

    /// Close all agents' standard inputs; they end.
    pub(super) fn close(self) -> Vec<NodeRecording> {
        // The session ends this process when it has heard the last word: it must see the end of the nodes first.
        let Coordinator { parts, session, spec, .. } = self;
        let (mut children, mut recordings) = (Vec::new(), Vec::new());
        for part in parts {
            part.to.close();
            children.push(part.child);
            let recorded = match (part.map, part.records) {
                (Some(map), Some(Ok(segment))) => Ok(Recording { map, segment }),
                (Some(_), Some(Err(error))) => Err(format!("it cannot be kept: {error}")),
                _ => Err("it went with the node, or its vmpid".to_string()),
            };
            recordings.push(NodeRecording { name: part.name, offset: part.exchange.offset(), recorded });
        }
        start::end(&mut children);
        drop(session);
        recordings.truncate(if spec.trace { recordings.len() } else { 0 });
        recordings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::Ended;

    #[test]
    fn the_cause_that_says_most_is_the_verdict() {
        let lost = || Cause::Internal { reason: "node b: it is gone".into() };
        let rank =
            || Cause::RankFailed { rank: 1, pid: 7, ended: Ended::Exited(3), finalized: false, initialized: true };
        let cancelled = || Cause::Cancelled { reason: "^C".into(), code: 130 };
        let judged = |causes: &[(Cause, i32)]| {
            let mut verdict = Verdict::default();
            causes.iter().for_each(|(cause, code)| verdict.hear(cause.clone(), *code));
            verdict.take().1
        };
        assert_eq!(judged(&[]), 0);
        assert_eq!(judged(&[(Cause::Success, 0), (lost(), 125)]), 125);
        assert_eq!(judged(&[(lost(), 125), (rank(), 3), (Cause::Success, 0)]), 3);
        assert_eq!(judged(&[(rank(), 3), (lost(), 125), (rank(), 4)]), 3);
        assert_eq!(judged(&[(rank(), 3), (cancelled(), 130), (rank(), 4)]), 130);
        let mut verdict = Verdict::default();
        verdict.hear(lost(), 125);
        verdict.hear_first(cancelled(), 130);
        assert_eq!(verdict.take().1, 125);
    }
}
