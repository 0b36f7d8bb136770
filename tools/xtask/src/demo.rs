//! What vmpi is for, shown within a minute and with nothing to install: a program of this repository with one and with
//! three ranks on each core, beside the real MPIs where there are any; and LAMMPS, if it is there.

use crate::Result;
use crate::build;
use crate::place::{release, target, top};
use crate::setup;
use crate::shell::{command, create_dir, output, which};
use crate::statistics::median;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Ranks on each core, beside one.
const V: u32 = 3;
/// How often each is run, in turn.
const ROUNDS: usize = 5;
/// An MPI whose waiting ranks keep their cores takes minutes where they share them.
const LIMIT: Duration = Duration::from_secs(5);
/// Of the stencil: points on a side, steps, and how often rank 0 computes its part.
const STENCIL: [u32; 3] = [512, 300, 3];

/// What one run of the stencil took.
enum Took {
    Milliseconds(f64),
    TooLong,
}

/// An MPI that is on this machine: its name with its version, and the program built for it.
struct System {
    name: String,
    launcher: PathBuf,
    flags: &'static [&'static str],
    program: PathBuf,
    /// Of one rank, and of V ranks, on each core.
    took: [Vec<Took>; 2],
}

/// # Errors
/// What could not be built or run.
pub fn demo(steps: u32, with_lammps: bool) -> Result<()> {
    if with_lammps {
        setup::lammps()?;
    }
    build::build()?;
    let dir = target().join("demo");
    create_dir(&dir)?;
    let answers = stencil(&dir)?;
    match which("lmp") {
        Some(lammps) => self::lammps(&lammps, steps, &dir)?,
        None => println!(
            "\nThere is no LAMMPS (lmp) here: `cargo xtask demo --with-lammps` installs Debian's and shows it, too."
        ),
    }
    println!("\nTry it on a program of yours: {} -V 3 ./app", release().join("vmpirun").display());
    answers
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}

/// The table, and what vmpi did.
fn stencil(dir: &Path) -> Result<Result<()>> {
    let cores = cores();
    let mut systems = systems(dir)?;
    let mut checksums = Vec::new();
    for _ in 0..ROUNDS {
        for system in &mut systems {
            for (took, v) in system.took.iter_mut().zip([1, V]) {
                if took.iter().any(|one| matches!(one, Took::TooLong)) {
                    continue;
                }
                let mut job = command(&system.launcher);
                job.args(system.flags).args(["-n", &(v * cores).to_string()]).arg(&system.program);
                job.args(["demo", &v.to_string()]).args(STENCIL.map(|n| n.to_string()));
                // As root, and with more ranks than CPUs: otherwise Open MPI refuses.
                job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                let (one, checksum) = timed(&mut job)?;
                took.push(one);
                checksums.extend(checksum.map(|sum| (sum, format!("{} with {} ranks", system.name, v * cores))));
            }
        }
    }
    let [side, steps, load] = STENCIL;
    println!(
        "\nA stencil of {side} x {side} points, {steps} steps, on {cores} core{}; rank 0 has {load} times the work of \
         the others.\nMilliseconds, medians of {ROUNDS} runs in turn (tests/programs/bench/stencil.c):\n",
        if cores == 1 { "" } else { "s" }
    );
    println!("{:<28}{:>20}{:>20}", "", "1 rank per core", format!("{V} ranks per core"));
    for system in &systems {
        let [one, many] = system.took.each_ref().map(|took| shown(took));
        println!("{:<28}{one:>20}{many:>20}", system.name);
    }
    if systems.len() == 1 {
        println!("\nWith Open MPI or MPICH and its compiler wrapper on PATH their times would stand beside these.");
    }
    println!("\n{}", what_vmpi_did(&systems[0], cores)?);
    let differs = checksums.iter().find(|(sum, _)| *sum != checksums[0].0);
    Ok(match differs {
        Some((sum, who)) => Err(format!("{who} got {sum}, {} got {}", checksums[0].1, checksums[0].0)),
        None => Ok(()),
    })
}

/// vmpi, and each real MPI whose compiler wrapper and launcher are on PATH, with the program built for it.
fn systems(dir: &Path) -> Result<Vec<System>> {
    let source = top().join("tests/programs/bench/stencil.c");
    let built = |wrapper: &Path, name: &str| {
        let program = dir.join(format!("stencil.{name}"));
        output(command(wrapper).args(["-O2", "-o"]).arg(&program).arg(&source).arg("-lm"))?;
        Ok::<_, String>(program)
    };
    let mut systems = vec![System {
        name: "vmpi".into(),
        launcher: release().join("vmpirun"),
        flags: &["--quiet"],
        program: built(&release().join("vmpicc"), "vmpi")?,
        took: Default::default(),
    }];
    let others: [(&str, &str, &[&str]); 2] = [
        ("openmpi", "Open MPI", &["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]),
        ("mpich", "MPICH", &["-bind-to", "none"]),
    ];
    for (suffix, name, flags) in others {
        let named = |program: &str| which(&format!("{program}.{suffix}"));
        let (Some(wrapper), Some(launcher)) = (named("mpicc"), named("mpiexec")) else { continue };
        // One that is there and does not work is not this demo's affair.
        let Ok(program) = built(&wrapper, suffix) else { continue };
        let version = output(command(&launcher).arg("--version")).unwrap_or_default();
        let number = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let name = format!("{name} {}", number.unwrap_or(""));
        systems.push(System { name, launcher, flags, program, took: Default::default() });
    }
    Ok(systems)
}

/// Run it: the time that the program prints, and its checksum.
fn timed(job: &mut Command) -> Result<(Took, Option<String>)> {
    job.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = job.spawn().map_err(|e| format!("{} does not start: {e}", crate::shell::shown(job)))?;
    let begin = Instant::now();
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if begin.elapsed() > LIMIT {
            // The launcher, which ends its ranks.
            let launcher = nix::unistd::Pid::from_raw(child.id() as i32);
            let _ = nix::sys::signal::kill(launcher, nix::sys::signal::Signal::SIGTERM);
            let _ = child.wait();
            return Ok((Took::TooLong, None));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let done = child.wait_with_output().map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&done.stdout);
    let after = |mark: &str| text.lines().find_map(|line| line.strip_prefix(mark)?.split_whitespace().last());
    match after("@ demo").and_then(|word| word.parse().ok()) {
        Some(milliseconds) if done.status.success() => {
            Ok((Took::Milliseconds(milliseconds), after("= checksum").map(str::to_owned)))
        }
        _ => {
            let said = String::from_utf8_lossy(&done.stderr);
            Err(format!("{} ended with {}\n{text}{said}", crate::shell::shown(job), done.status))
        }
    }
}

fn shown(took: &[Took]) -> String {
    let times: Option<Vec<f64>> = took
        .iter()
        .map(|one| match one {
            Took::Milliseconds(time) => Some(*time),
            Took::TooLong => None,
        })
        .collect();
    times.map_or_else(|| format!("> {:.0}", LIMIT.as_millis()), |times| format!("{:.1}", median(&times)))
}

/// Two sentences, from the reports of one run with one and one with V ranks on each core.
fn what_vmpi_did(vmpi: &System, cores: u32) -> Result<String> {
    let report = |v: u32| -> Result<Cores> {
        let mut job = command(&vmpi.launcher);
        job.args(["--quiet", "--json", "-n", &(v * cores).to_string()]).arg(&vmpi.program);
        job.args(["demo", &v.to_string()]).args(STENCIL.map(|n| n.to_string()));
        Cores::of(&output(&mut job)?)
    };
    let [one, many] = [report(1)?, report(V)?];
    Ok(format!(
        "With one rank per core the cores were idle for {:.0} % of the run, because a rank that waits has nobody to \
         give its core to.\nWith {V} per core a rank that would wait handed its core to the next one, {} times in all, \
         and the cores were idle for {:.0} %.",
        one.idle_percent, many.handoffs, many.idle_percent
    ))
}

/// What a report says of the cores together.
struct Cores {
    idle_percent: f64,
    handoffs: u64,
}

impl Cores {
    /// From what `vmpirun --json` has put behind the program's output.
    fn of(text: &str) -> Result<Cores> {
        let broken = || "vmpirun --json printed no report of the cores".to_string();
        let line = text.lines().rev().find(|line| line.starts_with('{')).ok_or_else(broken)?;
        let all: Value = serde_json::from_str(line).map_err(|e| format!("what vmpirun --json printed: {e}"))?;
        let cores = all["report"]["cores"].as_array().ok_or_else(broken)?;
        let sum = |name: &str| cores.iter().filter_map(|core| core[name].as_f64()).sum::<f64>();
        let wall = sum("wall_s");
        if wall <= 0.0 {
            return Err(broken());
        }
        Ok(Cores { idle_percent: 100.0 * sum("idle_s") / wall, handoffs: sum("handoffs") as u64 })
    }
}

/// Debian's LAMMPS as it is, and what its own table of times means here.
fn lammps(lammps: &Path, steps: u32, dir: &Path) -> Result<()> {
    let run = |v: u32| -> Result<(f64, f64)> {
        let mut job = command(release().join("vmpirun"));
        job.args(["--quiet", "-V", &v.to_string()]).arg(lammps).arg("-in").arg(top().join("tests/data/in.melt"));
        job.args(["-log", "none", "-var", "steps", &steps.to_string()]).current_dir(dir);
        let text = output(&mut job)?;
        loop_and_comm(&text).ok_or_else(|| format!("LAMMPS printed no table of times:\n{text}"))
    };
    let [(one, _), (many, comm)] = [run(1)?, run(V)?];
    println!(
        "\nLAMMPS as it is installed ({}), 32,000 atoms, {steps} steps: {one:.2} s with one rank per core, {many:.2} s \
         with {V}.\nIts own table then says \"Comm {comm:.0} %\": LAMMPS counts there all the time that a rank is in MPI, and \
         the {V} ranks of a core take turns, so the others' computing is in it.",
        lammps.display()
    );
    Ok(())
}

/// The seconds of LAMMPS's loop, and the per cent that it counts as communication.
fn loop_and_comm(text: &str) -> Option<(f64, f64)> {
    let seconds = text.lines().find_map(|line| line.strip_prefix("Loop time of ")?.split_whitespace().next());
    let comm = text.lines().find_map(|line| line.strip_prefix("Comm")?.rsplit('|').next());
    Some((seconds?.parse().ok()?, comm?.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_lammps_is_read() {
        let text = "Loop time of 0.704 on 6 procs for 100 steps with 32000 atoms\n\
                    Section |  min time  |  avg time  |  max time  |%varavg| %total\n\
                    Pair    | 0.15       | 0.17       | 0.18       |   2.2 | 24.6\n\
                    Comm    | 0.48       | 0.49       | 0.51       |   1.1 | 69.61\n";
        assert_eq!(loop_and_comm(text), Some((0.704, 69.61)));
        assert_eq!(loop_and_comm("Loop time of x"), None);
    }

    #[test]
    fn the_cores_of_a_report_are_added_up() {
        let core = |idle: f64, handoffs: u32| format!(r#"{{"wall_s":2.0,"idle_s":{idle},"handoffs":{handoffs}}}"#);
        let text = format!("= checksum x\n{{\"report\":{{\"cores\":[{},{}]}}}}", core(1.0, 3), core(0.0, 4));
        let cores = Cores::of(&text).unwrap();
        assert_eq!((cores.idle_percent, cores.handoffs), (25.0, 7));
        assert!(Cores::of("no report").is_err());
    }
}
