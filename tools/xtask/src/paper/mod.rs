//! `cargo xtask paper`: the tables and figures of the EuroMPI'20 paper on MPI virtualization, measured here.
//!
//! Table 1 (its listing 1), table 2 (conjugate gradients in the manner of HPCCG), figures 3 and 4 (the cost of the clocks), figures 5 and 7
//! (overlap); those of a paper on blocking calls that overlap (`blocking`), and of one on simulation (`virtual_time`).

mod blocking;
mod overlap;
mod virtual_time;

use crate::Result;
use crate::bench::experiment::{EXPERIMENTS, words};
use crate::bench::picture;
use crate::bench::process::Outcome;
use crate::bench::programs::Program;
use crate::bench::report::{Circumstances, Report, aligned, short, wrapped};
use crate::bench::samples::{Key, Line, Rounds, Samples, parse};
use crate::bench::system::{Launch, SYSTEMS, System};
use crate::bench::{Bench, circumstances, load};
use crate::shell::{create_dir, write};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A part of the paper, measured by itself; what the others measured before stays.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum Part {
    Table1,
    Table2,
    Figures,
    Overlap,
    OverlapBlocking,
    VirtualTime,
}

pub struct Options {
    /// None: all.
    pub parts: Vec<Part>,
    pub rounds: usize,
    /// What each process of table 1 computes.
    pub seconds: f64,
    /// Where the text and the pictures go.
    pub into: PathBuf,
    pub limit: Duration,
    /// Take vmpi as it was built before.
    pub built: bool,
    /// A part of `overlap-blocking`, and of `virtual-time`.
    pub brief: bool,
}

/// A column of a table: who runs, on how many cores, with how many ranks.
struct Case {
    name: &'static str,
    system: &'static str,
    ranks: u32,
    cores: usize,
    flags: &'static [&'static str],
}

const RANK_CLOCK: &[&str] = &["--wtime", "rank"];

/// Table 1: two processes. MPIX_Rtime comes from the same runs as vmpi's MPI_Wtime.
const TWO: &[Case] = &[
    Case { name: "Open MPI", system: "openmpi4-yield", ranks: 2, cores: 2, flags: &[] },
    Case { name: "Open MPI", system: "openmpi4-yield", ranks: 2, cores: 1, flags: &[] },
    Case { name: "vmpi", system: "vmpi-openmpi", ranks: 2, cores: 1, flags: &[] },
    Case { name: "vmpi --wtime rank", system: "vmpi-openmpi", ranks: 2, cores: 1, flags: RANK_CLOCK },
];

/// Table 2: all ranks on one core.
const GRADIENTS: &[Case] = &[
    Case { name: "Open MPI, V=1", system: "openmpi4-yield", ranks: 1, cores: 1, flags: &[] },
    Case { name: "Open MPI, V=4", system: "openmpi4-yield", ranks: 4, cores: 1, flags: &[] },
    Case { name: "vmpi, V=1", system: "vmpi-openmpi", ranks: 1, cores: 1, flags: &[] },
    Case { name: "vmpi, V=2", system: "vmpi-openmpi", ranks: 2, cores: 1, flags: &[] },
    Case { name: "vmpi, V=3", system: "vmpi-openmpi", ranks: 3, cores: 1, flags: &[] },
    Case { name: "vmpi, V=4", system: "vmpi-openmpi", ranks: 4, cores: 1, flags: &[] },
    Case { name: "vmpi --wtime rank, V=2", system: "vmpi-openmpi", ranks: 2, cores: 1, flags: RANK_CLOCK },
    Case { name: "vmpi --wtime rank, V=3", system: "vmpi-openmpi", ranks: 3, cores: 1, flags: RANK_CLOCK },
    Case { name: "vmpi --wtime rank, V=4", system: "vmpi-openmpi", ranks: 4, cores: 1, flags: RANK_CLOCK },
];

/// Points of a rank's brick, and iterations: what HPCCG takes, in the size of this machine.
const BRICK: [u32; 4] = [32, 32, 32, 149];

/// Rows of table 2: what cg prints, as the table calls it.
const ROWS: &[(&str, &str)] = &[
    ("total_time", "total time, s"),
    ("ddot_time", "DDOT time, s"),
    ("spmv_time", "sparse product, s"),
    ("waxpby_time", "WAXPBY time, s"),
    ("exchange_time", "halo exchange, s"),
    ("total_mflops", "total MFLOP/s"),
    ("ddot_mflops", "DDOT MFLOP/s"),
    ("outside", "the job from outside, s"),
];

const HEAD: &str = "# The paper's tables and figures, with vmpi

Nigay, Mosimann, Schneider, Hoefler: *Communication and Timing Issues with MPI Virtualization* (EuroMPI/USA '20)
shows what becomes of time measurements when several MPI processes share a core, and gives the clocks that measure
right. This is the same with vmpi, whose ranks are processes of the operating system, beside Open MPI.
`cargo xtask paper --into docs` writes this file; the values are in paper/*.json.
";

/// What the paper says, beside which ours are put.
const PAPER_1: &str = "| MPI | processes / cores | process 0 | process 1 | total |\n| --- | --- | --- | --- | --- |\n\
    | Open MPI | 2 / 2 | 30 | 30 | 30 |\n| AMPI, MPC-MPI, TinyMPI: MPI_Wtime | 2 / 1 | 60 | 30 | 60 |\n\
    | TinyMPI: MPIX_Rtime | 2 / 1 | 30 | 30 | 60 |\n";
const PAPER_2: &str = "| four processes on a core | MPC-MPI, MPI_Wtime | TinyMPI, MPI_Wtime | TinyMPI, MPIX_Rtime |\n| --- | --- | --- | --- |\n\
    | total time, s | 11.1 | 10.9 | 2.85 |\n| DDOT time, s | 3.8 | 4.9 | 0.16 |\n| total MFLOP/s | 1755 | 1792 | 6846 |\n\
    | DDOT MFLOP/s | 319 | 245 | 7513 |\n";

impl Part {
    const ALL: &[Part] =
        &[Part::Table1, Part::Table2, Part::Figures, Part::Overlap, Part::OverlapBlocking, Part::VirtualTime];

    fn name(self) -> &'static str {
        match self {
            Part::Table1 => "table1",
            Part::Table2 => "table2",
            Part::Figures => "figures",
            Part::Overlap => "overlap",
            Part::OverlapBlocking => "overlap-blocking",
            Part::VirtualTime => "virtual-time",
        }
    }
}

/// What a part has found.
struct Found {
    text: String,
    json: Value,
    /// What must not be: vmpi's own failures, results that differ.
    wrong: Vec<String>,
}

pub fn paper(options: &Options) -> Result<()> {
    let mut bench = Bench::prepare("vmpi-openmpi,openmpi4-yield", None, options.limit, options.built)?;
    let dir = options.into.join("paper");
    create_dir(&dir)?;
    let mut wrong = Vec::new();
    for part in if options.parts.is_empty() { Part::ALL } else { &options.parts } {
        let found = match part {
            Part::Table1 => cases(&mut bench, options, TWO, table_1, |samples| first_table(samples, options.seconds))?,
            Part::Table2 => cases(&mut bench, options, GRADIENTS, table_2, second_table)?,
            Part::Figures => figures(&mut bench, options.rounds, &dir)?,
            Part::Overlap => overlap::overlap(&mut bench, options, &dir)?,
            Part::OverlapBlocking => blocking::blocking(&mut bench, options)?,
            Part::VirtualTime => virtual_time::virtual_time(&mut bench, options)?,
        };
        write(&dir.join(format!("{}.md", part.name())), &found.text)?;
        write(&dir.join(format!("{}.json", part.name())), &format!("{:#}\n", found.json))?;
        wrong.extend(found.wrong);
    }
    // Whole, from all the parts that there are; their pictures lie beside them.
    let read = |part: &Part| std::fs::read_to_string(dir.join(format!("{}.md", part.name()))).unwrap_or_default();
    let text = HEAD.to_string() + &Part::ALL.iter().map(read).collect::<String>().replace("](figure", "](paper/figure");
    write(&options.into.join("paper.md"), &text)?;
    println!("{text}\nwritten to {0}/paper.md and {0}/paper/", options.into.display());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Runs a case once and keeps what it gives.
type Collect = fn(&mut Bench, &mut Samples, usize, &Case, &Options) -> Result<()>;

/// All rounds of a table.
fn cases(
    bench: &mut Bench,
    options: &Options,
    cases: &[Case],
    collect: Collect,
    table: impl Fn(&Samples) -> String,
) -> Result<Found> {
    let load_before = load();
    let mut samples = Samples::default();
    for round in 0..options.rounds {
        eprintln!("round {} of {}, {} cases, load {}", round + 1, options.rounds, cases.len(), load());
        for case in cases {
            collect(bench, &mut samples, round, case, options)?;
        }
    }
    let at = circumstances(options.rounds, load_before);
    let mut text = table(&samples) + &moment(&at, bench);
    samples.missing.iter().for_each(|(what, why)| text += &format!("\nNot had: {what}: {why}\n"));
    let row = |(key, rounds): (&Key, &Rounds)| json!({ "what": key.figure, "at": key.x, "case": key.system, "samples": rounds.values().collect::<Vec<_>>() });
    let json = json!({
        "schema_version": 1, "rounds": at.rounds, "commit": at.commit, "cpu": at.cpu, "kernel": at.kernel,
        "load_average_before": at.load_before, "load_average_after": at.load_after,
        "rows": samples.iter().map(row).collect::<Vec<_>>(), "missing": samples.missing,
    });
    Ok(Found { text, json, wrong: [samples.disagreements(), samples.failures].concat() })
}

fn system(name: &str) -> Result<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name).ok_or(format!("there is no system {name}"))
}

/// Run a case; its lines and its wall time, or None after having noted why not.
fn run(
    bench: &mut Bench,
    samples: &mut Samples,
    case: &Case,
    program: Program,
    arguments: &[String],
) -> Result<Option<(Vec<String>, f64)>> {
    let system = system(case.system)?;
    let binary = bench.programs.get(program, system.abi)?;
    let cpus = bench.scope.cpus.get(..case.cores).ok_or("there are not enough CPUs")?.to_vec();
    let launch = Launch { ranks: case.ranks, cpus: &cpus, pin: true, flags: case.flags };
    let finished = bench.execute(system, &launch, &binary, arguments, None)?;
    let why = match finished.outcome {
        Outcome::Done => return Ok(Some((finished.lines, finished.wall_s))),
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Failed(how) => how,
        Outcome::TooLong => "took too long".into(),
    };
    let what = format!("{}, {} ranks on {} cores", case.name, case.ranks, case.cores);
    if case.system.starts_with("vmpi") {
        samples.failures.push(format!("{what}: {why}"));
    }
    samples.missing.insert(what, why);
    Ok(None)
}

fn table_1(bench: &mut Bench, samples: &mut Samples, round: usize, case: &Case, options: &Options) -> Result<()> {
    let arguments = words(["busy".to_string(), format!("{:.0}", options.seconds * 1e3), "--raw".into()]);
    let Some((lines, wall_s)) = run(bench, samples, case, Program::C("listing1"), &arguments)? else { return Ok(()) };
    let cores = case.cores as u64;
    for (rank, wtime, rtime) in lines.iter().filter_map(|line| listing_1(line)) {
        samples.add(round, &format!("process {rank}"), cores, case.name, wtime);
        if let Some(rtime) = rtime
            && case.flags.is_empty()
        {
            samples.add(round, &format!("process {rank}"), cores, "vmpi, MPIX_Rtime", rtime);
        }
    }
    samples.add(round, "total", cores, case.name, wall_s);
    Ok(())
}

/// A line `[RANK] wtime SECONDS rtime SECONDS` of listing1; no second time where the library has no MPIX_Rtime.
fn listing_1(line: &str) -> Option<(u32, f64, Option<f64>)> {
    let (rank, rest) = line.strip_prefix('[')?.split_once("] wtime ")?;
    let (wtime, rest) = rest.split_once(" rtime ")?;
    Some((rank.parse().ok()?, wtime.parse().ok()?, rest.parse().ok()))
}

fn table_2(bench: &mut Bench, samples: &mut Samples, round: usize, case: &Case, _: &Options) -> Result<()> {
    let Some((lines, wall_s)) = run(bench, samples, case, Program::C("bench/cg"), &words(BRICK))? else {
        return Ok(());
    };
    for line in &lines {
        match parse(line) {
            Some(Line::Measured { figure, x, value, .. }) => samples.add(round, figure, x, case.name, value),
            Some(Line::Fact { name, value }) => samples.add_fact(name, value, case.name),
            None => {}
        }
    }
    samples.add(round, "outside", case.ranks.into(), case.name, wall_s);
    Ok(())
}

/// Where and when a part was measured.
fn moment(at: &Circumstances, bench: &Bench) -> String {
    format!(
        "\n{}, CPUs {}, Linux {}, vmpi {}; medians of {} rounds, all cases one after the other in each; load average before {}, after {}.\n",
        at.cpu,
        crate::bench::system::list(&bench.scope.cpus),
        at.kernel,
        at.commit,
        at.rounds,
        at.load_before,
        at.load_after
    )
}

fn first_table(samples: &Samples, seconds: f64) -> String {
    let value = |figure: &str, cores, name: &str| {
        samples.summary(figure, cores, name).map_or("-".to_string(), |summary| format!("{:.2}", summary.median))
    };
    let mut table =
        vec![["MPI", "clock", "processes / cores", "process 0", "process 1", "total"].map(String::from).to_vec()];
    let mut add = |name: &str, clock: &str, cores: u64, of: &str, total: &str| {
        let row = [
            name,
            clock,
            &format!("2 / {cores}"),
            &value("process 0", cores, of),
            &value("process 1", cores, of),
            &value("total", cores, total),
        ];
        table.push(row.map(String::from).to_vec());
    };
    add("Open MPI", "MPI_Wtime", 2, "Open MPI", "Open MPI");
    add("Open MPI", "MPI_Wtime", 1, "Open MPI", "Open MPI");
    add("vmpi", "MPI_Wtime", 1, "vmpi", "vmpi");
    add("vmpi", "MPIX_Rtime", 1, "vmpi, MPIX_Rtime", "vmpi");
    add("vmpi --wtime rank", "MPI_Wtime", 1, "vmpi --wtime rank", "vmpi --wtime rank");
    let about = format!(
        "Listing 1 (`tests/programs/listing1.c`, one binary for all rows): each process computes for {seconds} s of CPU time and meets the \
         other in a barrier; the program prints the time that has passed for it. The total is taken from outside, with the launch."
    );
    let reading = "By `MPI_Wtime` one of vmpi's two processes is told what both have computed: it waits in the barrier for the other's turn on \
        the core. `MPIX_Rtime` counts what the process itself has had; with `--wtime rank`, so does `MPI_Wtime` of the unchanged binary. Open \
        MPI on one core is time-shared by the kernel: both processes are told the whole.";
    format!(
        "\n## Table 1: what a program that times itself is told\n\n{}\n\n{}\nIn the paper, with 30 s of sleep in the place of the \
         computation:\n\n{PAPER_1}\n{}\n",
        wrapped(&about),
        aligned(&table),
        wrapped(reading)
    )
}

fn second_table(samples: &Samples) -> String {
    let mut table = vec![vec!["one core".to_string()]];
    table[0].extend(GRADIENTS.iter().map(|case| case.name.to_string()));
    for (figure, name) in ROWS {
        let mut row = vec![name.to_string()];
        let cell =
            |case: &Case| samples.summary(figure, case.ranks.into(), case.name).map_or("-".into(), |s| short(s.median));
        row.extend(GRADIENTS.iter().map(cell));
        table.push(row);
    }
    let [nx, ny, nz, iterations] = BRICK;
    let about = format!(
        "Conjugate gradients in the manner of the Mantevo suite's HPCCG, written anew (`tests/programs/bench/cg.c`, one binary for all \
         columns): each rank has a brick of {nx} x {ny} x {nz} points with the 27-point matrix, {iterations} iterations; rank 0 reports its \
         times by `MPI_Wtime` and divides its own operations by them. All ranks share one core, so more ranks are more work."
    );
    let reading = "A rank's work does not depend on V, and one rank alone (V=1) shows what it takes. By wall-clock time rank 0 seems slower by \
        about V, and its DDOT by far more, because MPI_Allreduce waits there for the others' turns on the core. By the rank's own time \
        the figures are near those of V=1 again.";
    format!(
        "\n## Table 2: what a benchmark reports of itself\n\n{}\n\n{}\nIn the paper:\n\n{PAPER_2}\n{}\n",
        wrapped(&about),
        aligned(&table),
        wrapped(reading)
    )
}

fn figures(bench: &mut Bench, rounds: usize, dir: &Path) -> Result<Found> {
    let clocks =
        EXPERIMENTS.iter().find(|experiment| experiment.name == "clocks").ok_or("there is no experiment clocks")?;
    let (samples, at) = bench.measure(clocks, rounds)?;
    let report = Report { experiment: clocks, samples: &samples, scope: &bench.scope, circumstances: &at };
    let mut text = format!(
        "\n## Figures 3 and 4: what the clocks cost at each change of who runs\n\n{}\n\n{}\n",
        wrapped(clocks.about),
        wrapped(
            "The paper (C++, 2.2 GHz Xeon E5-2660V2): process-POV P99 below 100 ns on suspend and 150 ns on resume; core-POV P99 170 ns and \
             below 150 ns. vmpi's functions do more than the paper's clocks: the accounts of core, idle time and hand-offs are kept in the \
             same step."
        )
    );
    let parts =
        [("figure3", "Figure 3: process-POV clock", "process"), ("figure4", "Figure 4: core-POV clock", "core")];
    for (file, head, prefix) in parts {
        let shown: Vec<_> = clocks.figures.iter().filter(|figure| figure.name.starts_with(prefix)).collect();
        if shown.iter().any(|figure| !samples.places(figure.name).is_empty()) {
            picture::draw_figures(&report, &shown, head, &dir.join(format!("{file}.svg")))?;
            text += &format!("\n![{head}]({file}.svg)\n");
        }
    }
    let mut table = vec![["ns", "", "P50", "P99", "P99.9"].map(String::from).to_vec()];
    for figure in clocks.figures {
        for kind in report.columns(figure.name) {
            let at = |x| samples.summary(figure.name, x, &kind).map_or("-".into(), |s| short(s.median));
            table.push(vec![figure.title.into(), kind.clone(), at(500), at(990), at(999)]);
        }
    }
    text += &format!("\n{}{}", aligned(&table), moment(&at, bench));
    Ok(Found { text, json: report.json(), wrong: samples.failures.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_listing_1() {
        assert_eq!(listing_1("[1] wtime 4.011 rtime 2.004"), Some((1, 4.011, Some(2.004))));
        assert_eq!(listing_1("[0] wtime 2.001 rtime 0.000 (the library has no MPIX_Rtime)"), Some((0, 2.001, None)));
        assert_eq!(listing_1("[0] busy 2.0 s"), None);
        assert_eq!(listing_1("wtime 1 rtime 2"), None);
    }

    #[test]
    fn tables_say_where_there_is_nothing() {
        let mut samples = Samples::default();
        samples.add(0, "process 0", 1, "vmpi", 4.0);
        samples.add(0, "ddot_time", 4, "vmpi, V=4", 0.25);
        let (first, second) = (first_table(&samples, 2.0), second_table(&samples));
        assert!(first.contains("| 4.00 ") && first.contains("| -"), "{first}");
        assert!(second.contains("0.250"), "{second}");
    }

    #[test]
    fn every_case_names_a_system() {
        assert!(TWO.iter().chain(GRADIENTS).all(|case| system(case.system).is_ok() && case.cores > 0));
    }
}
