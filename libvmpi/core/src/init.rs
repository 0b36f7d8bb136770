//! MPI's start and end in this process: for the world model (MPI_Init, MPI_Finalize) and for sessions, which are its users.
//!
//! A program started by vmpirun finds its daemon in the environment, attaches, and gets the two segments. A program
//! started by itself, or by a rank in the middle of its own MPI, is a world of one rank with segments of its own. Above all of what it starts and ends; what is learned here is kept in `process` and `nodes`.

use crate::attr;
use crate::chance;
use crate::check;
use crate::coll;
use crate::comm;
use crate::construct;
use crate::consts;
use crate::crash;
use crate::errors::{Class, Error, Result};
use crate::failure;
use crate::foreign;
use crate::nodes;
use crate::process::{self, endpoint, endpoint_if_any, endpoint_rank};
use crate::request;
use crate::rma;
use crate::simulate;
use crate::tool::event;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};
use vmpi_shared::check::CheckBoard;
use vmpi_shared::control::{self, Check, Connection, Reply, Request};
use vmpi_shared::dynamic::World;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::elements;
use vmpi_shared::mem::bell::{Bell, Chime};
use vmpi_shared::node::{NodeConfig, NodeSegment, Pids};
use vmpi_shared::simulate::SimulationSegment;
use vmpi_shared::{meter, sched};

/// Those for whom MPI is up: the world model and sessions. The lock also keeps two threads from opening at once.
static USERS: Mutex<u32> = Mutex::new(0);
/// There are none, and this rank has its core all the same.
static RESTS: AtomicBool = AtomicBool::new(false);
/// Has there been a session here?
static HAS_SESSIONS: AtomicBool = AtomicBool::new(false);

/// Start MPI; returns the granted thread level (`consts::THREAD_*`). `face` is the ABI's name.
///
/// # Errors
/// `Class::Other` if MPI was started before, or the daemon cannot be reached or refuses.
pub fn init(face: &'static str, required_thread_level: i32) -> Result<i32> {
    if process::is_initialized() {
        return Err(Error::new(Class::Other, "MPI has been initialized before in this process"));
    }
    let level = open(face, required_thread_level)?;
    comm::init_world(endpoint_rank(), &process::start_of_world());
    process::begin_world_model(level);
    if chance::is_chaotic() {
        line_up()?;
    }
    Ok(level)
}

/// All ranks are READY, whoever came last, and their places say who goes on: so what follows does not depend on who started faster.
///
/// Behind the first barrier the ranks of a core come to the second one in the order of their places, whoever was last at the first: only who has the first
/// place goes on at once. So the same one is last at the second, and has the same ones READY behind it.
#[cold]
fn line_up() -> Result<()> {
    let world = comm::get(crate::handle::Comm::WORLD)?;
    let goes_first = chance::take_place(process::start_of_world().ranks.iter());
    for _ in 0..2 {
        coll::barrier(&world)?;
        if !goes_first {
            endpoint().yield_core();
        }
    }
    chance::leave_place();
    Ok(())
}

/// One more user of MPI: the first one attaches this rank to its job, and returns when it has its core. After the last
/// one has gone, another may come. Returns the granted thread level.
///
/// # Errors
/// `Class::Other` if the daemon cannot be reached or refuses.
pub fn open(face: &'static str, required_thread_level: i32) -> Result<i32> {
    let mut users = USERS.lock().unwrap();
    let level = match required_thread_level {
        consts::THREAD_SINGLE | consts::THREAD_FUNNELED | consts::THREAD_SERIALIZED => required_thread_level,
        _ => consts::THREAD_MULTIPLE,
    };
    if *users == 0 {
        if endpoint_if_any().is_none() {
            install_panic_hook();
            if std::env::var_os(control::env::SOCKET).is_none() {
                // Another MPI's launcher has started this process? Then it has a place now, and knows the daemon.
                foreign::join()?;
            }
            let (mut node, job, rank, world, simulation) = match std::env::var(control::env::SOCKET) {
                Ok(socket) => match attach(&socket, face)? {
                    Some(attached) => {
                        crate::stdio::by_lines();
                        attached
                    }
                    None => {
                        leave_job();
                        singleton()?
                    }
                },
                Err(_) => singleton()?,
            };
            vmpi_cma::allow_peers();
            node.introduce(rank);
            let found = world.ranks.iter().position(|member| member == rank);
            let Some(world_rank) = found.filter(|_| world.ranks.fit(node.header().ranks)) else {
                return Err(Error::new(Class::Other, "the daemon sent a world without this rank"));
            };
            process::set_world(world, world_rank as u32);
            count_events(&mut node, rank);
            let mut endpoint = Endpoint::new(node, job, rank);
            if let Some(simulation) = simulation {
                simulate::begin(&mut endpoint, simulation)?;
                event::simulate();
            }
            let first_world = process::start_of_world().ranks.iter().next() == Some(0);
            if first_world && chance::begin(&mut endpoint, process::start_of_world().ranks.len() as u32)? {
                event::choose();
            }
            process::set_endpoint(endpoint);
            crash::prepare();
            crate::regions::prepare();
            check::at_end::prepare()?;
            request::set_up();
            crate::memory::huge::prepare();
            elements::set_reach(crate::p2p::REACH);
        } else {
            begin_again()?;
        }
        if !RESTS.swap(false, Ordering::Relaxed) {
            let endpoint = endpoint();
            sched::enter(&endpoint.node, endpoint.me);
        }
        process::set_active(true);
    }
    let level = grant(level, *users == 0);
    if *users == 0 || level == consts::THREAD_MULTIPLE {
        crate::lock::set_threaded(level == consts::THREAD_MULTIPLE);
    }
    *users += 1;
    Ok(level)
}

/// Of the level that is asked for: with several threads in MPI at once waits, and other choices, would not follow from the program alone.
fn grant(level: i32, says: bool) -> i32 {
    if level != consts::THREAD_MULTIPLE || !(simulate::is_on() || chance::is_on()) {
        return level;
    }
    if says && endpoint().me == 0 {
        let why = if simulate::is_on() {
            "which of two threads of a rank comes first has no answer in virtual time (vmpirun --simulate). A program that has several threads in MPI at once \
             all the same is not simulated right."
        } else {
            "which of two threads of a rank comes first follows from no seed, and stands in no record (vmpirun --chaos, --record, --replay, --explore). A \
             program that has several threads in MPI at once all the same may hang."
        };
        eprintln!("vmpi: MPI_THREAD_MULTIPLE was asked for, and MPI_THREAD_SERIALIZED is granted: {why}");
    }
    consts::THREAD_SERIALIZED
}

/// As `open`, for a session.
///
/// # Errors
/// As `open`.
pub fn open_for_session(face: &'static str, required_thread_level: i32) -> Result<i32> {
    let level = open(face, required_thread_level)?;
    HAS_SESSIONS.store(true, Ordering::Relaxed);
    Ok(level)
}

/// MPI has been up here before, and had no user for a while.
///
/// # Errors
/// `Class::Other` in virtual time, which goes on without a rank that has called MPI_Finalize.
#[cold]
fn begin_again() -> Result<()> {
    if simulate::is_on() && !RESTS.load(Ordering::Relaxed) {
        let why = "this rank has called MPI_Finalize without ever having had a session, so the simulation (vmpirun --simulate) goes on without it, and it \
                   can begin none now: begin one before MPI_Finalize";
        return Err(Error::new(Class::Other, why));
    }
    chance::resume();
    Ok(())
}

/// One user less: the last one leaves the core. In virtual time, where others would go past it meanwhile, a rank that has begun sessions leaves as its process ends:
/// another one may begin.
pub fn close() {
    let mut users = USERS.lock().unwrap();
    if *users == 1 {
        check::at_end::objects();
        request::finish_buffered();
        chance::finish();
        if simulate::is_on() && HAS_SESSIONS.load(Ordering::Relaxed) {
            rest();
        } else {
            leave();
        }
        // Whoever comes next finds the lock taken seriously until it has said what it needs.
        crate::lock::set_threaded(true);
    }
    *users -= 1;
}

#[cold]
fn rest() {
    static ONCE: Once = Once::new();
    // SAFETY: the function is there as long as the process.
    ONCE.call_once(|| _ = unsafe { libc::atexit(leave_at_exit) });
    process::set_active(false);
    RESTS.store(true, Ordering::Relaxed);
}

/// The process ends. A child of a fork has inherited this, and must not speak for the rank.
extern "C" fn leave_at_exit() {
    if process::is_this_process() && RESTS.swap(false, Ordering::Relaxed) {
        leave();
    }
}

/// This rank takes part in nothing more.
fn leave() {
    crate::regions::finish();
    process::set_active(false);
    simulate::finish();
    endpoint().leave_virtual_time();
    simulate::wait::check();
    // If the daemon is gone, the kernel is about to end this process anyway.
    let _ = process::with_daemon(|daemon| daemon.send(&Request::Finalized, &[]));
    let endpoint = endpoint();
    sched::finish(&endpoint.node, endpoint.me);
    foreign::leave();
}

/// The two segments, this rank and its world, and in a simulated job virtual time.
type Attached = (NodeSegment, JobSegment, u32, World, Option<SimulationSegment>);

/// Attach to the daemon that started this rank; `None`: a rank that goes on has started this process, which is none itself.
fn attach(socket: &str, face: &str) -> Result<Option<Attached>> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let number = |name: &str| {
        variable(name).parse::<u32>().map_err(|_| {
            Error::new(Class::Other, format!("the environment variable {name} is {:?}, not a number", variable(name)))
        })
    };
    let failed = |what: &str, why: &dyn std::fmt::Display| {
        Error::new(Class::Other, format!("cannot {what} the vmpi daemon at {socket}: {why}; is it still running?"))
    };
    let job = number(control::env::JOBID)?;
    let rank = number(control::env::JOB_RANK).or_else(|_| number(control::env::RANK))?;
    let stream = UnixStream::connect(socket).map_err(|error| match Path::new(socket).parent() {
        Some(directory) if error.kind() == io::ErrorKind::NotFound => unseen(socket, directory),
        _ => failed("reach", &error),
    })?;
    let mut daemon = Connection::new(stream);
    let mut ask = |request: &Request| -> Result<(Reply, Vec<std::os::fd::OwnedFd>)> {
        daemon.send(request, &[]).map_err(|e| failed("ask", &e))?;
        match daemon.receive::<Reply>().map_err(|e| failed("hear", &e))? {
            Some((Reply::Refused { reason, .. }, _)) => {
                Err(Error::new(Class::Other, format!("the vmpi daemon at {socket} refuses: {reason}")))
            }
            Some(answer) => Ok(answer),
            None => Err(failed("hear", &"it closed the connection")),
        }
    };
    ask(&Request::Hello { version: env!("CARGO_PKG_VERSION").into(), protocol: control::PROTOCOL })?;
    let request = Request::Attach { job, rank, word: variable(control::env::JOB), face: face.into() };
    let (answer, fds) = ask(&request)?;
    let (appnum, world, universe, nodes) = match answer {
        Reply::Attached { appnum, world, universe, nodes, .. } => (appnum, world, universe, nodes),
        Reply::Apart { .. } => return Ok(None),
        _ => return Err(failed("attach to", &"it gave an unknown answer")),
    };
    let mut fds = fds.into_iter();
    let (Some(node), Some(jobs), Some(bell), Some(pids)) = (fds.next(), fds.next(), fds.next(), fds.next()) else {
        return Err(failed("attach to", &"it did not hand over two segments, a bell and the ranks' pids"));
    };
    let unmapped = |e: vmpi_shared::mem::segment::SegmentError| Error::new(Class::Other, e.to_string());
    let mut node = NodeSegment::map(node).map_err(unmapped)?;
    node.set_bell(Bell::from_fd(bell));
    node.set_pids(Pids::map(pids, node.header().ranks).map_err(unmapped)?);
    let mut simulation = None;
    if node.header().simulated != 0 {
        let segment = fds.next().ok_or_else(|| failed("attach to", &"it did not hand over virtual time"))?;
        simulation = Some(SimulationSegment::map(segment).map_err(unmapped)?);
    } else if let (Some(bell), Some(timer)) = (fds.next(), fds.next()) {
        node.set_carrier_bell(Chime::from_fds(bell, timer));
    }
    if let Some(nodes) = nodes {
        nodes::set(nodes);
    }
    if Check::of_environment().is_ok_and(|level| level != Check::Off) {
        let (_, boards) = ask(&Request::CheckBoard)?;
        for board in boards {
            check::board::set(CheckBoard::map(board).map_err(unmapped)?);
        }
    }
    let jobs = JobSegment::map(jobs).map_err(unmapped)?;
    process::set_daemon(daemon, appnum, universe);
    Ok(Some((node, jobs, rank, world, simulation)))
}

/// Forget the job whose variables this process has inherited: what they ask for, and who they say it is, is said of the rank that has started it.
///
/// Python's multiprocessing ("spawn", "forkserver") is the usual case: its children import mpi4py again, which starts MPI.
fn leave_job() {
    use control::env;
    for name in [
        env::SOCKET,
        env::JOB,
        env::JOBID,
        env::RANK,
        env::JOB_RANK,
        env::SIZE,
        env::V,
        env::COUNTERS,
        env::COMPUTATION,
        env::REGIONS,
        env::PCONTROL,
        env::CHECK,
        env::CHAOS,
        env::RECORD,
        env::RECORD_ALL,
        env::REPLAY,
    ] {
        // SAFETY: MPI does not allow other threads to use the environment during MPI_Init any more than Open MPI and MPICH, which set it there, too.
        unsafe { std::env::remove_var(name) };
    }
}

/// The daemon's socket is not there. `directory` is where it should be: a job's own, in the runtime directory, or that.
fn unseen(socket: &str, directory: &Path) -> Error {
    let own = directory.file_name().is_some_and(|name| name.to_string_lossy().contains(control::PRIVATE_PREFIX));
    let directory = directory.parent().filter(|_| own).unwrap_or(directory);
    let (directory, variable) = (directory.display(), control::env::RUNTIME_DIR);
    Error::new(
        Class::Other,
        format!(
            "cannot reach the vmpi daemon at {socket}: there is no such file here. Either the daemon has ended, or this process has a file system of \
             its own (a container, a private /tmp): it must see the runtime directory. Bind {directory} into it, or set {variable} for vmpirun to a \
             directory that it sees under the same name"
        ),
    )
}

/// A world of one rank, with segments of its own.
fn singleton() -> Result<Attached> {
    let failed = |e: vmpi_shared::mem::segment::SegmentError| Error::new(Class::NoMem, e.to_string());
    let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).map_err(failed)?;
    node.set_pid(0, std::process::id() as i32);
    let job = JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(1) }).map_err(failed)?;
    let world = World { number: 1, ranks: std::iter::once(0).collect(), ..World::default() };
    Ok((node, job, 0, world, None))
}

/// MPI_Finalize: all ranks arrive, then the world model ends here; with no session left this rank leaves its core.
///
/// # Errors
/// What a delete callback of MPI_COMM_SELF's or MPI_COMM_WORLD's attributes returned; `Class::Other` without MPI_Init.
pub fn finalize() -> Result<()> {
    // A child of a fork that ends by `exit` comes here by the handlers that it has inherited, and must not speak for the rank.
    if !process::is_this_process() {
        return Ok(());
    }
    if !process::is_initialized() {
        return Err(Error::new(Class::Other, "MPI_Init has not been called"));
    }
    if process::is_finalized() {
        return Err(Error::new(Class::Other, "MPI_Finalize has been called before"));
    }
    attr::delete_last_attributes()?;
    request::finish_buffered();
    rma::finish_operations()?;
    failure::tolerate(construct::say_all())?;
    // Those who are left need not wait for each other.
    failure::tolerate(coll::barrier(&*comm::get(crate::handle::Comm::WORLD)?))?;
    check::at_end::look();
    comm::end_world();
    process::end_world_model();
    close();
    Ok(())
}

fn install_panic_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        previous(info);
        process::abort(125, &format!("vmpi's own fault: {info}; please report it with the command that led here"));
    }));
}

/// Count what `vmpirun --counters` asks for; it has looked whether that is possible.
fn count_events(node: &mut NodeSegment, rank: u32) {
    let Ok(list) = std::env::var(control::env::COUNTERS) else { return };
    let begun = meter::parse(&list).map_err(|e| e.to_string());
    let begun = begun.and_then(|events| node.count_events(&events).map_err(|e| e.to_string()));
    if let Err(why) = begun {
        eprintln!("vmpi: rank {rank} does not count {list}: {why}");
    }
}
