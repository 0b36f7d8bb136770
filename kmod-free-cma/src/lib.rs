//! Contract (owner: cma helper).

/// A block of memory in some process: address and length in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Block {
    pub addr: u64,
    pub len: u64,
}

pub struct CopyError;

/// Copy from `remote` blocks of process `pid` into `local` blocks of this process; total = the shorter of the two.
/// Returns the bytes copied.
///
/// # Safety
/// `local` must be valid for writes.
pub unsafe fn read(pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    let _ = (pid, local, remote);
    todo!()
}

/// The other way round.
///
/// # Safety
/// `local` must be valid for reads.
pub unsafe fn write(pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    let _ = (pid, local, remote);
    todo!()
}
