//! What is measured: the experiments as a table, each in a module of its own.

use super::programs::Program;
use super::system::{Kind, System};
use super::{
    applications, balance, clocks, collectives, hybrids, idle, jobs, latency, launch, nodes, pingpong, policies,
    polling, reductions, simulate, stencil,
};
use std::time::Duration;

/// Whom most bars are for.
pub const VMPI: &[&str] = &["vmpi-openmpi", "vmpi-mpich"];

/// The peers that can share a core at all: those whose ranks yield it while they wait.
pub const YIELDING: &[&str] = &["openmpi4-yield", "openmpi5", "intelmpi"];

pub const EXPERIMENTS: &[Experiment] = &[
    latency::EXPERIMENT,
    pingpong::EXPERIMENT,
    launch::EXPERIMENT,
    stencil::EXPERIMENT,
    clocks::EXPERIMENT,
    idle::EXPERIMENT,
    policies::EXPERIMENT,
    polling::EXPERIMENT,
    balance::EXPERIMENT,
    nodes::EXPERIMENT,
    collectives::EXPERIMENT,
    reductions::EXPERIMENT,
    applications::EXPERIMENT,
    hybrids::EXPERIMENT,
    jobs::EXPERIMENT,
    simulate::EXPERIMENT,
];

pub struct Experiment {
    pub name: &'static str,
    /// What it measures and how; printed above the table.
    pub about: &'static str,
    /// What the experiment sets against each other: vmpi under different flags. Ratios are taken against the first, if there are any.
    pub variants: &'static [Variant],
    pub x: Axis,
    pub figures: &'static [Figure],
    /// Whom the bars are for: systems, or names that programs give.
    pub judged: &'static [&'static str],
    pub bars: &'static [Bar],
    /// The runs of one round, in the order in which they alternate.
    pub runs: fn(&Scope) -> Vec<Run>,
}

/// The x axis of an experiment's pictures; the first column of its tables.
pub struct Axis {
    pub title: &'static str,
    pub show: fn(u64) -> String,
    pub scale: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    Linear,
    /// Powers of two.
    Log2,
    /// Powers of ten.
    Log10,
}

/// vmpi (or Open MPI 4) under certain flags, as a system of its own: a column of the tables, a line of the pictures.
#[derive(Debug, PartialEq)]
pub struct Variant {
    pub name: &'static str,
    pub title: &'static str,
    /// Of vmpirun, or of Open MPI's launcher.
    pub flags: &'static [&'static str],
}

/// One thing that is measured: a table and a picture.
pub struct Figure {
    pub name: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub scale: Scale,
    /// Rows of the table; None: all places on the x axis.
    pub rows: Option<&'static [u64]>,
    pub picture: Picture,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Picture {
    /// A line per system over x.
    Lines,
    /// The figure is a distribution: x is per mille, and drawn upwards.
    Distribution,
    /// A bar per system, at the largest x.
    Bars,
}

/// What issue 4 asks of vmpi, or an experiment of one of its variants.
pub struct Bar {
    pub figure: &'static str,
    /// Where it holds, both ends included.
    pub from: u64,
    pub to: u64,
    /// vmpi's value is at most so many times the reference.
    pub factor: f64,
    pub reference: Reference,
    /// The bar in words.
    pub says: &'static str,
}

impl Bar {
    /// No slower than the best peer, from here to there.
    pub const fn no_slower(figure: &'static str, from: u64, to: u64) -> Bar {
        let says = "no slower than the best process-based MPI";
        Bar { figure, from, to, factor: 1.0, reference: Reference::BestPeer, says }
    }
}

pub enum Reference {
    /// A system, or a floor by the name that its program gives.
    System(&'static str),
    /// The same, but what counts is the place where vmpi stands best.
    AtBest(&'static str),
    /// The peer with the least median.
    BestPeer,
    /// vmpi's own value at the least x.
    OwnFirst,
    /// The unit itself.
    Absolute,
}

/// What the runs of a round may depend on.
pub struct Scope {
    pub systems: Vec<&'static System>,
    /// Two of the CPUs that this process may use, or one if there are no more.
    pub cpus: Vec<u32>,
    /// The user's choice of numbers of ranks.
    pub ranks: Option<Vec<u32>>,
}

/// One execution of a program.
pub struct Run {
    pub system: &'static System,
    pub variant: Option<&'static Variant>,
    pub program: Program,
    pub arguments: Vec<String>,
    pub ranks: u32,
    pub cpus: Vec<u32>,
    pub pin: bool,
    /// On two nodes, of a CPU each.
    pub across: bool,
    /// Runs of one series grow with x: if one takes too long, the larger ones are left out.
    pub series: &'static str,
    pub x: u64,
    pub gives: Gives,
}

/// Where a run's figures come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gives {
    /// The lines that it prints.
    Lines,
    /// Those, and how often ranks moved: a figure, from the line of `vmpirun --json`.
    LinesAndMoves(&'static str),
    /// Its wall time and CPU time: `wall`, `cpu`.
    Times,
    /// Its wall time: a figure.
    Time(&'static str),
    /// Its CPU time, that of all its processes: a figure; and the figures that it prints.
    LinesAndCpu(&'static str),
    /// So many jobs of one and two ranks in turn, two at a time: their wall time, a figure.
    Jobs(&'static str),
    /// What it uses while all ranks wait: `waiting`, `pss`.
    Sitting(Duration),
}

impl Scope {
    /// The numbers of ranks to use: the user's, or else these.
    pub fn ranks_or(&self, default: &[u32]) -> Vec<u32> {
        self.ranks.clone().unwrap_or_else(|| default.to_vec())
    }

    /// vmpi and the other MPIs.
    pub fn mpis(&self) -> impl Iterator<Item = &'static System> {
        self.systems.iter().copied().filter(|system| matches!(system.kind, Kind::Vmpi | Kind::Peer))
    }

    pub fn simulators(&self) -> impl Iterator<Item = &'static System> {
        self.systems.iter().copied().filter(|system| system.kind == Kind::Simulator)
    }

    pub fn floor(&self) -> Option<&'static System> {
        self.systems.iter().copied().find(|system| system.kind == Kind::Floor)
    }
}

impl Run {
    pub fn title(&self) -> String {
        let title = self.variant.map_or(self.system.title, |variant| variant.title);
        format!("{title}: {} at {}", self.series, self.x)
    }

    /// By which its figures are known.
    pub fn name(&self) -> &'static str {
        self.variant.map_or(self.system.name, |variant| variant.name)
    }

    pub fn flags(&self) -> &'static [&'static str] {
        self.variant.map_or(&[], |variant| variant.flags)
    }
}

pub fn words<T: ToString>(words: impl IntoIterator<Item = T>) -> Vec<String> {
    words.into_iter().map(|word| word.to_string()).collect()
}

/// 8, 64, 4K, 1M.
pub fn show_bytes(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{}K", bytes >> 10),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    fn scope(ranks: Option<Vec<u32>>) -> Scope {
        Scope { systems: choose("all").unwrap(), cpus: vec![0, 1], ranks }
    }

    #[test]
    fn names_are_different_and_bars_name_figures() {
        let mut names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), EXPERIMENTS.len());
        for experiment in EXPERIMENTS {
            for bar in experiment.bars {
                assert!(experiment.figures.iter().any(|f| f.name == bar.figure), "{}", bar.figure);
                assert!(bar.from <= bar.to && bar.factor > 0.0);
            }
        }
    }

    #[test]
    fn every_experiment_has_vmpi_and_something_to_compare_with() {
        for experiment in EXPERIMENTS {
            let runs = (experiment.runs)(&scope(None));
            let ours = |run: &Run| run.system.kind == Kind::Vmpi || run.program == Program::ClockUpdates;
            assert!(runs.iter().any(ours), "{}", experiment.name);
            assert!(runs.iter().all(|run| !run.cpus.is_empty() && run.ranks > 0));
        }
    }

    #[test]
    fn the_user_chooses_the_ranks() {
        for experiment in EXPERIMENTS {
            let runs = (experiment.runs)(&scope(Some(vec![2, 4])));
            let chosen = |run: &Run| run.ranks <= 4 || matches!(run.gives, Gives::Jobs(_));
            assert!(runs.iter().all(chosen), "{}", experiment.name);
        }
    }

    #[test]
    fn sizes_are_short() {
        assert_eq!([8, 4096, 5000, 1 << 24].map(show_bytes), ["8", "4K", "5000", "16M"]);
    }
}
