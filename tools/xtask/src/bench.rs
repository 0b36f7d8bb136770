//! Ring, barrier and allreduce beside the peers and the floor, interleaved: vmpi, Open MPI, vmpi, MPICH, floor, again and again.
//!
//! The same binary runs under vmpi and under the MPI that it was built with. A figure that could not be had (a peer that
//! fails or takes too long) stays empty; it never ends the series.

use crate::Result;
use crate::build;
use crate::place::{release, target, top};
use crate::shell::{command, create_dir, output, write};
use crate::statistics::{median, median_ratio, percentile};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who runs the program: name, what the binary is built with.
const SYSTEMS: &[(&str, &str)] = &[
    ("vmpi (openmpi binary)", "openmpi"),
    ("Open MPI, yield", "openmpi"),
    ("vmpi (mpich binary)", "mpich"),
    ("MPICH", "mpich"),
];

/// Samples in microseconds by (what, ranks, system).
type Samples = BTreeMap<(String, u32, String), Vec<f64>>;

pub fn bench(rounds: usize, ranks: &[u32]) -> Result<()> {
    build::build()?;
    let dir = target().join("bench");
    create_dir(&dir)?;
    let floor = compile("cc", "floor.c", &dir)?;
    let binaries: BTreeMap<&str, PathBuf> = ["openmpi", "mpich"]
        .into_iter()
        .map(|mpi| Ok((mpi, compile(&format!("mpicc.{mpi}"), "bench.c", &dir)?)))
        .collect::<Result<_>>()?;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut samples = Samples::new();
    for round in 0..rounds {
        for &n in ranks {
            eprintln!("round {} of {rounds}, {n} ranks", round + 1);
            for (system, mpi) in SYSTEMS {
                collect(&mut samples, n, system, launcher(system, n).arg(&binaries[mpi]));
            }
        }
        collect(&mut samples, 2, "floor", &mut command(&floor));
    }
    let table = table(&samples, ranks);
    let document = json!({
        "schema_version": 1,
        "unit": "us",
        "rounds": rounds,
        "load_average_before": load.trim(),
        "cpus": std::thread::available_parallelism().map_or(0, |n| n.get()),
        "rows": rows(&samples),
    });
    write(&dir.join("bench.json"), &format!("{document:#}\n"))?;
    write(&dir.join("bench.md"), &table)?;
    println!("{table}\nload average before: {}\nwritten to {}/bench.json and bench.md", load.trim(), dir.display());
    Ok(())
}

fn compile(compiler: &str, source: &str, dir: &Path) -> Result<PathBuf> {
    let binary = dir.join(format!("{source}.{compiler}"));
    let source = top().join("tests/programs").join(source);
    output(command(compiler).args(["-O2", "-o"]).arg(&binary).arg(source))?;
    Ok(binary)
}

fn launcher(system: &str, n: u32) -> Command {
    let timeout = |program: &str| {
        let mut timeout = command("timeout");
        timeout.args(["90", program]);
        timeout
    };
    let mut launcher = match system {
        "MPICH" => timeout("mpiexec.mpich"),
        "Open MPI, yield" => {
            let mut launcher = timeout("mpiexec.openmpi");
            launcher.args(["--oversubscribe", "--bind-to", "none"]).env("OMPI_MCA_mpi_yield_when_idle", "1");
            launcher.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            launcher
        }
        _ => {
            let mut launcher = timeout(&release().join("vmpirun").to_string_lossy());
            launcher.args(["-V", &n.div_ceil(2).to_string()]);
            launcher
        }
    };
    launcher.args(["-n", &n.to_string()]);
    launcher
}

/// Lines `WHAT MICROSECONDS` of one run.
fn collect(samples: &mut Samples, n: u32, system: &str, run: &mut Command) {
    match output(run) {
        Ok(text) => {
            for line in text.lines() {
                if let Some((what, us)) = line.rsplit_once(' ')
                    && let Ok(us) = us.parse()
                {
                    samples.entry((what.into(), n, system.into())).or_default().push(us);
                }
            }
        }
        Err(e) => eprintln!("{system}, {n} ranks: {e}"),
    }
}

/// Samples of the run of the same binary under vmpi.
fn base<'a>(samples: &'a Samples, what: &str, n: u32, system: &str) -> Option<&'a Vec<f64>> {
    let mpi = SYSTEMS.iter().find(|(name, _)| *name == system)?.1;
    let (ours, _) = SYSTEMS.iter().find(|(name, built)| *built == mpi && name.starts_with("vmpi"))?;
    samples.get(&(what.into(), n, ours.to_string()))
}

fn rows(samples: &Samples) -> Vec<Value> {
    let row = |((what, n, system), all): (&(String, u32, String), &Vec<f64>)| {
        let ratio = base(samples, what, *n, system).map(|base| median_ratio(all, base));
        json!({
            "what": what, "ranks": n, "system": system, "samples_us": all,
            "median_us": median(all), "p5_us": percentile(all, 5.0), "p95_us": percentile(all, 95.0),
            "ratio_to_vmpi": ratio,
        })
    };
    samples.iter().map(row).collect()
}

/// One line per measurement and count of ranks; a cell is `median (p5-p95)`, and for peers the ratio to vmpi.
fn table(samples: &Samples, ranks: &[u32]) -> String {
    let mut text = String::from("us | n |");
    for (system, _) in SYSTEMS {
        text += &format!(" {system} |");
    }
    text += "\n--- | --- |";
    text += &" --- |".repeat(SYSTEMS.len());
    text += "\n";
    for what in ["ring hop 8 B", "barrier", "allreduce 8 B"] {
        for &n in ranks {
            text += &format!("{what} | {n} |");
            for (system, _) in SYSTEMS {
                let Some(all) = samples.get(&(what.to_string(), n, system.to_string())) else {
                    text += " - |";
                    continue;
                };
                text += &format!(" {:.2} ({:.2}-{:.2})", median(all), percentile(all, 5.0), percentile(all, 95.0));
                if let Some(base) = base(samples, what, n, system).filter(|_| !system.starts_with("vmpi")) {
                    text += &format!(", {:.1} x vmpi", median_ratio(all, base));
                }
                text += " |";
            }
            text += "\n";
        }
    }
    for ((what, _, _), all) in samples.iter().filter(|((_, _, system), _)| system == "floor") {
        text += &format!(
            "floor: {what}: {:.2} us ({:.2}-{:.2})\n",
            median(all),
            percentile(all, 5.0),
            percentile(all, 95.0)
        );
    }
    text
}
