//! What starting and ending a job costs, and what memory its ranks need.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, words};
use super::programs::Program;
use super::system::Kind;
use std::time::Duration;

const RANKS: &[u32] = &[2, 32, 256];
/// The number of ranks at which memory is looked at.
const SITTING: u32 = 32;
/// Above this only vmpi is run: the others take minutes, or fail.
const PEERS_MOST: u32 = 256;

pub const EXPERIMENT: Experiment = Experiment {
    name: "launch",
    about: "A program that calls MPI_Init and MPI_Finalize: from the launcher's start to its end, and the CPU time of all its processes, \
            daemons included. Floor: posix_spawn of as many /bin/true. Memory: the mean proportional set size of a rank while all \
            ranks wait in MPI_Recv, as in /proc/PID/smaps_rollup.",
    variants: &[],
    x: Axis { title: "ranks on two cores", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        time("wall", "launch to end, wall time"),
        time("cpu", "launch to end, CPU time"),
        Figure {
            name: "pss",
            title: "memory per rank (PSS)",
            unit: "KB",
            scale: Scale::Linear,
            rows: None,
            picture: Picture::Bars,
        },
    ],
    judged: VMPI,
    bars: &[
        against_mpich5(32, 0.7, "0.7 x MPICH 5"),
        against_mpich5(256, 0.2, "0.2 x MPICH 5"),
        Bar {
            figure: "pss",
            from: SITTING as u64,
            to: SITTING as u64,
            factor: 1000.0,
            reference: Reference::Absolute,
            says: "at most 1,000 KB",
        },
    ],
    runs,
};

const fn time(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "s", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn against_mpich5(n: u64, factor: f64, says: &'static str) -> Bar {
    Bar { figure: "wall", from: n, to: n, factor, reference: Reference::System("mpich5"), says }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let ranks = scope.ranks_or(RANKS);
    let run = |n: u32, system| Run {
        system,
        variant: None,
        program: Program::C("bench/nothing"),
        arguments: Vec::new(),
        ranks: n,
        cpus: scope.cpus.clone(),
        pin: false,
        across: false,
        series: "launch",
        x: n.into(),
        gives: Gives::Times,
    };
    let able = |n: u32| scope.mpis().filter(move |system| system.kind == Kind::Vmpi || n <= PEERS_MOST);
    let mut runs = Vec::new();
    for &n in &ranks {
        runs.extend(able(n).map(|system| run(n, system)));
        runs.extend(scope.floor().map(|system| Run {
            program: Program::C("bench/floor"),
            arguments: words(["spawn".to_string(), n.to_string()]),
            series: "floor",
            gives: Gives::Lines,
            ..run(n, system)
        }));
    }
    let n = ranks.iter().copied().min_by_key(|n| n.abs_diff(SITTING)).unwrap_or(SITTING);
    runs.extend(able(n).map(|system| Run {
        program: Program::C("bench/sit"),
        series: "memory",
        gives: Gives::Sitting(Duration::from_millis(200)),
        ..run(n, system)
    }));
    runs
}
