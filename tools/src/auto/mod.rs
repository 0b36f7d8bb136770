//! `-V auto`: V from what earlier runs of the same program were measured to do.
//!
//! A running program cannot change its number of ranks, so what one run teaches serves the next one: [`memory`] keeps, in the user's cache
//! directory, how long each V took and what the cores did meanwhile; [`choice`] decides. Without `-n` V decides how many ranks there are,
//! with it over how many cores they are spread.

pub mod choice;
pub mod memory;

use crate::program::Program;
use choice::{Choice, Run};
use memory::{Identity, Key, Memory, Recall};
use std::path::Path;
use vmpi_shared::control::{Cause, JobReport, RankEnd};

/// What `-V auto` has decided, and where to write down what comes of it.
pub struct Auto {
    pub v: u32,
    /// For the user: what was chosen, and why.
    pub sentence: String,
    /// What went wrong with the memory.
    pub notes: Vec<String>,
    memory: Option<(Memory, Identity)>,
}

/// Choose for this program; `ranks` is `-n`, `cores` what is there.
pub fn decide(program: &Program, arguments: &[String], cwd: &Path, ranks: Option<u32>, cores: u32) -> Auto {
    let mut notes = Vec::new();
    let mut past = Vec::new();
    let identity = Identity::of(program, arguments, cwd);
    let key = Key { program: &program.path, arguments, cwd, ranks, cores };
    let memory = identity.and_then(|identity| Ok((Memory::open(&key)?, identity)));
    if let Ok((memory, identity)) = &memory {
        match memory.recall(identity) {
            Recall::Nothing => {}
            Recall::Records(records) => past = records,
            Recall::Changed => {
                notes.push("-V auto: the program has changed since it was measured; it begins anew".into())
            }
            Recall::Damaged(why) => {
                notes.push(format!("-V auto: {} cannot be used ({why}); it begins anew", memory.path().display()));
            }
        }
    }
    if let Err(why) = &memory {
        notes.push(format!("-V auto: nothing can be remembered ({why}), so every run is a first one"));
    }
    let Choice { v, why } = choice::choose(&past, &choice::candidates(ranks, cores), ranks.is_some());
    Auto { v, sentence: format!("-V auto: V = {v}, {why}"), notes, memory: memory.ok() }
}

impl Auto {
    /// Write down how the job went. A sentence if that did not work.
    pub fn learn(&self, cause: Option<&Cause>, ends: &[RankEnd], report: Option<&JobReport>) -> Option<String> {
        let (memory, identity) = self.memory.as_ref()?;
        let outcome = match cause? {
            Cause::Success if ends.iter().all(|end| end.initialized) => Some(measured(report?)?),
            // With this number of ranks it may not work at all.
            Cause::RankFailed { .. }
            | Cause::Unfinished { .. }
            | Cause::Aborted { .. }
            | Cause::GroupAborted { .. } => None,
            _ => return None,
        };
        let kept = memory.record(identity, self.v, outcome);
        kept.err().map(|why| format!("-V auto: this run cannot be remembered: {why}"))
    }
}

/// The figures of a run; none if the cores were never the job's.
fn measured(report: &JobReport) -> Option<Run> {
    let sum = |of: fn(&vmpi_shared::control::CoreReport) -> f64| report.cores.iter().map(of).sum::<f64>();
    // More ranks on a core do not fill what start-up and end leave idle.
    let whole = sum(|core| core.wall_s - core.withheld_s - core.starting_s - core.ending_s);
    (whole > 0.0).then(|| Run {
        elapsed_s: report.elapsed_s,
        idle: sum(|core| core.idle_s) / whole,
        handoff: sum(|core| core.handoff_s) / whole,
    })
}
