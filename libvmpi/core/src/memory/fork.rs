//! What fork needs of memory that lies in the file: the child has to have its own.
//!
//! - If nobody else may write to it meanwhile, and no device has been opened since that may have its pages, and fork is not called from inside MPI, all of it is this process's own again before fork. What was laid open unasked stays so: a program that
//!   forks is none for this.
//! - Otherwise the child gets a copy before fork returns in it, or is ended; the parent waits for that.
//! - What starts a program at once (posix_spawn, system, popen, vfork) is none of this: it does not return into this program.
//! - A process made by the bare system call has no memory there, and ends by a signal if it uses it.

use super::blocks;
use super::file::{Area, MemoryFile};
use super::{FILE, HEAP, Heap, OPEN, REFUSED, WANTED, Wanted, is_alone, is_quiet};
use crate::{lock, process};
use nix::fcntl::OFlag;
use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// From before fork until the child has its memory: nothing may be allocated or given back then, because both may have the same heap.
struct Forking {
    /// One thread at a time: a child of another's fork would hold this one's pipe for as long as it lives.
    _one: MutexGuard<'static, ()>,
    /// `None`: it could not be had, so no child may go on.
    ready: Option<Ready>,
}

struct Ready {
    file: &'static MemoryFile,
    areas: Vec<Area>,
    /// Ends when nobody holds the other end any more.
    end: File,
    begin: File,
}

static ONE: Mutex<()> = Mutex::new(());

thread_local! {
    static FORKING: Cell<Option<Forking>> = const { Cell::new(None) };
}

fn take() -> Option<Forking> {
    FORKING.try_with(Cell::take).ok().flatten()
}

/// To be called before memory is moved.
pub(super) fn prepare() -> std::io::Result<()> {
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    match unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } {
        0 => Ok(()),
        _ => Err(ErrorKind::OutOfMemory.into()),
    }
}

impl Ready {
    fn new(file: &'static MemoryFile, areas: Vec<Area>) -> Option<Ready> {
        let (end, begin) = nix::unistd::pipe2(OFlag::O_CLOEXEC).ok()?;
        areas.iter().try_for_each(|area| area.pass_on(true)).ok()?;
        Some(Ready { file, areas, end: end.into(), begin: begin.into() })
    }
}

impl Heap {
    fn take_all_back(&mut self) {
        for area in self.file.areas().unwrap_or_default() {
            // What cannot be is copied by the child.
            let _ = self.file.take_back(&area);
        }
        // What is wrong with it shows in the question for what is left.
        let _ = self.sweep();
    }
}

extern "C" fn before() {
    // A bare child has nothing there, and what its parent has is none of its business.
    let Some(file) = FILE.get().filter(|_| OPEN.load(Ordering::Relaxed) && process::is_this_process()) else { return };
    if *WANTED == Wanted::Mallocs {
        REFUSED.store(true, Ordering::Relaxed);
    }
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Else another thread may be inside MPI for long, or a signal's handler has come in between.
    if is_alone() && lock::is_outside() {
        let _entered = lock::enter();
        if is_quiet() && blocks::may_be_moved() {
            HEAP.with(|heap| heap.as_mut().map(Heap::take_all_back));
        }
    }
    let ready = match file.areas() {
        Ok(areas) if areas.is_empty() => return,
        Ok(areas) => Ready::new(file, areas),
        Err(_) => None,
    };
    FORKING.set(Some(Forking { _one: one, ready }));
}

/// The child has its own copies, or is gone, when nobody writes to the pipe any more.
extern "C" fn in_parent() {
    let Some(Forking { _one, ready: Some(Ready { areas, mut end, begin, .. }) }) = take() else { return };
    drop(begin);
    while end.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
    for area in &areas {
        // It was possible before; else a bare child would share it.
        let _ = area.pass_on(false);
    }
}

extern "C" fn in_child() {
    let Some(Forking { _one, ready }) = take() else { return };
    let Some(Ready { file, areas, end, begin }) = ready else { end_child() };
    if areas.iter().any(|area| file.take_back(area).is_err()) {
        end_child();
    }
    // This process is no rank, and has nothing to share.
    REFUSED.store(true, Ordering::Relaxed);
    OPEN.store(false, Ordering::Relaxed);
    drop((areas, end, begin));
}

/// Going on would be writing into the parent's memory, or having none of it; so would be formatting a sentence.
fn end_child() -> ! {
    const WHY: &[u8] = b"vmpi: a child of fork ends with 125, because it cannot have its own copy of the memory that is laid open to other ranks \
(VMPI_MAP_MEMORY): too many open files, or too little memory.\n";
    // SAFETY: writes constant bytes, and ends the process at once.
    unsafe {
        libc::write(libc::STDERR_FILENO, WHY.as_ptr().cast(), WHY.len());
        libc::_exit(125)
    }
}
