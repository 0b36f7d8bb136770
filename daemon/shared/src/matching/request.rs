//! Request slots: one message under way, as its rank's queues know it. In shared memory, because deliverers complete them.

use super::envelope::{Envelope, INLINE_BYTES};

/// Where a request stands. Written by the owner of the queues only.
pub mod state {
    pub const FREE: u32 = 0;
    /// A receive in the posted queue.
    pub const POSTED: u32 = 1;
    /// A receive that matched an eager message: the payload waits in the slot or in a slab block for the rank to copy it out.
    pub const ARRIVED: u32 = 2;
    /// A receive that matched a ready-to-send which only the rank itself can read; in its service list.
    pub const TO_PULL: u32 = 3;
    /// A receive whose pieces are under way (no single copy between the two processes).
    pub const PULLING: u32 = 4;
    /// A send that waits for FIN.
    pub const SENT: u32 = 5;
    /// A send of which the receiver wants pieces, or that only waits for its rank's word (`FLAG_CARRIED`); in the service list.
    pub const TO_PUSH: u32 = 6;
    /// Over; the data of a receive is in place.
    pub const COMPLETE: u32 = 7;
    /// A receive that was cancelled before it matched.
    pub const CANCELLED: u32 = 8;
    /// Over and finished with, but not free before the other side has answered.
    pub const KEPT: u32 = 9;
}

/// The receive may come from anybody, or no message has been named.
pub const NOBODY: u32 = u32::MAX;

/// Its completion counts for what the rank waits for.
pub const FLAG_AWAITED: u32 = 1;
/// Its completion must wake the rank whatever it waits for (the next step of a collective).
pub const FLAG_WAKE: u32 = 2;

/// The data was copied from the sender's memory.
pub const FLAG_COPIED: u32 = 4;
/// A wildcard receive that may wait in vain: a process has failed, and the program does not know.
pub const FLAG_IN_DOUBT: u32 = 8;
/// It has been ended while the other side may still answer: the slot is kept until then (`state::KEPT`).
pub const FLAG_KEPT: u32 = 16;
/// A receive whose buffer lies in its rank's memory file (`heap`).
pub const FLAG_MAPPED: u32 = 32;
/// A send whose bytes the carriers move.
pub const FLAG_CARRIED: u32 = 64;
/// Only its own process can reach the data (`elements`).
pub const FLAG_ELEMENTS: u32 = 128;
/// A send that waits only because its receiver holds so many messages, or memory for payloads ends.
pub const FLAG_CROWDED: u32 = 256;

/// A receive whose match must wake its rank, over or not: that is what it waits for.
pub const FLAG_MATCH: u32 = 512;

/// A posted receive whose message has been chosen, and is about to be matched.
pub const FLAG_CLAIMED: u32 = 1024;

/// Outcome of the copy, beside truncation (which shows as `len > capacity`).
pub mod outcome {
    pub const GOOD: u32 = 0;
    /// The copy failed with errno `outcome`.
    pub const ERRNO: u32 = 1 << 16;
    /// A process that it needs has failed.
    pub const PEER_FAILED: u32 = 2 << 16;
    /// Its communicator has been revoked.
    pub const REVOKED: u32 = 3 << 16;
}

/// A request slot. Plain memory: only the owner of the queues touches it.
#[repr(C, align(64))]
#[derive(Copy, Clone)]
pub struct Slot {
    pub state: u32,
    pub flags: u32,
    pub context: u32,
    /// Source or destination as the communicator numbers it; -1 for any.
    pub source: i32,
    /// Tag, or -2 for any.
    pub tag: i32,
    /// Links in the posted queue or the free list, and in the service list; index + 1.
    pub next: u32,
    pub prev: u32,
    pub next_service: u32,
    /// Order of posting.
    pub order: u64,
    /// The rank's buffer: address, or address of a block list, in the rank's process.
    pub addr: u64,
    pub capacity: u64,
    pub blocks: u32,
    pub outcome: u32,
    /// Rank in the job of the other side: of a send's receiver, of a receive's source (`NOBODY`: any, until it has matched).
    pub from: u32,
    pub matched_source: i32,
    pub matched_tag: i32,
    pub peer_request: u32,
    pub len: u64,
    /// ARRIVED: slab offset or 0; TO_PULL, TO_PUSH: address of the data (or of its block list) in the other process, or offset. COMPLETE, of an ask: the
    /// number that answers it.
    pub remote: u64,
    pub remote_blocks: u32,
    /// TO_PULL: the flags of the announcement.
    pub remote_flags: u16,
    /// `Envelope::trace` of the message.
    pub trace: u16,
    /// Bytes received so far in pieces.
    pub progress: u64,
    /// In virtual time: when a receive was posted; the number of a message that its receiver answers.
    pub posted_at: u64,
    pub inline: [u8; INLINE_BYTES],
}

const _: () = assert!(size_of::<Slot>() == 256);

impl Slot {
    /// This receive takes the message of `envelope`.
    #[inline]
    pub(super) fn describe(&mut self, envelope: &Envelope) {
        self.from = envelope.from;
        self.matched_source = envelope.source;
        self.matched_tag = envelope.tag;
        self.len = envelope.len;
        self.peer_request = envelope.request;
        self.trace = envelope.trace;
    }
}

/// Context and tag of a request that is no message: something is asked of a carrier, or done in another rank's memory in virtual time.
pub const ASKED: (u32, i32) = (0, -1);

/// Any source, any tag (the standard ABI's numbers).
pub const ANY_SOURCE: i32 = -1;
pub const ANY_TAG: i32 = -2;

/// Does a receive for (`source`, `tag`) take a message from (`from_source`, `with_tag`)?
#[inline]
pub fn accepts(source: i32, tag: i32, from_source: i32, with_tag: i32) -> bool {
    (source == ANY_SOURCE || source == from_source) && (tag == ANY_TAG || tag == with_tag)
}
