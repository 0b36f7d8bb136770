//! Small jobs beside each other, as `ctest -j2` runs the tests of a program.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope, words};
use super::programs::Program;
use super::system::{Abi, Kind, Launch, System, list};
use crate::Result;
use crate::shell::{command, create_dir, write};
use std::path::Path;
use std::process::Command;

/// Of one and two ranks in turn.
const JOBS: u32 = 20;
/// Some 100 ms of one CPU.
const STEPS: u32 = 40;

pub const EXPERIMENT: Experiment = Experiment {
    name: "jobs",
    about: "Twenty jobs of one and two ranks in turn, two at a time (`ctest -j2`) on two CPUs, each with the same work of some tenth of a second of one CPU: from the \
            first's start to the last's end. vmpirun is told nothing but -n, and has no daemon that the jobs share; the peers do not bind their ranks, since \
            all of them would be bound to the same CPU. There is no floor.",
    variants: &[],
    x: Axis { title: "jobs", show: |n| n.to_string(), scale: Scale::Linear },
    figures: &[Figure {
        name: "jobs",
        title: "all jobs, wall time",
        unit: "s",
        scale: Scale::Linear,
        rows: None,
        picture: Picture::Bars,
    }],
    judged: &["vmpi-openmpi"],
    bars: &[Bar {
        figure: "jobs",
        from: 0,
        to: u64::MAX,
        factor: 1.0,
        reference: Reference::BestPeer,
        says: "no slower than Open MPI",
    }],
    runs,
};

fn runs(scope: &Scope) -> Vec<Run> {
    let run = |system| Run {
        system,
        variant: None,
        program: Program::C("bench/hybrid"),
        arguments: words(["work".into(), STEPS.to_string()]),
        ranks: JOBS,
        cpus: scope.cpus.clone(),
        pin: false,
        across: false,
        series: "jobs",
        x: JOBS.into(),
        gives: Gives::Jobs("jobs"),
    };
    scope.mpis().filter(|system| system.abi == Abi::OpenMpi).map(run).collect()
}

/// ctest of these jobs, whose list it makes in `dir`.
pub fn ctest(dir: &Path, run: &Run, program: &Path) -> Result<Command> {
    create_dir(dir)?;
    let mut tests = String::new();
    let mut ctest = command("ctest");
    for job in 0..run.ranks {
        let one = typed(run.system, 1 + job % 2, &run.cpus, program, &run.arguments);
        ctest.envs(one.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let all = std::iter::once(one.get_program()).chain(one.get_args());
        let all: Vec<String> = all.map(|word| format!("[==[{}]==]", word.to_string_lossy())).collect();
        tests += &format!("add_test(job{job} {})\n", all.join(" "));
    }
    write(&dir.join("CTestTestfile.cmake"), &tests)?;
    ctest.args(["-j2", "--output-on-failure", "--test-dir"]).arg(dir);
    Ok(ctest)
}

/// As its users type it.
fn typed(system: &System, ranks: u32, cpus: &[u32], program: &Path, arguments: &[String]) -> Command {
    let launch = Launch { ranks, cpus, pin: false, flags: &[] };
    let told = system.command(&launch, program, arguments);
    if system.kind != Kind::Vmpi {
        return told;
    }
    let mut plain = command("taskset");
    let vmpirun = told.get_args().nth(2).unwrap_or_default();
    plain.args(["-c", &list(cpus)]).arg(vmpirun).args(["--quiet", "-n", &ranks.to_string()]).arg(program);
    plain.args(arguments);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::choose;

    #[test]
    fn ctest_finds_twenty_jobs() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let dir = std::env::temp_dir().join(format!("vmpi-jobs-{}", std::process::id()));
        for run in &runs(&scope) {
            let command = ctest(&dir, run, Path::new("/p")).unwrap();
            let text = std::fs::read_to_string(dir.join("CTestTestfile.cmake")).unwrap();
            assert_eq!(text.matches("add_test(").count(), 20);
            let two = text.lines().nth(1).unwrap();
            assert!(two.contains("[==[-n]==] [==[2]==] [==[/p]==] [==[work]==]"), "{two}");
            assert!(!two.contains("--cores"), "{two}");
            assert!(command.get_args().any(|word| word == "-j2"));
        }
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
