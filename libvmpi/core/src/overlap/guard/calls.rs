//! What memory of its caller's a system call may touch.
//!
//! Too much is harmless, since it only waits for more; what is not written here waits for everything. So memory behind pointers of unknown kind need not be known.

use super::{raw, signals, table};

/// What is to be done with a call when its memory has been waited for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Known,
    /// All of the process, maybe.
    Unknown,
    /// What a process is: nobody makes such a call for it.
    Own,
    SignalReturn,
    Action,
    Mask,
}

const PATH: u64 = 4096;
const SOCKET_ADDRESS: u64 = 128;
const STAT: u64 = 256;
const TIME: u64 = 32;
const PROCMAP_QUERY: u64 = 0xc068_6611;
const TCGETS: u64 = 0x5401;
const FIONREAD: u64 = 0x541b;
const TIOCGWINSZ: u64 = 0x5413;
/// More elements than any list has that the kernel takes.
const MOST_PARTS: u64 = 1024;
const PARTS_AT_ONCE: usize = 16;

fn reads(addr: u64, len: u64) {
    wait(addr, len, false);
}

fn writes(addr: u64, len: u64) {
    wait(addr, len, true);
}

fn wait(addr: u64, len: u64, for_write: bool) {
    let start = addr as usize;
    if start >= table::ADDRESSES {
        return;
    }
    let Some(range) = table::pages_of(start, (len as usize).min(table::ADDRESSES - start)) else { return };
    while let Some(ticket) = table::meeting(&range, for_write) {
        super::tell(ticket, start, 0);
    }
}

/// What is to be done with it, as far as its number tells.
pub(super) fn kind(number: i64) -> Use {
    match number {
        libc::SYS_rt_sigreturn => Use::SignalReturn,
        libc::SYS_rt_sigaction => Use::Action,
        libc::SYS_rt_sigprocmask => Use::Mask,
        _ if changes_process(number) => Use::Own,
        _ => Use::Known,
    }
}

/// Wait for the guards of what `number` uses.
pub(super) fn wait_for_what_is_used(number: i64, a: &[u64; 6]) -> Use {
    match kind(number) {
        Use::Action => {
            reads(a[1], 32);
            writes(a[2], 32);
            return Use::Action;
        }
        Use::Mask => {
            reads(a[1], 8);
            writes(a[2], 8);
            return Use::Mask;
        }
        Use::Known => {}
        other => return other,
    }
    let known = uses_nothing(number)
        || transfers(number, a)
        || names_files(number, a)
        || waits(number, a)
        || is_about_sockets(number, a)
        || changes_memory(number, a)
        || answers(number, a);
    if known { Use::Known } else { Use::Unknown }
}

fn changes_process(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_fork
            | libc::SYS_vfork
            | libc::SYS_clone
            | libc::SYS_clone3
            | libc::SYS_execve
            | libc::SYS_execveat
            | libc::SYS_sigaltstack
            | libc::SYS_rt_sigsuspend
            | libc::SYS_rt_sigtimedwait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_arch_prctl
            | libc::SYS_prctl
            | libc::SYS_seccomp
            | libc::SYS_set_tid_address
            | libc::SYS_set_robust_list
            | libc::SYS_rseq
    )
}

fn uses_nothing(number: i64) -> bool {
    matches!(
        number,
        libc::SYS_close
            | libc::SYS_lseek
            | libc::SYS_sched_yield
            | libc::SYS_dup
            | libc::SYS_dup2
            | libc::SYS_dup3
            | libc::SYS_pause
            | libc::SYS_alarm
            | libc::SYS_getpid
            | libc::SYS_gettid
            | libc::SYS_getppid
            | libc::SYS_getpgrp
            | libc::SYS_getpgid
            | libc::SYS_getsid
            | libc::SYS_getuid
            | libc::SYS_geteuid
            | libc::SYS_getgid
            | libc::SYS_getegid
            | libc::SYS_kill
            | libc::SYS_tkill
            | libc::SYS_tgkill
            | libc::SYS_fsync
            | libc::SYS_fdatasync
            | libc::SYS_ftruncate
            | libc::SYS_fallocate
            | libc::SYS_fadvise64
            | libc::SYS_flock
            | libc::SYS_fchmod
            | libc::SYS_fchown
            | libc::SYS_fchdir
            | libc::SYS_umask
            | libc::SYS_socket
            | libc::SYS_listen
            | libc::SYS_shutdown
            | libc::SYS_epoll_create
            | libc::SYS_epoll_create1
            | libc::SYS_eventfd2
            | libc::SYS_timerfd_create
            | libc::SYS_inotify_init1
            | libc::SYS_membarrier
            | libc::SYS_exit
            | libc::SYS_exit_group
    )
}

/// Data of the program's.
fn transfers(number: i64, a: &[u64; 6]) -> bool {
    match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_getdents64 => writes(a[1], a[2]),
        libc::SYS_write | libc::SYS_pwrite64 => reads(a[1], a[2]),
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => return parts(a[1], a[2], true),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => return parts(a[1], a[2], false),
        libc::SYS_getrandom => writes(a[0], a[1]),
        libc::SYS_sendfile => writes(a[2], 8),
        libc::SYS_splice | libc::SYS_copy_file_range => {
            writes(a[1], 8);
            writes(a[3], 8);
        }
        libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            // SAFETY: takes nothing.
            let own = unsafe { raw::call(libc::SYS_getpid as u64, [0; 6]) };
            reads(a[3], a[4].saturating_mul(16));
            return a[0] != own as u64 && parts(a[1], a[2], number == libc::SYS_process_vm_readv);
        }
        _ => return false,
    }
    true
}

/// A list of parts (struct iovec), and they. False: that cannot be told.
fn parts(list: u64, count: u64, for_write: bool) -> bool {
    if count > MOST_PARTS {
        // The kernel refuses it.
        return true;
    }
    reads(list, count * 16);
    let mut at = 0;
    while at < count {
        let mut some = [[0u64; 2]; PARTS_AT_ONCE];
        let now = (count - at).min(PARTS_AT_ONCE as u64);
        if !copy(list + at * 16, &mut some, now * 16) {
            return false;
        }
        some.iter().take(now as usize).for_each(|[addr, len]| wait(*addr, *len, for_write));
        at += now;
    }
    true
}

/// Copy memory that the program names, and that need not be there.
fn copy<T>(from: u64, into: &mut T, len: u64) -> bool {
    let len = len.min(size_of::<T>() as u64);
    let (own, there) = ([std::ptr::from_mut(into) as u64, len], [from, len]);
    // SAFETY: writes at most all of `into`, which is made of numbers.
    unsafe {
        let pid = raw::call(libc::SYS_getpid as u64, [0; 6]) as u64;
        let lists = (&raw const own as u64, &raw const there as u64);
        raw::call(libc::SYS_process_vm_readv as u64, [pid, lists.0, 1, lists.1, 1, 0]) == len as i64
    }
}

fn names_files(number: i64, a: &[u64; 6]) -> bool {
    let (first, second) = match number {
        libc::SYS_open | libc::SYS_access | libc::SYS_unlink | libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_chdir => {
            (a[0], 0)
        }
        libc::SYS_openat | libc::SYS_faccessat | libc::SYS_faccessat2 | libc::SYS_unlinkat | libc::SYS_mkdirat => {
            (a[1], 0)
        }
        libc::SYS_rename | libc::SYS_link | libc::SYS_symlink => (a[0], a[1]),
        libc::SYS_renameat | libc::SYS_renameat2 => (a[1], a[3]),
        libc::SYS_stat | libc::SYS_lstat => {
            writes(a[1], STAT);
            (a[0], 0)
        }
        libc::SYS_fstat => {
            writes(a[1], STAT);
            (0, 0)
        }
        libc::SYS_newfstatat => {
            writes(a[2], STAT);
            (a[1], 0)
        }
        libc::SYS_statx => {
            writes(a[4], STAT);
            (a[1], 0)
        }
        libc::SYS_statfs | libc::SYS_fstatfs => {
            writes(a[1], STAT);
            (if number == libc::SYS_statfs { a[0] } else { 0 }, 0)
        }
        libc::SYS_readlink => {
            writes(a[1], a[2]);
            (a[0], 0)
        }
        libc::SYS_readlinkat => {
            writes(a[2], a[3]);
            (a[1], 0)
        }
        libc::SYS_getcwd => {
            writes(a[0], a[1]);
            (0, 0)
        }
        _ => return false,
    };
    reads(first, PATH);
    reads(second, PATH);
    true
}

/// Waiting, and time.
fn waits(number: i64, a: &[u64; 6]) -> bool {
    match number {
        libc::SYS_futex => {
            writes(a[0], 8);
            let operation = a[1] as libc::c_int & libc::FUTEX_CMD_MASK;
            // What an operation does not take is whatever lies in the register.
            if !takes_no_time(operation) {
                reads(a[3], TIME);
            }
            if !takes_one_word(operation) {
                writes(a[4], 8);
            }
        }
        libc::SYS_poll => writes(a[0], a[1].saturating_mul(8)),
        libc::SYS_ppoll => {
            reads(a[3], 8);
            // SAFETY: what is read has been waited for.
            if !unsafe { signals::lets_come(a[3]) } {
                return false;
            }
            writes(a[0], a[1].saturating_mul(8));
            writes(a[2], TIME);
        }
        libc::SYS_select | libc::SYS_pselect6 => {
            if number == libc::SYS_pselect6 && a[5] != 0 {
                return false;
            }
            let len = a[0].min(1 << 20).div_ceil(64) * 8;
            a[1..4].iter().for_each(|set| writes(*set, len));
            writes(a[4], TIME);
        }
        libc::SYS_epoll_wait => writes(a[1], a[2].saturating_mul(16)),
        libc::SYS_epoll_ctl => reads(a[3], 16),
        libc::SYS_nanosleep => {
            reads(a[0], TIME);
            writes(a[1], TIME);
        }
        libc::SYS_clock_nanosleep => {
            reads(a[2], TIME);
            writes(a[3], TIME);
        }
        libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_getitimer => writes(a[1], TIME),
        libc::SYS_gettimeofday => {
            writes(a[0], TIME);
            writes(a[1], TIME);
        }
        libc::SYS_time => writes(a[0], TIME),
        libc::SYS_setitimer => {
            reads(a[1], TIME);
            writes(a[2], TIME);
        }
        libc::SYS_timerfd_settime => {
            reads(a[2], TIME);
            writes(a[3], TIME);
        }
        libc::SYS_wait4 => {
            writes(a[1], 8);
            writes(a[3], STAT);
        }
        _ => return false,
    }
    true
}

/// In its place a futex operation has nothing, or a number.
fn takes_no_time(operation: libc::c_int) -> bool {
    use libc::{FUTEX_CMP_REQUEUE, FUTEX_CMP_REQUEUE_PI, FUTEX_REQUEUE, FUTEX_WAKE, FUTEX_WAKE_BITSET, FUTEX_WAKE_OP};
    use libc::{FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI};
    let with_number = matches!(operation, FUTEX_REQUEUE | FUTEX_CMP_REQUEUE | FUTEX_WAKE_OP | FUTEX_CMP_REQUEUE_PI);
    with_number || matches!(operation, FUTEX_WAKE | FUTEX_WAKE_BITSET | FUTEX_UNLOCK_PI | FUTEX_TRYLOCK_PI)
}

fn takes_one_word(operation: libc::c_int) -> bool {
    use libc::{FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET};
    use libc::{FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI};
    let waits = matches!(operation, FUTEX_WAIT | FUTEX_WAIT_BITSET | FUTEX_LOCK_PI | FUTEX_LOCK_PI2);
    waits || matches!(operation, FUTEX_WAKE | FUTEX_WAKE_BITSET | FUTEX_UNLOCK_PI | FUTEX_TRYLOCK_PI)
}

fn is_about_sockets(number: i64, a: &[u64; 6]) -> bool {
    match number {
        libc::SYS_connect | libc::SYS_bind => reads(a[1], a[2].min(PATH)),
        libc::SYS_accept | libc::SYS_accept4 | libc::SYS_getsockname | libc::SYS_getpeername => {
            writes(a[1], SOCKET_ADDRESS);
            writes(a[2], 8);
        }
        libc::SYS_sendto => {
            reads(a[1], a[2]);
            reads(a[4], a[5].min(PATH));
        }
        libc::SYS_recvfrom => {
            writes(a[1], a[2]);
            writes(a[4], SOCKET_ADDRESS);
            writes(a[5], 8);
        }
        libc::SYS_setsockopt => reads(a[3], a[4].min(PATH)),
        libc::SYS_getsockopt => {
            writes(a[3], PATH);
            writes(a[4], 8);
        }
        libc::SYS_sendmsg | libc::SYS_recvmsg => return message(a[1], number == libc::SYS_recvmsg),
        _ => return false,
    }
    true
}

/// A `struct msghdr`: name, list of parts, control data.
fn message(at: u64, for_write: bool) -> bool {
    let mut header = [0u64; 7];
    writes(at, size_of_val(&header) as u64);
    if !copy(at, &mut header, u64::MAX) {
        return false;
    }
    let [name, name_len, list, count, control, control_len, _] = header;
    wait(name, name_len & u64::from(u32::MAX), for_write);
    wait(control, control_len, for_write);
    parts(list, count, for_write)
}

/// What becomes of memory itself.
fn changes_memory(number: i64, a: &[u64; 6]) -> bool {
    match number {
        libc::SYS_mmap => {
            if a[3] & libc::MAP_FIXED as u64 != 0 {
                writes(a[0], a[1]);
            }
        }
        libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_madvise
        | libc::SYS_msync
        | libc::SYS_mlock
        | libc::SYS_munlock => {
            writes(a[0], a[1]);
        }
        libc::SYS_mremap => {
            writes(a[0], a[1].max(a[2]));
            if a[3] & libc::MREMAP_FIXED as u64 != 0 {
                writes(a[4], a[2]);
            }
        }
        // Above the new end nothing is left.
        libc::SYS_brk => {
            // SAFETY: asks where it is.
            let end = unsafe { raw::call(libc::SYS_brk as u64, [0; 6]) } as u64;
            if a[0] != 0 && a[0] < end {
                writes(a[0], end - a[0]);
            }
        }
        _ => return false,
    }
    true
}

/// Facts.
fn answers(number: i64, a: &[u64; 6]) -> bool {
    match number {
        libc::SYS_getrusage => writes(a[1], STAT),
        libc::SYS_times | libc::SYS_sysinfo => writes(a[0], STAT),
        libc::SYS_uname => writes(a[0], 512),
        libc::SYS_getrlimit => writes(a[1], 16),
        libc::SYS_prlimit64 => {
            reads(a[2], 16);
            writes(a[3], 16);
        }
        libc::SYS_getcpu => {
            writes(a[0], 8);
            writes(a[1], 8);
        }
        libc::SYS_sched_getaffinity => writes(a[2], a[1]),
        libc::SYS_pipe | libc::SYS_pipe2 => writes(a[0], 8),
        libc::SYS_rt_sigpending => writes(a[0], 8),
        libc::SYS_rt_tgsigqueueinfo => reads(a[3], 128),
        libc::SYS_fcntl => writes(a[2], 64),
        libc::SYS_ioctl => match a[1] & u64::from(u32::MAX) {
            PROCMAP_QUERY => writes(a[2], STAT),
            TCGETS | FIONREAD | TIOCGWINSZ => writes(a[2], 64),
            _ => return false,
        },
        _ => return false,
    }
    true
}
