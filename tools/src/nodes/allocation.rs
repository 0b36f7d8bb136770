//! What a batch system has given to the job in which vmpirun runs.

use crate::hosts::Host;

/// Who has given it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum System {
    Slurm,
    Pbs,
    Lsf,
    GridEngine,
    Flux,
    Oar,
    Cobalt,
}

impl System {
    pub fn name(self) -> &'static str {
        match self {
            System::Slurm => "Slurm",
            System::Pbs => "PBS",
            System::Lsf => "LSF",
            System::GridEngine => "Grid Engine",
            System::Flux => "Flux",
            System::Oar => "OAR",
            System::Cobalt => "Cobalt",
        }
    }
}

/// What has been allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub system: System,
    pub job: String,
    /// The nodes in short, and where they were told.
    pub list: String,
    /// Each node with its CPUs, if told, and the tasks that were asked for there.
    pub nodes: Vec<Node>,
    /// CPUs that were asked for each task, if that was said.
    pub cpus_per_task: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub cpus: Option<u32>,
    pub tasks: Option<u32>,
}

impl Allocation {
    /// Its nodes as hosts; the tasks asked for are the slots unless V counts.
    pub fn hosts(&self, v_counts: bool) -> Vec<Host> {
        let slots = |node: &Node| node.tasks.filter(|_| !v_counts);
        self.nodes.iter().map(|node| Host { name: node.name.clone(), slots: slots(node) }).collect()
    }

    /// The CPUs of all nodes together, if they are told.
    pub fn cpus(&self) -> Option<u32> {
        self.nodes.iter().map(|node| node.cpus).sum()
    }

    /// The CPUs of a node, if they are told.
    pub fn cpus_of(&self, name: &str) -> Option<u32> {
        self.nodes.iter().find(|node| node.name == name)?.cpus
    }

    /// Do `ranks` fit, `v` on a core?
    ///
    /// # Errors
    /// They do not: in words.
    pub fn check(&self, ranks: u32, v: u32) -> Result<(), String> {
        let Some(cpus) = self.cpus() else { return Ok(()) };
        let needed = ranks.div_ceil(v.max(1));
        if needed <= cpus {
            return Ok(());
        }
        let (system, job, list) = (self.system.name(), &self.job, &self.list);
        let enough = ranks.div_ceil(cpus.max(1));
        Err(format!(
            "{ranks} ranks with V = {v} need {needed} cores, and {system} job {job} has {cpus} (on {list}): allocate more, or say -V {enough}"
        ))
    }
}
