//! Messages of which a carrier holds the payload until a receive wants it: eager ones for which the sender's slab here had no block, and announced
//! ones whose data has followed unasked.
//!
//! To ask for the data of a message takes a round trip between the nodes, and each way may wake a carrier. So up to [`MOST_BYTES`] the sender's carrier
//! does not wait to be asked: it announces the message (FOLLOWED) by the way that keeps the order, and sends the data behind it, by the way of large
//! messages. Either may come first. What has come when the receive matches is written there, and what comes later goes straight from the link's buffer. A send is
//! complete when its data has been read, unless it waits for the match (FLAG_SYNC). From one node to another no more than [`AHEAD_BYTES`] are under way or kept,
//! and what is beyond that waits to be asked for.
//!
//! Not with progress by ranks, where the sender has to agree first, nor in jobs that survive deaths, where a receive that completes must know what its
//! sender knew (`deaths`).
//!
//! Death story: a rank or carrier that dies ends the job, so nobody waits for what then does not come. A sender that has finished has been told before that its data was
//! read. A receiver that ends with messages kept for it leaves them here, and their part of [`AHEAD_BYTES`] in use, until its number is used again
//! ([`Held::forget`]) or the job ends: what is sent meanwhile waits to be asked for.

use std::collections::HashMap;

use vmpi_shared::matching::envelope::{Envelope, FLAG_MAPPED, FLAG_SYNC, PIECE_BYTES, kind};
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::outcome;
use vmpi_shared::mem::chunks::CHUNK_BYTES;
use vmpi_shared::node::NodeSegment;

use super::{CarrierLoop, check_ends};
use crate::carrier::frame_count::FrameCount;
use crate::carrier::transfer::{Cursor, Fin, Memory, Outgoing, Unreachable};
use crate::carrier::wire::{self, BodyError, UNASKED};
use crate::log::debug;

/// Requests of messages that are kept here have this bit, which no other node's has.
pub(super) const KEPT: u32 = wire::MOST_REQUESTS;
/// Longest message whose data follows unasked. To ask takes 50 us of the 200 that 512 KiB take; of 1 MiB, which then often come before a receive wants them and are copied once
/// more, the asking is cheaper.
const MOST_BYTES: u64 = 512 << 10;
/// What may be on its way from one node to another, or kept there, without having been asked for.
const AHEAD_BYTES: u64 = 2 << 20;
/// A message counts as at least so much of that, so that their number is bounded, too.
const LEAST_BYTES: u64 = 4 << 10;
const MOST_MESSAGES: u32 = (AHEAD_BYTES / LEAST_BYTES) as u32;
/// So many bodies are kept to be used again: fresh memory for each would cost more than its copy.
const SPARE_BODIES: usize = (AHEAD_BYTES / MOST_BYTES) as usize;
/// So much of it is told together to have been taken.
const TAKEN_STEP: u64 = AHEAD_BYTES / 4;

/// What a message takes of [`AHEAD_BYTES`].
fn charge(len: u64) -> u64 {
    len.max(LEAST_BYTES)
}

/// What follows unasked: the sender's side.
#[derive(Default)]
pub(super) struct Ahead {
    /// By node, bytes that have not been taken there.
    bytes: HashMap<u32, u64>,
    next: u32,
}

impl Ahead {
    /// A number for a message to `node`, if its data may follow at once.
    fn claim(&mut self, node: u32, len: u64) -> Option<u32> {
        let bytes = self.bytes.entry(node).or_default();
        if len == 0 || len > MOST_BYTES || *bytes + charge(len) > AHEAD_BYTES {
            return None;
        }
        *bytes += charge(len);
        let number = UNASKED | self.next;
        self.next = (self.next + 1) & !UNASKED;
        Some(number)
    }

    pub(super) fn taken(&mut self, node: u32, len: u64) {
        let bytes = self.bytes.entry(node).or_default();
        *bytes = bytes.saturating_sub(len);
    }

    /// Announce a message whose data follows, and say what is to be sent then. `None`: it must be asked for.
    pub(super) fn follow(
        &mut self,
        fabric: &mut FrameCount,
        (node, to): (u32, u32),
        envelope: &Envelope,
        memory: Memory,
    ) -> Option<Outgoing> {
        let from = Cursor::of(memory, envelope.addr(), envelope.blocks(), envelope.len).ok()?;
        let transfer = self.claim(node, envelope.len)?;
        let (bytes, used) = wire::encode(to, envelope);
        fabric.send(node, wire::FOLLOWED, &[&transfer.to_le_bytes(), &bytes[..used]]);
        Some(Outgoing {
            node,
            transfer,
            rank: envelope.from,
            request: envelope.request,
            to,
            from,
            len: envelope.len,
            sent: 0,
            fin: if envelope.flags & FLAG_SYNC != 0 { Fin::Receiver } else { Fin::Carrier },
            failed: 0,
            credit: false,
        })
    }
}

/// What a receive has said of a message.
struct Wanted {
    /// PULL, or FIN: nobody wants its bytes.
    said: Envelope,
    /// Where the next byte goes; `None`: the rank itself must copy.
    to: Option<Cursor>,
}

#[derive(Default)]
struct Message {
    node: u32,
    /// Its sender, and that one's request.
    from: u32,
    request: u32,
    /// The sender waits for the match.
    sync: bool,
    /// For whom; `None` until its announcement has come.
    to: Option<u32>,
    len: u64,
    /// The number by which its data comes.
    transfer: Option<u32>,
    got: u64,
    /// What has come and is not written yet.
    body: Vec<u8>,
    /// errno: it cannot be read, or not be written.
    failed: i32,
    /// Only its sender itself can read it: it is asked for as one that nothing has followed.
    withheld: bool,
    wanted: Option<Wanted>,
}

impl Message {
    /// Nothing more comes.
    fn is_whole(&self) -> bool {
        self.to.is_some() && (self.got >= self.len || self.withheld)
    }

    fn is_ready(&self) -> bool {
        self.is_whole() && self.wanted.is_some()
    }

    /// Write the next bytes, which come behind `before` others.
    fn write(&mut self, segment: &NodeSegment, before: u64, bytes: &[u8]) {
        let Some(Wanted { said, to: Some(cursor) }) = &mut self.wanted else { return };
        let room = said.len.saturating_sub(before).min(bytes.len() as u64);
        if room > 0
            && self.failed == 0
            && let Err(why) = cursor.write(segment, &bytes[..room as usize])
        {
            self.failed = why.errno();
        }
    }

    /// More of its data has come; how many bytes are kept more.
    fn came(&mut self, segment: &NodeSegment, bytes: &[u8], spare: &mut Vec<Vec<u8>>) -> u64 {
        let before = self.got;
        self.got += bytes.len() as u64;
        match &self.wanted {
            Some(wanted) if wanted.said.kind != kind::PULL => 0,
            Some(Wanted { to: Some(_), .. }) => {
                self.write(segment, before, bytes);
                0
            }
            _ => {
                if self.body.capacity() == 0 {
                    self.body = spare.pop().unwrap_or_else(|| Vec::with_capacity(MOST_BYTES as usize));
                }
                self.body.extend_from_slice(bytes);
                bytes.len() as u64
            }
        }
    }
}

/// The receiver's side.
#[derive(Default)]
pub(super) struct Held {
    messages: HashMap<u32, Message>,
    next: u32,
    /// By node and transfer.
    coming: HashMap<(u32, u32), u32>,
    /// By node, bytes kept of what nobody has asked for.
    bytes: HashMap<u32, u64>,
    /// Bytes kept of messages whose senders' slabs here had no block.
    eager_bytes: u64,
    /// By node, bytes that have been taken, of which it has not been told.
    taken: HashMap<u32, u64>,
    spare: Vec<Vec<u8>>,
    /// Messages that a receive has wanted and whose last byte has come since.
    ready: Vec<u32>,
}

impl Held {
    /// The ranks that want what has not come yet.
    pub(super) fn receivers(&self) -> impl Iterator<Item = u32> {
        self.messages.values().filter(|message| message.wanted.is_some()).filter_map(|message| message.to)
    }

    /// Bytes, about.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.messages.values().map(|message| size_of::<Message>() + message.body.len()).sum()
    }

    fn add(&mut self, message: Message) -> u32 {
        let number = KEPT | self.next;
        self.next = (self.next + 1) & !KEPT;
        self.messages.insert(number, message);
        number
    }

    /// The message that comes from `node` as `transfer`, whichever part of it is first.
    ///
    /// # Errors
    /// There are as many already as there may be.
    fn coming(&mut self, node: u32, transfer: u32) -> Result<u32, BodyError> {
        if let Some(number) = self.coming.get(&(node, transfer)) {
            return Ok(*number);
        }
        if self.coming.keys().filter(|(from, _)| *from == node).count() >= MOST_MESSAGES as usize {
            return Err(BodyError::Ahead);
        }
        let number = self.add(Message { node, len: MOST_BYTES, transfer: Some(transfer), ..Message::default() });
        self.coming.insert((node, transfer), number);
        Ok(number)
    }

    /// Bytes have come that nobody has asked for.
    ///
    /// # Errors
    /// More than there may be.
    pub(super) fn data(
        &mut self,
        segment: &NodeSegment,
        node: u32,
        transfer: u32,
        bytes: &[u8],
    ) -> Result<(), BodyError> {
        let number = self.coming(node, transfer)?;
        let (kept, Some(message)) = (self.bytes.entry(node).or_default(), self.messages.get_mut(&number)) else {
            return Err(BodyError::Transfer(transfer));
        };
        let missing = message.len.saturating_sub(message.got);
        if bytes.is_empty() || bytes.len() as u64 > missing {
            return Err(BodyError::Length { kind: wire::DATA, bytes: bytes.len() });
        }
        if *kept + bytes.len() as u64 > AHEAD_BYTES {
            return Err(BodyError::Ahead);
        }
        *kept += message.came(segment, bytes, &mut self.spare);
        if message.is_ready() {
            self.ready.push(number);
        }
        Ok(())
    }

    /// The rank for which messages are kept has ended: nobody will want them.
    pub(super) fn forget(&mut self, rank: u32) {
        let Held { messages, ready, .. } = self;
        for (number, message) in messages.iter_mut().filter(|(_, message)| message.to == Some(rank)) {
            message.wanted = Some(Wanted { said: answer(kind::FIN, *number), to: None });
            message.sync = false;
            if message.is_ready() {
                ready.push(*number);
            }
        }
    }

    /// A body has been written.
    fn done_with(&mut self, mut body: Vec<u8>) {
        if body.capacity() >= MOST_BYTES as usize && self.spare.len() < SPARE_BODIES {
            body.clear();
            self.spare.push(body);
        }
    }

    fn remove(&mut self, number: u32) -> Option<Message> {
        let message = self.messages.remove(&number)?;
        if let Some(transfer) = message.transfer {
            self.coming.remove(&(message.node, transfer));
            let kept = self.bytes.entry(message.node).or_default();
            *kept = kept.saturating_sub(message.body.len() as u64);
            *self.taken.entry(message.node).or_default() += charge(message.len);
        } else {
            self.eager_bytes = self.eager_bytes.saturating_sub(message.len);
        }
        Some(message)
    }
}

impl CarrierLoop {
    /// May so much of an eager message be kept that has no block? Up to what a job may hold of messages that nobody has received; what is more waits for a block
    /// with its credit.
    pub(super) fn may_keep(&self, bytes: usize) -> bool {
        let most = u64::from(self.endpoint.job.config().chunks) * CHUNK_BYTES;
        self.kept.eager_bytes + bytes as u64 <= most
    }

    /// May data follow what announces it in this job?
    pub(super) fn may_follow(&self) -> bool {
        !self.survives() && !self.nodes.progress_by_rank
    }

    /// No block for an eager message's payload: keep it, and announce it.
    #[cold]
    pub(super) fn keep(&mut self, (node, to): (u32, u32), envelope: &mut Envelope, payload: Vec<u8>) {
        self.kept.eager_bytes += payload.len() as u64;
        let number = self.kept.add(Message {
            node,
            from: envelope.from,
            request: envelope.request,
            sync: envelope.flags & FLAG_SYNC != 0,
            to: Some(to),
            len: payload.len() as u64,
            got: payload.len() as u64,
            body: payload,
            ..Message::default()
        });
        announce(envelope, number);
    }

    /// A message for a rank here has been announced whose data follows, or has come already.
    pub(super) fn followed(
        &mut self,
        node: u32,
        transfer: u32,
        to: u32,
        mut envelope: Envelope,
    ) -> Result<(), BodyError> {
        check_ends(&self.endpoint, &self.nodes, node, to, Some(envelope.from))?;
        self.take_credit(node, to)?;
        let number = self.kept.coming(node, transfer)?;
        let message = self.kept.messages.get_mut(&number).ok_or(BodyError::Transfer(transfer))?;
        let fits = message.failed != 0 || envelope.len >= message.got;
        if message.to.is_some() {
            return Err(BodyError::Transfer(transfer));
        }
        if envelope.len == 0 || envelope.len > MOST_BYTES || !fits {
            return Err(BodyError::Number { kind: wire::FOLLOWED, what: "length", number: envelope.len });
        }
        if message.failed != 0 {
            // Nothing more comes.
            message.got = envelope.len;
        }
        (message.from, message.request) = (envelope.from, envelope.request);
        (message.to, message.len) = (Some(to), envelope.len);
        // Of what cannot be read its sender has been told.
        message.sync = envelope.flags & FLAG_SYNC != 0 && message.failed == 0;
        self.fabric.expect_bulk();
        announce(&mut envelope, number);
        self.deliver(Some(node), to, envelope, Vec::new());
        self.settle();
        Ok(())
    }

    /// What was to follow cannot be read, or (`errno` 0) only by its sender.
    ///
    /// # Errors
    /// There is too much of that.
    pub(super) fn withheld(&mut self, node: u32, transfer: u32, errno: i32) -> Result<(), BodyError> {
        if !self.may_follow() {
            return Err(BodyError::Misplaced(wire::REFUSED));
        }
        let number = self.kept.coming(node, transfer)?;
        let Some(message) = self.kept.messages.get_mut(&number) else { return Ok(()) };
        match errno {
            0 => message.withheld = true,
            errno => {
                // Of which its sender has been told.
                (message.failed, message.sync) = (errno, false);
                message.got = message.len;
            }
        }
        if message.is_ready() {
            self.kept.ready.push(number);
        }
        Ok(())
    }

    /// A receive wants a message that is kept here, or has no use for its bytes (FIN).
    pub(super) fn give_kept(&mut self, said: &Envelope) {
        let may_copy = self.may_copy();
        let (number, rank) = (said.request, said.from);
        let Some(message) = self.kept.messages.get_mut(&number).filter(|message| message.wanted.is_none()) else {
            return;
        };
        let mut wanted = Wanted { said: *said, to: None };
        if said.kind == kind::PULL
            && !message.withheld
            && may_copy
            && self.endpoint.is_local(rank)
            && let Some(memory) = Memory::of(&self.endpoint, rank, said.flags & FLAG_MAPPED != 0)
        {
            match Cursor::of(memory, said.addr(), said.blocks(), said.len) {
                Ok(cursor) => wanted.to = Some(cursor),
                Err(Unreachable::Refused) => {}
                Err(Unreachable::Errno(errno)) => message.failed = errno,
            }
        }
        message.wanted = Some(wanted);
        self.place(number);
        if self.kept.messages.get(&number).is_some_and(Message::is_ready) {
            self.finish(number);
        }
    }

    /// Write what has come of a message into the receive that it is for. If the kernel does not let this process do that, the rank will copy itself.
    fn place(&mut self, number: u32) {
        let Some(message) = self.kept.messages.get_mut(&number) else { return };
        let body = std::mem::take(&mut message.body);
        let reached = match &mut message.wanted {
            Some(Wanted { to: Some(cursor), .. }) => cursor.is_reached(&self.endpoint.node),
            Some(Wanted { to: None, said }) => said.kind != kind::PULL,
            _ => true,
        };
        if !reached {
            message.body = body;
            if let Some(wanted) = &mut message.wanted {
                wanted.to = None;
            }
            return;
        }
        message.write(&self.endpoint.node, 0, &body);
        if message.transfer.is_some() {
            let kept = self.kept.bytes.entry(message.node).or_default();
            *kept = kept.saturating_sub(body.len() as u64);
        }
        self.kept.done_with(body);
    }

    /// Messages that are wanted and have become whole.
    pub(super) fn finish_kept(&mut self) {
        for number in std::mem::take(&mut self.kept.ready) {
            self.finish(number);
        }
    }

    /// All of a message has come, or nothing comes, and a receive has said what it wants.
    fn finish(&mut self, number: u32) {
        let Some(message) = self.kept.remove(number) else { return };
        let Some(Wanted { mut said, to }) = message.wanted else { return };
        if message.withheld {
            said.request = message.request;
            self.answer_far(message.node, message.from, &said);
            debug!("carrier: rank {} sends request {} itself", message.from, message.request);
            return;
        }
        if message.sync {
            self.answer_far(message.node, message.from, &answer(kind::FIN, message.request));
        }
        let (rank, request) = (said.from, said.peer_request());
        if said.kind != kind::PULL || !self.endpoint.is_local(rank) {
            return;
        }
        if to.is_some() || message.failed != 0 {
            let mut done = answer(kind::PLACED, request);
            if message.failed != 0 {
                done.set_peer_request(outcome::ERRNO | message.failed as u32);
            }
            return self.deliver(None, rank, done, Vec::new());
        }
        // The rank copies itself, out of as many envelopes as that takes; its FIN then finds nothing kept.
        let payload = &message.body[..(said.len as usize).min(message.body.len())];
        for (number, part) in payload.chunks(PIECE_BYTES).enumerate() {
            let mut piece = answer(kind::PIECE, request);
            piece.from = message.from;
            piece.len = part.len() as u64;
            piece.set_offset((number * PIECE_BYTES) as u64);
            piece.piece_mut()[..part.len()].copy_from_slice(part);
            self.deliver(None, rank, piece, Vec::new());
        }
    }

    /// Tell other nodes how much of what they have sent unasked has been taken.
    pub(super) fn say_taken(&mut self) {
        let CarrierLoop { kept, fabric, .. } = self;
        for (node, bytes) in kept.taken.iter_mut().filter(|(_, bytes)| **bytes >= TAKEN_STEP) {
            fabric.send(*node, wire::TAKEN, &[&wire::from_words([std::mem::take(bytes) as u32])]);
        }
    }
}

/// As the receiver sees it: a message of which this carrier gives the data.
fn announce(envelope: &mut Envelope, number: u32) {
    envelope.kind = kind::RTS;
    envelope.flags = 0;
    envelope.request = number;
    envelope.set_addr(0);
    envelope.set_blocks(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::node::NodeConfig;

    fn segment() -> NodeSegment {
        NodeSegment::create(&NodeConfig::on_one_core(0, 4)).unwrap()
    }

    #[test]
    fn no_more_is_ahead_than_may_be() {
        let mut ahead = Ahead::default();
        assert!(ahead.claim(1, 0).is_none() && ahead.claim(1, MOST_BYTES + 1).is_none());
        let numbers: Vec<u32> = (0..AHEAD_BYTES / MOST_BYTES).map_while(|_| ahead.claim(1, MOST_BYTES)).collect();
        assert!(numbers.len() as u64 == AHEAD_BYTES / MOST_BYTES && numbers.iter().all(|number| number & UNASKED != 0));
        assert!(ahead.claim(1, 1).is_none(), "node 1 holds as much as it may");
        assert!(ahead.claim(2, 1).is_some(), "which says nothing of another");
        ahead.taken(1, MOST_BYTES);
        assert!(ahead.claim(1, MOST_BYTES).is_some_and(|number| !numbers.contains(&number)));
    }

    #[test]
    fn what_comes_is_kept_in_order_and_within_bounds() {
        let (node, mut kept) = (&segment(), Held::default());
        let one = [7; 1000];
        assert!(kept.data(node, 1, UNASKED, &[]).is_err(), "nothing is no data");
        assert!(kept.data(node, 1, UNASKED, &vec![0; MOST_BYTES as usize + 1]).is_err());
        assert!(kept.data(node, 1, UNASKED | 1, &one).is_ok() && kept.data(node, 1, UNASKED | 1, &[8; 24]).is_ok());
        assert!(kept.data(node, 2, UNASKED | 1, &one).is_ok(), "another node's number");
        let number = kept.coming(1, UNASKED | 1).unwrap();
        let message = &kept.messages[&number];
        assert!(message.got == 1024 && message.body[..1000] == one && message.body[1000..] == [8; 24]);
        assert!(!message.is_whole(), "it has not been announced");
        for other in 0..AHEAD_BYTES / MOST_BYTES - 1 {
            assert!(kept.data(node, 1, UNASKED | (2 + other as u32), &vec![0; MOST_BYTES as usize]).is_ok());
        }
        let rest = MOST_BYTES as usize - 1024;
        assert!(kept.data(node, 1, UNASKED | 99, &vec![0; rest + 1]).is_err(), "more than its sender may send");
        assert!(kept.data(node, 1, UNASKED | 99, &vec![0; rest]).is_ok());
        assert!(kept.remove(number).is_some());
        assert!(kept.bytes[&1] == AHEAD_BYTES - 1024 && kept.coming(1, UNASKED | 1).unwrap() != number);
    }

    #[test]
    fn what_is_for_nobody_is_thrown_away_when_it_has_come() {
        let (node, mut kept) = (&segment(), Held::default());
        kept.data(node, 1, UNASKED, &[1; 100]).unwrap();
        let number = kept.coming(1, UNASKED).unwrap();
        let message = kept.messages.get_mut(&number).unwrap();
        (message.to, message.len) = (Some(3), 200);
        kept.forget(4);
        assert!(kept.messages[&number].wanted.is_none());
        assert!(kept.receivers().next().is_none(), "no receive waits for it");
        kept.forget(3);
        assert!(kept.receivers().eq([3]), "as if one did, until its data has come");
        assert!(kept.ready.is_empty(), "its second half is on the way");
        kept.data(node, 1, UNASKED, &[2; 100]).unwrap();
        assert!(kept.ready == [number] && kept.messages[&number].body.len() == 100, "which is not kept any more");
        kept.remove(number);
        assert!(kept.bytes[&1] == 0 && kept.taken[&1] == LEAST_BYTES);
    }
}
