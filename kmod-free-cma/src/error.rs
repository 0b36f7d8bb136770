//! How a copy can fail.

use nix::errno::Errno;

/// Which end of a copy an address belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// This process.
    Local,
    /// The process copied from or to.
    Remote,
}

/// A copy that could not be completed. Small and without heap, so that it can be returned from the message path.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The process is gone, or never was.
    #[error("process {pid} does not exist (any more)")]
    NoSuchProcess { pid: i32 },
    /// The kernel refuses access to this process; [`crate::probe::explain`] finds out which limit it was.
    #[error("the kernel refuses access to the memory of process {pid}")]
    Refused { pid: i32 },
    /// An address is not mapped, or not with the needed right. `copied` bytes before it have arrived.
    #[error("{} address {addr:#x} of a copy with process {pid} is not accessible ({copied} bytes were copied before it)", match side { Side::Local => "local", Side::Remote => "remote" })]
    Fault { pid: i32, side: Side, addr: u64, copied: u64 },
    /// A block's end lies beyond the address space, so the list cannot have been meant.
    #[error("{} block of {len} bytes at {addr:#x} reaches beyond the address space", match side { Side::Local => "local", Side::Remote => "remote" })]
    Impossible { side: Side, addr: u64, len: u64 },
    /// The system call does not exist here: an old or reduced kernel, or a seccomp filter that hides it.
    #[error("this kernel offers no process_vm_readv and process_vm_writev (errno ENOSYS)")]
    Unsupported,
    /// Anything else that the kernel said.
    #[error("copying with process {pid} failed: {errno}")]
    Kernel { pid: i32, errno: Errno },
}
