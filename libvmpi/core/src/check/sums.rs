//! Sums over memory that the program may have given back: to see whether it is still what it was.

use nix::errno::Errno;
use std::ffi::c_void;

/// The sum of nothing.
pub(crate) const START: u64 = 0xcbf2_9ce4_8422_2325;
/// Memory is looked at in pieces of this size, so that a block has the same sum wherever it lies.
const PIECE: usize = 4096;

/// Go on with `sum` over these bytes.
pub(crate) fn over(mut sum: u64, bytes: &[u8]) -> u64 {
    for piece in bytes.chunks(PIECE) {
        let (words, rest) = piece.as_chunks::<8>();
        for word in words {
            sum = (sum ^ u64::from_le_bytes(*word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        for byte in rest {
            sum = (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    sum
}

/// Go on with `sum` over a block of this process's memory; `None`: it cannot be read.
pub(crate) fn over_memory(mut sum: u64, mut addr: u64, mut left: u64) -> Option<u64> {
    let mut piece = [0u8; PIECE];
    while left > 0 {
        let piece = &mut piece[..left.min(PIECE as u64) as usize];
        read(addr, piece)?;
        sum = over(sum, piece);
        (addr, left) = (addr + piece.len() as u64, left - piece.len() as u64);
    }
    Some(sum)
}

/// Is there no memory at this address? Where the kernel does not answer that (a container that refuses the call) nothing is said.
pub(crate) fn is_missing(addr: u64) -> bool {
    read(addr, &mut [0]).is_none() && Errno::last() == Errno::EFAULT
}

/// Read this process's own memory: by the kernel, which looks whether it is there.
fn read(addr: u64, into: &mut [u8]) -> Option<()> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: addr as *mut c_void, iov_len: into.len() };
    // SAFETY: the kernel checks the address, and writes into the piece only.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    (usize::try_from(read) == Ok(into.len())).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_same_sum_wherever_it_lies() {
        let memory: Vec<u8> = (0..10_003u32).map(|n| (n * 7) as u8).collect();
        let sum = over(START, &memory);
        assert_eq!(over_memory(START, memory.as_ptr() as u64, memory.len() as u64), Some(sum));
        let mut other = memory.clone();
        other[9_999] ^= 1;
        assert_ne!(over(START, &other), sum);
        assert_eq!(over_memory(START, 8, 8), None);
        assert!(is_missing(8) && !is_missing(memory.as_ptr() as u64));
    }
}
