//! Where the nodes come from if the command line does not name them: a Slurm allocation, or the variables that the Kubernetes MPI operator (and who
//! does likewise) sets for Open MPI, MPICH and Intel MPI.

use super::slurm::Allocation;
use super::start::{Agent, Way};
use crate::failure::Failure;
use crate::hosts::{self, Host};

/// Variables that name a host file.
const HOST_FILES: &[&str] =
    &["OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"];
/// Variables that name what starts a command on another node, called with its name and the command.
const AGENTS: &[&str] = &[
    "OMPI_MCA_plm_rsh_agent",
    "OMPI_MCA_orte_rsh_agent",
    "PRTE_MCA_plm_ssh_agent",
    "HYDRA_LAUNCHER_EXEC",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC",
];
/// Variables with more arguments for it.
const AGENTS_ARGUMENTS: &[&str] = &[
    "OMPI_MCA_plm_rsh_args",
    "PRTE_MCA_plm_ssh_args",
    "HYDRA_LAUNCH_EXTRA_ARGS",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS",
];

/// The nodes of a job, and how they are reached.
#[derive(Debug, Default)]
pub struct Engine {
    pub hosts: Vec<Host>,
    pub way: Way,
    pub notes: Vec<String>,
    pub allocation: Option<Allocation>,
}

/// What the command line says.
#[derive(Debug, Default)]
pub struct Asked<'a> {
    pub hosts: &'a [Host],
    pub hostfiles: &'a [String],
    pub launcher: Option<&'a str>,
    /// V is given, so that it counts and not the tasks of an allocation.
    pub v_counts: bool,
}

impl Engine {
    /// The command line first, then Slurm, then the variables.
    ///
    /// # Errors
    /// Exit code 2: what makes no sense, by its name.
    pub fn find(asked: &Asked, variable: impl Fn(&str) -> Option<String>) -> Result<Engine, Failure> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, variable(name)?)));
        let mut engine = Engine::default();
        engine.way.launcher = asked.launcher.map(str::to_owned);
        let named = !asked.hosts.is_empty() || !asked.hostfiles.is_empty();
        let allocation = Allocation::of(variable).map_err(Failure::usage)?;
        if let Some(allocation) = allocation.filter(|_| !named) {
            engine.hosts = allocation.hosts(asked.v_counts);
            let (job, list) = (&allocation.job, &allocation.list);
            let cpus = allocation.cpus().map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
            let by = match &engine.way.launcher {
                Some(launcher) => format!("`{launcher}`"),
                None => {
                    engine.way.slurm_job = Some(job.clone());
                    "srun".into()
                }
            };
            engine.notes.push(format!("nodes of Slurm job {job}: {list}{cpus}; vmpid is started by {by}"));
            engine.allocation = Some(allocation);
            return Ok(engine);
        }
        let mut files = asked.hostfiles.to_vec();
        if let Some((name, file)) = first(HOST_FILES).filter(|_| !named) {
            engine.notes.push(format!("hosts from {file} ({name})"));
            files.push(file);
        }
        engine.hosts = hosts::all(&files, asked.hosts)?;
        if engine.way.launcher.is_none() && engine.hosts.iter().any(|host| !hosts::is_here(&host.name)) {
            if let Some((name, agent)) = first(AGENTS) {
                engine.notes.push(format!("nodes are reached by `{agent}` ({name})"));
                engine.way.launcher = Some(agent);
            }
            if let Some((name, arguments)) = first(AGENTS_ARGUMENTS) {
                engine.notes.push(format!("with the arguments `{arguments}` ({name})"));
                engine.way.arguments = arguments.split_whitespace().map(str::to_owned).collect();
            }
        }
        Ok(engine)
    }

    /// No more CPUs than Slurm has allocated, where it does not see to that itself.
    pub fn limit(&self, agents: &mut [Agent]) {
        let Some(allocation) = &self.allocation else { return };
        for (agent, node) in agents.iter_mut().zip(&allocation.nodes) {
            if let Some(cpus) = node.cpus {
                agent.facts.cpus.truncate(cpus as usize);
            }
        }
    }

    /// Likewise on this node alone.
    pub fn limit_here(&self, cpus: &mut Vec<u32>) {
        if let Some(own) = self.allocation.as_ref().and_then(|allocation| allocation.nodes.first()?.cpus) {
            cpus.truncate(own as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(asked: &Asked, variables: &[(&str, &str)]) -> Result<Engine, Failure> {
        let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        Engine::find(asked, get)
    }

    fn names(engine: &Engine) -> Vec<(String, Option<u32>)> {
        engine.hosts.iter().map(|host| (host.name.clone(), host.slots)).collect()
    }

    #[test]
    fn the_operators_variables_are_honoured() {
        let path = std::env::temp_dir().join(format!("vmpi-engine-{}", std::process::id()));
        std::fs::write(&path, "w-0.job.ns.svc slots=2\nw-1.job.ns.svc slots=2\n").unwrap();
        let file = path.to_str().unwrap();
        for name in HOST_FILES {
            let engine = find(&Asked::default(), &[(name, file)]).unwrap();
            assert_eq!(names(&engine), [("w-0.job.ns.svc".into(), Some(2)), ("w-1.job.ns.svc".into(), Some(2))]);
            assert!(engine.notes[0].contains(name) && engine.way.launcher.is_none());
        }
        for name in AGENTS {
            let engine = find(&Asked::default(), &[(HOST_FILES[0], file), (name, "/etc/mpi/kubexec.sh")]).unwrap();
            assert_eq!(engine.way.launcher.as_deref(), Some("/etc/mpi/kubexec.sh"));
            assert!(engine.notes[1].contains(name));
        }
        let extra = [(HOST_FILES[2], file), ("HYDRA_LAUNCH_EXTRA_ARGS", "-o ConnectionAttempts=10")];
        assert_eq!(find(&Asked::default(), &extra).unwrap().way.arguments, ["-o", "ConnectionAttempts=10"]);
        // The command line comes first; without other nodes nothing is reached.
        let own = [Host { name: "localhost".into(), slots: None }];
        let asked = Asked { hosts: &own, ..Asked::default() };
        let engine = find(&asked, &[(HOST_FILES[0], file), (AGENTS[0], "x")]).unwrap();
        assert_eq!((names(&engine).len(), engine.notes.len()), (1, 0));
        std::fs::remove_file(&path).unwrap();
        let why = find(&Asked::default(), &[(HOST_FILES[0], file)]).unwrap_err();
        assert!(why.code == 2 && why.sentence.contains(file), "{why:?}");
    }

    #[test]
    fn an_allocation_is_used_unless_hosts_are_named() {
        let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_JOB_CPUS_PER_NODE", "2(x2)")];
        let engine = find(&Asked::default(), &slurm).unwrap();
        assert_eq!((names(&engine).len(), engine.way.slurm_job.as_deref()), (2, Some("9")));
        assert_eq!(engine.notes, ["nodes of Slurm job 9: n[1-2], 4 CPUs; vmpid is started by srun"]);
        let by_hand = find(&Asked { launcher: Some("rsh"), ..Asked::default() }, &slurm).unwrap();
        assert_eq!((by_hand.way.launcher.as_deref(), by_hand.way.slurm_job), (Some("rsh"), None));
        let hosts = [Host { name: "elsewhere".into(), slots: None }];
        let named = find(&Asked { hosts: &hosts, ..Asked::default() }, &slurm).unwrap();
        assert!(named.allocation.is_none() && named.way.slurm_job.is_none());
        let wrong = find(&Asked::default(), &[("SLURM_JOB_ID", "9"), ("SLURM_JOB_NODELIST", "n[1-")]).unwrap_err();
        assert!(wrong.code == 2 && wrong.sentence.contains("SLURM_JOB_NODELIST=n[1-"), "{wrong:?}");
    }
}
