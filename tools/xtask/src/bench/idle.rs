//! What a job with nothing to do uses.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI};
use super::programs::Program;
use std::time::Duration;

const RANKS: &[u32] = &[2, 8];
const LOOKED_AT: Duration = Duration::from_secs(2);

pub const EXPERIMENT: Experiment = Experiment {
    name: "idle",
    about: "CPU seconds that all processes of a job, launcher and daemons included, use in 2 s in which every rank waits in MPI_Recv.",
    variants: &[],
    x: Axis { title: "ranks on two cores", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[Figure {
        name: "waiting",
        title: "CPU time of 2 s of waiting",
        unit: "s",
        scale: Scale::Linear,
        rows: None,
        picture: Picture::Bars,
    }],
    judged: VMPI,
    bars: &[Bar {
        figure: "waiting",
        from: 0,
        to: u64::MAX,
        factor: 0.01,
        reference: Reference::Absolute,
        says: "0 % CPU (below 0.5 %)",
    }],
    runs,
};

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |n: u32, system| Run {
        system,
        variant: None,
        program: Program::C("bench/sit"),
        arguments: Vec::new(),
        ranks: n,
        cpus: scope.cpus.clone(),
        pin: false,
        across: false,
        series: "waiting",
        x: n.into(),
        gives: Gives::Sitting(LOOKED_AT),
    };
    scope.ranks_or(RANKS).into_iter().flat_map(|n| scope.mpis().map(move |system| run(n, system))).collect()
}
