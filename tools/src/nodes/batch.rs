//! Allocations of batch systems, as their variables and files tell them: PBS and Torque, LSF, Grid Engine, Flux, OAR, Cobalt; Slurm's are in
//! [`super::slurm`].

use super::allocation::{Allocation, Node, System};
use super::slurm;
use crate::hostlist::expand;

/// What a process can ask about where it runs; recorded in tests.
pub trait Surroundings {
    /// A variable of the environment that is set and not empty.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of a file.
    fn file(&self, path: &str) -> Result<String, String>;
    /// What a command prints.
    fn output(&self, command: &[&str]) -> Result<String, String>;
}

/// Of this process.
pub struct Here;

impl Surroundings for Here {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.trim().is_empty())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }

    fn output(&self, command: &[&str]) -> Result<String, String> {
        let (program, arguments) = command.split_first().ok_or("no command")?;
        let output = std::process::Command::new(program).args(arguments).stdin(std::process::Stdio::null()).output();
        let output = output.map_err(|e| format!("cannot run {program}: {e}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_string()),
        }
    }
}

/// The allocation in which this process runs, if any; what is there and cannot be used goes into `untold`, a sentence each.
///
/// # Errors
/// Slurm's variables make no sense.
pub fn allocation(here: &dyn Surroundings, untold: &mut Vec<String>) -> Result<Option<Allocation>, String> {
    if let Some(slurm) = slurm::allocation(|name| here.variable(name))? {
        return Ok(Some(slurm));
    }
    let systems: [fn(&dyn Surroundings) -> Told; 6] = [lsf, grid_engine, oar, cobalt, pbs, flux];
    for system in systems {
        match system(here) {
            Ok(Some(allocation)) => return Ok(Some(allocation)),
            Ok(None) => {}
            Err(why) => untold.push(format!("{why}: hosts are not taken from it")),
        }
    }
    Ok(None)
}

type Told = Result<Option<Allocation>, String>;

/// Names with how often each is there, in the order in which they come first.
fn counted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> = Vec::new();
    let mut place = std::collections::HashMap::new();
    for name in names.map(str::trim).filter(|name| !name.is_empty()) {
        let at = *place.entry(name.to_string()).or_insert_with(|| {
            all.push((name.to_string(), 0));
            all.len() - 1
        });
        all[at].1 += 1;
    }
    all
}

/// `n1:2, n2 (PBS_NODEFILE)`; long ones by their ends.
fn listed(nodes: &[Node], from: &str) -> String {
    let one = |node: &Node| match node.tasks {
        Some(tasks) => format!("{}:{tasks}", node.name),
        None => node.name.clone(),
    };
    let names = match nodes {
        [first, .., last] if nodes.len() > 8 => format!("{} nodes from {} to {}", nodes.len(), one(first), one(last)),
        _ => nodes.iter().map(one).collect::<Vec<_>>().join(", "),
    };
    format!("{names} ({from})")
}

fn found(system: System, job: String, nodes: Vec<Node>, from: &str) -> Told {
    if nodes.is_empty() {
        return Err(format!("{from} of {} job {job} names no host", system.name()));
    }
    Ok(Some(Allocation { system, job, list: listed(&nodes, from), nodes, cpus_per_task: None }))
}

/// Nodes whose slots are CPUs, too.
fn with_slots(counted: Vec<(String, u32)>) -> Vec<Node> {
    counted.into_iter().map(|(name, slots)| Node { name, cpus: Some(slots), tasks: Some(slots) }).collect()
}

/// PBS Professional, OpenPBS, Torque: a line of the file for each process that was asked for.
fn pbs(here: &dyn Surroundings) -> Told {
    let Some(job) = here.variable("PBS_JOBID") else { return Ok(None) };
    let Some(path) = here.variable("PBS_NODEFILE") else {
        return Err(format!("PBS job {job} has no PBS_NODEFILE"));
    };
    let text = here.file(&path).map_err(|why| format!("PBS_NODEFILE={path} cannot be read: {why}"))?;
    let mut nodes = with_slots(counted(text.lines()));
    // Processes with several CPUs each (select=2:ncpus=8:mpiprocs=2) have fewer lines than CPUs.
    let number = |name: &str| here.variable(name).and_then(|value| value.parse::<u32>().ok());
    if let Some(cpus) = number("NCPUS").or_else(|| number("PBS_NUM_PPN")) {
        nodes.iter_mut().for_each(|node| node.cpus = node.cpus.max(Some(cpus)));
    }
    found(System::Pbs, job, nodes, "PBS_NODEFILE")
}

/// LSF: a line of the file for each slot, or names and numbers in turn.
fn lsf(here: &dyn Surroundings) -> Told {
    let Some(job) = here.variable("LSB_JOBID") else { return Ok(None) };
    let mut trouble = None;
    if let Some(path) = here.variable("LSB_DJOB_HOSTFILE") {
        match here.file(&path) {
            Ok(text) => return found(System::Lsf, job, with_slots(counted(text.lines())), "LSB_DJOB_HOSTFILE"),
            Err(why) => trouble = Some(format!("LSB_DJOB_HOSTFILE={path} cannot be read: {why}")),
        }
    }
    if let Some(text) = here.variable("LSB_MCPU_HOSTS") {
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut nodes = Vec::new();
        for pair in words.chunks(2) {
            let slots = pair.get(1).and_then(|slots| slots.parse::<u32>().ok());
            let slots = slots.ok_or_else(|| format!("LSB_MCPU_HOSTS={text} is not names and numbers in turn"))?;
            nodes.push((pair[0].to_string(), slots));
        }
        return found(System::Lsf, job, with_slots(nodes), "LSB_MCPU_HOSTS");
    }
    if let Some(text) = here.variable("LSB_HOSTS") {
        return found(System::Lsf, job, with_slots(counted(text.split_whitespace())), "LSB_HOSTS");
    }
    Err(trouble.unwrap_or_else(|| format!("LSF job {job} has none of LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS, LSB_HOSTS")))
}

/// Sun's, Univa's, Altair's, Son of: `host slots queue processors` a line; without a parallel environment a number of slots here.
fn grid_engine(here: &dyn Surroundings) -> Told {
    // JOB_ID alone may be anybody's.
    let Some(job) = here
        .variable("JOB_ID")
        .filter(|_| here.variable("SGE_TASK_ID").is_some() || here.variable("PE_HOSTFILE").is_some())
    else {
        return Ok(None);
    };
    if let Some(path) = here.variable("PE_HOSTFILE") {
        let text = here.file(&path).map_err(|why| format!("PE_HOSTFILE={path} cannot be read: {why}"))?;
        let mut nodes: Vec<(String, u32)> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let mut words = line.split_whitespace();
            let (name, slots) = (words.next().unwrap_or(""), words.next().and_then(|slots| slots.parse::<u32>().ok()));
            let slots = slots.ok_or_else(|| {
                format!("PE_HOSTFILE={path} has the line `{line}`, which is not a host and its slots")
            })?;
            // A host with two queues has two lines.
            match nodes.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known = known.saturating_add(slots),
                None => nodes.push((name.to_string(), slots)),
            }
        }
        return found(System::GridEngine, job, with_slots(nodes), "PE_HOSTFILE");
    }
    let slots = here.variable("NSLOTS").and_then(|slots| slots.parse().ok()).unwrap_or(1);
    found(System::GridEngine, job, with_slots(vec![("localhost".into(), slots)]), "NSLOTS")
}

/// OAR: a line for each resource, which is a core or a whole node.
fn oar(here: &dyn Surroundings) -> Told {
    let Some(job) = here.variable("OAR_JOB_ID").or_else(|| here.variable("OAR_JOBID")) else { return Ok(None) };
    let names = ["OAR_NODEFILE", "OAR_NODE_FILE", "OAR_FILE_NODES"];
    let Some((name, path)) = names.iter().find_map(|name| Some((*name, here.variable(name)?))) else {
        return Err(format!("OAR job {job} has no OAR_NODEFILE"));
    };
    let text = here.file(&path).map_err(|why| format!("{name}={path} cannot be read: {why}"))?;
    let counted = counted(text.lines());
    // One line each: whole nodes, as far as can be seen; OAR's cpusets limit them.
    let whole = counted.iter().all(|(_, lines)| *lines == 1);
    let mut nodes = with_slots(counted);
    if whole {
        nodes.iter_mut().for_each(|node| (node.cpus, node.tasks) = (None, None));
    }
    found(System::Oar, job, nodes, name)
}

/// Cobalt: whole nodes.
fn cobalt(here: &dyn Surroundings) -> Told {
    let Some(job) = here.variable("COBALT_JOBID") else { return Ok(None) };
    let Some(path) = here.variable("COBALT_NODEFILE") else {
        return Err(format!("Cobalt job {job} has no COBALT_NODEFILE"));
    };
    let text = here.file(&path).map_err(|why| format!("COBALT_NODEFILE={path} cannot be read: {why}"))?;
    let node = |(name, _)| Node { name, cpus: None, tasks: None };
    found(System::Cobalt, job, counted(text.lines()).into_iter().map(node).collect(), "COBALT_NODEFILE")
}

/// Flux: the nodes of the instance, in the order of its brokers; a task of `flux run` is none of these.
fn flux(here: &dyn Surroundings) -> Told {
    if here.variable("FLUX_URI").is_none() || here.variable("FLUX_TASK_RANK").is_some() {
        return Ok(None);
    }
    let list = here.output(&["flux", "getattr", "hostlist"]);
    let list = list.map_err(|why| format!("FLUX_URI is set, and `flux getattr hostlist` fails ({why})"))?;
    let names = expand(list.trim()).map_err(|why| format!("`flux getattr hostlist` says `{}`: {why}", list.trim()))?;
    let job = here.variable("FLUX_JOB_ID").or_else(|| here.output(&["flux", "getattr", "jobid"]).ok());
    let nodes = names.into_iter().map(|name| Node { name, cpus: None, tasks: None }).collect();
    let job = job.map(|job| job.trim().to_string()).filter(|job| !job.is_empty()).unwrap_or_else(|| "instance".into());
    found(System::Flux, job, nodes, "flux getattr hostlist")
}

#[cfg(test)]
mod tests;
