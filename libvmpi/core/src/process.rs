//! This rank as a process: its ends of the segments, scheduling points, the daemon, and the job's end by a rank. `init` says what of it is when.

use crate::{consts, foreign, simulate};
use std::ffi::c_int;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock};
use vmpi_shared::control::{self, Connection, Request};
use vmpi_shared::crash::Way;
use vmpi_shared::dynamic::{Ranks, World};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched;

pub use vmpi_shared::trace::{called, calling};

const BEFORE: u32 = 0;
const ACTIVE: u32 = 1;
const AFTER: u32 = 2;

/// Of the world model (MPI_Init and MPI_Finalize).
static PHASE: AtomicU32 = AtomicU32::new(BEFORE);
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
static DAEMON: Mutex<Option<Connection>> = Mutex::new(None);
/// Says where this rank is when it ends the job (`crash`), if that is wanted.
static LAST_WORDS: OnceLock<fn(Way)> = OnceLock::new();

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

/// This rank is attached to its job.
pub(crate) fn set_endpoint(endpoint: Endpoint) {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    ENDPOINT.store(Box::into_raw(Box::new(endpoint)), Ordering::Release);
}

/// What the daemon said about MPI_COMM_WORLD, and this rank's number there.
pub(crate) fn set_world(world: World, rank: u32) {
    WORLD_RANK.store(rank, Ordering::Relaxed);
    WORLD_SIZE.store(world.ranks.len() as u32, Ordering::Relaxed);
    *START.lock().unwrap() = world;
}

/// As `set_world` was told.
pub(crate) fn start_of_world() -> World {
    START.lock().unwrap().clone()
}

/// The connection to the daemon, and what it says of the program's command line.
pub(crate) fn set_daemon(daemon: Connection, appnum: u32, universe: u32) {
    APPNUM.store(appnum as i32, Ordering::Relaxed);
    UNIVERSE.store(universe, Ordering::Relaxed);
    *DAEMON.lock().unwrap() = Some(daemon);
}

/// MPI has users from now on, or has none any more.
pub(crate) fn set_active(active: bool) {
    ACTIVE_NOW.store(active, Ordering::Release);
}

/// MPI_Init is over, in this thread.
pub(crate) fn begin_world_model(thread_level: i32) {
    THREAD_LEVEL.store(thread_level, Ordering::Relaxed);
    MAIN_THREAD.store(thread_id(), Ordering::Relaxed);
    PHASE.store(ACTIVE, Ordering::Release);
}

/// MPI_Finalize is over, but for what sessions use.
pub(crate) fn end_world_model() {
    PHASE.store(AFTER, Ordering::Release);
}

/// What is to be called before this rank ends the job.
pub(crate) fn set_last_words(tell: fn(Way)) {
    let _ = LAST_WORDS.set(tell);
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
    if let Some(tell) = LAST_WORDS.get() {
        // Here it can be seen where the program has made the call.
        tell(Way::Abort { code });
    }
    if let Ok(mut daemon) = DAEMON.try_lock()
        && let Some(daemon) = daemon.as_mut()
        && daemon.send(&Request::Abort { code, reason: reason.into(), group }, &[]).is_ok()
    {
        if foreign::is_foreign() {
            // Its launcher is to end with the code, too.
            foreign::abort(code & 0xff, reason);
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
    if let Some(name) = simulate::host_name() {
        return name;
    }
    nix::unistd::gethostname().map(|n| n.to_string_lossy().into_owned()).unwrap_or_else(|_| "localhost".into())
}

/// Index of this program in an MPMD command line.
pub fn appnum() -> i32 {
    APPNUM.load(Ordering::Relaxed)
}

pub fn universe_size() -> i32 {
    UNIVERSE.load(Ordering::Relaxed) as i32
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

/// As [`new_context`], for a communicator whose collectives go by messages.
pub fn new_context_without_cell() -> u32 {
    endpoint().job.new_context_without_cell()
}
