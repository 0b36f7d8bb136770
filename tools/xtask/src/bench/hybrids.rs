//! Ranks with threads, and ranks that wait by spinning on memory.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, Variant, words};
use super::programs::Program;
use super::system::{Abi, Kind, System};
use crate::place::top;

/// Ranks, and threads of each, on two CPUs.
const LAYOUTS: [(u32, u32); 3] = [(2, 1), (1, 2), (2, 2)];
const STEPS: u32 = 60;

/// How a system is told what each of the layouts is.
struct Player {
    /// By layout; the name is that of its column.
    told: [Variant; 3],
    system: &'static str,
}

const fn told(name: &'static str, flags: &'static [&'static str]) -> Variant {
    Variant { name, title: "", flags }
}

const ONE: &str = "OMP_NUM_THREADS=1";
const TWO: &str = "OMP_NUM_THREADS=2";

static PLAYERS: [Player; 3] = [
    Player {
        told: [
            told("places", &["-x", ONE, "--cpus-per-rank", "1"]),
            told("places", &["-x", TWO, "--cpus-per-rank", "2"]),
            told("places", &["-x", TWO, "--cpus-per-rank", "2"]),
        ],
        system: "vmpi-openmpi",
    },
    Player {
        told: [
            told("pe", &["-x", ONE, "--map-by", "slot:PE=1", "--bind-to", "core"]),
            told("pe", &["-x", TWO, "--map-by", "slot:PE=2", "--bind-to", "core"]),
            told("pe", &["-x", TWO, "--map-by", "slot:PE=2:OVERSUBSCRIBE", "--bind-to", "core:overload-allowed"]),
        ],
        system: "openmpi4-yield",
    },
    Player {
        told: [
            told("unbound", &["-x", ONE, "--bind-to", "none"]),
            told("unbound", &["-x", TWO, "--bind-to", "none"]),
            told("unbound", &["-x", TWO, "--bind-to", "none"]),
        ],
        system: "openmpi4-yield",
    },
];

const SHOWN: [Variant; 3] = [
    Variant { name: "places", title: "vmpi, --cpus-per-rank K", flags: &["--cpus-per-rank", "K"] },
    Variant { name: "pe", title: "Open MPI 4, PE=K", flags: &["--map-by", "slot:PE=K", "--bind-to", "core"] },
    Variant { name: "unbound", title: "Open MPI 4, --bind-to none", flags: &["--bind-to", "none"] },
];

pub const EXPERIMENT: Experiment = Experiment {
    name: "hybrids",
    about: "Ranks with OpenMP threads on two CPUs: the same work in 60 steps, each a loop of all threads, an exchange with both neighbours and a sum; and CP2K's energy \
            of water (if it is installed). 2 x 2 shares the CPUs: with vmpi two ranks in one place. Then two ranks that pass a turn round 200 times by spinning on a \
            shared window, on one core and on two; and four ranks of four threads, whose barriers spin while others of them are in MPI (20 rounds, two cores). Open \
            MPI yields. There is no floor without an MPI.",
    variants: &SHOWN,
    x: Axis { title: "ranks x threads", show: |x| format!("{} x {}", x / 10, x % 10), scale: Scale::Linear },
    figures: &[
        figure("work", "60 steps", "ms"),
        figure("cp2k", "CP2K, DFT energy of water, launcher included", "s"),
        figure("turn_one", "200 turns by shared memory, one core", "ms"),
        figure("turn_two", "200 turns by shared memory, two cores", "ms"),
        figure("barrier", "20 barriers of threads, two cores", "ms"),
    ],
    judged: &["places"],
    bars: &[
        bar("work", "pe", 1.05, "at most 1.05 x Open MPI"),
        bar("work", "unbound", 1.05, "at most 1.05 x Open MPI"),
        bar("cp2k", "pe", 1.05, "at most 1.05 x Open MPI"),
        bar("cp2k", "unbound", 1.05, "at most 1.05 x Open MPI"),
        bar("turn_one", "unbound", 0.5, "at most half of Open MPI's"),
        bar("turn_two", "unbound", 1.0, "no slower than Open MPI"),
        bar("barrier", "unbound", 1.0, "no slower than Open MPI"),
    ],
    runs,
};

const fn figure(name: &'static str, title: &'static str, unit: &'static str) -> Figure {
    Figure { name, title, unit, scale: Scale::Log10, rows: None, picture: Picture::Bars }
}

const fn bar(figure: &'static str, against: &'static str, factor: f64, says: &'static str) -> Bar {
    Bar { figure, from: 0, to: u64::MAX, factor, reference: Reference::System(against), says }
}

fn run(system: &'static System, variant: &'static Variant, (ranks, threads): (u32, u32), cpus: &[u32]) -> Run {
    Run {
        system,
        variant: Some(variant),
        program: Program::C("bench/hybrid"),
        arguments: Vec::new(),
        ranks,
        cpus: cpus.to_vec(),
        pin: false,
        across: false,
        series: "work",
        x: (10 * ranks + threads).into(),
        gives: Gives::Lines,
    }
}

fn runs(scope: &Scope) -> Vec<Run> {
    let mut runs = Vec::new();
    let there = || PLAYERS.iter().filter_map(|player| Some((player, scope.mpis().find(|s| s.name == player.system)?)));
    let allowed = |ranks: u32| scope.ranks.as_ref().is_none_or(|some| some.contains(&ranks));
    let data = top().join("tests/data/h2o.cp2k").display().to_string();
    for (number, layout) in LAYOUTS.iter().enumerate().filter(|(_, (ranks, _))| allowed(*ranks)) {
        let of = |(player, system): (&'static Player, _)| run(system, &player.told[number], *layout, &scope.cpus);
        runs.extend(there().map(of).map(|run| Run { arguments: words(["work".into(), STEPS.to_string()]), ..run }));
        runs.extend(there().map(of).map(|run| Run {
            program: Program::Installed("/usr/bin/cp2k.psmp"),
            arguments: words(["-i", &data]),
            series: "cp2k",
            gives: Gives::Time("cp2k"),
            ..run
        }));
    }
    // Nobody is bound to a place here: one thread of a rank spins at a time, or all of them share its CPU.
    let spinning = |series, layout: (u32, u32), cpus: &[u32], arguments: &[&str]| {
        let spinners = there().filter(|(player, system)| system.kind == Kind::Vmpi || player.told[0].name == "unbound");
        let all = spinners.map(|(player, system)| Run {
            arguments: words(arguments),
            series,
            ..run(system, &player.told[0], layout, cpus)
        });
        all.filter(|run| allowed(run.ranks) && run.system.abi == Abi::OpenMpi).collect::<Vec<_>>()
    };
    runs.extend(spinning("turn_one", (2, 1), &scope.cpus[..1], &["turn", "200", "turn_one"]));
    if scope.cpus.len() > 1 {
        runs.extend(spinning("turn_two", (2, 1), &scope.cpus, &["turn", "200", "turn_two"]));
        runs.extend(spinning("barrier", (4, 4), &scope.cpus, &["barrier", "20", "barrier"]));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn each_layout_is_told_to_each_in_its_words() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let runs = runs(&scope);
        let named = |series: &str| runs.iter().filter(|run| run.series == series).map(Run::name).collect::<Vec<_>>();
        assert_eq!(named("work"), ["places", "pe", "unbound"].repeat(3));
        assert_eq!(named("turn_one"), ["places", "unbound"]);
        for run in runs.iter().filter(|run| run.series == "work") {
            let threads = run.x % 10;
            assert!(run.flags().contains(&["", ONE, TWO][threads as usize]), "{}", run.title());
            assert_eq!(run.x / 10, u64::from(run.ranks));
        }
    }
}
