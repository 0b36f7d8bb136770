//! vmpirun from its command line to its exit code.

mod conclude;
mod descriptors;
mod machine;
mod prepare;
mod say;

use crate::auto::Auto;
use crate::cli::{self, Action, RunOptions, VChoice};
use crate::environ::{self, Choice};
use crate::failure::Failure;
use crate::nodes::batch::Here;
use crate::nodes::coordinator;
use crate::nodes::node_source::{Asked, NodeSource};
use crate::nodes::place::Known;
use crate::nodes::slurm;
use crate::nodes::start::{self, Agent};
use crate::occupied::Claims;
use crate::plan::Plan;
use crate::program::Program;
use crate::signals::{Early, Signals};
use crate::{cpus, daemon, debugger, hosts, orders, outputs, session, simulate, sweep, version};
use conclude::{command_line, conclude};
use descriptors::{LEAST_FDS, raise_descriptors, route};
use machine::Machine;
use prepare::{asked_ranks, prepare};
use say::{dry_run, say_notes, throttling};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use vmpi_shared::control::{JobReport, JobSpec, Stdio};
use vmpi_shared::escape;

/// Run vmpirun with these arguments (its own name left out); returns the exit code.
pub fn main(args: &[String]) -> i32 {
    let variables: Vec<(String, String)> = environ::own().0.into_iter().collect();
    let parsed = cli::Defaults::find(&variables).and_then(|defaults| cli::parse_with(args, &defaults));
    match parsed.and_then(|command| match command {
        cli::Command::Do(action) => print(action),
        cli::Command::Show(text) => out(&text),
        cli::Command::Run(options) if options.debugger.is_some() => debugger::run(&options, args),
        cli::Command::Run(mut options) => {
            options.timeout_s = cli::timeout_s(options.timeout_s, |name| std::env::var(name).ok())?;
            orders::check(&mut options)?;
            options.threads_per_core =
                options.threads_per_core.or_else(|| slurm::threads_per_core(|name| std::env::var(name).ok()));
            if let Some(code) = orders::several(&options, args)? {
                return Ok(code);
            }
            match options.sweep.clone() {
                Some(sweep) => sweep::run(&options, &sweep, run),
                None if options.sweep_picture.is_some() => {
                    Err(Failure::usage("--sweep-picture is for --sweep: say that, too"))
                }
                None => run(&options).map(|(code, _)| code),
            }
        }
    }) {
        Ok(code) => code,
        Err(why) => {
            complain(&why.sentence);
            why.code
        }
    }
}

/// A sentence on standard error; a closed standard error is nobody's problem.
fn complain(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "vmpirun: {}", escape::lines(sentence));
}

fn out(text: &str) -> Result<i32, Failure> {
    match std::io::stdout().write_all(escape::lines(text).as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::own(format!("cannot write to standard output: {e}")))
        }
        _ => Ok(0),
    }
}

fn print(action: Action) -> Result<i32, Failure> {
    match action {
        Action::Help => out(&cli::help_text()),
        Action::ShowConfig => Ok(0),
        Action::Machines => out(&vmpi_machine::list()),
        Action::Version => out(&format!("vmpirun (vmpi) {}\n", version::long())),
    }
}

/// One program of the job, looked up.
struct Found {
    program: Program,
    choice: Choice,
}

/// Everything chosen before a daemon is asked.
struct Job {
    spec: JobSpec,
    plan: Plan,
    found: Vec<Found>,
    notes: Vec<String>,
    /// What `-V auto` has decided.
    auto: Option<Auto>,
    /// The numbers of the nodes that are used, of a job of several.
    used: Vec<usize>,
    /// A record that is being made.
    orders: orders::Recording,
    /// Other jobs keep off its CPUs while this one lives.
    _claims: Claims,
}

/// Run the job; its exit code, and what is known of it at its end.
fn run(options: &RunOptions) -> Result<(i32, Option<JobReport>), Failure> {
    let unheard = |e| Failure::own(format!("cannot handle signals: {e}"));
    let early = Early::heed_interrupts().map_err(unheard)?;
    outputs::check(options)?;
    let exe_dir = exe_dir()?;
    let engine = NodeSource::find(&Asked::of(options), &Here)?;
    let hosts = &engine.hosts;
    if let (Some(allocation), Some(VChoice::Exactly(v)), Some(ranks)) =
        (&engine.allocation, options.v, asked_ranks(options))
    {
        allocation.check(ranks, v).map_err(Failure::usage)?;
    }
    let far = hosts.iter().any(|host| !hosts::is_here(&host.name));
    if options.dry_run {
        let machine = Machine::of_dry_run()?;
        let assumed = if far { engine.assumed(&machine.cpus, &machine.topology) } else { Vec::new() };
        let known: Vec<&Known> = assumed.iter().collect();
        let job = prepare(options, &exe_dir, &engine, &known, machine)?;
        return dry_run(options, &job).map(|code| (code, None));
    }
    let mut agents = if far { start::all(hosts, &engine.way, &exe_dir)? } else { Vec::new() };
    engine.limit(agents.iter_mut().map(|agent| &mut agent.known));
    let known: Vec<&Known> = agents.iter().map(|agent| &agent.known).collect();
    let prepared = prepare(options, &exe_dir, &engine, &known, Machine::here()?);
    let mut number = 0;
    let unused: Vec<Agent> = agents
        .extract_if(.., |_| {
            number += 1;
            prepared.as_ref().map_or(true, |job| !job.used.contains(&(number - 1)))
        })
        .collect();
    start::dismiss(unused);
    let mut job = prepared?;
    simulate::prepare_tape(options, &mut job.spec, &command_line(&options.apps))?;
    say_notes(options, &job);
    let limit = raise_descriptors(LEAST_FDS);
    if limit < LEAST_FDS {
        return Err(Failure::own(format!(
            "vmpirun needs {LEAST_FDS} open files at least and the limit is {limit}; raise it (ulimit -n {LEAST_FDS})"
        )));
    }
    let signals = Signals::register(early).map_err(unheard)?;
    // With several nodes standard input goes through one descriptor, and is dealt out there.
    let inputs = if agents.is_empty() { job.spec.stdin_count() as u32 } else { 1 };
    let (stdio, routes, note) = route(options, job.spec.ranks, inputs)?;
    if let Some(note) = note {
        complain(&note);
    }
    job.spec.stdio = stdio;
    job.spec.fds = inputs + if stdio == Stdio::PerRank { 2 * job.spec.ranks } else { 2 };
    let (mut daemon, coordinator) = match agents.is_empty() {
        true => (daemon::connect(&exe_dir)?, None),
        false => {
            let (daemon, thread) = coordinator::conduct(agents)
                .map_err(|e| Failure::own(format!("cannot speak to several nodes: {e}")))?;
            (daemon, Some(thread))
        }
    };
    let (throttled, began) = (cpus::throttled(), Instant::now());
    let finished = session::run(&mut daemon, &job.spec, routes, options, signals);
    if let Some(note) = throttling(throttled, began).filter(|_| !options.quiet) {
        complain(&format!("note: {note}"));
    }
    // The private daemon ends and its directory goes before the last word is said; likewise those of all nodes.
    drop(daemon);
    if let Some(note) = job.orders.finish(options)? {
        complain(&format!("note: {note}"));
    }
    let on_nodes = coordinator.and_then(|coordinator| coordinator.join().ok()).unwrap_or_default();
    let finished = finished?;
    conclude(options, &job, &finished, &on_nodes).map(|code| (code, finished.report))
}

/// The directory of this executable, links resolved.
pub fn exe_dir() -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::own(format!("cannot find vmpirun's own place: {e}")))?;
    Ok(exe.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf))
}
