//! Who waits for whom on all nodes, and does everybody?
//!
//! Each node says when its ranks have been found still (`daemon/src/deadlock.rs`), and how many frames its carrier had sent to others, and acted on, by then. When all
//! have said so, and all that was sent has been acted on, each is asked once more. Nodes that all answer the same have all been as they were between their word and their
//! answer. All words came before the first question: so there was a moment in which every rank waited and nothing was on its way, and nothing
//! will ever change that. (Counts of one moment alone would prove nothing: a frame may be sent behind the back of one that has been asked and act where another is yet to be.)
//!
//! Death story: a node that dies ends the job; one that does not answer is missing in what a tool is told, and nothing is proven; a tool that is gone is no concern here.

use super::Coordinator;
use std::time::{Duration, Instant};
use vmpi_shared::control::{Reply, Request};
use vmpi_shared::waits::{JobWaits, Still, WaitKind};

/// A node that has not answered for so long is missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node's answer.
struct Heard {
    still: Option<Still>,
    waits: Option<JobWaits>,
}

struct Question {
    since: Instant,
    /// What is true of all nodes if nothing has changed.
    claim: Option<Vec<Still>>,
    heard: Vec<Option<Heard>>,
    /// Who else wants to know: their nodes, and their numbers there.
    tools: Vec<(usize, u64)>,
}

#[derive(Default)]
pub(super) struct Waiting {
    /// The nodes' last words, unless they are known to hold no more.
    still: Vec<Option<Still>>,
    /// Of the question that is asked, or was last.
    number: u64,
    question: Option<Question>,
    /// The deadlock that has been told.
    told: Option<Vec<Still>>,
}

/// Do these nodes wait for each other, with nothing on its way between them?
fn is_deadlock(nodes: &[Still]) -> bool {
    let sum = |of: fn(&Still) -> u64| nodes.iter().map(of).fold(0, u64::wrapping_add);
    sum(|still| still.sent) == sum(|still| still.received) && nodes.iter().any(|still| still.living > 0)
}

impl Question {
    /// What it has proven.
    fn proves(&self) -> Option<&Vec<Still>> {
        let answers = self.heard.iter().map(|heard| heard.as_ref()?.still.as_ref());
        self.claim.as_ref().filter(|claim| answers.eq(claim.iter().map(Some)))
    }
}

impl Waiting {
    /// A node will not answer any more.
    pub(super) fn missed(&mut self, node: usize) {
        self.heard(node, self.number, None, None);
    }

    /// A node has answered question `asked`.
    pub(super) fn heard(&mut self, node: usize, asked: u64, still: Option<Still>, waits: Option<JobWaits>) {
        if let Some(question) = self.question.as_mut().filter(|_| asked == self.number) {
            question.heard[node].get_or_insert(Heard { still, waits });
        }
    }
}

impl Coordinator {
    /// A node's ranks are still.
    pub(super) fn on_still(&mut self, node: usize, still: Still) {
        self.waiting.still.resize(self.parts.len(), None);
        self.waiting.still[node] = Some(still);
        self.ask_if_all_are_still();
    }

    fn ask_if_all_are_still(&mut self) {
        let all: Option<Vec<Still>> = self.waiting.still.iter().cloned().collect();
        let over = self.parts.iter().any(|part| part.finished.is_some());
        if let Some(claim) = all.filter(|all| !over && self.waiting.question.is_none() && is_deadlock(all))
            && self.waiting.told.as_ref() != Some(&claim)
        {
            self.ask_who_waits(Some(claim), Vec::new());
        }
    }

    fn ask_who_waits(&mut self, claim: Option<Vec<Still>>, tools: Vec<(usize, u64)>) {
        self.waiting.number += 1;
        let gone = |over: bool| over.then_some(Heard { still: None, waits: None });
        let heard = self.parts.iter().map(|part| gone(part.finished.is_some())).collect();
        self.waiting.question = Some(Question { since: Instant::now(), claim, heard, tools });
        self.ask_all(&Request::WaitsPart { number: self.waiting.number });
    }

    /// A tool of a node asks.
    pub(super) fn on_why_asked(&mut self, node: usize, tool: u64) {
        match &mut self.waiting.question {
            Some(question) => question.tools.push((node, tool)),
            None => self.ask_who_waits(None, vec![(node, tool)]),
        }
    }

    /// So long the nodes' answers are waited for.
    pub(super) fn waiting_until(&self) -> Option<Instant> {
        Some(self.waiting.question.as_ref()?.since + PATIENCE)
    }

    /// Draw the conclusion, if all nodes have answered or the rest will not.
    pub(super) fn conclude_waiting(&mut self) {
        let late = self.waiting_until().is_some_and(|until| until <= Instant::now());
        let all = |question: &Question| question.heard.iter().all(Option::is_some);
        let Some(mut question) = self.waiting.question.take_if(|question| late || all(question)) else { return };
        // Who has been answered meanwhile waits at no port any more.
        let meets = |rank: &u32| self.ports.visitor(*rank).is_some();
        let proven = question.proves().filter(|claim| claim.iter().flat_map(|still| &still.asking).all(meets)).cloned();
        let stills: Vec<Option<Still>> = question.heard.iter().map(|heard| heard.as_ref()?.still.clone()).collect();
        let told = self.waiting.told.as_ref();
        let known = told.is_some_and(|told| told.iter().map(Some).eq(stills.iter().map(Option::as_ref)));
        // What holds no more is told anew when it does.
        self.waiting.still = stills;
        let names = self.parts.iter().map(|part| part.name.clone());
        let parts = names.zip(question.heard.iter_mut().map(|heard| heard.take()?.waits)).collect();
        let mut waits = JobWaits::of_nodes(super::JOB, parts);
        for rank in &mut waits.ranks {
            if let (Some(visitor), Some(wait)) = (self.ports.visitor(rank.rank), rank.waits.first_mut()) {
                wait.kind = if visitor.accepts { WaitKind::Connect } else { WaitKind::Accept };
            }
        }
        waits.deadlock = proven.is_some() || known;
        for (node, tool) in question.tools {
            let waits = Box::new(JobWaits { job: self.parts[node].job, ..waits.clone() });
            self.tell_tool(node, tool, Reply::Why { waits });
        }
        if proven.is_some() && proven != self.waiting.told {
            self.waiting.told = proven;
            self.reply(&Reply::Deadlock { waits: Box::new(waits) });
        }
        self.ask_if_all_are_still();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn still(living: u32, sent: u64, received: u64) -> Still {
        Still { living, switches: 9, sent, received, asking: Vec::new() }
    }

    fn asked(claim: &[Still], heard: &[Option<Still>]) -> Question {
        let heard = heard.iter().map(|still| Some(Heard { still: still.clone(), waits: None })).collect();
        Question { since: Instant::now(), claim: Some(claim.to_vec()), heard, tools: Vec::new() }
    }

    #[test]
    fn what_is_on_its_way_is_no_deadlock() {
        assert!(is_deadlock(&[still(2, 7, 3), still(2, 3, 7)]));
        assert!(!is_deadlock(&[still(2, 8, 3), still(2, 3, 7)]), "a frame is under way");
        assert!(is_deadlock(&[still(2, 7, 3), still(0, 3, 7)]), "a node without ranks waits for nobody");
        assert!(!is_deadlock(&[still(0, 7, 3), still(0, 3, 7)]), "nobody is left to wait");
    }

    #[test]
    fn only_what_has_not_changed_is_proven() {
        let claim = [still(2, 7, 3), still(2, 3, 7)];
        let [a, b] = claim.clone().map(Some);
        assert_eq!(asked(&claim, &[a.clone(), b.clone()]).proves(), Some(&claim.to_vec()));
        assert_eq!(asked(&claim, &[a.clone(), None]).proves(), None, "it is not still any more");
        // Counts fit again, but are others: a question and its answer have passed.
        assert_eq!(asked(&claim, &[Some(still(2, 8, 4)), Some(still(2, 4, 8))]).proves(), None);
        let mut tools = asked(&claim, &[a, b]);
        tools.claim = None;
        assert_eq!(tools.proves(), None, "nothing was claimed");
        tools.claim = Some(claim.to_vec());
        tools.heard[1] = None;
        assert_eq!(tools.proves(), None, "one has not answered");
    }
}
