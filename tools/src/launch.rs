//! vmpirun from its command line to its exit code.

use crate::auto::{self, Auto};
use crate::cli::{self, Action, AppOptions, OutputMode, ReportForm, RunOptions, StdinTo, Universe, VChoice};
use crate::daemon;
use crate::elf::Search;
use crate::environ::{self, Choice, Env, FaceDirs};
use crate::failure::{Failure, code};
use crate::nodes::batch::Here;
use crate::nodes::engine::{Asked, Engine};
use crate::nodes::place::Known;
use crate::nodes::start::{self, Agent};
use crate::nodes::{conductor, place};
use crate::occupied::Claims;
use crate::output::Routes;
use crate::pins::Pins;
use crate::place::{Seat, rearrange, threads};
use crate::plan::{self, Plan, Wish};
use crate::program::{self, Program};
use crate::report::{self, Verdict};
use crate::session::{self, Finished, Signals};
use crate::trace::NodeRecording;
use crate::{check, cpus, debugger, hosts, matrix, mpir, outcome, outputs, simulate, trace, version};
use serde_json::json;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vmpi_shared::control::{self, App, Balance, Cause, DAEMON_FDS, JobSpec, Overlap, Stdio};
use vmpi_shared::{escape, guarding, meter};

/// Descriptors that vmpirun needs besides those of the ranks.
const OWN_FDS: u64 = 32;
/// With room for what a frame may bring when ranks are spawned.
const WANTED_FDS: u64 = OWN_FDS + control::MAX_FDS as u64;
/// What signals, and a daemon that is started and greeted, take.
const LEAST_FDS: u64 = 30;

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
            run(&options)
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
    /// Other jobs keep off its CPUs while this one lives.
    _claims: Claims,
}

fn run(options: &RunOptions) -> Result<i32, Failure> {
    outputs::check(options)?;
    let exe_dir = exe_dir()?;
    let engine = Engine::find(&Asked::of(options), &Here)?;
    let hosts = &engine.hosts;
    if let (Some(allocation), Some(VChoice::Exactly(v)), Some(ranks)) =
        (&engine.allocation, options.v, asked_ranks(options))
    {
        allocation.check(ranks, v).map_err(Failure::usage)?;
    }
    let far = hosts.iter().any(|host| !hosts::is_here(&host.name));
    if options.dry_run {
        let assumed = if far { engine.assumed(&cpus::allowed()?) } else { Vec::new() };
        return dry_run(options, &prepare(options, &exe_dir, &engine, &assumed.iter().collect::<Vec<_>>())?);
    }
    let mut agents = if far { start::all(hosts, &engine.way, &exe_dir)? } else { Vec::new() };
    engine.limit(agents.iter_mut().map(|agent| &mut agent.known));
    let known: Vec<&Known> = agents.iter().map(|agent| &agent.known).collect();
    let prepared = prepare(options, &exe_dir, &engine, &known);
    let mut number = 0;
    let unused: Vec<Agent> = agents
        .extract_if(.., |_| {
            number += 1;
            prepared.as_ref().map_or(true, |job| !job.used.contains(&(number - 1)))
        })
        .collect();
    start::dismiss(unused);
    let mut job = prepared?;
    say_notes(options, &job);
    let limit = raise_descriptors(LEAST_FDS);
    if limit < LEAST_FDS {
        return Err(Failure::own(format!(
            "vmpirun needs {LEAST_FDS} open files at least and the limit is {limit}; raise it (ulimit -n {LEAST_FDS})"
        )));
    }
    let signals = Signals::register().map_err(|e| Failure::own(format!("cannot handle signals: {e}")))?;
    // With several nodes standard input goes through one descriptor, and is dealt out there.
    let inputs = if agents.is_empty() { job.spec.stdin_count() as u32 } else { 1 };
    let (stdio, routes, note) = route(options, job.spec.ranks, inputs)?;
    if let Some(note) = note {
        complain(&note);
    }
    job.spec.stdio = stdio;
    job.spec.fds = inputs + if stdio == Stdio::PerRank { 2 * job.spec.ranks } else { 2 };
    let (mut daemon, conductor) = match agents.is_empty() {
        true => (daemon::connect(&exe_dir)?, None),
        false => {
            let (daemon, thread) =
                conductor::conduct(agents).map_err(|e| Failure::own(format!("cannot speak to several nodes: {e}")))?;
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
    let on_nodes = conductor.and_then(|conductor| conductor.join().ok()).unwrap_or_default();
    conclude(options, &job, &finished?, &on_nodes)
}

/// The directory of this executable, links resolved.
pub fn exe_dir() -> Result<PathBuf, Failure> {
    let exe = std::env::current_exe().map_err(|e| Failure::own(format!("cannot find vmpirun's own place: {e}")))?;
    Ok(exe.parent().map_or_else(|| PathBuf::from("/"), Path::to_path_buf))
}

/// `known`: the nodes, none if it is this one alone.
fn prepare(options: &RunOptions, exe_dir: &Path, engine: &Engine, known: &[&Known]) -> Result<Job, Failure> {
    let hosts = &engine.hosts;
    let mut notes = first_notes(options, engine, known);
    let slots: Option<u32> = hosts.iter().filter_map(|host| host.slots).reduce(|a, b| a + b);
    let ranks = if known.is_empty() { total_ranks(options, slots) } else { asked_ranks(options) };
    let names = match known.is_empty() {
        true => vec![hosts::own_name()],
        false => known.iter().map(|node| node.name.clone()).collect(),
    };
    let pins = Pins::of(options, ranks, &names)?;
    let ranks = pins.as_ref().map(Pins::ranks).or(ranks);
    if let Some(rank) = options.gdb.iter().find(|rank| ranks.is_some_and(|ranks| **rank >= ranks)) {
        return Err(Failure::usage(format!("--gdb: there is no rank {rank} of {}", ranks.unwrap_or(0))));
    }
    let stdin = match (&options.stdin, ranks) {
        (StdinTo::Ranks(readers), Some(ranks)) if readers.last().is_some_and(|last| *last >= ranks) => {
            return Err(Failure::usage(format!("--stdin: there is no rank {} of {ranks}", readers[readers.len() - 1])));
        }
        (to, _) => to,
    };
    let counters = meter::parse(options.counters.as_deref().unwrap_or_default())
        .and_then(|events| meter::check(&events).map(|()| events))
        .map_err(|e| Failure::usage(format!("--counters: {e}")))?;
    let cpus = match known.is_empty() {
        true => {
            let mut allowed = cpus::allowed()?;
            engine.limit_here(&mut allowed);
            if options.cores.is_none() {
                // Named ones are used even so.
                let note = cpus::keep_to_quota(&mut allowed, cpus::cgroup_quota());
                notes.extend(note.filter(|_| options.dry_run || options.verbose));
            }
            cpus::choose(options.cores.as_deref(), &allowed)?
        }
        false => Vec::new(),
    };
    let cores_of = |name: &str| match known.iter().find(|node| node.name == name) {
        Some(node) => node.facts.cpus.len() as u32,
        None => cpus.len() as u32,
    };
    let rooms: Vec<(Option<u32>, u32)> = hosts.iter().map(|host| (host.slots, cores_of(&host.name))).collect();
    let (own, odd) = environ::own();
    let dirs = FaceDirs::beside(exe_dir);
    let auto = match (options.v, options.apps.as_slice()) {
        (Some(VChoice::Auto), [app]) if known.is_empty() => {
            let (env, _) = environ::compose(&own, &options.env_mode, app.env_mode.as_ref(), &options.env, &app.env);
            let (looked_up, found) = look_up(app, 1, &own, env, &dirs, false)?;
            Some(auto::decide(&found.program, &app.args, Path::new(&looked_up.cwd), ranks, cpus.len() as u32))
        }
        (Some(VChoice::Auto), _) => {
            notes.push("-V auto learns from runs of one program on one node; with several V is what fits".into());
            None
        }
        _ => None,
    };
    if let Some(auto) = &auto {
        notes.extend(auto.notes.iter().chain([&auto.sentence]).cloned());
    }
    let v = auto.as_ref().map(|auto| VChoice::Exactly(auto.v)).or(options.v);
    let fewest = known.iter().map(|node| node.facts.cpus.len()).min().unwrap_or(cpus.len());
    let wish = Wish {
        ranks,
        v,
        map_by: options.map_by.clone(),
        bind: options.bind,
        cores_named: options.cores.is_some(),
        cpus_per_rank: threads::cpus_per_rank(options, &own, ranks, fewest as u32),
    };
    let mut claims = Claims::default();
    let (mut plan, mut nodes, used) = match known.is_empty() {
        true => match pins.as_ref().and_then(|pins| pins.cpus_on(0)) {
            Some(named) => (plan::named(&named, &cpus)?, None, Vec::new()),
            None if options.dry_run => (plan::plan(&wish, &cpus), None, Vec::new()),
            None => {
                let (plan, claimed) = plan_beside_others(&wish, &cpus);
                claims = claimed;
                (plan, None, Vec::new())
            }
        },
        false => place::plan(options, &wish, known, pins.as_ref())
            .map(|(plan, nodes, used)| (plan, Some(Box::new(nodes)), used))?,
    };
    let on_node = |rank: usize| nodes.as_ref().map_or(0, |nodes| nodes.of_rank[rank]);
    let seats: Vec<Seat> =
        plan.placement.iter().enumerate().map(|(rank, core)| Seat { node: on_node(rank), core: *core }).collect();
    let order = match &pins {
        Some(pins) => Some(pins.seats()),
        None => crate::place::order(&options.map_by, &seats)?,
    };
    if let Some(seat_of) = order {
        rearrange(&mut plan.placement, &seat_of);
        if let Some(nodes) = &mut nodes {
            rearrange(&mut nodes.of_rank, &seat_of);
        }
    }
    let (plan, nodes) = (plan, nodes);
    if !odd.is_empty() {
        notes.push(format!("variables that are not UTF-8 are not passed on: {}", odd.join(", ")));
    }
    let mut apps = Vec::new();
    let mut found = Vec::new();
    for app in &options.apps {
        let app_ranks = if options.apps.len() == 1 { plan.ranks } else { app.ranks.unwrap_or(1) };
        let (env, missing) = environ::compose(&own, &options.env_mode, app.env_mode.as_ref(), &options.env, &app.env);
        notes.extend(missing.iter().map(|name| format!("the variable {name} is not set and cannot be passed on")));
        let (mut app, looked_up) = look_up(app, app_ranks, &own, env, &dirs, options.simulate.is_some())?;
        if !counters.is_empty() {
            let names: Vec<&str> = counters.iter().map(|event| event.name).collect();
            app.env.push((control::env::COUNTERS.into(), names.join(",")));
        }
        if options.report.is_some() || options.report_html.is_some() || options.json {
            app.env.push((control::env::REGIONS.into(), "1".into()));
        }
        if let Some(overlap) = options.overlap {
            app.env.retain(|(name, _)| name != control::env::OVERLAP);
            app.env.push((control::env::OVERLAP.into(), overlap.name().into()));
        }
        if let Some(check) = options.check {
            app.env.retain(|(name, _)| name != control::env::CHECK);
            app.env.push((control::env::CHECK.into(), check.name().into()));
        }
        if options.pcontrol_names {
            app.env.push((control::env::PCONTROL.into(), "regions".into()));
        }
        threads::tell(&plan, &mut app.env);
        apps.push(app);
        found.push(looked_up);
    }
    if options.overlap.is_some_and(|overlap| overlap != Overlap::Off) {
        match guarding::look() {
            Err(why) => notes.push(format!("--overlap has no effect here: {why}")),
            Ok(()) if options.dry_run => notes.push(guarding::OFFERED.into()),
            Ok(()) => {}
        }
    }
    let simulation = simulate::wanted(options, nodes.is_some())?;
    let balance = match options.balance {
        Some(wish) if nodes.is_some() && wish != Balance::None => {
            notes.push(format!("--balance {} is for one node so far: ranks stay where they are", wish.name()));
            Balance::None
        }
        Some(balance) if wish.cpus_per_rank > 1 && balance != Balance::None => {
            notes.push(format!("--balance {}: ranks with several CPUs each stay where they are", balance.name()));
            Balance::None
        }
        Some(wish) => wish,
        None if wish.cpus_per_rank > 1 => Balance::None,
        // Who asks for ranks to be bound wants them where they are put.
        None if nodes.is_some() || options.bind == Some(true) => Balance::None,
        None => Balance::Rescue,
    };
    if options.on_hang_s > 0 && nodes.is_some() {
        notes.push("--on-hang is for one node so far: a deadlock is told of, a job without progress is not".into());
    }
    let mut spec = JobSpec {
        apps,
        ranks: plan.ranks,
        v: plan.v,
        cpus: plan.cpus.clone(),
        spare_cpus: plan.spare.clone(),
        beside: plan.beside.clone(),
        placement: plan.placement.clone(),
        bind: plan.bind,
        policy: options.policy,
        balance,
        quantum_ms: options.quantum_ms,
        on_block: options.on_block,
        wtime: options.wtime,
        stdio: Stdio::PerRank,
        stdin: match stdin {
            StdinTo::All => (0..plan.ranks).collect(),
            StdinTo::Ranks(readers) => readers.clone(),
        },
        fds: 0,
        // A debugger lets them go when it has seen them (`mpir`).
        stop: if mpir::is_debugged() { (0..plan.ranks).collect() } else { options.gdb.clone() },
        kill_on_failure: options.kill_on_failure && !options.recovery,
        recovery: options.recovery,
        simulation,
        on_crash: options.on_crash,
        hang_s: options.on_hang_s,
        randomize: options.randomize,
        nodes,
        monitor: options.matrix.is_some() || options.profile.is_some() || options.report_html.is_some(),
        trace: options.trace.is_some() || options.report_html.is_some(),
        counters: counters.iter().map(|event| event.name.to_owned()).collect(),
        universe: universe(options, &plan, &rooms),
    };
    check::refuse(options, &spec)?;
    if spec.nodes.is_some() {
        // Each rank's core on its own node.
        spec.placement = place::cores_on_nodes(&plan, &spec);
    }
    Ok(Job { spec, plan, found, notes, auto, used, _claims: claims })
}

/// Plan a job of this node alone on CPUs that other jobs do not have, as far as there are such.
fn plan_beside_others(wish: &Wish, cpus: &[u32]) -> (Plan, Claims) {
    let first = plan::plan(wish, cpus);
    let used: usize = (0..first.cpus.len()).map(|core| first.place(core).len()).sum();
    // As the user has put them, if that was said.
    if wish.cores_named || used == cpus.len() {
        let own: Vec<u32> = (0..first.cpus.len()).flat_map(|core| first.place(core)).collect();
        let (claims, _) = Claims::take(&own, used);
        return (first, claims);
    }
    let (claims, order) = Claims::take(cpus, used);
    (plan::plan(wish, &order), claims)
}

/// What is said before anything has been planned.
fn first_notes(options: &RunOptions, engine: &Engine, known: &[&Known]) -> Vec<String> {
    // Where the nodes come from is no news in each run.
    let from = engine.notes.iter().filter(|_| options.dry_run || options.verbose || options.display_allocation);
    let mut notes: Vec<String> = options.notes.iter().chain(&engine.warnings).chain(from).cloned().collect();
    if options.dry_run && !known.is_empty() && !engine.is_told() {
        notes.push("no node was asked: each is taken to have as many cores as it has slots, or as this one".into());
    }
    notes.extend(cli::unheeded(options));
    if options.display_allocation {
        let slots = |node: &&Known| node.slots.map_or(String::new(), |slots| format!("{slots} slots, "));
        let node = |node: &&Known| format!("node {}: {}{} cores", node.name, slots(node), node.facts.cpus.len());
        notes.extend(known.iter().map(node));
    }
    notes
}

/// MPI_UNIVERSE_SIZE, if the user has said something about it: `-usize`, slots of hosts, or V ranks on each core. `rooms`: each host's slots
/// and cores, none if no host was named.
fn universe(options: &RunOptions, plan: &Plan, rooms: &[(Option<u32>, u32)]) -> Option<u32> {
    let v = match options.v {
        Some(VChoice::Exactly(v)) => Some(v.max(plan.v)),
        _ => None,
    };
    match options.universe {
        Some(Universe::Exactly(size)) => return Some(size),
        Some(Universe::Unbounded) => return Some(0),
        None => {}
    }
    let cores = (plan.cpus.len() + plan.spare.len()) as u32;
    let slots = rooms.iter().any(|(slots, _)| slots.is_some()).then(|| {
        let of = |(slots, cores): &(Option<u32>, u32)| slots.unwrap_or(cores.saturating_mul(v.unwrap_or(1)));
        rooms.iter().map(of).fold(0, u32::saturating_add)
    });
    let by_v = v.filter(|_| plan.nodes.is_empty()).map(|v| v.saturating_mul(cores));
    let by_v = by_v.or_else(|| v.map(|v| v.saturating_mul(rooms.iter().map(|(_, cores)| *cores).sum())));
    slots.or(by_v).map(|size| size.max(plan.ranks))
}

/// The number of ranks that `-n` fixes.
fn asked_ranks(options: &RunOptions) -> Option<u32> {
    match options.apps.as_slice() {
        [app] => app.ranks,
        apps => Some(apps.iter().map(|app| app.ranks.unwrap_or(1)).fold(0, u32::saturating_add)),
    }
}

/// The number of ranks that the command line fixes; `None`: V and the cores decide.
fn total_ranks(options: &RunOptions, slots: Option<u32>) -> Option<u32> {
    match options.apps.as_slice() {
        [_] => asked_ranks(options).or(options.ranks_per_node).or(slots.filter(|_| options.v.is_none())),
        _ => asked_ranks(options),
    }
}

fn look_up(
    app: &AppOptions,
    ranks: u32,
    own: &Env,
    mut env: Env,
    dirs: &FaceDirs,
    simulated: bool,
) -> Result<(App, Found), Failure> {
    let here = std::env::current_dir()
        .map_err(|e| Failure::own(format!("the working directory cannot be found (was it removed?): {e}")))?;
    let cwd = match &app.wdir {
        Some(dir) => here.join(dir),
        None => here,
    };
    if !cwd.is_dir() {
        return Err(Failure::usage(format!("-wdir {}: no such directory", cwd.display())));
    }
    let search = Search::new(env.get("LD_LIBRARY_PATH").map_or("", String::as_str));
    let path = env.get("PATH").or(own.get("PATH")).cloned().unwrap_or_else(|| "/usr/bin:/bin".into());
    let program = program::resolve(&app.program, app.path.as_deref(), &path, &cwd, &search)?;
    let choice = environ::choose_face(&program, dirs, &mut env)?;
    if simulated {
        environ::come_first(choice.face, dirs, &mut env);
    }
    let mut argv = vec![app.program.clone()];
    argv.extend(app.args.iter().cloned());
    let job_app = App {
        program: program.path.display().to_string(),
        argv,
        env: env.into_iter().collect(),
        cwd: cwd.display().to_string(),
        ranks,
    };
    Ok((job_app, Found { program, choice }))
}

/// How the ranks' streams are connected, and what must be said about it; `inputs`: descriptors for standard input.
fn route(options: &RunOptions, ranks: u32, inputs: u32) -> Result<(Stdio, Option<Routes>, Option<String>), Failure> {
    let patterns = options.outfile_pattern.is_some() || options.errfile_pattern.is_some();
    let raw = options.output == OutputMode::Raw && !patterns;
    let files = patterns || matches!(options.output, OutputMode::Directory(_));
    if raw {
        return Ok((Stdio::Shared, None, None));
    }
    // Both ends of each pipe until the daemon has taken its own; two files per rank at most.
    let (ranks, inputs) = (u64::from(ranks), u64::from(inputs));
    let streams = 2 * inputs + if files { 6 * ranks } else { 4 * ranks };
    // A daemon of this job alone has the same limit.
    let need = (OWN_FDS + streams).max(DAEMON_FDS + inputs + 4 * ranks);
    let limit = raise_descriptors(WANTED_FDS + streams);
    if limit < need {
        if files {
            return Err(Failure::own(format!(
                "{ranks} ranks with output files need {need} open files and the limit is {limit}; raise it (ulimit -n {need}) or use fewer ranks"
            )));
        }
        let note = format!(
            "note: whole lines of {ranks} ranks need {need} open files and the limit is {limit} (ulimit -n): the ranks write by themselves, as with --output raw"
        );
        return Ok((Stdio::Shared, None, Some(note)));
    }
    Ok((Stdio::PerRank, Some(Routes::open(options, ranks as u32)?), None))
}

/// Raise RLIMIT_NOFILE to what is needed as far as the hard limit allows; returns the limit then.
fn raise_descriptors(need: u64) -> u64 {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return need };
    if soft >= need {
        return soft;
    }
    let wanted = need.min(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
        Ok(()) => wanted,
        Err(_) => soft,
    }
}

fn say_notes(options: &RunOptions, job: &Job) {
    if !options.quiet {
        for note in job.notes.iter().chain(&job.plan.notes) {
            complain(&format!("note: {note}"));
        }
        let shared = job.plan.v > 1 && options.v.is_none() && std::io::stderr().is_terminal();
        if options.verbose || shared {
            complain(&format!("note: {}", job.plan.sentence()));
        }
    }
    if options.verbose {
        quota_note(&job.plan).iter().for_each(|note| complain(&format!("note: {note}")));
        for found in &job.found {
            complain(&format!("note: {}", face_sentence(found)));
        }
    }
    if options.report_bindings {
        for (rank, core) in job.plan.placement.iter().enumerate() {
            let pinned = if job.plan.bind { "pinned to" } else { "scheduled with" };
            complain(&format!("rank {rank} {pinned} {}", job.plan.place_name(*core as usize)));
        }
    }
}

/// Has the control group kept the job from running for more than a hundredth of its time? `before`: what it had done by `began`.
fn throttling(before: Option<Duration>, began: Instant) -> Option<String> {
    let (kept, took) = (cpus::throttled()?.saturating_sub(before?), began.elapsed());
    let quota = cpus::cgroup_quota()?;
    (kept > took / 100).then(|| {
        format!(
            "the control group, which grants {quota:.2} CPUs of time, has kept the job from running for {:.1} s of {:.1} s; use fewer cores or ranks, or \
             raise its quota",
            kept.as_secs_f64(),
            took.as_secs_f64()
        )
    })
}

fn quota_note(plan: &Plan) -> Option<String> {
    let quota = cpus::cgroup_quota()?;
    (quota < plan.cpus.len() as f64).then(|| {
        format!("the control group grants {quota:.2} CPUs of time, less than the {} cores used", plan.cpus.len())
    })
}

fn face_sentence(found: &Found) -> String {
    let face = found.choice.face.map_or("no MPI visible".to_string(), |face| face.to_string());
    format!("{}: {face} ({})", found.program.path.display(), found.choice.why)
}

fn dry_run(options: &RunOptions, job: &Job) -> Result<i32, Failure> {
    let plan = &job.plan;
    let notes: Vec<&String> = job.notes.iter().chain(&plan.notes).collect();
    let quota = quota_note(plan);
    if options.json {
        let programs: Vec<_> = job
            .found
            .iter()
            .zip(&job.spec.apps)
            .map(|(found, app)| {
                json!({
                    "program": app.program,
                    "argv": app.argv,
                    "cwd": app.cwd,
                    "ranks": app.ranks,
                    "face": found.choice.face.map(|face| face.name()),
                    "why": found.choice.why,
                    "preload": found.choice.preload,
                })
            })
            .collect();
        let document = json!({
            "schema_version": 1,
            "ranks": plan.ranks,
            "v": plan.v,
            "cpus": plan.cpus,
            "beside": plan.beside,
            "placement": plan.placement,
            "pinned": plan.bind,
            "programs": programs,
            "notes": notes.iter().map(|note| note.as_str()).chain(quota.as_deref()).collect::<Vec<_>>(),
        });
        return out(&format!("{document:#}\n"));
    }
    let mut text = format!("{}\n", plan.sentence());
    for core in 0..plan.cpus.len() {
        let ranks = cpus::format_list(&plan.ranks_of(core));
        text.push_str(&format!(
            "  {}: rank{} {ranks}\n",
            plan.place_name(core),
            if ranks.contains([',', '-']) { "s" } else { "" }
        ));
    }
    for found in &job.found {
        text.push_str(&format!("{}\n", face_sentence(found)));
        if let program::Kind::Elf(closure) = &found.program.kind {
            for name in &closure.missing {
                text.push_str(&format!("  ld.so would not find {name}\n"));
            }
        }
    }
    for note in notes.into_iter().chain(&quota) {
        text.push_str(&format!("note: {note}\n"));
    }
    out(&text)
}

fn conclude(options: &RunOptions, job: &Job, finished: &Finished, on_nodes: &[NodeRecording]) -> Result<i32, Failure> {
    let spec = &job.spec;
    let mut ends = finished.ends.clone();
    ends.sort_by_key(|end| end.rank);
    let code = match (&finished.own, &finished.cause) {
        _ if finished.quiet => 128 + libc::SIGPIPE,
        (Some(own), _) => own.code,
        (None, Some(cause)) => outcome::exit_code(cause),
        (None, None) => code::OWN,
    };
    let code = check::code(code, finished.report.as_ref());
    if finished.quiet {
        return Ok(code);
    }
    let cause = match (&finished.own, &finished.cause) {
        (Some(own), _) => Some(own.sentence.clone()),
        (None, Some(cause)) => {
            let known = outcome::Known { spawned: &finished.spawned, ends: &ends, crashes: &finished.crashes };
            outcome::sentence(cause, spec, known, &node_of(cause, spec))
        }
        (None, None) => finished.lost.clone(),
    };
    if let Some(cause) = cause {
        complain(&cause);
        mpir::tell_failure(&cause);
    }
    if let (Some(_), Some(lost)) = (&finished.own, &finished.lost) {
        complain(lost);
    }
    if !options.quiet && finished.own.is_none() && code == 0 {
        let mut first = 0;
        for (found, app) in job.found.iter().zip(&spec.apps) {
            let of_app: Vec<_> =
                ends.iter().filter(|end| (first..first + app.ranks).contains(&end.rank)).cloned().collect();
            first += app.ranks;
            if let Some(note) = outcome::copies_note(&found.program, app.ranks, &of_app) {
                complain(&format!("note: {note}"));
            }
        }
    }
    let helpers = finished.report.as_ref().map_or(&[][..], |report| &report.helpers);
    if !helpers.is_empty() && !matches!(finished.cause, Some(Cause::Success)) {
        complain(&format!("what its ranks had started was ended, too: {}", outcome::processes(helpers)));
    } else if !helpers.is_empty() && options.verbose {
        complain(&format!("note: what its ranks have started goes on: {}", outcome::processes(helpers)));
    }
    let learnt = match finished.own {
        None => job.auto.as_ref().and_then(|auto| auto.learn(finished.cause.as_ref(), &ends, finished.report.as_ref())),
        Some(_) => None,
    };
    if let Some(why) = learnt.filter(|_| !options.quiet) {
        complain(&format!("note: {why}"));
    }
    if options.print_exit_codes {
        let _ = write!(std::io::stderr(), "{}", outcome::exit_table(&ends));
    }
    let simulated = finished.report.as_ref().and_then(|report| report.simulation.as_ref().zip(Some(report.elapsed_s)));
    if let Some((simulation, real_s)) = simulated.filter(|_| !options.quiet) {
        let _ = write!(std::io::stderr(), "{}", escape::lines(&simulate::sentences(simulation, real_s)));
    }
    if let Some(report) = &finished.report {
        check::conclude(options, &report.findings)?;
    }
    if let (Some(report), Some(form)) = (&finished.report, options.report) {
        let verdict = Verdict::of(report, spec);
        let tables = match form {
            ReportForm::Summary => report::summary(report),
            ReportForm::Full => format!("{}\n{}", report::summary(report), report::full(report)),
        };
        let carried: Vec<&String> =
            report.notes.iter().filter(|note| note.contains(vmpi_shared::control::CARRIED)).collect();
        let carried: String = carried.into_iter().map(|note| format!("{}\n", escape::indented(note))).collect();
        let text = format!("{verdict}{}\n{carried}\n{tables}", job.plan.sentence());
        let _ = write!(std::io::stderr(), "{}", escape::lines(&text));
    }
    if let Some(matrix) = &finished.matrix {
        if let Some(path) = &options.matrix {
            matrix::save(matrix, path)?;
        }
        if let Some(dir) = &options.profile {
            matrix::save_profile(matrix, finished.report.as_ref(), dir)?;
        }
    }
    if options.trace.is_some() || options.report_html.is_some() {
        save_trace(options, job, finished, on_nodes)?;
    }
    if options.json {
        let (cause, report) = (finished.cause.as_ref(), finished.report.as_ref());
        let document = outcome::as_json(cause, code, &ends, report, spec, &finished.crashes);
        out(&format!("{document}\n"))?;
    }
    Ok(code)
}

/// `--trace` and `--report-html`.
fn save_trace(options: &RunOptions, job: &Job, finished: &Finished, on_nodes: &[NodeRecording]) -> Result<(), Failure> {
    let timeline = match &finished.trace {
        Some(recording) => Some(recording.timeline()?),
        None => trace::timeline_of_nodes(on_nodes),
    };
    let Some(timeline) = timeline else {
        complain("there is no trace: what was recorded went with vmpid");
        return Ok(());
    };
    let report = finished.report.as_ref();
    let about = trace::About {
        command: Some(command_line(&options.apps)),
        host: job.spec.nodes.as_ref().map_or_else(hosts::own_name, |nodes| nodes.names.join(", ")),
        matrix: finished.matrix.as_ref(),
        report,
        verdict: report.map(|report| Verdict::of(report, &job.spec)),
    };
    if let Some(path) = &options.trace {
        let saved = trace::save(&timeline, &about, path)?;
        if let Some(gaps) = saved.gaps {
            complain(&format!("note: the trace in {path}: {gaps}"));
        }
    }
    if let Some(path) = &options.report_html {
        trace::save_page(&timeline, &about, path)?;
    }
    Ok(())
}

/// The programs with their arguments, as a shell would take them.
fn command_line(apps: &[AppOptions]) -> String {
    let quoted = |word: &String| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_=+:,./@%^".contains(c));
        if plain { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let line = |app: &AppOptions| -> String {
        std::iter::once(&app.program).chain(&app.args).map(quoted).collect::<Vec<_>>().join(" ")
    };
    apps.iter().map(line).collect::<Vec<_>>().join(" : ")
}

/// The node on which the rank that is the cause ran.
fn node_of(cause: &Cause, spec: &JobSpec) -> String {
    let rank = match cause {
        Cause::RankFailed { rank, .. }
        | Cause::Unfinished { rank, .. }
        | Cause::Aborted { rank, .. }
        | Cause::GroupAborted { rank, .. } => Some(*rank),
        _ => None,
    };
    rank.and_then(|rank| spec.node_of(rank)).map_or_else(hosts::own_name, str::to_string)
}

/// A job for unit tests.
#[cfg(test)]
pub fn test_spec(apps: Vec<App>) -> JobSpec {
    use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
    let ranks = apps.iter().map(|app| app.ranks).sum();
    JobSpec {
        apps,
        ranks,
        v: ranks,
        cpus: vec![0],
        spare_cpus: vec![],
        beside: vec![],
        placement: vec![0; ranks as usize],
        bind: false,
        policy: Policy::Rr,
        balance: Balance::None,
        quantum_ms: 5000,
        on_block: OnBlock::Release,
        wtime: Wtime::Wall,
        stdio: Stdio::Shared,
        stdin: vec![],
        universe: None,
        fds: 3,
        stop: vec![],
        kill_on_failure: true,
        recovery: false,
        simulation: None,
        on_crash: vmpi_shared::crash::OnCrash::default(),
        hang_s: 0,
        randomize: false,
        nodes: None,
        monitor: false,
        trace: false,
        counters: vec![],
    }
}
