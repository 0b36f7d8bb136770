//! What the carriers say to each other: bodies of frames, written and read with bounds on everything.

use vmpi_shared::ask::{self, Nonsense};
use vmpi_shared::matching::courier;
use vmpi_shared::matching::envelope::{Envelope, FLAG_MAPPED, INLINE_BYTES, PIECE_BYTES, kind};
use vmpi_shared::mem::slab::PART_BYTES;

use vmpi_fabric::fabric::FIRST_KIND;

/// An envelope for a rank, and its payload.
pub const ENVELOPE: u8 = FIRST_KIND;
/// Room for so many more envelopes to a rank, and how many unexpected messages it holds.
pub const CREDIT: u8 = FIRST_KIND + 1;
/// The receive of an announced message is there: send its data.
pub const READY: u8 = FIRST_KIND + 2;
pub const DATA: u8 = FIRST_KIND + 3;
/// The data that was asked for, or was to follow, cannot be read: with an errno it never can; 0: only the sender itself can give it.
pub const REFUSED: u8 = FIRST_KIND + 4;
/// Nothing more comes from this node; and the answer.
pub const BYE: u8 = FIRST_KIND + 5;
pub const BYE_HEARD: u8 = FIRST_KIND + 6;
/// The job ends on this node, and why is told elsewhere.
pub const QUIT: u8 = FIRST_KIND + 7;

/// Nothing more is read of an announced message out of its sender's memory (in a job that survives deaths, where only this completes it, also one
/// that has been REFUSED).
pub const SENT: u8 = FIRST_KIND + 8;
/// A rank of this node has failed; all that it had sent has gone before.
pub const DEAD: u8 = FIRST_KIND + 9;
/// The communicator with this context has been revoked.
pub const REVOKED: u8 = FIRST_KIND + 10;
/// Ranks of this node know that a rank of a third one has failed.
pub const KNOWN: u8 = FIRST_KIND + 11;

/// A message is announced, and its data follows unasked by this number: number, envelope.
pub const FOLLOWED: u8 = FIRST_KIND + 12;
/// So many bytes of what had come unasked have been taken.
pub const TAKEN: u8 = FIRST_KIND + 13;

/// To, kind, flags, context, from, source, tag, request, len, trace.
const HEAD_BYTES: usize = 4 + 2 + 4 * 5 + 8 + 2;

/// A body that makes no sense.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    #[error("a frame of kind {0}, which does not exist")]
    Kind(u8),
    #[error("a frame of kind {kind} with {bytes} bytes")]
    Length { kind: u8, bytes: usize },
    #[error("an envelope of kind {0}, which does not travel")]
    Envelope(u8),
    #[error("a message for rank {0}, which is not here")]
    NotHere(u32),
    #[error("a message from rank {0}, which is not there")]
    NotThere(u32),
    #[error("{0}")]
    Ask(#[from] Nonsense),
    #[error("data for a transfer that does not exist ({0})")]
    Transfer(u32),
}

/// Head and body of an envelope for `to`, without its payload.
pub fn encode(to: u32, envelope: &Envelope) -> ([u8; HEAD_BYTES + INLINE_BYTES], usize) {
    let mut bytes = [0; HEAD_BYTES + INLINE_BYTES];
    let mut at = 0;
    let mut put = |word: &[u8]| {
        bytes[at..at + word.len()].copy_from_slice(word);
        at += word.len();
    };
    put(&to.to_le_bytes());
    // Where memory lies open says something on its own node only.
    put(&[envelope.kind, envelope.flags & !FLAG_MAPPED]);
    put(&envelope.context.to_le_bytes());
    put(&envelope.from.to_le_bytes());
    put(&envelope.source.to_le_bytes());
    put(&envelope.tag.to_le_bytes());
    put(&envelope.request.to_le_bytes());
    put(&envelope.len.to_le_bytes());
    put(&envelope.trace.to_le_bytes());
    put(&envelope.body[..envelope.body_len()]);
    (bytes, at)
}

/// To whom, the envelope, and its payload behind it.
///
/// # Errors
/// What makes no sense.
pub fn decode(bytes: &[u8]) -> Result<(u32, Envelope, &[u8]), BodyError> {
    let length = || BodyError::Length { kind: ENVELOPE, bytes: bytes.len() };
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(length)?;
    let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let mut envelope = Envelope::EMPTY;
    (envelope.kind, envelope.flags) = (head[4], head[5]);
    envelope.context = word(6);
    envelope.from = word(10);
    (envelope.source, envelope.tag) = (word(14) as i32, word(18) as i32);
    envelope.request = word(22);
    envelope.len = u64::from(word(26)) | u64::from(word(30)) << 32;
    envelope.trace = u16::from_le_bytes([head[34], head[35]]);
    if !courier::travels(envelope.kind) {
        return Err(BodyError::Envelope(envelope.kind));
    }
    if envelope.kind == kind::INLINE && envelope.len > INLINE_BYTES as u64 {
        return Err(length());
    }
    // The length of a piece's body depends on the number that says whether it has a block.
    let numbers = rest.len().min(INLINE_BYTES);
    envelope.body[..numbers].copy_from_slice(&rest[..numbers]);
    let used = envelope.body_len();
    let payload = rest.get(used..).ok_or_else(length)?;
    envelope.body[used..].fill(0);
    if envelope.kind == kind::PIECE && envelope.addr() == 0 && envelope.len > PIECE_BYTES as u64 {
        return Err(length());
    }
    if envelope.kind == kind::ASK && envelope.addr() == 0 && envelope.len > ask::INLINE_BYTES as u64 {
        return Err(length());
    }
    let expected = if has_payload(&envelope) { envelope.len } else { 0 };
    if envelope.kind == kind::SLAB && expected == 0 {
        return Err(length());
    }
    if payload.len() as u64 != expected || expected > PART_BYTES {
        return Err(length());
    }
    Ok((word(0), envelope, payload))
}

/// Does its payload lie in a slab?
pub fn has_payload(envelope: &Envelope) -> bool {
    match envelope.kind {
        kind::SLAB => true,
        kind::PIECE | kind::ASK => envelope.addr() != 0,
        _ => false,
    }
}

/// Little-endian words of a fixed frame.
///
/// # Errors
/// Another length.
pub fn words<const N: usize>(kind: u8, bytes: &[u8]) -> Result<[u32; N], BodyError> {
    if bytes.len() != 4 * N {
        return Err(BodyError::Length { kind, bytes: bytes.len() });
    }
    Ok(std::array::from_fn(|at| u32::from_le_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four bytes"))))
}

pub fn from_words<const N: usize>(words: [u32; N]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_come_as_they_went() {
        for (kind, len, payload) in [
            (kind::INLINE, 5, 0),
            (kind::INLINE, 128, 0),
            (kind::SLAB, 5000, 5000),
            (kind::RTS, 1 << 33, 0),
            (kind::FIN, 0, 0),
            (kind::PIECE, 100, 0),
            (kind::PIECE, 60000, 60000),
            (kind::ASK, 0, 0),
            (kind::ASK, 80, 0),
            (kind::ASK, 65536, 65536),
        ] {
            let mut envelope = Envelope::EMPTY;
            (envelope.kind, envelope.flags, envelope.len) = (kind, 1 | FLAG_MAPPED, len);
            (envelope.context, envelope.from, envelope.source) = (7, 3, -1);
            (envelope.tag, envelope.request, envelope.trace) = (i32::MIN, 99, 65534);
            envelope.body = std::array::from_fn(|at| at as u8 + 1);
            if matches!(kind, kind::PIECE | kind::ASK) && payload == 0 {
                envelope.set_addr(0);
            }
            let (bytes, used) = encode(12, &envelope);
            let whole = [&bytes[..used], &vec![5; payload]].concat();
            let (to, decoded, rest) = decode(&whole).unwrap();
            assert_eq!((to, rest.len()), (12, payload));
            assert_eq!((decoded.kind, decoded.flags, decoded.len), (kind, 1, len));
            assert_eq!((decoded.context, decoded.from, decoded.source), (7, 3, -1));
            assert_eq!((decoded.tag, decoded.request, decoded.trace), (i32::MIN, 99, 65534));
            let used = envelope.body_len();
            assert_eq!(decoded.body[..used], envelope.body[..used]);
            assert!(decode(&whole[..whole.len() - 1]).is_err() && decode(&[&whole[..], &[0]].concat()).is_err());
        }
    }

    /// Any bytes: an envelope or an error.
    #[test]
    fn noise_is_an_envelope_or_an_error() {
        let mut chance = fastrand::Rng::with_seed(7);
        let mut good = 0;
        for _ in 0..200_000 {
            let mut bytes: Vec<u8> = (0..chance.u32(..200)).map(|_| chance.u8(..)).collect();
            if bytes.len() > 32 {
                bytes[4] %= 12;
                let right = bytes.len().saturating_sub(HEAD_BYTES) as u8;
                let len = if chance.bool() { right } else { chance.u8(..) };
                bytes.resize(bytes.len().max(HEAD_BYTES), 0);
                bytes[26..34].copy_from_slice(&[len, 0, 0, 0, 0, 0, 0, 0]);
            }
            good += usize::from(decode(&bytes).is_ok());
        }
        assert!(good > 100, "{good}");
        assert_eq!(words::<2>(CREDIT, &[0; 7]), Err(BodyError::Length { kind: CREDIT, bytes: 7 }));
    }
}
