//! A copy of this process that waits, to try on it what ranks do with each other: it is there until it is dropped, however busy the machine is.
//!
//! A program that is started to be looked at may not be there yet, or no more, when one looks; what that gave was taken for a refusal.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2};
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};

/// Lies at the same address in the copy.
static MARK: [u8; 16] = *b"vmpi doctor twin";

pub(super) struct Twin {
    pid: Pid,
    /// While this is open, it waits.
    hold: Option<OwnedFd>,
}

impl Twin {
    /// # Errors
    /// No further process, or no further descriptors.
    pub(super) fn start() -> Result<Twin, Errno> {
        let (wait, hold) = pipe2(OFlag::O_CLOEXEC)?;
        // SAFETY: the child calls nothing but close, read and _exit, which may be called after a fork whatever threads there were.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Twin { pid: child, hold: Some(hold) }),
            ForkResult::Child => {
                let mut byte = 0u8;
                // SAFETY: both descriptors are open and the child's own; one byte is written to `byte` at most.
                unsafe {
                    libc::close(hold.as_raw_fd());
                    while libc::read(wait.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && Errno::last() == Errno::EINTR {
                    }
                    libc::_exit(0)
                }
            }
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// Read its memory in one copy, as ranks read each other's. True if what was read is what is there.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn is_readable(&self) -> Result<bool, Errno> {
        let mut bytes = [0u8; MARK.len()];
        let remote = [RemoteIoVec { base: MARK.as_ptr().addr(), len: MARK.len() }];
        let count = process_vm_readv(self.pid, &mut [IoSliceMut::new(&mut bytes)], &remote)?;
        Ok(count == MARK.len() && bytes == MARK)
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        self.hold = None;
        while waitpid(self.pid, None) == Err(Errno::EINTR) {}
    }
}
