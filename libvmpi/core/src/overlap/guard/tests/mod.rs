//! Each test runs in a child process, which has one thread. `Message` is a message that is on its way: what touches its buffer has it arrive.

mod calls;
mod memory;
mod price;
mod program;
mod stress;
mod touch;

use super::*;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub(super) const PAGE: usize = 4096;

struct Way(UnsafeCell<[Option<Message>; MOST]>);
// SAFETY: used by the only thread of a child.
unsafe impl Sync for Way {}
static ON_THE_WAY: Way = Way(UnsafeCell::new([const { None }; MOST]));
pub(super) static INSIDE: AtomicU32 = AtomicU32::new(0);
static ARRIVED: AtomicU32 = AtomicU32::new(0);
static LAST_ADDR: AtomicUsize = AtomicUsize::new(0);
static LAST_INSTRUCTION: AtomicUsize = AtomicUsize::new(0);

/// What is received: so many bytes of a value. What is sent: the value that must lie there when the wait is over.
#[derive(Copy, Clone)]
pub(super) struct Message {
    pub(super) addr: usize,
    pub(super) len: usize,
    pub(super) value: u8,
    pub(super) access: Access,
}

fn arrives(ticket: u32, addr: usize, instruction: usize) {
    LAST_ADDR.store(addr, Relaxed);
    LAST_INSTRUCTION.store(instruction, Relaxed);
    // SAFETY: the only thread; the buffer is guarded, so it is there.
    unsafe {
        if let Some(message) = (*ON_THE_WAY.0.get())[ticket as usize].take() {
            ARRIVED.store(ARRIVED.load(Relaxed) + 1, Relaxed);
            match message.access {
                Access::Away => (landing(message.addr) as *mut u8).write_bytes(message.value, message.len),
                Access::Write => {
                    let sent = std::slice::from_raw_parts(message.addr as *const u8, message.len);
                    assert!(sent.iter().all(|byte| *byte == message.value), "what is sent has been overwritten");
                }
                // As others do it.
                Access::Any => fill_from_outside(&message),
            }
        }
    }
    disarm(ticket);
}

/// Without malloc: it may be that which has touched the guard.
unsafe fn fill_from_outside(message: &Message) {
    // SAFETY: the test's memory and descriptor.
    unsafe {
        let file = libc::open(c"/proc/self/mem".as_ptr(), libc::O_WRONLY);
        let page = [message.value; PAGE];
        for at in (0..message.len).step_by(PAGE) {
            let len = PAGE.min(message.len - at);
            assert_eq!(libc::pwrite(file, page.as_ptr().cast(), len, (message.addr + at) as i64), len as isize);
        }
        libc::close(file);
    }
}

/// Have a message be on its way.
pub(super) fn start(ticket: u32, addr: *mut u8, len: usize, value: u8, access: Access) -> Result<(), NotGuardable> {
    set_callback(arrives, || INSIDE.load(Relaxed) != 0);
    let message = Message { addr: addr as usize, len, value, access };
    if access == Access::Write && !all(addr, len, value) {
        // SAFETY: a buffer of the test's.
        unsafe { addr.write_bytes(value, len) };
    }
    // SAFETY: the only thread.
    unsafe { (*ON_THE_WAY.0.get())[ticket as usize] = Some(message) };
    arm(addr as usize, len, access, ticket)
}

pub(super) fn receive(ticket: u32, addr: *mut u8, len: usize, value: u8) {
    start(ticket, addr, len, value, Access::Away).unwrap();
}

pub(super) fn send(ticket: u32, addr: *mut u8, len: usize, value: u8) {
    start(ticket, addr, len, value, Access::Write).unwrap();
}

pub(super) fn arrived() -> u32 {
    ARRIVED.load(Relaxed)
}

pub(super) fn last_addr() -> usize {
    LAST_ADDR.load(Relaxed)
}

pub(super) fn last_instruction() -> usize {
    LAST_INSTRUCTION.load(Relaxed)
}

/// New memory of whole pages, all 1.
pub(super) fn pages(count: usize) -> *mut u8 {
    // SAFETY: a new mapping.
    unsafe {
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let at = libc::mmap(std::ptr::null_mut(), count * PAGE, rights, kind, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        at.cast::<u8>().write_bytes(1, count * PAGE);
        at.cast()
    }
}

/// Are these bytes all so? Looked at one by one, through the guard.
pub(super) fn all(addr: *const u8, len: usize, value: u8) -> bool {
    // SAFETY: memory of the test's.
    (0..len).all(|at| unsafe { addr.add(at).read_volatile() } == value)
}

/// Run `body` in a process of one thread, and tell how that ended.
fn ending(body: impl FnOnce()) -> WaitStatus {
    // SAFETY: the child runs on with a copy of everything, and leaves without the test harness.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            // SAFETY: ends the child should it hang.
            unsafe { libc::alarm(60) };
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            // SAFETY: no destructor of the harness's.
            unsafe { libc::_exit(if done.is_ok() { 0 } else { 101 }) }
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    }
}

pub(super) fn alone(body: impl FnOnce()) {
    let end = ending(body);
    assert!(matches!(end, WaitStatus::Exited(_, 0)), "the child ended with {end:?}");
}

pub(super) fn dies_of(signal: Signal, body: impl FnOnce()) {
    let end = ending(body);
    assert!(matches!(end, WaitStatus::Signaled(_, with, _) if with == signal), "the child ended with {end:?}");
}

/// Where guards are impossible there is nothing to test, and this says why.
pub(super) fn is_offered() -> bool {
    is_possible().inspect_err(|why| eprintln!("skipped: {why}")).is_ok()
}
