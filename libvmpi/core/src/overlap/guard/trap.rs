//! The two handlers, and what a process is made ready with while something is guarded.

use super::calls::{self, Use};
use super::signals;
use super::{NotGuardable, raw, table, tell};
use libc::{SIGSEGV, SIGSYS, c_int, c_void, siginfo_t, ucontext_t};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};
use vmpi_shared::guarding::{DISPATCH_OFF, DISPATCH_ON, SET_DISPATCH};

/// Room for a whole wait in MPI, and for signal handlers of the program's that come meanwhile.
pub(super) const STACK_BYTES: usize = 1 << 20;

/// `si_code` of a system call that was dispatched.
const SYS_USER_DISPATCH: c_int = 2;
/// `si_arch` of a system call with the numbers and arguments that `calls` knows: AUDIT_ARCH_X86_64.
const ARCHITECTURE: u32 = 0xc000_003e;
/// Bytes of the instruction `syscall`, and of `int 0x80`.
const INSTRUCTION_BYTES: i64 = 2;
/// What the kernel counts as links of /proc/self/task besides threads.
const LINKS: u64 = 2;

/// Read by the kernel at each system call: not 0, those of the program are caught.
static SELECTOR: AtomicU8 = AtomicU8::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);

pub(super) fn catch_calls(wanted: bool) {
    SELECTOR.store(u8::from(wanted), Relaxed);
}

/// This process is about to end: no call of its last ones is to be caught.
pub fn let_go() {
    catch_calls(false);
}

fn dispatch(mode: u64) -> nix::Result<()> {
    let uncaught = raw::range();
    let place = [uncaught.start as u64, uncaught.len() as u64, SELECTOR.as_ptr() as u64];
    let [start, len, selector] = if mode == DISPATCH_ON { place } else { [0; 3] };
    // SAFETY: the range is code of this library and the selector a static of it.
    unsafe { raw::known(libc::SYS_prctl, [SET_DISPATCH as u64, mode, start, len, selector]) }.map(drop)
}

/// Those of io_uring are among them.
fn threads() -> nix::Result<u64> {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    let (at, name) = (libc::AT_FDCWD as u64, c"/proc/self/task");
    // SAFETY: a string, and room for the answer; zeros are a value of it, too.
    unsafe {
        raw::known(libc::SYS_newfstatat, [at, name.as_ptr() as u64, found.as_mut_ptr() as u64, 0])?;
        Ok(found.assume_init().st_nlink.saturating_sub(LINKS))
    }
}

/// Before the first guard, with signals held back.
pub(super) fn set_up() -> Result<(), NotGuardable> {
    if threads() != Ok(1) {
        return Err(NotGuardable::Threads);
    }
    signals::survey()?;
    have_stack()?;
    signals::take(SIGSEGV, touched as *const () as usize).map_err(NotGuardable::Kernel)?;
    let done = signals::take(SIGSYS, asked as *const () as usize)
        .and_then(|()| dispatch(DISPATCH_ON).inspect_err(|_| signals::give_back(SIGSYS)));
    done.map_err(|why| {
        signals::give_back(SIGSEGV);
        NotGuardable::Kernel(why)
    })
}

/// After the last.
pub(super) fn take_down() {
    // It has been turned on; nothing else can be wrong with it.
    let _ = dispatch(DISPATCH_OFF);
    signals::give_back(SIGSYS);
    signals::give_back(SIGSEGV);
}

/// Give this thread an alternate stack that is large enough, and stays: handlers of the program's that want one get it, too.
fn have_stack() -> Result<(), NotGuardable> {
    // SAFETY: plain system calls on structures of the kernel's; the new mapping is nobody else's.
    unsafe {
        let mut is: libc::stack_t = std::mem::zeroed();
        raw::known(libc::SYS_sigaltstack, [0, (&raw mut is) as u64]).map_err(NotGuardable::Kernel)?;
        if STACK.load(Relaxed) == 0 {
            let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let room = (STACK_BYTES + table::PAGE_BYTES) as u64;
            let at = raw::known(libc::SYS_mmap, [0, room, rights as u64, kind as u64, u64::MAX, 0])
                .map_err(NotGuardable::Kernel)?;
            let _ = raw::known(libc::SYS_mprotect, [at, table::PAGE_BYTES as u64, libc::PROT_NONE as u64]);
            STACK.store(at as usize + table::PAGE_BYTES, Relaxed);
        }
        let own = libc::stack_t { ss_sp: STACK.load(Relaxed) as *mut c_void, ss_flags: 0, ss_size: STACK_BYTES };
        if is.ss_sp == own.ss_sp && is.ss_flags & libc::SS_DISABLE == 0 {
            return Ok(());
        }
        // EPERM: this is running on it.
        raw::known(libc::SYS_sigaltstack, [(&raw const own) as u64, 0]).map(drop).map_err(|_| NotGuardable::Stack)
    }
}

/// While this lives, errno may change.
struct Errno(c_int);

impl Errno {
    fn keep() -> Errno {
        // SAFETY: the thread's own variable.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// SIGSEGV.
extern "C" fn touched(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let _errno = Errno::keep();
    // SAFETY: the kernel has passed valid pointers.
    let (code, addr) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code <= 0 || table::at(addr).is_none() {
        // SAFETY: as above.
        if unsafe { signals::hand_on(signal, info) } {
            let_go();
        }
        return;
    }
    let instruction = register(context, libc::REG_RIP) as usize;
    while let Some(ticket) = table::at(addr) {
        tell(ticket, addr, instruction);
    }
}

/// SIGSYS.
extern "C" fn asked(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let _errno = Errno::keep();
    // SAFETY: the kernel has passed valid pointers.
    if unsafe { (*info).si_code } != SYS_USER_DISPATCH {
        // SAFETY: as above.
        if unsafe { signals::hand_on(signal, info) } {
            let_go();
        }
        return;
    }
    signals::take_back(touched as *const () as usize);
    let number = register(context, libc::REG_RAX);
    use libc::{REG_R8, REG_R9, REG_R10, REG_RDI, REG_RDX, REG_RSI};
    let arguments = [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9].map(|name| register(context, name) as u64);
    // SAFETY: the arguments are those of a call that the program makes, and its memory is open when it has been waited for.
    let result = unsafe {
        match calls::kind(number) {
            _ if architecture(info) != ARCHITECTURE => None,
            // They use no guarded memory, and cannot wait for another call of MPI's.
            Use::Known | Use::Unknown if super::is_inside() => Some(raw::call(number as u64, arguments)),
            _ => match calls::wait_for_what_is_used(number, &arguments) {
                Use::SignalReturn => raw::return_from_signal(register(context, libc::REG_RSP) as u64),
                Use::Action => signals::action(&arguments),
                Use::Mask => signals::mask(&arguments, context),
                Use::Known if table::count() != 0 => Some(raw::call(number as u64, arguments)),
                Use::Known | Use::Unknown | Use::Own => None,
            },
        }
    };
    match result {
        Some(result) => set_register(context, libc::REG_RAX, result),
        None => {
            super::wait_for_all();
            // Nothing is caught now: the program makes the call itself.
            set_register(context, libc::REG_RIP, register(context, libc::REG_RIP) - INSTRUCTION_BYTES);
        }
    }
}

/// # Safety
/// `info` is the kernel's, of a system call that was dispatched: address of the call, its number, its architecture.
unsafe fn architecture(info: *const siginfo_t) -> u32 {
    const AT: usize = 28;
    // SAFETY: the caller's.
    unsafe { info.byte_add(AT).cast::<u32>().read() }
}

fn register(context: *mut c_void, name: c_int) -> i64 {
    // SAFETY: `context` is what the kernel gave a SA_SIGINFO handler.
    unsafe { (&(*context.cast::<ucontext_t>()).uc_mcontext.gregs)[name as usize] }
}

fn set_register(context: *mut c_void, name: c_int, value: i64) {
    // SAFETY: as above.
    unsafe { (&mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs)[name as usize] = value };
}
