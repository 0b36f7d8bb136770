//! Last words of this rank: before it dies of a signal, ends by `exit` in the middle of MPI, or ends the job, it lets its call stack be taken
//! (`vmpi_shared::crash`). What happens then is what would have happened without that: the signal with its registers, its core dump, its exit code.
//!
//! Only signals that have their default effect when MPI starts are caught here: who has a handler of its own keeps it, and comes first. The
//! exception is libgfortran's, which ends the process whatever happens: it is called afterwards, as if the signal had come just then.
//! A thread that overflows its stack is heard if it has an alternate stack: the one that has started MPI gets one, others have none unless the program gave
//! them one, and die without a word. All this is async-signal-safe, whatever locks are held.

use crate::overlap::guard;
use crate::process;
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use vmpi_shared::crash::{OnCrash, Registers, Way};
use vmpi_shared::node::last_words;

/// Signals that say that something is wrong with the program, and end it.
const SIGNALS: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP, libc::SIGSYS];
const STACK_BYTES: usize = 64 << 10;

/// libgfortran's handler of each of them, if it had one.
static BEFORE: [AtomicPtr<libc::sigaction>; SIGNALS.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SIGNALS.len()];
static PREPARED: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    /// As atexit(3), and tells the code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Be ready for the worst, as `vmpirun --on-crash` says. Called in the thread that starts MPI.
pub(crate) fn prepare() {
    let choice = OnCrash::of_word(process::node().header().on_crash);
    if choice == OnCrash::None || PREPARED.swap(true, Ordering::Relaxed) {
        return;
    }
    if choice == OnCrash::Core {
        allow_core();
    }
    give_alternate_stack();
    guard::trust(dies as *const () as usize);
    process::set_last_words(tell);
    SIGNALS.iter().enumerate().for_each(|(at, signal)| catch(at, *signal));
    // SAFETY: the function is there as long as the process.
    unsafe { on_exit(exits, std::ptr::null_mut()) };
}

fn allow_core() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_CORE) {
        // Never more than is allowed already.
        let _ = setrlimit(Resource::RLIMIT_CORE, hard, hard);
    }
}

fn give_alternate_stack() {
    // SAFETY: plain system calls on a zeroed structure; the new mapping belongs to this thread from now on.
    unsafe {
        let mut stack: libc::stack_t = std::mem::zeroed();
        if libc::sigaltstack(std::ptr::null(), &mut stack) != 0 || stack.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), STACK_BYTES, prot, flags, -1, 0);
        if memory != libc::MAP_FAILED {
            stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: STACK_BYTES };
            libc::sigaltstack(&stack, std::ptr::null_mut());
        }
    }
}

fn catch(at: usize, signal: c_int) {
    // SAFETY: sigaction reads and writes valid structures; the handler is async-signal-safe.
    unsafe {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        if libc::sigaction(signal, std::ptr::null(), before.as_mut_ptr()) != 0 {
            return;
        }
        let before = before.assume_init();
        if before.sa_sigaction != libc::SIG_DFL {
            if !is_libgfortrans(before.sa_sigaction) {
                return;
            }
            guard::trust(before.sa_sigaction);
            BEFORE[at].store(Box::into_raw(Box::new(before)), Ordering::Release);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = dies as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigfillset(&mut action.sa_mask);
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

/// Is this libgfortran's backtrace handler? It prints, and raises the signal with its default effect.
fn is_libgfortrans(handler: usize) -> bool {
    if handler == libc::SIG_IGN {
        return false;
    }
    // SAFETY: dladdr writes the structure and returns not 0 if it did; the name is a C string of the loader's.
    unsafe {
        let mut found: libc::Dl_info = std::mem::zeroed();
        libc::dladdr(handler as *const c_void, &mut found) != 0
            && !found.dli_fname.is_null()
            && CStr::from_ptr(found.dli_fname).to_string_lossy().contains("libgfortran.so")
    }
}

extern "C" fn dies(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    guard::let_go();
    // SAFETY: the kernel has passed valid pointers; only system calls and plain stores follow.
    unsafe {
        // A child of a fork that has not called exec is not the rank.
        if process::is_this_process() {
            let (registers, code) = (registers_of(context), (*info).si_code);
            // Of a signal that a process has sent: which one.
            let address = if code <= 0 { (*info).si_pid() as u64 } else { (*info).si_addr() as u64 };
            let way = Way::Signal { signal, code };
            last_words::tell(process::node(), process::endpoint_rank(), way, other_thread(), address, registers);
        }
        let at = SIGNALS.iter().position(|known| *known == signal).unwrap_or(0);
        let before = BEFORE[at].load(Ordering::Acquire);
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        let next = if before.is_null() { &raw const default } else { before.cast_const() };
        libc::sigaction(signal, next, std::ptr::null_mut());
        // The instruction that has failed fails again when this returns, with the same registers and information. What was sent by a process, or
        // came behind an instruction, is sent again: it is blocked until this returns, and then comes before anything else happens. (To queue
        // a fault as well would be simpler, but valgrind 3.19 does not survive that.)
        let faults = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
        if (*info).si_code <= 0 || !faults.contains(&signal) {
            libc::syscall(libc::SYS_rt_tgsigqueueinfo, libc::getpid(), libc::gettid(), signal, info);
        }
    }
}

/// This thread, if it is not the process's first one.
fn other_thread() -> Option<i32> {
    // SAFETY: no arguments; always succeed.
    let (thread, process) = unsafe { (libc::gettid(), libc::getpid()) };
    Some(thread).filter(|thread| *thread != process)
}

extern "C" fn exits(code: c_int, _argument: *mut c_void) {
    if code != 0 && process::is_active() {
        tell(Way::Exit { code });
    }
}

/// This rank is about to end, here.
#[inline(never)]
fn tell(way: Way) {
    if PREPARED.load(Ordering::Relaxed) && process::is_this_process() {
        last_words::tell(process::node(), process::endpoint_rank(), way, other_thread(), 0, registers_here());
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn registers_here() -> Registers {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!(
            "lea {ip}, [rip]",
            "mov {sp}, rsp",
            "mov {bp}, rbp",
            ip = out(reg) ip,
            sp = out(reg) sp,
            bp = out(reg) bp,
            options(nomem, nostack, preserves_flags)
        );
    }
    Registers { ip, sp, bp }
}

#[cfg(target_arch = "x86_64")]
unsafe fn registers_of(context: *mut c_void) -> Registers {
    // SAFETY: the caller passes what the kernel gave a SA_SIGINFO handler.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let register = |number: c_int| registers[number as usize] as u64;
    Registers { ip: register(libc::REG_RIP), sp: register(libc::REG_RSP), bp: register(libc::REG_RBP) }
}
