//! perf_event_open(2): what is to be counted or sampled, and the descriptor for it.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// PERF_TYPE_HARDWARE and PERF_TYPE_SOFTWARE, for `Attributes::kind`.
pub const HARDWARE: u32 = 0;
pub const SOFTWARE: u32 = 1;
/// PERF_COUNT_SW_TASK_CLOCK.
pub const TASK_CLOCK: u64 = 1;
/// Bits of `Attributes::flags`: threads that are started later count, too; not what happens in the kernel, or in a hypervisor.
pub const INHERIT: u64 = 1 << 1;
pub const EXCLUDE_KERNEL: u64 = 1 << 5;
pub const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` up to its third version.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    pub kind: u32,
    /// Filled in by `open`.
    pub size: u32,
    pub number: u64,
    pub period: u64,
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    pub wakeup: u32,
    pub breakpoint: u32,
    pub config1: u64,
    pub config2: u64,
    pub branches: u64,
    pub registers: u64,
    pub stack: u32,
    pub clock: i32,
}

const _: () = assert!(size_of::<Attributes>() == 96);

impl Attributes {
    /// Count or sample on all CPUs for `thread`; 0: the calling one.
    ///
    /// # Errors
    /// Those of perf_event_open(2).
    pub fn open(self, thread: i32) -> io::Result<OwnedFd> {
        let attributes = Attributes { size: size_of::<Attributes>() as u32, ..self };
        // SAFETY: the structure is valid for the call; it is as large as it says.
        let fd =
            unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1, -1, CLOSE_ON_EXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor to this process; nobody else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}
