//! Single copy between processes without a kernel module.
//!
//! Reading order: [`iovec`] (pure arithmetic on lists of blocks), [`copy`](mod@copy) (the loop over `process_vm_readv` and
//! `process_vm_writev`; `detour`: where the processor would make them slowly), [`probe`](mod@probe) (may I copy from this peer, and if not, which limit refused), [`calibrate`](mod@calibrate) (which
//! way is cheapest at which size, measured), [`areas`] (what lies at an address of this process), [`error`].
//!
//! Unsafe lives in `copy.rs` (the two system calls), `detour.rs` (a second copy) and `calibrate.rs` (timed copies between buffers of its own), `probe.rs` (one prctl) and `areas.rs` (one ioctl).
//! Nothing here allocates on the road of a copy (but once, on the detour), and nothing reads /proc unless a copy was refused.
#![deny(unsafe_code)]

pub mod areas;
pub mod calibrate;
#[allow(unsafe_code)]
pub mod copy;
mod detour;
pub mod error;
pub mod iovec;
pub mod probe;

pub use areas::{Area, Areas};
pub use calibrate::{Calibration, calibrate};
pub use copy::{read, write};
pub use error::{CopyError, Side};
pub use probe::{Refusal, allow_peers, probe};

/// A block of memory in some process: address and length in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Block {
    pub addr: u64,
    pub len: u64,
}

impl Block {
    /// The block that a slice of this process occupies.
    pub fn of<T>(slice: &[T]) -> Block {
        Block { addr: slice.as_ptr() as u64, len: size_of_val(slice) as u64 }
    }
}
