//! This node, or for a dry run the machine that it is to be of.

use crate::cpus;
use crate::failure::Failure;
use crate::topology::Topology;

pub(super) struct Machine {
    /// Those that may be used.
    pub(super) cpus: Vec<u32>,
    pub(super) topology: Topology,
    /// It is another machine: which.
    pub(super) note: Option<String>,
}

impl Machine {
    pub(super) fn here() -> Result<Machine, Failure> {
        Ok(Machine { cpus: cpus::allowed()?, topology: Topology::here(), note: None })
    }

    pub(super) fn of_dry_run() -> Result<Machine, Failure> {
        let Some((topology, name)) = Topology::named()? else { return Machine::here() };
        let cpus = topology.cpus();
        let note = Some(format!("the machine is that of {name}: {} CPUs", cpus.len()));
        Ok(Machine { cpus, topology, note })
    }
}
