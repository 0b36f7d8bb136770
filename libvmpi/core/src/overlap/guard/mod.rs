//! The guard: memory of the program's that must not be touched yet. Who touches it waits, whether by an instruction, by a system call, or by
//! having it freed; then all goes on as if nothing had been.
//!
//! Reading order: `table` (what is guarded), `pages` (how), `trap` (who is caught, and how the process is made ready for that), `calls` (what memory a system call uses),
//! `signals` (the program's own handlers), `held` (when they may run), `raw` (system calls that are not caught).
//!
//! - **Send buffers** (`Access::Write`) are write-protected. **Receive buffers** (`Access::Away`) are moved to another place (mremap, `landing`), where
//!   others write into them; what is left behind cannot be touched. Moved back they are as they were: no copy, and the price of a page table.
//!   (Protected in place, `Access::Any`, the kernel would not let other processes write there either, but through /proc/PID/mem.)
//! - **An instruction** that touches it comes to a handler for SIGSEGV, which calls back, and is done again. What is no guard's is the program's own
//!   handler's, or the end, as without the guard.
//! - **The kernel** would answer EFAULT. So while something is guarded, all system calls of the process come to a handler for SIGSYS first (syscall user dispatch,
//!   Linux 5.11), whoever makes them: stdio, inlined ones, other languages' runtimes. It waits for what the call may touch. Calls that change what a process is
//!   (fork, exec, signals), and all that `calls` does not know, wait until nothing is guarded.
//! - Both handlers, their stack and the dispatch are there only while something is guarded; between, the process is the program's own.
//! - Pages are guarded whole. Who uses other data in the first or the last one waits, too.
//!
//! It works in a process of one thread: a second one's system calls are not seen. A thread cannot come while something is guarded, since its start waits.
//! Nothing but this process takes part, so there is nobody to die meanwhile.

mod calls;
pub mod held;
mod pages;
mod raw;
mod signals;
mod table;
#[cfg(test)]
mod tests;
mod trap;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use pages::landing;
pub(crate) use signals::trust;
pub use table::MOST;
pub use trap::let_go;
pub use vmpi_shared::guarding::Unavailable;

/// What has to wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// Writing, of a send buffer.
    Write,
    /// All, of memory that stays in its place.
    Any,
    /// All, of memory that lies at its `landing` meanwhile.
    Away,
}

/// Why a span is not guarded. Nothing has been changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotGuardable {
    #[error("{0}")]
    Process(Unavailable),
    #[error("no bytes, or none that can be a program's")]
    Nothing,
    #[error("all {MOST} places in the table of guards are taken, or this one is")]
    Table,
    #[error("guard {0} has one of these pages, and lets others do with it what this one must not")]
    Overlap(u32),
    #[error("the process has several threads, whose system calls would not be seen")]
    Threads,
    #[error("a signal handler of the program's (signal {0}), or its signal mask (0), holds SIGSEGV or SIGSYS back")]
    Blocked(i32),
    #[error("the program has a handler for SIGSYS")]
    Handler,
    #[error("it lies on a stack")]
    Stack,
    #[error("it lies beside a thread's own variables")]
    ThreadLocal,
    #[error("it is not private, readable and writable memory of small pages")]
    Kind,
    #[error("the place where it would lie meanwhile is taken")]
    Place,
    #[error("the kernel refuses: {0}")]
    Kernel(nix::Error),
}

impl NotGuardable {
    /// No other buffer of this process could be guarded either, now or later.
    pub fn is_for_good(&self) -> bool {
        matches!(self, NotGuardable::Process(_) | NotGuardable::Handler)
    }
}

/// `fn(ticket, address, instruction)`: see `set_callback`.
type Callback = fn(u32, usize, usize);
static CALLBACK: AtomicUsize = AtomicUsize::new(0);
static IS_INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Can anything be guarded in this process? Found out once.
pub fn is_possible() -> Result<(), Unavailable> {
    static FOUND: OnceLock<Result<(), Unavailable>> = OnceLock::new();
    FOUND.get_or_init(vmpi_shared::guarding::look).clone()
}

/// What is called when guarded memory is touched: with the guard's ticket, the address, and the instruction that has touched it (0: a system call, or `wait_for_range`).
/// It waits until the memory may be used and calls `disarm`; if the guard is still there when it returns, it is called again.
///
/// It is called in a signal handler, on a stack of `trap::STACK_BYTES`, with signals `held`; maybe from inside malloc, so it must not call the C library's,
/// and maybe from inside MPI.
///
/// `is_inside` tells whether this thread is inside MPI: the system calls that it makes there use no guarded memory, and must not wait for another call of MPI's. In the middle of a wait, or of lending
/// its queues, a second wait would leave the rank between two states, and its core to nobody.
pub fn set_callback(callback: Callback, is_inside: fn() -> bool) {
    IS_INSIDE.store(is_inside as usize, Ordering::Relaxed);
    CALLBACK.store(callback as usize, Ordering::Relaxed);
}

fn is_inside() -> bool {
    let is_inside = IS_INSIDE.load(Ordering::Relaxed);
    // SAFETY: `set_callback` has stored a function of this type.
    is_inside != 0 && unsafe { std::mem::transmute::<usize, fn() -> bool>(is_inside) }()
}

/// Have the guard's owner wait.
fn tell(ticket: u32, addr: usize, instruction: usize) {
    let own = held::hold();
    call_back(ticket, addr, instruction);
    if own {
        held::release();
    }
}

fn call_back(ticket: u32, addr: usize, instruction: usize) {
    let callback = CALLBACK.load(Ordering::Relaxed);
    assert!(callback != 0, "vmpi: something is guarded, and nobody to call");
    // SAFETY: `set_callback` has stored a function of this type.
    let callback: Callback = unsafe { std::mem::transmute(callback) };
    callback(ticket, addr, instruction);
}

/// Is anything guarded?
#[inline(always)]
pub fn any_armed() -> bool {
    table::count() != 0
}

/// Guard `len` bytes at `addr`, and what else lies in their pages, until `disarm(ticket)`. `ticket` is below `MOST` and not in use.
///
/// Guards that let the same be done share pages; a page is open when its last guard has gone.
///
/// # Errors
/// Then it is not guarded, and everything is as it was.
pub fn arm(addr: usize, len: usize, access: Access, ticket: u32) -> Result<(), NotGuardable> {
    is_possible().map_err(NotGuardable::Process)?;
    let wanted = table::pages_of(addr, len).ok_or(NotGuardable::Nothing)?;
    table::may_enter(ticket, &wanted, access)?;
    let pieces = pages::may_be_guarded(&wanted)?;
    let mut signals = signals::Held::new()?;
    let first = !any_armed();
    if first {
        trap::set_up()?;
    }
    let result = pages::close_all(&pieces, access);
    match &result {
        Ok(()) => {
            table::enter(ticket, wanted, access);
            trap::catch_calls(true);
            if is_inside() {
                held::go_on(&mut signals);
            }
        }
        Err(_) if first => trap::take_down(),
        Err(_) => {}
    }
    result
}

/// Open the pages of a guard that no other guard has. Nothing if there is no such guard.
pub fn disarm(ticket: u32) {
    let _signals = signals::Held::whatever_is_blocked();
    let Some((had, access)) = table::leave(ticket) else { return };
    pages::open_all(&had, access);
    if !any_armed() {
        trap::catch_calls(false);
        trap::take_down();
    }
}

/// Wait for the guards that would stop this access; for who touches memory from inside MPI, or has the kernel do it.
pub fn wait_for_range(addr: usize, len: usize, for_write: bool) {
    if !any_armed() {
        return;
    }
    let Some(range) = table::pages_of(addr, len) else { return };
    while let Some(ticket) = table::meeting(&range, for_write) {
        tell(ticket, addr, 0);
    }
}

/// Wait until nothing is guarded.
pub fn wait_for_all() {
    while let Some((ticket, addr)) = table::any() {
        tell(ticket, addr, 0);
    }
}

/// Do others' data, or nobody's, lie in the pages of these bytes?
pub fn shares_pages(addr: usize, len: usize) -> bool {
    !(addr.is_multiple_of(table::PAGE_BYTES) && len.is_multiple_of(table::PAGE_BYTES))
}
