//! Large messages: the carrier of the receiver's node asks for the data when the receive has matched, the sender's reads it out of the rank, and
//! the receiver's writes it where it belongs.

use std::collections::{BTreeSet, HashMap, VecDeque};

use vmpi_fabric::fabric::BACKLOG_BYTES;
use vmpi_shared::matching::envelope::{Envelope, FLAG_MAPPED, kind};
use vmpi_shared::matching::queues::{answer, go};
use vmpi_shared::matching::request::outcome;
use vmpi_shared::node::NodeSegment;

use super::{CarrierLoop, Peer, held};
use crate::carrier::frame_count::FrameCount;
use crate::carrier::transfer::{Announced, CHUNK_BYTES, Cursor, Fin, Incoming, Memory, Outgoing, Unreachable};
use crate::carrier::wire::{self, BodyError};
use crate::log::debug;

impl CarrierLoop {
    /// May carriers copy from and to the memory of ranks (`VMPI_SINGLE_COPY`)?
    pub(super) fn may_copy(&self) -> bool {
        self.endpoint.job.config().single_copy != 0
    }

    /// Ask the sender's carrier for the data of a receive that has matched. False: only the ranks themselves can move it.
    pub(super) fn begin_incoming(&mut self, sender: u32, node: u32, pull: &Envelope) -> bool {
        let rank = pull.from;
        if !self.may_copy() || !self.endpoint.is_local(rank) || pull.offset() != 0 {
            return false;
        }
        let Some(memory) = Memory::of(&self.endpoint, rank, pull.flags & FLAG_MAPPED != 0) else { return false };
        let Ok(to) = Cursor::of(memory, pull.addr(), pull.blocks(), pull.len) else { return false };
        if !to.is_reached(&self.endpoint.node) {
            return false;
        }
        let (request, sender_request, len) = (pull.peer_request(), pull.request, pull.len);
        self.begin(Incoming {
            rank,
            request,
            node,
            sender,
            sender_request,
            to,
            len,
            got: 0,
            failed: 0,
            pull: *pull,
            answers_sender: false,
            said: !self.survives(),
            told: false,
            void: false,
            credit: false,
        });
        true
    }

    /// Ask the sender's carrier for the data.
    pub(super) fn begin(&mut self, entry: Incoming) {
        let transfer = self.next_transfer;
        self.next_transfer = self.next_transfer.wrapping_add(1) & !wire::UNASKED;
        let Incoming { sender, sender_request, len, node, .. } = entry;
        let body = wire::from_words([sender, sender_request, transfer, len as u32, (len >> 32) as u32]);
        self.fabric.send(node, wire::READY, &[&body]);
        self.fabric.expect_bulk();
        self.incoming.insert(transfer, entry);
    }

    /// Receives whose last byte has come.
    pub(super) fn finish_incoming(&mut self) {
        let done: Vec<Incoming> =
            self.incoming.extract_if(|_, entry| entry.is_whole()).map(|(_, entry)| entry).collect();
        for entry in done {
            self.end_incoming(&entry, entry.failed);
        }
        self.finish_kept();
        self.settle();
    }

    /// A rank here has given a receive up: what still comes is thrown away.
    pub(super) fn let_go(&mut self, envelope: Envelope) {
        let (rank, request) = (envelope.from, envelope.request);
        if !self.endpoint.is_local(rank) {
            return;
        }
        let its =
            |entry: &&mut Incoming| entry.rank == rank && entry.request == request && entry.pull.kind == kind::PULL;
        self.incoming.values_mut().filter(its).for_each(|entry| entry.void = true);
        self.deliver(None, rank, envelope, Vec::new());
    }

    /// Nothing more comes of it.
    fn end_incoming(&mut self, entry: &Incoming, errno: i32) {
        self.delivered(entry.credit.then_some(entry.node), entry.rank);
        if entry.void {
            return;
        }
        if entry.answers_sender {
            let outcome = if errno != 0 { outcome::ERRNO | errno as u32 } else { outcome::GOOD };
            return self.finish_far(entry.node, entry.sender, entry.sender_request, outcome);
        }
        let mut placed = answer(kind::PLACED, entry.request);
        if errno != 0 {
            placed.set_peer_request(outcome::ERRNO | errno as u32);
        }
        self.deliver(None, entry.rank, placed, Vec::new());
    }

    /// A receive on `node` has matched what `rank` has announced. With progress by ranks that one goes on with it.
    ///
    /// # Errors
    /// It is not that node's to ask for.
    pub(super) fn wanted(
        &mut self,
        node: u32,
        (rank, request): (u32, u32),
        transfer: u32,
        len: u64,
    ) -> Result<(), BodyError> {
        if !self.endpoint.is_local(rank) {
            return Err(BodyError::NotHere(rank));
        }
        let Some(announced) = self.announced.get_mut(&(rank, request)) else {
            // It may have ended meanwhile, with its rank or the receiver. Who only asks is not answered without end.
            if self.fabric.backlog_bytes(node) > BACKLOG_BYTES {
                return Err(BodyError::Unread);
            }
            self.begin_outgoing(node, rank, request, transfer, len);
            return Ok(());
        };
        let to = announced.to;
        if self.nodes.of_rank.get(to as usize) != Some(&node) {
            return Err(BodyError::NotThere(to));
        }
        if std::mem::replace(&mut announced.wanted, true) {
            return Err(BodyError::Transfer(transfer));
        }
        if announced.fin != Fin::Nobody && self.nodes.progress_by_rank {
            self.deliver(None, rank, go(to, request, transfer, len), Vec::new());
        } else {
            self.begin_outgoing(node, rank, request, transfer, len);
        }
        Ok(())
    }

    /// A rank here has been asked (`wanted`), and says so to the carriers in the inbox of receiver `to`.
    pub(super) fn sender_says_go(&mut self, to: u32, envelope: &Envelope) {
        if let Some(&node) = self.nodes.of_rank.get(to as usize).filter(|_| self.endpoint.is_local(envelope.from)) {
            self.begin_outgoing(node, envelope.from, envelope.request, envelope.peer_request(), envelope.len);
        }
    }

    fn begin_outgoing(&mut self, node: u32, rank: u32, request: u32, transfer: u32, len: u64) {
        if self.has_failed(rank) {
            // The receiver hears of that.
            return;
        }
        let Some(announced) = self.announced.remove(&(rank, request)) else {
            return self.refuse(node, transfer, libc::ESRCH);
        };
        let Announced { addr, open, blocks, len: total, to, fin, .. } = announced;
        let Some(memory) = Memory::of(&self.endpoint, rank, open) else {
            return self.refuse(node, transfer, 0);
        };
        let len = len.min(total);
        let mut out = Outgoing {
            node,
            transfer,
            rank,
            request,
            to,
            from: Cursor::over(memory, Vec::new()),
            len,
            sent: 0,
            fin,
            failed: 0,
            credit: false,
        };
        match Cursor::of(memory, addr, blocks, total) {
            Ok(from) => {
                out.from = from;
                self.outgoing.push_back(out);
            }
            Err(Unreachable::Errno(libc::ESRCH)) if self.survives() => {}
            Err(Unreachable::Refused) => self.refuse(node, transfer, 0),
            Err(Unreachable::Errno(errno)) if fin == Fin::Nobody => self.refuse(node, transfer, errno),
            Err(Unreachable::Errno(errno)) => self.fail_outgoing(out, errno),
        }
    }

    pub(super) fn refuse(&mut self, node: u32, transfer: u32, errno: i32) {
        self.fabric.send(node, wire::REFUSED, &[&wire::from_words([transfer, errno as u32])]);
    }

    /// Behind what has been sent of it.
    fn refuse_behind(&mut self, node: u32, transfer: u32, errno: i32) {
        self.fabric.send_bulk(node, wire::REFUSED, &[&wire::from_words([transfer, errno as u32])]);
    }

    /// The send cannot be completed: both sides get the error.
    fn fail_outgoing(&mut self, mut out: Outgoing, errno: i32) {
        self.refuse_behind(out.node, out.transfer, errno);
        out.failed = errno;
        match self.survives() {
            true => self.deaths.is_read(out),
            false => self.end_outgoing(&out),
        }
    }

    /// Tell the sender what has become of its message.
    pub(super) fn end_outgoing(&mut self, out: &Outgoing) {
        let mut fin = answer(kind::FIN, out.request);
        if out.failed != 0 {
            fin.set_peer_request(outcome::ERRNO | out.failed as u32);
        }
        self.deliver(None, out.rank, fin, Vec::new());
    }

    /// A message that a rank here receives cannot be read, or not by the other carrier (`errno` 0).
    pub(super) fn refused(&mut self, node: u32, transfer: u32, errno: i32) -> Result<(), BodyError> {
        let of_node = |entry: &&mut Incoming| entry.node == node;
        let entry = self.incoming.get_mut(&transfer).filter(of_node).ok_or(BodyError::Transfer(transfer))?;
        if errno != 0 && !entry.said && !entry.void {
            // The sender may have given it up, and its memory with it; what it knew comes before SENT.
            (entry.failed, entry.got) = (errno, entry.len);
            return Ok(());
        }
        let Some(entry) = self.incoming.remove(&transfer) else { return Ok(()) };
        if errno != 0 || entry.void {
            self.end_incoming(&entry, errno);
        } else if entry.pull.kind != kind::PULL {
            self.end_incoming(&entry, libc::EPERM);
        } else {
            self.answer_far(node, entry.sender, &entry.pull);
            debug!("carrier: rank {} sends request {} itself", entry.sender, entry.sender_request);
        }
        Ok(())
    }

    /// Send of large messages to each node what its link takes: of the oldest one first, so that one rank after the other can go on. If all
    /// got their share in turn, all would wait for the last byte. Of what is not staged no more than a chunk, which goes before the next is read.
    pub(super) fn pump(&mut self) {
        let mut later = VecDeque::new();
        let mut served = BTreeSet::new();
        while let Some(mut out) = self.outgoing.pop_front() {
            if self.peers[out.node as usize] == Peer::Gone {
                continue;
            }
            if served.contains(&out.node) || !self.fabric.has_room(out.node) {
                served.insert(out.node);
                later.push_back(out);
                continue;
            }
            if out.sent == 0 {
                // Who hears of a message before its data can match meanwhile.
                self.fabric.flush();
            }
            let len = (out.len - out.sent).min(CHUNK_BYTES);
            match send_chunk(&mut self.fabric, &self.endpoint.node, &mut self.chunk, &mut out, len as usize) {
                Ok(how) => {
                    out.sent += len;
                    if how == Went::Copied {
                        served.insert(out.node);
                    }
                    if out.sent < out.len {
                        // The oldest one still, if the node takes more of it now.
                        self.outgoing.push_front(out);
                        continue;
                    }
                    self.delivered(out.credit.then_some(out.node), out.rank);
                    match out.fin {
                        Fin::Nobody | Fin::Receiver => {}
                        Fin::Carrier if self.survives() => self.deaths.is_read(out),
                        Fin::Carrier => self.end_outgoing(&out),
                    }
                }
                // Its sender has died, of which the receiver hears.
                Err(Unreachable::Errno(libc::ESRCH)) if self.survives() => {}
                Err(why) if out.fin == Fin::Nobody => {
                    self.delivered(out.credit.then_some(out.node), out.rank);
                    self.refuse_behind(out.node, out.transfer, why.errno());
                }
                Err(Unreachable::Refused) if out.sent == 0 => self.refuse(out.node, out.transfer, 0),
                Err(Unreachable::Refused) => self.fail_outgoing(out, libc::EPERM),
                Err(Unreachable::Errno(errno)) => self.fail_outgoing(out, errno),
            }
        }
        self.outgoing = later;
        self.settle();
    }
}

/// How a chunk has gone.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Went {
    Staged,
    Copied,
}

/// Send the next `len` bytes of a large message: out of its rank's memory where that lies open, else read them, if possible straight to where the fabric sends them from.
fn send_chunk(
    fabric: &mut FrameCount,
    node: &NodeSegment,
    chunk: &mut [u8],
    out: &mut Outgoing,
    len: usize,
) -> Result<Went, Unreachable> {
    let head = out.transfer.to_le_bytes();
    if let Some(staged) = fabric.stage(out.node, head.len() + len) {
        let (first, rest) = staged.split_at_mut(head.len());
        first.copy_from_slice(&head);
        out.from.read(node, rest)?;
        fabric.send_staged(out.node, wire::DATA);
        return Ok(Went::Staged);
    }
    if out.from.show(node, len, |bytes| fabric.send_bulk(out.node, wire::DATA, &[&head, bytes])) {
        return Ok(Went::Copied);
    }
    let chunk = &mut chunk[..len];
    out.from.read(node, chunk)?;
    fabric.send_bulk(out.node, wire::DATA, &[&head, chunk]);
    Ok(Went::Copied)
}

/// Bytes of a large message have come: write them where the receive wants them.
pub(super) fn data(
    segment: &NodeSegment,
    incoming: &mut HashMap<u32, Incoming>,
    kept: &mut held::Held,
    (node, transfer): (u32, u32),
    bytes: &[u8],
) -> Result<(), BodyError> {
    if transfer & wire::UNASKED != 0 {
        return kept.data(segment, node, transfer, bytes);
    }
    let entry = incoming.get_mut(&transfer).filter(|entry| entry.node == node).ok_or(BodyError::Transfer(transfer))?;
    if bytes.len() as u64 > entry.len.saturating_sub(entry.got) {
        return Err(BodyError::Length { kind: wire::DATA, bytes: bytes.len() });
    }
    entry.got += bytes.len() as u64;
    if entry.failed == 0
        && !entry.void
        && let Err(error) = entry.to.write(segment, bytes)
    {
        entry.failed = error.errno();
    }
    Ok(())
}
