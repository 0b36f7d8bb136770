//! The stencil's work, even and uneven, while ranks may move between cores.

use super::experiment::{Axis, Bar, Experiment, Gives, Reference, Run, Scale, Scope, Variant, YIELDING};
use super::samples::{Rounds, Samples};
use super::stencil::{self, BALANCED};
use super::system::Kind;

pub const EXPERIMENT: Experiment = Experiment {
    name: "balance",
    about: "The stencil experiment's work (512 x 512 doubles, 300 steps, V ranks on each of two cores) by vmpirun --balance: ranks stay on their \
            cores (none), those that wait for long behind one that computes are taken over (rescue, the default), an idle core takes waiting ranks over (steal), measured load moves ranks for good (refine); beside the MPIs that \
            yield, whose ranks the kernel moves. Uneven: rank 0 computes its part three times in each step. The ideals of that are vmpi's least even \
            time of the same round (at any V, however ranks move: a machine that others use, too, is hardest on V=1), times (2V + 2)/2V if \
            the work were spread as sand, times (V + 2)/V if ranks stay. Below: how often ranks moved in a run. All runs must give the same checksum.",
    variants: &[
        Variant { name: "none", title: "vmpi, none", flags: &["--balance", "none", "--json"] },
        Variant { name: "rescue", title: "vmpi, rescue", flags: &["--balance", "rescue", "--json"] },
        Variant { name: "steal", title: "vmpi, steal", flags: &["--balance", "steal", "--json"] },
        Variant { name: "refine", title: "vmpi, refine", flags: &["--balance", "refine", "--json"] },
    ],
    x: Axis { title: "ranks per core (V)", show: |v| v.to_string(), scale: Scale::Log2 },
    figures: &[
        stencil::time("equal", "stencil, equal work"),
        stencil::time("uneven", "stencil, rank 0 has three times the work"),
        stencil::moves("equal_moves", "moves, equal work"),
        stencil::moves("uneven_moves", "moves, rank 0 has three times the work"),
    ],
    judged: &["steal"],
    bars: &[
        Bar {
            figure: "uneven",
            from: 2,
            to: 16,
            factor: 1.1,
            reference: Reference::AtBest(BALANCED),
            says: "at best V within 1.1 x of the balanced ideal",
        },
        Bar {
            figure: "equal",
            from: 1,
            to: 16,
            factor: 1.0,
            reference: Reference::System("none"),
            says: "no slower than none with equal work",
        },
    ],
    runs,
};

fn runs(scope: &Scope) -> Vec<Run> {
    let mut runs = Vec::new();
    for case in stencil::cases(scope) {
        let ours = scope.mpis().find(|system| system.kind == Kind::Vmpi);
        runs.extend(ours.into_iter().flat_map(|system| {
            let gives = Gives::LinesAndMoves(case.moves);
            let run = move |variant| Run { variant: Some(variant), gives, ..case.run(scope, system) };
            EXPERIMENT.variants.iter().map(run)
        }));
        let peers = scope.mpis().filter(|system| YIELDING.contains(&system.name));
        runs.extend(peers.map(|system| case.run(scope, system)));
    }
    runs
}

/// What the even work can take, by round: the least of all that vmpi needed for it.
pub fn least_even(samples: &Samples) -> Rounds {
    let mut least = Rounds::new();
    for v in samples.places("equal") {
        for rounds in EXPERIMENT.variants.iter().filter_map(|variant| samples.rounds("equal", v, variant.name)) {
            for (round, ms) in rounds {
                least.entry(*round).and_modify(|known| *known = ms.min(*known)).or_insert(*ms);
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn the_ideal_is_by_round_and_not_of_peers() {
        let mut samples = Samples::default();
        for (round, v, name, ms) in [
            (0, 1, "none", 250.0),
            (0, 4, "steal", 36.0),
            (0, 4, "openmpi4-yield", 20.0),
            (1, 1, "none", 40.0),
            (1, 8, "refine", 50.0),
        ] {
            samples.add(round, "equal", v, name, ms);
        }
        assert_eq!(least_even(&samples), Rounds::from([(0, 36.0), (1, 40.0)]));
    }

    #[test]
    fn every_kind_of_balance_does_the_same_work() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: Some(vec![4]) };
        let runs = runs(&scope);
        let names: Vec<&str> = runs.iter().map(|run| run.name()).collect();
        let one = ["none", "rescue", "steal", "refine", "openmpi4-yield"];
        assert_eq!(names, [one, one].concat());
        assert!(runs[..5].iter().all(|run| run.arguments == runs[0].arguments && run.ranks == 4 && run.x == 2));
    }
}
