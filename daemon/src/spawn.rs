//! Start a rank: a vfork-style clone, then exec.
//!
//! The child borrows the daemon's memory until exec (CLONE_VM | CLONE_VFORK), so that starting costs the same however
//! large the daemon is; it touches nothing but its own arguments and makes only system calls. posix_spawn could not set
//! the affinity, the parent-death signal or the limits. All ranks of a job stay in the daemon's session (sched_autogroup
//! shares the machine by session, so a session per rank would upset it) and share one process group.
#![allow(unsafe_code)]

mod environment;
mod string_moves;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, CString, NulError};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use libc::{c_char, c_int, c_uint, c_void};
use vmpi_shared::control::JobSpec;
use vmpi_shared::proc;

/// Stack of the child before exec.
const STACK_BYTES: usize = 64 << 10;

/// What a child was doing when it failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Step {
    Group = 1,
    Affinity,
    Streams,
    Directory,
    Exec,
}

/// Why a rank could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("cannot start rank {rank}: no new process: {source}; use fewer ranks or raise the limit (ulimit -u)")]
    Clone { rank: u32, source: io::Error },
    #[error("cannot start rank {rank} in the directory {cwd}: {source}")]
    Directory { rank: u32, cwd: String, source: io::Error },
    #[error("cannot execute {program} (rank {rank}): {source}{hint}")]
    Exec { rank: u32, program: String, source: io::Error, hint: &'static str },
    #[error("cannot start rank {rank} on cpu {cpu}: {source}")]
    Affinity { rank: u32, cpu: u32, source: io::Error },
    #[error("cannot set up the process of rank {rank} ({step:?}): {source}")]
    Setup { rank: u32, step: Step, source: io::Error },
}

impl SpawnError {
    /// The shell's codes: 127 no such program, 126 it cannot be executed, 125 the daemon could not.
    pub fn code(&self) -> i32 {
        match self {
            SpawnError::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            SpawnError::Exec { .. } | SpawnError::Directory { .. } => 126,
            SpawnError::Clone { .. } | SpawnError::Affinity { .. } | SpawnError::Setup { .. } => 125,
        }
    }
}

/// What ranks inherit from their launcher rather than from the daemon.
#[derive(Clone, Debug, Default)]
pub struct Inherited {
    pub umask: Option<u32>,
    /// Limits that differ from the daemon's own.
    pub limits: Vec<(c_int, libc::rlimit)>,
}

impl Inherited {
    /// Read umask and limits of the launcher's process; what cannot be read stays as the daemon has it.
    pub fn from_launcher(pid: i32) -> Inherited {
        let process = proc::seen_as(pid).and_then(|seen| procfs::process::Process::new(seen).ok());
        let umask = process.and_then(|process| process.status().ok()).and_then(|status| status.umask);
        let limits = (0..16)
            .filter_map(|resource| {
                let theirs = limit_of(pid, resource)?;
                let ours = limit_of(0, resource)?;
                (theirs.rlim_cur != ours.rlim_cur || theirs.rlim_max != ours.rlim_max).then_some((resource, theirs))
            })
            .collect();
        Inherited { umask, limits }
    }
}

pub fn limit_of(pid: i32, resource: c_int) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a plain system call that writes one rlimit.
    let result = unsafe { libc::prlimit(pid, resource as _, ptr::null(), &mut limit) };
    (result == 0).then_some(limit)
}

/// Signals whose disposition in the daemon is not the default: ranks get them back to default.
fn changed_signals() -> Vec<c_int> {
    (1..=64)
        .filter(|signal| {
            // SAFETY: reads the disposition into a zeroed sigaction; glibc refuses its own two signals with an error.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                libc::sigaction(*signal, ptr::null(), &mut action) == 0 && action.sa_sigaction != libc::SIG_DFL
            }
        })
        .collect()
}

/// One program of the job, ready for execve.
struct Program {
    path: CString,
    cwd: CString,
    argv: Vec<CString>,
    /// The environment that all its ranks share.
    env: Vec<CString>,
    /// That environment as the launcher gave it.
    variables: Vec<(String, String)>,
}

/// Which process to start.
#[derive(Copy, Clone, Debug)]
pub struct Start {
    /// Number in the job.
    pub rank: u32,
    pub program: usize,
    /// Index of its core.
    pub core: u32,
    /// Rank in and size of its MPI_COMM_WORLD.
    pub world_rank: u32,
    pub world_size: u32,
    /// Number among the ranks of its world on this node, and how many those are.
    pub local_rank: u32,
    pub local_size: u32,
    /// Stop the process (SIGSTOP) when its program has been loaded and not begun.
    pub stop: bool,
}

/// A job made ready: strings encoded once, a stack allocated once.
pub struct Spawner {
    programs: Vec<Program>,
    common: Vec<CString>,
    /// All CPUs that the ranks of each core may run on, where these are more; else empty.
    masks: Vec<Vec<u32>>,
    /// CPUs of each core; the first `own_cores` of them are those of the specification's `cpus`.
    places: Vec<Vec<u32>>,
    own_cores: usize,
    v: u32,
    bind: bool,
    randomize: bool,
    inherited: Inherited,
    changed_signals: Vec<c_int>,
    stack: Vec<u128>,
    desk: Option<Desk>,
    /// Path and directory of each program, for messages.
    names: Vec<(String, String)>,
    /// Program of each of the specification's programs.
    of_app: Vec<usize>,
}

/// A rank's three standard streams.
#[derive(Copy, Clone)]
pub struct Streams<'a> {
    pub stdin: BorrowedFd<'a>,
    pub stdout: BorrowedFd<'a>,
    pub stderr: BorrowedFd<'a>,
}

/// Where and as whom ranks attach.
pub struct Identity<'a> {
    pub socket: &'a str,
    pub word: &'a str,
    pub job: u32,
}

/// A started process.
#[derive(Copy, Clone, Debug)]
pub struct Spawned {
    pub pid: i32,
    /// Its process group: the one asked for, or its own if that was gone.
    pub group: i32,
}

/// Everything the child needs, in plain pointers; lives on the parent's stack, which the child sees.
struct ChildArguments {
    path: *const c_char,
    cwd: *const c_char,
    argv: *const *const c_char,
    /// `/bin/sh PATH ARG...`, for a script without `#!`, as execvp(3) does.
    shell_argv: *const *const c_char,
    envp: *const *const c_char,
    streams: [RawFd; 3],
    /// The child shares the daemon's descriptors and needs those up to this one; -1: it has copies.
    last_fd: c_int,
    group: c_int,
    parent: c_int,
    cpus: libc::cpu_set_t,
    umask: c_int,
    limits: *const (c_int, libc::rlimit),
    limit_count: usize,
    signals: *const c_int,
    signal_count: usize,
    /// Ask to be stopped at exec.
    stop: c_int,
    /// Random addresses (ASLR).
    randomize: c_int,
    // Written by the child before exec.
    traced: c_int,
    new_group: c_int,
    failed_step: c_int,
    failed_errno: c_int,
}

impl Spawner {
    /// Encode a job's programs.
    ///
    /// # Errors
    /// A string with a NUL byte inside.
    pub fn new(spec: &JobSpec, identity: &Identity, inherited: Inherited) -> Result<Spawner, NulError> {
        let mut spawner = Spawner {
            programs: Vec::with_capacity(spec.apps.len()),
            common: environment::common(spec, identity)?,
            places: (0..spec.all_cpus().count()).map(|core| spec.place(core).collect()).collect(),
            masks: spec.masks.clone(),
            own_cores: spec.cpus.len(),
            v: spec.v,
            bind: spec.bind,
            randomize: spec.randomize,
            inherited,
            changed_signals: changed_signals(),
            desk: Desk::new(),
            stack: vec![0; STACK_BYTES / size_of::<u128>()],
            names: Vec::with_capacity(spec.apps.len()),
            of_app: Vec::new(),
        };
        for app in &spec.apps {
            let program = spawner.add_program(&app.program, &app.argv, app.env.clone(), &app.cwd)?;
            spawner.of_app.push(program);
        }
        Ok(spawner)
    }

    /// One more program, or one that is known; returns its index.
    ///
    /// # Errors
    /// A string with a NUL byte inside.
    pub fn add_program(
        &mut self,
        path: &str,
        argv: &[String],
        variables: Vec<(String, String)>,
        cwd: &str,
    ) -> Result<usize, NulError> {
        let same = |program: &Program, name: &(String, String)| {
            (name.0 == path && name.1 == cwd && program.variables == variables)
                && program.argv.iter().map(|arg| arg.as_bytes()).eq(argv.iter().map(String::as_bytes))
        };
        if let Some(known) = self.programs.iter().zip(&self.names).position(|(program, name)| same(program, name)) {
            return Ok(known);
        }
        let program = Program {
            path: CString::new(path)?,
            cwd: CString::new(cwd)?,
            argv: argv.iter().map(|arg| CString::new(arg.as_str())).collect::<Result<_, _>>()?,
            env: environment::of_program(&variables)?,
            variables,
        };
        self.programs.push(program);
        self.names.push((path.to_string(), cwd.to_string()));
        Ok(self.programs.len() - 1)
    }

    /// The program of number `app` of the specification's.
    pub fn program_of(&self, app: usize) -> usize {
        self.of_app[app]
    }

    /// The environment of a program, as it was given.
    pub fn variables_of(&self, program: usize) -> &[(String, String)] {
        &self.programs[program].variables
    }

    /// The path of a program.
    pub fn path_of(&self, program: usize) -> &str {
        &self.names[program].0
    }

    /// Start a rank in process group `group` (0: a new one). Returns when the child has called exec.
    ///
    /// # Errors
    /// What failed; no process is left then.
    pub fn spawn(&mut self, start: &Start, group: i32, streams: Streams) -> Result<Spawned, SpawnError> {
        let rank = start.rank;
        let program = &self.programs[start.program];
        let mut own = environment::of_rank(start);
        let place = &self.places[start.core as usize];
        let is_shared = self.bind && self.v > 1 && self.masks.is_empty();
        own.extend(environment::of_threads(place, is_shared, &program.variables));
        let envp = pointers(program.env.iter().chain(&self.common).chain(&own));
        let argv = pointers(&program.argv);
        let mut shell_argv = vec![c"/bin/sh".as_ptr(), program.path.as_ptr()];
        shell_argv.extend(argv.iter().skip(1));
        if argv.len() == 1 {
            shell_argv.push(ptr::null());
        }
        let given = [streams.stdin, streams.stdout, streams.stderr];
        let laid_out = self.desk.as_ref().and_then(|desk| desk.lay_out(given));
        let mut arguments = ChildArguments {
            path: program.path.as_ptr(),
            cwd: program.cwd.as_ptr(),
            argv: argv.as_ptr(),
            shell_argv: shell_argv.as_ptr(),
            envp: envp.as_ptr(),
            streams: laid_out.unwrap_or(given.map(|fd| fd.as_raw_fd())),
            last_fd: laid_out.map_or(-1, |fds| fds[0].max(fds[1]).max(fds[2])),
            group,
            parent: std::process::id() as c_int,
            cpus: self.cpu_set(start.core),
            umask: self.inherited.umask.map_or(-1, |umask| umask as c_int),
            limits: self.inherited.limits.as_ptr(),
            limit_count: self.inherited.limits.len(),
            signals: self.changed_signals.as_ptr(),
            signal_count: self.changed_signals.len(),
            stop: c_int::from(start.stop),
            randomize: c_int::from(self.randomize),
            traced: 0,
            new_group: 0,
            failed_step: 0,
            failed_errno: 0,
        };
        debug_assert!(arguments.streams.iter().all(|fd| *fd > 2), "standard streams are dup'ed onto 0, 1, 2 in order");
        let pid = clone_and_wait_for_exec(&mut self.stack, &mut arguments);
        if laid_out.is_some()
            && let Some(desk) = &self.desk
        {
            desk.clear();
        }
        let pid = pid.map_err(|source| SpawnError::Clone { rank, source })?;
        if arguments.failed_step == 0 {
            if arguments.traced != 0 {
                leave_stopped(pid);
            }
            // One that was killed before it had a group says 0, which to whoever signals a group means the daemon's own.
            let group = [arguments.new_group, group].into_iter().find(|group| *group > 0).unwrap_or(pid);
            return Ok(Spawned { pid, group });
        }
        // The child is a zombie of ours: collect it before anybody can take it for a rank that ended.
        while let Err(nix::errno::Errno::EINTR) = nix::sys::wait::waitpid(nix::unistd::Pid::from_raw(pid), None) {}
        Err(self.explain(start, arguments.failed_step, arguments.failed_errno))
    }

    fn explain(&self, start: &Start, step: c_int, errno: c_int) -> SpawnError {
        let source = io::Error::from_raw_os_error(errno);
        let rank = start.rank;
        let (program, cwd) = &self.names[start.program];
        match step {
            s if s == Step::Directory as c_int => SpawnError::Directory { rank, cwd: cwd.clone(), source },
            s if s == Step::Exec as c_int => {
                let hint = match source.kind() {
                    io::ErrorKind::NotFound if std::path::Path::new(program).exists() => {
                        " (the file is there, but its interpreter or loader is not)"
                    }
                    _ => "",
                };
                SpawnError::Exec { rank, program: program.clone(), source, hint }
            }
            s if s == Step::Affinity as c_int => {
                SpawnError::Affinity { rank, cpu: self.places[start.core as usize][0], source }
            }
            s if s == Step::Group as c_int => SpawnError::Setup { rank, step: Step::Group, source },
            _ => SpawnError::Setup { rank, step: Step::Streams, source },
        }
    }

    /// The core's own cpu if bound, else all cpus of the job: those of the specification for the ranks placed on them.
    fn cpu_set(&self, core: u32) -> libc::cpu_set_t {
        // SAFETY: all-zero is the empty cpu_set_t.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        let core = core as usize;
        let all = if core < self.own_cores { &self.places[..self.own_cores] } else { &self.places[..] };
        let own = self.masks.get(core).unwrap_or(&self.places[core]);
        let places = if self.bind { std::slice::from_ref(own) } else { all };
        for cpu in places.iter().flatten().filter(|cpu| **cpu < libc::CPU_SETSIZE as u32) {
            // SAFETY: the bit lies inside the set.
            unsafe { libc::CPU_SET(*cpu as usize, &mut set) };
        }
        set
    }
}

/// Where the streams of the next child lie, below what the daemon opens for its ranks: the child needs no descriptor beyond. Without it
/// the child gets a copy of all, several for each rank of the job, and the next costs more than the last.
struct Desk {
    places: [OwnedFd; 3],
    /// What lies there otherwise.
    nothing: OwnedFd,
}

impl Desk {
    /// `None` if no descriptor is free.
    fn new() -> Option<Desk> {
        let nothing = || std::fs::File::open("/dev/null").ok().map(OwnedFd::from);
        Some(Desk { places: [nothing()?, nothing()?, nothing()?], nothing: nothing()? })
    }

    fn lay_out(&self, streams: [BorrowedFd; 3]) -> Option<[RawFd; 3]> {
        for (place, stream) in self.places.iter().zip(streams) {
            // SAFETY: two open descriptors; the place is used for nothing else.
            if unsafe { libc::dup3(stream.as_raw_fd(), place.as_raw_fd(), libc::O_CLOEXEC) } < 0 {
                self.clear();
                return None;
            }
        }
        Some(self.places.each_ref().map(OwnedFd::as_raw_fd))
    }

    /// A pipe that is held here would not end with its rank.
    fn clear(&self) {
        for place in &self.places {
            // SAFETY: as above. It cannot fail: both are open.
            unsafe { libc::dup3(self.nothing.as_raw_fd(), place.as_raw_fd(), libc::O_CLOEXEC) };
        }
    }
}

/// A NULL-terminated array of the strings' addresses.
fn pointers<'a>(strings: impl IntoIterator<Item = &'a CString>) -> Vec<*const c_char> {
    strings.into_iter().map(|s| CStr::as_ptr(s)).chain([ptr::null()]).collect()
}

fn clone_and_wait_for_exec(stack: &mut [u128], arguments: &mut ChildArguments) -> io::Result<i32> {
    // SAFETY: sigset_t is plain data that sigfillset fills.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    let top = stack.as_mut_ptr_range().end.cast::<c_void>();
    // SAFETY: the child runs `child` on its own, unused and large enough stack (u128: aligned to 16) while this thread is
    // suspended (CLONE_VFORK); `arguments` and what it points to outlive that. All signals are blocked meanwhile,
    // so that no handler of the daemon runs in the child, whose memory is the daemon's.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let files = if arguments.last_fd < 0 { 0 } else { libc::CLONE_FILES };
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | files | libc::SIGCHLD;
        let pid = libc::clone(child, top, flags, ptr::from_mut(arguments).cast());
        let error = io::Error::last_os_error();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        if pid < 0 { Err(error) } else { Ok(pid) }
    }
}

/// A traced child has called exec: let go of it as a stopped process.
fn leave_stopped(pid: i32) {
    let mut status = 0;
    // SAFETY: system calls on plain values that write only `info` and `status`. The stop has come or is about to; a child that was
    // killed instead is left to be reaped.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT;
        while libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) != 0
            && *libc::__errno_location() == libc::EINTR
        {}
        if info.si_code == libc::CLD_TRAPPED && libc::waitpid(pid, &mut status, libc::WUNTRACED) == pid {
            libc::ptrace(libc::PTRACE_DETACH, pid, 0, libc::SIGSTOP);
        }
    }
}

/// The argument of personality(2) that changes nothing.
const ASK_PERSONALITY: libc::c_ulong = 0xffff_ffff;

/// The child's life before exec: system calls only.
extern "C" fn child(arguments: *mut c_void) -> c_int {
    // SAFETY: `clone_and_wait_for_exec` passes its exclusive, live ChildArguments; the parent is suspended.
    let a = unsafe { &mut *arguments.cast::<ChildArguments>() };
    // SAFETY: only system calls on plain values and on pointers that `Spawner::spawn` keeps alive; nothing is allocated.
    unsafe {
        for at in 0..a.signal_count {
            libc::signal(*a.signals.add(at), libc::SIG_DFL);
        }
        // The daemon's death is the rank's death, also if it happened just now.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != a.parent {
            libc::_exit(125);
        }
        // Before the first descriptor is changed. A kernel before 5.9 copies them all. (glibc has a function for it since 2.34.)
        let unshare = libc::CLOSE_RANGE_UNSHARE;
        if a.last_fd >= 0
            && libc::syscall(libc::SYS_close_range, a.last_fd as c_uint + 1, c_uint::MAX, unshare) != 0
            && libc::unshare(libc::CLONE_FILES) != 0
        {
            return fail(a, Step::Streams);
        }
        // The group is gone if all its members ended already; then start another.
        if libc::setpgid(0, a.group) != 0 && libc::setpgid(0, 0) != 0 {
            return fail(a, Step::Group);
        }
        a.new_group = libc::getpgrp();
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &a.cpus) != 0 {
            return fail(a, Step::Affinity);
        }
        for (to, from) in a.streams.iter().enumerate() {
            if libc::dup2(*from, to as c_int) < 0 {
                return fail(a, Step::Streams);
            }
        }
        if libc::chdir(a.cwd) != 0 {
            return fail(a, Step::Directory);
        }
        if a.umask >= 0 {
            libc::umask(a.umask as libc::mode_t);
        }
        for at in 0..a.limit_count {
            let (resource, limit) = &*a.limits.add(at);
            libc::prlimit(0, *resource as _, limit, ptr::null_mut());
        }
        if a.randomize == 0 {
            // A filter of system calls may refuse it: then the ranks only switch a little slower.
            let now = libc::personality(ASK_PERSONALITY);
            if now >= 0 {
                libc::personality((now | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong);
            }
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        // Traced by the daemon, it stops at exec; where ptrace is forbidden it runs on.
        a.traced = c_int::from(a.stop != 0 && libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0);
        libc::execve(a.path, a.argv, a.envp);
        if *libc::__errno_location() == libc::ENOEXEC {
            libc::execve(c"/bin/sh".as_ptr(), a.shell_argv, a.envp);
            *libc::__errno_location() = libc::ENOEXEC;
        }
        fail(a, Step::Exec)
    }
}

fn fail(a: &mut ChildArguments, step: Step) -> c_int {
    a.failed_step = step as c_int;
    // SAFETY: errno of the thread, which the child shares with the suspended parent; then the child ends.
    unsafe {
        a.failed_errno = *libc::__errno_location();
        libc::_exit(127)
    }
}
