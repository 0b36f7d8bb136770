//! muπ: barriers of many ranks in virtual time. What the virtual barrier saves, and what a simulation costs by ranks and network.

use super::{Found, Options, moment};
use crate::Result;
use crate::bench::experiment::words;
use crate::bench::process::{Finished, Outcome};
use crate::bench::programs::Program;
use crate::bench::report::{aligned, short, wrapped};
use crate::bench::samples::{Key, Rounds, Samples};
use crate::bench::system::Launch;
use crate::bench::{Bench, circumstances, load};
use serde_json::{Value, json};

/// Ranks on the one core of figure 1.
const RANKS: &[u32] = &[16, 32, 64, 128, 256, 512, 1024];
const BRIEF_RANKS: &[u32] = &[16, 64];
/// Of figure 2, on two cores.
const SIZES: &[u32] = &[16, 64, 256, 1024, 2048];
const BRIEF_SIZES: &[u32] = &[16, 64];
/// And how many cores they have at most.
const NETWORKS: &[(&str, u32)] = &[("fat-tree", 65_536), ("ethernet", 1024)];

/// Barriers of a run: fewer of more ranks, so that each run takes some seconds at most. And of the run that says what starting takes.
fn barriers(ranks: u32) -> u32 {
    (20_000 / ranks).clamp(20, 500)
}
const FEW: u32 = 1;

/// How barriers are done: as `--collectives` calls it, and as the tables do.
const MANNERS: [(&str, &str); 2] = [("messages", "butterfly"), ("engine", "virtual barrier")];

/// A simulation to run.
struct Simulated<'a> {
    ranks: u32,
    cores: usize,
    network: &'a str,
    manner: &'a str,
    barriers: u32,
}

/// What one has come to.
struct Cost {
    cpu_s: f64,
    wall_s: f64,
    predicted_s: f64,
    rounds: f64,
}

pub fn virtual_time(bench: &mut Bench, options: &Options) -> Result<Found> {
    let load_before = load();
    let mut samples = Samples::default();
    let (ranks, sizes) = if options.brief { (BRIEF_RANKS, BRIEF_SIZES) } else { (RANKS, SIZES) };
    for round in 0..options.rounds {
        eprintln!("virtual time: round {} of {}, load {}", round + 1, options.rounds, load());
        for ranks in ranks {
            for (manner, _) in MANNERS {
                let of = |barriers| Simulated { ranks: *ranks, cores: 1, network: NETWORKS[0].0, manner, barriers };
                measure(bench, &mut samples, round, &of, &format!("core {manner}"))?;
            }
        }
        for ranks in sizes {
            for (network, _) in NETWORKS.iter().filter(|(_, cores)| ranks <= cores) {
                let of = |barriers| Simulated { ranks: *ranks, cores: 2, network, manner: "engine", barriers };
                measure(bench, &mut samples, round, &of, network)?;
            }
        }
    }
    let at = circumstances(options.rounds, load_before);
    let mut text = head();
    text += &format!("\n### Figure 1: a barrier of ranks on one core\n\n{}", aligned(&figure_1(&samples, ranks)));
    text += &format!("\n{}\n", wrapped(READING_1));
    text += &format!("\n### Figure 2: time to simulate, on two cores\n\n{}", aligned(&figure_2(&samples, sizes)));
    text += &format!("\n{}\n", wrapped(READING_2));
    samples.missing.iter().for_each(|(what, why)| text += &format!("\nNot had: {what}: {why}\n"));
    text += &moment(&at, bench);
    let row = |(key, rounds): (&Key, &Rounds)| json!({ "what": key.figure, "ranks": key.x, "case": key.system, "samples": rounds.values().collect::<Vec<_>>() });
    let json = json!({
        "schema_version": 1, "rounds": at.rounds, "commit": at.commit, "cpu": at.cpu, "kernel": at.kernel,
        "load_average_before": at.load_before, "load_average_after": at.load_after,
        "rows": samples.iter().map(row).collect::<Vec<_>>(), "missing": samples.missing,
    });
    Ok(Found { text, json, wrong: [samples.disagreements(), samples.failures].concat() })
}

const READING_1: &str = "CPU time of all processes, what starting takes left out. By messages each rank is switched in once for each of its rounds; in \
    the virtual barrier once, and virtual times are the same to the picosecond. The paper has about twice the speed.";
const READING_2: &str = "A round begins with a new lower bound on what may still happen (LBTS), and goes through the events before it: whoever joins a \
    barrier goes on with all who have joined, and the last one, who holds up nobody any more, goes through most of it. So rounds hardly grow with \
    ranks; what grows is switching ranks in. A barrier without a time was lost in what starting takes from run to run.";

fn head() -> String {
    let about = "Perumalla, Park: *Improving Multi-Million Virtual Rank MPI Execution in muπ*, with `vmpirun --simulate`. \
        `tests/programs/barriertest.c`: a millisecond of modelled work (MPIX_Compute) and a barrier, looked at by MPI_Wtime, again and again; each \
        rank a process. Each run is repeated with one barrier, which is taken off: what is left is of the others. The paper's virtual ranks are threads, its cores \
        up to 16,128 of a Cray XT5.";
    format!("\n## muπ: many ranks in virtual time\n\n{}\n", wrapped(about))
}

/// What a barrier takes there, beyond starting.
fn measure<'a>(
    bench: &mut Bench,
    samples: &mut Samples,
    round: usize,
    of: &dyn Fn(u32) -> Simulated<'a>,
    name: &str,
) -> Result<()> {
    let all = of(FEW).ranks;
    let many = barriers(all);
    let (Some(start), Some(whole)) = (run(bench, samples, &of(FEW))?, run(bench, samples, &of(many))?) else {
        return Ok(());
    };
    let each = |whole: f64, start: f64| (whole - start) / f64::from(many - FEW);
    // On a busy machine starting may have taken longer than all of the other run.
    let mut add = |figure: &str, value: f64| {
        if value > 0.0 {
            samples.add(round, figure, all.into(), name, value);
        }
    };
    add("cpu_ms", each(whole.cpu_s, start.cpu_s) * 1e3);
    add("wall_ms", each(whole.wall_s, start.wall_s) * 1e3);
    add("start_s", start.wall_s);
    add("virtual_us", each(whole.predicted_s, start.predicted_s) * 1e6);
    add("rounds", each(whole.rounds, start.rounds));
    Ok(())
}

/// `None` after having noted why not.
fn run(bench: &mut Bench, samples: &mut Samples, what: &Simulated<'_>) -> Result<Option<Cost>> {
    let Simulated { ranks, cores, network, manner, barriers } = *what;
    let system = super::system("vmpi-openmpi")?;
    let program = bench.programs.get(Program::C("barriertest"), system.abi)?;
    let cpus = bench.scope.cpus.get(..cores).ok_or("there are not enough CPUs")?.to_vec();
    let flags = ["--simulate", network, "--compute", "none", "--collectives", manner, "--report", "--json"];
    let launch = Launch { ranks, cpus: &cpus, pin: true, flags: &flags };
    let finished = bench.execute(system, &launch, &program, &words([barriers]), None)?;
    let why = match &finished.outcome {
        Outcome::Done => match cost(&finished) {
            Some(cost) => return Ok(Some(cost)),
            None => "it said nothing of virtual time".into(),
        },
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Failed(how) => how.clone(),
        Outcome::TooLong => "took too long".into(),
    };
    let name = format!("{ranks} ranks on {cores} cores, {network}, {manner}, {barriers} barriers");
    if finished.outcome != Outcome::TooLong {
        samples.failures.push(format!("{name}: {why}"));
    }
    samples.missing.insert(name, why);
    Ok(None)
}

fn cost(finished: &Finished) -> Option<Cost> {
    let at = finished.lines.iter().position(|line| line.starts_with('{'))?;
    let document: Value = serde_json::from_str(&finished.lines[at..].join("\n")).ok()?;
    let simulation = &document["report"]["simulation"];
    Some(Cost {
        cpu_s: finished.cpu_s,
        wall_s: finished.wall_s,
        predicted_s: simulation["predicted_s"].as_f64()?,
        rounds: simulation["rounds"].as_f64()?,
    })
}

fn value(samples: &Samples, figure: &str, ranks: u32, name: &str) -> Option<f64> {
    samples.summary(figure, ranks.into(), name).map(|summary| summary.median)
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".into(), short)
}

fn figure_1(samples: &Samples, ranks: &[u32]) -> Vec<Vec<String>> {
    let names = MANNERS.map(|(manner, _)| format!("core {manner}"));
    let mut table = vec![
        ["ranks", "butterfly, CPU ms", "virtual barrier, CPU ms", "speed-up", "in virtual time, us"]
            .map(String::from)
            .to_vec(),
    ];
    for ranks in ranks {
        let [butterfly, played] = names.each_ref().map(|name| value(samples, "cpu_ms", *ranks, name));
        let gained = butterfly.zip(played).map(|(butterfly, played)| butterfly / played);
        table.push(vec![
            ranks.to_string(),
            cell(butterfly),
            cell(played),
            gained.map_or("-".into(), |gained| format!("{gained:.2}")),
            cell(value(samples, "virtual_us", *ranks, &names[1])),
        ]);
    }
    table
}

fn figure_2(samples: &Samples, ranks: &[u32]) -> Vec<Vec<String>> {
    let mut table = vec![vec!["ranks".to_string()]];
    for (network, _) in NETWORKS {
        let of = ["start, s", "a barrier, ms", "CPU ms", "LBTS rounds", "in virtual time, us"];
        table[0].extend(of.map(|what| format!("{network}: {what}")));
    }
    for ranks in ranks {
        let mut row = vec![ranks.to_string()];
        for (network, _) in NETWORKS {
            let figures = ["start_s", "wall_ms", "cpu_ms", "rounds", "virtual_us"];
            row.extend(figures.map(|figure| cell(value(samples, figure, *ranks, network))));
        }
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_up_is_of_what_was_and_what_is_missing_is_said() {
        let mut samples = Samples::default();
        samples.add(0, "cpu_ms", 64, "core messages", 3.0);
        samples.add(0, "cpu_ms", 64, "core engine", 1.2);
        let table = figure_1(&samples, RANKS);
        assert_eq!((table[3][0].as_str(), table[3][3].as_str()), ("64", "2.50"));
        assert_eq!(table[1][3], "-");
        assert!(figure_2(&samples, SIZES).iter().all(|row| row.len() == 1 + 5 * NETWORKS.len()));
    }

    #[test]
    fn runs_are_long_enough_to_be_told_from_starting() {
        assert!(RANKS.iter().chain(SIZES).all(|ranks| (20..=500).contains(&barriers(*ranks))));
    }
}
