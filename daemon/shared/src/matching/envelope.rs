//! What travels through an inbox: who sends what to which receive, and the payload or where it lies.

/// Bytes of payload that fit into an envelope.
pub const INLINE_BYTES: usize = 128;

/// Kinds of envelope.
pub mod kind {
    /// The payload is in the envelope.
    pub const INLINE: u8 = 1;
    /// The payload is in a slab block at `addr` (offset in the job segment).
    pub const SLAB: u8 = 2;
    /// Ready to send: the payload lies in the sender's memory at `addr`, or in the `blocks` blocks listed at `addr`.
    pub const RTS: u8 = 3;
    /// The sender's request `request` is complete.
    pub const FIN: u8 = 4;
    /// The receiver cannot read the sender's memory: send bytes from `addr` on of request `request` to `peer_request`.
    pub const PULL: u8 = 5;
    /// A piece of a pulled message: `len` bytes in the slab block at `addr` for offset `offset` of request `request`.
    pub const PIECE: u8 = 6;
    /// Nothing but a wake-up.
    pub const WAKE: u8 = 7;
    /// The receiver copies the sender's request `request`, of which it takes `len` bytes to `addr`, and offers to share the work: offer
    /// number `peer_request` (see `cooperative_copy`).
    pub const HELP: u8 = 8;
    /// The carriers have put the data of receive `request` in place; `peer_request` is the outcome.
    pub const PLACED: u8 = 9;
    /// For a carrier: do something in a window (see `ask`). `len` bytes of blocks and data come behind the words of the ask, or lie in the slab
    /// block at `addr`; `peer_request`: the carriers' number for the data that answers it.
    pub const ASK: u8 = 10;
    /// For the carrier: receive `request` of `from` has been given up, with the outcome `peer_request`; and its answer, the same again: nothing
    /// more is written into that one's buffer.
    pub const LET_GO: u8 = 11;
    /// With progress by ranks: the receive of what request `request` has announced is there, and the carriers are to move it (`peer_request`: their number
    /// for it, `len` bytes) when the sender itself says so, by sending the same back.
    pub const GO: u8 = 12;
    /// In virtual time: what rank `from` does in the memory of another one by one-sided communication (`simulate::operations`). `len` bytes go there, and
    /// `offset` come back with the answer, a FIN for request `request`.
    pub const OPERATION: u8 = 13;
}

/// The last piece that the sender gives without being asked again.
pub const FLAG_LAST_OF_WINDOW: u8 = 2;
/// The sender waits until the message is matched (synchronous mode, or a receiver with many unexpected messages). An announced message's sender is answered
/// when its data has been read: where that may be before the match, on other nodes, this says that it must not be.
pub const FLAG_SYNC: u8 = 1;
/// RTS: the data lies in the sender's memory file (`heap`). HELP, PULL: the buffer lies in the receiver's.
pub const FLAG_MAPPED: u8 = 4;
/// RTS: only the sender can reach the data (`elements`).
pub const FLAG_ELEMENTS: u8 = 8;
/// OPERATION: it has been done where it begins, since no other one may touch the same memory meanwhile.
pub const FLAG_DONE: u8 = 16;
/// OPERATION: what is done there says when it is answered.
pub const FLAG_UNANSWERED: u8 = 32;

/// A message's head, and a payload or where it lies. Fixed-width integers only; all-zero is no message.
///
/// The body of INLINE is the payload. That of all other kinds begins with the numbers that `addr`, `offset`, `blocks` and `peer_request`
/// read; what a PIECE carries without a slab block comes behind them. So an envelope of up to 24 bytes fills, in an inbox, one cache line.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Envelope {
    pub kind: u8,
    pub flags: u8,
    /// By which a recording receiver tells the message from others of its sender; 0: the sender does not record (`trace`).
    pub trace: u16,
    /// Matching context.
    pub context: u32,
    /// Sender, rank in the job.
    pub from: u32,
    /// Sender, rank in the communicator: what the receive matches and reports.
    pub source: i32,
    pub tag: i32,
    /// The request that this concerns: the sender's in RTS (and in eager ones with FLAG_SYNC), the addressee's otherwise.
    pub request: u32,
    /// Bytes of the whole message (PIECE: of this piece; PULL: as many as the receiver has room for).
    pub len: u64,
    pub body: [u8; INLINE_BYTES],
}

/// Where the numbers lie in the body.
const PEER_REQUEST_AT: usize = 0;
const BLOCKS_AT: usize = 4;
const ADDR_AT: usize = 8;
const OFFSET_AT: usize = 16;
const NUMBERS_BYTES: usize = 24;

/// The words of an ask, behind the numbers.
pub(crate) const ASK_HEAD_AT: usize = NUMBERS_BYTES;
pub(crate) const ASK_HEAD_BYTES: usize = 24;
const ASK_BYTES: usize = ASK_HEAD_AT + ASK_HEAD_BYTES;

/// Bytes that a PIECE carries without a slab block.
pub const PIECE_BYTES: usize = INLINE_BYTES - NUMBERS_BYTES;

impl Envelope {
    pub const EMPTY: Envelope = Envelope {
        kind: 0,
        flags: 0,
        trace: 0,
        context: 0,
        from: 0,
        source: 0,
        tag: 0,
        request: 0,
        len: 0,
        body: [0; INLINE_BYTES],
    };

    #[inline]
    fn number32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.body[at..at + 4].try_into().expect("four bytes"))
    }

    #[inline]
    fn number64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.body[at..at + 8].try_into().expect("eight bytes"))
    }

    /// PULL, PIECE: the other side's request. FIN, PLACED, LET_GO: the outcome. HELP: the number of the offer. GO: the carriers' number.
    #[inline]
    pub fn peer_request(&self) -> u32 {
        self.number32(PEER_REQUEST_AT)
    }

    pub fn set_peer_request(&mut self, request: u32) {
        self.body[PEER_REQUEST_AT..PEER_REQUEST_AT + 4].copy_from_slice(&request.to_ne_bytes());
    }

    /// RTS, PULL: number of blocks, 0 for one contiguous one. FIN, in virtual time: the receive that has taken an announced message, its number + 1.
    #[inline]
    pub fn blocks(&self) -> u32 {
        self.number32(BLOCKS_AT)
    }

    pub fn set_blocks(&mut self, blocks: u32) {
        self.body[BLOCKS_AT..BLOCKS_AT + 4].copy_from_slice(&blocks.to_ne_bytes());
    }

    /// RTS: where the data (or its block list) lies; SLAB, PIECE, ASK: slab offset (PIECE, ASK: 0 for one in the body); HELP, PULL: where the
    /// data goes (or the list of blocks). FIN: the number that a step answers (`ask`).
    #[inline]
    pub fn addr(&self) -> u64 {
        self.number64(ADDR_AT)
    }

    pub fn set_addr(&mut self, addr: u64) {
        self.body[ADDR_AT..ADDR_AT + 8].copy_from_slice(&addr.to_ne_bytes());
    }

    /// PULL, PIECE: where in the message. ASK: an address in the sender's memory. FIN: when the receive was posted, in virtual time.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.number64(OFFSET_AT)
    }

    pub fn set_offset(&mut self, offset: u64) {
        self.body[OFFSET_AT..OFFSET_AT + 8].copy_from_slice(&offset.to_ne_bytes());
    }

    /// What a PIECE without a slab block carries.
    pub fn piece(&self) -> &[u8] {
        &self.body[NUMBERS_BYTES..]
    }

    pub fn piece_mut(&mut self) -> &mut [u8] {
        &mut self.body[NUMBERS_BYTES..]
    }

    /// The words of an ASK, and behind them what it carries without a slab block.
    pub fn ask(&self) -> &[u8] {
        &self.body[ASK_HEAD_AT..]
    }

    pub fn ask_mut(&mut self) -> &mut [u8] {
        &mut self.body[ASK_HEAD_AT..]
    }

    /// What an ASK carries without a slab block.
    pub fn ask_payload(&self) -> &[u8] {
        let room = &self.body[ASK_BYTES..];
        &room[..(self.len as usize).min(room.len())]
    }

    pub fn ask_payload_mut(&mut self) -> &mut [u8] {
        let len = (self.len as usize).min(INLINE_BYTES - ASK_BYTES);
        &mut self.body[ASK_BYTES..ASK_BYTES + len]
    }

    /// Is it one that a receive matches?
    pub fn is_message(&self) -> bool {
        matches!(self.kind, kind::INLINE | kind::SLAB | kind::RTS)
    }

    /// Does the whole message come with it, and nobody wait for an answer?
    #[inline]
    pub fn is_eager(&self) -> bool {
        matches!(self.kind, kind::INLINE | kind::SLAB) && self.flags & FLAG_SYNC == 0
    }

    /// Bytes of the body in use.
    #[inline]
    pub fn body_len(&self) -> usize {
        let len = self.len as usize;
        match self.kind {
            kind::INLINE => len.min(INLINE_BYTES),
            kind::PIECE if self.addr() == 0 => NUMBERS_BYTES + len.min(PIECE_BYTES),
            kind::ASK if self.addr() == 0 => ASK_BYTES + len.min(INLINE_BYTES - ASK_BYTES),
            kind::ASK => ASK_BYTES,
            _ => NUMBERS_BYTES,
        }
    }

    /// Copy the head and the used part of the body.
    #[inline]
    pub fn copy_to(&self, to: &mut Envelope) {
        to.kind = self.kind;
        to.flags = self.flags;
        to.trace = self.trace;
        to.context = self.context;
        to.from = self.from;
        to.source = self.source;
        to.tag = self.tag;
        to.request = self.request;
        to.len = self.len;
        self.copy_body(&mut to.body);
    }

    /// Copy the used part of the body.
    #[inline]
    pub(super) fn copy_body(&self, to: &mut [u8; INLINE_BYTES]) {
        let len = self.body_len();
        if len <= NUMBERS_BYTES {
            // The common case, and a copy of known length: as words, since the compiler makes one call of two copies of bytes.
            for at in [0, ADDR_AT, OFFSET_AT] {
                to[at..at + 8].copy_from_slice(&self.number64(at).to_ne_bytes());
            }
        } else {
            to[..len].copy_from_slice(&self.body[..len]);
        }
    }
}

const _: () = assert!(size_of::<Envelope>() == 32 + INLINE_BYTES);
