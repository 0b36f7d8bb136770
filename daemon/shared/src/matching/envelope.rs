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
}

/// The sender waits until the message is matched (synchronous mode, or a receiver with many unexpected messages).
pub const FLAG_SYNC: u8 = 1;

/// A message's head. Fixed-width integers only; all-zero is no message.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Envelope {
    pub kind: u8,
    pub flags: u8,
    pub reserved: u16,
    /// Matching context.
    pub context: u32,
    /// Sender, rank in the job.
    pub from: u32,
    /// Sender, rank in the communicator: what the receive matches and reports.
    pub source: i32,
    pub tag: i32,
    /// The request that this concerns: the sender's in RTS (and in eager ones with FLAG_SYNC), the addressee's otherwise.
    pub request: u32,
    /// PULL, PIECE: the other side's request.
    pub peer_request: u32,
    /// RTS: number of blocks, 0 for one contiguous one.
    pub blocks: u32,
    /// Bytes of the whole message (PIECE: of this piece; PULL: as many as the receiver has room for).
    pub len: u64,
    /// RTS: where the data (or its block list) lies; SLAB, PIECE: slab offset (PIECE: 0 for one in `inline`).
    pub addr: u64,
    /// PULL, PIECE: where in the message.
    pub offset: u64,
    pub inline: [u8; INLINE_BYTES],
}

impl Envelope {
    pub const EMPTY: Envelope = Envelope {
        kind: 0,
        flags: 0,
        reserved: 0,
        context: 0,
        from: 0,
        source: 0,
        tag: 0,
        request: 0,
        peer_request: 0,
        blocks: 0,
        len: 0,
        addr: 0,
        offset: 0,
        inline: [0; INLINE_BYTES],
    };

    /// Is it one that a receive matches?
    pub fn is_message(&self) -> bool {
        matches!(self.kind, kind::INLINE | kind::SLAB | kind::RTS)
    }

    /// Bytes of `inline` in use.
    #[inline]
    pub fn inline_len(&self) -> usize {
        let inside = self.kind == kind::INLINE || (self.kind == kind::PIECE && self.addr == 0);
        if inside { (self.len as usize).min(INLINE_BYTES) } else { 0 }
    }

    /// Copy the head and the used part of the payload.
    #[inline]
    pub fn copy_to(&self, to: &mut Envelope) {
        let len = self.inline_len();
        to.kind = self.kind;
        to.flags = self.flags;
        to.context = self.context;
        to.from = self.from;
        to.source = self.source;
        to.tag = self.tag;
        to.request = self.request;
        to.peer_request = self.peer_request;
        to.blocks = self.blocks;
        to.len = self.len;
        to.addr = self.addr;
        to.offset = self.offset;
        to.inline[..len].copy_from_slice(&self.inline[..len]);
    }
}

const _: () = assert!(size_of::<Envelope>() == 56 + INLINE_BYTES);
