//! Where the kernel refuses single copy: the origin asks the target by messages, and the target does it.
//!
//! Every member of such a window has a helper: a request that never completes, which receives what others ask for and
//! answers. So a target takes part whenever it is in MPI, also while it waits for something else there; one that
//! computes makes its origins wait. Death story: that of any message.
//!
//! Accumulations are computed by the target, too. When the origin did that, taking the target's lock for moments, reading, writing and giving the lock
//! back, it kept the lock for several messages; and over nodes, where the carrier hands a lock that comes back to the next far origin at once, origins
//! that looked again and again kept the ranks beside the target from ever getting it (rma_spin.c on 5 ranks of two nodes: over 60 s).

#![allow(unsafe_code)]

use super::Window;
use super::step::{self, Step};
use crate::comm::Communicator;
use crate::consts::{self, dt};
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use crate::handle::{Datatype, Handle, Request};
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::request::{self, Progress};
use crate::status::Status;
use std::cell::Cell;
use std::ffi::c_void;
use std::rc::{Rc, Weak};
use vmpi_cma::Block;
use vmpi_shared::arith::Builtin;
use vmpi_shared::endpoint::transfer::copy_blocks;

/// Bytes of data in one question or answer, and blocks that they may be in.
pub(super) const MOST_BYTES: u64 = 32 << 10;
pub(super) const MOST_BLOCKS: usize = 1024;
const BLOCK_BYTES: usize = size_of::<Block>();
const HEAD_BYTES: usize = 24;
const QUESTION_BYTES: usize = HEAD_BYTES + MOST_BLOCKS * BLOCK_BYTES + MOST_BYTES as usize;

const TAG_QUESTION: i32 = 1;
const TAG_ANSWER: i32 = 2;

/// What is asked: "give me these blocks", "put this into these blocks", "combine this with these blocks", the same and "tell me what was there", "put the
/// first half of this there if the second is there".
const READ: u32 = 1;
const WRITE: u32 = 2;
pub(super) const COMBINE: u32 = 3;
pub(super) const FETCH: u32 = 4;
pub(super) const SWAP: u32 = 5;

/// Of questions that are no accumulations.
pub(super) const NO_STEP: Step = Step { op: Builtin::NoOp, datatype: dt::BYTE };

fn bytes_type() -> Result<Rc<Type>> {
    datatype::get(dt::BYTE)
}

/// A question.
pub(super) fn encode(kind: u32, step: Step, blocks: &[Block], data: &[u8]) -> Vec<u8> {
    let mut question = Vec::with_capacity(HEAD_BYTES + blocks.len() * BLOCK_BYTES + data.len());
    question.extend(kind.to_ne_bytes());
    question.extend((blocks.len() as u32).to_ne_bytes());
    question.extend((data.len() as u64).to_ne_bytes());
    question.extend((step.op as u32).to_ne_bytes());
    question.extend(step.datatype.raw().to_ne_bytes());
    for block in blocks {
        question.extend(block.addr.to_ne_bytes());
        question.extend(block.len.to_ne_bytes());
    }
    question.extend(data);
    question
}

/// Kind, step, blocks and data of a question; `None` if it makes no sense.
fn decode(question: &[u8]) -> Option<(u32, Step, Vec<Block>, &[u8])> {
    let word = |at: usize| Some(u32::from_ne_bytes(question.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(question.get(at..at + 8)?.try_into().ok()?));
    let (kind, count, bytes) = (word(0)?, word(4)? as usize, long(8)?);
    if count > MOST_BLOCKS || bytes > MOST_BYTES {
        return None;
    }
    let op = Builtin::try_from(u8::try_from(word(16)?).ok()?).ok()?;
    let step = Step { op, datatype: Datatype(word(20)?) };
    let block = |i: usize| {
        let at = HEAD_BYTES + i * BLOCK_BYTES;
        Some(Block { addr: long(at)?, len: long(at + 8)? })
    };
    let blocks = (0..count).map(block).collect::<Option<Vec<Block>>>()?;
    let total = blocks.iter().try_fold(0u64, |sum, block| sum.checked_add(block.len))?;
    let data = question.get(HEAD_BYTES + count * BLOCK_BYTES..)?;
    let fits = match kind {
        READ => bytes == 0,
        WRITE => bytes == total,
        COMBINE | FETCH => bytes == if op == Builtin::NoOp { 0 } else { total },
        SWAP => count == 1 && bytes == 2 * total,
        _ => false,
    };
    (fits && total <= MOST_BYTES && data.len() as u64 == bytes).then_some((kind, step, blocks, data))
}

/// Read blocks of a member's memory.
///
/// # Errors
/// Those of the messages.
pub(super) fn read(window: &Window, target: u32, blocks: &[Block], mut into: &mut [u8]) -> Result<()> {
    for piece in pieces(blocks) {
        let len = piece.iter().map(|block| block.len as usize).sum();
        let (here, rest) = into.split_at_mut(len);
        ask(&window.comm, target, &encode(READ, NO_STEP, &piece, &[]), here)?;
        into = rest;
    }
    Ok(())
}

/// Write to blocks of a member's memory.
///
/// # Errors
/// Those of the messages.
pub(super) fn write(window: &Window, target: u32, blocks: &[Block], mut data: &[u8]) -> Result<()> {
    for piece in pieces(blocks) {
        let len = piece.iter().map(|block| block.len as usize).sum();
        let (here, rest) = data.split_at(len);
        ask(&window.comm, target, &encode(WRITE, NO_STEP, &piece, here), &mut [])?;
        data = rest;
    }
    Ok(())
}

/// Cut a list of blocks to what one question may hold.
fn pieces(blocks: &[Block]) -> Vec<Vec<Block>> {
    let mut pieces = Vec::new();
    let (mut piece, mut room) = (Vec::new(), MOST_BYTES);
    for block in blocks {
        let mut rest = *block;
        while rest.len > 0 {
            let len = rest.len.min(room);
            piece.push(Block { addr: rest.addr, len });
            room -= len;
            rest = Block { addr: rest.addr + len, len: rest.len - len };
            if room == 0 || piece.len() == MOST_BLOCKS {
                pieces.push(std::mem::take(&mut piece));
                room = MOST_BYTES;
            }
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

/// Ask and wait for the answer. While it waits this member's own helper answers others.
pub(super) fn ask(comm: &Communicator, target: u32, question: &[u8], answer: &mut [u8]) -> Result<()> {
    let (ty, peer) = (bytes_type()?, target as i32);
    // SAFETY: both buffers are borrowed until the slots are over.
    let slots = unsafe {
        let (into, room) = (answer.as_mut_ptr().cast::<c_void>(), answer.len() as u64);
        let receive = p2p::start_recv(comm, Plane::User, into, room, &ty, peer, TAG_ANSWER)?;
        let (from, len) = (question.as_ptr().cast::<c_void>(), question.len() as u64);
        let send = p2p::start_send(comm, Plane::User, from, len, &ty, peer, TAG_QUESTION, Mode::Standard)?;
        [Some(receive), send]
    };
    let slots: Vec<Slot> = slots.into_iter().flatten().collect();
    request::wait_all(&slots)
}

/// Answers questions about this member's memory.
pub(super) struct Helper {
    stop: Rc<Cell<bool>>,
}

impl Helper {
    pub fn start(window: &Rc<Window>) -> Helper {
        let stop = Rc::new(Cell::new(false));
        let answering = Answering {
            comm: window.comm.clone(),
            window: Rc::downgrade(window),
            stop: stop.clone(),
            question: vec![0; QUESTION_BYTES],
            receive: None,
            answers: Vec::new(),
        };
        let request = request::insert(Box::new(answering));
        // Nobody will ask for it: it ends by itself.
        let freed = request::free(request);
        debug_assert!(freed.is_ok() && request != Request::NULL);
        Helper { stop }
    }

    /// Nobody will ask any more.
    pub fn stop(&self) {
        self.stop.set(true);
        request::progress();
    }
}

/// The helper's side of the messages.
struct Answering {
    comm: Rc<Communicator>,
    window: Weak<Window>,
    stop: Rc<Cell<bool>>,
    /// Room for the next question.
    question: Vec<u8>,
    receive: Option<Slot>,
    /// Answers under way.
    answers: Vec<(Slot, Vec<u8>)>,
}

impl Answering {
    fn await_question(&mut self) -> Result<()> {
        let (into, room) = (self.question.as_mut_ptr().cast::<c_void>(), self.question.len() as u64);
        // SAFETY: the buffer lives, in place, until the slot is over (`advance` cancels it at the end).
        let slot = unsafe {
            p2p::start_recv(&self.comm, Plane::User, into, room, &bytes_type()?, consts::ANY_SOURCE, TAG_QUESTION)?
        };
        self.receive = Some(slot);
        Ok(())
    }

    fn answer(&mut self, status: &Status) -> Result<()> {
        let question = decode(&self.question[..status.bytes as usize]);
        let Some(((kind, step, blocks, data), window)) = question.zip(self.window.upgrade()) else {
            return fail(Class::Intern, format!("rank {} sent a question that makes no sense", status.source));
        };
        let mut answer = Vec::new();
        // SAFETY: the origin has checked that the blocks are inside this member's part of the window.
        unsafe {
            match kind {
                WRITE => drop(copy_blocks(&blocks, &[Block::of(data)])),
                READ => {
                    answer.resize(blocks.iter().map(|block| block.len as usize).sum(), 0u8);
                    copy_blocks(&[Block::of(&answer)], &blocks);
                }
                SWAP => answer = step::swap_here(&window, blocks[0], data),
                _ => {
                    let before = step::combine_here(&window, step, &blocks, data)?;
                    answer = if kind == FETCH { before } else { answer };
                }
            }
        }
        let (from, len) = (answer.as_ptr().cast::<c_void>(), answer.len() as u64);
        let ty = bytes_type()?;
        // SAFETY: the answer is kept until its slot is over.
        let slot = unsafe {
            p2p::start_send(&self.comm, Plane::User, from, len, &ty, status.source, TAG_ANSWER, Mode::Standard)?
        };
        self.answers.extend(slot.map(|slot| (slot, answer)));
        Ok(())
    }
}

impl Progress for Answering {
    fn advance(&mut self) -> Result<Option<Status>> {
        self.answers.retain(|(slot, _)| p2p::poll(*slot).is_none());
        loop {
            let Some(slot) = self.receive else {
                self.await_question()?;
                continue;
            };
            if self.stop.get() && !p2p::is_over(slot) {
                p2p::cancel(slot);
            }
            let Some(ended) = p2p::poll(slot) else { return Ok(None) };
            self.receive = None;
            let status = ended?;
            if status.cancelled {
                return Ok(Some(Status::EMPTY));
            }
            self.answer(&status)?;
        }
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend(self.receive);
        slots.extend(self.answers.iter().map(|(slot, _)| *slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_cut_and_read_again() {
        let blocks =
            [Block { addr: 100, len: 3 * MOST_BYTES + 5 }, Block { addr: 7, len: 0 }, Block { addr: 9, len: 4 }];
        let pieces = pieces(&blocks);
        assert_eq!(pieces.len(), 4);
        assert_eq!(pieces[3], [Block { addr: 100 + 3 * MOST_BYTES, len: 5 }, Block { addr: 9, len: 4 }]);
        let question = encode(WRITE, NO_STEP, &pieces[3], b"123456789");
        let (kind, _, found, data) = decode(&question).unwrap();
        assert_eq!((kind, found, data), (WRITE, pieces[3].clone(), &b"123456789"[..]));
        let step = Step { op: Builtin::Sum, datatype: dt::INT };
        let block = [Block { addr: 8, len: 4 }];
        assert_eq!(decode(&encode(FETCH, step, &block, b"1234")), Some((FETCH, step, block.to_vec(), &b"1234"[..])));
        assert!(decode(&encode(SWAP, step, &block, b"1234")).is_none(), "two values are needed");
        assert!(decode(&encode(COMBINE, NO_STEP, &block, b"1234")).is_none(), "nothing is done with the data");
        assert!(decode(&encode(6, step, &block, b"1234")).is_none(), "there is no such question");
        assert!(decode(&question[..question.len() - 1]).is_none(), "data is missing");
        assert!(decode(&[0; 8]).is_none());
        let many: Vec<Block> = (0..3000).map(|i| Block { addr: i * 100, len: 1 }).collect();
        assert!(super::pieces(&many).iter().all(|piece| piece.len() <= MOST_BLOCKS));
    }
}
