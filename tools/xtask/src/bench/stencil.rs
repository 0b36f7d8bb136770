//! A fixed amount of work, divided among more and more ranks; balanced, and with one rank that has three times as much.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, words};
use super::programs::Program;
use super::samples::{Rounds, Samples};
use super::system::System;

const V: &[u32] = &[1, 2, 4, 8, 16];
const SIDE: u32 = 512;
const STEPS: u32 = 300;
/// How often rank 0 does its part of the work.
const LOAD: u32 = 3;

/// What the machine could do with the uneven work, by name in tables.
pub const BALANCED: &str = "ideal, balanced";
pub const STAYING: &str = "ideal, ranks stay";

pub const EXPERIMENT: Experiment = Experiment {
    name: "stencil",
    about: "A five-point stencil on 512 x 512 doubles, 300 steps, in blocks of two dimensions, halos exchanged by MPI_Isend, MPI_Irecv and MPI_Waitall; \
            V ranks on each of two cores, so that each has 1/(2V) of the work. Uneven: rank 0 computes its part three times in each step. \
            Balanced ideal of that: vmpi's even time at V=1, times (2V + 2)/2V, the work as evenly on both cores as if it were sand; if ranks \
            stay on their cores: times (V + 2)/V. All runs must give the same checksum. Floors: V processes of one core that compute blocks of the same \
            size in turn, once a step, by futex and by sched_yield, and exchange nothing.",
    variants: &[],
    x: Axis { title: "ranks per core (V)", show: |v| v.to_string(), scale: Scale::Log2 },
    figures: &[time("equal", "stencil, equal work"), time("uneven", "stencil, rank 0 has three times the work")],
    judged: VMPI,
    bars: &[
        Bar {
            figure: "equal",
            from: 2,
            to: 16,
            factor: 1.2,
            reference: Reference::OwnFirst,
            says: "no slower than 1.2 x V=1",
        },
        Bar {
            figure: "uneven",
            from: 1,
            to: 16,
            factor: 1.1,
            reference: Reference::AtBest(BALANCED),
            says: "at best V within 1.1 x of the balanced ideal",
        },
    ],
    runs,
};

pub const fn time(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "ms", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

/// How often ranks moved.
pub const fn moves(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "moves", scale: Scale::Linear, rows: None, picture: Picture::Lines }
}

/// A figure at one V.
#[derive(Clone, Copy)]
pub struct Case {
    figure: &'static str,
    /// The figure that has the number of moves.
    pub moves: &'static str,
    load: u32,
    v: u32,
}

/// All V for even work, then for uneven.
pub fn cases(scope: &Scope) -> Vec<Case> {
    let cores = scope.cpus.len() as u32;
    // Of the user's numbers of ranks those that divide evenly among the cores.
    let degrees: Vec<u32> = scope
        .ranks
        .as_ref()
        .map_or(V.to_vec(), |ranks| ranks.iter().filter(|n| n.is_multiple_of(cores)).map(|n| n / cores).collect());
    let figures = [("equal", "equal_moves", 1), ("uneven", "uneven_moves", LOAD)];
    let of = |(figure, moves, load)| degrees.iter().map(move |&v| Case { figure, moves, load, v });
    figures.into_iter().flat_map(of).collect()
}

impl Case {
    pub fn run(self, scope: &Scope, system: &'static System) -> Run {
        Run {
            across: false,
            system,
            variant: None,
            program: Program::C("bench/stencil"),
            arguments: [words([self.figure]), words([self.v, SIDE, STEPS, self.load])].concat(),
            ranks: self.v * scope.cpus.len() as u32,
            cpus: scope.cpus.clone(),
            pin: self.v == 1,
            series: self.figure,
            x: self.v.into(),
            gives: Gives::Lines,
        }
    }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let cases = cases(scope);
    let degrees: Vec<u32> = cases.iter().filter(|case| case.load == 1).map(|case| case.v).collect();
    let floor = scope.floor().zip(cases.first()).map(|(system, case)| Run {
        system,
        program: Program::C("bench/floor"),
        arguments: [words(["turns", case.figure]), words([scope.cpus[0], SIDE, STEPS]), words(&degrees)].concat(),
        ranks: 1,
        pin: false,
        series: "floor",
        ..case.run(scope, system)
    });
    cases.into_iter().flat_map(|case| scope.mpis().map(move |system| case.run(scope, system))).chain(floor).collect()
}

/// The ideals of the uneven work, from what the even work took in the same round.
pub fn add_ideals(samples: &mut Samples, even: &Rounds, cores: usize) {
    let (more, cores) = (f64::from(LOAD - 1), cores as f64);
    for v in samples.places("uneven") {
        for (round, ms) in even {
            let v_ranks = v as f64;
            samples.add(*round, "uneven", v, BALANCED, ms * (cores * v_ranks + more) / (cores * v_ranks));
            samples.add(*round, "uneven", v, STAYING, ms * (v_ranks + more) / v_ranks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ideals_are_those_of_the_issue() {
        let mut samples = Samples::default();
        samples.add(0, "uneven", 1, "vmpi", 105.0);
        samples.add(0, "uneven", 16, "vmpi", 47.0);
        add_ideals(&mut samples, &Rounds::from([(0, 35.0)]), 2);
        let at = |v, name| samples.summary("uneven", v, name).unwrap().median;
        assert!((at(16, STAYING) - 39.375).abs() < 1e-9);
        assert!((at(16, BALANCED) - 37.1875).abs() < 1e-9);
        assert!((at(1, STAYING) - 105.0).abs() < 1e-9);
        assert!((at(1, BALANCED) - 70.0).abs() < 1e-9);
    }
}
