//! From the options to what a daemon is asked: the ranks' number, places, programs and environment.

use super::machine::Machine;
use super::{Found, Job};
use crate::auto::{self, Auto};
use crate::cli::{AppOptions, RunOptions, StdinTo, Universe, VChoice};
use crate::elf::Search;
use crate::environ::{self, Env, FaceDirs};
use crate::failure::Failure;
use crate::hosts::{self, Host};
use crate::nodes::node_source::NodeSource;
use crate::nodes::place::{self, Known};
use crate::occupied::Claims;
use crate::pins::Pins;
use crate::place::{Seat, rearrange, threads};
use crate::plan::{self, By, Plan, Wish};
use crate::topology::Topology;
use crate::{check, cpus, mpir, orders, program, simulate};
use std::path::Path;
use vmpi_shared::control::{self, App, Balance, JobSpec, Nodes, Overlap, Stdio};
use vmpi_shared::guarding;
use vmpi_shared::meter::{self, Event};

/// `known`: the nodes, none if it is this one alone.
pub(super) fn prepare(
    options: &RunOptions,
    exe_dir: &Path,
    engine: &NodeSource,
    known: &[&Known],
    machine: Machine,
) -> Result<Job, Failure> {
    let hosts = &engine.hosts;
    let mut notes = first_notes(options, engine, known);
    notes.extend(machine.note.clone());
    let slots: Option<u32> = hosts.iter().filter_map(|host| host.slots).reduce(|a, b| a + b);
    let ranks = if known.is_empty() { total_ranks(options, slots) } else { asked_ranks(options) };
    let names = match known.is_empty() {
        true => vec![hosts::own_name()],
        false => known.iter().map(|node| node.name.clone()).collect(),
    };
    let pins = Pins::of(options, ranks, &names)?;
    let ranks = pins.as_ref().map(Pins::ranks).or(ranks);
    check_named_ranks(options, ranks)?;
    let counters = meter::parse(options.counters.as_deref().unwrap_or_default())
        .and_then(|events| meter::check(&events).map(|()| events))
        .map_err(|e| Failure::usage(format!("--counters: {e}")))?;
    let cpus = if known.is_empty() { cpus_here(options, engine, &machine, &mut notes)? } else { Vec::new() };
    let (own, odd) = environ::own();
    let dirs = FaceDirs::beside(exe_dir);
    let auto = match options.v {
        Some(VChoice::Auto) => choose_v(options, known, ranks, cpus.len() as u32, &own, &dirs, &mut notes)?,
        _ => None,
    };
    let tasks = engine.allocation.as_ref().and_then(|allocation| allocation.cpus_per_task);
    let wish = Wish {
        ranks,
        v: auto.as_ref().map(|auto| VChoice::Exactly(auto.v)).or(options.v),
        map_by: options.map_by.clone(),
        bind: options.bind,
        cores_named: options.cores.is_some(),
        cpus_per_rank: match known.is_empty() {
            true => threads::cpus_per_rank(options, &own, ranks, cpus.len() as u32, tasks),
            false => place::cpus_per_rank(options, &own, ranks, known, tasks),
        },
        ..Wish::default()
    }
    .by_parts(options);
    let here = (&cpus[..], &machine.topology);
    let Placed { plan, nodes, used, claims } = place_ranks(options, &wish, here, known, pins.as_ref())?;
    if !odd.is_empty() {
        notes.push(format!("variables that are not UTF-8 are not passed on: {}", odd.join(", ")));
    }
    let (apps, found) = programs(options, &plan, &counters, &own, &dirs, &mut notes)?;
    if options.overlap.is_some_and(|overlap| overlap != Overlap::Off) {
        match guarding::look() {
            Err(why) => notes.push(format!("--overlap has no effect here: {why}")),
            Ok(()) if options.dry_run => notes.push(guarding::OFFERED.into()),
            Ok(()) => {}
        }
    }
    if let (None, Some(ranks), Some(each)) = (&nodes, asked_ranks(options), options.ranks_per_node)
        && ranks > each
    {
        notes.push(format!("{ranks} ranks on this node instead of {each}: there is no other one"));
    }
    let simulation = simulate::wanted(options, nodes.is_some())?;
    let several_cpus = wish.cpus_per_rank > 1 || plan.masks.iter().any(|mask| !mask.is_empty());
    let balance = balance(options, nodes.is_some(), several_cpus, &mut notes);
    if options.on_hang_s > 0 && nodes.is_some() {
        notes.push("--on-hang is for one node so far: a deadlock is told of, a job without progress is not".into());
    }
    let mut spec = spec(options, apps, &plan, balance);
    spec.simulation = simulation;
    spec.nodes = nodes;
    spec.counters = counters.iter().map(|event| event.name.to_owned()).collect();
    spec.universe = universe(options, &plan, &rooms(hosts, known, cpus.len()));
    let orders = orders::Recording::begin(options, &mut spec)?;
    check::refuse(options, &spec)?;
    if spec.nodes.is_some() {
        // Each rank's core on its own node.
        spec.placement = place::cores_on_nodes(&plan, &spec);
    }
    Ok(Job { spec, plan, found, notes, auto, used, orders, _claims: claims })
}

/// What the options say of the job, of one node.
fn spec(options: &RunOptions, apps: Vec<App>, plan: &Plan, balance: Balance) -> JobSpec {
    JobSpec {
        ranks: plan.ranks,
        v: plan.v,
        cpus: plan.cpus.clone(),
        spare_cpus: plan.spare.clone(),
        beside: plan.beside.clone(),
        masks: plan.masks.clone(),
        placement: plan.placement.clone(),
        bind: plan.bind,
        policy: options.policy,
        balance,
        quantum_ms: options.quantum_ms,
        on_block: options.on_block,
        wtime: options.wtime,
        stdio: Stdio::PerRank,
        stdin: match &options.stdin {
            StdinTo::All => (0..plan.ranks).collect(),
            StdinTo::Ranks(readers) => readers.clone(),
        },
        fds: 0,
        // A debugger lets them go when it has seen them (`mpir`).
        stop: if mpir::is_debugged() { (0..plan.ranks).collect() } else { options.gdb.clone() },
        kill_on_failure: options.kill_on_failure && !options.recovery,
        recovery: options.recovery,
        on_crash: options.on_crash,
        hang_s: options.on_hang_s,
        randomize: options.randomize,
        monitor: options.matrix.is_some() || options.profile.is_some() || options.report_html.is_some(),
        trace: options.trace.is_some() || options.report_html.is_some(),
        ..JobSpec::plain(apps)
    }
}

/// Are there the ranks that `--gdb` and `--stdin` name?
fn check_named_ranks(options: &RunOptions, ranks: Option<u32>) -> Result<(), Failure> {
    let Some(ranks) = ranks else { return Ok(()) };
    if let Some(rank) = options.gdb.iter().find(|rank| **rank >= ranks) {
        return Err(Failure::usage(format!("--gdb: there is no rank {rank} of {ranks}")));
    }
    if let StdinTo::Ranks(readers) = &options.stdin
        && let Some(rank) = readers.last().filter(|last| **last >= ranks)
    {
        return Err(Failure::usage(format!("--stdin: there is no rank {rank} of {ranks}")));
    }
    Ok(())
}

/// The CPUs of a job of this node alone.
fn cpus_here(
    options: &RunOptions,
    engine: &NodeSource,
    machine: &Machine,
    notes: &mut Vec<String>,
) -> Result<Vec<u32>, Failure> {
    let allowed = machine.topology.threads(&machine.cpus, options.threads_per_core);
    let mut allowed = machine.topology.first_threads_first(&allowed);
    engine.limit_here(&mut allowed);
    if options.cores.is_none() && machine.note.is_none() {
        // Named ones are used even so.
        let note = cpus::keep_to_quota(&mut allowed, cpus::cgroup_quota());
        notes.extend(note.filter(|_| options.dry_run || options.verbose));
    }
    cpus::choose(options.cores.as_deref(), &allowed)
}

/// Each host's slots and cores; `here`: this node's.
fn rooms(hosts: &[Host], known: &[&Known], here: usize) -> Vec<(Option<u32>, u32)> {
    let cores_of = |name: &str| known.iter().find(|node| node.name == name).map_or(here, |node| node.facts.cpus.len());
    hosts.iter().map(|host| (host.slots, cores_of(&host.name) as u32)).collect()
}

/// What `-V auto` decides, if it can.
fn choose_v(
    options: &RunOptions,
    known: &[&Known],
    ranks: Option<u32>,
    cores: u32,
    own: &Env,
    dirs: &FaceDirs,
    notes: &mut Vec<String>,
) -> Result<Option<Auto>, Failure> {
    let ([app], true) = (options.apps.as_slice(), known.is_empty()) else {
        notes.push("-V auto learns from runs of one program on one node; with several V is what fits".into());
        return Ok(None);
    };
    let (env, _) = environ::compose(own, &options.env_mode, app.env_mode.as_ref(), &options.env, &app.env);
    let (looked_up, found) = look_up(app, 1, own, env, dirs, false)?;
    let auto = auto::decide(&found.program, &app.args, Path::new(&looked_up.cwd), ranks, cores);
    notes.extend(auto.notes.iter().chain([&auto.sentence]).cloned());
    Ok(Some(auto))
}

/// Where the ranks are put.
struct Placed {
    plan: Plan,
    /// Of a job of several nodes.
    nodes: Option<Box<Nodes>>,
    /// The numbers of the nodes that are used, then.
    used: Vec<usize>,
    claims: Claims,
}

fn place_ranks(
    options: &RunOptions,
    wish: &Wish,
    (cpus, topology): (&[u32], &Topology),
    known: &[&Known],
    pins: Option<&Pins>,
) -> Result<Placed, Failure> {
    let mut claims = Claims::default();
    let (mut plan, mut nodes, used) = match known.is_empty() {
        true => {
            let named = match pins {
                Some(pins) => pins.cpus_on(0, topology)?,
                None => place::of_lists(&options.bind_to, wish.ranks.unwrap_or(cpus.len() as u32)),
            };
            let plan = match named {
                Some(named) => plan::named(&named, cpus)?,
                None if options.dry_run => plan::plan(wish, cpus, topology),
                None => {
                    let (plan, claimed) = plan_beside_others(wish, cpus, topology);
                    claims = claimed;
                    plan
                }
            };
            (plan, None, Vec::new())
        }
        false => {
            place::plan(options, wish, known, pins).map(|(plan, nodes, used)| (plan, Some(Box::new(nodes)), used))?
        }
    };
    let on_node = |rank: usize| nodes.as_ref().map_or(0, |nodes| nodes.of_rank[rank]);
    let seats: Vec<Seat> =
        plan.placement.iter().enumerate().map(|(rank, core)| Seat { node: on_node(rank), core: *core }).collect();
    let order = match pins {
        Some(pins) => Some(pins.seats()),
        None => crate::place::order(&options.map_by, &seats)?,
    };
    if let Some(seat_of) = order {
        rearrange(&mut plan.placement, &seat_of);
        if let Some(nodes) = &mut nodes {
            rearrange(&mut nodes.of_rank, &seat_of);
        }
    }
    Ok(Placed { plan, nodes, used, claims })
}

/// The programs of the job with what the options put into their environment.
fn programs(
    options: &RunOptions,
    plan: &Plan,
    counters: &[&Event],
    own: &Env,
    dirs: &FaceDirs,
    notes: &mut Vec<String>,
) -> Result<(Vec<App>, Vec<Found>), Failure> {
    let mut apps = Vec::new();
    let mut found = Vec::new();
    for app in &options.apps {
        let app_ranks = if options.apps.len() == 1 { plan.ranks } else { app.ranks.unwrap_or(1) };
        let (env, missing) = environ::compose(own, &options.env_mode, app.env_mode.as_ref(), &options.env, &app.env);
        notes.extend(missing.iter().map(|name| format!("the variable {name} is not set and cannot be passed on")));
        let (mut app, looked_up) = look_up(app, app_ranks, own, env, dirs, options.simulate.is_some())?;
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
        threads::tell(plan, &mut app.env);
        apps.push(app);
        found.push(looked_up);
    }
    Ok((apps, found))
}

/// Who moves ranks between cores, as far as that is offered for this job.
fn balance(options: &RunOptions, several_nodes: bool, several_cpus: bool, notes: &mut Vec<String>) -> Balance {
    match options.balance {
        Some(wish) if several_nodes && wish != Balance::None => {
            notes.push(format!("--balance {} is for one node so far: ranks stay where they are", wish.name()));
            Balance::None
        }
        Some(balance) if several_cpus && balance != Balance::None => {
            notes.push(format!("--balance {}: ranks with several CPUs each stay where they are", balance.name()));
            Balance::None
        }
        Some(wish) => wish,
        None if several_cpus => Balance::None,
        // Who asks for ranks to be bound wants them where they are put.
        None if several_nodes || options.bind == Some(true) => Balance::None,
        None => Balance::Rescue,
    }
}

/// Plan a job of this node alone on CPUs that other jobs do not have, as far as there are such.
fn plan_beside_others(wish: &Wish, cpus: &[u32], topology: &Topology) -> (Plan, Claims) {
    let first = plan::plan(wish, cpus, topology);
    let own: Vec<u32> = (0..first.cpus.len()).flat_map(|core| first.place(core)).collect();
    // As the user has put them, if that was said.
    if wish.cores_named || matches!(wish.by, Some(By::Per(..) | By::Turns(_))) || own.len() == cpus.len() {
        let (claims, _) = Claims::take(&own, own.len());
        return (first, claims);
    }
    let others = cpus.iter().filter(|cpu| !own.contains(cpu));
    let (claims, order) = Claims::take(&own.iter().chain(others).copied().collect::<Vec<_>>(), own.len());
    if order[..own.len()] == own[..] {
        return (first, claims);
    }
    // Free ones before those that would be spread best.
    (plan::plan(&Wish { by: None, ..wish.clone() }, &order, topology), claims)
}

/// What is said before anything has been planned.
fn first_notes(options: &RunOptions, engine: &NodeSource, known: &[&Known]) -> Vec<String> {
    // Where the nodes come from is no news in each run.
    let from = engine.notes.iter().filter(|_| options.dry_run || options.verbose || options.display_allocation);
    let mut notes: Vec<String> = options.notes.iter().chain(&engine.warnings).chain(from).cloned().collect();
    if options.dry_run && !known.is_empty() && !engine.is_told() {
        notes.push("no node was asked: each is taken to have as many cores as it has slots, or as this one".into());
    }
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
pub(super) fn asked_ranks(options: &RunOptions) -> Option<u32> {
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
    environ::audit_what_it_starts(&program, &app.args, &cwd, dirs, &mut env);
    if simulated {
        environ::come_first(&program, choice.face, dirs, &mut env);
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
