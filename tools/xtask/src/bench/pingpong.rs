//! Two ranks that answer each other, on one core and on two.

use super::experiment::{
    Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, show_bytes, words,
};
use super::programs::Program;
use super::system::System;

const BYTES: &[u32] = &[8, 64, 512, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20, 16 << 20];
const MOST: u64 = 16 << 20;

pub const EXPERIMENT: Experiment = Experiment {
    name: "pingpong",
    about: "Half the round trip between two ranks, from and to buffers that stay the same, and the bandwidth that this makes. One core: both ranks \
            on it. Two cores: each rank pinned to its own. Floors: handing a core over by futex and by sched_yield, a cache line between \
            cores that both spin on; copying as much from a shared mapping (memcpy) and from a process (process_vm_readv).",
    variants: &[],
    x: Axis { title: "bytes", show: show_bytes, scale: Scale::Log2 },
    figures: &[
        time("one_core", "half round trip, one core"),
        time("two_cores", "half round trip, two cores"),
        bandwidth("one_core_bandwidth", "bandwidth, one core"),
        bandwidth("two_cores_bandwidth", "bandwidth, two cores"),
    ],
    judged: VMPI,
    bars: &[
        bar("one_core", (8, 8), 1.2, Reference::System("yield"), "at most 1.2 x the sched_yield alternation"),
        Bar::no_slower("one_core", 8, 8),
        bar("one_core", (8 << 10, MOST), 0.5, Reference::BestPeer, "twice the bandwidth of the best process-based MPI"),
        Bar::no_slower("two_cores", 8, 8),
        bar(
            "two_cores",
            (8 << 10, MOST),
            1.0 / 1.2,
            Reference::BestPeer,
            "1.2 x the bandwidth of the best process-based MPI",
        ),
    ],
    runs,
};

const fn time(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn bandwidth(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "GB/s", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn bar(figure: &'static str, at: (u64, u64), factor: f64, reference: Reference, says: &'static str) -> Bar {
    Bar { figure, from: at.0, to: at.1, factor, reference, says }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let one = scope.cpus[..1].to_vec();
    let mut places = vec![("one_core", one)];
    if scope.cpus.len() > 1 {
        places.push(("two_cores", scope.cpus[..2].to_vec()));
    }
    let mut runs = Vec::new();
    for (figure, cpus) in places {
        let run = |system: &'static System, program, arguments| Run {
            system,
            variant: None,
            program: Program::C(program),
            arguments,
            ranks: 2,
            cpus: cpus.clone(),
            pin: true,
            across: false,
            series: figure,
            x: 0,
            gives: Gives::Lines,
        };
        let sizes = || words(BYTES);
        runs.extend(scope.mpis().map(|system| run(system, "bench/pingpong", [words([figure]), sizes()].concat())));
        let ends = words([cpus[0], cpus[cpus.len() - 1]]);
        if let Some(system) = scope.floor() {
            let floor = |what, rest| run(system, "bench/floor", [words([what, figure]), ends.clone(), rest].concat());
            runs.push(floor("pair", Vec::new()));
            runs.push(floor("copy", sizes()));
        }
    }
    runs
}
