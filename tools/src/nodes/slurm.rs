//! A Slurm allocation, as its environment variables tell it (sbatch(1), OUTPUT ENVIRONMENT VARIABLES), and the command that starts an agent in it.

use super::allocation::{Allocation, Node, System};
use crate::hostlist::expand;
use std::process::Command;

/// Options that vmpirun's user gave to salloc, and that do not concern the one process per node that srun starts here.
const NOT_FOR_AGENTS: &[&str] = &[
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_SOCKET",
    "SLURM_TASKS_PER_NODE",
    "SLURM_CPUS_PER_TASK",
    "SLURM_DISTRIBUTION",
    "SLURM_HINT",
    "SLURM_THREADS_PER_CORE",
    "SLURM_ARBITRARY_NODELIST",
];

/// The allocation in which this process runs, if any.
///
/// # Errors
/// A variable that makes no sense, by its name.
pub fn allocation(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Allocation>, String> {
    let first = |names: &[&str]| names.iter().find_map(|name| Some((name.to_string(), variable(name)?)));
    let Some((_, job)) = first(&["SLURM_JOB_ID", "SLURM_JOBID"]) else { return Ok(None) };
    let Some((name, list)) = first(&["SLURM_JOB_NODELIST", "SLURM_NODELIST"]) else { return Ok(None) };
    let names = expand(&list).map_err(|why| format!("{name}={list}: {why}"))?;
    let counts = |name: &str| -> Result<Vec<Option<u32>>, String> {
        match variable(name) {
            None => Ok(vec![None; names.len()]),
            Some(text) => {
                let counts = repeated(&text, names.len()).map_err(|why| format!("{name}={text}: {why}"))?;
                Ok(counts.into_iter().map(Some).collect())
            }
        }
    };
    let cpus = counts("SLURM_JOB_CPUS_PER_NODE")?;
    // Without a number of tasks asked for, Slurm tells one per node.
    let asked = first(&["SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE"]).is_some();
    let tasks = if asked { counts("SLURM_TASKS_PER_NODE")? } else { vec![None; names.len()] };
    let nodes = names.into_iter().zip(cpus).zip(tasks);
    let nodes = nodes.map(|((name, cpus), tasks)| Node { name, cpus, tasks }).collect();
    let cpus_per_task = variable("SLURM_CPUS_PER_TASK").and_then(|cpus| cpus.parse().ok());
    Ok(Some(Allocation { system: System::Slurm, job, list, nodes, cpus_per_task }))
}

/// How many threads of each core the job asked for: `sbatch --hint=nomultithread` or `--threads-per-core`, which CPUs alone do not tell.
pub fn threads_per_core(variable: impl Fn(&str) -> Option<String>) -> Option<u32> {
    variable("SLURM_JOB_ID").or_else(|| variable("SLURM_JOBID"))?;
    match variable("SLURM_HINT").as_deref() {
        Some("nomultithread" | "compute_bound") => Some(1),
        _ => variable("SLURM_THREADS_PER_CORE")?.parse().ok().filter(|threads| *threads > 0),
    }
}

/// srun for one process on `node` of the allocation, beside whatever else runs there. Its standard streams are passed on as they are.
pub fn srun(job: &str, node: &str) -> Command {
    let mut command = Command::new("srun");
    command.args(["--jobid", job, "--nodes=1", "--ntasks=1", "--overlap", "--mpi=none", "--cpu-bind=none"]);
    command.args(["--unbuffered", "--kill-on-bad-exit=1", "--job-name=vmpid"]);
    command.arg(format!("--nodelist={node}"));
    for name in NOT_FOR_AGENTS {
        command.env_remove(name);
    }
    command
}

/// `2(x3),1` as 2, 2, 2, 1.
///
/// # Errors
/// What makes no sense, or another number of nodes than `nodes`.
pub fn repeated(text: &str, nodes: usize) -> Result<Vec<u32>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')').ok_or("a bracket is not closed")?),
            None => (part, "1"),
        };
        let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is no number"));
        let (count, times) = (number(count)?, number(times)? as usize);
        if all.len() + times > nodes {
            return Err(format!("it counts more than {nodes} nodes"));
        }
        all.extend(std::iter::repeat_n(count, times));
    }
    match all.len() == nodes {
        true => Ok(all),
        false => Err(format!("it counts {} nodes of {nodes}", all.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counts_per_node() {
        assert_eq!(repeated("2(x3),1", 4).unwrap(), [2, 2, 2, 1]);
        assert_eq!(repeated("16", 1).unwrap(), [16]);
        for (wrong, nodes) in [("2(x3)", 2), ("2", 2), ("2(x", 2), ("x", 1), ("1(x4000000000)", 3), ("-1", 1)] {
            assert!(repeated(wrong, nodes).is_err(), "{wrong}");
        }
    }

    fn with(more: &[(&str, &str)]) -> Result<Option<Allocation>, String> {
        let all =
            [&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n[1-2]"), ("SLURM_JOB_CPUS_PER_NODE", "4(x2)")], more]
                .concat();
        allocation(|name| all.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn an_allocation_is_read() {
        let threads = |set: &[(&str, &str)]| {
            threads_per_core(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(threads(&[("SLURM_JOB_ID", "7"), ("SLURM_HINT", "nomultithread")]), Some(1));
        assert_eq!(threads(&[("SLURM_JOB_ID", "7"), ("SLURM_THREADS_PER_CORE", "2")]), Some(2));
        assert_eq!((threads(&[("SLURM_JOB_ID", "7")]), threads(&[("SLURM_HINT", "nomultithread")])), (None, None));
        let bare = with(&[("SLURM_TASKS_PER_NODE", "1(x2)")]).unwrap().unwrap();
        assert_eq!((bare.cpus(), bare.hosts(false)[1].slots), (Some(8), None));
        let tasks = [("SLURM_TASKS_PER_NODE", "3,1"), ("SLURM_NTASKS", "4")];
        let asked = with(&tasks).unwrap().unwrap();
        let slots = |v_counts| asked.hosts(v_counts).into_iter().map(|host| host.slots).collect::<Vec<_>>();
        assert_eq!((slots(false), slots(true)), (vec![Some(3), Some(1)], vec![None, None]));
        assert_eq!((asked.cpus_per_task, bare.cpus_per_task), (None, None));
        let several = with(&[("SLURM_CPUS_PER_TASK", "4")]).unwrap().unwrap();
        assert_eq!(several.cpus_per_task, Some(4));
        let why = with(&[("SLURM_JOB_CPUS_PER_NODE", "4")]).unwrap_err();
        assert_eq!(why, "SLURM_JOB_CPUS_PER_NODE=4: it counts 1 nodes of 2");
        assert_eq!(allocation(|_| None), Ok(None));
    }

    #[test]
    fn too_small_ones_are_named() {
        let allocation = with(&[]).unwrap().unwrap();
        assert_eq!(allocation.check(16, 2), Ok(()));
        let why = allocation.check(17, 2).unwrap_err();
        assert_eq!(
            why,
            "17 ranks with V = 2 need 9 cores, and Slurm job 7 has 8 (on n[1-2]): allocate more, or say -V 3"
        );
    }

    proptest! {
        #[test]
        fn counts_come_back(counts in proptest::collection::vec((0u32..200, 1u32..30), 1..20)) {
            let text: Vec<String> = counts.iter().map(|(c, t)| if *t == 1 { c.to_string() } else { format!("{c}(x{t})") }).collect();
            let wanted: Vec<u32> = counts.iter().flat_map(|(c, t)| std::iter::repeat_n(*c, *t as usize)).collect();
            prop_assert_eq!(repeated(&text.join(","), wanted.len()).unwrap(), wanted);
        }

        /// Any text: an answer or an error.
        #[test]
        fn noise_harms_nothing(text in "[\\[\\]a-c0-9,x()-]{0,30}") {
            let _ = repeated(&text, 10);
        }
    }
}
