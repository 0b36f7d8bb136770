//! `cargo xtask bench`: vmpi, the other MPIs and the physical floor, interleaved: each round runs them all, one after the other, who after whom by chance.
//!
//! Reading order: [`system`] (who is measured), [`experiment`] (what: the table; each experiment is a module), [`process`]
//! (one run: deadline, ^C, CPU time), [`samples`] (values by round), [`report`] (tables, bars, JSON), [`picture`].
//! A figure that could not be had, because a peer fails or takes too long, stays empty and is said; it never ends the
//! series. No time is a pass or a fail; but what must be the same in all runs (a checksum) is, and that vmpi's own runs
//! come to their end.

mod applications;
mod balance;
pub mod cable;
mod clocks;
mod collectives;
pub mod experiment;
mod hybrids;
mod idle;
mod jobs;
mod latency;
mod launch;
mod nodes;
pub mod picture;
mod pingpong;
mod policies;
mod polling;
pub mod process;
pub mod programs;
mod reductions;
pub mod report;
pub mod samples;
mod simulate;
mod stencil;
pub mod system;

use crate::Result;
use crate::build;
use crate::place::target;
use crate::setup;
use crate::shell::{command, create_dir, output, write};
use cable::Cable;
use experiment::{EXPERIMENTS, Experiment, Gives, Run, Scope};
use process::{Finished, Outcome, Series};
use programs::{Program, Programs};
use report::{Circumstances, Report};
use samples::{Line, Samples, parse};
use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::{Abi, Kind, Launch};

/// What the command line asks for.
pub struct Options {
    /// Names; none: all experiments.
    pub experiments: Vec<String>,
    pub rounds: usize,
    pub ranks: Option<Vec<u32>>,
    pub peers: String,
    /// Longest time of one run.
    pub limit: Duration,
    /// Take vmpi as it was built before.
    pub built: bool,
    /// Length of a batch of messages; None: by the number of rounds.
    pub batch_ms: Option<u32>,
}

/// Length of a batch of messages, and of a trial's.
const BATCH_MS: (u32, u32) = (50, 10);

/// The cores that experiments use.
const CORES: usize = 2;

pub fn bench(options: &Options) -> Result<()> {
    let experiments = chosen(&options.experiments)?;
    if experiments.iter().any(|experiment| experiment.name == simulate::EXPERIMENT.name) {
        setup::simgrid()?;
    }
    let mut bench = Bench::prepare(&options.peers, options.ranks.clone(), options.limit, options.built)?;
    bench.batch_ms = options.batch_ms;
    let dir = target().join("bench");
    create_dir(&dir)?;
    let mut wrong = Vec::new();
    for experiment in experiments {
        let (samples, circumstances) = bench.measure(experiment, options.rounds)?;
        let report = Report { experiment, samples: &samples, scope: &bench.scope, circumstances: &circumstances };
        let at = |ending: &str| dir.join(format!("{}.{ending}", experiment.name));
        let text = report.markdown();
        println!("{text}");
        write(&at("md"), &text)?;
        write(&at("json"), &format!("{:#}\n", report.json()))?;
        picture::draw(&report, &at("svg"))?;
        println!("written to {0}.json, .md and .svg\n", dir.join(experiment.name).display());
        wrong.extend(samples.disagreements());
        wrong.extend(samples.failures.iter().cloned());
        if bench.series.interrupted() {
            return Err("interrupted; what was measured until then has been written".into());
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// What the command line's help says of the experiments.
pub fn help() -> String {
    format!("{}; none: all", names())
}

fn names() -> String {
    let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.name).collect();
    names.join(", ")
}

fn chosen(wanted: &[String]) -> Result<Vec<&'static Experiment>> {
    let find = |name: &String| {
        let known = EXPERIMENTS.iter().find(|experiment| experiment.name == name.as_str());
        known.ok_or_else(|| format!("there is no experiment {name}; there are {}", names()))
    };
    if wanted.is_empty() { Ok(EXPERIMENTS.iter().collect()) } else { wanted.iter().map(find).collect() }
}

/// What all experiments of one call share.
pub struct Bench {
    pub series: Series,
    pub scope: Scope,
    pub programs: Programs,
    limit: Duration,
    batch_ms: Option<u32>,
    runtime: RuntimeDir,
    /// Laid when it is needed first.
    cable: Option<Cable>,
}

impl Bench {
    /// Build vmpi; find out which of the systems are there.
    pub fn prepare(peers: &str, ranks: Option<Vec<u32>>, limit: Duration, built: bool) -> Result<Bench> {
        let mut systems = system::choose(peers)?;
        if let Some(wrong) = ranks.iter().flatten().find(|n| **n < 2) {
            return Err(format!("--ranks: at least 2, not {wrong}"));
        }
        if !built {
            build::build()?;
        }
        if systems.iter().any(|system| system.name == "openmpi5") {
            setup::openmpi5()?;
        }
        // Only who asked for simulations is told that there is no simulator.
        systems.retain(|system| system.kind != Kind::Simulator || system.unavailable().is_none());
        systems.retain(|system| match system.unavailable() {
            Some(why) => {
                eprintln!("{} is left out: {why}", system.title);
                false
            }
            None => true,
        });
        let mut cpus = cpus()?;
        cpus.truncate(CORES);
        if cpus.len() < CORES {
            eprintln!("only one CPU may be used: everything that is meant for two cores runs on it");
        }
        let scope = Scope { systems, cpus, ranks };
        let (series, programs, runtime) = (Series::begin()?, Programs::default(), RuntimeDir::make()?);
        Ok(Bench { series, scope, programs, limit, batch_ms: None, runtime, cable: None })
    }

    /// All rounds of an experiment, or as many as there were before ^C.
    pub fn measure(&mut self, experiment: &Experiment, rounds: usize) -> Result<(Samples, Circumstances)> {
        let load_before = load();
        self.batch_ms.get_or_insert(if rounds == 1 { BATCH_MS.1 } else { BATCH_MS.0 });
        let mut samples = Samples::default();
        let mut runs = (experiment.runs)(&self.scope);
        runs.retain(|run| match run.program.absent() {
            Some(why) => {
                samples.missing.insert(run.series.into(), why);
                false
            }
            None => true,
        });
        let mut given_up = GivenUp::default();
        for round in 0..rounds {
            eprintln!("{}: round {} of {rounds}, {} runs, load {}", experiment.name, round + 1, runs.len(), load());
            for run in in_some_order(&runs) {
                if given_up.covers(run) {
                    continue;
                }
                if self.series.interrupted() {
                    break;
                }
                if let Err(why) = self.collect(&mut samples, round, run) {
                    eprintln!("{}: {}", run.title(), why.sentence);
                    given_up.note(run, why.and_larger);
                    if run.system.kind != Kind::Peer {
                        samples.failures.push(format!("{}: {}", run.title(), why.sentence));
                    }
                    samples.missing.insert(run.title(), why.sentence);
                }
            }
        }
        let even = match self.scope.mpis().find(|system| system.kind == Kind::Vmpi) {
            Some(ours) if experiment.variants.is_empty() => samples.rounds("equal", 1, ours.name).cloned(),
            _ => Some(balance::least_even(&samples)),
        };
        stencil::add_ideals(&mut samples, &even.unwrap_or_default(), self.scope.cpus.len());
        Ok((samples, circumstances(rounds, load_before)))
    }

    /// Run it, and keep what it gives. What came before a failure counts.
    fn collect(&mut self, samples: &mut Samples, round: usize, run: &Run) -> std::result::Result<(), Missing> {
        let missing = |sentence| Missing { sentence, and_larger: false };
        let abi = if run.program == Program::ClockUpdates { Abi::None } else { run.system.abi };
        let program = self.programs.get(run.program, abi).map_err(missing)?;
        let launch = Launch { ranks: run.ranks, cpus: &run.cpus, pin: run.pin, flags: run.flags() };
        let sit = if let Gives::Sitting(time) = run.gives { Some(time) } else { None };
        let finished = if let Gives::Jobs(_) = run.gives {
            let ctest = jobs::ctest(&self.runtime.0.join("jobs"), run, &program).map_err(missing)?;
            self.run(ctest, None).map_err(missing)?
        } else if run.across {
            self.execute_across(run.system, run.ranks, &[], &program, &run.arguments).map_err(missing)?
        } else {
            self.execute(run.system, &launch, &program, &run.arguments, sit).map_err(missing)?
        };
        for line in &finished.lines {
            match parse(line) {
                Some(Line::Measured { figure, x, value, system }) => {
                    samples.add(round, figure, x, system.unwrap_or(run.name()), value);
                }
                Some(Line::Fact { name, value }) => samples.add_fact(name, value, &run.title()),
                None => {}
            }
        }
        match finished.outcome {
            Outcome::Done => {}
            Outcome::Failed(how) => return Err(missing(how)),
            Outcome::TooLong => {
                let sentence = format!("took longer than {} s; left out from here on", self.limit.as_secs());
                return Err(Missing { sentence, and_larger: true });
            }
            Outcome::Interrupted => return Ok(()),
        }
        match run.gives {
            Gives::Lines => {}
            Gives::LinesAndMoves(figure) => {
                let moves = finished.lines.iter().find_map(|line| samples::moves(line));
                let moves = moves.ok_or_else(|| missing("vmpirun --json said nothing of moves".into()))?;
                samples.add(round, figure, run.x, run.name(), moves);
            }
            Gives::Times => {
                samples.add(round, "wall", run.x, run.name(), finished.wall_s);
                samples.add(round, "cpu", run.x, run.name(), finished.cpu_s);
            }
            Gives::LinesAndCpu(figure) => samples.add(round, figure, run.x, run.name(), finished.cpu_s),
            Gives::Time(figure) | Gives::Jobs(figure) => samples.add(round, figure, run.x, run.name(), finished.wall_s),
            Gives::Sitting(_) => {
                let sitting = finished.sitting.ok_or_else(|| missing("its ranks never waited".into()))?;
                samples.add(round, "waiting", run.x, run.name(), sitting.cpu_s);
                if let Some(pss) = sitting.pss_kb {
                    samples.add(round, "pss", run.x, run.name(), pss);
                }
            }
        }
        Ok(())
    }

    /// One job on two nodes under the deadline.
    pub fn execute_across(
        &mut self,
        system: &system::System,
        ranks: u32,
        flags: &[String],
        program: &Path,
        arguments: &[String],
    ) -> Result<Finished> {
        let cable = match &mut self.cable {
            Some(cable) => cable,
            none => none.insert(Cable::lay(&self.scope.cpus)?),
        };
        let job = cable.command(system, ranks, flags, program, arguments);
        self.run(job, None)
    }

    /// One job under the deadline.
    pub fn execute(
        &self,
        system: &system::System,
        launch: &Launch,
        program: &Path,
        arguments: &[String],
        sit: Option<Duration>,
    ) -> Result<Finished> {
        let job = system.command(launch, program, arguments);
        self.run(job, sit.map(|time| (time, program)))
    }

    fn run(&self, mut job: std::process::Command, sit: Option<(Duration, &Path)>) -> Result<Finished> {
        job.current_dir(self.runtime.empty()?)
            .env("VMPI_RUNTIME_DIR", &self.runtime.0)
            .env("OMP_NUM_THREADS", "1")
            .env("OPENBLAS_NUM_THREADS", "1")
            .env("BENCH_BATCH_MS", self.batch_ms.unwrap_or(BATCH_MS.0).to_string());
        self.series.run(&mut job, self.limit, sit)
    }
}

/// Why a run gave nothing, or not all.
struct Missing {
    sentence: String,
    /// Larger runs of the series would not do better.
    and_larger: bool,
}

/// What is not tried again, by series and system: the x from which on, and single ones.
#[derive(Default)]
struct GivenUp {
    from: BTreeMap<(&'static str, &'static str), u64>,
    single: Vec<(&'static str, &'static str, u64)>,
}

impl GivenUp {
    fn note(&mut self, run: &Run, and_larger: bool) {
        if and_larger {
            let from = self.from.entry((run.series, run.name())).or_insert(run.x);
            *from = run.x.min(*from);
        } else {
            self.single.push((run.series, run.name(), run.x));
        }
    }

    fn covers(&self, run: &Run) -> bool {
        self.from.get(&(run.series, run.name())).is_some_and(|from| run.x >= *from)
            || self.single.contains(&(run.series, run.name(), run.x))
    }
}

/// Where our jobs keep their sockets, apart from a daemon that the user may have, and where programs leave their files. Removed in the end.
struct RuntimeDir(PathBuf);

impl RuntimeDir {
    fn make() -> Result<RuntimeDir> {
        let path = std::env::temp_dir().join(format!("vmpi-bench-{}", std::process::id()));
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| format!("cannot create {}: {e}", path.display()))?;
        Ok(RuntimeDir(path))
    }

    /// A directory in which nothing is yet.
    fn empty(&self) -> Result<PathBuf> {
        let path = self.0.join("work");
        let _ = std::fs::remove_dir_all(&path);
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|e| format!("cannot create {}: {e}", path.display()))?;
        Ok(path)
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The CPUs that this process may use.
fn cpus() -> Result<Vec<u32>> {
    let set =
        nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).map_err(|e| format!("sched_getaffinity: {e}"))?;
    let all = 0..nix::sched::CpuSet::count();
    Ok(all.filter(|cpu| set.is_set(*cpu).unwrap_or(false)).map(|cpu| cpu as u32).collect())
}

/// Those that stand beside each other and have the same x in an order of chance. What ran after Open MPI was up to 1.4 times as slow as after others (HPL, PTRANS; why
/// is not known), and would always be the same one.
fn in_some_order(runs: &[Run]) -> Vec<&Run> {
    let beside = runs.chunk_by(|a, b| (a.x, a.series) == (b.x, b.series));
    beside
        .flat_map(|beside| {
            let mut beside: Vec<&Run> = beside.iter().collect();
            fastrand::shuffle(&mut beside);
            beside
        })
        .collect()
}

/// The machine's load average now.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

pub fn circumstances(rounds: usize, load_before: String) -> Circumstances {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let commit = output(command("git").args(["describe", "--always", "--dirty"])).unwrap_or_default();
    Circumstances {
        rounds,
        cpu: model.map_or("an unknown CPU".into(), |(_, model)| model.to_string()),
        kernel: kernel.trim().into(),
        commit: commit.trim().into(),
        load_before,
        load_after: load(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::system::SYSTEMS;

    #[test]
    fn who_runs_after_whom_changes_and_what_grows_still_does() {
        let scope = Scope { systems: system::choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let runs = (EXPERIMENTS[0].runs)(&scope);
        let names = |runs: &[&Run]| runs.iter().map(|run| (run.title(), run.x)).collect::<Vec<_>>();
        let as_listed = names(&runs.iter().collect::<Vec<_>>());
        let orders: Vec<_> = (0..10).map(|_| names(&in_some_order(&runs))).collect();
        assert!(orders.iter().any(|order| *order != as_listed), "ten times the same");
        for order in orders {
            let x = |order: &[(String, u64)]| order.iter().map(|(_, x)| *x).collect::<Vec<_>>();
            assert_eq!(x(&order), x(&as_listed));
            let sorted = |mut order: Vec<(String, u64)>| {
                order.sort();
                order
            };
            assert_eq!(sorted(order), sorted(as_listed.clone()), "each once");
        }
    }

    #[test]
    fn experiments_are_found_by_name() {
        assert_eq!(chosen(&[]).unwrap().len(), EXPERIMENTS.len());
        assert_eq!(chosen(&["idle".into()]).unwrap()[0].name, "idle");
        assert!(chosen(&["sleep".into()]).err().unwrap().contains("latency"));
    }

    #[test]
    fn what_takes_too_long_is_not_tried_with_more() {
        let run = |series, system: usize, x| Run {
            system: &SYSTEMS[system],
            variant: None,
            program: Program::C("p"),
            arguments: Vec::new(),
            ranks: 2,
            cpus: vec![0],
            pin: false,
            across: false,
            series,
            x,
            gives: Gives::Lines,
        };
        let mut given_up = GivenUp::default();
        given_up.note(&run("a", 1, 32), true);
        given_up.note(&run("a", 1, 16), true);
        given_up.note(&run("a", 2, 8), false);
        let covered = |series, system, x| given_up.covers(&run(series, system, x));
        assert!(covered("a", 1, 16) && covered("a", 1, 128) && !covered("a", 1, 8));
        assert!(covered("a", 2, 8) && !covered("a", 2, 16));
        assert!(!covered("b", 1, 32) && !covered("a", 3, 32));
    }
}
