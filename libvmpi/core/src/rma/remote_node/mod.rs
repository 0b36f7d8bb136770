//! Members on other nodes: what this one does there by its and their nodes' carriers (`vmpi_shared::ask`).
//!
//! Asks about one target are done in their order. Those that only write, or release, are not answered: they are under way when the call returns, and
//! the next synchronisation asks for one answer behind them all. Data that comes back, and large data that goes, is moved by the carriers alone; the
//! operation's slot is over when it is in place. So nothing here waits but what MPI says does, and no target takes part.
//!
//! Reading order: this file (asks), `data` (put, get, accumulations), `pieces` (cutting them).
//!
//! What was wrong with an unanswered ask comes with the next answer, and is an error of that call.

#![allow(unsafe_code)]

mod data;
mod pieces;

pub(super) use data::{combine, combines, get, put, swap};

use super::Window;
use super::checked::Extent;
use super::operation::Operation;
use crate::calls::CALL_WINDOW;
use crate::comm::Communicator;
use crate::errors::{Class, Result, fail};
use crate::failure;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::request::{progress, wait_more};
use pieces::Pieces;
use std::cell::RefCell;
use std::rc::Rc;
use vmpi_cma::Block;
use vmpi_shared::ask::{self, Ask, BLOCK_BYTES, INLINE_BYTES, Opening, What};
use vmpi_shared::matching::request::{NOBODY, outcome};
use vmpi_shared::mem::checker;
use vmpi_shared::mem::slab::PART_BYTES;

/// Most bytes of blocks and data of one ask.
const ROOM: usize = PART_BYTES as usize;
/// Most blocks listed in front of data.
const MOST_BLOCKS: usize = 1024;

/// What an ask about a piece of memory has in it.
#[derive(Copy, Clone)]
enum Carries {
    /// The list of blocks alone.
    Blocks,
    /// The list, and the data behind it.
    Data,
}

/// A window's dealings with other nodes.
pub(super) struct Far {
    /// The window's name between the carriers.
    pub name: (i32, u32),
    /// By member: is it on another node?
    pub members: Vec<bool>,
    /// By member: something is under way that nobody answers.
    unanswered: RefCell<Vec<bool>>,
}

impl Far {
    pub fn new(name: (i32, u32), members: Vec<bool>) -> Far {
        let unanswered = RefCell::new(vec![false; members.len()]);
        Far { name, members, unanswered }
    }

    /// Ask this node's carrier, by way of the first member of another node.
    fn ask_here(&self, comm: &Communicator, ask: &Ask, slot: Option<Slot>, data: &[u8]) {
        let endpoint = endpoint();
        let mut envelope = ask.envelope(endpoint.me, slot.map_or(NOBODY, |slot| slot.0), data.len());
        ask::write_payload(&[], &[data], envelope.ask_payload_mut());
        let way = self.members.iter().position(|far| *far).expect("there is one");
        endpoint.deliver(comm.local.world_rank(way as u32), &envelope);
    }

    fn of_carrier(&self, what: What) -> Ask {
        let window = self.name;
        Ask::new(what, window, 0, 0)
    }

    /// The outcome of what was asked.
    fn ask_and_wait(&self, comm: &Communicator, ask: &Ask, data: &[u8]) -> Result<u32> {
        let slot = p2p::ask::open(endpoint().me, false)?;
        self.ask_here(comm, ask, Some(slot), data);
        loop {
            let seen = progress();
            if let Some(outcome) = p2p::ask::close(slot) {
                return Ok(outcome);
            }
            wait_more(seen, &[slot], CALL_WINDOW);
        }
    }

    /// Tell this node's carrier of the window.
    ///
    /// # Errors
    /// `Class::RmaShared` if it cannot map it.
    pub fn open(&self, comm: &Communicator, opening: Opening) -> Result<()> {
        let outcome = self.ask_and_wait(comm, &self.of_carrier(What::Open), &opening.encode())?;
        if outcome == outcome::GOOD {
            return Ok(());
        }
        let why = std::io::Error::from_raw_os_error(failure::errno_of(outcome));
        fail(Class::RmaShared, format!("this node's carrier cannot map the window's segment: {why}"))
    }

    /// Can this node's carrier copy from and to this process? `probe`: a byte to be read.
    pub fn attend(&self, comm: &Communicator, probe: u64) -> Result<bool> {
        let outcome = self.ask_and_wait(comm, &Ask { offset: probe, ..self.of_carrier(What::Attend) }, &[])?;
        Ok(outcome == outcome::GOOD)
    }

    pub fn close(&self, comm: &Communicator) {
        self.ask_here(comm, &self.of_carrier(What::Close), None, &[]);
    }
}

impl Window {
    /// Is `member` on another node?
    #[inline]
    pub(super) fn is_far(&self, member: u32) -> bool {
        self.far.as_ref().is_some_and(|far| far.members[member as usize])
    }

    /// Members on other nodes, and those here.
    pub(super) fn split_far(&self, members: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
        if self.far.is_none() {
            return (Vec::new(), members);
        }
        members.into_iter().partition(|&member| self.is_far(member))
    }

    fn far(&self) -> &Far {
        self.far.as_ref().expect("asked only about members of other nodes")
    }

    fn ask(&self, what: What, target: u32) -> Ask {
        let (window, origin) = (self.far().name, self.rank());
        Ask::new(what, window, origin, target)
    }

    /// Send an ask whose blocks and data fit into the envelope.
    fn tell(&self, ask: &Ask, slot: Option<Slot>, blocks: &[Block], data: &[&[u8]]) {
        let bytes = payload_bytes(blocks, data);
        let endpoint = endpoint();
        let mut envelope = ask.envelope(endpoint.me, slot.map_or(NOBODY, |slot| slot.0), bytes);
        ask::write_payload(blocks, data, envelope.ask_payload_mut());
        endpoint.deliver(self.comm.local.world_rank(ask.target), &envelope);
        self.note_unanswered(ask, slot);
    }

    /// After it has been sent: another thread's flush may come in between.
    fn note_unanswered(&self, ask: &Ask, slot: Option<Slot>) {
        if slot.is_none() {
            self.far().unanswered.borrow_mut()[ask.target as usize] = true;
        }
    }

    /// As `tell`, for what may need a block of the slab. False: there is none.
    fn send(&self, ask: &Ask, slot: Option<Slot>, blocks: &[Block], data: &[&[u8]]) -> bool {
        let bytes = payload_bytes(blocks, data);
        if bytes <= INLINE_BYTES {
            self.tell(ask, slot, blocks, data);
            return true;
        }
        let endpoint = endpoint();
        let Some(block) = endpoint.job.slab(endpoint.me).take(bytes as u64) else { return false };
        let at = endpoint.job.block(endpoint.me, block, bytes as u64).expect("own block");
        // SAFETY: a fresh block of at least this length, nobody else's yet.
        ask::write_payload(blocks, data, unsafe { std::slice::from_raw_parts_mut(at, bytes) });
        let mut envelope = ask.envelope(endpoint.me, slot.map_or(NOBODY, |slot| slot.0), bytes);
        envelope.set_addr(block);
        endpoint.deliver(self.comm.local.world_rank(ask.target), &envelope);
        self.note_unanswered(ask, slot);
        true
    }

    /// Remember an operation that will be answered, and bear only so many.
    fn launch(&self, ask: &Ask, slot: Slot, keep: Option<Rc<Vec<u8>>>) -> Result<Rc<Operation>> {
        let (target, waits) = (ask.target, matches!(ask.what, What::Lock | What::Take));
        self.under_way(Operation { keep, ..Operation::new(target, slot, waits) })
    }

    fn request(&self, target: u32, what: What) -> Result<Slot> {
        p2p::ask::open(self.comm.local.world_rank(target), what.fetches())
    }

    /// Ask something that is answered, without blocks or data.
    fn begin(&self, ask: &Ask) -> Result<Rc<Operation>> {
        let slot = self.request(ask.target, ask.what)?;
        self.tell(ask, Some(slot), &[], &[]);
        self.launch(ask, slot, None)
    }

    /// Buffers of operations on `target` (`None`: on all) may be used again, and what they fetch has come.
    pub(super) fn settle_here(&self, target: Option<u32>) -> Result<()> {
        self.finish(target, Extent::Origin)
    }

    /// All operations on `target` (`None`: on all) are complete there, too.
    pub(super) fn settle(&self, target: Option<u32>) -> Result<()> {
        let Some(far) = &self.far else { return self.finish(target, Extent::Target) };
        let asked = match target {
            Some(target) => target..target + 1,
            None => 0..far.members.len() as u32,
        };
        for member in asked {
            if std::mem::take(&mut far.unanswered.borrow_mut()[member as usize]) {
                self.begin(&self.ask(What::Flush, member))?;
            }
        }
        self.finish(target, Extent::Target)
    }

    /// Ask for the lock on a member's memory.
    pub(super) fn begin_far_lock(&self, target: u32, exclusive: bool) -> Result<Rc<Operation>> {
        self.begin(&Ask { flag: exclusive, ..self.ask(What::Lock, target) })
    }

    /// Give it back; everything before is complete then.
    pub(super) fn begin_far_unlock(&self, target: u32, exclusive: bool) -> Result<Rc<Operation>> {
        self.far().unanswered.borrow_mut()[target as usize] = false;
        let ask = Ask { flag: exclusive, ..self.ask(What::Unlock, target) };
        let slot = match self.request(target, What::Unlock) {
            Err(error) if error.class == Class::NoMem => self.spare_request(target).ok_or(error)?,
            slot => slot?,
        };
        self.tell(&ask, Some(slot), &[], &[]);
        self.launch(&ask, slot, None)
    }

    /// The request for what must be asked of a target although no other is left: others would wait for its lock for ever.
    #[cold]
    fn spare_request(&self, target: u32) -> Option<Slot> {
        let rank = self.comm.local.world_rank(target);
        p2p::ask::open_spare(rank).or_else(|| {
            // The one before has it; what came of it is looked at by who has begun it.
            let operations = self.operations.borrow().clone();
            drop(self.answers(&operations));
            p2p::ask::open_spare(rank)
        })
    }

    /// MPI_Win_post, for an origin of another node.
    pub(super) fn far_post(&self, origin: u32) {
        self.tell_in_order(What::Post, origin);
    }

    /// MPI_Win_complete, for a target of another node. What goes there on its own has been waited for.
    pub(super) fn far_complete(&self, target: u32) {
        self.tell_in_order(What::Complete, target);
    }

    fn tell_in_order(&self, what: What, target: u32) {
        let before = self.far().unanswered.borrow()[target as usize];
        self.tell(&self.ask(what, target), None, &[], &[]);
        // Nobody waits for this one's answer at a later synchronisation.
        self.far().unanswered.borrow_mut()[target as usize] = before;
    }

    /// Take the lock for moments of a member of another node.
    pub(super) fn take_far_moment(&self, target: u32) -> Result<()> {
        let taken = self.begin(&self.ask(What::Take, target))?;
        self.await_far(&[taken])
    }

    pub(super) fn give_far_moment(&self, target: u32) {
        self.tell(&self.ask(What::Give, target), None, &[], &[]);
    }

    /// Write blocks of a member's memory, complete at the next synchronisation. `data` may be used again on return.
    pub(super) fn write_far(&self, target: u32, blocks: &[Block], mut data: &[u8]) -> Result<()> {
        let mut pieces = Pieces::of(blocks);
        while !pieces.is_over() {
            self.cut(&mut pieces, Carries::Data, |piece, len| {
                let (here, rest) = data.split_at(len as usize);
                let ask = Ask { bytes: len, blocks: piece.len() as u32, ..self.ask(What::Write, target) };
                let sent = self.send(&ask, None, piece, &[here]);
                if sent {
                    data = rest;
                }
                Ok(sent)
            })?;
        }
        Ok(())
    }

    /// Do `f` with the next piece, as large as the slab allows. `f` says whether there was a block of the slab for it.
    fn cut(&self, pieces: &mut Pieces, with: Carries, mut f: impl FnMut(&[Block], u64) -> Result<bool>) -> Result<()> {
        let place = pieces.place();
        let big = |pieces: &mut Pieces| match with {
            Carries::Blocks => pieces.take(u64::MAX, ROOM / BLOCK_BYTES),
            Carries::Data => pieces.take((ROOM - MOST_BLOCKS * BLOCK_BYTES) as u64, MOST_BLOCKS),
        };
        for attempt in 0..2 {
            pieces.back_to(place);
            let (piece, len) = big(pieces);
            if f(&piece, len)? {
                return Ok(());
            }
            if attempt == 0 {
                // What is under way gives its blocks back.
                self.settle(None)?;
            }
        }
        // Others have them: as much as goes without.
        pieces.back_to(place);
        let (piece, len) = match with {
            Carries::Blocks => pieces.take(u64::MAX, INLINE_BYTES / BLOCK_BYTES),
            Carries::Data => pieces.take((INLINE_BYTES - BLOCK_BYTES) as u64, 1),
        };
        let sent = f(&piece, len)?;
        debug_assert!(sent, "it fits into the envelope");
        Ok(())
    }

    /// Read blocks of a member's memory to `into`.
    ///
    /// # Safety
    /// `into` has room for them, until the operation is over.
    unsafe fn read_far(&self, target: u32, blocks: &[Block], into: *mut u8) -> Result<Vec<Rc<Operation>>> {
        let mut pieces = Pieces::of(blocks);
        let mut from = 0u64;
        let mut begun = Vec::new();
        while !pieces.is_over() {
            self.cut(&mut pieces, Carries::Blocks, |piece, len| {
                let ask = Ask {
                    bytes: len,
                    blocks: piece.len() as u32,
                    offset: (into as u64).wrapping_add(from),
                    ..self.ask(What::Read, target)
                };
                let operation = self.launched(&ask, piece, &[], None)?;
                from += if operation.is_some() { len } else { 0 };
                begun.extend(operation.iter().cloned());
                Ok(operation.is_some())
            })?;
        }
        Ok(begun)
    }

    /// Send an ask that is answered; `None`: there is no block for it.
    fn launched(
        &self,
        ask: &Ask,
        blocks: &[Block],
        data: &[&[u8]],
        keep: Option<Rc<Vec<u8>>>,
    ) -> Result<Option<Rc<Operation>>> {
        if matches!(ask.what, What::Read | What::Fetch | What::Swap) {
            // The carrier writes the answer there.
            checker::written(ask.offset, ask.bytes);
        }
        let slot = self.request(ask.target, ask.what)?;
        if !self.send(ask, Some(slot), blocks, data) {
            p2p::ask::give_up(slot);
            return Ok(None);
        }
        self.launch(ask, slot, keep).map(Some)
    }

    /// As [`Window::read_far`], waiting for it.
    ///
    /// # Errors
    /// `Class::RmaRange` if the memory is not the window's, `Class::Other` if it cannot be copied.
    pub(super) fn read_far_now(&self, target: u32, blocks: &[Block], into: &mut [u8]) -> Result<()> {
        // SAFETY: borrowed until it is over.
        let begun = unsafe { self.read_far(target, blocks, into.as_mut_ptr())? };
        self.await_far(&begun)
    }
}

fn payload_bytes(blocks: &[Block], data: &[&[u8]]) -> usize {
    blocks.len() * BLOCK_BYTES + data.iter().map(|data| data.len()).sum::<usize>()
}

/// A block and two of the largest elements.
const _: () = assert!(INLINE_BYTES >= BLOCK_BYTES + 2 * 32);
