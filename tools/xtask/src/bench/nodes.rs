//! Two ranks on two nodes (network namespaces), over TCP.

use super::cable::SYSTEMS;
use super::experiment::{
    Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, show_bytes, words,
};
use super::programs::Program;
use super::system::{Kind, System};

const BYTES: &[u32] = &[8, 1 << 10, 8 << 10, 64 << 10, 128 << 10, 1 << 20, 4 << 20];

pub const EXPERIMENT: Experiment = Experiment {
    name: "nodes",
    about: "Half the round trip between two ranks on two nodes, and the bandwidth that this makes: network namespaces with a veth cable between \
            them, a CPU each, TCP. Open MPI by its tcp BTL, MPICH by UCX over tcp. vmpi's messages go through a process of its own on each node, so \
            each is switched to and from twice. Floors: a socket that both ends look at without sleeping; iperf3, one stream, with the machine's \
            own congestion control and with the one that vmpi takes where that is BBR.",
    variants: &[],
    x: Axis { title: "bytes", show: show_bytes, scale: Scale::Log2 },
    figures: &[
        Figure {
            name: "far",
            title: "half round trip, two nodes",
            unit: "us",
            scale: Scale::Log10,
            rows: None,
            picture: Picture::Lines,
        },
        Figure {
            name: "far_bandwidth",
            title: "bandwidth, two nodes",
            unit: "GB/s",
            scale: Scale::Log10,
            rows: None,
            picture: Picture::Lines,
        },
    ],
    judged: VMPI,
    bars: &[
        bar((8, 8), "no slower than the best MPI over tcp"),
        bar((1 << 20, 4 << 20), "no slower than the best MPI over tcp"),
    ],
    runs,
};

const fn bar(at: (u64, u64), says: &'static str) -> Bar {
    Bar { figure: "far", from: at.0, to: at.1, factor: 1.0, reference: Reference::BestPeer, says }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |system: &'static System| {
        let (program, figure): (_, &[&str]) =
            if system.kind == Kind::Floor { ("bench/tcp", &["far"]) } else { ("bench/pingpong", &["far"]) };
        Run {
            variant: None,
            system,
            program: Program::C(program),
            arguments: [words(figure), words(BYTES)].concat(),
            ranks: 2,
            cpus: scope.cpus.clone(),
            pin: true,
            across: true,
            series: "far",
            x: 0,
            gives: Gives::Lines,
        }
    };
    scope.systems.iter().copied().filter(|system| SYSTEMS.contains(&system.name)).map(run).collect()
}
