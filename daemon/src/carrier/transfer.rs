//! Large messages: from the sender's memory into frames, and out of frames into the receive buffer, by the carriers alone.
#![allow(unsafe_code)]

use vmpi_cma::{Block, CopyError};
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::node::NodeSegment;

/// Bytes of one DATA frame: long enough that a system call does not count, short enough that sending and copying overlap.
pub const CHUNK_BYTES: u64 = 128 << 10;
/// Most blocks of a list; more are a damaged word.
const MOST_BLOCKS: u32 = 1 << 26;
/// So many are read at a time: memory is taken for those alone that are there.
const BLOCKS_AT_ONCE: u32 = 4096;

/// The memory of a rank of this node.
#[derive(Copy, Clone)]
pub struct Memory {
    rank: u32,
    pid: i32,
    /// The rank has said that what the message concerns lies in its memory file, which is mapped here (`vmpi_shared::node::peer_memory`):
    /// the kernel's copy from process to process takes longer than all else that becomes of the bytes here. Death story: the file stays while it is mapped, so a rank
    /// that dies leaves bytes that nobody asks for; a file that gets no page (no memory is left) ends this process by SIGBUS, and so the job.
    open: bool,
}

impl Memory {
    /// Of a rank that is no more: nothing can be read or written there.
    pub const GONE: Memory = Memory { rank: u32::MAX, pid: 0, open: false };

    /// `None`: the rank is no more.
    pub fn of(endpoint: &CarrierEndpoint, rank: u32, open: bool) -> Option<Memory> {
        Some(Memory { rank, pid: endpoint.pid(rank)?, open })
    }

    /// Where these blocks are in this process, if they are one of `len` bytes; good until the next call.
    fn reach(&self, node: &NodeSegment, blocks: &[Block], len: usize) -> Option<*mut u8> {
        match blocks {
            [block] if self.open && block.len == len as u64 => {
                node.heaps().reach(node, self.rank, block.addr, block.len)
            }
            _ => None,
        }
    }
}

/// Blocks of a rank's memory, taken from the front.
#[derive(Clone)]
pub struct Cursor {
    memory: Memory,
    blocks: Vec<Block>,
    index: usize,
    at: u64,
}

/// Why memory cannot be reached.
#[derive(Debug)]
pub enum Unreachable {
    /// The kernel does not let this process copy: only the rank itself can.
    Refused,
    Errno(i32),
}

impl Unreachable {
    /// For who can do nothing but say so.
    pub fn errno(&self) -> i32 {
        match self {
            Unreachable::Errno(errno) => *errno,
            Unreachable::Refused => libc::EPERM,
        }
    }
}

impl From<CopyError> for Unreachable {
    fn from(error: CopyError) -> Unreachable {
        match error {
            CopyError::Refused { .. } | CopyError::Unsupported => Unreachable::Refused,
            CopyError::NoSuchProcess { .. } => Unreachable::Errno(libc::ESRCH),
            CopyError::Fault { .. } | CopyError::Impossible { .. } => Unreachable::Errno(libc::EFAULT),
            CopyError::Kernel { errno, .. } => Unreachable::Errno(errno as i32),
        }
    }
}

impl Cursor {
    pub fn over(memory: Memory, blocks: Vec<Block>) -> Cursor {
        Cursor { memory, blocks, index: 0, at: 0 }
    }

    /// The `count` blocks listed at `addr`, or for 0 the one of `len` bytes there.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn of(memory: Memory, addr: u64, count: u32, len: u64) -> Result<Cursor, Unreachable> {
        // Of many blocks the rank says nothing.
        let memory = Memory { open: memory.open && count == 0, ..memory };
        let blocks = match count {
            0 => vec![Block { addr, len }],
            count if count > MOST_BLOCKS => return Err(Unreachable::Errno(libc::EFAULT)),
            count => read_list(memory.pid, addr, count, len)?,
        };
        Ok(Cursor::over(memory, blocks))
    }

    /// Can this process read and write its first block?
    pub fn is_reached(&self, node: &NodeSegment) -> bool {
        let Some(Block { addr, .. }) = self.blocks.first().copied() else { return true };
        self.memory.reach(node, &[Block { addr, len: 1 }], 1).is_some()
            || vmpi_cma::probe(self.memory.pid, addr).is_ok()
    }

    /// The next `len` bytes, or as many as there are.
    fn take(&mut self, mut len: u64) -> Vec<Block> {
        let mut taken = Vec::new();
        while len > 0 && self.index < self.blocks.len() {
            let block = self.blocks[self.index];
            let part = (block.len - self.at).min(len);
            taken.push(Block { addr: block.addr.wrapping_add(self.at), len: part });
            len -= part;
            self.at += part;
            if self.at == block.len {
                (self.index, self.at) = (self.index + 1, 0);
            }
        }
        taken
    }

    /// Show `to` the next `len` bytes where they lie. False if this process does not see them: then nothing has been taken.
    pub fn show(&mut self, node: &NodeSegment, len: usize, to: impl FnOnce(&[u8])) -> bool {
        let Some(block) = self.blocks.get(self.index).filter(|block| block.len - self.at >= len as u64) else {
            return false;
        };
        let here = [Block { addr: block.addr.wrapping_add(self.at), len: len as u64 }];
        let Some(at) = self.memory.reach(node, &here, len) else { return false };
        self.take(len as u64);
        // SAFETY: so many bytes are mapped there until another block is reached for, and `to` cannot keep them. The program must not write to what it sends: if it does
        // all the same, it sends other bytes, on whose values nothing here depends.
        to(unsafe { std::slice::from_raw_parts(at, len) });
        true
    }

    /// Read the next bytes into `buffer`.
    ///
    /// # Errors
    /// They cannot all be read.
    pub fn read(&mut self, node: &NodeSegment, buffer: &mut [u8]) -> Result<(), Unreachable> {
        let from = self.take(buffer.len() as u64);
        if let Some(at) = self.memory.reach(node, &from, buffer.len()) {
            // SAFETY: so many bytes are mapped there; the buffer is this process's own.
            unsafe { std::ptr::copy_nonoverlapping(at, buffer.as_mut_ptr(), buffer.len()) };
            return Ok(());
        }
        // SAFETY: the buffer is this process's own, and written with plain bytes.
        match unsafe { vmpi_cma::read(self.memory.pid, &[Block::of(buffer)], &from)? } {
            count if count == buffer.len() as u64 => Ok(()),
            _ => Err(Unreachable::Errno(libc::EFAULT)),
        }
    }

    /// Write `bytes` to where the cursor stands.
    ///
    /// # Errors
    /// They cannot all be written.
    pub fn write(&mut self, node: &NodeSegment, bytes: &[u8]) -> Result<(), Unreachable> {
        let to = self.take(bytes.len() as u64);
        if let Some(at) = self.memory.reach(node, &to, bytes.len()) {
            // SAFETY: so many bytes are mapped there, of the buffer that the receiver has published for this message.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
            return Ok(());
        }
        // SAFETY: the receiver has published these blocks of its own memory for this message, and waits until it is told.
        match unsafe { vmpi_cma::write(self.memory.pid, &[Block::of(bytes)], &to)? } {
            count if count == bytes.len() as u64 => Ok(()),
            _ => Err(Unreachable::Errno(libc::EFAULT)),
        }
    }
}

/// Of the `count` blocks that process `pid` lists at `addr`, those that hold the first `len` bytes.
fn read_list(pid: i32, addr: u64, count: u32, len: u64) -> Result<Vec<Block>, Unreachable> {
    let fault = Unreachable::Errno(libc::EFAULT);
    let (mut list, mut covered) = (Vec::new(), 0u64);
    let mut part = vec![Block { addr: 0, len: 0 }; count.min(BLOCKS_AT_ONCE) as usize];
    let mut at = 0;
    while at < count && covered < len {
        let part = &mut part[..(count - at).min(BLOCKS_AT_ONCE) as usize];
        let bytes = size_of_val(part) as u64;
        let Some(from) = addr.checked_add(u64::from(at) * size_of::<Block>() as u64) else { return Err(fault) };
        // SAFETY: this function's own list is written, with plain integers.
        let got = unsafe { vmpi_cma::read(pid, &[Block::of(part)], &[Block { addr: from, len: bytes }])? };
        if got != bytes {
            return Err(fault);
        }
        for block in part.iter().filter(|block| block.len > 0) {
            covered = covered.saturating_add(block.len);
            list.push(*block);
        }
        at += part.len() as u32;
    }
    Ok(list)
}

/// A receive that has matched a remote announcement: the data is asked for, or coming.
pub struct Incoming {
    /// Rank here, and its request.
    pub rank: u32,
    pub request: u32,
    /// Where it comes from.
    pub node: u32,
    pub sender: u32,
    pub sender_request: u32,
    pub to: Cursor,
    pub len: u64,
    pub got: u64,
    /// errno of a copy that has failed: the rest is thrown away.
    pub failed: i32,
    /// The rank's own question, for the sender itself should its carrier not be able to answer.
    pub pull: vmpi_shared::matching::envelope::Envelope,
    /// It is written into a window: the sender waits for its end, nobody here.
    pub answers_sender: bool,
    /// Nothing but the last byte is needed to complete it (`wire::SENT`).
    pub said: bool,
    /// Its sender's node has said so, which counts when all before it has been delivered (`wire::SENT`).
    pub told: bool,
    /// Its sender has failed, or its receiver has given it up: what still comes is thrown away.
    pub void: bool,
    /// What has asked for it holds its node's credit for `rank`.
    pub credit: bool,
}

impl Incoming {
    pub fn is_whole(&self) -> bool {
        self.got >= self.len && (self.said || self.void)
    }
}

/// A message that a rank here has announced: where it lies, how long it is.
pub struct Announced {
    pub addr: u64,
    /// As in `Memory`.
    pub open: bool,
    pub blocks: u32,
    pub len: u64,
    /// For whom.
    pub to: u32,
    pub fin: Fin,
    /// The receiver's node has asked for it.
    pub wanted: bool,
}

/// Who tells the rank whose memory is read that its send is complete.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fin {
    /// Its carrier, when all has been read.
    Carrier,
    /// The receiver's node, when it has matched.
    Receiver,
    /// It goes into or comes from a window.
    Nobody,
}

/// A message on its way to another node.
pub struct Outgoing {
    pub node: u32,
    /// The other carrier's number for it.
    pub transfer: u32,
    /// Rank here, and its request.
    pub rank: u32,
    pub request: u32,
    /// The rank there.
    pub to: u32,
    pub from: Cursor,
    pub len: u64,
    pub sent: u64,
    pub fin: Fin,
    /// errno of a copy that has failed, of which the other carrier has been told.
    pub failed: i32,
    /// What has asked for it holds its node's credit for `rank`.
    pub credit: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{FcntlArg, SealFlag, fcntl};
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use vmpi_shared::job::{JobConfig, JobSegment};
    use vmpi_shared::node::NodeConfig;

    /// Rank 0 is this process, and says that its memory file is one that differs from its memory, which tells by which way bytes have gone.
    #[test]
    fn what_lies_open_is_reached_through_the_file_and_all_else_by_the_kernel() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 1)).unwrap();
        node.set_pid(0, std::process::id() as i32);
        node.introduce(0);
        let job = JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(1) }).unwrap();
        let endpoint = CarrierEndpoint::new(node, job);
        let node = &endpoint.node;
        let mut private = [1u8; 32];
        let addr = private.as_mut_ptr() as u64;
        let file = File::from(memfd_create("vmpi-test", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).unwrap());
        file.set_len(1 << 47).unwrap();
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).unwrap();
        file.write_all_at(&[2; 32], addr).unwrap();
        node.lay_open(0, &file).unwrap();

        let memory = |open| Memory::of(&endpoint, 0, open).unwrap();
        let mut got = [0; 8];
        let mut closed = Cursor::of(memory(false), addr, 0, 32).unwrap();
        assert!(closed.is_reached(node) && !closed.show(node, 8, |_| panic!("it is not mapped")));
        closed.read(node, &mut got).unwrap();
        assert_eq!(got, [1; 8]);

        let mut open = Cursor::of(memory(true), addr, 0, 32).unwrap();
        assert!(open.is_reached(node));
        assert!(open.show(node, 8, |bytes| assert_eq!(bytes, [2; 8])));
        open.read(node, &mut got).unwrap();
        assert_eq!(got, [2; 8]);
        open.write(node, &[3; 8]).unwrap();
        assert!(!open.show(node, 9, |_| panic!("there are 8 left")));
        assert!(open.show(node, 8, |_| ()) && !open.show(node, 1, |_| panic!("there is none left")));
        let mut filed = [0; 32];
        file.read_exact_at(&mut filed, addr).unwrap();
        assert_eq!(filed[8..], [[2; 8], [3; 8], [2; 8]].concat());

        // Where many blocks are the rank does not say: one list of its own memory.
        let list = [Block { addr, len: 4 }, Block { addr: addr + 8, len: 4 }];
        let mut blocks = Cursor::of(memory(true), list.as_ptr() as u64, 2, 8).unwrap();
        assert!(!blocks.show(node, 4, |_| panic!("the rank does not say")));
        blocks.write(node, &[4; 8]).unwrap();
        // SAFETY: the test's own memory, written by a system call.
        let now = unsafe { std::ptr::read_volatile(&raw const private) };
        assert_eq!(now[..16], [[4, 4, 4, 4, 1, 1, 1, 1]; 2].concat());
    }
}
