//! Ready-made programs, as Debian ships them for Open MPI, from the launcher's start to its end.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Run, Scale, Scope};
use super::programs::Program;
use super::system::Abi;
use crate::place::top;

/// One to four ranks per core.
const RANKS: &[u32] = &[2, 4, 6, 8];

struct Application {
    /// Of its figure, too.
    name: &'static str,
    title: &'static str,
    path: &'static str,
    /// In words; DATA is tests/data.
    arguments: &'static str,
}

const APPLICATIONS: [Application; 6] = [
    Application {
        name: "lammps",
        title: "LAMMPS, melt of 32,000 atoms, 100 steps",
        path: "/usr/bin/lmp",
        arguments: "-in DATA/in.melt -log none",
    },
    Application {
        name: "nwchem",
        title: "NWChem, SCF energy of water",
        path: "/usr/bin/nwchem.openmpi",
        arguments: "DATA/h2o.nw",
    },
    Application {
        name: "iqtree",
        title: "IQ-TREE, tree of 17 species",
        path: "/usr/bin/iqtree2-mpi",
        arguments: "-s /usr/share/doc/iqtree/examples/example.phy -m HKY -seed 1 -nt 1 -n 4 -pre iqtree",
    },
    Application {
        name: "cp2k",
        title: "CP2K, DFT energy of water",
        path: "/usr/bin/cp2k.psmp",
        arguments: "-i DATA/h2o.cp2k",
    },
    Application {
        name: "gpaw",
        title: "GPAW, hydrogen molecule",
        path: "/usr/bin/gpaw",
        arguments: "python DATA/hydrogen.py",
    },
    Application {
        name: "liggghts",
        title: "LIGGGHTS, packing of grains",
        path: "/usr/bin/liggghts",
        arguments: "-in DATA/pack.liggghts",
    },
];

pub const EXPERIMENT: Experiment = Experiment {
    name: "applications",
    about: "Programs from Debian, built for Open MPI, with the input that our tests give them: seconds from the launcher's start to its end, so \
            with what starting costs (experiment launch). One thread a rank. Programs that are not installed are left out (cargo xtask guest installs all of them).",
    variants: &[],
    x: Axis { title: "ranks on two cores", show: |n| n.to_string(), scale: Scale::Linear },
    figures: &[time(0), time(1), time(2), time(3), time(4), time(5)],
    judged: &["vmpi-openmpi"],
    bars: &[ahead(0), ahead(1), ahead(2), ahead(3), ahead(4), ahead(5)],
    runs,
};

const fn time(number: usize) -> Figure {
    let Application { name, title, .. } = APPLICATIONS[number];
    Figure { name, title, unit: "s", scale: Scale::Linear, rows: None, picture: Picture::Lines }
}

const fn ahead(number: usize) -> Bar {
    Bar::no_slower(APPLICATIONS[number].name, 0, u64::MAX)
}

fn runs(scope: &Scope) -> Vec<Run> {
    let data = top().join("tests/data").display().to_string();
    let run = |application: &Application, n: u32, system| Run {
        system,
        variant: None,
        program: Program::Installed(application.path),
        arguments: application.arguments.split(' ').map(|word| word.replace("DATA", &data)).collect(),
        ranks: n,
        cpus: scope.cpus.clone(),
        pin: false,
        across: false,
        series: application.name,
        x: n.into(),
        gives: Gives::Time(application.name),
    };
    let mut runs = Vec::new();
    for application in &APPLICATIONS {
        for n in scope.ranks_or(RANKS) {
            runs.extend(
                scope.mpis().filter(|system| system.abi == Abi::OpenMpi).map(|system| run(application, n, system)),
            );
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn every_program_has_a_figure_a_bar_and_its_input() {
        let figures: Vec<&str> = EXPERIMENT.figures.iter().map(|figure| figure.name).collect();
        let names: Vec<&str> = APPLICATIONS.iter().map(|application| application.name).collect();
        let bars: Vec<&str> = EXPERIMENT.bars.iter().map(|bar| bar.figure).collect();
        assert_eq!((&figures, &bars), (&names, &names));
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: Some(vec![4]) };
        let runs = runs(&scope);
        assert_eq!(runs.len(), 2 * APPLICATIONS.len(), "of the two that have the ABI");
        for word in runs.iter().flat_map(|run| &run.arguments).filter(|word| word.contains("tests/data")) {
            assert!(std::path::Path::new(word).is_file(), "{word}");
        }
    }
}
