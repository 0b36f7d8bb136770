//! Stop a thread, read its registers, and walk its stack.

use super::modules::Modules;
use framehop::Unwinder;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64};
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::time::{Duration, Instant};

/// Deepest stack that is followed.
const MOST_FRAMES: usize = 128;
/// A thread that does not stop within this time sleeps where the kernel does not let it (state D).
const PATIENCE: Duration = Duration::from_millis(500);
const PAGE: u64 = 4096;

/// Why there is no stack.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    #[error("process {pid} is gone")]
    Gone { pid: i32 },
    #[error(
        "the kernel does not let this process look at process {pid} ({errno}): a debugger may be attached, or ptrace is restricted \
         (/proc/sys/kernel/yama/ptrace_scope, a container's seccomp filter)"
    )]
    Refused { pid: i32, errno: Errno },
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

/// A thread that is stopped as long as this lives.
struct Stopped(Pid);

impl Stopped {
    fn stop(tid: i32) -> Result<Stopped, StackError> {
        let thread = Pid::from_raw(tid);
        let fail = |errno| StackError::of(tid, errno);
        ptrace::seize(thread, ptrace::Options::empty()).map_err(fail)?;
        let stopped = Stopped(thread);
        ptrace::interrupt(thread).map_err(fail)?;
        let until = Instant::now() + PATIENCE;
        loop {
            match waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) if Instant::now() > until => return Err(StackError::Asleep { tid }),
                Ok(WaitStatus::StillAlive) => std::thread::sleep(Duration::from_micros(50)),
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
}

impl Memory {
    fn word(&mut self, at: u64) -> Result<u64, ()> {
        let (page, offset) = (at & !(PAGE - 1), (at % PAGE) as usize);
        if offset > PAGE as usize - 8 {
            return Err(());
        }
        let pid = self.pid;
        let bytes = self.pages.entry(page).or_insert_with(|| {
            let mut bytes = Box::new([0u8; PAGE as usize]);
            let remote = [RemoteIoVec { base: page as usize, len: PAGE as usize }];
            let read = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes[..])], &remote);
            (read == Ok(PAGE as usize)).then_some(bytes)
        });
        let bytes = bytes.as_ref().ok_or(())?;
        Ok(u64::from_ne_bytes(bytes[offset..offset + 8].try_into().map_err(drop)?))
    }
}

/// The addresses on a thread's stack: where it is, then where each frame returns to.
pub fn addresses(tid: i32, modules: &mut Modules) -> Result<Vec<u64>, StackError> {
    let stopped = Stopped::stop(tid)?;
    let registers = ptrace::getregs(stopped.0).map_err(|errno| StackError::of(tid, errno))?;
    let mut memory = Memory { pid: stopped.0, pages: BTreeMap::new() };
    let mut read = |at: u64| memory.word(at);
    let start = UnwindRegsX86_64::new(registers.rip, registers.rsp, registers.rbp);
    let mut cache = CacheX86_64::new();
    let unwinder = modules.unwinder();
    let mut frames = unwinder.iter_frames(registers.rip, start, &mut cache, &mut read);
    let mut addresses = Vec::new();
    while addresses.len() < MOST_FRAMES {
        match frames.next() {
            Ok(Some(frame)) => addresses.push(frame.address()),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(addresses)
}
