//! Everything that must hold before a change goes in, cheapest first.

use crate::Result;
use crate::build;
use crate::needs;
use crate::setup::{self, setup, tool};
use crate::shell::{cargo, command, run};

pub fn test(quick: bool, filter: Option<&str>) -> Result<()> {
    setup()?;
    if filter.is_none() {
        run(cargo().args(["fmt", "--all", "--check"]))?;
        let clippy =
            |what: &[&str]| run(cargo().arg("clippy").args(what).args(["--all-targets", "--", "-D", "warnings"]));
        clippy(&["--workspace", "--features", "vmpi-shared/measure"])?;
        clippy(&["-p", "vmpi-shared", "--features", "model"])?;
        // The database of advisories lives on a server that builds cannot always reach; the rest needs no network.
        let deny = tool("cargo-deny").ok_or("there is no cargo-deny; run `cargo xtask setup` first")?;
        run(command(deny).args(["--workspace", "check", "licenses", "bans", "sources"]))?;
    }
    nextest(&["--workspace", "--exclude", "vmpi-tests"], filter)?;
    // Who runs, under every interleaving that shuttle tries: the same code with its atomics and futexes.
    nextest(&["-p", "vmpi-shared", "--features", "model", "--test", "model"], filter)?;
    if !quick {
        build::build()?;
        // Twice as many at a time as there are CPUs: a test waits for most of its time, for processes or for its turn.
        let cpus = std::thread::available_parallelism().map_or(2, |cpus| cpus.get());
        processes(&["-p", "vmpi-tests", "--test-threads", &(2 * cpus).to_string()], filter)?;
    }
    Ok(())
}

/// The suites of real processes, as far as this machine can run them; what it cannot is told of at the end, too.
fn processes(which: &[&str], filter: Option<&str>) -> Result<()> {
    let (possible, left_out) = needs::possible();
    let tell = || left_out.iter().for_each(|sentence| eprintln!("test: {sentence}"));
    tell();
    let mut which = which.to_vec();
    which.extend(possible.iter().flat_map(|possible| ["-E", possible]));
    let done = nextest(&which, filter);
    tell();
    done
}

/// The suites that take many minutes: tests that are marked with `#[ignore]`.
pub fn second_tier(filter: Option<&str>) -> Result<()> {
    setup()?;
    // mpi4py's suites need nothing else.
    if filter.is_none_or(|name| !name.contains("mpi4py")) {
        setup::second_tier()?;
    }
    build::build()?;
    processes(&["-p", "vmpi-tests", "--run-ignored", "only"], filter)
}

/// Every test that starts processes, `times` times, whatever happens: nextest counts at the end.
pub fn repeat(times: u32, filter: Option<&str>) -> Result<()> {
    setup()?;
    build::build()?;
    let times = times.to_string();
    nextest(&["-p", "vmpi-tests", "-p", "vmpid", "-p", "vmpi-tools", "--stress-count", &times], filter)
}

/// The table in docs, by the test that compares it.
pub fn functions() -> Result<()> {
    build::build()?;
    run(cargo()
        .args(["test", "--quiet", "-p", "vmpi-tests", "--test", "functions", "the_table"])
        .env("VMPI_WRITE", "1"))
}

fn nextest(which: &[&str], filter: Option<&str>) -> Result<()> {
    let nextest = tool("cargo-nextest").ok_or("there is no cargo-nextest; run `cargo xtask setup` first")?;
    let mut run_tests = command(nextest);
    run_tests.args(["nextest", "run", "--no-fail-fast", "--no-tests", "pass"]).args(which);
    run(run_tests.args(filter))
}
