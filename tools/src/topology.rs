//! Which CPUs lie together: threads of a core, cores of a cache, of a NUMA node, of a package.
//!
//! Read from sysfs, since the kernel says there in plain files all that binding needs; hwloc reads the same files. Its crates need libhwloc when vmpi is built
//! and on each node where it runs, which a wheel or a tarball cannot count on. What hwloc has beyond that (devices, distances, other systems) is not asked for.
//!
//! A dry run may be of another machine, named as for hwloc: `HWLOC_FSROOT`, below which a recorded `sys/` lies, or `HWLOC_SYNTHETIC`.

use crate::cli::Resource;
use crate::cpus;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What a CPU may share with others, the smallest first.
const LEVELS: [Resource; 6] =
    [Resource::Core, Resource::L1Cache, Resource::L2Cache, Resource::L3Cache, Resource::Numa, Resource::Socket];
/// CPUs of a synthetic machine at most.
const MOST_CPUS: u32 = 1 << 16;

/// For each CPU, by the system's number, the lowest CPU of its core, of its caches, of its NUMA node and of its package.
///
/// Nothing is known of CPUs that are not there: each is a core, and all are in one package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Listed", into = "Listed")]
pub struct Topology {
    cpus: BTreeMap<u32, [u32; LEVELS.len()]>,
}

/// On its way from node to node: a map's keys that are numbers do not come back out of a message that has its type inside.
type Listed = Vec<(u32, [u32; LEVELS.len()])>;

impl From<Listed> for Topology {
    fn from(listed: Listed) -> Topology {
        Topology { cpus: listed.into_iter().collect() }
    }
}

impl From<Topology> for Listed {
    fn from(topology: Topology) -> Listed {
        topology.cpus.into_iter().collect()
    }
}

impl Topology {
    /// This machine's.
    pub fn here() -> Topology {
        Topology::read(Path::new("/"))
    }

    /// The machine that a dry run is of, if another one is named, with its name.
    ///
    /// # Errors
    /// Exit code 2: it cannot be read.
    pub fn named() -> Result<Option<(Topology, String)>, Failure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        if let Some(root) = set("HWLOC_FSROOT") {
            let topology = Topology::read(Path::new(&root));
            if topology.cpus.is_empty() {
                return Err(Failure::usage(format!("HWLOC_FSROOT={root}: no CPUs are described below {root}/sys")));
            }
            return Ok(Some((topology, format!("HWLOC_FSROOT={root}"))));
        }
        let Some(text) = set("HWLOC_SYNTHETIC") else { return Ok(None) };
        let topology = Topology::synthetic(&text).map_err(|why| Failure::usage(format!("HWLOC_SYNTHETIC: {why}")))?;
        Ok(Some((topology, format!("HWLOC_SYNTHETIC={text}"))))
    }

    /// What the kernel says below `root`; no file need be there.
    pub fn read(root: &Path) -> Topology {
        let system = root.join("sys/devices/system");
        let numa = numa_nodes(&system.join("node"));
        let cpu_dir = system.join("cpu");
        let cpus = list(&cpu_dir.join("online")).into_iter().map(|cpu| {
            let dir = cpu_dir.join(format!("cpu{cpu}"));
            let lowest = |path: PathBuf| list(&path).into_iter().min();
            // The second name of each is what kernels before 5.3 have.
            let of = |names: [&str; 2]| names.iter().find_map(|name| lowest(dir.join("topology").join(name)));
            let core = of(["core_cpus_list", "thread_siblings_list"]).unwrap_or(cpu);
            let package = of(["package_cpus_list", "core_siblings_list"]).unwrap_or(0);
            let node = numa.get(&cpu).copied().unwrap_or(package);
            let caches = caches(&dir.join("cache"));
            let cache = |level: u32, without: u32| caches.get(&level).copied().unwrap_or(without);
            let l3 = cache(3, node);
            (cpu, [core, cache(1, core), cache(2, core), l3, node, package])
        });
        Topology { cpus: cpus.collect() }
    }

    /// A machine in hwloc's words, the largest part first: `package:2 numa:2 l3:1 core:4 pu:2`. CPUs are numbered in that order.
    ///
    /// # Errors
    /// The word that makes no sense.
    pub fn synthetic(text: &str) -> Result<Topology, String> {
        let say = "a machine is described as `package:2 numa:2 l3:1 core:4 pu:2`";
        let mut parts: Vec<(Option<Resource>, u32)> = Vec::new();
        // Attributes as `(memory=1GB)` change nothing here.
        let pieces = text.split('(').map(|piece| piece.rsplit_once(')').map_or(piece, |(_, rest)| rest));
        let plain: String = pieces.collect();
        for word in plain.split_whitespace() {
            let (kind, count) = match word.split_once(':') {
                Some(both) => both,
                // A memory of its own for each of what is around it.
                None if word.starts_with('[') => (word, "1"),
                None => return Err(format!("`{word}`: {say}")),
            };
            let count = count.parse().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{word}`: {say}"))?;
            let kind = match kind.to_ascii_lowercase().trim_matches(['[', ']']) {
                "group" | "die" | "l4" | "l4cache" => None,
                "l1icache" | "l1i" => None,
                "l1dcache" | "l1d" => Some(Resource::L1Cache),
                kind => Some(Resource::of(kind).ok_or_else(|| format!("`{word}`: {say}"))?),
            };
            parts.push((kind, count));
        }
        let all = parts.iter().try_fold(1u32, |all, (_, count)| all.checked_mul(*count).filter(|n| *n <= MOST_CPUS));
        let all =
            all.filter(|_| !parts.is_empty()).ok_or_else(|| format!("`{text}` has no CPUs, or too many: {say}"))?;
        // CPUs in each of the parts that are named; a part that is not is as large as the next one around it that is, a core as a CPU.
        let mut sizes = [0; LEVELS.len()];
        let mut size = all;
        for (kind, count) in parts {
            size /= count;
            if let Some(level) = LEVELS.iter().position(|level| Some(*level) == kind) {
                sizes[level] = size;
            }
        }
        let mut around = all;
        for (level, size) in sizes.iter_mut().enumerate().rev() {
            let is_small = matches!(LEVELS[level], Resource::Core | Resource::L1Cache | Resource::L2Cache);
            if *size == 0 {
                *size = if is_small { 0 } else { around };
            } else {
                around = *size;
            }
        }
        let core = if sizes[0] == 0 { 1 } else { sizes[0] };
        sizes.iter_mut().filter(|size| **size == 0).for_each(|size| *size = core);
        Ok(Topology { cpus: (0..all).map(|cpu| (cpu, sizes.map(|size| cpu / size * size))).collect() })
    }

    /// Its CPUs, in order.
    pub fn cpus(&self) -> Vec<u32> {
        self.cpus.keys().copied().collect()
    }

    /// The number of the part that `cpu` lies in.
    pub fn part_of(&self, cpu: u32, resource: Resource) -> u32 {
        let level = LEVELS.iter().position(|level| *level == resource);
        match (resource, self.cpus.get(&cpu).zip(level)) {
            (Resource::Node, _) => 0,
            (Resource::Hwthread, _) | (Resource::Core, None) => cpu,
            (_, Some((parts, level))) => parts[level],
            (_, None) => 0,
        }
    }

    /// `cpus` by the parts that they lie in, in the order in which these come.
    pub fn parts(&self, cpus: &[u32], resource: Resource) -> Vec<Vec<u32>> {
        let mut parts: Vec<(u32, Vec<u32>)> = Vec::new();
        for cpu in cpus {
            let part = self.part_of(*cpu, resource);
            match parts.iter_mut().find(|(known, _)| *known == part) {
                Some((_, of)) => of.push(*cpu),
                None => parts.push((part, vec![*cpu])),
            }
        }
        parts.into_iter().map(|(_, of)| of).collect()
    }

    /// The same CPUs, those first that are the first ones of their cores: few ranks have a core each.
    pub fn first_threads_first(&self, cpus: &[u32]) -> Vec<u32> {
        let mut seen = BTreeMap::<u32, usize>::new();
        let thread = |cpu: &u32| {
            let count = seen.entry(self.part_of(*cpu, Resource::Core)).or_default();
            *count += 1;
            (*count, *cpu)
        };
        let mut numbered: Vec<(usize, u32)> = cpus.iter().map(thread).collect();
        numbered.sort_by_key(|(thread, _)| *thread);
        numbered.into_iter().map(|(_, cpu)| cpu).collect()
    }

    /// Of each core's CPUs among these the first `most`.
    pub fn threads(&self, cpus: &[u32], most: Option<u32>) -> Vec<u32> {
        let Some(most) = most else { return cpus.to_vec() };
        let mut seen = BTreeMap::<u32, u32>::new();
        let is_among = |cpu: &&u32| {
            let count = seen.entry(self.part_of(**cpu, Resource::Core)).or_default();
            *count += 1;
            *count <= most
        };
        cpus.iter().filter(is_among).copied().collect()
    }

    /// The CPUs of a package that are numbered so in a rank file: the first threads of its cores.
    pub fn cores_of_socket(&self, socket: u32, cores: Option<&[u32]>) -> Option<Vec<u32>> {
        let sockets = self.parts(&self.cpus(), Resource::Socket);
        let own = self.parts(sockets.get(socket as usize)?, Resource::Core);
        let first = |core: usize| own.get(core).map(|threads| threads[0]);
        match cores {
            None => Some(own.iter().map(|threads| threads[0]).collect()),
            Some(cores) => cores.iter().map(|core| first(*core as usize)).collect(),
        }
    }
}

/// A file with a list as `0-3,8`; none if it is not there.
fn list(path: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    cpus::parse_list(text.trim()).unwrap_or_default()
}

/// The lowest CPU of each CPU's NUMA node.
fn numa_nodes(dir: &Path) -> BTreeMap<u32, u32> {
    let mut nodes = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_node = name.to_str().and_then(|name| name.strip_prefix("node")?.parse::<u32>().ok()).is_some();
        // A node of memory alone has no CPUs.
        let own = if is_node { list(&entry.path().join("cpulist")) } else { Vec::new() };
        let lowest = own.iter().min().copied();
        nodes.extend(own.into_iter().zip(lowest.into_iter().cycle()));
    }
    nodes
}

/// The lowest CPU that shares the cache of each level, those for instructions apart.
fn caches(dir: &Path) -> BTreeMap<u32, u32> {
    let mut caches = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let text = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        if text("type").trim() == "Instruction" {
            continue;
        }
        let level = text("level").trim().parse::<u32>().ok();
        caches.extend(level.zip(list(&entry.path().join("shared_cpu_list")).into_iter().min()));
    }
    caches
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A recorded machine as Linux numbers it: the second threads of all cores behind the first ones. Two packages of two NUMA nodes of four cores, an L3 cache
    /// for each two cores.
    fn recorded(root: &Path) {
        let put = |path: String, text: String| {
            let path = root.join("sys/devices/system").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text + "\n").unwrap();
        };
        let both = |first: u32, last: u32| format!("{first}-{last},{}-{}", first + 16, last + 16);
        put("cpu/online".into(), "0-31".into());
        for cpu in 0..32 {
            let core = cpu % 16;
            let (package, l3) = (core / 8 * 8, core / 2 * 2);
            put(format!("cpu/cpu{cpu}/topology/core_cpus_list"), format!("{core},{}", core + 16));
            put(format!("cpu/cpu{cpu}/topology/package_cpus_list"), both(package, package + 7));
            for (index, level, kind, shared) in [
                (0, 1, "Data", format!("{core},{}", core + 16)),
                (1, 1, "Instruction", "0-31".into()),
                (2, 2, "Unified", format!("{core},{}", core + 16)),
                (3, 3, "Unified", both(l3, l3 + 1)),
            ] {
                let dir = format!("cpu/cpu{cpu}/cache/index{index}");
                put(format!("{dir}/level"), level.to_string());
                put(format!("{dir}/type"), kind.into());
                put(format!("{dir}/shared_cpu_list"), shared);
            }
        }
        (0..4).for_each(|node| put(format!("node/node{node}/cpulist"), both(4 * node, 4 * node + 3)));
        put("node/node4/cpulist".into(), String::new());
        put("node/online".into(), "0-4".into());
    }

    #[test]
    fn a_recorded_machine() {
        let root = std::env::temp_dir().join(format!("vmpi-topology-{}", std::process::id()));
        recorded(&root);
        let machine = Topology::read(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(machine.cpus().len(), 32);
        let part = |resource| machine.part_of(29, resource);
        assert_eq!(
            [Resource::Hwthread, Resource::Core, Resource::L1Cache, Resource::L3Cache, Resource::Numa].map(part),
            [29, 13, 13, 12, 12]
        );
        assert_eq!([Resource::Socket, Resource::Node].map(part), [8, 0]);
        let parts = machine.parts(&machine.cpus(), Resource::Socket);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [16, 16]);
        assert_eq!(parts[1][..2], [8, 9]);
        assert_eq!(machine.cores_of_socket(1, Some(&[0, 3])), Some(vec![8, 11]));
        assert_eq!(machine.cores_of_socket(0, None), Some((0..8).collect()));
        assert_eq!(machine.cores_of_socket(2, None), None);
    }

    #[test]
    fn a_machine_in_hwlocs_words() {
        let machine = Topology::synthetic("package:2 numa:2 core:4 pu:2").unwrap();
        let part = |cpu, resource| machine.part_of(cpu, resource);
        assert_eq!(machine.cpus().len(), 32);
        assert_eq!((part(31, Resource::Socket), part(31, Resource::Numa), part(31, Resource::Core)), (16, 24, 30));
        // No caches are said: that of a core, and that of a NUMA node.
        assert_eq!((part(31, Resource::L2Cache), part(31, Resource::L3Cache)), (30, 24));
        let machine =
            Topology::synthetic("Package:1 [NUMANode(memory=1GB indexes=0)] L3Cache:2 L2:2 L1i:1 Core:1 PU:1").unwrap();
        assert_eq!(machine.parts(&machine.cpus(), Resource::L3Cache), [[0, 1], [2, 3]]);
        assert_eq!(Topology::synthetic("core:3 pu:2").unwrap().first_threads_first(&[4, 5, 0, 1, 2]), [4, 0, 2, 5, 1]);
        for bad in ["", "core", "core:0", "kernel:2", "core:999999 pu:999999"] {
            assert!(Topology::synthetic(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn of_what_is_not_described_all_is_one_package() {
        let nothing = Topology::read(Path::new("/nonexistent"));
        assert_eq!(nothing, Topology::default());
        assert_eq!(nothing.parts(&[4, 7], Resource::Socket), [[4, 7]]);
        assert_eq!(nothing.parts(&[4, 7], Resource::Core), [[4], [7]]);
        let here = Topology::here();
        assert!(cpus::allowed().unwrap().iter().all(|cpu| here.cpus().contains(cpu)), "{here:?}");
    }
}
