//! One connection: slots, credits, order.
//!
//! A message of a SEND has a head of eight bytes (credits that come back: receives, slots; four zeros) and whole frames behind it, so that many
//! small ones travel together. A frame that is longer than a receive is WRITTEN, head and body, into the next slot of the other end; slots are used in
//! turn. Either takes one of the other end's posted receives, in whose order they come: so frames stay in order.
//!
//! A receive is a credit, and so is a slot. They come back with the next message, or, when a quarter is owed, by a message without frames. Those take no
//! credit: the other end has `SPARE` more receives than it tells. More cannot be on their way: each carries back at least a quarter of
//! what there is, of receives or of slots, which is eight together; the others are for the first greeting and the last.

use std::collections::VecDeque;

use super::abi::{flag, what};
use super::hello::Offer;
use super::nic::{Address, Done, Keys, Nic, NicError, Pair, Work};
use crate::frame::{self, FrameError, HEAD_BYTES, MAX_BODY_BYTES};
use crate::staging::{Span, Staging};

/// Receives for messages with frames.
pub const RECEIVES: u32 = 64;
/// Receives for messages without.
pub const SPARE: u32 = 16;
pub const RECEIVE_BYTES: usize = 8 << 10;
/// Room for a largest frame, in whole pages.
pub const SLOT_BYTES: usize = (HEAD_BYTES + MAX_BODY_BYTES).next_multiple_of(4096);
/// Head of a message.
const MESSAGE_HEAD: usize = 8;
/// At least every so many-th work is told when it is done.
const SIGNAL_EVERY: u32 = RECEIVES / 4;
/// A receive's id has this bit, and its number below; other ids count works.
const IS_RECEIVE: u32 = 1 << 31;

/// Slots at each end of a connection, among so many nodes: what is locked in memory stays within bounds.
pub fn slots_among(nodes: usize) -> u32 {
    match nodes {
        0..=8 => 8,
        9..=64 => 4,
        _ => 2,
    }
}

/// Bytes of staging that a queue pair needs.
pub fn staging_bytes(slots: u32) -> usize {
    2 * (RECEIVES + SPARE) as usize * RECEIVE_BYTES + 2 * slots as usize * SLOT_BYTES
}

/// Completions that a queue pair can have at a time.
pub fn completions(slots: u32) -> u32 {
    2 * (RECEIVES + SPARE) + slots
}

/// Why a queue pair is of no more use.
#[derive(Debug)]
pub enum Fault {
    Nic(NicError),
    Nonsense(FrameError),
}

impl From<NicError> for Fault {
    fn from(error: NicError) -> Fault {
        Fault::Nic(error)
    }
}

impl From<FrameError> for Fault {
    fn from(error: FrameError) -> Fault {
        Fault::Nonsense(error)
    }
}

/// This end's memory that a work names until it is done.
#[derive(Copy, Clone, Debug)]
enum Used {
    Small(u32),
    Slot(u32),
}

/// One end of a connection.
pub struct QueuePair {
    pub pair: Pair,
    own: Address,
    /// Above the number of a receive or work in ids.
    tag: u64,
    keys: Keys,
    /// Where its part of the staging begins, and its slots at each end.
    base: usize,
    slots: u32,
    /// The other end, once known.
    peer: Option<Offer>,
    posted: VecDeque<(u32, Used)>,
    next_work: u32,
    unsignaled: u32,
    free_small: Vec<u32>,
    free_slots: Vec<u32>,
    /// Receives and slots of the other end that may be used, and which slot is next.
    receives: u32,
    slots_there: u32,
    next_slot: u32,
    /// A message being gathered: its memory and bytes so far.
    filling: Option<(u32, usize)>,
    staged: Option<(u32, usize)>,
    /// Frames that must wait for credit, whole.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    owed_receives: u32,
    owed_slots: u32,
    /// The slot here that is written next.
    expected: u32,
}

impl QueuePair {
    /// A connection's end with receives posted; `base` is where its part of the staging begins.
    ///
    /// # Errors
    /// The device refuses.
    pub fn new<N: Nic + ?Sized>(
        nic: &mut N,
        staging: &Staging,
        keys: Keys,
        base: usize,
        slots: u32,
        node: u32,
    ) -> Result<QueuePair, NicError> {
        let each = RECEIVES + SPARE;
        let (pair, own) = nic.pair(each, each + slots)?;
        let mut made = QueuePair {
            pair,
            own,
            tag: u64::from(node) << 32,
            keys,
            base,
            slots,
            peer: None,
            posted: VecDeque::new(),
            next_work: 0,
            unsignaled: 0,
            free_small: (0..each).rev().collect(),
            free_slots: (0..slots).rev().collect(),
            receives: 0,
            slots_there: 0,
            next_slot: 0,
            filling: None,
            staged: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            owed_receives: 0,
            owed_slots: 0,
            expected: 0,
        };
        for number in 0..each {
            made.post_receive(nic, staging, number)?;
        }
        Ok(made)
    }

    /// Which node's a completion is.
    pub fn node_of(done: &Done) -> u32 {
        (done.id >> 32) as u32
    }

    fn receive_at(&self, number: u32) -> Span {
        Span { at: self.base + number as usize * RECEIVE_BYTES, bytes: RECEIVE_BYTES }
    }

    fn small_at(&self, number: u32) -> Span {
        self.receive_at(RECEIVES + SPARE + number)
    }

    /// A slot here, into which the other end writes.
    fn slot_at(&self, number: u32) -> Span {
        let before = 2 * (RECEIVES + SPARE) as usize * RECEIVE_BYTES;
        Span { at: self.base + before + number as usize * SLOT_BYTES, bytes: SLOT_BYTES }
    }

    /// A slot from which this end writes.
    fn out_at(&self, number: u32) -> Span {
        self.slot_at(self.slots + number)
    }

    fn post_receive<N: Nic + ?Sized>(&mut self, nic: &mut N, staging: &Staging, number: u32) -> Result<(), NicError> {
        let at = self.receive_at(number);
        let id = self.tag | u64::from(number | IS_RECEIVE);
        nic.receive(self.pair, id, staging.address() + at.at as u64, at.bytes as u32, self.keys.local)
    }

    /// What the other end must know.
    pub fn offer(&self, staging: &Staging) -> Offer {
        Offer {
            address: self.own,
            slots_at: staging.address() + self.slot_at(0).at as u64,
            slots_key: self.keys.remote,
            slots: self.slots,
            slot_bytes: SLOT_BYTES as u32,
            receives: RECEIVES,
            receive_bytes: RECEIVE_BYTES as u32,
        }
    }

    /// Connect to the other end.
    ///
    /// # Errors
    /// Its numbers are not this build's, or the device refuses.
    pub fn join<N: Nic + ?Sized>(&mut self, nic: &mut N, peer: Offer) -> Result<(), NicError> {
        let same = (peer.receive_bytes, peer.slot_bytes) == (RECEIVE_BYTES as u32, SLOT_BYTES as u32);
        if !same || peer.slots == 0 || peer.slots > 1 << 16 || peer.receives == 0 || peer.receives > RECEIVES {
            return Err(NicError("its vmpid has other slots than this one".into()));
        }
        nic.join(self.pair, &peer.address)?;
        (self.receives, self.slots_there) = (peer.receives, peer.slots);
        self.peer = Some(peer);
        Ok(())
    }

    /// A message without frames: to see whether it arrives, or to give credits back.
    ///
    /// # Errors
    /// The device refuses.
    pub fn greet<N: Nic + ?Sized>(&mut self, nic: &mut N, staging: &mut Staging) -> Result<(), NicError> {
        match self.free_small.pop() {
            Some(number) => self.post_message(nic, staging, number, MESSAGE_HEAD, true),
            None => Ok(()),
        }
    }

    pub fn backlog_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// A large frame could go now.
    pub fn has_room(&self) -> bool {
        self.waiting.is_empty() && (self.may_write() || self.staged.is_some())
    }

    /// Nothing is queued that has not been handed to the device.
    pub fn is_flushed(&self) -> bool {
        self.waiting.is_empty() && self.filling.is_none()
    }

    /// All that was handed to the device has been done.
    pub fn is_quiet(&self) -> bool {
        self.is_flushed() && self.posted.is_empty()
    }

    fn may_gather(&self) -> bool {
        // The last ones are for messages without frames.
        self.receives > 0 && self.free_small.len() > SPARE as usize
    }

    fn may_write(&self) -> bool {
        self.receives > 0 && self.slots_there > 0 && !self.free_slots.is_empty()
    }

    /// Queue a frame behind all others.
    ///
    /// # Errors
    /// The device refuses.
    pub fn send<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &mut Staging,
        kind: u8,
        parts: &[&[u8]],
    ) -> Result<(), NicError> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let head = frame::head(kind, bytes);
        if self.waiting.is_empty() && self.place(nic, staging, &head, parts, bytes)? {
            return Ok(());
        }
        let whole = [&head[..], &parts.concat()].concat();
        self.waiting_bytes += whole.len();
        self.waiting.push_back(whole);
        Ok(())
    }

    /// Put a frame where the device finds it, if there is credit.
    fn place<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &mut Staging,
        head: &[u8; HEAD_BYTES],
        parts: &[&[u8]],
        bytes: usize,
    ) -> Result<bool, NicError> {
        let whole = HEAD_BYTES + bytes;
        if MESSAGE_HEAD + whole > RECEIVE_BYTES {
            self.post_gathered(nic, staging)?;
            if !self.may_write() {
                return Ok(false);
            }
            let Some(slot) = self.free_slots.pop() else { return Ok(false) };
            copy_parts(&mut staging.write(self.out_at(slot))[..whole], head, parts);
            self.post_slot(nic, staging, slot, whole)?;
            return Ok(true);
        }
        if self.filling.is_some_and(|(_, used)| used + whole > RECEIVE_BYTES) {
            self.post_gathered(nic, staging)?;
        }
        let (number, used) = match self.filling {
            Some(filling) => filling,
            None if !self.may_gather() => return Ok(false),
            None => match self.free_small.pop() {
                Some(number) => {
                    self.receives -= 1;
                    (number, MESSAGE_HEAD)
                }
                None => return Ok(false),
            },
        };
        copy_parts(&mut staging.write(self.small_at(number))[used..used + whole], head, parts);
        self.filling = Some((number, used + whole));
        Ok(true)
    }

    /// Memory for a body that is written from where it lies.
    pub fn stage<'a>(&mut self, staging: &'a mut Staging, bytes: usize) -> Option<&'a mut [u8]> {
        if MESSAGE_HEAD + HEAD_BYTES + bytes <= RECEIVE_BYTES || bytes > MAX_BODY_BYTES || !self.waiting.is_empty() {
            return None;
        }
        let slot = match self.staged.take() {
            Some((slot, _)) => slot,
            None if self.may_write() => self.free_slots.pop()?,
            None => return None,
        };
        self.staged = Some((slot, bytes));
        Some(&mut staging.write(self.out_at(slot))[HEAD_BYTES..HEAD_BYTES + bytes])
    }

    /// Send what was staged.
    ///
    /// # Errors
    /// The device refuses.
    pub fn send_staged<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &mut Staging,
        kind: u8,
    ) -> Result<(), NicError> {
        let Some((slot, bytes)) = self.staged.take() else { return Ok(()) };
        self.post_gathered(nic, staging)?;
        let at = self.out_at(slot);
        staging.write(at)[..HEAD_BYTES].copy_from_slice(&frame::head(kind, bytes));
        let whole = HEAD_BYTES + bytes;
        if self.waiting.is_empty() && self.receives > 0 && self.slots_there > 0 {
            return self.post_slot(nic, staging, slot, whole);
        }
        // Other frames of this node have taken the credit in between.
        let frame = staging.read(at)[..whole].to_vec();
        self.free_slots.push(slot);
        self.waiting_bytes += frame.len();
        self.waiting.push_back(frame);
        Ok(())
    }

    /// Hand over what has been gathered, what waits and is allowed now, and credits that are due.
    ///
    /// # Errors
    /// The device refuses.
    pub fn flush<N: Nic + ?Sized>(&mut self, nic: &mut N, staging: &mut Staging) -> Result<(), NicError> {
        if self.peer.is_none() {
            return Ok(());
        }
        while let Some(whole) = self.waiting.pop_front() {
            let (head, body) = whole.split_first_chunk::<HEAD_BYTES>().expect("a whole frame");
            if !self.place(nic, staging, head, &[body], body.len())? {
                self.waiting.push_front(whole);
                break;
            }
            self.waiting_bytes -= whole.len();
        }
        self.post_gathered(nic, staging)?;
        if self.owed_receives >= RECEIVES / 4 || self.owed_slots >= (self.slots / 4).max(1) {
            self.greet(nic, staging)?;
        }
        Ok(())
    }

    fn post_gathered<N: Nic + ?Sized>(&mut self, nic: &mut N, staging: &mut Staging) -> Result<(), NicError> {
        match self.filling.take() {
            Some((number, used)) => self.post_message(nic, staging, number, used, false),
            None => Ok(()),
        }
    }

    fn post_message<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &mut Staging,
        number: u32,
        used: usize,
        told: bool,
    ) -> Result<(), NicError> {
        let at = self.small_at(number);
        let (receives, slots) = (std::mem::take(&mut self.owed_receives), std::mem::take(&mut self.owed_slots));
        let head = &mut staging.write(at)[..MESSAGE_HEAD];
        head.fill(0);
        head[..2].copy_from_slice(&(receives as u16).to_le_bytes());
        head[2..4].copy_from_slice(&(slots as u16).to_le_bytes());
        let work = Work { addr: staging.address() + at.at as u64, bytes: used as u32, ..Work::default() };
        self.post(nic, work, Used::Small(number), told)
    }

    /// Write slot `slot`'s frame into the next slot of the other end.
    fn post_slot<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &Staging,
        slot: u32,
        whole: usize,
    ) -> Result<(), NicError> {
        let peer = self.peer.as_ref().expect("there is credit only from a peer");
        let there = self.next_slot;
        self.next_slot = (there + 1) % peer.slots;
        self.receives -= 1;
        self.slots_there -= 1;
        let work = Work {
            addr: staging.address() + self.out_at(slot).at as u64,
            bytes: whole as u32,
            remote: peer.slots_at.wrapping_add(u64::from(there) * SLOT_BYTES as u64),
            remote_key: peer.slots_key,
            immediate: there,
            flags: flag::WRITE,
            ..Work::default()
        };
        self.post(nic, work, Used::Slot(slot), true)
    }

    fn post<N: Nic + ?Sized>(&mut self, nic: &mut N, work: Work, used: Used, told: bool) -> Result<(), NicError> {
        let number = self.next_work;
        self.next_work = (number + 1) & !IS_RECEIVE;
        let mut work = Work { id: self.tag | u64::from(number), key: self.keys.local, ..work };
        self.unsignaled += 1;
        if told || self.unsignaled >= SIGNAL_EVERY {
            self.unsignaled = 0;
            work.flags |= flag::SIGNALED;
        }
        self.posted.push_back((number, used));
        nic.send(self.pair, &work)
    }

    /// What a completion of this pair means; its frames are told. Is it one of the other end's?
    ///
    /// # Errors
    /// The connection has failed, or the other end sent what makes no sense.
    pub fn done<N: Nic + ?Sized>(
        &mut self,
        nic: &mut N,
        staging: &Staging,
        done: &Done,
        tell: &mut dyn FnMut(u8, &[u8]),
    ) -> Result<bool, Fault> {
        let number = done.id as u32;
        if done.status != 0 {
            return Err(Fault::Nic(NicError(nic.status(done.status))));
        }
        if number & IS_RECEIVE == 0 {
            // In the order of posting: all before it are done, too.
            while let Some((posted, used)) = self.posted.pop_front() {
                match used {
                    Used::Small(number) => self.free_small.push(number),
                    Used::Slot(slot) => self.free_slots.push(slot),
                }
                if posted == number {
                    break;
                }
            }
            return Ok(false);
        }
        let number = number & !IS_RECEIVE;
        if number >= RECEIVES + SPARE {
            return Err(Fault::Nonsense(FrameError::Slot(number)));
        }
        if done.what == what::WRITTEN {
            if done.immediate != self.expected {
                return Err(Fault::Nonsense(FrameError::Slot(done.immediate)));
            }
            self.expected = (self.expected + 1) % self.slots;
            let span = self.slot_at(done.immediate);
            let whole = staging.read(Span { bytes: span.bytes.min(done.bytes as usize), ..span });
            match split_frame(whole)? {
                (kind, body, []) => tell(kind, body),
                _ => return Err(Fault::Nonsense(FrameError::Cut(whole.len()))),
            }
            self.owed_receives += 1;
            self.owed_slots += 1;
        } else {
            let span = self.receive_at(number);
            let message = staging.read(Span { bytes: span.bytes.min(done.bytes as usize), ..span });
            let Some((&[a, b, c, d, 0, 0, 0, 0], mut frames)) = message.split_first_chunk::<MESSAGE_HEAD>() else {
                return Err(Fault::Nonsense(FrameError::Cut(message.len())));
            };
            if let Some(peer) = &self.peer {
                let (receives, slots) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                self.receives = (self.receives + u32::from(receives)).min(peer.receives);
                self.slots_there = (self.slots_there + u32::from(slots)).min(peer.slots);
            }
            self.owed_receives += u32::from(!frames.is_empty());
            while !frames.is_empty() {
                let (kind, body, rest) = split_frame(frames)?;
                tell(kind, body);
                frames = rest;
            }
        }
        self.post_receive(nic, staging, number)?;
        Ok(true)
    }
}

fn copy_parts(to: &mut [u8], head: &[u8; HEAD_BYTES], parts: &[&[u8]]) {
    let (first, mut rest) = to.split_at_mut(HEAD_BYTES);
    first.copy_from_slice(head);
    for part in parts {
        let (here, more) = rest.split_at_mut(part.len());
        here.copy_from_slice(part);
        rest = more;
    }
}

/// The first frame's kind and body, and what is behind it.
fn split_frame(bytes: &[u8]) -> Result<(u8, &[u8], &[u8]), FrameError> {
    let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(FrameError::Cut(bytes.len()))?;
    let (kind, length) = frame::read_head(head)?;
    let (body, rest) = rest.split_at_checked(length).ok_or(FrameError::Cut(bytes.len()))?;
    Ok((kind, body, rest))
}
