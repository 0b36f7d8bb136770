//! What a rank asks the carrier of another node to do in a window there (one-sided communication over nodes).
//!
//! An ask travels as an envelope of kind ASK: through the inbox of the rank whose memory it concerns, which is the outbox to its node, and then to the
//! carrier there, which does it without that rank. The window's name is the rank that has made it (`source`) and a number of that one's (`context`).
//! The body has the fixed words below; then, inline or in a slab block of the origin's, the list of the target's blocks and the data.

use crate::matching::envelope::{ASK_HEAD_AT, Envelope, kind};
use num_enum::TryFromPrimitive;
use vmpi_cma::Block;

/// Bytes of blocks and data that fit into the envelope.
pub const INLINE_BYTES: usize = crate::matching::envelope::INLINE_BYTES - ASK_HEAD_AT - HEAD_BYTES;
/// Origin, target, what's flag, operation, element, zeros, bytes, blocks, zeros.
const HEAD_BYTES: usize = crate::matching::envelope::ASK_HEAD_BYTES;
/// Bytes of one block of a list.
pub const BLOCK_BYTES: usize = size_of::<Block>();

/// What is asked (the envelope's tag).
#[derive(Copy, Clone, PartialEq, Eq, Debug, TryFromPrimitive)]
#[repr(u8)]
pub enum What {
    /// Of the own node's carrier: here is a window's segment. Answered.
    Open,
    /// Of the own node's carrier: the window is freed.
    Close,
    /// Of the own node's carrier: can it copy from and to this rank? Answered.
    Attend,
    /// The lock on the target's memory; `flag`: alone. Answered when it is had.
    Lock,
    /// Give it back. Answered.
    Unlock,
    /// The asking member has opened its memory to the target (MPI_Win_post).
    Post,
    /// The asking member has completed its access to the target (MPI_Win_complete).
    Complete,
    /// The lock for moments. Answered when it is had.
    Take,
    /// Give it back.
    Give,
    /// Write the data to the blocks.
    Write,
    /// Read the blocks into the origin's memory at `offset`. Answered by the data.
    Read,
    /// Fetch `bytes` from the origin's memory at `offset` to the blocks. Answered when they are there.
    Bring,
    /// Nothing but an answer, when everything before has been done.
    Flush,
    /// `blocks = data op blocks`, as one step.
    Combine,
    /// As `Combine`; what was there before goes to the origin's memory at `offset`.
    Fetch,
    /// The data is a new and an old value: if the block holds the old one, write the new one; what was there goes to `offset`.
    Swap,
    /// Add `offset` to the counter in the window's segment ([`crate::window::Window::counter`]). Answered by what it was before.
    Step,
}

impl What {
    /// For the asking rank's own carrier?
    pub fn is_local(self) -> bool {
        matches!(self, What::Open | What::Close | What::Attend)
    }

    /// Is the answer data, for the origin's memory?
    pub fn fetches(self) -> bool {
        matches!(self, What::Read | What::Fetch | What::Swap)
    }

    /// Does the origin wait for a word that it has been done?
    pub fn is_answered(self) -> bool {
        use What::*;
        matches!(self, Open | Attend | Lock | Unlock | Take | Bring | Flush | Step)
    }
}

/// The fixed words of an ask.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    pub what: What,
    /// The window: the rank that has made it, and its number there.
    pub window: (i32, u32),
    /// Who asks, and whose memory: ranks in the window.
    pub origin: u32,
    pub target: u32,
    pub flag: bool,
    /// `arith::Builtin` and `arith::Element` as numbers.
    pub op: u8,
    pub element: u8,
    /// Packed bytes that it concerns.
    pub bytes: u64,
    /// Blocks listed in front of the data.
    pub blocks: u32,
    /// An address in the origin's memory; of a step the number.
    pub offset: u64,
}

/// An ask that makes no sense.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("an ask that makes no sense")]
pub struct Nonsense;

impl Ask {
    /// With nothing said of memory.
    pub fn new(what: What, window: (i32, u32), origin: u32, target: u32) -> Ask {
        Ask { what, window, origin, target, flag: false, op: 0, element: 0, bytes: 0, blocks: 0, offset: 0 }
    }

    /// The envelope of an ask by rank `from`, without blocks and data, of which there are `payload` bytes.
    pub fn envelope(&self, from: u32, request: u32, payload: usize) -> Envelope {
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::ASK;
        (envelope.source, envelope.context) = self.window;
        (envelope.from, envelope.request) = (from, request);
        envelope.tag = self.what as i32;
        envelope.len = payload as u64;
        envelope.set_offset(self.offset);
        let head = envelope.ask_mut();
        head[0..4].copy_from_slice(&self.origin.to_le_bytes());
        head[4..8].copy_from_slice(&self.target.to_le_bytes());
        head[8..12].copy_from_slice(&[u8::from(self.flag), self.op, self.element, 0]);
        head[12..16].copy_from_slice(&self.blocks.to_le_bytes());
        head[16..24].copy_from_slice(&self.bytes.to_le_bytes());
        envelope
    }

    /// The ask in an envelope of kind ASK.
    ///
    /// # Errors
    /// It is none.
    pub fn of(envelope: &Envelope) -> Result<Ask, Nonsense> {
        let head = envelope.ask();
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let what = u8::try_from(envelope.tag).ok().and_then(|number| What::try_from(number).ok());
        let what = what.filter(|_| envelope.kind == kind::ASK && head[8] < 2);
        Ok(Ask {
            what: what.ok_or(Nonsense)?,
            window: (envelope.source, envelope.context),
            origin: word(0),
            target: word(4),
            flag: head[8] == 1,
            op: head[9],
            element: head[10],
            blocks: word(12),
            bytes: u64::from(word(16)) | u64::from(word(20)) << 32,
            offset: envelope.offset(),
        })
    }
}

/// Blocks and data, as they travel behind each other.
pub fn write_payload(blocks: &[Block], data: &[&[u8]], into: &mut [u8]) {
    let mut rest = into;
    let mut put = |bytes: &[u8]| {
        let (here, behind) = std::mem::take(&mut rest).split_at_mut(bytes.len());
        here.copy_from_slice(bytes);
        rest = behind;
    };
    for block in blocks {
        put(&block.addr.to_le_bytes());
        put(&block.len.to_le_bytes());
    }
    data.iter().for_each(|data| put(data));
}

/// The blocks of an ask, and the data behind them.
///
/// # Errors
/// They are not what the fixed words say.
pub fn read_payload<'a>(ask: &Ask, payload: &'a [u8]) -> Result<(Vec<Block>, &'a [u8]), Nonsense> {
    let list = (ask.blocks as usize).checked_mul(BLOCK_BYTES).ok_or(Nonsense)?;
    let (list, data) = payload.split_at_checked(list).ok_or(Nonsense)?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let blocks: Vec<Block> =
        list.chunks_exact(BLOCK_BYTES).map(|block| Block { addr: word(&block[..8]), len: word(&block[8..]) }).collect();
    let total = blocks.iter().try_fold(0u64, |sum, block| sum.checked_add(block.len)).ok_or(Nonsense)?;
    let bytes = data.len() as u64;
    let fits = match ask.what {
        What::Open => true,
        What::Write | What::Combine => total == ask.bytes && bytes == total,
        What::Read | What::Bring => total == ask.bytes && bytes == 0,
        What::Fetch => total == ask.bytes && (bytes == total || bytes == 0),
        What::Swap => blocks.len() == 1 && total == ask.bytes && Some(bytes) == total.checked_mul(2),
        _ => blocks.is_empty() && bytes == 0,
    };
    if fits { Ok((blocks, data)) } else { Err(Nonsense) }
}

/// What `What::Open` says about the segment, in place of data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Opening {
    /// The segment's descriptor in the asking process.
    pub fd: i32,
    pub members: u32,
    pub dynamic: bool,
    pub data_bytes: u64,
}

pub const OPENING_BYTES: usize = 20;

impl Opening {
    pub fn encode(&self) -> [u8; OPENING_BYTES] {
        let mut bytes = [0; OPENING_BYTES];
        bytes[0..4].copy_from_slice(&self.fd.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.members.to_le_bytes());
        bytes[8] = u8::from(self.dynamic);
        bytes[12..20].copy_from_slice(&self.data_bytes.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Option<Opening> {
        let bytes: &[u8; OPENING_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        Some(Opening {
            fd: word(0) as i32,
            members: word(4),
            dynamic: bytes[8] != 0,
            data_bytes: u64::from(word(12)) | u64::from(word(16)) << 32,
        })
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asks() -> impl Strategy<Value = Ask> {
        let words = (any::<u32>(), any::<u32>(), any::<bool>(), any::<u8>(), any::<u8>());
        (0..=What::Step as u8, any::<(i32, u32)>(), words, any::<u64>(), any::<u32>(), any::<u64>()).prop_map(
            |(what, window, (origin, target, flag, op, element), bytes, blocks, offset)| Ask {
                what: What::try_from(what).unwrap(),
                window,
                origin,
                target,
                flag,
                op,
                element,
                bytes,
                blocks,
                offset,
            },
        )
    }

    proptest! {
        #[test]
        fn asks_come_as_they_went(ask in asks(), from in any::<u32>(), request in any::<u32>(), payload in 0usize..100_000) {
            let envelope = ask.envelope(from, request, payload);
            prop_assert_eq!((envelope.from, envelope.request, envelope.len), (from, request, payload as u64));
            prop_assert_eq!(Ask::of(&envelope), Ok(ask));
        }

        #[test]
        fn payloads_come_as_they_went(lens in proptest::collection::vec(0u64..50, 0..20)) {
            let blocks: Vec<Block> = lens.iter().map(|len| Block { addr: 7 * len + 1, len: *len }).collect();
            let total: u64 = lens.iter().sum();
            let data: Vec<u8> = (0..total).map(|at| at as u8).collect();
            let mut payload = vec![0; blocks.len() * BLOCK_BYTES + data.len()];
            write_payload(&blocks, &[&data], &mut payload);
            let mut ask = Ask { bytes: total, blocks: blocks.len() as u32, ..Ask::new(What::Write, (0, 0), 0, 0) };
            prop_assert_eq!(read_payload(&ask, &payload), Ok((blocks, &data[..])));
            ask.bytes += 1;
            prop_assert_eq!(read_payload(&ask, &payload), Err(Nonsense));
        }

        /// Any bytes: blocks and data that fit what was said, or an error.
        #[test]
        fn noise_is_an_ask_or_an_error(ask in asks(), blocks in 0u32..6, bytes in 0u64..80, payload in proptest::collection::vec(any::<u8>(), 0..120)) {
            let ask = Ask { blocks, bytes, ..ask };
            if let Ok((blocks, data)) = read_payload(&ask, &payload) {
                prop_assert_eq!(blocks.len() * BLOCK_BYTES + data.len(), payload.len());
                prop_assert!(blocks.iter().try_fold(0u64, |sum, block| sum.checked_add(block.len)).is_some());
            }
            let mut envelope = Envelope::EMPTY;
            (envelope.kind, envelope.tag) = (kind::ASK, ask.offset as i32);
            envelope.body[..payload.len()].copy_from_slice(&payload);
            let _ = Ask::of(&envelope);
        }
    }

    #[test]
    fn tags_that_are_no_ask_are_refused() {
        let mut envelope = Ask::new(What::Swap, (0, 0), 0, 0).envelope(0, 0, 0);
        for tag in [-1, 255, 256, i32::MIN, i32::MAX] {
            envelope.tag = tag;
            assert_eq!(Ask::of(&envelope), Err(Nonsense), "{tag}");
        }
    }

    #[test]
    fn openings_come_as_they_went() {
        let opening = Opening { fd: 9, members: 3, dynamic: true, data_bytes: 1 << 40 };
        assert_eq!(Opening::decode(&opening.encode()), Some(opening));
    }
}
