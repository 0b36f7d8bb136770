//! Who waits for whom, and why: `vmpictl why` and vmpirun's report of a deadlock.
//!
//! The daemon tells what each rank waits for (`vmpi_shared::waits`); [`graph`] finds who is behind it (circles, the odd one out,
//! messages that nobody asks for), [`words`] says it in sentences, [`dot`] draws it.

mod dot;
mod graph;
mod words;

pub use graph::{Absence, Edge, Graph, Stray};

use crate::stack::{self, Names, Site};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vmpi_shared::waits::JobWaits;

/// Stacks are taken of so many ranks at most.
const MOST_SITES: usize = 256;

/// A job's waits, where they were called, and what follows.
pub struct Why {
    pub waits: JobWaits,
    pub sites: BTreeMap<u32, Site>,
    pub graph: Graph,
}

impl Why {
    /// Look where the waiting ranks have called MPI (each is stopped for about a millisecond), and draw the conclusions.
    pub fn look(waits: JobWaits) -> Why {
        let mut names = Names::default();
        let waiting = waits.ranks.iter().filter(|rank| !rank.call.is_empty()).take(MOST_SITES);
        let sites = waiting
            .filter_map(|rank| {
                let threads = stack::stacks(rank.pid, &mut names, false).ok()?;
                Some((rank.rank, stack::site(&threads.first()?.frames)?))
            })
            .collect();
        Why::new(waits, sites)
    }

    pub fn new(waits: JobWaits, sites: BTreeMap<u32, Site>) -> Why {
        let graph = Graph::of(&waits);
        Why { waits, sites, graph }
    }

    /// For people.
    pub fn text(&self) -> String {
        words::text(self)
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
            "deadlock": self.waits.deadlock,
            "ranks": self.waits.ranks.iter().map(|rank| {
                let mut value = json!(rank);
                value["site"] = json!(self.sites.get(&rank.rank));
                value
            }).collect::<Vec<_>>(),
            "communicators": self.waits.comms,
            "edges": self.graph.edges,
            "cycles": self.graph.cycles,
            "absences": self.graph.absences,
            "strays": self.graph.strays,
            "sentences": words::sentences(self),
        })
    }
}
