//! What programs do besides: signals, handlers, processes, threads.

use super::*;
use libc::{c_int, c_void, siginfo_t};

fn handle(signal: c_int, handler: usize, flags: c_int, blocks_all: bool) {
    // SAFETY: a valid structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) = (handler, flags | libc::SA_SIGINFO);
        if blocks_all {
            libc::sigfillset(&mut action.sa_mask);
        }
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

static HEARD: AtomicU32 = AtomicU32::new(0);
static CLOSED: AtomicUsize = AtomicUsize::new(0);
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// As a garbage collector does it.
extern "C" fn opens(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
    HEARD.fetch_add(1, Relaxed);
    // SAFETY: the test's memory.
    unsafe {
        assert_eq!((*info).si_addr() as usize, CLOSED.load(Relaxed));
        assert_eq!(libc::mprotect((*info).si_addr(), PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
    }
}

/// A page of the program's that only its own handler opens.
fn closed() -> *mut u8 {
    let at = pages(1);
    // SAFETY: the test's memory.
    unsafe { libc::mprotect(at.cast(), PAGE, libc::PROT_NONE) };
    CLOSED.store(at as usize, Relaxed);
    at
}

#[test]
fn the_programs_own_faults_are_its_handlers() {
    if !is_offered() {
        return;
    }
    for (before, on_stack) in [(true, false), (true, true), (false, false), (false, true)] {
        alone(|| {
            let flags = if on_stack { libc::SA_ONSTACK } else { 0 };
            let (buffer, handler) = (pages(4), opens as *const () as usize);
            if before {
                handle(libc::SIGSEGV, handler, flags, false);
            }
            receive(0, buffer, 2 * PAGE, 9);
            if !before {
                handle(libc::SIGSEGV, handler, flags, false);
            }
            // SAFETY: asks, and the test's memory.
            unsafe {
                let mut is: libc::sigaction = std::mem::zeroed();
                libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut is);
                // The kernel tells of the C library's restorer, too.
                assert_eq!(
                    (is.sa_sigaction, is.sa_flags & 0xf8ff_ffffu32 as c_int),
                    (handler, flags | libc::SA_SIGINFO)
                );
                for round in 1..=2 {
                    assert_eq!(closed().read_volatile(), 1);
                    assert_eq!((HEARD.load(Relaxed), arrived()), (round, 0));
                }
                assert!(all(buffer, 2 * PAGE, 9));
                assert_eq!((HEARD.load(Relaxed), arrived()), (2, 1));
                assert_eq!(closed().read_volatile(), 1);
                assert_eq!((HEARD.load(Relaxed), arrived()), (3, 1));
            }
        });
    }
}

#[test]
fn a_crash_is_a_crash() {
    use Signal::*;
    if !is_offered() {
        return;
    }
    // SAFETY: these end the child.
    let crashes: [(Signal, fn()); 5] = unsafe {
        [
            (SIGSEGV, || (8 as *mut u8).write_volatile(1)),
            (SIGSEGV, || _ = ((1usize << 60) as *const u8).read_volatile()),
            (SIGABRT, || libc::abort()),
            (SIGSEGV, || _ = libc::kill(libc::getpid(), libc::SIGSEGV)),
            (SIGSYS, || _ = libc::raise(libc::SIGSYS)),
        ]
    };
    for (signal, crash) in crashes {
        dies_of(signal, || {
            // Rust's handler lets the first one pass that a process sends.
            // SAFETY: the default.
            unsafe { libc::signal(libc::SIGSEGV, libc::SIG_DFL) };
            receive(0, pages(4), 2 * PAGE, 9);
            // Nobody is to wait in a crash.
            // SAFETY: ends the child.
            let waits = |_, _, _| unsafe { libc::_exit(3) };
            set_callback(waits, || false);
            crash();
        });
    }
}

extern "C" fn looks(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    let at = GUARDED.load(Relaxed) as *const u8;
    assert!(all(at, 2 * PAGE, 9));
    HEARD.fetch_add(1, Relaxed);
    // A system call, too.
    // SAFETY: takes nothing.
    unsafe { libc::getppid() };
}

#[test]
fn handlers_of_other_signals_use_what_is_guarded() {
    if !is_offered() {
        return;
    }
    for flags in [0, libc::SA_ONSTACK] {
        alone(|| {
            handle(libc::SIGUSR1, looks as *const () as usize, flags, false);
            let (buffer, other) = (pages(4), pages(1));
            GUARDED.store(buffer as usize, Relaxed);
            receive(1, other, 10, 3);
            for round in 1..=3 {
                receive(0, buffer, 2 * PAGE, 9);
                // SAFETY: the handler is there.
                unsafe { libc::raise(libc::SIGUSR1) };
                assert_eq!((HEARD.load(Relaxed), arrived()), (round, round));
            }
            assert!(any_armed());
            assert!(all(other, 10, 3));
        });
    }
}

#[test]
fn what_holds_the_guards_signals_back_is_found() {
    if !is_offered() {
        return;
    }
    let nothing = looks as *const () as usize;
    alone(|| {
        handle(libc::SIGUSR2, nothing, 0, true);
        assert_eq!(start(0, pages(2), PAGE, 9, Access::Away), Err(NotGuardable::Blocked(libc::SIGUSR2)));
        handle(libc::SIGUSR2, nothing, 0, false);
        receive(0, pages(2), PAGE, 9);
        // From here on it would be so again: it waits first.
        handle(libc::SIGUSR2, nothing, 0, true);
        assert_eq!(arrived(), 1);
        handle(libc::SIGUSR2, nothing, 0, false);
        handle(libc::SIGSYS, nothing, 0, false);
        assert_eq!(start(0, pages(2), PAGE, 9, Access::Away), Err(NotGuardable::Handler));
        assert!(!any_armed());
    });
    // SAFETY: valid sets.
    alone(|| unsafe {
        let (mut all_of_them, mut one, mut was) = std::mem::zeroed();
        libc::sigfillset(&mut all_of_them);
        libc::sigemptyset(&mut one);
        libc::sigaddset(&mut one, libc::SIGUSR1);
        receive(0, pages(2), PAGE, 9);
        libc::sigprocmask(libc::SIG_BLOCK, &one, std::ptr::null_mut());
        libc::sigprocmask(libc::SIG_BLOCK, std::ptr::null(), &mut was);
        assert_eq!((libc::sigismember(&was, libc::SIGUSR1), libc::sigismember(&was, libc::SIGUSR2)), (1, 0));
        assert_eq!(arrived(), 0);
        libc::sigprocmask(libc::SIG_UNBLOCK, &one, &mut was);
        assert_eq!(libc::sigismember(&was, libc::SIGUSR1), 1);
        libc::sigprocmask(libc::SIG_SETMASK, &all_of_them, &mut was);
        assert_eq!((libc::sigismember(&was, libc::SIGUSR1), arrived()), (0, 1));
        assert_eq!(start(0, pages(2), PAGE, 9, Access::Away), Err(NotGuardable::Blocked(0)));
    });
}

#[test]
fn a_child_has_what_has_arrived() {
    if !is_offered() {
        return;
    }
    for access in [Access::Away, Access::Any, Access::Write] {
        alone(|| {
            let buffer = pages(8);
            start(0, buffer, 5 * PAGE, 9, access).unwrap();
            let child = ending(|| {
                assert!(all(buffer, 5 * PAGE, 9) && all(buffer.wrapping_add(5 * PAGE), 3 * PAGE, 1));
                assert!(!any_armed());
                // SAFETY: the test's memory.
                unsafe { buffer.write_volatile(2) };
            });
            assert!(matches!(child, WaitStatus::Exited(_, 0)), "{child:?}");
            assert_eq!(arrived(), 1);
            assert!(all(buffer, 5 * PAGE, 9));
        });
    }
}

#[test]
fn programs_can_be_started() {
    if !is_offered() {
        return;
    }
    alone(|| {
        receive(0, pages(8), 5 * PAGE, 9);
        // SAFETY: a string.
        assert_eq!(unsafe { libc::system(c"exit 5".as_ptr()) }, 5 << 8);
        assert_eq!(arrived(), 1);
        receive(0, pages(8), 5 * PAGE, 9);
        let output = std::process::Command::new("echo").arg("said").output().unwrap();
        assert_eq!((output.stdout.as_slice(), arrived()), (b"said\n".as_slice(), 2));
    });
}

#[test]
fn a_thread_starts_when_nothing_is_guarded() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let buffer = pages(8);
        receive(0, buffer, 5 * PAGE, 9);
        let at = buffer as usize;
        let (leave, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            wait.recv().unwrap_err();
            all(at as *const u8, 5 * PAGE, 9)
        });
        assert_eq!(arrived(), 1);
        assert_eq!(start(0, buffer, 5 * PAGE, 9, Access::Away), Err(NotGuardable::Threads));
        assert!(all(buffer, 5 * PAGE, 9));
        drop(leave);
        assert!(thread.join().unwrap());
    });
}

#[test]
fn a_jump_out_of_a_handler_leaves_guards_in_place() {
    if !is_offered() {
        return;
    }
    unsafe extern "C" {
        fn __sigsetjmp(place: *mut u64, mask: c_int) -> c_int;
        fn siglongjmp(place: *mut u64, value: c_int) -> !;
    }
    static mut PLACE: [u64; 64] = [0; 64];
    extern "C" fn jumps(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
        // SAFETY: the place has been set.
        unsafe { siglongjmp((&raw mut PLACE).cast(), 1) }
    }
    // SAFETY: nothing with a destructor lies between the jump and its place.
    alone(|| unsafe {
        handle(libc::SIGSEGV, jumps as *const () as usize, 0, false);
        let buffer = pages(4);
        receive(0, buffer, 2 * PAGE, 9);
        if __sigsetjmp((&raw mut PLACE).cast(), 1) == 0 {
            (16 as *mut u8).write_volatile(1);
            libc::_exit(4);
        }
        assert!(any_armed());
        assert!(all(buffer, 2 * PAGE, 9));
        assert_eq!(arrived(), 1);
    });
}

extern "C" fn hears(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    HEARD.fetch_add(1, Relaxed);
}

#[test]
fn waits_in_the_kernel_are_interrupted_as_ever() {
    if !is_offered() {
        return;
    }
    for (flags, restarted) in [(0, false), (libc::SA_RESTART, true)] {
        // SAFETY: the test's memory and descriptors.
        alone(|| unsafe {
            let (mut ends, buffer) = ([0; 2], pages(2));
            let (errno, mut byte) = (|| std::io::Error::last_os_error().raw_os_error(), 0u8);
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::fcntl(ends[0], libc::F_SETFL, 0);
            let after = |ms: i64| {
                let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
                let timer =
                    libc::itimerval { it_interval: zero, it_value: libc::timeval { tv_sec: 0, tv_usec: ms * 1000 } };
                libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut());
            };
            extern "C" fn writes(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
                HEARD.fetch_add(1, Relaxed);
                let end = CLOSED.load(Relaxed) as c_int;
                // SAFETY: the test's descriptor.
                unsafe { libc::write(end, [7u8].as_ptr().cast(), 1) };
            }
            CLOSED.store(ends[1] as usize, Relaxed);
            handle(libc::SIGALRM, writes as *const () as usize, flags, false);
            receive(0, buffer, PAGE, 9);
            after(20);
            let got = libc::read(ends[0], (&raw mut byte).cast(), 1);
            assert_eq!((got, HEARD.load(Relaxed)), (if restarted { 1 } else { -1 }, 1));
            assert!(restarted || errno() == Some(libc::EINTR));
            handle(libc::SIGALRM, hears as *const () as usize, flags, false);
            after(20);
            let (pause, mut left) = (libc::timespec { tv_sec: 5, tv_nsec: 0 }, std::mem::zeroed::<libc::timespec>());
            assert_eq!((libc::nanosleep(&pause, &mut left), errno()), (-1, Some(libc::EINTR)));
            assert!(left.tv_sec == 4 && HEARD.load(Relaxed) == 2);
            assert_eq!(arrived(), 0);
            assert!(all(buffer, PAGE, 9));
        });
    }
}
