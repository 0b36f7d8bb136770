//! How many ranks each node gets, and which cores there.

use super::frames::Facts;
use super::rdma;
use crate::cli::{BindTo, RunOptions, VChoice};
use crate::cpus;
use crate::environ::Env;
use crate::failure::Failure;
use crate::pins::Pins;
use crate::place::threads;
use crate::plan::{self, By, Plan, Wish};
use std::io::Read;
use vmpi_shared::control::{JobSpec, NodePart, Nodes};

/// A node of the job, as the user calls it, and what it has said of itself.
#[derive(Clone, Debug)]
pub struct Known {
    pub name: String,
    pub slots: Option<u32>,
    pub facts: Facts,
}

/// What is known of a node.
#[derive(Copy, Clone, Debug)]
pub struct Room {
    /// Slots that the host list gives it.
    pub slots: Option<u32>,
    pub cores: u32,
}

/// Ranks per node, in the order of the nodes: neighbours stay together.
///
/// With slots (or `per_node` ranks for each), nodes are filled in order; more ranks than slots are spread evenly on top. Without, ranks are
/// spread in proportion to the cores. No `ranks`: as many as there are slots, or V times the cores.
pub fn distribute(ranks: Option<u32>, per_node: Option<u32>, v: Option<u32>, rooms: &[Room]) -> Vec<u32> {
    let counted = per_node.is_some() || rooms.iter().any(|room| room.slots.is_some());
    let by_cores = |room: &Room| room.cores.saturating_mul(v.unwrap_or(1));
    let most: Vec<u64> =
        rooms.iter().map(|room| u64::from(per_node.or(room.slots).unwrap_or_else(|| by_cores(room)).max(1))).collect();
    let all: u64 = most.iter().sum();
    let ranks = ranks.map_or(all, u64::from);
    if counted && ranks <= all {
        let mut left = ranks;
        return most
            .iter()
            .map(|most| {
                let here = left.min(*most);
                left -= here;
                here as u32
            })
            .collect();
    }
    // Cut 0..ranks at the nodes' shares of the whole.
    let mut before = 0;
    most.iter()
        .map(|most| {
            let from = (before * ranks).div_ceil(all);
            before += most;
            ((before * ranks).div_ceil(all) - from) as u32
        })
        .collect()
}

/// Place the job on the nodes. The plan counts the cores of those that are used, in order, and the numbers of these come with it: the others get
/// no rank.
///
/// # Errors
/// Exit code 2: `--cores` names a CPU that a node does not have; ranks are to go to a node that is none of the job's.
pub fn plan(
    options: &RunOptions,
    wish: &Wish,
    known: &[&Known],
    pins: Option<&Pins>,
) -> Result<(Plan, Nodes, Vec<usize>), Failure> {
    let of_node = |node: &Known, why: Failure| Failure::new(why.code, format!("node {}: {}", node.name, why.sentence));
    let mut cpus = Vec::new();
    for node in known {
        let topology = &node.facts.topology;
        let allowed = topology.threads(&node.facts.cpus, options.threads_per_core);
        let mut allowed = topology.first_threads_first(&allowed);
        if options.cores.is_none() {
            cpus::keep_to_quota(&mut allowed, node.facts.quota);
        }
        let chosen = cpus::choose(options.cores.as_deref(), &allowed);
        cpus.push(chosen.map_err(|why| of_node(node, why))?);
    }
    let places = |cpus: &[u32]| (cpus.len() as u32 / wish.cpus_per_rank.max(1)).max(1);
    // So many on each part of a node are slots.
    let slots = |node: &Known, cpus: &[u32]| match wish.by {
        Some(by @ By::Per(_, resource)) => by.ranks(node.facts.topology.parts(cpus, resource).len()),
        // A rank with the CPUs of several slots takes these, while there are nodes.
        _ if wish.cpus_per_rank > 1 && wish.ranks.is_some() && wish.v.is_none() => {
            node.slots.map(|slots| slots.min(places(cpus)))
        }
        _ => node.slots,
    };
    let room = |(node, cpus): (&&Known, &Vec<u32>)| Room { slots: slots(node, cpus), cores: places(cpus) };
    let rooms: Vec<Room> = known.iter().zip(&cpus).map(room).collect();
    let v = match wish.v {
        Some(VChoice::Exactly(v)) => Some(v),
        _ => None,
    };
    let counts = match pins {
        Some(pins) => pins.counts(known.len()),
        None => distribute(wish.ranks, options.ranks_per_node, v, &rooms),
    };
    let mut whole = Plan {
        ranks: 0,
        v: 0,
        cpus: Vec::new(),
        spare: Vec::new(),
        beside: Vec::new(),
        masks: Vec::new(),
        placement: Vec::new(),
        bind: true,
        notes: Vec::new(),
        nodes: Vec::new(),
    };
    let (fabric, fabric_why) = rdma::choose(&options.fabric, known);
    let mut nodes = Nodes {
        fabric,
        fabric_why,
        progress_by_rank: options.progress_by_rank,
        key: hex(&random::<32>()?),
        identity: u64::from_le_bytes(random()?),
        ..Nodes::default()
    };
    let mut used = Vec::new();
    for (number, ((node, cpus), count)) in known.iter().zip(cpus).zip(counts).enumerate() {
        if count == 0 && !options.spare_nodes {
            continue;
        }
        let topology = &node.facts.topology;
        let named = match pins {
            Some(pins) => pins.cpus_on(number, topology).map_err(|why| of_node(node, why))?,
            None => None,
        };
        let mut part = match named.or_else(|| of_lists(&options.bind_to, count)) {
            Some(named) => plan::named(&named, &cpus).map_err(|why| of_node(node, why))?,
            None => plan::plan(&Wish { ranks: Some(count), ..wish.clone() }, &cpus, topology),
        };
        part.v = part.v.max(1);
        let before = whole.cpus.len() as u32;
        whole.ranks += part.ranks;
        whole.v = whole.v.max(part.v);
        whole.bind &= part.bind;
        whole.cpus.extend(&part.cpus);
        whole.beside.extend(part.beside.iter().take(part.cpus.len()).cloned());
        let masks: Vec<Vec<u32>> =
            (0..part.cpus.len()).map(|core| part.mask(core).unwrap_or_default().to_vec()).collect();
        whole.masks.extend(masks);
        whole.placement.extend(part.placement.iter().map(|core| before + core));
        whole.notes.extend(part.notes.iter().map(|note| format!("node {}: {note}", node.name)));
        whole.nodes.push(format!("node {}: {}", node.name, part.sentence()));
        nodes.of_rank.extend(std::iter::repeat_n(used.len() as u32, count as usize));
        nodes.names.push(node.name.clone());
        nodes.parts.push(NodePart {
            cpus: part.cpus,
            spare_cpus: part.spare,
            beside: part.beside,
            masks: part.masks,
            v: part.v,
            bind: part.bind,
        });
        used.push(number);
    }
    Ok((whole, nodes, used))
}

/// CPUs for each rank of a job of these nodes; `own`: vmpirun's environment, `tasks`: CPUs that the batch system was asked for by each task.
pub fn cpus_per_rank(options: &RunOptions, own: &Env, ranks: Option<u32>, known: &[&Known], tasks: Option<u32>) -> u32 {
    let fewest = known.iter().map(|node| node.facts.cpus.len() as u32).min().unwrap_or(0);
    let with = |most: Option<u32>| threads::cpus_per_rank(options, own, most, fewest, tasks);
    let slots = options.ranks_per_node.or_else(|| known.iter().filter_map(|node| node.slots).max());
    let Some(ranks) = ranks else {
        // A rank for each slot.
        return with(slots.filter(|_| options.v.is_none()));
    };
    // On all nodes alike, if their slots allow it; else these are filled in order.
    let evenly = ranks.div_ceil(known.len().max(1) as u32);
    let each = with(Some(evenly));
    let held =
        known.iter().map(|node| u64::from(node.slots.unwrap_or(u32::MAX).min(node.facts.cpus.len() as u32 / each)));
    match options.v.is_none() && options.ranks_per_node.is_none() && held.sum::<u64>() >= u64::from(ranks) {
        true => each,
        false => with(Some(slots.unwrap_or(0).max(evenly).min(ranks))),
    }
}

/// The CPUs of each of a node's `ranks` ranks, where lists are given that go round.
pub fn of_lists(bind_to: &Option<BindTo>, ranks: u32) -> Option<Vec<Vec<u32>>> {
    match bind_to {
        Some(BindTo::Lists(lists)) => Some(lists.iter().cycle().take(ranks as usize).cloned().collect()),
        _ => None,
    }
}

/// Each rank's core as an index in the cores of its node.
pub fn cores_on_nodes(plan: &Plan, spec: &JobSpec) -> Vec<u32> {
    let Some(nodes) = &spec.nodes else { return plan.placement.clone() };
    let before = |node: u32| nodes.parts[..node as usize].iter().map(|part| part.cpus.len() as u32).sum::<u32>();
    plan.placement.iter().zip(&nodes.of_rank).map(|(core, node)| core - before(*node)).collect()
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| Failure::own(format!("the system has no random numbers for the job's key: {e}")))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};

    fn rooms(list: &[(Option<u32>, u32)]) -> Vec<Room> {
        list.iter().map(|(slots, cores)| Room { slots: *slots, cores: *cores }).collect()
    }

    #[test]
    fn slots_are_filled_and_cores_share() {
        let equal = rooms(&[(None, 1), (None, 1)]);
        assert_eq!(distribute(Some(8), None, None, &equal), [4, 4]);
        assert_eq!(distribute(None, None, Some(3), &equal), [3, 3]);
        assert_eq!(distribute(Some(1), None, None, &equal), [1, 0]);
        assert_eq!(distribute(None, Some(2), None, &equal), [2, 2]);
        assert_eq!(distribute(Some(3), Some(2), None, &equal), [2, 1]);
        assert_eq!(distribute(Some(10), Some(2), None, &equal), [5, 5]);
        let slots = rooms(&[(Some(4), 8), (Some(2), 8), (None, 3)]);
        assert_eq!(distribute(Some(5), None, None, &slots), [4, 1, 0]);
        assert_eq!(distribute(None, None, None, &slots), [4, 2, 3]);
        assert_eq!(distribute(Some(18), None, None, &slots), [8, 4, 6]);
        assert_eq!(distribute(Some(9), None, None, &rooms(&[(None, 8), (None, 4)])), [6, 3]);
    }

    /// Nodes of 2 or 8 CPUs and so many slots; options, OMP_NUM_THREADS and CPUs of a task; CPUs for each rank, and ranks on each node.
    #[test]
    fn threads_have_cpus_on_all_nodes() {
        let planned = |nodes: &[(u32, Option<u32>)], line: &str, omp: Option<&str>, tasks: Option<u32>| {
            let node = |(number, (cpus, slots)): (usize, &(u32, Option<u32>))| Known {
                name: format!("n{number}"),
                slots: *slots,
                facts: Facts { cpus: (0..*cpus).collect(), ..Facts::default() },
            };
            let known: Vec<Known> = nodes.iter().enumerate().map(node).collect();
            let known: Vec<&Known> = known.iter().collect();
            let options = match parse(&line.split(' ').map(str::to_string).collect::<Vec<_>>()) {
                Ok(Command::Run(options)) => *options,
                other => panic!("{other:?}"),
            };
            let own: Env = omp.iter().map(|omp| ("OMP_NUM_THREADS".to_string(), omp.to_string())).collect();
            let ranks = options.apps[0].ranks;
            let each = cpus_per_rank(&options, &own, ranks, &known, tasks);
            let wish = Wish { ranks, v: options.v, cpus_per_rank: each, ..Wish::default() };
            let (_, nodes, _) = plan(&options, &wish, &known, None).unwrap();
            let on = |number: u32| nodes.of_rank.iter().filter(|node| **node == number).count();
            (each, (0..nodes.names.len() as u32).map(on).collect::<Vec<_>>())
        };
        let (two, eight) = ([(2, Some(2)); 2], [(8, Some(2)); 2]);
        // Tasks of several CPUs, by OMP_NUM_THREADS or by what the batch system was asked for.
        assert_eq!(planned(&eight, "x", Some("4"), None), (4, vec![2, 2]));
        assert_eq!(planned(&eight, "x", None, Some(4)), (4, vec![2, 2]));
        assert_eq!(planned(&eight, "x", Some("2"), Some(4)), (2, vec![2, 2]));
        assert_eq!(planned(&eight, "-V 2 x", Some("4"), None).0, 1);
        // Fewer ranks than slots, with the CPUs of several.
        assert_eq!(planned(&two, "-n 2 x", Some("2"), None), (2, vec![1, 1]));
        assert_eq!(planned(&two, "-n 2 --map-by slot:PE=2 x", None, None), (2, vec![1, 1]));
        assert_eq!(planned(&two, "-n 4 x", Some("2"), None), (1, vec![2, 2]));
        assert_eq!(planned(&two, "-n 2 x", None, None), (1, vec![2]));
        assert_eq!(planned(&[(8, Some(4)), (8, Some(1))], "-n 4 x", Some("4"), None), (2, vec![4]));
        assert_eq!(planned(&[(8, None); 2], "-n 4 x", Some("4"), None), (4, vec![2, 2]));
    }

    #[test]
    fn every_rank_has_a_node() {
        for ranks in 1..60 {
            for list in [&[(None, 1), (None, 5), (None, 2)][..], &[(Some(3), 1), (Some(1), 1)], &[(None, 0), (None, 7)]]
            {
                for v in [None, Some(3)] {
                    let counts = distribute(Some(ranks), None, v, &rooms(list));
                    assert_eq!(counts.iter().sum::<u32>(), ranks, "{list:?} {v:?}");
                }
            }
        }
    }
}
