//! Atomics and futexes for words in shared memory: the real ones, or shuttle's under the `model` feature.
//!
//! Everything that synchronizes ranks goes through this module, so that a model test runs the same code.

#[cfg(not(feature = "model"))]
mod real {
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};
    use std::time::Duration;

    /// A system call whose result is of no interest. Without libc where that is possible: another process has run when it returns, so that each page of code
    /// between here and the program has to be found again (0.3 us and more where many ranks take turns), and each frame costs 10 ns, since
    /// that process leaves nothing of this one's call stack in the processor's predictor. errno stays the program's.
    ///
    /// # Safety
    /// As the call itself.
    #[inline(always)]
    unsafe fn system_call(number: libc::c_long, a: usize, b: usize, c: usize, d: usize) {
        // SAFETY: passed on; the kernel keeps all registers but these three.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "syscall",
                inlateout("rax") number => _,
                in("rdi") a,
                in("rsi") b,
                in("rdx") c,
                in("r10") d,
                lateout("rcx") _,
                lateout("r11") _,
                options(nostack)
            );
        }
        // SAFETY: passed on.
        #[cfg(not(target_arch = "x86_64"))]
        unsafe {
            libc::syscall(number, a, b, c, d);
        }
    }

    /// Sleep until woken, while `word` holds `expected`. Returns at once if it does not; may return early for no reason.
    /// Death story: whoever changes the word wakes; if that process dies, the daemon kills the job and this process.
    pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
        let time = timeout.map(|t| libc::timespec { tv_sec: t.as_secs() as i64, tv_nsec: i64::from(t.subsec_nanos()) });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: word and time are valid for the call; the shared (not private) futex works across processes.
        unsafe {
            let wait = libc::FUTEX_WAIT as usize;
            system_call(libc::SYS_futex, word.as_ptr() as usize, wait, expected as usize, time as usize);
        }
    }

    /// Wake at most `count` sleepers on `word`.
    pub fn futex_wake(word: &AtomicU32, count: i32) {
        // SAFETY: the word is valid for the call.
        unsafe {
            system_call(libc::SYS_futex, word.as_ptr() as usize, libc::FUTEX_WAKE as usize, count as usize, 0);
        }
    }

    /// A place between two steps where a model test may kill: nothing.
    #[inline]
    pub fn may_die() {}

    /// Let another process of this CPU run, if the kernel has one.
    #[inline(always)]
    pub fn yield_cpu() {
        // SAFETY: no arguments, no memory.
        unsafe { system_call(libc::SYS_sched_yield, 0, 0, 0, 0) };
    }

    /// `fence(SeqCst)` directly behind a sequentially consistent store or read-modify-write of the same thread. On x86-64 those are locked
    /// instructions and full barriers themselves (a failed compare-and-swap, too), so that only the compiler has to keep the order; the
    /// fence would be another locked instruction.
    #[inline(always)]
    pub fn fence_behind_step() {
        if cfg!(target_arch = "x86_64") {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

#[cfg(feature = "model")]
mod model {
    pub use shuttle::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};
    use shuttle::sync::{Condvar, Mutex};
    use shuttle::thread::{self, ThreadId};
    use std::collections::HashMap;
    use std::time::Duration;

    // Made anew for every execution, so that each is a function of its schedule alone. What lies in `std`'s types is
    // no scheduling point.
    shuttle::lazy_static! {
        static ref WAKES: (Mutex<HashMap<usize, u64>>, Condvar) = (Mutex::new(HashMap::new()), Condvar::new());
        static ref DOOMED: std::sync::Mutex<Vec<ThreadId>> = std::sync::Mutex::new(Vec::new());
        static ref ANYWHERE: std::sync::Mutex<Vec<ThreadId>> = std::sync::Mutex::new(Vec::new());
    static ref TICKS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    }

    /// What a doomed thread unwinds with.
    pub struct Killed;

    /// Kill a thread where it next spins, yields or sleeps. It unwinds with [`Killed`] (without the panic hook) and
    /// touches nothing shared any more; its closure catches that.
    pub fn doom(thread: ThreadId) {
        DOOMED.lock().unwrap().push(thread);
        let wakes = WAKES.0.lock().unwrap();
        WAKES.1.notify_all();
        drop(wakes);
    }

    fn is_doomed() -> bool {
        let doomed = DOOMED.lock().unwrap();
        !doomed.is_empty() && doomed.contains(&thread::current().id())
    }

    fn die() -> ! {
        std::panic::resume_unwind(Box::new(Killed))
    }

    /// The model's clock: a tick for every look at it, so that spins end and replays agree.
    pub fn ticks() -> u64 {
        TICKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }

    pub fn fence_behind_step() {
        fence(Ordering::SeqCst);
    }

    pub fn spin_loop() {
        yield_cpu();
    }

    pub fn yield_cpu() {
        thread::yield_now();
        if is_doomed() {
            die();
        }
    }

    /// A place between two steps on the baton. Only threads that were doomed with [`doom_anywhere`] die here: what they leave half-done is mended
    /// in jobs that survive deaths, and in no others.
    pub fn may_die() {
        let doomed = ANYWHERE.lock().unwrap();
        if !doomed.is_empty() && doomed.contains(&thread::current().id()) {
            drop(doomed);
            die();
        }
    }

    /// As [`doom`], and also between two steps.
    pub fn doom_anywhere(thread: ThreadId) {
        ANYWHERE.lock().unwrap().push(thread);
        doom(thread);
    }

    /// As the kernel's: the comparison and the falling asleep are one step; only a wake on this word ends the sleep.
    pub fn futex_wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) {
        let key = std::ptr::from_ref(word) as usize;
        let mut wakes = WAKES.0.lock().unwrap();
        if word.load(Ordering::SeqCst) != expected {
            return;
        }
        let before = wakes.get(&key).copied().unwrap_or(0);
        while wakes.get(&key).copied().unwrap_or(0) == before {
            if is_doomed() {
                drop(wakes); // not while unwinding: that would poison it
                die();
            }
            wakes = WAKES.1.wait(wakes).unwrap();
        }
    }

    pub fn futex_wake(word: &AtomicU32, _count: i32) {
        *WAKES.0.lock().unwrap().entry(std::ptr::from_ref(word) as usize).or_insert(0) += 1;
        WAKES.1.notify_all();
    }
}

#[cfg(feature = "model")]
pub use model::*;
#[cfg(not(feature = "model"))]
pub use real::*;
