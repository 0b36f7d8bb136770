//! What guarding a process's memory needs of the kernel (`vmpirun --overlap`): asked by each rank, and by `vmpictl doctor`.

use crate::mem::checker;
use nix::Error;
use nix::sys::mman::{MRemapFlags, MapFlags, ProtFlags, mmap_anonymous, mremap, munmap};
use std::num::NonZeroUsize;
use std::ptr::null;
use std::sync::atomic::AtomicU8;

/// prctl(PR_SET_SYSCALL_USER_DISPATCH, on or off, begin and length of what is not caught, selector).
pub const SET_DISPATCH: i32 = 59;
pub const DISPATCH_OFF: u64 = 0;
pub const DISPATCH_ON: u64 = 1;
const PAGE_BYTES: NonZeroUsize = NonZeroUsize::new(4 << 10).unwrap();

/// What is there, in the words of a report.
pub const OFFERED: &str = "buffers can be guarded: the kernel hands system calls to the process that makes them (syscall user dispatch), and needs no userfaultfd for it";

/// Why nothing is guarded in this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    #[error(
        "the kernel does not hand system calls to the process that makes them (syscall user dispatch: {0}), so blocking calls block as ever; \
         Linux 5.11 allows it, if no seccomp filter forbids prctl(PR_SET_SYSCALL_USER_DISPATCH)"
    )]
    Dispatch(Error),
    #[error(
        "the kernel does not move memory away and keep its place (MREMAP_DONTUNMAP: {0}), so blocking calls block as ever; Linux 5.7 allows it, if no seccomp filter \
         forbids mremap"
    )]
    Move(Error),
    #[error(
        "/proc does not tell how many threads there are ({0}), so blocking calls block as ever; mount it, and they need not"
    )]
    Proc(Error),
    #[error("valgrind does not know syscall user dispatch, so blocking calls block as ever; without it they need not")]
    Valgrind,
}

/// Can this process guard its memory? It must not be guarding any.
///
/// # Errors
/// What is missing.
pub fn look() -> Result<(), Unavailable> {
    if checker::is_valgrind() {
        return Err(Unavailable::Valgrind);
    }
    try_dispatch().map_err(Unavailable::Dispatch)?;
    nix::sys::stat::stat("/proc/self/task").map_err(Unavailable::Proc)?;
    try_moving().map_err(Unavailable::Move)
}

fn try_dispatch() -> nix::Result<()> {
    static NOTHING_IS_CAUGHT: AtomicU8 = AtomicU8::new(0);
    let set = |mode: u64, selector: *const u8| {
        // SAFETY: the selector is static, and says that no call is caught.
        Error::result(unsafe { libc::prctl(SET_DISPATCH, mode, 0u64, 0u64, selector) })
    };
    set(DISPATCH_ON, NOTHING_IS_CAUGHT.as_ptr())?;
    set(DISPATCH_OFF, null()).map(drop)
}

fn try_moving() -> nix::Result<()> {
    let open = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    let flags = MRemapFlags::MREMAP_MAYMOVE | MRemapFlags::from_bits_retain(libc::MREMAP_DONTUNMAP);
    let len = PAGE_BYTES.get();
    // SAFETY: new mappings, which nobody else knows.
    unsafe {
        let from = mmap_anonymous(None, PAGE_BYTES, open, MapFlags::MAP_PRIVATE)?;
        let moved = mremap(from, len, len, flags, None);
        for at in [Ok(from), moved].into_iter().flatten() {
            munmap(at, len)?;
        }
        moved.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_what_is_missing_what_is_done_and_how_to_allow_it() {
        for why in [
            Unavailable::Dispatch(Error::EINVAL),
            Unavailable::Move(Error::EINVAL),
            Unavailable::Proc(Error::ENOENT),
            Unavailable::Valgrind,
        ] {
            let said = why.to_string();
            assert!(said.contains("so blocking calls block as ever; ") && !said.contains('\n'), "{said}");
        }
    }

    /// As a container's filter might.
    #[test]
    fn a_filter_is_told_of() {
        use nix::sys::wait::{WaitStatus, waitpid};
        use nix::unistd::{ForkResult, fork};
        if look().is_err() {
            return eprintln!("skipped: there is nothing to forbid");
        }
        // SAFETY: the child makes system calls, and ends.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let is_told = forbid_prctl_59() && look() == Err(Unavailable::Dispatch(Error::EPERM));
                // SAFETY: ends the child.
                unsafe { libc::_exit(if is_told { 0 } else { 1 }) }
            }
            ForkResult::Parent { child } => assert_eq!(waitpid(child, None), Ok(WaitStatus::Exited(child, 0))),
        }
    }

    fn forbid_prctl_59() -> bool {
        let load = |offset| libc::sock_filter {
            code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
            jt: 0,
            jf: 0,
            k: offset,
        };
        let unless = |value, skip| libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: skip,
            k: value,
        };
        let answer = |value| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: value };
        // Number, then the first argument.
        let mut program = [
            load(0),
            unless(libc::SYS_prctl as u32, 3),
            load(16),
            unless(SET_DISPATCH as u32, 1),
            answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
            answer(libc::SECCOMP_RET_ALLOW),
        ];
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: a valid program, which lives for the call.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) == 0
        }
    }
}
