//! Where the nodes come from if the command line does not name them: the allocation of a batch system, or the variables that the Kubernetes MPI
//! operator (and who does likewise) sets for Open MPI, MPICH and Intel MPI; and what starts vmpid there.

use super::allocation::{Allocation, System};
use super::batch::{self, Surroundings};
use super::frames::Facts;
use super::place::Known;
use super::start::Way;
use crate::cli::{RunOptions, Starter, VChoice};
use crate::daemon::VERSION;
use crate::failure::Failure;
use crate::hosts::{self, Host};
use crate::topology::Topology;

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
pub struct NodeSource {
    pub hosts: Vec<Host>,
    pub way: Way,
    pub notes: Vec<String>,
    /// What is said in every run: something is there that cannot be used.
    pub warnings: Vec<String>,
    pub allocation: Option<Allocation>,
}

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Asked<'a> {
    pub hosts: &'a [Host],
    pub hostfiles: &'a [String],
    pub launcher: Option<&'a str>,
    pub arguments: Option<&'a str>,
    pub starter: Option<Starter>,
    /// V is given, so that it counts and not the tasks of an allocation.
    pub v_counts: bool,
    /// No more nodes than so many.
    pub nodes: Option<u32>,
    pub exclude: &'a [String],
    pub no_local: bool,
}

impl<'a> Asked<'a> {
    pub fn of(options: &'a RunOptions) -> Asked<'a> {
        Asked {
            hosts: &options.hosts,
            hostfiles: &options.hostfiles,
            launcher: options.launcher.as_deref(),
            arguments: options.launcher_arguments.as_deref(),
            starter: options.starter,
            v_counts: matches!(options.v, Some(VChoice::Exactly(_))),
            nodes: options.nodes,
            exclude: &options.exclude,
            no_local: options.no_local,
        }
    }
}

impl NodeSource {
    /// The command line first, then the batch system, then the variables.
    ///
    /// # Errors
    /// Exit code 2: what makes no sense, by its name.
    pub fn find(asked: &Asked, here: &dyn Surroundings) -> Result<NodeSource, Failure> {
        let mut engine = NodeSource::default();
        engine.way.launcher = asked.launcher.map(str::to_owned);
        let named = !asked.hosts.is_empty() || !asked.hostfiles.is_empty();
        let allocation = match named {
            true => None,
            false => batch::allocation(here, &mut engine.warnings).map_err(Failure::usage)?,
        };
        match allocation {
            Some(allocation) => {
                engine.hosts = allocation.hosts(asked.v_counts);
                engine.choose_starter(asked, Some(&allocation));
                engine.tell_of(&allocation);
                engine.allocation = Some(allocation);
            }
            None => {
                let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, here.variable(name)?)));
                let mut files = asked.hostfiles.to_vec();
                if let Some((name, file)) = first(HOST_FILES).filter(|_| !named) {
                    engine.notes.push(format!("hosts from {file} ({name})"));
                    files.push(file);
                }
                engine.hosts = hosts::all(&files, asked.hosts)?;
                engine.choose_starter(asked, None);
                // Nodes of a Slurm job may be named, too (--launcher slurm).
                engine.way.job = here.variable("SLURM_JOB_ID").unwrap_or_default();
            }
        }
        engine.leave_out(asked)?;
        if engine.way.needs_agent_variables() && engine.hosts.iter().any(|host| !hosts::is_here(&host.name)) {
            engine.take_agent(here);
        }
        if let Some(arguments) = asked.arguments {
            engine.way.arguments.extend(arguments.split_whitespace().map(str::to_owned));
        }
        Ok(engine)
    }

    /// The command line's, the batch system's own, or ssh.
    fn choose_starter(&mut self, asked: &Asked, allocation: Option<&Allocation>) {
        let way = &mut self.way;
        let own = allocation.map_or(Starter::Ssh, |allocation| match allocation.system {
            System::Slurm => Starter::Srun,
            System::Lsf => Starter::Blaunch,
            System::GridEngine => Starter::Qrsh,
            System::Flux => Starter::Flux,
            System::Oar => Starter::Oarsh,
            // pbsdsh gives what it starts no standard input, and vmpid is told by that what to do.
            System::Pbs | System::Cobalt => Starter::Ssh,
        });
        way.starter = match asked.starter {
            Some(Starter::Pbs) => {
                self.warnings.push(
                    "pbsdsh and pbs_tmrsh give what they start no standard input, by which vmpid is told what to do: ssh starts it".into(),
                );
                Starter::Ssh
            }
            Some(Starter::Flux) if allocation.is_none_or(|allocation| allocation.system != System::Flux) => {
                self.warnings.push("there is no Flux instance here whose brokers could start vmpid: ssh does".into());
                Starter::Ssh
            }
            Some(starter) => starter,
            None => own,
        };
        if let Some(allocation) = allocation {
            way.job.clone_from(&allocation.job);
            way.names = allocation.nodes.iter().map(|node| node.name.clone()).collect();
        }
    }

    fn tell_of(&mut self, allocation: &Allocation) {
        let (system, job, list) = (allocation.system.name(), &allocation.job, &allocation.list);
        let cpus =
            allocation.cpus().map_or(String::new(), |cpus| format!(", {cpus} CPU{}", if cpus == 1 { "" } else { "s" }));
        let by = match &self.way.launcher {
            Some(launcher) => format!("`{launcher}`"),
            None => self.way.starter.name().into(),
        };
        self.notes.push(format!("nodes of {system} job {job}: {list}{cpus}; vmpid is started by {by}"));
    }

    /// Without those that get no ranks.
    fn leave_out(&mut self, asked: &Asked) -> Result<(), Failure> {
        let before = self.hosts.len();
        let excluded = |host: &Host| asked.exclude.contains(&host.name);
        self.hosts.retain(|host| !excluded(host));
        if asked.no_local && self.hosts.iter().any(|host| !hosts::is_here(&host.name)) {
            self.hosts.retain(|host| !hosts::is_here(&host.name));
        }
        if before > 0 && self.hosts.is_empty() {
            return Err(Failure::usage("--exclude leaves no node"));
        }
        if let Some(nodes) = asked.nodes {
            let there = self.hosts.len().max(1) as u32;
            if there < nodes {
                let plural = if there == 1 { "node is" } else { "nodes are" };
                self.warnings.push(format!(
                    "{nodes} nodes are asked for, and {there} {plural} there: all ranks go on what there is"
                ));
            }
            self.hosts.truncate(nodes as usize);
        }
        Ok(())
    }

    /// What the operators' variables name instead of ssh.
    fn take_agent(&mut self, here: &dyn Surroundings) {
        let first = |names: &[&'static str]| names.iter().find_map(|name| Some((*name, here.variable(name)?)));
        if let Some((name, agent)) = first(AGENTS) {
            self.notes.push(format!("nodes are reached by `{agent}` ({name})"));
            self.way.launcher = Some(agent);
        }
        if let Some((name, arguments)) = first(AGENTS_ARGUMENTS) {
            self.notes.push(format!("with the arguments `{arguments}` ({name})"));
            self.way.arguments = arguments.split_whitespace().map(str::to_owned).collect();
        }
    }

    /// No more CPUs than have been allocated, where the batch system does not see to that itself.
    pub fn limit<'a>(&self, nodes: impl Iterator<Item = &'a mut Known>) {
        let Some(allocation) = &self.allocation else { return };
        for node in nodes {
            if let Some(cpus) = allocation.cpus_of(&node.name) {
                node.facts.cpus.truncate(cpus as usize);
            }
        }
    }

    /// Is it told how many CPUs each node has?
    pub fn is_told(&self) -> bool {
        self.allocation.as_ref().is_some_and(|allocation| allocation.cpus().is_some())
    }

    /// The nodes as they are taken to be where none is asked (`--dry-run`): with the CPUs that the batch system tells, or as many as there are slots,
    /// or `here`'s.
    pub fn assumed(&self, here: &[u32], topology: &Topology) -> Vec<Known> {
        let node = |host: &Host| {
            let told = self.allocation.as_ref().and_then(|allocation| allocation.cpus_of(&host.name));
            let cpus = match told.or(host.slots) {
                Some(cpus) => (0..cpus).collect(),
                None => here.to_vec(),
            };
            let facts = Facts {
                name: host.name.clone(),
                version: VERSION.into(),
                cpus,
                topology: topology.clone(),
                quota: None,
                addresses: Vec::new(),
                rdma: None,
            };
            Known { name: host.name.clone(), slots: host.slots, facts }
        };
        self.hosts.iter().map(node).collect()
    }

    /// Likewise on this node alone.
    pub fn limit_here(&self, cpus: &mut Vec<u32>) {
        let here = self.hosts.first().and_then(|host| self.allocation.as_ref()?.cpus_of(&host.name));
        if let Some(own) = here {
            cpus.truncate(own as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Variables<'a>(&'a [(&'a str, &'a str)]);

    impl Surroundings for Variables<'_> {
        fn variable(&self, name: &str) -> Option<String> {
            self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string())
        }

        fn file(&self, path: &str) -> Result<String, String> {
            std::fs::read_to_string(path).map_err(|e| e.to_string())
        }

        fn output(&self, _: &[&str]) -> Result<String, String> {
            Err("no commands here".into())
        }
    }

    fn find(asked: &Asked, variables: &[(&str, &str)]) -> Result<NodeSource, Failure> {
        NodeSource::find(asked, &Variables(variables))
    }

    fn names(engine: &NodeSource) -> Vec<(String, Option<u32>)> {
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
        assert_eq!((names(&engine).len(), engine.way.starter, engine.way.job.as_str()), (2, Starter::Srun, "9"));
        assert_eq!(engine.notes, ["nodes of Slurm job 9: n[1-2], 4 CPUs; vmpid is started by srun"]);
        let by_hand = find(&Asked { launcher: Some("rsh"), ..Asked::default() }, &slurm).unwrap();
        assert_eq!(by_hand.way.launcher.as_deref(), Some("rsh"));
        let hosts = [Host { name: "elsewhere".into(), slots: None }];
        let named = find(&Asked { hosts: &hosts, ..Asked::default() }, &slurm).unwrap();
        assert!(named.allocation.is_none() && named.way.starter == Starter::Ssh);
        let wrong = find(&Asked::default(), &[("SLURM_JOB_ID", "9"), ("SLURM_JOB_NODELIST", "n[1-")]).unwrap_err();
        assert!(wrong.code == 2 && wrong.sentence.contains("SLURM_JOB_NODELIST=n[1-"), "{wrong:?}");
    }

    #[test]
    fn each_system_has_its_starter() {
        let ssh = [("PBS_JOBID", "1"), ("PBS_NODEFILE", "nodes")];
        let path = std::env::temp_dir().join(format!("vmpi-nodes-{}", std::process::id()));
        std::fs::write(&path, "n1\nn1\nn2\n").unwrap();
        let file = path.to_str().unwrap();
        for (variables, starter) in [
            (vec![ssh[0], ("PBS_NODEFILE", file)], Starter::Ssh),
            (vec![("LSB_JOBID", "1"), ("LSB_MCPU_HOSTS", "n1 2 n2 1")], Starter::Blaunch),
            (vec![("OAR_JOB_ID", "1"), ("OAR_NODEFILE", file)], Starter::Oarsh),
        ] {
            let engine = find(&Asked::default(), &variables).unwrap();
            assert_eq!(
                (names(&engine), engine.way.starter),
                (vec![("n1".into(), Some(2)), ("n2".into(), Some(1))], starter)
            );
            assert!(engine.notes[0].contains(&format!("started by {}", starter.name())), "{:?}", engine.notes);
            let by_ssh = Asked { starter: Some(Starter::Ssh), ..Asked::default() };
            assert_eq!(find(&by_ssh, &variables).unwrap().way.starter, Starter::Ssh);
        }
        std::fs::remove_file(&path).unwrap();
        let told = find(&Asked::default(), &ssh).unwrap();
        assert!(told.hosts.is_empty() && told.warnings[0].contains("PBS_NODEFILE=nodes cannot be read"), "{told:?}");
    }

    #[test]
    fn nodes_are_left_out() {
        let hosts = hosts::parse_list("localhost,a,b,c").unwrap();
        let left =
            |asked: Asked| find(&Asked { hosts: &hosts, ..asked }, &[]).map(|engine| (names(&engine), engine.warnings));
        let of = |list: &[&str]| list.iter().map(|name| (name.to_string(), None)).collect::<Vec<_>>();
        let b = ["b".to_string()];
        let asked = Asked { exclude: &b, no_local: true, nodes: Some(1), ..Asked::default() };
        assert_eq!(left(asked).unwrap(), (of(&["a"]), Vec::new()));
        let (all, warnings) = left(Asked { nodes: Some(9), ..Asked::default() }).unwrap();
        assert!(all.len() == 4 && warnings[0].starts_with("9 nodes are asked for, and 4"), "{warnings:?}");
        let every: Vec<String> = hosts.iter().map(|host| host.name.clone()).collect();
        assert!(left(Asked { exclude: &every, ..Asked::default() }).unwrap_err().sentence.contains("--exclude"));
    }
}
