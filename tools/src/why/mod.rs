//! Who waits for whom, and why: `vmpictl why` and vmpirun's report of a deadlock.
//!
//! The daemon tells what each rank waits for (`vmpi_shared::waits`); [`graph`] finds who is behind it (circles, the odd one out,
//! messages that nobody asks for), [`words`] says it in sentences, [`dot`] draws it.

mod dot;
mod graph;
mod words;

pub use graph::{Absence, Edge, Graph, Stray};

use crate::stack::{self, Names, StackError};
use serde_json::{Value, json};
use vmpi_shared::waits::{JobWaits, Site};

/// Stacks are taken of so many ranks at most.
const MOST_SITES: usize = 256;
/// So many ranks may turn out to be under a debugger (each is waited for, in case somebody only looks), or not to stop, before the rest is left alone.
const MOST_DEBUGGED: usize = 4;

/// A job's waits, and what follows.
pub struct Why {
    pub waits: JobWaits,
    pub graph: Graph,
}

/// Look where those ranks of this node are that do not wait in MPI.
fn find_places(waits: &mut JobWaits) {
    let mut names = Names::default();
    for rank in waits.ranks.iter_mut().filter(|rank| rank.is_busy.is_some()).take(MOST_SITES) {
        let threads = stack::stacks(rank.pid, &mut names, false).unwrap_or_default();
        let Some(thread) = threads.first() else { continue };
        let frames = &thread.folded;
        let call = frames.iter().rfind(|frame| frame.in_vmpi);
        let own = frames.iter().find(|frame| frame.in_source);
        let own = own.or(frames.iter().find(|frame| !frame.in_vmpi));
        rank.site = own.map(|own| Site {
            function: call.map_or_else(String::new, |call| call.function.clone()),
            caller: own.function.clone(),
            place: own.at.clone(),
        });
    }
}

/// Look where the waiting ranks of this node have called MPI (each is stopped for about a millisecond).
pub fn find_sites(waits: &mut JobWaits) {
    let mut names = Names::default();
    // Those that are told with their node live on another one, or where somebody has looked.
    let waiting = waits.ranks.iter_mut().filter(|rank| !rank.call.is_empty() && rank.node.is_empty());
    let mut debugged = 0;
    for rank in waiting.take(MOST_SITES) {
        let left_at = rank.deferred.as_ref().map(|deferred| deferred.address).filter(|address| *address != 0);
        let (site, left) = stack::site(rank.pid, &mut names, left_at).unwrap_or_else(|error| {
            debugged += usize::from(matches!(error, StackError::Traced { .. } | StackError::Asleep { .. }));
            (None, None)
        });
        rank.site = site;
        if let Some(deferred) = &mut rank.deferred {
            deferred.site = left;
        }
        if debugged == MOST_DEBUGGED {
            break;
        }
    }
}

impl Why {
    /// Draw the conclusions.
    pub fn of(waits: JobWaits) -> Why {
        let graph = Graph::of(&waits);
        Why { waits, graph }
    }

    /// Look where the ranks of this node have called MPI first.
    pub fn look(mut waits: JobWaits) -> Why {
        find_sites(&mut waits);
        find_places(&mut waits);
        Why::of(waits)
    }

    /// For people.
    pub fn text(&self) -> String {
        words::text(self)
    }

    /// For people, of a job in which nothing has come about for so long.
    pub fn hang_text(&self, seconds: u64) -> String {
        words::hang_text(self, seconds)
    }

    /// What can be done now.
    pub fn next_steps(&self) -> String {
        words::next_steps(self)
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        dot::dot(self)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "schema_version": 1,
            "job": self.waits.job,
            "program": self.waits.program,
            "deadlock": self.waits.deadlock && self.waits.limit().is_none(),
            "limit": self.waits.limit(),
            "ranks": self.waits.ranks,
            "communicators": self.waits.comms.iter().map(|comm| {
                let members: Vec<u32> = comm.members.iter().copied().flatten().collect();
                json!({ "context": comm.context, "name": comm.name, "members": members })
            }).collect::<Vec<_>>(),
            "edges": self.graph.edges,
            "cycles": self.graph.cycles,
            "absences": self.graph.absences,
            "strays": self.graph.strays,
            "sentences": words::sentences(self),
        })
    }
}
