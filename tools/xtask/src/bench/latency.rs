//! Small messages and small collectives of n ranks on two cores.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, VMPI, words};
use super::programs::Program;

const RANKS: &[u32] = &[2, 4, 8, 16, 32, 64, 128, 256, 512];

pub const EXPERIMENT: Experiment = Experiment {
    name: "latency",
    about: "A token of 8 bytes round a ring of all ranks (time per hop), MPI_Barrier, MPI_Allreduce of 8 bytes, and an exchange of \
            8 bytes with four neighbours (MPI_Irecv, MPI_Isend, MPI_Waitall). n ranks on two cores, so V = n/2; neighbours share a core under vmpi, peers' ranks go where the kernel puts them. Floors: the same ring among V \
            processes of one core, by futex and by sched_yield, without any MPI (n = 2: two cores, by a \
            cache line that both spin on); by futex where each process touches 92 cache lines of its own in 23 pages in its turn, about as many as a \
            rank does (touching); by futex round n processes of two cores, V on each (spread): each core then sleeps while the token is on the other, and \
            what that costs is in no other floor; for the collectives, V hops by futex and by sched_yield, and V switches by sched_yield in the kernel's order, \
            where nobody waits for anybody (switch; touching: as much memory in each turn).",
    variants: &[],
    x: Axis { title: "ranks on two cores", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        figure("ring", "ring hop, 8 B"),
        figure("barrier", "barrier"),
        figure("allreduce", "allreduce, 8 B"),
        figure("exchange", "exchange with four neighbours, 8 B"),
    ],
    judged: VMPI,
    bars: &[
        Bar::no_slower("ring", 4, 16),
        Bar {
            figure: "ring",
            from: 32,
            to: 512,
            factor: 1.3,
            reference: Reference::System("futex"),
            says: "at most 1.3 x the futex ring",
        },
        cell("barrier"),
        cell("allreduce"),
        // Not the issue's: what codes on grids do most, and no MPI should be slower at.
        Bar::no_slower("exchange", 2, 512),
        Bar::no_slower("barrier", 8, 8),
        Bar::no_slower("allreduce", 8, 8),
        against("barrier", 32, 0.5, "half the best process-based MPI"),
        against("allreduce", 32, 0.5, "half the best process-based MPI"),
        against("barrier", 128, 0.1, "a tenth of the best process-based MPI"),
        against("allreduce", 128, 0.1, "a tenth of the best process-based MPI"),
    ],
    runs,
};

const fn figure(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "us", scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

/// Every rank is switched in once.
const fn cell(figure: &'static str) -> Bar {
    Bar {
        figure,
        from: 4,
        to: 512,
        factor: 1.3,
        reference: Reference::System("futex"),
        says: "at most 1.3 x (V x hand-off by futex)",
    }
}

const fn against(figure: &'static str, n: u64, factor: f64, says: &'static str) -> Bar {
    Bar { figure, from: n, to: n, factor, reference: Reference::BestPeer, says }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let ranks = scope.ranks_or(RANKS);
    let run = |n: u32, system| Run {
        system,
        variant: None,
        program: Program::C("bench/latency"),
        arguments: Vec::new(),
        ranks: n,
        cpus: scope.cpus.clone(),
        pin: n <= scope.cpus.len() as u32,
        across: false,
        series: "ring, barrier, allreduce, exchange",
        x: n.into(),
        gives: Gives::Lines,
    };
    let floor = scope.floor().map(|system| Run {
        arguments: [words(["ring"]), words([scope.cpus[0], scope.cpus[scope.cpus.len() - 1]]), words(&ranks)].concat(),
        program: Program::C("bench/floor"),
        series: "floor",
        pin: false,
        across: false,
        ..run(2, system)
    });
    ranks.iter().flat_map(|n| scope.mpis().map(|system| run(*n, system))).chain(floor).collect()
}
