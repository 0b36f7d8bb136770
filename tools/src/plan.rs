//! V, the cores and each rank's place: the rules for `-n`, `-V`, `--cores` and `--cpus-per-rank`.

mod spread;

use crate::cli::{BindTo, MapBy, Resource, RunOptions, VChoice};
use crate::cpus;
use crate::failure::Failure;
use crate::topology::Topology;
pub use spread::By;

/// Where the ranks go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub ranks: u32,
    /// The largest number of ranks on one core.
    pub v: u32,
    /// The CPU of each core that gets ranks.
    pub cpus: Vec<u32>,
    /// Those of the others, for ranks that are spawned later.
    pub spare: Vec<u32>,
    /// The further CPUs of each core, spare ones included, where ranks have several; else empty.
    pub beside: Vec<Vec<u32>>,
    /// For each core, spare ones included, the CPUs that its ranks may run on, where these are more than its own; else empty.
    pub masks: Vec<Vec<u32>>,
    /// For each rank the index in `cpus`.
    pub placement: Vec<u32>,
    pub bind: bool,
    /// What was chosen against the request, and why.
    pub notes: Vec<String>,
    /// In a job of several nodes a sentence for each; the CPUs are then those of all nodes, in order.
    pub nodes: Vec<String>,
}

/// What the command line fixes.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// `None`: as many as V and the cores give.
    pub ranks: Option<u32>,
    pub v: Option<VChoice>,
    pub map_by: MapBy,
    pub bind: Option<bool>,
    /// The cores were named by `--cores`.
    pub cores_named: bool,
    /// CPUs of each core; 0 and 1: one.
    pub cpus_per_rank: u32,
    /// Ranks are dealt out to parts of the machine.
    pub by: Option<By>,
    /// What ranks are bound to, and how many of them, if that is more than their core.
    pub bind_to: Option<(Resource, u32)>,
}

impl Wish {
    /// The same, with what the options say about parts of the machine.
    pub fn by_parts(self, options: &RunOptions) -> Wish {
        let bind_to = match options.bind_to {
            // Hydra's `core:4` are four for each rank (`threads::cpus_per_rank`).
            Some(BindTo::To(Resource::Core | Resource::Hwthread, n)) if n > 1 => None,
            Some(BindTo::To(resource, n)) => Some((resource, n)),
            _ => None,
        };
        Wish { by: By::of(options), bind_to, ..self }
    }
}

/// Choose; never refuses. `cpus` must not be empty.
///
/// With `-n` alone V is what fits; with `-V` alone the ranks are V times the cores; with both, as few cores as hold n
/// ranks are used, and where V times the cores is too little V grows. The ranks are spread so that no two cores
/// differ by more than one rank. Ranks are pinned unless V is 1 and cores stay free: then the kernel may choose
/// better, since another job's ranks may sit on the same CPU.
///
/// With several CPUs for each rank a core is a place of so many CPUs, which its ranks share as others share a CPU. Where ranks go to parts of the machine
/// (`By`), each part has its places, and these rules hold there.
pub fn plan(wish: &Wish, cpus: &[u32], topology: &Topology) -> Plan {
    let mut notes = Vec::new();
    let size = (wish.cpus_per_rank.max(1) as usize).min(cpus.len());
    if (wish.cpus_per_rank as usize) > size {
        notes.push(format!("{size} CPUs for each rank instead of {}: there are no more", wish.cpus_per_rank));
    }
    let together = (size > 1 && wish.by.is_none() && !wish.cores_named && !fits_apart(wish, size, cpus, topology))
        .then(|| topology.parts(cpus, Resource::Core).concat());
    let cpus = together.as_deref().unwrap_or(cpus);
    let places = spread::pieces(cpus, size, wish.by.map(By::resource), topology);
    let available = places.len() as u32;
    let asked_v = match wish.v {
        Some(VChoice::Exactly(v)) => Some(v),
        Some(VChoice::Auto) | None => None,
    };
    let parts = wish.by.map(|by| parts(&places, by.resource(), topology));
    let by_parts = wish.by.zip(parts.as_ref()).and_then(|(by, parts)| by.ranks(parts.len()));
    let ranks = wish.ranks.or(by_parts).unwrap_or_else(|| asked_v.unwrap_or(1).saturating_mul(available));
    let (order, used, placement) = match wish.by.zip(parts) {
        Some((by, parts)) => {
            if let By::Per(n, resource) = by
                && u64::from(ranks) > u64::from(n) * parts.len() as u64
            {
                let (name, each) = (resource.name(), ranks.div_ceil(parts.len() as u32));
                notes.push(format!(
                    "{each} ranks on each {name} instead of {n}: {ranks} ranks on {} need it",
                    parts.len()
                ));
            }
            in_parts(by, ranks, asked_v, &parts)
        }
        None => {
            let used = match asked_v {
                Some(v) => ranks.div_ceil(v).min(available),
                None => ranks.min(available),
            }
            .max(1);
            let core = |rank| match wish.map_by {
                MapBy::RoundRobin => rank % used,
                // Seats, which `place` deals out otherwise than in order.
                _ => block(rank, ranks, used),
            };
            ((0..places.len()).collect(), used, (0..ranks).map(core).collect())
        }
    };
    let places: Vec<Vec<u32>> = order.into_iter().map(|place: usize| places[place].clone()).collect();
    let v = most_on_a_core(&placement, used);
    if let Some(asked) = asked_v
        && v > asked
    {
        notes.push(format!(
            "V = {v} instead of {asked}: {ranks} ranks on {available} core{} need it",
            if available == 1 { "" } else { "s" }
        ));
    }
    let bind = wish.bind.unwrap_or(v > 1 || used == available || wish.cores_named || size > 1 || wish.by.is_some());
    let masks = match wish.bind_to.filter(|(resource, _)| bind && *resource != Resource::Hwthread) {
        Some(to) => spread::masks(&places, cpus, to, topology),
        None => Vec::new(),
    };
    let mut cpus: Vec<u32> = places.iter().map(|place| place[0]).collect();
    let spare = cpus.split_off(used as usize);
    let beside = if size > 1 { places.iter().map(|place| place[1..].to_vec()).collect() } else { Vec::new() };
    Plan { ranks, v, cpus, spare, beside, masks, placement, bind, notes, nodes: Vec::new() }
}

/// Are there physical cores enough for all CPUs of these ranks? Where not, the threads of a core go to one rank.
fn fits_apart(wish: &Wish, size: usize, cpus: &[u32], topology: &Topology) -> bool {
    let v = match wish.v {
        Some(VChoice::Exactly(v)) => v.max(1),
        _ => 1,
    };
    let cores = topology.parts(cpus, Resource::Core).len();
    wish.ranks.is_some_and(|ranks| ranks.div_ceil(v) as usize * size <= cores)
}

/// The places of each part, by their indices.
fn parts(places: &[Vec<u32>], resource: Resource, topology: &Topology) -> Vec<Vec<usize>> {
    let firsts: Vec<u32> = places.iter().map(|place| place[0]).collect();
    let index = |cpu: &u32| firsts.iter().position(|first| first == cpu).expect("parts are of these CPUs");
    topology.parts(&firsts, resource).iter().map(|part| part.iter().map(index).collect()).collect()
}

/// The places in their new order, those with ranks first; how many of them have ranks; the place of each rank in that order.
fn in_parts(by: By, ranks: u32, asked_v: Option<u32>, parts: &[Vec<usize>]) -> (Vec<usize>, u32, Vec<u32>) {
    let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
    let part_of = by.deal(ranks, &sizes, asked_v.unwrap_or(1));
    let (mut order, mut spare) = (Vec::<usize>::new(), Vec::<usize>::new());
    let mut placement = vec![0; ranks as usize];
    for (number, places) in parts.iter().enumerate() {
        let own: Vec<usize> = (0..ranks as usize).filter(|rank| part_of[*rank] == number).collect();
        let count = own.len() as u32;
        let used = count.div_ceil(asked_v.unwrap_or(1).max(1)).min(places.len() as u32);
        for (at, rank) in (0..).zip(own) {
            placement[rank] = order.len() as u32 + block(at, count, used);
        }
        let (with, without) = places.split_at(used as usize);
        order.extend(with);
        spare.extend(without);
    }
    let used = order.len() as u32;
    order.extend(spare);
    (order, used, placement)
}

fn most_on_a_core(placement: &[u32], cores: u32) -> u32 {
    let mut ranks = vec![0; cores as usize];
    placement.iter().for_each(|core| ranks[*core as usize] += 1);
    ranks.into_iter().max().unwrap_or(0)
}

/// Each rank on the CPUs that a rank file, or a list, gives it: it goes by the one of them that has the fewest ranks.
///
/// # Errors
/// Exit code 2: one is not among `allowed`.
pub fn named(lists: &[Vec<u32>], allowed: &[u32]) -> Result<Plan, Failure> {
    if let Some(cpu) = lists.iter().flatten().find(|cpu| !allowed.contains(cpu)) {
        let list = cpus::format_list(allowed);
        return Err(Failure::usage(format!("a rank is to run on CPU {cpu}, which is not among those to use ({list})")));
    }
    let mut own: Vec<u32> = Vec::new();
    let mut masks: Vec<Vec<u32>> = Vec::new();
    let mut placement: Vec<u32> = Vec::new();
    for list in lists {
        let load = |cpu: &u32| {
            let core = own.iter().position(|known| known == cpu);
            placement.iter().filter(|place| Some(**place as usize) == core).count()
        };
        let cpu = *list.iter().min_by_key(|cpu| load(cpu)).expect("a list has a CPU");
        let core = own.iter().position(|known| *known == cpu).unwrap_or_else(|| {
            own.push(cpu);
            masks.push(Vec::new());
            own.len() - 1
        });
        placement.push(core as u32);
        masks[core].extend(list);
        masks[core].sort_unstable();
        masks[core].dedup();
    }
    let v = most_on_a_core(&placement, own.len() as u32);
    let spare: Vec<u32> = allowed.iter().copied().filter(|cpu| !own.contains(cpu)).collect();
    let masks = match masks.iter().any(|mask| mask.len() > 1) {
        true => masks.into_iter().chain(spare.iter().map(|cpu| vec![*cpu])).collect(),
        false => Vec::new(),
    };
    let ranks = lists.len() as u32;
    let beside = Vec::new();
    Ok(Plan { ranks, v, cpus: own, spare, beside, masks, placement, bind: true, notes: Vec::new(), nodes: Vec::new() })
}

/// The core of a rank when `ranks` neighbours are cut into `cores` pieces of equal size, the first ones one larger.
fn block(rank: u32, ranks: u32, cores: u32) -> u32 {
    let (small, larger) = (ranks / cores, ranks % cores);
    let edge = larger * (small + 1);
    if rank < edge { rank / (small + 1) } else { larger + (rank - edge) / small }
}

impl Plan {
    /// `4 ranks on 2 cores (CPUs 0-1), V = 2, pinned`.
    pub fn sentence(&self) -> String {
        if !self.nodes.is_empty() {
            return self.nodes.join("; ");
        }
        let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
        let all: Vec<u32> = (0..self.cpus.len()).flat_map(|core| self.place(core)).collect();
        format!(
            "{} on {} (CPU{} {}), V = {}, {}",
            plural(self.ranks as usize, "rank"),
            match self.beside.first() {
                None => plural(self.cpus.len(), "core"),
                Some(beside) => format!("{} of {} CPUs", plural(self.cpus.len(), "core"), beside.len() + 1),
            },
            if all.len() == 1 { "" } else { "s" },
            cpus::format_list(&all),
            self.v,
            if self.bind { "pinned" } else { "not pinned" }
        )
    }

    /// The CPUs of one core, by its index.
    pub fn place(&self, core: usize) -> Vec<u32> {
        std::iter::once(self.cpus[core]).chain(self.beside.get(core).into_iter().flatten().copied()).collect()
    }

    /// `CPU 0`, or `CPUs 0-1`: those of a core.
    pub fn place_name(&self, core: usize) -> String {
        cpu_names(&self.place(core))
    }

    /// The CPUs that the ranks of a core may run on, if they are more than its own.
    pub fn mask(&self, core: usize) -> Option<&[u32]> {
        self.masks.get(core).map(Vec::as_slice).filter(|mask| !mask.is_empty())
    }

    /// The same as `CPUs 0-3`.
    pub fn bound_name(&self, core: usize) -> String {
        self.mask(core).map_or_else(|| self.place_name(core), cpu_names)
    }

    /// The ranks of one core, by its index.
    pub fn ranks_of(&self, core: usize) -> Vec<u32> {
        (0..self.ranks).filter(|rank| self.placement[*rank as usize] as usize == core).collect()
    }
}

fn cpu_names(cpus: &[u32]) -> String {
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, cpus::format_list(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(ranks: Option<u32>, v: Option<u32>, cores: u32) -> Plan {
        let cpus: Vec<u32> = (0..cores).collect();
        plan(&Wish { ranks, v: v.map(VChoice::Exactly), ..Wish::default() }, &cpus, &Topology::default())
    }

    #[test]
    fn rules() {
        // (n, V, available) -> (ranks, V, cores)
        for ((n, v, available), (ranks, got_v, cores)) in [
            ((None, None, 4), (4, 1, 4)),
            ((None, Some(3), 2), (6, 3, 2)),
            ((Some(6), None, 2), (6, 3, 2)),
            ((Some(7), None, 2), (7, 4, 2)),
            ((Some(1), None, 4), (1, 1, 1)),
            ((Some(6), Some(3), 4), (6, 3, 2)),
            ((Some(7), Some(3), 4), (7, 3, 3)),
            ((Some(9), Some(2), 2), (9, 5, 2)),
            ((Some(2), Some(8), 2), (2, 2, 1)),
        ] {
            let plan = made(n, v, available);
            assert_eq!((plan.ranks, plan.v, plan.cpus.len()), (ranks, got_v, cores), "{n:?} {v:?} {available}");
        }
        assert!(made(Some(9), Some(2), 2).notes[0].contains("V = 5 instead of 2"));
        assert!(made(Some(4), Some(2), 2).notes.is_empty());
    }

    #[test]
    fn a_rank_file_is_followed() {
        let plan = named(&[vec![3], vec![1], vec![3]], &[0, 1, 3]).unwrap();
        assert_eq!((plan.cpus, plan.placement, plan.v, plan.spare), (vec![3, 1], vec![0, 1, 0], 2, vec![0]));
        assert!(plan.masks.is_empty());
        assert!(named(&[vec![7]], &[0, 1]).unwrap_err().sentence.contains("CPU 7"));
        let plan = named(&[vec![0, 1], vec![0, 1], vec![2]], &[0, 1, 2, 3]).unwrap();
        assert_eq!((plan.cpus, plan.v), (vec![0, 1, 2], 1));
        assert_eq!(plan.masks, [vec![0, 1], vec![0, 1], vec![2], vec![3]]);
    }

    #[test]
    fn ranks_have_several_cpus_and_share_them() {
        // (n, V, CPUs for each, available) -> (V, cores, spare ones)
        for ((n, v, each, available), (got_v, cores, spare)) in [
            ((Some(2), None, 2, 8), (1, 2, 2)),
            ((Some(6), None, 2, 8), (2, 4, 0)),
            ((Some(4), Some(2), 4, 8), (2, 2, 0)),
            ((None, None, 3, 8), (1, 2, 0)),
            ((None, Some(2), 4, 8), (2, 2, 0)),
            ((Some(2), None, 16, 8), (2, 1, 0)),
        ] {
            let cpus: Vec<u32> = (0..available).collect();
            let wish = Wish { ranks: n, v: v.map(VChoice::Exactly), cpus_per_rank: each, ..Wish::default() };
            let plan = plan(&wish, &cpus, &Topology::default());
            let what = (n, v, each, available);
            assert_eq!((plan.v, plan.cpus.len(), plan.spare.len()), (got_v, cores, spare), "{what:?}");
            assert!(plan.bind && plan.beside.len() == cores + spare, "{what:?}");
            let mut all: Vec<u32> = (0..cores).flat_map(|core| plan.place(core)).collect();
            assert!(all.len() == cores * each.min(available) as usize, "{what:?}");
            all.sort_unstable();
            all.dedup();
            assert!(all.len() == cores * each.min(available) as usize, "{what:?}: no CPU twice");
        }
        let wish = Wish { ranks: Some(2), cpus_per_rank: 2, ..Wish::default() };
        assert_eq!(
            plan(&wish, &[0, 1, 2, 3], &Topology::default()).sentence(),
            "2 ranks on 2 cores of 2 CPUs (CPUs 0-3), V = 1, pinned"
        );
        assert_eq!(plan(&wish, &[0, 1], &Topology::default()).place_name(0), "CPUs 0-1");
    }

    /// Where the two threads of a core have neighbouring numbers: few ranks of two CPUs have two cores each, many have a core each.
    #[test]
    fn ranks_of_several_cpus_share_no_core_if_there_are_others() {
        let machine = Topology::synthetic("core:4 pu:2").unwrap();
        let cpus = machine.first_threads_first(&machine.cpus());
        let places = |ranks: Option<u32>, v: u32| {
            let wish = Wish { ranks, v: Some(VChoice::Exactly(v)), cpus_per_rank: 2, ..Wish::default() };
            let plan = plan(&wish, &cpus, &machine);
            (0..plan.cpus.len()).map(|core| plan.place(core)).collect::<Vec<_>>()
        };
        assert_eq!(places(Some(2), 1), [[0, 2], [4, 6]]);
        assert_eq!(places(Some(4), 2), [[0, 2], [4, 6]]);
        assert_eq!(places(Some(3), 1), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(places(None, 1), [[0, 1], [2, 3], [4, 5], [6, 7]]);
        assert_eq!(machine.threads(&cpus, Some(1)), [0, 2, 4, 6]);
        assert_eq!(machine.threads(&cpus, None), cpus);
    }

    /// The plan of a command line on a machine of 2 packages, 2 NUMA nodes in each, 4 cores in these, 2 threads of each core.
    fn on_machine(line: &str) -> Plan {
        use crate::cli::{Command, parse};
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        let Ok(Command::Run(options)) = parse(&words) else { panic!("{line}") };
        let machine = Topology::synthetic("package:2 numa:2 core:4 pu:2").unwrap();
        let wish = Wish {
            ranks: options.apps[0].ranks,
            v: options.v,
            map_by: options.map_by.clone(),
            bind: options.bind,
            cpus_per_rank: crate::place::threads::cpus_per_rank(
                &options,
                &Default::default(),
                options.apps[0].ranks,
                32,
                None,
            ),
            ..Wish::default()
        };
        plan(&wish.by_parts(&options), &machine.first_threads_first(&machine.cpus()), &machine)
    }

    /// Lines as they are shown: what each core has, and which ranks it has.
    fn shown(plan: &Plan) -> Vec<String> {
        let core = |core| format!("{}: {}", plan.bound_name(core), cpus::format_list(&plan.ranks_of(core)));
        (0..plan.cpus.len()).map(core).collect()
    }

    #[test]
    fn ranks_go_to_parts_of_the_machine() {
        for (line, wanted) in [
            ("-n 2 --map-by socket x", &["CPU 0: 0", "CPU 16: 1"][..]),
            ("-n 4 --map-by numa x", &["CPU 0: 0", "CPU 8: 1", "CPU 16: 2", "CPU 24: 3"]),
            ("-n 4 --map-by socket x", &["CPU 0: 0", "CPU 2: 2", "CPU 16: 1", "CPU 18: 3"]),
            ("-n 4 --map-by ppr:2:socket x", &["CPU 0: 0", "CPU 2: 1", "CPU 16: 2", "CPU 18: 3"]),
            ("--map-by ppr:1:numa x", &["CPU 0: 0", "CPU 8: 1", "CPU 16: 2", "CPU 24: 3"]),
            ("-npersocket 1 x", &["CPU 0: 0", "CPU 16: 1"]),
            ("--map-by ppr:1:package:PE=4 x", &["CPUs 0,2,4,6: 0", "CPUs 16,18,20,22: 1"]),
            ("-n 2 --bysocket x", &["CPU 0: 0", "CPU 16: 1"]),
            ("-n 4 -V 2 --map-by socket x", &["CPU 0: 0,2", "CPU 16: 1,3"]),
            // What ranks are bound to.
            ("-n 2 --bind-to socket x", &["CPUs 0-15: 0", "CPUs 16-31: 1"]),
            ("-n 2 --map-by socket --bind-to numa x", &["CPUs 0-7: 0", "CPUs 16-23: 1"]),
            ("-n 2 --map-by core --bind-to core x", &["CPUs 0-1: 0", "CPUs 2-3: 1"]),
            ("-n 2 --bind-to core x", &["CPUs 0-1: 0", "CPUs 16-17: 1"]),
            ("-n 4 -V 2 --bind-to core x", &["CPUs 0-1: 0-1", "CPUs 16-17: 2-3"]),
            ("-n 2 --bind-to hwthread x", &["CPU 0: 0", "CPU 2: 1"]),
            ("-n 2 --bind-to l3cache x", &["CPUs 0-7: 0", "CPUs 16-23: 1"]),
            ("-n 2 --bind-to l2cache x", &["CPUs 0-1: 0", "CPUs 16-17: 1"]),
            ("-n 2 --bind-to board x", &["CPUs 0-31: 0", "CPUs 0-31: 1"]),
            ("-n 2 --bind-to none x", &["CPU 0: 0", "CPU 2: 1"]),
            ("-n 2 -bind-to core:4 x", &["CPUs 0-3: 0", "CPUs 16-19: 1"]),
            ("-n 3 --bind-to package -V 2 x", &["CPUs 0-15: 0-1", "CPUs 16-31: 2"]),
            ("-n 2 --map-by socket:PE=2 --bind-to socket x", &["CPUs 0-15: 0", "CPUs 16-31: 1"]),
        ] {
            assert_eq!(shown(&on_machine(line)), wanted, "{line}");
        }
        let more = on_machine("-n 8 --map-by ppr:1:socket x");
        assert!(more.v == 1 && more.notes[0].contains("4 ranks on each socket instead of 1"), "{more:?}");
        assert!(!on_machine("-n 2 --bind-to none x").bind && on_machine("-n 2 --map-by socket x").bind);
        let plan = on_machine("-n 2 --bind-to socket x");
        assert_eq!((plan.masks.len(), plan.spare.len()), (32, 30), "spawned ranks are bound, too");
        // More ranks than CPUs: level on all of them.
        let plan = on_machine("-n 64 --bind-to numa x");
        assert!(plan.v == 2 && plan.cpus.len() == 32 && plan.placement.is_sorted());
    }

    #[test]
    fn every_rank_has_a_core_and_cores_are_level() {
        for ranks in 1..40 {
            for cores in 1..8 {
                for map_by in &[MapBy::Block, MapBy::RoundRobin] {
                    let cpus: Vec<u32> = (0..cores).collect();
                    let wish = Wish { ranks: Some(ranks), map_by: map_by.clone(), ..Wish::default() };
                    let plan = plan(&wish, &cpus, &Topology::default());
                    let sizes: Vec<usize> = (0..plan.cpus.len()).map(|core| plan.ranks_of(core).len()).collect();
                    assert_eq!(sizes.iter().sum::<usize>(), ranks as usize);
                    assert_eq!(*sizes.iter().max().unwrap(), plan.v as usize);
                    assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
                    if *map_by == MapBy::Block {
                        assert!(plan.placement.is_sorted());
                    }
                }
            }
        }
    }

    #[test]
    fn block_puts_neighbours_together_and_rr_apart() {
        assert_eq!(made(Some(6), Some(3), 2).placement, [0, 0, 0, 1, 1, 1]);
        let cpus = [4, 7];
        let wish = Wish { ranks: Some(4), map_by: MapBy::RoundRobin, ..Wish::default() };
        let rr = plan(&wish, &cpus, &Topology::default());
        assert_eq!(rr.placement, [0, 1, 0, 1]);
        assert_eq!(rr.cpus, [4, 7]);
        assert!(rr.bind && !made(Some(1), None, 2).bind);
    }
}
