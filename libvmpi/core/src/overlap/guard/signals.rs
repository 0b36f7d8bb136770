//! The program's own handlers for SIGSEGV and SIGSYS while this module's are in their place, and what would hold those two back.

use super::{NotGuardable, raw};
use libc::{SIGSEGV, SIGSYS, c_int, c_void, siginfo_t, ucontext_t};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Copy, Clone)]
pub(super) struct Action {
    pub(super) handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

const SA_RESTORER: u64 = 0x0400_0000;
const MASK_BYTES: u64 = 8;
const NSIG: c_int = 64;
/// glibc's own: a thread is ended, or takes another user. Neither is the program's.
const LIBC_OWN: std::ops::RangeInclusive<c_int> = 32..=33;
/// Those that instructions and system calls raise. Held back, they would end the process.
pub(super) const NEEDED: u64 = bit(SIGSEGV) | bit(SIGSYS);
/// Signals that come from what the thread itself does.
const SYNCHRONOUS: u64 =
    NEEDED | bit(libc::SIGBUS) | bit(libc::SIGFPE) | bit(libc::SIGILL) | bit(libc::SIGTRAP) | bit(libc::SIGABRT);

const fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

/// Written with signals held back, or in a handler of the only thread.
struct Kept(UnsafeCell<[Action; 2]>);

// SAFETY: see `Kept`.
unsafe impl Sync for Kept {}

const NONE: Action = Action { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
static KEPT: Kept = Kept(UnsafeCell::new([NONE; 2]));
/// SIGSEGV is with the program's handler for the moment.
static LENT: AtomicBool = AtomicBool::new(false);
/// The program has a handler for a signal from outside.
static HANDLED: AtomicBool = AtomicBool::new(false);
/// Handlers of last words, vmpi's and libgfortran's: they end the process, so they may hold back what they like.
static LAST_WORDS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn index(signal: c_int) -> usize {
    usize::from(signal == SIGSYS)
}

fn kept(signal: c_int) -> Action {
    // SAFETY: see `Kept`.
    unsafe { (*KEPT.0.get())[index(signal)] }
}

fn keep(signal: c_int, action: Action) {
    // SAFETY: see `Kept`.
    unsafe { (*KEPT.0.get())[index(signal)] = action };
}

/// This handler ends the process.
pub(crate) fn trust(handler: usize) {
    for known in &LAST_WORDS {
        if known.compare_exchange(0, handler, Relaxed, Relaxed).is_ok() || known.load(Relaxed) == handler {
            return;
        }
    }
}

impl Action {
    fn is_a_handler(&self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }

    fn ends_the_process(&self) -> bool {
        !self.is_a_handler() || LAST_WORDS.iter().any(|known| known.load(Relaxed) == self.handler)
    }

    /// Does this handler run when somebody else wants it, and go on?
    fn comes_from_outside(&self, signal: c_int) -> bool {
        !LIBC_OWN.contains(&signal) && bit(signal) & SYNCHRONOUS == 0 && !self.ends_the_process()
    }

    /// Would a guard, or a system call, inside this handler end the process?
    fn holds_back(&self) -> bool {
        self.is_a_handler() && !self.ends_the_process() && self.mask & NEEDED != 0
    }
}

/// `None`: leave it as it is.
fn exchange(signal: c_int, new: Option<&Action>) -> nix::Result<Action> {
    let mut old = NONE;
    let new = new.map_or(0, |action| std::ptr::from_ref(action) as u64);
    // SAFETY: both are valid structures of the kernel's.
    unsafe { raw::known(libc::SYS_rt_sigaction, [signal as u64, new, (&raw mut old) as u64, MASK_BYTES])? };
    Ok(old)
}

fn set_mask(how: c_int, mask: u64) -> u64 {
    let mut old = 0u64;
    let set = &raw const mask;
    // SAFETY: both are valid sets of the kernel's. It cannot fail.
    let _ =
        unsafe { raw::known(libc::SYS_rt_sigprocmask, [how as u64, set as u64, (&raw mut old) as u64, MASK_BYTES]) };
    old
}

/// While this lives no signal comes. No system call may be made meanwhile but by `raw`.
pub(super) struct Held(u64);

impl Held {
    pub(super) fn whatever_is_blocked() -> Held {
        Held(set_mask(libc::SIG_SETMASK, u64::MAX))
    }

    pub(super) fn new() -> Result<Held, NotGuardable> {
        let held = Held::whatever_is_blocked();
        if held.0 & NEEDED == 0 { Ok(held) } else { Err(NotGuardable::Blocked(0)) }
    }

    /// Those that come from outside stay held back; the mask without that.
    pub(super) fn go_on(&mut self) -> u64 {
        let mask = self.0;
        self.0 |= !SYNCHRONOUS;
        mask
    }
}

/// May a handler of the program's run while something is guarded? Known from the first guard on.
pub(super) fn may_come() -> bool {
    HANDLED.load(Relaxed)
}

/// Hold back those that come from outside; what the mask was.
pub(super) fn hold_from_outside() -> u64 {
    set_mask(libc::SIG_BLOCK, !SYNCHRONOUS)
}

pub(super) fn set_to(mask: u64) {
    set_mask(libc::SIG_SETMASK, mask);
}

/// Those that are held back and have come.
pub(super) fn pending() -> u64 {
    let mut pending = 0u64;
    // SAFETY: a set of the kernel's.
    let _ = unsafe { raw::known(libc::SYS_rt_sigpending, [(&raw mut pending) as u64, MASK_BYTES]) };
    pending
}

impl Drop for Held {
    fn drop(&mut self) {
        set_mask(libc::SIG_SETMASK, self.0);
    }
}

/// Would the program's handlers let SIGSEGV and SIGSYS come?
pub(super) fn survey() -> Result<(), NotGuardable> {
    let mut handled = false;
    for signal in 1..=NSIG {
        let action = exchange(signal, None).unwrap_or(NONE);
        if action.holds_back() {
            return Err(NotGuardable::Blocked(signal));
        }
        if signal == SIGSYS && !action.ends_the_process() {
            return Err(NotGuardable::Handler);
        }
        handled |= action.comes_from_outside(signal);
    }
    HANDLED.store(handled, Relaxed);
    Ok(())
}

/// Put a handler in the place of the program's.
pub(super) fn take(signal: c_int, handler: usize) -> nix::Result<()> {
    let flags = (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART) as u64 | SA_RESTORER;
    let own = Action { handler, flags, restorer: raw::restorer(), mask: 0 };
    keep(signal, exchange(signal, Some(&own))?);
    Ok(())
}

/// Give the program its own back.
pub(super) fn give_back(signal: c_int) {
    // While it is lent it is there already.
    if signal == SIGSYS || !LENT.swap(false, Relaxed) {
        let _ = exchange(signal, Some(&kept(signal)));
    }
}

/// A signal that is no guard's: have it come again, to the program's handler, or with its default effect. True: the process ends of that, or it may.
///
/// # Safety
/// `info` is the kernel's.
pub(super) unsafe fn hand_on(signal: c_int, info: *mut siginfo_t) -> bool {
    let action = kept(signal);
    // SAFETY: the caller's.
    if unsafe { (*info).si_code } <= 0 && action.handler == libc::SIG_IGN {
        return false;
    }
    let _ = exchange(signal, Some(&action));
    if signal == SIGSEGV {
        LENT.store(true, Relaxed);
    }
    // What an instruction has raised it raises again; what a process has sent is sent again.
    // SAFETY: the caller's; the calls take no memory but `info`.
    unsafe {
        if (*info).si_code <= 0 || signal == SIGSYS {
            let ids = [libc::SYS_getpid, libc::SYS_gettid].map(|call| raw::known(call, []).unwrap_or(0));
            let _ = raw::known(libc::SYS_rt_tgsigqueueinfo, [ids[0], ids[1], signal as u64, info as u64]);
        }
    }
    action.ends_the_process()
}

/// The program's handler has come as far as a system call, or is over: guards come first again.
pub(super) fn take_back(handler: usize) {
    if LENT.swap(false, Relaxed) {
        let _ = take(SIGSEGV, handler);
    }
}

/// rt_sigaction while something is guarded; `None`: it must wait until nothing is.
///
/// # Safety
/// The arguments are a caller's of sigaction(2), which may be read and written now.
pub(super) unsafe fn action(arguments: &[u64; 6]) -> Option<i64> {
    let [signal, new, old, size, ..] = *arguments;
    // SAFETY: the caller's.
    let wanted = (new != 0).then(|| unsafe { (new as *const Action).read_unaligned() });
    let signal = signal as c_int;
    if size != MASK_BYTES || signal == SIGSYS || wanted.is_some_and(|action| action.mask & NEEDED != 0) {
        return None;
    }
    if signal != SIGSEGV {
        if wanted.is_some_and(|action| (1..=NSIG).contains(&signal) && action.comes_from_outside(signal)) {
            HANDLED.store(true, Relaxed);
        }
        // SAFETY: the caller's.
        return Some(unsafe { raw::call(libc::SYS_rt_sigaction as u64, *arguments) });
    }
    if old != 0 {
        // SAFETY: the caller's.
        unsafe { (old as *mut Action).write_unaligned(kept(signal)) };
    }
    if let Some(action) = wanted {
        keep(signal, action);
    }
    Some(0)
}

/// rt_sigprocmask while something is guarded, for the context that a handler returns to; `None`: it must wait until nothing is.
///
/// # Safety
/// `context` is the handler's; the arguments are a caller's of sigprocmask(2), which may be read and written now.
pub(super) unsafe fn mask(arguments: &[u64; 6], context: *mut c_void) -> Option<i64> {
    // SAFETY: the caller's. The handler has the mask of the context that it came from, so the kernel does all but put it there.
    unsafe {
        let result = raw::call(libc::SYS_rt_sigprocmask as u64, *arguments);
        let is = set_mask(libc::SIG_BLOCK, 0);
        let returns_to = (&raw mut (*context.cast::<ucontext_t>()).uc_sigmask).cast::<u64>();
        if is & NEEDED != 0 {
            set_mask(libc::SIG_SETMASK, returns_to.read());
            return None;
        }
        returns_to.write(is);
        Some(result)
    }
}

/// What holds a signal back besides the mask that a wait is given: nothing of the two?
///
/// # Safety
/// `set` is 0 or a set of the kernel's.
pub(super) unsafe fn lets_come(set: u64) -> bool {
    // SAFETY: the caller's.
    set == 0 || unsafe { (set as *const u64).read_unaligned() } & NEEDED == 0
}
