//! Collectives of n ranks on two nodes (network namespaces), over TCP.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, words};
use super::programs::Program;
use super::system::System;

const RANKS: &[u32] = &[4, 8, 16];
const SYSTEMS: &[&str] = &["vmpi-openmpi", "openmpi4-yield"];

pub const EXPERIMENT: Experiment = Experiment {
    name: "collectives",
    about: "Collectives of n ranks on two nodes: network namespaces with a veth cable between them, a CPU each, TCP; the first n/2 ranks on the \
            first. Open MPI with yield, by its tcp BTL between the nodes and shared memory (vader) within them; MPICH's ranks, which do not yield, \
            are left out: they take milliseconds as soon as two share a core. Roots take turns in broadcasts, bytes are each rank's contribution.",
    variants: &[],
    x: Axis { title: "ranks on two nodes", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        figure("barrier", "barrier"),
        figure("allreduce_8", "allreduce, 8 B"),
        figure("allreduce_1024", "allreduce, 1 KiB"),
        figure("allreduce_65536", "allreduce, 64 KiB"),
        figure("allreduce_1048576", "allreduce, 1 MiB"),
        figure("bcast_8", "broadcast, 8 B"),
        figure("bcast_65536", "broadcast, 64 KiB"),
        figure("bcast_1048576", "broadcast, 1 MiB"),
        figure("allgather_8", "allgather, 8 B"),
        figure("allgather_1024", "allgather, 1 KiB"),
        figure("allgather_65536", "allgather, 64 KiB"),
    ],
    judged: VMPI,
    bars: &[bar("barrier"), bar("allreduce_8"), bar("allreduce_1048576"), bar("bcast_8"), bar("allgather_1024")],
    runs,
};

const fn figure(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn bar(figure: &'static str) -> Bar {
    Bar {
        figure,
        from: 4,
        to: 16,
        factor: 1.0,
        reference: Reference::BestPeer,
        says: "no slower than the best MPI over tcp",
    }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |ranks: u32, system: &'static System| Run {
        variant: None,
        system,
        program: Program::C("bench/collectives"),
        arguments: words(EXPERIMENT.figures.iter().map(|figure| figure.name)),
        ranks,
        cpus: scope.cpus.clone(),
        pin: false,
        across: true,
        series: "collectives",
        x: ranks.into(),
        gives: Gives::Lines,
    };
    let systems = || scope.systems.iter().copied().filter(|system| SYSTEMS.contains(&system.name));
    scope.ranks_or(RANKS).iter().flat_map(|n| systems().map(|system| run(*n, system))).collect()
}
