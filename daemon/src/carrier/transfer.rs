//! Large messages: from the sender's memory into frames, and out of frames into the receive buffer, by the carriers alone.
#![allow(unsafe_code)]

use vmpi_cma::{Block, CopyError};

/// Bytes of one DATA frame: long enough that a system call does not count, short enough that sending and copying overlap.
pub const CHUNK_BYTES: u64 = 128 << 10;
/// Most blocks of a list; more are a damaged word.
const MOST_BLOCKS: u32 = 1 << 26;

/// Blocks of a process's memory, taken from the front.
pub struct Cursor {
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
    pub fn over(blocks: Vec<Block>) -> Cursor {
        Cursor { blocks, index: 0, at: 0 }
    }

    /// The `count` blocks listed at `addr` of process `pid`, or for 0 the one of `len` bytes there.
    ///
    /// # Errors
    /// The list cannot be read.
    pub fn of(pid: i32, addr: u64, count: u32, len: u64) -> Result<Cursor, Unreachable> {
        let blocks = match count {
            0 => vec![Block { addr, len }],
            count if count > MOST_BLOCKS => return Err(Unreachable::Errno(libc::EFAULT)),
            count => {
                let mut list = vec![Block { addr: 0, len: 0 }; count as usize];
                let bytes = u64::from(count) * size_of::<Block>() as u64;
                // SAFETY: the list just allocated is written, with plain integers.
                let got = unsafe { vmpi_cma::read(pid, &[Block::of(&list)], &[Block { addr, len: bytes }])? };
                if got != bytes {
                    return Err(Unreachable::Errno(libc::EFAULT));
                }
                list.retain(|block| block.len > 0);
                list
            }
        };
        Ok(Cursor { blocks, index: 0, at: 0 })
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

    /// Read the next bytes of process `pid` into `buffer`.
    ///
    /// # Errors
    /// They cannot all be read.
    pub fn read(&mut self, pid: i32, buffer: &mut [u8]) -> Result<(), Unreachable> {
        let from = self.take(buffer.len() as u64);
        // SAFETY: the buffer is this process's own, and written with plain bytes.
        match unsafe { vmpi_cma::read(pid, &[Block::of(buffer)], &from)? } {
            count if count == buffer.len() as u64 => Ok(()),
            _ => Err(Unreachable::Errno(libc::EFAULT)),
        }
    }

    /// Write `bytes` to where the cursor stands in process `pid`.
    ///
    /// # Errors
    /// They cannot all be written.
    pub fn write(&mut self, pid: i32, bytes: &[u8]) -> Result<(), Unreachable> {
        let to = self.take(bytes.len() as u64);
        // SAFETY: the receiver has published these blocks of its own memory for this message, and waits until it is told.
        match unsafe { vmpi_cma::write(pid, &[Block::of(bytes)], &to)? } {
            count if count == bytes.len() as u64 => Ok(()),
            _ => Err(Unreachable::Errno(libc::EFAULT)),
        }
    }
}

/// A receive that has matched a remote announcement: the data is asked for, or coming.
pub struct Incoming {
    /// Rank here, its request and process.
    pub rank: u32,
    pub request: u32,
    pub pid: i32,
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
    /// Its sender has failed, or its receiver has given it up: what still comes is thrown away.
    pub void: bool,
}

impl Incoming {
    pub fn is_whole(&self) -> bool {
        self.got >= self.len && (self.said || self.void)
    }
}

/// A message that a rank here has announced: where it lies, how long it is.
pub struct Announced {
    pub addr: u64,
    pub blocks: u32,
    pub len: u64,
    /// For whom.
    pub to: u32,
    pub fin: Fin,
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
    /// Rank here, its request and process.
    pub rank: u32,
    pub request: u32,
    pub pid: i32,
    /// The rank there.
    pub to: u32,
    pub from: Cursor,
    pub len: u64,
    pub sent: u64,
    pub fin: Fin,
    /// errno of a copy that has failed, of which the other carrier has been told.
    pub failed: i32,
}
