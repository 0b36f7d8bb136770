//! Tokens that go round a ring of ranks, with the ranks' order and against it, under each policy of vmpirun.

use super::experiment::{
    Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, Variant, YIELDING, words,
};
use super::programs::Program;
use super::system::Kind;

const RANKS: &[u32] = &[4, 16, 32];

pub const EXPERIMENT: Experiment = Experiment {
    name: "policies",
    about: "Tokens of 8 bytes that go round a ring of n ranks, each from rank to rank + 1 (with the order) or to rank - 1 (against it), time per message: \
            n/2 tokens at the same time with all ranks on one core, and with n/2 on each of two; one token on one core. vmpi by --policy, beside \
            the MPIs that yield. Floors: one token round as many processes as share a core, without any MPI, by futex and by sched_yield, in the \
            order in which they were made and against it. One token costs a hand-off per message, whatever the policy. Several can gather at \
            a rank, which carries them on with one hand-off, and two cores carry at the same time: values below the floor are possible.",
    variants: &[
        Variant { name: "rr", title: "vmpi, rr", flags: &["--policy", "rr"] },
        Variant { name: "fifo", title: "vmpi, fifo", flags: &["--policy", "fifo"] },
        Variant { name: "lifo", title: "vmpi, lifo", flags: &["--policy", "lifo"] },
        Variant { name: "priority", title: "vmpi, priority", flags: &["--policy", "priority"] },
        Variant { name: "follow", title: "vmpi, follow", flags: &["--policy", "follow"] },
    ],
    x: Axis { title: "ranks", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        figure("one_core_with", "n/2 tokens with the order, one core"),
        figure("one_core_against", "n/2 tokens against the order, one core"),
        figure("two_cores_with", "n/2 tokens with the order, two cores"),
        figure("two_cores_against", "n/2 tokens against the order, two cores"),
        figure("single_with", "one token with the order, one core"),
        figure("single_against", "one token against the order, one core"),
    ],
    judged: &["follow"],
    bars: &[
        cure("one_core_against", "no slower than rr against the order"),
        cure("two_cores_against", "no slower than rr against the order"),
        cure("one_core_with", "no slower than rr with the order"),
        cure("two_cores_with", "no slower than rr with the order"),
    ],
    runs,
};

const fn figure(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn cure(figure: &'static str, says: &'static str) -> Bar {
    Bar { figure, from: 3, to: u64::MAX, factor: 1.0, reference: Reference::System("rr"), says }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let mut places = vec![("one_core", scope.cpus[..1].to_vec())];
    if scope.cpus.len() > 1 {
        places.push(("two_cores", scope.cpus[..2].to_vec()));
    }
    let mut runs = Vec::new();
    // Two ranks have no order.
    for n in scope.ranks_or(RANKS).into_iter().filter(|n| *n > 2) {
        for (place, cpus) in &places {
            let run = |system| Run {
                across: false,
                system,
                variant: None,
                program: Program::C("bench/tokens"),
                arguments: Vec::new(),
                ranks: n,
                cpus: cpus.clone(),
                pin: false,
                series: place,
                x: n.into(),
                gives: Gives::Lines,
            };
            let single = *place == "one_core";
            let tokens = || {
                let one: &[&str] = if single { &["single", "1"] } else { &[] };
                [words([n]), words([place]), words([n / 2]), words(one)].concat()
            };
            let ours = scope.mpis().find(|system| system.kind == Kind::Vmpi);
            let ours = ours.into_iter().flat_map(|system| {
                EXPERIMENT.variants.iter().map(move |variant| Run { variant: Some(variant), ..run(system) })
            });
            let peers = scope.mpis().filter(|system| YIELDING.contains(&system.name)).map(run);
            runs.extend(ours.chain(peers).map(|run| Run { arguments: tokens(), ..run }));
            runs.extend(scope.floor().map(|system| {
                let figures: &[&str] = if single { &["one_core", "single"] } else { &["two_cores"] };
                let on_a_core = n.div_ceil(cpus.len() as u32);
                let at = words([cpus[0], n, on_a_core]);
                let arguments = [words(["order"]), at, words(figures)].concat();
                Run { arguments, program: Program::C("bench/floor"), ..run(system) }
            }));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn all_policies_run_beside_a_peer_and_the_floor() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: Some(vec![2, 4]) };
        let runs: Vec<String> =
            runs(&scope).iter().map(|run| format!("{} {}", run.name(), run.arguments.join(" "))).collect();
        assert_eq!(runs.len(), 2 * 7, "{runs:?}");
        assert_eq!(runs[0], "rr 4 one_core 2 single 1");
        assert_eq!(runs[5], "openmpi4-yield 4 one_core 2 single 1");
        assert_eq!(runs[6], "floor order 0 4 4 one_core single");
        assert_eq!(runs[11], "follow 4 two_cores 2");
        assert_eq!(runs[13], "floor order 0 4 2 two_cores");
    }
}
