//! What a simulation costs, and what it says: vmpi's --simulate beside SimGrid's SMPI, the same program on the same cluster.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, Variant, words};
use super::programs::Program;
use super::system::{Abi, Kind, System};

const RANKS: &[u32] = &[2, 8, 32, 128];

/// A pattern of tests/programs/bench/patterns.c, its bytes, how often; the figure of its CPU time. That of its virtual time is named after pattern and bytes.
struct Case {
    pattern: &'static str,
    bytes: u64,
    rounds: u32,
    cpu: &'static str,
}

const CASES: &[Case] = &[
    Case { pattern: "pingpong", bytes: 8, rounds: 20_000, cpu: "cpu_pingpong" },
    Case { pattern: "ring", bytes: 1024, rounds: 500, cpu: "cpu_ring" },
    Case { pattern: "stencil", bytes: 65_536, rounds: 50, cpu: "cpu_stencil" },
    Case { pattern: "alltoall", bytes: 1024, rounds: 3, cpu: "cpu_alltoall" },
    Case { pattern: "barrier", bytes: 0, rounds: 100, cpu: "cpu_barrier" },
];

const VARIANT: Variant = Variant {
    name: "vmpi-simulate",
    title: "vmpi --simulate",
    flags: &[
        "--simulate",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/simulate/cluster.toml"),
        "--compute",
        "none",
    ],
};

pub const EXPERIMENT: Experiment = Experiment {
    name: "simulate",
    about: "The same program on the same cluster (1,024 hosts, 1 GBps, 10 us; a rank a host), simulated by vmpi and by SimGrid's SMPI with its defaults and \
            without computation: virtual time of a round, and CPU time of the whole job, launcher and start included. SMPI reads \
            tests/data/simulate/cluster.xml; vmpi reads cluster.toml, the same by LogGP, in which its engine looks ahead: a message alone takes \
            as long within 2 %, eager ones leave when they are sent, and a message above the eager limit is announced first. Barriers are of different \
            algorithms: SMPI's is flat.",
    variants: &[VARIANT],
    x: Axis { title: "ranks, simulated on two cores", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        time("pingpong_8", "virtual time of half a ping-pong, 8 B"),
        time("ring_1024", "virtual time of a ring, 1 KiB"),
        time("stencil_65536", "virtual time of a stencil, 64 KiB"),
        time("alltoall_1024", "virtual time of all to all, 1 KiB"),
        time("barrier_0", "virtual time of a barrier"),
        cpu("cpu_pingpong", "CPU time, 20,000 round trips"),
        cpu("cpu_ring", "CPU time, 500 rings"),
        cpu("cpu_stencil", "CPU time, 50 stencils"),
        cpu("cpu_alltoall", "CPU time, 3 all to all"),
        cpu("cpu_barrier", "CPU time, 100 barriers"),
    ],
    judged: &["vmpi-simulate"],
    bars: &[
        third("cpu_pingpong"),
        third("cpu_ring"),
        third("cpu_stencil"),
        third("cpu_alltoall"),
        third("cpu_barrier"),
    ],
    runs,
};

const fn time(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn cpu(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "s", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

const fn third(figure: &'static str) -> Bar {
    Bar {
        figure,
        from: 2,
        to: 128,
        factor: 1.0 / 3.0,
        reference: Reference::System("smpi"),
        says: "at most a third of SMPI's CPU time",
    }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |case: &'static Case, ranks: u32, system: &'static System, variant: Option<&'static Variant>| Run {
        system,
        variant,
        program: Program::C("bench/patterns"),
        arguments: words([case.pattern.to_string(), case.bytes.to_string(), case.rounds.to_string()]),
        ranks,
        cpus: scope.cpus.clone(),
        pin: false,
        across: false,
        series: case.pattern,
        x: ranks.into(),
        gives: Gives::LinesAndCpu(case.cpu),
    };
    let ours = scope.systems.iter().copied().find(|system| system.kind == Kind::Vmpi && system.abi == Abi::OpenMpi);
    let mut runs = Vec::new();
    for case in CASES {
        for ranks in scope.ranks_or(RANKS) {
            // Further ranks of a ping-pong only stand by; a stencil of two has no neighbours.
            if (case.pattern == "pingpong" && ranks != 2) || (case.pattern == "stencil" && ranks < 4) {
                continue;
            }
            runs.extend(ours.map(|system| run(case, ranks, system, EXPERIMENT.variants.first())));
            runs.extend(scope.simulators().map(|system| run(case, ranks, system, None)));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_program_prints_and_what_it_costs_are_figures() {
        for case in CASES {
            let time = format!("{}_{}", case.pattern, case.bytes);
            assert!(
                [time.as_str(), case.cpu]
                    .iter()
                    .all(|name| EXPERIMENT.figures.iter().any(|figure| figure.name == *name))
            );
        }
    }
}
