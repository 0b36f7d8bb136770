//! V, the cores and each rank's place: the rules for `-n`, `-V`, `--cores` and `--cpus-per-rank`.

use crate::cli::{MapBy, VChoice};
use crate::cpus;
use crate::failure::Failure;

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
}

/// `cpus` in pieces of `size`, as few as possible of CPUs of more than one package; what does not fill a piece is left out.
pub fn pieces(cpus: &[u32], size: usize, package_of: impl Fn(u32) -> u32) -> Vec<Vec<u32>> {
    let mut packages: Vec<(u32, Vec<u32>)> = Vec::new();
    for cpu in cpus {
        let package = package_of(*cpu);
        match packages.iter_mut().find(|(known, _)| *known == package) {
            Some((_, of)) => of.push(*cpu),
            None => packages.push((package, vec![*cpu])),
        }
    }
    let (mut pieces, mut rest) = (Vec::new(), Vec::new());
    for (_, cpus) in packages {
        let whole = cpus.chunks_exact(size);
        rest.extend(whole.remainder());
        pieces.extend(whole.map(<[u32]>::to_vec));
    }
    pieces.extend(rest.chunks_exact(size).map(<[u32]>::to_vec));
    pieces
}

/// Choose; never refuses. `cpus` must not be empty.
///
/// With `-n` alone V is what fits; with `-V` alone the ranks are V times the cores; with both, as few cores as hold n
/// ranks are used, and where V times the cores is too little V grows. The ranks are spread so that no two cores
/// differ by more than one rank. Ranks are pinned unless V is 1 and cores stay free: then the kernel may choose
/// better, since another job's ranks may sit on the same CPU.
///
/// With several CPUs for each rank a core is a place of so many CPUs, which its ranks share as others share a CPU.
pub fn plan(wish: &Wish, cpus: &[u32]) -> Plan {
    let mut notes = Vec::new();
    let size = (wish.cpus_per_rank.max(1) as usize).min(cpus.len());
    if (wish.cpus_per_rank as usize) > size {
        notes.push(format!("{size} CPUs for each rank instead of {}: there are no more", wish.cpus_per_rank));
    }
    let places = pieces(cpus, size, cpus::package_of);
    let available = places.len() as u32;
    let asked_v = match wish.v {
        Some(VChoice::Exactly(v)) => Some(v),
        Some(VChoice::Auto) | None => None,
    };
    let ranks = wish.ranks.unwrap_or_else(|| asked_v.unwrap_or(1).saturating_mul(available));
    let used = match asked_v {
        Some(v) => ranks.div_ceil(v).min(available),
        None => ranks.min(available),
    }
    .max(1);
    let v = ranks.div_ceil(used);
    if let Some(asked) = asked_v
        && v > asked
    {
        notes.push(format!(
            "V = {v} instead of {asked}: {ranks} ranks on {available} core{} need it",
            if available == 1 { "" } else { "s" }
        ));
    }
    let placement = (0..ranks)
        .map(|rank| match wish.map_by {
            MapBy::RoundRobin => rank % used,
            // Seats, which `place` deals out otherwise than in order.
            _ => block(rank, ranks, used),
        })
        .collect();
    let bind = wish.bind.unwrap_or(v > 1 || used == available || wish.cores_named || size > 1);
    let mut cpus: Vec<u32> = places.iter().map(|place| place[0]).collect();
    let spare = cpus.split_off(used as usize);
    let beside = if size > 1 { places.iter().map(|place| place[1..].to_vec()).collect() } else { Vec::new() };
    Plan { ranks, v, cpus, spare, beside, placement, bind, notes, nodes: Vec::new() }
}

/// Each rank on the CPU that a rank file gives it.
///
/// # Errors
/// Exit code 2: one is not among `allowed`.
pub fn named(cpus: &[u32], allowed: &[u32]) -> Result<Plan, Failure> {
    if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        let list = cpus::format_list(allowed);
        return Err(Failure::usage(format!("the rank file names CPU {cpu}, which is not among those to use ({list})")));
    }
    let mut own: Vec<u32> = Vec::new();
    let mut placement = Vec::new();
    for cpu in cpus {
        let place = own.iter().position(|known| known == cpu).unwrap_or_else(|| {
            own.push(*cpu);
            own.len() - 1
        });
        placement.push(place as u32);
    }
    let on_core = |core: usize| placement.iter().filter(|place| **place as usize == core).count() as u32;
    let v = (0..own.len()).map(on_core).max().unwrap_or(0);
    let spare = allowed.iter().copied().filter(|cpu| !own.contains(cpu)).collect();
    let ranks = cpus.len() as u32;
    Ok(Plan {
        ranks,
        v,
        cpus: own,
        spare,
        beside: Vec::new(),
        placement,
        bind: true,
        notes: Vec::new(),
        nodes: Vec::new(),
    })
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
        let place = self.place(core);
        format!("CPU{} {}", if place.len() == 1 { "" } else { "s" }, cpus::format_list(&place))
    }

    /// The ranks of one core, by its index.
    pub fn ranks_of(&self, core: usize) -> Vec<u32> {
        (0..self.ranks).filter(|rank| self.placement[*rank as usize] as usize == core).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(ranks: Option<u32>, v: Option<u32>, cores: u32) -> Plan {
        let cpus: Vec<u32> = (0..cores).collect();
        plan(&Wish { ranks, v: v.map(VChoice::Exactly), ..Wish::default() }, &cpus)
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
        let plan = named(&[3, 1, 3], &[0, 1, 3]).unwrap();
        assert_eq!((plan.cpus, plan.placement, plan.v, plan.spare), (vec![3, 1], vec![0, 1, 0], 2, vec![0]));
        assert!(named(&[7], &[0, 1]).unwrap_err().sentence.contains("CPU 7"));
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
            let plan = plan(&wish, &cpus);
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
        assert_eq!(plan(&wish, &[0, 1, 2, 3]).sentence(), "2 ranks on 2 cores of 2 CPUs (CPUs 0-3), V = 1, pinned");
        assert_eq!(plan(&wish, &[0, 1]).place_name(0), "CPUs 0-1");
    }

    #[test]
    fn places_lie_in_one_package_where_they_can() {
        let cpus: Vec<u32> = (0..12).collect();
        // CPUs of two packages in turn; then six and six.
        assert_eq!(pieces(&cpus[..8], 2, |cpu| cpu % 2), [[0, 2], [4, 6], [1, 3], [5, 7]]);
        assert_eq!(pieces(&cpus, 4, |cpu| cpu / 6), [[0, 1, 2, 3], [6, 7, 8, 9], [4, 5, 10, 11]]);
        assert_eq!(pieces(&cpus[..5], 2, |_| 0), [[0, 1], [2, 3]]);
    }

    #[test]
    fn every_rank_has_a_core_and_cores_are_level() {
        for ranks in 1..40 {
            for cores in 1..8 {
                for map_by in &[MapBy::Block, MapBy::RoundRobin] {
                    let cpus: Vec<u32> = (0..cores).collect();
                    let plan = plan(&Wish { ranks: Some(ranks), map_by: map_by.clone(), ..Wish::default() }, &cpus);
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
        let rr = plan(&Wish { ranks: Some(4), map_by: MapBy::RoundRobin, ..Wish::default() }, &cpus);
        assert_eq!(rr.placement, [0, 1, 0, 1]);
        assert_eq!(rr.cpus, [4, 7]);
        assert!(rr.bind && !made(Some(1), None, 2).bind);
    }
}
