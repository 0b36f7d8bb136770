//! libc's clocks and sleeps as a face exports them: in a simulated job they tell virtual time and do not wait, in all others they are libc's own.
//!
//! A program's calls, and those of the libraries that it uses (std::chrono, omp_get_wtime, SYSTEM_CLOCK, CPU_TIME), find the first library that has
//! the name; a face is before libc. Inside MPI time is real. What waits for a descriptor waits for real, too, and no longer than it says.

use libc::{c_int, clock_t, clockid_t, rusage, time_t, timespec, timeval, tms};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use vmpi_core::simulate::clocks::{self, EPOCH_S};

const PER_SECOND: u64 = 1_000_000_000_000;

/// A function of libc, behind the one of the same name here.
pub struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    pub const fn new(name: &'static CStr) -> Next {
        Next { name, found: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// Its address, or null if there is none. It has been looked for when the face was loaded ([`find_at_load`](crate::find_at_load)): the first call may come
    /// from a signal handler, where dlsym must not be called.
    #[inline]
    pub fn get(&self) -> *mut c_void {
        match self.found.load(Ordering::Relaxed) {
            found if found.is_null() => self.find(),
            found => found,
        }
    }

    #[cold]
    fn find(&self) -> *mut c_void {
        // Behind this library; or, where libc was loaded before it (Fortran's interfaces need libc before they need this one), libc's own.
        // SAFETY: names with their NULs.
        let found = unsafe {
            let next = libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr());
            if next.is_null() { libc::dlsym(libc(), self.name.as_ptr()) } else { next }
        };
        self.found.store(found, Ordering::Relaxed);
        found
    }
}

/// libc, which is there already.
fn libc() -> *mut c_void {
    // SAFETY: a name with its NUL; nothing is loaded.
    unsafe { libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) }
}

/// What a clock shows: whole seconds, and picoseconds beyond them, which may be more than a second.
type Shown = (u64, u64);

fn as_timespec((seconds, time): Shown) -> timespec {
    timespec { tv_sec: (seconds + time / PER_SECOND) as time_t, tv_nsec: (time % PER_SECOND / 1000) as _ }
}

fn as_timeval((seconds, time): Shown) -> timeval {
    timeval { tv_sec: (seconds + time / PER_SECOND) as time_t, tv_usec: (time % PER_SECOND / 1_000_000) as _ }
}

/// Whole seconds and picoseconds; `None`: it is no time.
fn of_timespec(time: &timespec) -> Option<Shown> {
    let nanoseconds = u64::try_from(time.tv_nsec).ok().filter(|ns| *ns < 1_000_000_000)?;
    Some((u64::try_from(time.tv_sec).ok()?, nanoseconds * 1000))
}

/// Picoseconds; what is longer than virtual time is as long as that.
fn picoseconds((seconds, time): Shown) -> u64 {
    seconds.saturating_mul(PER_SECOND).saturating_add(time)
}

/// What a clock shows in virtual time; `None`: it is not one of those, or time is real.
fn of_clock(clock: clockid_t) -> Option<Shown> {
    let from = |epoch: u64| move |time: u64| (epoch, time);
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => clocks::told().map(from(EPOCH_S)),
        libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_MONOTONIC_COARSE | libc::CLOCK_BOOTTIME => {
            clocks::told().map(from(0))
        }
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => clocks::cpu().map(from(0)),
        _ => None,
    }
}

/// Each returns `None` where libc's own is to be called.
///
/// # Safety
/// As the function of libc: the pointers are valid, or null where it allows that.
pub unsafe fn clock_gettime(clock: clockid_t, into: *mut timespec) -> Option<c_int> {
    let time = of_clock(clock)?;
    // SAFETY: the caller's.
    unsafe { into.write(as_timespec(time)) };
    Some(0)
}

/// # Safety
/// As [`clock_gettime`].
pub unsafe fn gettimeofday(into: *mut timeval, _zone: *mut c_void) -> Option<c_int> {
    let time = of_clock(libc::CLOCK_REALTIME)?;
    if !into.is_null() {
        // SAFETY: the caller's.
        unsafe { into.write(as_timeval(time)) };
    }
    Some(0)
}

/// # Safety
/// As [`clock_gettime`].
pub unsafe fn time(into: *mut time_t) -> Option<time_t> {
    let seconds = as_timespec(of_clock(libc::CLOCK_REALTIME)?).tv_sec;
    if !into.is_null() {
        // SAFETY: the caller's.
        unsafe { into.write(seconds) };
    }
    Some(seconds)
}

/// # Safety
/// None is needed.
pub unsafe fn clock() -> Option<clock_t> {
    clocks::cpu().map(|time| (time / 1_000_000) as clock_t)
}

/// # Safety
/// As [`clock_gettime`].
pub unsafe fn times(into: *mut tms) -> Option<clock_t> {
    // The unit of `times` is 1/100 s (sysconf).
    const TICK: u64 = PER_SECOND / 100;
    let (cpu, told) = (clocks::cpu()?, clocks::told()?);
    if !into.is_null() {
        let user = (cpu / TICK) as clock_t;
        // SAFETY: the caller's.
        unsafe { into.write(tms { tms_utime: user, tms_stime: 0, tms_cutime: 0, tms_cstime: 0 }) };
    }
    Some((told / TICK) as clock_t)
}

/// The times of what libc's own has filled in.
///
/// # Safety
/// As [`clock_gettime`].
pub unsafe fn after_getrusage(who: c_int, into: *mut rusage) {
    if who != libc::RUSAGE_SELF && who != libc::RUSAGE_THREAD {
        return;
    }
    if let Some(cpu) = clocks::cpu() {
        // SAFETY: the caller's.
        unsafe {
            (*into).ru_utime = as_timeval((0, cpu));
            (*into).ru_stime = as_timeval((0, 0));
        }
    }
}

/// # Safety
/// As [`clock_gettime`].
pub unsafe fn nanosleep(time: *const timespec, _left: *mut timespec) -> Option<c_int> {
    // SAFETY: the caller's.
    let time = of_timespec(unsafe { time.as_ref() }?)?;
    clocks::sleep(picoseconds(time)).then_some(0)
}

/// # Safety
/// As [`clock_gettime`].
pub unsafe fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    time: *const timespec,
    _left: *mut timespec,
) -> Option<c_int> {
    // SAFETY: the caller's.
    let (seconds, rest) = of_timespec(unsafe { time.as_ref() }?)?;
    let (epoch, now) = of_clock(clock)?;
    let time = match flags & libc::TIMER_ABSTIME != 0 {
        true => picoseconds((seconds.saturating_sub(epoch), rest)).saturating_sub(now),
        false => picoseconds((seconds, rest)),
    };
    clocks::sleep(time).then_some(0)
}

/// # Safety
/// None is needed.
pub unsafe fn usleep(microseconds: libc::c_uint) -> Option<c_int> {
    clocks::sleep(u64::from(microseconds) * 1_000_000).then_some(0)
}

/// # Safety
/// None is needed.
pub unsafe fn sleep(seconds: libc::c_uint) -> Option<libc::c_uint> {
    clocks::sleep(u64::from(seconds) * PER_SECOND).then_some(0)
}

/// `poll` that waits for nothing but the time.
///
/// # Safety
/// As [`clock_gettime`].
pub unsafe fn poll(_fds: *mut libc::pollfd, count: libc::nfds_t, milliseconds: c_int) -> Option<c_int> {
    let time = u64::try_from(milliseconds).ok().filter(|_| count == 0)?;
    clocks::sleep(time * 1_000_000_000).then_some(0)
}

/// `select` that waits for nothing but the time.
///
/// # Safety
/// As [`clock_gettime`].
pub unsafe fn select(
    count: c_int,
    _read: *mut libc::fd_set,
    _write: *mut libc::fd_set,
    _except: *mut libc::fd_set,
    time: *mut timeval,
) -> Option<c_int> {
    // SAFETY: the caller's.
    let time = unsafe { time.as_mut() }.filter(|_| count == 0)?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let total = picoseconds((seconds, u64::try_from(time.tv_usec).ok()?.saturating_mul(1_000_000)));
    if !clocks::sleep(total) {
        return None;
    }
    *time = timeval { tv_sec: 0, tv_usec: 0 };
    Some(0)
}

/// Look for the function behind a `Next` when the face is loaded.
#[macro_export]
macro_rules! find_at_load {
    ($next:ident) => {
        extern "C" fn find() {
            $next.get();
        }
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_LOAD: extern "C" fn() = find;
    };
}

/// Export them from a face.
#[macro_export]
macro_rules! export_clocks {
    () => {
        $crate::export_clocks! {
            fn clock_gettime(clock: libc::clockid_t, into: *mut libc::timespec) -> libc::c_int;
            fn gettimeofday(into: *mut libc::timeval, zone: *mut std::ffi::c_void) -> libc::c_int;
            fn time(into: *mut libc::time_t) -> libc::time_t;
            fn clock() -> libc::clock_t;
            fn times(into: *mut libc::tms) -> libc::clock_t;
            fn nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> libc::c_int;
            fn clock_nanosleep(clock: libc::clockid_t, flags: libc::c_int, time: *const libc::timespec, left: *mut libc::timespec) -> libc::c_int;
            fn usleep(microseconds: libc::c_uint) -> libc::c_int;
            fn sleep(seconds: libc::c_uint) -> libc::c_uint;
            fn poll(fds: *mut libc::pollfd, count: libc::nfds_t, milliseconds: libc::c_int) -> libc::c_int;
            fn select(count: libc::c_int, read: *mut libc::fd_set, write: *mut libc::fd_set, except: *mut libc::fd_set, time: *mut libc::timeval) -> libc::c_int;
        }
        const _: () = {
            static NEXT: $crate::clocks::Next = $crate::clocks::Next::new(c"getrusage");
            $crate::find_at_load!(NEXT);
            type Own = unsafe extern "C" fn(libc::c_int, *mut libc::rusage) -> libc::c_int;
            #[unsafe(export_name = "getrusage")]
            pub unsafe extern "C" fn exported(who: libc::c_int, into: *mut libc::rusage) -> libc::c_int {
                // SAFETY: libc's function of this name; the caller keeps to its contract.
                unsafe {
                    let own = std::mem::transmute::<*mut std::ffi::c_void, Option<Own>>(NEXT.get());
                    let done = own.map_or(-1, |own| own(who, into));
                    if done == 0 {
                        $crate::clocks::after_getrusage(who, into);
                    }
                    done
                }
            }
        };
    };
    ($(fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {
        $(const _: () = {
            const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("no name"),
            };
            static NEXT: $crate::clocks::Next = $crate::clocks::Next::new(NAME);
            $crate::find_at_load!(NEXT);
            type Own = unsafe extern "C" fn($($ty),*) -> $ret;
            #[unsafe(export_name = stringify!($name))]
            pub unsafe extern "C" fn exported($($arg: $ty),*) -> $ret {
                // SAFETY: libc's function of this name; the caller keeps to its contract.
                unsafe {
                    if let Some(done) = $crate::clocks::$name($($arg),*) {
                        return done;
                    }
                    match std::mem::transmute::<*mut std::ffi::c_void, Option<Own>>(NEXT.get()) {
                        Some(own) => own($($arg),*),
                        None => -1i32 as $ret,
                    }
                }
            }
        };)*
    };
}
