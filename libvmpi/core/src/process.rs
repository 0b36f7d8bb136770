//! This rank as a process: start, end, entry lock, scheduling points, clocks.
//!
//! A program started by vmpirun finds its daemon in the environment, attaches, and gets the two segments. A program
//! started by itself is a world of one rank with segments of its own.

use crate::errors::{Class, Error, Result};
use crate::{attr, coll, comm, consts, crash, foreign, ft, request};
use std::ffi::c_int;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};
use vmpi_shared::control::{self, Connection, NodeMap, Reply, Request};
use vmpi_shared::crash::Way;
use vmpi_shared::dynamic::{Ranks, World};
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::elements;
use vmpi_shared::matching::tend::Endpoint;
use vmpi_shared::mem::bell::{Bell, Chime};
use vmpi_shared::meter;
use vmpi_shared::node::counting;
use vmpi_shared::node::{NodeConfig, NodeSegment, Pids};
use vmpi_shared::sched;

pub use crate::lock::{Entered, enter};
pub use vmpi_shared::trace::calling;

const BEFORE: u32 = 0;
const ACTIVE: u32 = 1;
const AFTER: u32 = 2;

/// Of the world model (MPI_Init and MPI_Finalize).
static PHASE: AtomicU32 = AtomicU32::new(BEFORE);
/// Those for whom MPI is up: the world model and sessions. The lock also keeps two threads from opening at once.
static USERS: Mutex<u32> = Mutex::new(0);
/// There are users.
static ACTIVE_NOW: AtomicBool = AtomicBool::new(false);
static ENDPOINT: AtomicPtr<Endpoint> = AtomicPtr::new(std::ptr::null_mut());
static THREAD_LEVEL: AtomicI32 = AtomicI32::new(consts::THREAD_SINGLE);
/// The process that was attached to the job.
static PROCESS: AtomicU32 = AtomicU32::new(0);
static MAIN_THREAD: AtomicI32 = AtomicI32::new(0);
static APPNUM: AtomicI32 = AtomicI32::new(0);
static UNIVERSE: AtomicU32 = AtomicU32::new(1);
/// Rank in MPI_COMM_WORLD, and its size.
static WORLD_RANK: AtomicU32 = AtomicU32::new(0);
static WORLD_SIZE: AtomicU32 = AtomicU32::new(1);
/// What the daemon said about MPI_COMM_WORLD.
static START: LazyLock<Mutex<World>> = LazyLock::new(Mutex::default);
/// The nodes of a job of several; empty lists otherwise.
static NODES: OnceLock<NodeMap> = OnceLock::new();
static FACE: Mutex<&'static str> = Mutex::new("");
static DAEMON: Mutex<Option<Connection>> = Mutex::new(None);

/// This rank's end of the segments. Reached under the entry lock; its methods call no program code, so no second
/// reference is ever in use at the same time.
#[inline]
pub(crate) fn endpoint() -> &'static mut Endpoint {
    let endpoint = ENDPOINT.load(Ordering::Acquire);
    debug_assert!(!endpoint.is_null());
    // SAFETY: set once by init to a leaked allocation; the entry lock makes this thread its only user.
    unsafe { &mut *endpoint }
}

/// The same, if this rank has been attached to its job.
pub(crate) fn endpoint_if_any() -> Option<&'static mut Endpoint> {
    if ENDPOINT.load(Ordering::Acquire).is_null() { None } else { Some(endpoint()) }
}

/// The node segment, for those who may look at it without the entry lock.
#[inline]
pub(crate) fn node() -> &'static NodeSegment {
    // SAFETY: the field is never moved or changed after init; NodeSegment is Sync.
    unsafe { &*std::ptr::addr_of!((*ENDPOINT.load(Ordering::Acquire)).node) }
}

/// MPI is up: between MPI_Init and MPI_Finalize, or while there is a session.
#[inline]
pub fn is_active() -> bool {
    ACTIVE_NOW.load(Ordering::Acquire)
}

/// MPI_Init has been called.
pub fn is_initialized() -> bool {
    PHASE.load(Ordering::Acquire) != BEFORE
}

/// MPI_Finalize has been called.
pub fn is_finalized() -> bool {
    PHASE.load(Ordering::Acquire) == AFTER
}

/// Called at every entry: a rank whose core was given away while it was outside MPI waits here for its turn.
#[inline]
pub fn scheduling_point() {
    let endpoint = endpoint();
    sched::scheduling_point(&endpoint.node, endpoint.me);
}

/// Do something that may keep this rank asleep in the kernel for long (no MPI call in it): another rank gets the core
/// meanwhile, as if the watchdog had noticed, and this one asks for it back.
pub(crate) fn aside<R>(work: impl FnOnce() -> R) -> R {
    let endpoint = endpoint();
    sched::take_core(&endpoint.node, endpoint.me);
    let result = work();
    scheduling_point();
    result
}

/// Give the core to the next READY rank, if any (MPIX_Yield).
pub fn yield_core() {
    endpoint().yield_core();
}

/// A call came before MPI_Init or after MPI_Finalize: say so and end the process.
pub fn fatal_outside_mpi(function: &str) -> ! {
    let when = if is_finalized() { "after MPI_Finalize" } else { "before MPI_Init" };
    end_job(1, &format!("{function} was called {when}, where MPI does not allow it"), None)
}

/// Start MPI; returns the granted thread level (`consts::THREAD_*`). `face` is the ABI's name.
///
/// # Errors
/// `Class::Other` if MPI was started before, or the daemon cannot be reached or refuses.
pub fn init(face: &'static str, required_thread_level: i32) -> Result<i32> {
    if is_initialized() {
        return Err(Error::new(Class::Other, "MPI has been initialized before in this process"));
    }
    let level = open(face, required_thread_level)?;
    let start = START.lock().unwrap().clone();
    comm::init_world(endpoint_rank(), &start);
    THREAD_LEVEL.store(level, Ordering::Relaxed);
    MAIN_THREAD.store(thread_id(), Ordering::Relaxed);
    PHASE.store(ACTIVE, Ordering::Release);
    Ok(level)
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
        if ENDPOINT.load(Ordering::Acquire).is_null() {
            *FACE.lock().unwrap() = face;
            install_panic_hook();
            if std::env::var_os(control::env::SOCKET).is_none() {
                // Another MPI's launcher has started this process? Then it has a place now, and knows the daemon.
                foreign::join()?;
            }
            let (mut node, job, rank, world) = match std::env::var(control::env::SOCKET) {
                Ok(socket) => {
                    let attached = attach(&socket, face)?;
                    crate::stdio::by_lines();
                    attached
                }
                Err(_) => singleton()?,
            };
            vmpi_cma::allow_peers();
            node.introduce(rank);
            let found = world.ranks.iter().position(|member| member == rank);
            let Some(world_rank) = found.filter(|_| world.ranks.fit(node.header().ranks)) else {
                return Err(Error::new(Class::Other, "the daemon sent a world without this rank"));
            };
            WORLD_RANK.store(world_rank as u32, Ordering::Relaxed);
            WORLD_SIZE.store(world.ranks.len() as u32, Ordering::Relaxed);
            *START.lock().unwrap() = world;
            count_events(&mut node, rank);
            PROCESS.store(std::process::id(), Ordering::Relaxed);
            ENDPOINT.store(Box::into_raw(Box::new(Endpoint::new(node, job, rank))), Ordering::Release);
            crash::prepare();
            crate::regions::prepare();
            request::set_up();
            crate::p2p::prepare();
            elements::set_reach(crate::p2p::REACH);
        }
        let endpoint = endpoint();
        sched::enter(&endpoint.node, endpoint.me);
        ACTIVE_NOW.store(true, Ordering::Release);
        crate::lock::set_threaded(level == consts::THREAD_MULTIPLE);
    } else if level == consts::THREAD_MULTIPLE {
        crate::lock::set_threaded(true);
    }
    *users += 1;
    Ok(level)
}

/// One user less: the last one leaves the core.
pub fn close() {
    let mut users = USERS.lock().unwrap();
    if *users == 1 {
        request::finish_buffered();
        crate::regions::finish();
        ACTIVE_NOW.store(false, Ordering::Release);
        if let Some(daemon) = DAEMON.lock().unwrap().as_mut() {
            // If the daemon is gone, the kernel is about to end this process anyway.
            let _ = daemon.send(&Request::Finalized, &[]);
        }
        let endpoint = endpoint();
        sched::finish(&endpoint.node, endpoint.me);
        // Whoever comes next finds the lock taken seriously until it has said what it needs.
        crate::lock::set_threaded(true);
    }
    *users -= 1;
}

/// Attach to the daemon that started this rank.
fn attach(socket: &str, face: &str) -> Result<(NodeSegment, JobSegment, u32, World)> {
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
    let Reply::Attached { appnum, world, universe, nodes, .. } = answer else {
        return Err(failed("attach to", &"it gave an unknown answer"));
    };
    let mut fds = fds.into_iter();
    let (Some(node), Some(jobs), Some(bell), Some(pids)) = (fds.next(), fds.next(), fds.next(), fds.next()) else {
        return Err(failed("attach to", &"it did not hand over two segments, a bell and the ranks' pids"));
    };
    let unmapped = |e: vmpi_shared::mem::segment::SegmentError| Error::new(Class::Other, e.to_string());
    let mut node = NodeSegment::map(node).map_err(unmapped)?;
    node.set_bell(Bell::from_fd(bell));
    node.set_pids(Pids::map(pids, node.header().ranks).map_err(unmapped)?);
    if let (Some(bell), Some(timer)) = (fds.next(), fds.next()) {
        node.set_carrier_bell(Chime::from_fds(bell, timer));
    }
    if let Some(nodes) = nodes {
        let _ = NODES.set(nodes);
    }
    let jobs = JobSegment::map(jobs).map_err(unmapped)?;
    APPNUM.store(appnum as i32, Ordering::Relaxed);
    UNIVERSE.store(universe, Ordering::Relaxed);
    *DAEMON.lock().unwrap() = Some(daemon);
    Ok((node, jobs, rank, world))
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
fn singleton() -> Result<(NodeSegment, JobSegment, u32, World)> {
    let failed = |e: vmpi_shared::mem::segment::SegmentError| Error::new(Class::NoMem, e.to_string());
    let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).map_err(failed)?;
    node.set_pid(0, std::process::id() as i32);
    let job = JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(1) }).map_err(failed)?;
    let world = World { number: 1, ranks: std::iter::once(0).collect(), ..World::default() };
    Ok((node, job, 0, world))
}

/// MPI_Finalize: all ranks arrive, then the world model ends here; with no session left this rank leaves its core.
///
/// # Errors
/// What a delete callback of MPI_COMM_SELF's or MPI_COMM_WORLD's attributes returned; `Class::Other` without MPI_Init.
pub fn finalize() -> Result<()> {
    // A child of a fork that ends by `exit` comes here by the handlers that it has inherited, and must not speak for the rank.
    if !is_this_process() {
        return Ok(());
    }
    match PHASE.load(Ordering::Acquire) {
        ACTIVE => {}
        BEFORE => return Err(Error::new(Class::Other, "MPI_Init has not been called")),
        _ => return Err(Error::new(Class::Other, "MPI_Finalize has been called before")),
    }
    attr::delete_last_attributes()?;
    request::finish_buffered();
    ft::tolerate(comm::say_all())?;
    // Those who are left need not wait for each other.
    ft::tolerate(coll::barrier(&*comm::get(crate::handle::Comm::WORLD)?))?;
    comm::end_world();
    PHASE.store(AFTER, Ordering::Release);
    close();
    Ok(())
}

/// Was MPI started by this process, and not by one that it was forked from?
pub(crate) fn is_this_process() -> bool {
    let started = PROCESS.load(Ordering::Relaxed);
    started == 0 || started == std::process::id()
}

/// End the whole job with `code` (made non-zero); `reason` reaches the user through vmpirun.
pub fn abort(code: i32, reason: &str) -> ! {
    end_job(if code == 0 { 1 } else { code }, reason, None)
}

/// The same where a job goes on without ranks that die: only those of `group` end, which are the job's ranks of a
/// communicator, this one among them.
pub fn abort_group(code: i32, reason: &str, group: Ranks) -> ! {
    end_job(if code == 0 { 1 } else { code }, reason, Some(group).filter(|_| survives_deaths()))
}

/// Does this job go on when ranks die (`--enable-recovery`)?
pub fn survives_deaths() -> bool {
    endpoint_if_any().is_some_and(|endpoint| endpoint.node.header().recovery != 0)
}

fn end_job(code: i32, reason: &str, group: Option<Ranks>) -> ! {
    // Here it can be seen where the program has made the call.
    crash::tell(Way::Abort { code });
    if let Ok(mut daemon) = DAEMON.try_lock()
        && let Some(daemon) = daemon.as_mut()
        && daemon.send(&Request::Abort { code, reason: reason.into(), group }, &[]).is_ok()
    {
        if foreign::is_foreign() {
            // Its launcher takes the code of the first process that ends for the job's.
            // SAFETY: as below.
            unsafe { libc::_exit(code & 0xff) }
        }
        // The daemon kills this rank, too; the sleep ends only if it died meanwhile.
        std::thread::sleep(std::time::Duration::from_secs(10));
    }
    // Nobody else says it. In one piece: the first rank to end may be the others' end.
    let _ = std::io::stderr().write_all(format!("vmpi: {reason}\n").as_bytes());
    // SAFETY: ends the process without running handlers that could call MPI again.
    unsafe { libc::_exit(code & 0xff) }
}

fn install_panic_hook() {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        previous(info);
        end_job(125, &format!("vmpi's own fault: {info}; please report it with the command that led here"), None);
    }));
}

/// This rank's number in the job.
pub fn endpoint_rank() -> u32 {
    // SAFETY: as in `node`.
    unsafe { (*ENDPOINT.load(Ordering::Acquire)).me }
}

/// Rank and size of MPI_COMM_WORLD.
pub fn world() -> (u32, u32) {
    (WORLD_RANK.load(Ordering::Relaxed), WORLD_SIZE.load(Ordering::Relaxed))
}

/// The size of MPI_COMM_WORLD, also before MPI_Init and after MPI_Finalize.
pub fn size_at_start() -> u32 {
    if endpoint_if_any().is_some() {
        return world().1;
    }
    std::env::var(control::env::SIZE).ok().and_then(|size| size.parse().ok()).unwrap_or(1)
}

/// The ranks of MPI_COMM_WORLD.
pub(crate) fn world_members() -> Vec<u32> {
    START.lock().unwrap().ranks.iter().collect()
}

/// Use the connection to the daemon; `None`: this process was started by itself.
pub(crate) fn with_daemon<T>(f: impl FnOnce(&mut Connection) -> T) -> Option<T> {
    DAEMON.lock().unwrap().as_mut().map(f)
}

/// Do something that may sleep in the kernel: until it is done, others may have this rank's core (and, with several threads, MPI).
pub(crate) fn blocking<T>(f: impl FnOnce() -> T) -> T {
    if crate::lock::is_threaded() {
        return crate::lock::outside(f);
    }
    let endpoint = endpoint();
    sched::take_core(&endpoint.node, endpoint.me);
    let result = f();
    scheduling_point();
    result
}

pub fn thread_level() -> i32 {
    THREAD_LEVEL.load(Ordering::Relaxed)
}

pub fn is_thread_main() -> bool {
    MAIN_THREAD.load(Ordering::Relaxed) == thread_id()
}

pub(crate) fn thread_id() -> c_int {
    // SAFETY: no arguments, always succeeds.
    unsafe { libc::gettid() }
}

/// Host name.
pub fn processor_name() -> String {
    nix::unistd::gethostname().map(|n| n.to_string_lossy().into_owned()).unwrap_or_else(|_| "localhost".into())
}

/// Index of this program in an MPMD command line.
pub fn appnum() -> i32 {
    APPNUM.load(Ordering::Relaxed)
}

pub fn universe_size() -> i32 {
    UNIVERSE.load(Ordering::Relaxed) as i32
}

/// Wall clock (or the process-POV clock under `--wtime rank`), seconds.
pub fn wtime() -> f64 {
    if is_active() && node().header().wtime_rank != 0 {
        return rtime();
    }
    vmpi_shared::clock::monotonic_ns() as f64 * 1e-9
}

pub fn wtick() -> f64 {
    1e-9
}

/// Process-POV clock, seconds: time this rank has been RUNNING (listing 2 of the EuroMPI'20 paper).
pub fn rtime() -> f64 {
    let endpoint = endpoint();
    endpoint.node.seconds(sched::own_time(&endpoint.node, endpoint.me))
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

/// The place of an event among those that are counted.
fn counter(event: &str) -> Result<usize> {
    let list = std::env::var(control::env::COUNTERS).unwrap_or_default();
    let place = list.split(',').position(|name| name.trim() == event).filter(|_| counting::of_rank(node()).is_some());
    place.ok_or_else(|| {
        let counted = if list.is_empty() { "nothing is".to_owned() } else { format!("only {list}") };
        let what = format!("`{event}` is not counted ({counted}); vmpirun --counters says what is");
        Error::new(Class::Arg, what)
    })
}

/// What this rank has counted of an event since MPI_Init: process-POV.
///
/// # Errors
/// `Class::Arg`: it is not counted.
pub fn rcounter(event: &str) -> Result<u64> {
    let at = counter(event)?;
    Ok(counting::of_rank(node()).map_or(0, |values| values[at]))
}

/// What ranks have counted of an event on this rank's core in metered sections: core-POV.
///
/// # Errors
/// `Class::Arg`: it is not counted.
pub fn pcounter(event: &str) -> Result<u64> {
    let at = counter(event)?;
    let endpoint = endpoint();
    Ok(counting::of_core(&endpoint.node, endpoint.node.core_of(endpoint.me))[at])
}

/// Core-POV timer of this rank's core, seconds (listing 3).
pub fn ptime() -> f64 {
    let endpoint = endpoint();
    let node = &endpoint.node;
    node.seconds(node.core(node.core_of(endpoint.me)).ptime.load(Ordering::Relaxed))
}

/// This rank enters the metered section of the core-POV timer.
pub fn start_processor_timer() {
    let endpoint = endpoint();
    counting::section(&endpoint.node, endpoint.node.core_of(endpoint.me), true);
    endpoint.node.rank(endpoint.me).m.store(endpoint.node.now(), Ordering::Relaxed);
}

/// This rank leaves the metered section.
pub fn stop_processor_timer() {
    let endpoint = endpoint();
    let node = &endpoint.node;
    let rank = node.rank(endpoint.me);
    let m = rank.m.swap(0, Ordering::Relaxed);
    if m != 0 {
        node.core(node.core_of(endpoint.me)).ptime.fetch_add(node.now().saturating_sub(m), Ordering::Relaxed);
        counting::section(node, node.core_of(endpoint.me), false);
    }
}

/// A number that no other communicator of the job has (contexts come in pairs: this one and the next).
pub fn new_context() -> u32 {
    let endpoint = endpoint();
    if endpoint.node.header().spread != 0 {
        // The collective cell would be this node's, and the communicator may be one of another node.
        return endpoint.job.new_context_without_cell();
    }
    endpoint.job.new_context()
}

/// Does the job run on several nodes?
#[inline]
pub fn is_spread() -> bool {
    node().header().spread != 0
}

/// What tells this job from all others.
pub fn job_identity() -> (u64, u32) {
    let header = node().header();
    // On several nodes each daemon has a job of its own.
    NODES.get().map_or((header.started_at, header.job), |nodes| (nodes.identity, 0))
}

/// The number of the node on which rank `rank` of the job runs.
pub fn node_of(rank: u32) -> u32 {
    let Some(nodes) = NODES.get() else { return 0 };
    // Ranks that have come since are told by their descriptors.
    nodes.of_rank.get(rank as usize).copied().unwrap_or_else(|| node().node_of(rank))
}

/// The names of the nodes of a job of several.
pub fn node_names() -> &'static [String] {
    NODES.get().map_or(&[], |nodes| &nodes.names)
}

/// The name of that node; empty in a job of one node.
pub fn node_name_of(rank: u32) -> &'static str {
    let name = |nodes: &'static NodeMap| nodes.names.get(node_of(rank) as usize);
    NODES.get().and_then(name).map_or("", String::as_str)
}

/// Do the job's ranks `a` and `b` share a node?
pub fn same_node(a: u32, b: u32) -> bool {
    node_of(a) == node_of(b)
}

/// Nodes of the job.
pub fn nodes() -> usize {
    NODES.get().map_or(1, |nodes| nodes.names.len())
}

/// Refuse what works on one node only, if the job runs on several; `what` is the call.
///
/// # Errors
/// `Class::UnsupportedOperation`, saying so.
pub fn one_node_only(what: &str, why: &str) -> Result<()> {
    if !is_spread() {
        return Ok(());
    }
    let nodes = nodes();
    Err(Error::new(
        Class::UnsupportedOperation,
        format!("{what} is not offered in a job of several nodes (this one has {nodes}): {why}"),
    ))
}

/// As [`new_context`], for a communicator whose collectives go by messages.
pub fn new_context_without_cell() -> u32 {
    endpoint().job.new_context_without_cell()
}
