//! The loop over `process_vm_readv` and `process_vm_writev`.
//!
//! The kernel takes at most IOV_MAX (1024) blocks a side and 2 GiB less a page a call, and stops early at the first page
//! that it cannot reach. Each call here passes a window of [`WINDOW_BLOCKS`] blocks a side, clipped to equal totals, from
//! two arrays on the stack: a further call costs 0.2 us per 64 blocks, against more than 0.1 us that the kernel needs to
//! pin the page of each single block, so larger windows on the heap would gain nothing worth an allocation.

use crate::Block;
use crate::detour;
use crate::error::{CopyError, Side};
use crate::iovec::{Cursor, total_bytes};
use nix::errno::Errno;

/// Blocks per side and system call; below every kernel's IOV_MAX.
pub const WINDOW_BLOCKS: usize = 64;
/// Bytes per system call; below the kernel's MAX_RW_COUNT (0x7fff_f000).
const WINDOW_BYTES: u64 = 1 << 30;

#[derive(Copy, Clone, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// Copy from `remote` blocks of process `pid` into `local` blocks of this process; total = the shorter of the two.
/// Returns the bytes copied. One system call per 64 blocks; blocks only for page faults.
///
/// # Errors
/// See [`CopyError`]; on [`CopyError::Fault`] the bytes before the faulting address have been copied.
///
/// # Safety
/// `local` must be valid for writes, and nobody else may access it meanwhile.
pub unsafe fn read(pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    // SAFETY: the caller's promise.
    unsafe { transfer(Direction::Read, pid, local, remote) }
}

/// Copy from `local` blocks of this process into `remote` blocks of process `pid`; total = the shorter of the two.
/// Returns the bytes copied.
///
/// # Errors
/// As [`read`].
///
/// # Safety
/// `local` must be valid for reads. What the remote side makes of the bytes is its own affair: the caller must have been
/// told by it that these blocks may be written.
pub unsafe fn write(pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    // SAFETY: the caller's promise.
    unsafe { transfer(Direction::Write, pid, local, remote) }
}

/// # Safety
/// `local` must be valid for writes (`Read`) or reads (`Write`).
unsafe fn transfer(direction: Direction, pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    let total = total_bytes(local, Side::Local)?.min(total_bytes(remote, Side::Remote)?);
    let (mut here, mut there) = (Cursor::new(local), Cursor::new(remote));
    let mut copied = 0;
    while copied < total {
        let max = (total - copied).min(WINDOW_BYTES);
        // SAFETY: the caller's promise about `local`.
        match unsafe { best_way(direction, pid, &here, &there, max) } {
            Ok(bytes) if bytes > 0 => {
                here.advance(bytes);
                there.advance(bytes);
                copied += bytes;
            }
            // The kernel does not promise progress; nothing copied without an error is as good as an unreachable address.
            Ok(_) | Err(Errno::EFAULT) => return Err(fault(direction, pid, &here, &there, copied)),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(classify(pid, errno)),
        }
    }
    Ok(total)
}

/// One system call, straight or by a detour.
///
/// # Safety
/// As [`transfer`].
unsafe fn best_way(
    direction: Direction,
    pid: i32,
    local: &Cursor,
    remote: &Cursor,
    max_bytes: u64,
) -> Result<u64, Errno> {
    let (here, there) = (local.here(), remote.here());
    let detour = match direction {
        Direction::Read => detour::needed(there, here, max_bytes),
        Direction::Write => detour::needed(here, there, max_bytes),
    };
    // SAFETY: the caller's promise; the detour's block is its own.
    unsafe {
        let (Some(len), Some(here), Some(there)) = (detour, here, there) else {
            return one_call(direction, pid, local, remote, max_bytes);
        };
        let call = |block: Block| {
            let there = [Block { addr: there.addr, len }];
            one_call(direction, pid, &Cursor::new(&[block]), &Cursor::new(&there), len)
        };
        match direction {
            Direction::Read => detour::read(there.addr, here.addr, len, call),
            Direction::Write => detour::write(here.addr, len, call),
        }
    }
}

/// One system call for at most `max_bytes` and a window of blocks.
///
/// # Safety
/// As [`transfer`].
unsafe fn one_call(
    direction: Direction,
    pid: i32,
    local: &Cursor,
    remote: &Cursor,
    max_bytes: u64,
) -> Result<u64, Errno> {
    let mut ours = Window::new();
    let mut theirs = Window::new();
    let bytes = theirs.fill(remote, max_bytes);
    let fits = ours.fill(local, bytes);
    if fits < bytes {
        theirs.fill(remote, fits);
    }
    // SAFETY: both arrays hold `used` valid entries; the kernel checks every address of the peer; `local` is the caller's promise.
    let result = unsafe {
        let (lvec, lcnt, rvec, rcnt) =
            (ours.blocks.as_ptr(), ours.used as libc::c_ulong, theirs.blocks.as_ptr(), theirs.used as libc::c_ulong);
        match direction {
            Direction::Read => libc::process_vm_readv(pid, lvec, lcnt, rvec, rcnt, 0),
            Direction::Write => libc::process_vm_writev(pid, lvec, lcnt, rvec, rcnt, 0),
        }
    };
    Errno::result(result).map(|bytes| bytes as u64)
}

/// Blocks of one side of one call, in the kernel's form.
struct Window {
    blocks: [libc::iovec; WINDOW_BLOCKS],
    used: usize,
}

impl Window {
    fn new() -> Window {
        Window { blocks: [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; WINDOW_BLOCKS], used: 0 }
    }

    /// Returns the bytes that the window describes.
    fn fill(&mut self, from: &Cursor, max_bytes: u64) -> u64 {
        self.used = 0;
        from.clip(WINDOW_BLOCKS, max_bytes, |block| {
            self.blocks[self.used] =
                libc::iovec { iov_base: block.addr as *mut libc::c_void, iov_len: block.len as usize };
            self.used += 1;
        })
    }
}

/// Find out which side's address the kernel could not reach. The kernel copies page by page, so the cursors stand at it.
#[cold]
fn fault(direction: Direction, pid: i32, local: &Cursor, remote: &Cursor, copied: u64) -> CopyError {
    let at = |cursor: &Cursor| cursor.here().map_or(0, |block| block.addr);
    let remote_addr = at(remote);
    // A byte that can be read tells that the other side is the bad one. Reading is harmless on either side, writing is not.
    let side = match direction {
        Direction::Read if peek(pid, remote_addr).is_ok() => Side::Local,
        Direction::Write if peek(std::process::id() as i32, at(local)).is_err() => Side::Local,
        _ => Side::Remote,
    };
    CopyError::Fault { pid, side, addr: if side == Side::Local { at(local) } else { remote_addr }, copied }
}

/// Read one byte of a process: the question behind every probe.
///
/// # Errors
/// As the kernel says.
pub(crate) fn peek(pid: i32, addr: u64) -> Result<u8, Errno> {
    let mut byte = 0u8;
    let local = [Block { addr: &raw mut byte as u64, len: 1 }];
    let remote = [Block { addr, len: 1 }];
    // SAFETY: the local block is `byte`.
    match unsafe { one_call(Direction::Read, pid, &Cursor::new(&local), &Cursor::new(&remote), 1) }? {
        1 => Ok(byte),
        _ => Err(Errno::EFAULT),
    }
}

#[cold]
fn classify(pid: i32, errno: Errno) -> CopyError {
    match errno {
        Errno::ESRCH => CopyError::NoSuchProcess { pid },
        Errno::EPERM | Errno::EACCES => CopyError::Refused { pid },
        Errno::ENOSYS => CopyError::Unsupported,
        errno => CopyError::Kernel { pid, errno },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Many more blocks than a window or IOV_MAX holds, differently cut on both sides, both ways, within this process.
    #[test]
    fn long_lists_are_copied_whole() {
        let me = std::process::id() as i32;
        let source: Vec<u8> = (0..30_000u32).map(|i| (i * 7 % 251) as u8).collect();
        let cut = |bytes: &[u8], size: usize| bytes.chunks(size).map(Block::of).collect::<Vec<_>>();
        for (local_size, remote_size) in [(3, 7), (7, 3), (30_000, 5), (5, 30_000), (1, 4096)] {
            let target = vec![0u8; source.len()];
            // SAFETY: the blocks cover `target` and `source`; nobody else uses them.
            let read = unsafe { read(me, &cut(&target, local_size), &cut(&source, remote_size)) };
            assert_eq!(read, Ok(30_000));
            assert_eq!(std::hint::black_box(&target), &source, "read {local_size} {remote_size}");
            let target = vec![0u8; source.len()];
            // SAFETY: as above.
            let written = unsafe { write(me, &cut(&source, local_size), &cut(&target, remote_size)) };
            assert_eq!(written, Ok(30_000));
            assert_eq!(std::hint::black_box(&target), &source, "write {local_size} {remote_size}");
        }
    }

    #[test]
    fn the_shorter_list_decides_and_nothing_is_fine() {
        let me = std::process::id() as i32;
        let (a, b) = ([1u8; 10], [0u8; 4]);
        // SAFETY: the blocks are `a` and `b`.
        unsafe {
            assert_eq!(read(me, &[Block::of(&b)], &[Block::of(&a)]), Ok(4));
            assert_eq!(read(me, &[], &[Block::of(&a)]), Ok(0));
            assert_eq!(read(me, &[Block { addr: 8, len: 0 }], &[Block::of(&a)]), Ok(0));
        }
        assert_eq!(std::hint::black_box(b), [1; 4]);
    }
}
