//! Where on the machine ranks run: what MPI_Comm_split_type and MPI_Get_hw_resource_info ask for.
//!
//! A rank is bound to one CPU, so it belongs to exactly one resource of each kind; /sys says to which.

use crate::info::Entries;
use crate::nodes;
use crate::process;
use std::fs;
use vmpi_shared::cpu_cache;
use vmpi_shared::mem::sync::Ordering;

/// Kinds of resources from the outermost to the innermost: the name that hwloc gives them, and other names for them.
const KINDS: &[(Kind, &[&str])] = &[
    (Kind::Node, &["Machine", "node", "mpi_shared_memory"]),
    (Kind::Package, &["Package", "socket"]),
    (Kind::Numa, &["NUMANode", "numa"]),
    (Kind::Die, &["Die"]),
    (Kind::Cache(3), &["L3Cache", "l3"]),
    (Kind::Cache(2), &["L2Cache", "l2"]),
    (Kind::Cache(1), &["L1Cache", "l1"]),
    (Kind::Core, &["Core"]),
    (Kind::Thread, &["PU", "hwthread"]),
];

/// A kind of hardware resource.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    Node,
    Package,
    Numa,
    Die,
    Cache(u32),
    Core,
    Thread,
}

impl Kind {
    /// The kind that a value of `mpi_hw_resource_type` names, with or without `hwloc://` before it.
    pub fn named(name: &[u8]) -> Option<Kind> {
        let name = std::str::from_utf8(name).ok()?;
        let name = name.strip_prefix("hwloc://").unwrap_or(name);
        KINDS
            .iter()
            .find(|(_, names)| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
            .map(|(kind, _)| *kind)
    }

    /// Its name as MPI's info objects give it.
    pub fn name(self) -> String {
        let (_, names) = KINDS.iter().find(|(kind, _)| *kind == self).expect("every kind has names");
        if self == Kind::Node { "mpi_shared_memory".into() } else { format!("hwloc://{}", names[0]) }
    }

    /// The kinds below the node, from the outermost to the innermost.
    pub fn parts_of_node() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|(kind, _)| *kind).filter(|kind| *kind != Kind::Node)
    }
}

/// What tells a resource from others of its kind on one node; none if /sys does not say.
fn identity(kind: Kind, cpu: u32) -> Option<String> {
    let read = |path: String| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let directory = format!("/sys/devices/system/cpu/cpu{cpu}");
    match kind {
        Kind::Node => Some(String::new()),
        Kind::Thread => Some(cpu.to_string()),
        Kind::Package => read(format!("{directory}/topology/physical_package_id")),
        Kind::Die => {
            let die = read(format!("{directory}/topology/die_id"))?;
            Some(format!("{} {die}", read(format!("{directory}/topology/physical_package_id"))?))
        }
        Kind::Core => read(format!("{directory}/topology/core_cpus_list"))
            .or_else(|| read(format!("{directory}/topology/thread_siblings_list"))),
        Kind::Numa => fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix("node")?;
            number.bytes().all(|c| c.is_ascii_digit()).then(|| number.to_owned())
        }),
        Kind::Cache(level) => cpu_cache::property(cpu, level, "shared_cpu_list"),
    }
}

/// The CPU on which a rank of this node was placed: the same for all who ask, also when ranks move (`--balance`).
fn cpu_of(rank: u32) -> u32 {
    let node = process::node();
    node.core(node.home_of(rank)).cpu.load(Ordering::Relaxed)
}

/// For each of `ranks`: the first of them that shares its resource of this kind; none where /sys does not say.
pub fn groups(kind: Kind, ranks: &[u32]) -> Vec<Option<u32>> {
    let mut seen: Vec<(u32, String)> = Vec::new();
    ranks
        .iter()
        .map(|&rank| {
            let identity = identity(kind, cpu_of(rank))?;
            let known = seen.iter().find(|(first, known)| *known == identity && nodes::same_node(*first, rank));
            if let Some((first, _)) = known {
                return Some(*first);
            }
            seen.push((rank, identity));
            Some(rank)
        })
        .collect()
}

/// MPI_Get_hw_resource_info: every kind that this machine has, and whether this rank is bound to one of them (it is).
pub fn resource_info() -> Entries {
    let me = process::endpoint_rank();
    let mut entries = Entries::default();
    for (kind, _) in KINDS {
        if identity(*kind, cpu_of(me)).is_some() {
            entries.set(kind.name().as_bytes(), b"true");
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!(Kind::named(b"hwloc://NUMANode"), Some(Kind::Numa));
        assert_eq!(Kind::named(b"socket"), Some(Kind::Package));
        assert_eq!(Kind::named(b"mpi_shared_memory"), Some(Kind::Node));
        assert_eq!(Kind::named(b"@dont-thread-on-me@"), None);
        for (kind, _) in KINDS {
            assert_eq!(Kind::named(kind.name().as_bytes()), Some(*kind));
        }
    }
}
