//! What an adapter that reads and writes memory by itself spares the processor: large bodies lie where the sender has staged them, in memory
//! that both ends map, until they are due; word of them, and small frames, go through a ring there (`ring`).
//!
//! A sender's slots are used in turn; the receiver gives back how many it has told, with what it sends next. Both ends must be on one machine, as
//! for the clock; ends that cannot open each other's memory (another PID namespace, another user) send all over the carrying network.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use super::ring::{self, Place, Reader, Writer};
use super::wake_timer::{WakeTimer, Watch};
use crate::frame::{FrameError, MAX_BODY_BYTES};
use crate::key::Key;
use crate::staging::{Span, Staging};

/// Few, so that the same lines of the cache are used again: more than fit under way at once have no use.
pub const SLOTS: u32 = 8;
const HEAD_BYTES: usize = 4096;
const RING_AT: usize = HEAD_BYTES + SLOTS as usize * MAX_BODY_BYTES;
const BYTES: usize = RING_AT + ring::BYTES;
const NONCE_BYTES: usize = 32;

/// Process and descriptors under which an end opens the other's memory and takes its timer, and the nonce that it finds there.
pub const OFFER_BYTES: usize = NUMBERS_BYTES + NONCE_BYTES;
const NUMBERS_BYTES: usize = 12;
/// Length of a staged body, and its slot.
pub const WORD_BYTES: usize = 8;

/// The ring; behind the alarm's words.
const fn ring_place() -> Place {
    Place { written: 256, read: 320, ring: RING_AT }
}

fn span(slot: u32, bytes: usize) -> Span {
    Span { at: HEAD_BYTES + slot as usize * MAX_BODY_BYTES, bytes }
}

/// Slots for what goes to a node.
pub struct Outbox {
    memory: Staging,
    /// Until the other end has mapped it.
    fd: Option<OwnedFd>,
    alarm: WakeTimer,
    ring: Writer,
    /// The other end has been told that from here on all goes through the ring.
    ringed: bool,
    sent: u32,
    returned: u32,
    /// Bytes of what is being filled.
    staged: usize,
}

impl Outbox {
    /// # Errors
    /// No memory, no random bytes, no timer.
    pub fn new() -> io::Result<Outbox> {
        let (mut memory, fd) = Staging::shared(BYTES)?;
        memory.write(Span { at: 0, bytes: NONCE_BYTES }).copy_from_slice(Key::random()?.bytes());
        let (alarm, ring) = (WakeTimer::new()?, Writer::new(ring_place()));
        Ok(Outbox { memory, fd: Some(fd), alarm, ring, ringed: false, sent: 0, returned: 0, staged: 0 })
    }

    /// For the other end's [`Inbox::open`].
    pub fn offer(&self) -> [u8; OFFER_BYTES] {
        let mut offer = [0; OFFER_BYTES];
        let fd = self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        offer[..4].copy_from_slice(&std::process::id().to_le_bytes());
        offer[4..8].copy_from_slice(&fd.to_le_bytes());
        offer[8..NUMBERS_BYTES].copy_from_slice(&self.alarm.fd().to_le_bytes());
        offer[NUMBERS_BYTES..].copy_from_slice(self.memory.read(Span { at: 0, bytes: NONCE_BYTES }));
        offer
    }

    /// A frame has been queued, due at `due`: [`WakeTimer::queued`].
    pub fn queued(&mut self, way: usize, due: u64, latency: Duration) {
        self.alarm.queued(&self.memory, way, due, latency);
    }

    /// From now on `push` is the way; the other end has been told so by the old one.
    pub fn begin_ring(&mut self) {
        self.ringed = true;
    }

    pub fn has_ring(&self) -> bool {
        self.ringed
    }

    /// Send a frame of these parts.
    pub fn push(&mut self, kind: u8, parts: &[&[u8]]) {
        self.ring.push(&mut self.memory, kind, parts);
    }

    /// Bytes that the ring has no room for yet.
    pub fn waiting_bytes(&self) -> usize {
        self.ring.waiting_bytes()
    }

    /// Let the other end see what has been pushed.
    pub fn flush(&mut self) {
        self.ring.flush(&mut self.memory);
    }

    /// What was queued has gone.
    pub fn ring(&mut self) {
        self.alarm.ring(&self.memory);
    }

    /// The other end has mapped it.
    pub fn mapped(&mut self) {
        self.fd = None;
    }

    pub fn is_mapped(&self) -> bool {
        self.fd.is_none()
    }

    /// Is a slot free?
    pub fn has_room(&self) -> bool {
        self.sent.wrapping_sub(self.returned) < SLOTS
    }

    pub fn returned(&mut self, told: u32) {
        // Never more than were sent: a count that is no count must not open slots that are in use.
        if told.wrapping_sub(self.returned) <= self.sent.wrapping_sub(self.returned) {
            self.returned = told;
        }
    }

    /// The next slot, if it is free.
    pub fn stage(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if !self.is_mapped() || bytes > MAX_BODY_BYTES || !self.has_room() {
            return None;
        }
        self.staged = bytes;
        Some(self.memory.write(span(self.sent % SLOTS, bytes)))
    }

    /// Word of what was staged.
    pub fn send(&mut self) -> (usize, [u8; WORD_BYTES]) {
        let mut word = [0; WORD_BYTES];
        word[..4].copy_from_slice(&(self.staged as u32).to_le_bytes());
        word[4..].copy_from_slice(&(self.sent % SLOTS).to_le_bytes());
        self.sent = self.sent.wrapping_add(1);
        (self.staged, word)
    }
}

/// A node's outbox for this one, mapped.
pub struct Inbox {
    memory: Staging,
    /// If this end has the sender's timer, and the carrying network is hushed.
    watch: Option<Watch>,
    ring: Reader,
    /// Of how many of the two ways the other end has said that all goes through the ring.
    ringed: u8,
    /// Of which word has come, that have been told, and of which the sender knows that.
    come: u32,
    told: u32,
    said: u32,
}

impl Inbox {
    /// # Errors
    /// It cannot be opened, or is something else.
    pub fn open(offer: &[u8]) -> io::Result<Inbox> {
        let (numbers, nonce) = offer.split_first_chunk::<NUMBERS_BYTES>().ok_or(io::ErrorKind::InvalidData)?;
        let (numbers, _) = numbers.as_chunks::<4>();
        let [pid, fd, timer] = std::array::from_fn(|at| u32::from_le_bytes(numbers[at]));
        let file = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"))?;
        let memory = Staging::map(file.into(), BYTES)?;
        if memory.read(Span { at: 0, bytes: NONCE_BYTES }) != nonce {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let (watch, ring) = (Watch::of(pid, timer as i32).ok(), Reader::new(ring_place()));
        Ok(Inbox { memory, watch, ring, ringed: 0, come: 0, told: 0, said: 0 })
    }

    /// By one of the two ways nothing more comes but through the ring.
    pub fn ringed(&mut self) {
        self.ringed = self.ringed.saturating_add(1);
    }

    /// Copy the next frame of the ring, if there is one, and all that came the old ways is here; its kind.
    ///
    /// # Errors
    /// What stands there is none.
    pub fn next(&mut self, frame: &mut Vec<u8>) -> Result<Option<u8>, FrameError> {
        if self.ringed < 2 {
            return Ok(None);
        }
        // Behind what is none nothing is looked for.
        let next = self.ring.next(&self.memory).inspect_err(|_| self.ringed = 0);
        let Some((kind, span)) = next? else { return Ok(None) };
        frame.clear();
        frame.extend_from_slice(self.memory.read(span));
        self.ring.done(&self.memory, span);
        Ok(Some(kind))
    }

    /// The timer, if this end has it.
    pub fn timer(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref().map(Watch::fd)
    }

    /// The timer is of no use.
    pub fn forget_timer(&mut self) {
        self.watch = None;
    }

    /// A frame has come, of whatever kind.
    pub fn saw(&mut self, frames: u64) {
        if let Some(watch) = &mut self.watch {
            watch.saw(frames);
        }
    }

    /// Is there, or may there be, something on the carrying network?
    pub fn may_have_news(&self) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch.has_news(&self.memory))
    }

    pub fn get_up(&self) {
        if let Some(watch) = &self.watch {
            watch.get_up(&self.memory);
        }
    }

    /// About to sleep: [`Watch::prepare_to_sleep`].
    pub fn prepare_to_sleep(&mut self, until: Option<u64>, calm: bool) -> bool {
        self.watch.as_mut().is_none_or(|watch| watch.prepare_to_sleep(&self.memory, until, calm))
    }

    pub fn doubts(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::doubts)
    }

    /// Word of a staged body has come: where it lies.
    ///
    /// # Errors
    /// Not the next slot, or too long.
    pub fn word(&mut self, word: &[u8]) -> Result<Span, FrameError> {
        let word: &[u8; WORD_BYTES] = word.try_into().map_err(|_| FrameError::Cut(word.len()))?;
        let bytes = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let slot = u32::from_le_bytes([word[4], word[5], word[6], word[7]]);
        if slot != self.come % SLOTS || self.come.wrapping_sub(self.told) >= SLOTS {
            return Err(FrameError::Slot(slot));
        }
        if bytes as usize > MAX_BODY_BYTES {
            return Err(FrameError::TooLong(bytes));
        }
        self.come = self.come.wrapping_add(1);
        Ok(span(slot, bytes as usize))
    }

    pub fn body(&self, span: Span) -> &[u8] {
        self.memory.read(span)
    }

    /// The oldest has been told: its slot is the sender's again.
    pub fn told(&mut self) {
        self.told = self.told.wrapping_add(1);
    }

    /// For the sender's [`Outbox::returned`].
    pub fn say(&mut self) -> u32 {
        self.said = self.told;
        self.told
    }

    /// The sender has hardly a slot left, as far as it knows, and would have some. Otherwise it hears of them with what goes its way anyway.
    pub fn must_say(&self) -> bool {
        self.come.wrapping_sub(self.said) > SLOTS / 2 && self.told.wrapping_sub(self.said) >= SLOTS / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_lie_where_the_sender_has_put_them() {
        let mut out = Outbox::new().unwrap();
        assert!(out.stage(10).is_none(), "nobody has mapped it");
        let mut inbox = Inbox::open(&out.offer()).unwrap();
        out.mapped();
        for n in 0..100u32 {
            out.stage(1000 + n as usize).unwrap().fill(n as u8);
            let (bytes, word) = out.send();
            assert_eq!(bytes, 1000 + n as usize);
            let at = inbox.word(&word).unwrap();
            assert!(inbox.body(at).len() == bytes && inbox.body(at).iter().all(|byte| *byte == n as u8));
            inbox.told();
            if inbox.must_say() {
                out.returned(inbox.say());
            }
        }
    }

    #[test]
    fn slots_in_use_are_not_given_out_and_nonsense_is_refused() {
        let mut out = Outbox::new().unwrap();
        let mut inbox = Inbox::open(&out.offer()).unwrap();
        out.mapped();
        let mut words = Vec::new();
        while out.stage(8).is_some() {
            words.push(out.send().1);
        }
        assert_eq!(words.len() as u32, SLOTS);
        out.returned(u32::MAX);
        out.returned(SLOTS + 1);
        assert!(out.stage(8).is_none());
        assert_eq!(inbox.word(&words[1]), Err(FrameError::Slot(1)));
        assert_eq!(inbox.word(&[0; 3]), Err(FrameError::Cut(3)));
        assert_eq!(inbox.word(&[255, 255, 255, 0, 0, 0, 0, 0]), Err(FrameError::TooLong(0xff_ffff)));
        for word in &words {
            inbox.word(word).unwrap();
        }
        assert_eq!(inbox.word(&words[0]), Err(FrameError::Slot(0)), "one more than there are");
        inbox.told();
        out.returned(inbox.say());
        assert!(out.stage(8).is_some());
    }

    #[test]
    fn other_memory_is_not_taken_for_a_nodes() {
        let out = Outbox::new().unwrap();
        let mut offer = out.offer();
        offer[OFFER_BYTES - 1] ^= 1;
        assert!(Inbox::open(&offer).is_err());
        offer[4..8].copy_from_slice(&0i32.to_le_bytes());
        assert!(Inbox::open(&offer).is_err() && Inbox::open(&[0; 5]).is_err());
    }
}
