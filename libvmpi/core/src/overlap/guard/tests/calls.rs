//! System calls on what is guarded.

use super::*;
use std::ffi::c_void;

fn pipe() -> (i32, i32) {
    let mut ends = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    (ends[0], ends[1])
}

/// A call that reads the buffer (its bytes go into the descriptor) or writes it (with 7, from the descriptor), and how many bytes it moves.
type Call = unsafe fn(i32, *mut u8, usize) -> isize;

unsafe fn write(fd: i32, at: *mut u8, len: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { libc::write(fd, at.cast(), len) }
}

unsafe fn writev(fd: i32, at: *mut u8, len: usize) -> isize {
    let half = len / 2;
    let lists = [(at, half), (at.wrapping_add(half), len - half)]
        .map(|(at, len)| libc::iovec { iov_base: at.cast(), iov_len: len });
    // SAFETY: the caller's.
    unsafe { libc::writev(fd, lists.as_ptr(), 2) }
}

unsafe fn fwrite(fd: i32, at: *mut u8, len: usize) -> isize {
    // SAFETY: the caller's.
    unsafe {
        let file = libc::fdopen(libc::dup(fd), c"w".as_ptr());
        let done = libc::fwrite(at.cast(), 1, len, file) as isize;
        libc::fclose(file);
        done
    }
}

/// As an inlined call, or another language's runtime, makes it.
unsafe fn bare_write(fd: i32, at: *mut u8, len: usize) -> isize {
    let mut result = libc::SYS_write as isize;
    // SAFETY: the caller's.
    unsafe {
        std::arch::asm!("syscall", inlateout("rax") result, in("rdi") fd as usize, in("rsi") at, in("rdx") len,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

unsafe fn vmsplice(fd: i32, at: *mut u8, len: usize) -> isize {
    let list = libc::iovec { iov_base: at.cast(), iov_len: len };
    // SAFETY: the caller's. One that `calls` does not know.
    unsafe { libc::vmsplice(fd, &list, 1, 0) }
}

unsafe fn read(fd: i32, at: *mut u8, len: usize) -> isize {
    // SAFETY: the caller's.
    unsafe { libc::read(fd, at.cast(), len) }
}

unsafe fn readv(fd: i32, at: *mut u8, len: usize) -> isize {
    let list = libc::iovec { iov_base: at.cast(), iov_len: len };
    // SAFETY: the caller's.
    unsafe { libc::readv(fd, &list, 1) }
}

unsafe fn fread(fd: i32, at: *mut u8, len: usize) -> isize {
    // SAFETY: the caller's.
    unsafe {
        let file = libc::fdopen(libc::dup(fd), c"r".as_ptr());
        libc::fread(at.cast(), 1, len, file) as isize
    }
}

unsafe fn getrandom(_fd: i32, at: *mut u8, len: usize) -> isize {
    // SAFETY: the caller's.
    unsafe {
        let done = libc::getrandom(at.cast(), len, 0);
        at.write_bytes(7, len);
        done
    }
}

const READING: [(&str, Call); 5] =
    [("write", write), ("writev", writev), ("fwrite", fwrite), ("bare", bare_write), ("vmsplice", vmsplice)];
const WRITING: [(&str, Call); 4] = [("read", read), ("readv", readv), ("fread", fread), ("getrandom", getrandom)];
const LEN: usize = 3 * PAGE + 11;

#[test]
fn calls_that_read_what_is_received_get_what_arrives() {
    if !is_offered() {
        return;
    }
    for (name, call) in READING {
        for access in [Access::Away, Access::Any] {
            alone(|| {
                let (out, into) = pipe();
                let buffer = pages(5).wrapping_add(50);
                start(0, buffer, LEN, 9, access).unwrap();
                // SAFETY: the test's memory and descriptors.
                unsafe {
                    assert_eq!(call(into, buffer, LEN), LEN as isize, "{name}: {}", std::io::Error::last_os_error());
                    let mut got = [0u8; LEN];
                    assert_eq!(libc::read(out, got.as_mut_ptr().cast(), LEN), LEN as isize);
                    assert!(got.iter().all(|byte| *byte == 9), "{name}");
                }
                assert_eq!(arrived(), 1, "{name}");
            });
        }
    }
}

#[test]
fn calls_that_read_what_is_sent_need_not_wait() {
    if !is_offered() {
        return;
    }
    for (name, call) in &READING[..4] {
        alone(|| {
            let (_out, into) = pipe();
            let (buffer, other) = (pages(5), pages(1));
            send(0, buffer, LEN, 9);
            receive(1, other, 10, 9);
            // SAFETY: the test's memory and descriptors.
            unsafe { assert_eq!(call(into, buffer, LEN), LEN as isize, "{name}") };
            assert_eq!(arrived(), 0, "{name}");
        });
    }
}

#[test]
fn calls_that_write_wait_first() {
    if !is_offered() {
        return;
    }
    for (name, call) in WRITING {
        for access in [Access::Away, Access::Any, Access::Write] {
            alone(|| {
                let (out, into) = pipe();
                let buffer = pages(5).wrapping_add(50);
                // SAFETY: the test's memory and descriptors.
                unsafe {
                    let data = [7u8; LEN];
                    assert_eq!(libc::write(into, data.as_ptr().cast(), LEN), LEN as isize);
                    libc::close(into);
                    start(0, buffer, LEN, 9, access).unwrap();
                    assert_eq!(call(out, buffer, LEN), LEN as isize, "{name}: {}", std::io::Error::last_os_error());
                }
                assert_eq!(arrived(), 1, "{name}");
                assert!(all(buffer, LEN, 7), "{name}: what came later counts");
            });
        }
    }
}

#[test]
fn calls_on_other_memory_do_not_wait() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let (out, into) = pipe();
        let (buffer, mut other) = (pages(4), [5u8; 100]);
        receive(0, buffer, 4 * PAGE, 9);
        // SAFETY: the test's memory and descriptors.
        unsafe {
            assert_eq!(libc::write(into, other.as_ptr().cast(), 100), 100);
            assert_eq!(libc::read(out, other.as_mut_ptr().cast(), 100), 100);
            assert_eq!(libc::write(-1, other.as_ptr().cast(), 1), -1);
            assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EBADF));
            let block = libc::malloc(1 << 20);
            libc::memset(block, 1, 1 << 20);
            libc::free(block);
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
            assert_eq!(libc::nanosleep(&pause, std::ptr::null_mut()), 0);
        }
        assert!(std::fs::read("/proc/self/stat").is_ok());
        assert_eq!(arrived(), 0);
        assert!(all(buffer, 4 * PAGE, 9));
    });
}

#[test]
fn messages_of_sockets_wait() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let mut ends = [0; 2];
        let (from, to) = (pages(1), pages(1));
        // SAFETY: the test's memory and descriptors.
        unsafe {
            assert_eq!(libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()), 0);
            let message = |at: *mut u8, list: &mut libc::iovec| {
                *list = libc::iovec { iov_base: at.cast(), iov_len: 500 };
                let mut header: libc::msghdr = std::mem::zeroed();
                (header.msg_iov, header.msg_iovlen) = (list, 1);
                header
            };
            let mut list = std::mem::zeroed();
            receive(0, from, 500, 9);
            assert_eq!(libc::sendmsg(ends[0], &message(from, &mut list), 0), 500);
            assert_eq!(arrived(), 1);
            receive(0, to, 500, 3);
            // A datagram would be lost.
            assert_eq!(libc::recvmsg(ends[1], &mut message(to, &mut list), 0), 500);
            assert_eq!(arrived(), 2);
            assert!(all(to, 500, 9));
            receive(0, from, 500, 8);
            assert_eq!(libc::send(ends[0], from.cast(), 500, 0), 500);
            send(1, to, 500, 9);
            assert_eq!(libc::recv(ends[1], to.cast(), 500, 0), 500);
            assert_eq!(arrived(), 4);
            assert!(all(to, 500, 8));
        }
    });
}

#[test]
fn a_bad_address_is_still_an_error() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let (_, into) = pipe();
        receive(0, pages(1), PAGE, 9);
        // SAFETY: the kernel refuses these.
        unsafe {
            for result in [
                libc::write(into, 24 as *const c_void, 100),
                libc::write(into, usize::MAX as *const c_void, 100),
                libc::writev(into, 24 as *const libc::iovec, 1),
                libc::sendmsg(into, 24 as *const libc::msghdr, 0),
            ] {
                assert_eq!(result, -1);
            }
        }
    });
}

#[test]
fn errno_stays() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let buffer = pages(2);
        receive(0, buffer, PAGE, 9);
        set_callback(
            |ticket, _, _| {
                // SAFETY: fails.
                assert_eq!(unsafe { libc::close(-1) }, -1);
                disarm(ticket);
            },
            || false,
        );
        // SAFETY: the thread's own variable, and the test's memory.
        unsafe {
            *libc::__errno_location() = 1234;
            buffer.read_volatile();
            assert_eq!(*libc::__errno_location(), 1234);
        }
    });
}

#[test]
fn mpis_own_calls_do_not_wait() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let buffer = pages(2);
        receive(0, buffer, PAGE, 9);
        INSIDE.store(1, Relaxed);
        // SAFETY: the kernel refuses it; a call that `calls` does not know.
        unsafe { libc::vmsplice(-1, std::ptr::null(), 0, 0) };
        assert_eq!(arrived(), 0);
        INSIDE.store(0, Relaxed);
        // SAFETY: as above.
        unsafe { libc::vmsplice(-1, std::ptr::null(), 0, 0) };
        assert_eq!(arrived(), 1);
    });
}

/// Its numbers mean other calls.
#[test]
fn calls_of_the_old_kind_wait_for_everything() {
    if !is_offered() {
        return;
    }
    alone(|| {
        // Number 24 is sched_yield in the new kind, which waits for nothing.
        const GETUID: i32 = 24;
        let mut result = GETUID;
        receive(0, pages(2), PAGE, 9);
        // SAFETY: takes nothing; a kernel without 32-bit calls answers with an error.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") result, lateout("r8") _, lateout("r9") _, lateout("r10") _, lateout("r11") _)
        };
        // SAFETY: takes nothing.
        assert!(result as u32 == unsafe { libc::getuid() } || result == -libc::ENOSYS, "{result}");
        assert_eq!(arrived(), 1);
    });
}

/// As a call through `syscall` instructions with fewer arguments leaves them, the registers of the others hold anything: also the address of what is guarded.
#[test]
fn registers_that_a_futex_call_does_not_use_do_not_wait() {
    if !is_offered() {
        return;
    }
    alone(|| {
        let (buffer, word) = (pages(4), AtomicU32::new(1));
        receive(0, buffer, 4 * PAGE, 9);
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let calls = [(libc::FUTEX_WAKE, 1u32, buffer.cast_const().cast()), (libc::FUTEX_WAIT, 1, &raw const pause)];
        for (operation, value, time) in calls {
            // SAFETY: the kernel looks at no more than the word and the time.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, time, buffer, 0) };
            assert_eq!(arrived(), 0, "{operation}");
        }
        let (wakes, moves) = (1u32, 1usize);
        // SAFETY: both words are there; nobody sleeps on them.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_REQUEUE, wakes, moves, buffer, 0) };
        assert_eq!(arrived(), 1, "this one takes a second word");
    });
}
