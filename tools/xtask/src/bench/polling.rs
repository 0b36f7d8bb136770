//! Ranks that look for messages between pieces of their work, or do nothing but look.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Run, Scale, Scope, VMPI};
use super::programs::Program;

const RANKS: &[u32] = &[2, 4, 6, 16];

pub const EXPERIMENT: Experiment = Experiment {
    name: "polling",
    about: "n ranks on two cores that poll. A look that finds nothing, while all ranks do that: MPI_Test, MPI_Testany of 16 receives, MPI_Iprobe. A message of \
            8 bytes between all pairs of neighbours at the same time, for which MPI_Test is called until it is there (half the round trip). And a table that is \
            spread over the ranks: each gathers its updates by owner, sends 256 of them at a time, and calls MPI_Testany after each (time per \
            update of all ranks together; HPCC's MPIRandomAccess is made like this). There is no floor without an MPI.",
    variants: &[],
    x: Axis { title: "ranks on two cores", show: |n| n.to_string(), scale: Scale::Log2 },
    figures: &[
        figure("test_one", "MPI_Test that finds nothing", "ns"),
        figure("test_many", "MPI_Testany of 16 that finds nothing", "ns"),
        figure("probe", "MPI_Iprobe that finds nothing", "ns"),
        figure("polled", "message that is polled for, 8 B", "us"),
        figure("update", "update of a table", "us"),
    ],
    judged: VMPI,
    // Not the issue's. A look that finds nothing is cheapest under an MPI that lets nobody else run: where cores are shared it is what the others pay for.
    bars: &[
        Bar::no_slower("test_one", 2, 2),
        Bar::no_slower("test_many", 2, 2),
        Bar::no_slower("probe", 2, 2),
        Bar::no_slower("polled", 2, 16),
        Bar::no_slower("update", 2, 16),
    ],
    runs,
};

const fn figure(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure { name, title, unit, scale: Scale::Log10, rows: None, picture: Picture::Lines }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |n: u32, system| Run {
        system,
        variant: None,
        program: Program::C("bench/polling"),
        arguments: Vec::new(),
        ranks: n,
        cpus: scope.cpus.clone(),
        pin: n <= scope.cpus.len() as u32,
        across: false,
        series: "polls",
        x: n.into(),
        gives: Gives::Lines,
    };
    // It works in pairs.
    let ranks = scope.ranks_or(RANKS).into_iter().filter(|n| n.is_multiple_of(2));
    ranks.flat_map(|n| scope.mpis().map(move |system| run(n, system)).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn pairs_of_ranks_run_under_all_mpis() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: Some(vec![2, 3, 4]) };
        let runs = runs(&scope);
        assert_eq!(runs.len(), 2 * scope.mpis().count());
        assert!(runs.iter().all(|run| run.ranks % 2 == 0 && run.pin == (run.ranks == 2)));
    }
}
