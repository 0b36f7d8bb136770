//! A program that another MPI's launcher has started: Hydra's mpiexec, srun, PRRTE's or Open MPI's mpirun.
//!
//! Its processes are ranks of one job of vmpi's all the same, each with the number that the launcher gives it. They find each other by the launcher's
//! own means ([`pmi`], [`pmix`]: size, rank, and a table in which each says where it is); the first of them starts vmpirun ([`shepherd`]), whose
//! vmpid starts a stand-in for each ([`vmpi_shared::stand_in`]); a stand-in leads its process to the place in the job. The launcher keeps its
//! processes as they are: their streams, signals and exit codes are its affair, those of the job (a death, a deadlock, MPI_Abort) vmpid's.
//!
//! Death story: what vmpid ends, the kernel ends here, when the stand-in's end of the connection closes (`guard`). What the launcher ends, vmpid
//! sees, since it watches who has attached. If vmpirun does not come up, the first rank says why and ends, and the launcher ends the others; where it does
//! not, they give up after [`PATIENCE`].

mod pmi;
mod pmix;
mod shepherd;

use crate::errors::{Class, Error, Result, fail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;
use std::ffi::{c_int, c_void};
use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vmpi_shared::control::{Connection, env};
use vmpi_shared::runtime_dir;
use vmpi_shared::stand_in::{self, Place, Taken};

/// A stand-in must come in this time.
const PATIENCE: Duration = Duration::from_secs(90);
/// `0` in the environment: a program that another launcher has started is left alone, as it was before.
const VARIABLE: &str = "VMPI_FOREIGN";

/// The launcher, while it wants to hear of this process.
static WIRE: Mutex<Option<Box<dyn Wire + Send>>> = Mutex::new(None);
/// The process that another launcher has started as a rank; 0: none.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Was this rank started by another MPI's launcher?
pub fn is_foreign() -> bool {
    PROCESS.load(Ordering::Relaxed) != 0
}

/// The rank has left MPI: its launcher takes an end without this for a failure of the whole job.
pub fn leave() {
    if let Some(mut wire) = WIRE.lock().ok().and_then(|mut wire| wire.take()) {
        // If it is gone, the job is, too.
        let _ = wire.finish();
    }
}

/// The job ends with this code, so that the launcher does, too, which may not leave vmpirun the time to say why.
pub fn abort(code: i32, reason: &str) {
    if let Some(mut wire) = WIRE.try_lock().ok().and_then(|mut wire| wire.take()) {
        let _ = std::io::stderr().write_all(format!("vmpi: {reason}\n").as_bytes());
        wire.abort(code);
    }
}

/// The process ends by `exit`, in the middle of MPI.
extern "C" fn at_exit(status: c_int, _: *mut c_void) {
    // A child of a fork has inherited it.
    if PROCESS.load(Ordering::Relaxed) == std::process::id() {
        let code = if status & 0xff == 0 { 1 } else { status & 0xff };
        abort(code, &format!("this process ends with code {status} in the middle of MPI"));
    }
}

unsafe extern "C" {
    /// glibc's.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// How the processes of a launcher find each other.
trait Wire {
    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    /// What the launcher calls the job: the same in all processes, and no other job's.
    fn job(&self) -> String;
    /// Say something to all; `fence` lets them see it.
    fn put(&mut self, key: &str, value: &str) -> std::result::Result<(), String>;
    fn fence(&mut self) -> std::result::Result<(), String>;
    fn get(&mut self, rank: u32, key: &str) -> std::result::Result<String, String>;
    /// The ranks have met. False: the launcher wants to hear of the end, too (`finish`, `abort`).
    fn is_done(&self) -> bool;
    /// The job ends with this code.
    fn abort(&mut self, code: i32);
    /// The launcher is not needed any more.
    fn finish(&mut self) -> std::result::Result<(), String>;
}

/// What launchers say about the size of the job, beside their wires, and the rank there.
const SIZES: &[(&str, &str)] = &[
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("PALS_SIZE", "PALS_RANKID"),
    ("FLUX_JOB_SIZE", "FLUX_TASK_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
];

/// Become a rank of the job that another launcher has started, if one has. False: this process is alone.
///
/// # Errors
/// `Class::Other`: it has, and the job does not come up.
pub fn join() -> Result<bool> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
    if std::env::var(VARIABLE).is_ok_and(|value| value == "0") {
        return Ok(false);
    }
    let failed = |what: &str, why: String| Error::new(Class::Other, format!("{what}: {why}"));
    let by_pmi = std::env::var("PMI_FD").is_ok() && number("PMI_SIZE").is_none_or(|size| size > 1);
    let mut wire: Box<dyn Wire + Send> = if by_pmi {
        Box::new(pmi::Pmi::start().map_err(|why| failed("the launcher's process manager (PMI) does not answer", why))?)
    } else if std::env::var("PMIX_NAMESPACE").is_ok() && std::env::var("PMIX_RANK").is_ok() {
        match pmix::Pmix::start() {
            Ok(wire) => Box::new(wire),
            Err(why) => {
                return fail(Class::Other, format!("the launcher's process manager (PMIx) cannot be reached: {why}"));
            }
        }
    } else {
        warn(number);
        return Ok(false);
    };
    if wire.size() <= 1 {
        wire.finish().map_err(|why| failed("the launcher's process manager", why))?;
        return Ok(false);
    }
    take_place(&mut *wire).map_err(|why| {
        let (rank, size) = (wire.rank(), wire.size());
        failed(&format!("rank {rank} of {size} that another launcher has started"), why)
    })?;
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    if !wire.is_done() {
        *WIRE.lock().unwrap() = Some(wire);
        // SAFETY: the function is there as long as this library, which is never unloaded.
        unsafe { on_exit(at_exit, std::ptr::null_mut()) };
    }
    Ok(true)
}

/// Several processes were started, and by nobody who could tell them of each other: each is rank 0 of 1.
fn warn(number: impl Fn(&str) -> Option<u32>) {
    let Some((name, size, rank)) = SIZES.iter().find_map(|(size, rank)| {
        let many = number(size).filter(|many| *many > 1)?;
        Some((*size, many, number(rank)))
    }) else {
        return;
    };
    if rank.unwrap_or(0) == 0 {
        let text = format!(
            "vmpi: {name}={size} says that {size} processes were started, but not how they find each other: each is \"rank 0 of 1\". Start the program with \
             vmpirun -n {size}, or (srun) with --mpi=pmi2; {VARIABLE}=0 in the environment says that it is meant so\n"
        );
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

/// Meet the others, and take the place that the stand-in has kept.
fn take_place(wire: &mut dyn Wire) -> std::result::Result<(), String> {
    let (rank, size) = (wire.rank(), wire.size());
    let prefix = stand_in::prefix(&private_dir()?, &stand_in::short_name(&wire.job()));
    let socket = stand_in::socket(&prefix, rank);
    let listener = listen(&socket)?;
    let here = shepherd::Seat { host: own_host(), cpus: own_cpus() };
    wire.put(&key(rank), &here.to_string())?;
    wire.fence()?;
    let shepherd = if rank == 0 {
        let seats = (0..size).map(|rank| wire.get(rank, &key(rank)).and_then(|text| shepherd::Seat::parse(&text)));
        let seats = seats.collect::<std::result::Result<Vec<_>, String>>()?;
        Some(shepherd::start(&prefix, &seats)?)
    } else {
        None
    };
    let stream = await_stand_in(&listener, shepherd.as_ref().map(AsFd::as_fd));
    // Nobody else is to come, and where the ranks are has been read.
    let _ = fs::remove_file(&socket);
    if rank == 0 {
        let _ = fs::remove_file(shepherd::rank_file(&prefix));
    }
    let mut connection = Connection::new(stream?);
    let place = match connection.receive::<Place>() {
        Ok(Some((place, _))) => place,
        Ok(None) => return Err("its stand-in has gone".into()),
        Err(error) => return Err(format!("its stand-in cannot be heard: {error}")),
    };
    let own = own_descriptor().map_err(|error| format!("cannot open a descriptor of this process: {error}"))?;
    let taken = Taken { pid: std::process::id() as i32 };
    connection.send(&taken, &[own.as_raw_fd()]).map_err(|error| format!("its stand-in cannot be told: {error}"))?;
    if wire.is_done() {
        wire.finish()?;
    }
    become_rank(&place);
    guard(connection.stream()).map_err(|error| format!("its stand-in cannot be watched: {error}"))?;
    // Open as long as this process lives.
    std::mem::forget(connection);
    Ok(())
}

fn key(rank: u32) -> String {
    format!("vmpi-{rank}")
}

fn private_dir() -> std::result::Result<PathBuf, String> {
    let dir = runtime_dir::default_path();
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir) {
        Ok(()) if runtime_dir::is_private(&dir) => Ok(dir),
        Ok(()) => Err(format!(
            "{} is not a directory of this user's alone; set {} to one that is",
            dir.display(),
            env::RUNTIME_DIR
        )),
        Err(error) => Err(format!("cannot make the directory {}: {error}", dir.display())),
    }
}

fn listen(socket: &Path) -> std::result::Result<UnixListener, String> {
    // One that a job of the same name has left, whose processes were killed.
    let _ = fs::remove_file(socket);
    UnixListener::bind(socket).map_err(|error| format!("cannot listen at {}: {error}", socket.display()))
}

/// The connection of the stand-in; `shepherd`: closed by whoever was to start it, if that ends.
fn await_stand_in(
    listener: &UnixListener,
    shepherd: Option<std::os::fd::BorrowedFd<'_>>,
) -> std::result::Result<UnixStream, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut fds = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        fds.extend(shepherd.map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(format!("vmpi's job did not come up in {} s (the first rank says why)", PATIENCE.as_secs()));
        }
        let timeout = PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(format!("cannot wait: {error}")),
        }
        let happened = |fd: &PollFd| fd.revents().is_some_and(|events| !events.is_empty());
        if happened(&fds[0]) {
            let (stream, _) = listener.accept().map_err(|error| format!("cannot accept its stand-in: {error}"))?;
            let peer = getsockopt(&stream, PeerCredentials).map_err(|error| error.to_string())?;
            if peer.uid() == nix::unistd::geteuid().as_raw() {
                return Ok(stream);
            }
        } else if fds.get(1).is_some_and(happened) {
            return Err("vmpirun, which was to start the job, has ended (it says why)".into());
        }
    }
}

/// What a process that vmpid starts finds in its environment and in its affinity.
fn become_rank(place: &Place) {
    for (name, value) in &place.variables {
        // SAFETY: MPI does not allow other threads to use the environment during MPI_Init any more than Open MPI and MPICH, which set it there, too.
        unsafe { std::env::set_var(name, value) };
    }
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| ["PMI_", "PMIX_", "HYDI_"].iter().any(|prefix| name.starts_with(prefix))) {
            // SAFETY: as above. What this process starts would speak over a descriptor that is closed.
            unsafe { std::env::remove_var(&name) };
        }
    }
    let mut set = CpuSet::new();
    let known = place.cpus.iter().try_for_each(|cpu| set.set(*cpu as usize)).is_ok();
    if known && !place.cpus.is_empty() {
        for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            let thread = task.file_name().to_str().and_then(|name| name.parse().ok());
            // One that ends meanwhile needs none.
            let _ = thread.map(|thread| sched_setaffinity(Pid::from_raw(thread), &set));
        }
    }
}

/// The kernel ends this process when the other end of the stream is closed.
fn guard(stream: &UnixStream) -> std::io::Result<()> {
    /// fcntl's, which the libc crate lacks.
    const F_SETSIG: libc::c_int = 10;
    let fd = stream.as_raw_fd();
    // SAFETY: fcntl on a descriptor of ours, with numbers.
    let done = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETOWN, libc::getpid()) != -1
            && libc::fcntl(fd, F_SETSIG, libc::SIGKILL) != -1
            && flags != -1
            && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC) != -1
    };
    if !done {
        return Err(std::io::Error::last_os_error());
    }
    // It may have been closed before.
    let mut fds = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    if poll(&mut fds, PollTimeout::ZERO).is_ok_and(|count| count > 0) {
        return Err(std::io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

fn own_descriptor() -> std::io::Result<OwnedFd> {
    // SAFETY: a system call with two numbers, which returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn own_host() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

fn own_cpus() -> Vec<u32> {
    let set = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap_or(false)).map(|cpu| cpu as u32).collect()
}
