//! Environments as batch systems give them to a job's script (host names replaced).

use super::*;
use std::collections::HashMap;

#[derive(Default)]
struct Recorded {
    variables: HashMap<&'static str, &'static str>,
    files: HashMap<&'static str, &'static str>,
    outputs: HashMap<&'static str, &'static str>,
}

impl Surroundings for Recorded {
    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| value.to_string()).filter(|value| !value.is_empty())
    }

    fn file(&self, path: &str) -> Result<String, String> {
        self.files.get(path).map(|text| text.to_string()).ok_or("No such file or directory".into())
    }

    fn output(&self, command: &[&str]) -> Result<String, String> {
        self.outputs.get(command.join(" ").as_str()).map(|text| text.to_string()).ok_or("not found".into())
    }
}

fn recorded(variables: &[(&'static str, &'static str)], files: &[(&'static str, &'static str)]) -> Recorded {
    Recorded {
        variables: variables.iter().copied().collect(),
        files: files.iter().copied().collect(),
        outputs: HashMap::new(),
    }
}

/// System, job, and nodes with CPUs and tasks.
fn told(here: &Recorded) -> (System, String, Vec<(String, Option<u32>, Option<u32>)>) {
    let mut untold = Vec::new();
    let allocation = allocation(here, &mut untold).unwrap().expect("an allocation");
    assert!(untold.is_empty(), "{untold:?}");
    let nodes = allocation.nodes.into_iter().map(|node| (node.name, node.cpus, node.tasks)).collect();
    (allocation.system, allocation.job, nodes)
}

fn slots(nodes: &[(&str, u32)]) -> Vec<(String, Option<u32>, Option<u32>)> {
    nodes.iter().map(|(name, slots)| (name.to_string(), Some(*slots), Some(*slots))).collect()
}

#[test]
fn torque() {
    let here = recorded(
        &[
            ("PBS_JOBID", "1234.head"),
            ("PBS_NODEFILE", "/var/spool/torque/aux//1234.head"),
            ("PBS_NUM_NODES", "2"),
            ("PBS_NUM_PPN", "4"),
            ("PBS_NP", "8"),
            ("PBS_ENVIRONMENT", "PBS_BATCH"),
        ],
        &[("/var/spool/torque/aux//1234.head", "node02\nnode02\nnode02\nnode02\nnode01\nnode01\nnode01\nnode01\n")],
    );
    assert_eq!(told(&here), (System::Pbs, "1234.head".into(), slots(&[("node02", 4), ("node01", 4)])));
}

#[test]
fn pbs_professional_with_threads() {
    // select=2:ncpus=8:mpiprocs=2
    let here = recorded(
        &[
            ("PBS_JOBID", "77.pbs01"),
            ("PBS_NODEFILE", "/var/spool/pbs/aux/77.pbs01"),
            ("NCPUS", "8"),
            ("OMP_NUM_THREADS", "4"),
            ("PBS_ENVIRONMENT", "PBS_BATCH"),
        ],
        &[(
            "/var/spool/pbs/aux/77.pbs01",
            "x1000c0s0b0n0.hsn\nx1000c0s0b0n0.hsn\nx1000c0s0b0n1.hsn\nx1000c0s0b0n1.hsn\n",
        )],
    );
    let node = |name: &str| (name.to_string(), Some(8), Some(2));
    let nodes = vec![node("x1000c0s0b0n0.hsn"), node("x1000c0s0b0n1.hsn")];
    assert_eq!(told(&here), (System::Pbs, "77.pbs01".into(), nodes));
}

#[test]
fn lsf_by_its_file_or_its_variables() {
    let all = [
        ("LSB_JOBID", "99"),
        ("LSB_DJOB_HOSTFILE", "/home/me/.lsbatch/1.99.hostfile"),
        ("LSB_MCPU_HOSTS", "hostA 2 hostB 1"),
        ("LSB_HOSTS", "hostA hostA hostB"),
        ("LSB_DJOB_NUMPROC", "3"),
    ];
    let file = [("/home/me/.lsbatch/1.99.hostfile", "hostA\nhostA\nhostB\n")];
    let wanted = (System::Lsf, "99".to_string(), slots(&[("hostA", 2), ("hostB", 1)]));
    assert_eq!(told(&recorded(&all, &file)), wanted);
    assert_eq!(told(&recorded(&[all[0], all[2]], &[])), wanted);
    assert_eq!(told(&recorded(&[all[0], all[3]], &[])), wanted);
}

#[test]
fn grid_engine_with_and_without_a_parallel_environment() {
    let all = [
        ("JOB_ID", "3"),
        ("SGE_TASK_ID", "undefined"),
        ("NSLOTS", "5"),
        ("NHOSTS", "2"),
        ("PE", "mpi"),
        ("PE_HOSTFILE", "/sge/pe_hostfile"),
    ];
    let file = [("/sge/pe_hostfile", "vm1 3 all.q@vm1 UNDEFINED\nvm2 1 all.q@vm2 UNDEFINED\nvm2 1 b.q@vm2 <NULL>\n")];
    assert_eq!(told(&recorded(&all, &file)), (System::GridEngine, "3".into(), slots(&[("vm1", 3), ("vm2", 2)])));
    // One slot is one core, not all of the machine.
    let serial = recorded(&[("JOB_ID", "4"), ("SGE_TASK_ID", "undefined"), ("NSLOTS", "1")], &[]);
    assert_eq!(told(&serial), (System::GridEngine, "4".into(), slots(&[("localhost", 1)])));
    let mut untold = Vec::new();
    let other = recorded(&[("JOB_ID", "ci-17")], &[]);
    assert_eq!((allocation(&other, &mut untold), untold.len()), (Ok(None), 0), "somebody else's JOB_ID");
}

#[test]
fn flux_and_its_brokers() {
    let mut here = recorded(&[("FLUX_URI", "local:///tmp/flux-x/local-0")], &[]);
    here.outputs = HashMap::from([("flux getattr hostlist", "corona[171-172]\n"), ("flux getattr jobid", "f2Ab\n")]);
    let node = |name: &str| (name.to_string(), None, None);
    assert_eq!(told(&here), (System::Flux, "f2Ab".into(), vec![node("corona171"), node("corona172")]));
    // A task of `flux run` has the instance's address, too, and not its nodes.
    here.variables.insert("FLUX_TASK_RANK", "0");
    assert_eq!(allocation(&here, &mut Vec::new()), Ok(None));
}

#[test]
fn oar_with_cores_or_whole_nodes() {
    let variables =
        [("OAR_JOB_ID", "12"), ("OAR_NODEFILE", "/var/lib/oar/12"), ("OAR_RESOURCE_FILE", "/var/lib/oar/12_resources")];
    let cores = recorded(&variables, &[("/var/lib/oar/12", "a\na\nb\n")]);
    assert_eq!(told(&cores), (System::Oar, "12".into(), slots(&[("a", 2), ("b", 1)])));
    let whole = recorded(&variables, &[("/var/lib/oar/12", "a\nb\n")]);
    let node = |name: &str| (name.to_string(), None, None);
    assert_eq!(told(&whole), (System::Oar, "12".into(), vec![node("a"), node("b")]));
}

#[test]
fn cobalt_has_whole_nodes() {
    let here = recorded(
        &[("COBALT_JOBID", "5"), ("COBALT_NODEFILE", "/var/tmp/cobalt.5")],
        &[("/var/tmp/cobalt.5", "gpu01\ngpu02\n")],
    );
    let node = |name: &str| (name.to_string(), None, None);
    assert_eq!(told(&here), (System::Cobalt, "5".into(), vec![node("gpu01"), node("gpu02")]));
}

#[test]
fn what_cannot_be_used_is_told_of() {
    for (variables, part) in [
        (&[("PBS_JOBID", "1")][..], "PBS job 1 has no PBS_NODEFILE"),
        (&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "/gone")], "PBS_NODEFILE=/gone cannot be read: No such file"),
        (&[("LSB_JOBID", "1")], "LSF job 1 has none of"),
        (&[("LSB_JOBID", "1"), ("LSB_MCPU_HOSTS", "a 2 b")], "LSB_MCPU_HOSTS=a 2 b is not"),
        (&[("JOB_ID", "1"), ("PE_HOSTFILE", "/gone")], "PE_HOSTFILE=/gone cannot be read"),
        (&[("FLUX_URI", "local:///x")], "`flux getattr hostlist` fails (not found)"),
        (&[("OAR_JOB_ID", "1")], "OAR job 1 has no OAR_NODEFILE"),
        (&[("COBALT_JOBID", "1")], "Cobalt job 1 has no COBALT_NODEFILE"),
    ] {
        let mut untold = Vec::new();
        assert_eq!(allocation(&recorded(variables, &[]), &mut untold), Ok(None), "{part}");
        assert!(untold.len() == 1 && untold[0].contains(part), "{untold:?}");
    }
    let empty = recorded(&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "/f")], &[("/f", "\n")]);
    let mut untold = Vec::new();
    assert_eq!(allocation(&empty, &mut untold), Ok(None));
    assert!(untold[0].contains("names no host"), "{untold:?}");
}
