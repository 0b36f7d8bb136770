//! Large reductions of n ranks on one core and on two.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Run, Scale, Scope, VMPI, words};
use super::programs::Program;
use super::system::System;

const RANKS: &[u32] = &[2, 4, 8];

pub const EXPERIMENT: Experiment = Experiment {
    name: "reductions",
    about: "MPI_Reduce to rank 0 and MPI_Allreduce (MPI_SUM of doubles) of n ranks on one core (V = n) and on two (V = n/2), one call right after the other. All sums are checked.",
    variants: &[],
    x: Axis { title: "ranks", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        figure("core.reduce_65536", "reduce of 64 KiB, one core"),
        figure("core.reduce_1048576", "reduce of 1 MiB, one core"),
        figure("core.allreduce_65536", "allreduce of 64 KiB, one core"),
        figure("core.allreduce_1048576", "allreduce of 1 MiB, one core"),
        figure("cores.reduce_65536", "reduce of 64 KiB, two cores"),
        figure("cores.reduce_1048576", "reduce of 1 MiB, two cores"),
        figure("cores.allreduce_65536", "allreduce of 64 KiB, two cores"),
        figure("cores.allreduce_1048576", "allreduce of 1 MiB, two cores"),
    ],
    judged: VMPI,
    bars: &[
        Bar::no_slower("core.reduce_1048576", 2, 8),
        Bar::no_slower("core.allreduce_1048576", 2, 8),
        Bar::no_slower("cores.reduce_1048576", 2, 8),
        Bar::no_slower("cores.allreduce_1048576", 2, 8),
    ],
    runs,
};

const fn figure(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let one = scope.cpus[..1].to_vec();
    let mut places = vec![("core.", one)];
    if scope.cpus.len() > 1 {
        places.push(("cores.", scope.cpus[..2].to_vec()));
    }
    let run = |ranks: u32, system: &'static System, place: &'static str, cpus: Vec<u32>| Run {
        variant: None,
        system,
        program: Program::C("bench/collectives"),
        arguments: words(EXPERIMENT.figures.iter().map(|figure| figure.name).filter(|name| name.starts_with(place))),
        ranks,
        pin: ranks as usize <= cpus.len(),
        cpus,
        across: false,
        series: place,
        x: ranks.into(),
        gives: Gives::Lines,
    };
    let cases = scope
        .ranks_or(RANKS)
        .into_iter()
        .flat_map(|n| places.iter().map(move |(place, cpus)| (n, *place, cpus.clone())));
    cases.flat_map(|(n, place, cpus)| scope.mpis().map(move |system| run(n, system, place, cpus.clone()))).collect()
}
