//! Moving a large payload between two ranks' memories.

use crate::job::JobSegment;
use crate::matching::cooperative_copy::{self, Pieces};
use crate::matching::elements;
use crate::matching::envelope::{self, Envelope, kind};
use crate::matching::mover::{Mover, Transfer};
use crate::matching::request::{self, Slot};
use crate::mem::slab::PART_BYTES;
use crate::node::NodeSegment;
use crate::sched::RunState;
use vmpi_cma::{Block, CopyError};

/// The mover of a rank: copies when one end is its own memory.
pub struct RankMover<'a> {
    pub node: &'a NodeSegment,
    pub job: &'a JobSegment,
    /// This process's rank.
    pub me: u32,
    /// The rank whose queues are being worked on.
    pub on: u32,
}

impl RankMover<'_> {
    /// These two processes cannot copy: the receiver asks for pieces.
    #[cold]
    fn refused(&self, pull: bool) -> Transfer {
        self.node.rank(self.me).copies_refused.fetch_add(1, crate::mem::sync::Ordering::Relaxed);
        if pull { Transfer::Refused } else { Transfer::LeaveToOwner }
    }

    /// Where the data of an announced message is in this process, if the sender has laid it open.
    fn mapped_source(&self, envelope: &Envelope) -> Option<u64> {
        let open = envelope.flags & envelope::FLAG_MAPPED != 0 && envelope.blocks() == 0 && envelope.from != self.me;
        let reach = || self.node.heaps().reach(self.node, envelope.from, envelope.addr(), envelope.len);
        open.then(reach)?.map(|at| at as u64)
    }

    /// Copy a large message together with its sender, if that one runs on another core. False if the bytes are not (all) there.
    fn together(&self, envelope: &Envelope, slot: &Slot, len: u64, sender: i32, mapped: Option<u64>) -> bool {
        let from = envelope.from;
        let apart = sender != 0
            && self.node.header().recovery == 0
            && len >= cooperative_copy::LEAST_BYTES
            && envelope.blocks() == 0
            && slot.blocks == 0
            && self.node.core_of(from) != self.node.core_of(self.me)
            && self.node.state(from) == RunState::Running;
        if !apart {
            return false;
        }
        let (cooperative_copy, pieces) = (&self.job.inbox(self.me).ends.cooperative_copy, Pieces::of(len));
        let number = cooperative_copy.offer();
        let mut offer = Envelope::EMPTY;
        offer.kind = kind::HELP;
        offer.from = self.me;
        offer.request = envelope.request;
        offer.len = len;
        offer.set_addr(slot.addr);
        offer.set_peer_request(number);
        if slot.flags & request::FLAG_MAPPED != 0 {
            offer.flags |= envelope::FLAG_MAPPED;
        }
        if self.job.inbox(from).push(&offer).is_err() {
            return false;
        }
        let (mut mine, mut good) = (0, true);
        while let Some(piece) = cooperative_copy.claim(number, pieces.count()) {
            let (start, len) = pieces.range(piece);
            let to = Block { addr: slot.addr + start, len };
            let (pid, from) = match mapped {
                Some(at) => (0, Block { addr: at + start, len }),
                None => (sender, Block { addr: envelope.addr() + start, len }),
            };
            mine += 1;
            // SAFETY: the two ranks published these buffers for this message; this rank's is its own receive buffer.
            good &= unsafe { read_from(pid, &[to], &[from]) } == Ok(len);
        }
        // Even after a failure: the sender may be writing.
        let helped = cooperative_copy.await_helper(pieces.count() - mine, || self.node.state(from) == RunState::Dead);
        good && helped
    }

    /// A message of this rank to itself, of which one end or both are elements: part by part.
    #[cold]
    fn to_itself(&self, envelope: &Envelope, index: u32, slot: &Slot, len: u64) -> Transfer {
        let mut part = vec![0u8; len.min(PART_BYTES) as usize];
        let Ok(from) = self.blocks(0, envelope.addr(), envelope.blocks(), envelope.len) else {
            return Transfer::Failed(libc::EFAULT);
        };
        let mut at = 0;
        while at < len {
            let bytes = PART_BYTES.min(len - at);
            // SAFETY: both ends are this rank's buffers of this message; the part has room for so many bytes.
            unsafe {
                if envelope.flags & envelope::FLAG_ELEMENTS != 0 {
                    elements::pack(envelope.request, at, part.as_mut_ptr(), bytes as usize);
                } else {
                    let into = Block { addr: part.as_mut_ptr() as u64, len: bytes };
                    copy_blocks(&[into], &blocks_from(&from, at));
                }
                self.put(index, slot, at, part.as_ptr(), bytes);
            }
            at += bytes;
        }
        Transfer::Done
    }

    /// Put `len` bytes where those from byte `at` on of this rank's receive belong; `index`: its number.
    ///
    /// # Safety
    /// `from` holds so many; the buffer of the receive has room for them.
    unsafe fn put(&self, index: u32, slot: &Slot, at: u64, from: *const u8, len: u64) {
        let are_elements = slot.flags & request::FLAG_ELEMENTS != 0 || slot.blocks != 0;
        // SAFETY: passed on.
        unsafe {
            if are_elements {
                elements::unpack(index, at, from, len as usize);
            } else if let Ok(to) = self.blocks(0, slot.addr, slot.blocks, slot.capacity) {
                copy_blocks(&blocks_from(&to, at), &[Block { addr: from as u64, len }]);
            }
        }
    }

    /// The block list of one end: (address, number) as an envelope or slot tells it; `pid` 0 means this process.
    fn blocks(&self, pid: i32, addr: u64, number: u32, len: u64) -> Result<Vec<Block>, CopyError> {
        if number == 0 {
            return Ok(vec![Block { addr, len }]);
        }
        let mut list = vec![Block { addr: 0, len: 0 }; number as usize];
        let bytes = u64::from(number) * size_of::<Block>() as u64;
        let into = [Block { addr: list.as_mut_ptr() as u64, len: bytes }];
        // SAFETY: `into` is the list just allocated; Block is plain integers.
        unsafe { read_from(pid, &into, &[Block { addr, len: bytes }])? };
        Ok(list)
    }

    /// Move the payload now.
    fn move_now(&self, envelope: &Envelope, index: u32, slot: &Slot) -> Transfer {
        let len = envelope.len.min(slot.capacity);
        if len == 0 {
            return Transfer::Done;
        }
        if self.node.is_remote(envelope.from) {
            // Whoever matches asks for the data; the carriers bring it.
            return Transfer::Refused;
        }
        let (pull, same) = (self.me == self.on, envelope.from == self.on);
        if !pull && envelope.from != self.me {
            return Transfer::LeaveToOwner;
        }
        if elements::are_elements(envelope, slot) {
            return match (pull, same) {
                (true, true) => self.to_itself(envelope, index, slot, len),
                (true, false) => Transfer::Refused,
                _ => Transfer::LeaveToOwner,
            };
        }
        if self.job.config().single_copy == 0 && !same {
            return if pull { Transfer::Refused } else { Transfer::LeaveToOwner };
        }
        if self.node.failure(if pull { envelope.from } else { self.on }).is_some() {
            return Transfer::Gone;
        }
        // Pids are those of the two ends; 0 stands for this process.
        let sender = if envelope.from == self.me { Some(0) } else { self.node.copy_pid(envelope.from) };
        let receiver = if pull { Some(0) } else { self.node.copy_pid(self.on) };
        let (Some(sender), Some(receiver)) = (sender, receiver) else {
            return self.refused(pull);
        };
        // Who waits does better by itself. Who computes has lent its queues, so that it need not.
        let small = slot.blocks != 0 && len / u64::from(slot.blocks) < elements::LEAST_BLOCK_BYTES;
        if !pull && small && self.node.state(self.on) == RunState::Tended {
            return Transfer::LeaveToOwner;
        }
        let mapped = if pull { self.mapped_source(envelope) } else { None };
        if pull && self.together(envelope, slot, len, sender, mapped) {
            return Transfer::Done;
        }
        let copied = (|| {
            if let Some(at) = mapped {
                let to = self.blocks(0, slot.addr, slot.blocks, slot.capacity)?;
                // SAFETY: as below; the source is mapped here.
                return Ok(unsafe { copy_blocks(&to, &[Block { addr: at, len }]) });
            }
            let into = || self.node.heaps().reach(self.node, self.on, slot.addr, len);
            if !pull
                && slot.flags & request::FLAG_MAPPED != 0
                && slot.blocks == 0
                && let Some(to) = into()
            {
                let from = self.blocks(0, envelope.addr(), envelope.blocks(), envelope.len)?;
                // SAFETY: as below; the target is mapped here.
                return Ok(unsafe { copy_blocks(&[Block { addr: to as u64, len }], &from) });
            }
            let from = self.blocks(sender, envelope.addr(), envelope.blocks(), envelope.len)?;
            let mut to = self.blocks(receiver, slot.addr, slot.blocks, slot.capacity)?;
            clip(&mut to, len);
            // SAFETY: the block lists are those that the two ranks published for this message; this process's end is
            // its own user buffer, which MPI's rules keep valid until the request completes.
            unsafe { if pull { read_from(sender, &to, &from) } else { vmpi_cma::write(receiver, &from, &to) } }
        })();
        match copied {
            Ok(n) if n >= len => Transfer::Done,
            Ok(_) => Transfer::Failed(libc::EFAULT),
            Err(error) if is_refusal(&error) => self.refused(pull),
            // The daemon will say so in a moment.
            Err(CopyError::NoSuchProcess { .. }) if self.node.header().recovery != 0 => Transfer::Gone,
            Err(error) => Transfer::Failed(errno(&error)),
        }
    }
}

/// Read from a process, or from this one (`pid` 0).
///
/// # Safety
/// `local` is valid for writes; with `pid` 0 `remote` is valid for reads.
unsafe fn read_from(pid: i32, local: &[Block], remote: &[Block]) -> Result<u64, CopyError> {
    if pid != 0 {
        // SAFETY: passed on.
        return unsafe { vmpi_cma::read(pid, local, remote) };
    }
    // SAFETY: passed on.
    Ok(unsafe { copy_blocks(local, remote) })
}

/// Copy between two block lists of this process; they may overlap.
///
/// # Safety
/// `to` is valid for writes and `from` for reads.
pub unsafe fn copy_blocks(to: &[Block], from: &[Block]) -> u64 {
    let (mut t, mut f, mut t_at, mut f_at, mut total) = (0, 0, 0, 0, 0);
    while t < to.len() && f < from.len() {
        let len = (to[t].len - t_at).min(from[f].len - f_at);
        // SAFETY: inside both blocks.
        unsafe {
            std::ptr::copy((from[f].addr + f_at) as *const u8, (to[t].addr + t_at) as *mut u8, len as usize);
        }
        total += len;
        t_at += len;
        f_at += len;
        if t_at == to[t].len {
            t += 1;
            t_at = 0;
        }
        if f_at == from[f].len {
            f += 1;
            f_at = 0;
        }
    }
    total
}

/// The part of a block list from byte `skip` on.
pub fn blocks_from(blocks: &[Block], mut skip: u64) -> Vec<Block> {
    let mut rest = Vec::with_capacity(blocks.len());
    for block in blocks {
        if skip >= block.len {
            skip -= block.len;
        } else {
            rest.push(Block { addr: block.addr + skip, len: block.len - skip });
            skip = 0;
        }
    }
    rest
}

impl Mover for RankMover<'_> {
    fn owner(&self) -> u32 {
        self.on
    }

    fn is_owner(&self) -> bool {
        self.me == self.on
    }

    fn transfer(&mut self, envelope: &Envelope, index: u32, slot: &Slot) -> Transfer {
        match self.move_now(envelope, index, slot) {
            Transfer::Done if self.node.header().simulated != 0 => Transfer::Timed,
            done => done,
        }
    }

    fn help(&mut self, offer: &Envelope, slot: &Slot) {
        let pieces = Pieces::of(offer.len);
        if offer.from >= self.node.header().ranks || slot.blocks != 0 || offer.len > slot.capacity {
            return;
        }
        let cooperative_copy = &self.job.inbox(offer.from).ends.cooperative_copy;
        let Some(receiver) = self.node.copy_pid(offer.from) else { return };
        let open = offer.flags & envelope::FLAG_MAPPED != 0;
        let mapped = open.then(|| self.node.heaps().reach(self.node, offer.from, offer.addr(), offer.len)).flatten();
        while let Some(piece) = cooperative_copy.claim(offer.peer_request(), pieces.count()) {
            let (start, len) = pieces.range(piece);
            let (from, to) = (Block { addr: slot.addr + start, len }, Block { addr: offer.addr() + start, len });
            // SAFETY: the source is inside this rank's own send buffer; the receiver has told where its buffer is.
            let copied = unsafe {
                match mapped {
                    Some(at) => Ok(copy_blocks(&[Block { addr: at as u64 + start, len }], &[from])),
                    None => vmpi_cma::write(receiver, &[from], &[to]),
                }
            };
            cooperative_copy.note(copied == Ok(len));
            if copied != Ok(len) {
                return;
            }
        }
    }

    fn piece(&mut self, envelope: &Envelope, slot: &Slot) {
        let slab = envelope.addr() != 0;
        let source = if slab {
            match self.job.block(envelope.from, envelope.addr(), envelope.len) {
                Some(address) => address.cast_const(),
                None => return,
            }
        } else {
            envelope.piece().as_ptr()
        };
        let room = slot.capacity.saturating_sub(envelope.offset());
        let len = envelope.len.min(room);
        // SAFETY: the slot's elements, or blocks, are this rank's receive buffer, and the piece holds so many bytes.
        unsafe { self.put(envelope.request, slot, envelope.offset(), source, len) };
        if slab {
            self.job.slab(envelope.from).give(envelope.addr(), envelope.len);
        }
    }
}

/// Does the kernel forbid copies between these processes (as opposed to a bad buffer)?
fn is_refusal(error: &CopyError) -> bool {
    matches!(error, CopyError::Refused { .. } | CopyError::Unsupported)
}

fn errno(error: &CopyError) -> i32 {
    match error {
        CopyError::NoSuchProcess { .. } => libc::ESRCH,
        CopyError::Refused { .. } => libc::EPERM,
        CopyError::Fault { .. } | CopyError::Impossible { .. } => libc::EFAULT,
        CopyError::Unsupported => libc::ENOSYS,
        CopyError::Kernel { errno, .. } => *errno as i32,
    }
}

/// Cut a block list to `len` bytes.
fn clip(blocks: &mut Vec<Block>, mut len: u64) {
    for (index, block) in blocks.iter_mut().enumerate() {
        if block.len >= len {
            block.len = len;
            blocks.truncate(index + 1);
            return;
        }
        len -= block.len;
    }
}
