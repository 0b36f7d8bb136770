//! Stop a thread, read its registers, and walk its stack.

use super::modules::Modules;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use framehop::{FrameAddress, Unwinder};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};
use vmpi_shared::crash::Registers;

/// Deepest stack that is followed.
pub const MOST_FRAMES: usize = 128;
/// A thread that has slept for so long where the kernel does not let it stop (state D) will not; one that has another tracer for so
/// long is not only being looked at by another vmpictl or vmpirun, which takes about a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);
/// A thread stops when it gets a CPU, which takes as long as others have it; and so does another that looks at it.
const MOST_PATIENCE: Duration = Duration::from_secs(10);
/// Most have stopped by then.
const LONG_STOP: Duration = Duration::from_millis(10);
const PAGE: u64 = 4096;

/// Why there is no stack.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("process {pid} is gone")]
    Gone { pid: i32 },
    #[error(
        "the kernel does not let this process look at process {pid} ({errno}): ptrace is restricted \
         (/proc/sys/kernel/yama/ptrace_scope, a container's seccomp filter)"
    )]
    Refused { pid: i32, errno: Errno },
    #[error(
        "process {tracer} traces process {pid} (a debugger, or strace?), and only one can: end it, or ask it for the stack"
    )]
    Traced { pid: i32, tracer: i32 },
    #[error("thread {tid} did not stop: it sleeps in the kernel")]
    Asleep { tid: i32 },
    #[error("the memory map of process {pid} cannot be read: {source}")]
    Maps { pid: i32, source: std::io::Error },
}

impl StackError {
    fn of(pid: i32, errno: Errno) -> StackError {
        match errno {
            Errno::ESRCH => StackError::Gone { pid },
            errno => StackError::Refused { pid, errno },
        }
    }
}

/// The threads of a process, its first one first.
pub fn threads(pid: i32, all: bool) -> Result<Vec<i32>, StackError> {
    if !all {
        return Ok(vec![pid]);
    }
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| StackError::Gone { pid })?;
    let mut tids: Vec<i32> = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    tids.sort_by_key(|tid| (*tid != pid, *tid));
    Ok(tids)
}

/// The process that traces this thread.
fn tracer(tid: i32) -> Option<i32> {
    let status = procfs::process::Process::new(tid).and_then(|process| process.status()).ok()?;
    Some(status.tracerpid).filter(|tracer| *tracer != 0)
}

fn patience_with(tracer: i32) -> Duration {
    if only_looks(tracer) { MOST_PATIENCE } else { PATIENCE }
}

/// Does this thread sleep where no signal reaches it?
fn is_unreachable(tid: i32) -> bool {
    procfs::process::Process::new(tid).and_then(|process| process.stat()).is_ok_and(|stat| stat.state == 'D')
}

/// Is this another process that looks where a rank is, and not a debugger?
fn only_looks(tracer: i32) -> bool {
    let name = procfs::process::Process::new(tracer).and_then(|process| process.stat()).map(|stat| stat.comm);
    name.is_ok_and(|name| name == "vmpirun" || name == "vmpictl")
}

/// A thread that is stopped as long as this lives.
struct Stopped(Pid);

impl Stopped {
    fn stop(tid: i32) -> Result<Stopped, StackError> {
        let thread = Pid::from_raw(tid);
        let fail = |errno| StackError::of(tid, errno);
        let begun = Instant::now();
        let mut refusals_untraced = 0;
        while let Err(errno) = ptrace::seize(thread, ptrace::Options::empty()) {
            match tracer(tid) {
                Some(tracer) if errno == Errno::EPERM && begun.elapsed() < patience_with(tracer) => {
                    refusals_untraced = 0
                }
                Some(tracer) if errno == Errno::EPERM => return Err(StackError::Traced { pid: tid, tracer }),
                // Its tracer may have gone between the two looks.
                None if errno == Errno::EPERM && refusals_untraced < 2 => refusals_untraced += 1,
                _ => return Err(fail(errno)),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let stopped = Stopped(thread);
        ptrace::interrupt(thread).map_err(fail)?;
        let begun = Instant::now();
        // Since when it has not been seen anywhere else.
        let mut unreachable = begun;
        loop {
            match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if begun.elapsed() < LONG_STOP => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                Ok(WaitStatus::StillAlive) => {
                    if !is_unreachable(tid) {
                        unreachable = Instant::now();
                    }
                    if unreachable.elapsed() > PATIENCE || begun.elapsed() > MOST_PATIENCE {
                        return Err(StackError::Asleep { tid });
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(WaitStatus::Exited(..) | WaitStatus::Signaled(..)) => return Err(StackError::Gone { pid: tid }),
                Ok(_) => return Ok(stopped),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(fail(errno)),
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = ptrace::detach(self.0, None);
    }
}

/// The process's memory, a page at a time.
struct Memory {
    pid: Pid,
    pages: BTreeMap<u64, Option<Box<[u8; PAGE as usize]>>>,
    /// /proc/PID/mem, for where process_vm_readv is refused (seccomp).
    file: Option<std::fs::File>,
}

impl Memory {
    fn of(pid: Pid) -> Memory {
        Memory { pid, pages: BTreeMap::new(), file: std::fs::File::open(format!("/proc/{pid}/mem")).ok() }
    }

    fn word(&mut self, at: u64) -> Result<u64, ()> {
        let (page, offset) = (at & !(PAGE - 1), (at % PAGE) as usize);
        if offset > PAGE as usize - 8 {
            return Err(());
        }
        let (pid, file) = (self.pid, &self.file);
        let bytes = self.pages.entry(page).or_insert_with(|| {
            let mut bytes = Box::new([0u8; PAGE as usize]);
            let remote = [RemoteIoVec { base: page as usize, len: PAGE as usize }];
            let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes[..])], &remote);
            let is_read = read == Ok(PAGE as usize)
                || file.as_ref().is_some_and(|file| file.read_exact_at(&mut bytes[..], page).is_ok());
            is_read.then_some(bytes)
        });
        let bytes = bytes.as_ref().ok_or(())?;
        Ok(u64::from_ne_bytes(bytes[offset..offset + 8].try_into().map_err(drop)?))
    }

    /// Do these nine bytes lie there?
    fn starts_with(&mut self, at: u64, bytes: &[u8; 9]) -> bool {
        let [first, last] = [self.word(at), self.word(at + 1)].map(|word| word.map(u64::to_ne_bytes));
        first.is_ok_and(|first| first == bytes[..8]) && last.is_ok_and(|last| last[7] == bytes[8])
    }

    /// The registers of what a signal has interrupted whose frame lies there.
    fn interrupted(&mut self, frame: u64) -> Option<Registers> {
        let mut word = |offset: u64| self.word(frame.wrapping_add(offset)).ok();
        Some(Registers { ip: word(KEPT_RIP)?, sp: word(KEPT_RSP)?, bp: word(KEPT_RBP)? })
    }
}

/// A frame: the code that it executes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct At {
    pub address: u64,
    /// It is where a call returns to: the call lies before it. Else the frame is the innermost one, or a signal has interrupted it there.
    pub returns: bool,
}

/// What a signal handler returns to, which ends the signal: `mov $15, %rax; syscall`, by which debuggers know it, too.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
// Where its frame has the registers of what has been interrupted (`gregs` of ucontext_t).
const KEPT_RBP: u64 = 120;
const KEPT_RSP: u64 = 160;
const KEPT_RIP: u64 = 168;

/// The addresses on a thread's stack, the innermost first.
///
/// By a thread of its own: what that still traces when it ends, the kernel lets go. One that has not stopped in time cannot be let go otherwise; it would
/// stop later, and if killed then be a zombie of which its parent hears nothing.
pub fn addresses(tid: i32, modules: &Modules) -> Result<Vec<At>, StackError> {
    let taken = std::thread::scope(|scope| scope.spawn(|| stopped_addresses(tid, modules)).join());
    taken.unwrap_or(Err(StackError::Gone { pid: tid }))
}

fn stopped_addresses(tid: i32, modules: &Modules) -> Result<Vec<At>, StackError> {
    let stopped = Stopped::stop(tid)?;
    let registers = ptrace::getregs(stopped.0).map_err(|errno| StackError::of(tid, errno))?;
    let registers = Registers { ip: registers.rip, sp: registers.rsp, bp: registers.rbp };
    Ok(walk(stopped.0, registers, modules))
}

/// The same of a thread that waits, with these registers, in a process that does not change meanwhile.
pub fn addresses_at(pid: i32, registers: Registers, modules: &Modules) -> Vec<At> {
    walk(Pid::from_raw(pid), registers, modules)
}

fn walk(pid: Pid, mut registers: Registers, modules: &Modules) -> Vec<At> {
    let mut memory = Memory::of(pid);
    let mut addresses = Vec::new();
    if modules.find(registers.ip).is_none() {
        // No code: something has called an address that is none. Where it would return to, lies on top of the stack.
        addresses.push(At { address: registers.ip, returns: false });
        match memory.word(registers.sp) {
            Ok(caller) if modules.find(caller).is_some() => registers.ip = caller,
            _ => return addresses,
        }
        registers.sp += 8;
    }
    addresses.push(At { address: registers.ip, returns: !addresses.is_empty() });
    let mut kept = UnwindRegsX86_64::new(registers.ip, registers.sp, registers.bp);
    let mut at = FrameAddress::from_instruction_pointer(registers.ip);
    let mut cache = CacheX86_64::new();
    let unwinder = modules.unwinder();
    while addresses.len() < MOST_FRAMES {
        let mut read = |at: u64| memory.word(at);
        let Ok(Some(address)) = unwinder.unwind_frame(at, &mut kept, &mut cache, &mut read) else { break };
        let Some(returns_to) = FrameAddress::from_return_address(address) else { break };
        addresses.push(At { address, returns: true });
        at = returns_to;
        if memory.starts_with(address, &SIGNAL_RETURN) {
            let Some(interrupted) = memory.interrupted(kept.sp()) else { break };
            addresses.push(At { address: interrupted.ip, returns: false });
            kept = UnwindRegsX86_64::new(interrupted.ip, interrupted.sp, interrupted.bp);
            at = FrameAddress::from_instruction_pointer(interrupted.ip);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::sync::mpsc::channel;

    /// A process that sleeps, ended with the test.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
        }

        fn pid(&self) -> i32 {
            self.0.id() as i32
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Hold `pid` for `time` as another process that looks would, and go on as soon as it is held.
    fn held(pid: i32, time: Duration) -> std::thread::JoinHandle<()> {
        let (say, held) = channel();
        let holder = std::thread::spawn(move || {
            let _stopped = Stopped::stop(pid).unwrap();
            say.send(()).unwrap();
            std::thread::sleep(time);
        });
        held.recv().unwrap();
        holder
    }

    #[test]
    fn two_may_look_at_one_process() {
        let sleeper = Sleeper::start();
        for _ in 0..20 {
            let holder = held(sleeper.pid(), Duration::from_millis(5));
            Stopped::stop(sleeper.pid()).unwrap();
            holder.join().unwrap();
        }
    }

    #[test]
    fn a_debugger_is_named() {
        let sleeper = Sleeper::start();
        let holder = held(sleeper.pid(), 4 * PATIENCE);
        let refused = Stopped::stop(sleeper.pid()).err().unwrap();
        assert!(
            matches!(refused, StackError::Traced { pid, tracer } if pid == sleeper.pid() && tracer != 0),
            "{refused}"
        );
        holder.join().unwrap();
    }
}
