//! What the carriers say to each other: bodies of frames, written and read with bounds on everything.
//!
//! A node of the job has its key, and may be wrong or lie all the same. So `read` is a function of the bytes alone that ends in an error or in numbers which
//! hold what stands here under "bytes"; what a number names is looked up by the carrier, under "job", before it counts. What is refused ends the job, with
//! the sentence of [`BodyError`] and the name of the node that has sent it.
//!
//! | frame           | field             | bytes                               | job                                                                  |
//! |-----------------|-------------------|-------------------------------------|----------------------------------------------------------------------|
//! | any             | length            | at most `frame::MAX_BODY_BYTES`     | of a node that has been lost nothing is read                         |
//! | ENVELOPE        | kind              | one that `travels`                  |                                                                      |
//! |                 | flags             | `TRAVELLING_FLAGS`                  | (memory of another node never lies open here)                        |
//! |                 | to                |                                     | a rank of this node; it has had room for so many: `CREDITS`          |
//! |                 | from              |                                     | a rank of the sending node; FIN: not looked at                       |
//! |                 | request           | below `MOST_REQUESTS`               | FIN, PULL: one of this job's `JobConfig::slots`                      |
//! |                 | len, body         | INLINE, PIECE, ASK: what fits; the  | kept without a block: `CarrierLoop::most_kept`                              |
//! |                 |                   | payload is there, `PART_BYTES`      |                                                                      |
//! |                 | offset of a PIECE | it ends below 2^64                  | inside the receive (`RankMover::piece`)                              |
//! | ENVELOPE: FIN,  | (as above)        |                                     | two for each request that a rank can have                            |
//! | PULL            |                   |                                     |                                                                      |
//! | ENVELOPE: ASK   | what, window      | `Ask::of`, and one for others       | one that is open here                                                |
//! |                 | origin, target    |                                     | members of it, and these ranks (`Open::fits`)                        |
//! |                 | blocks, bytes     | `ask::read_payload`                 | the target's memory (`Open::holds`); one lock waited for at a time   |
//! | FOLLOWED        | transfer          | has `UNASKED`                       | not announced yet; so many under way: `kept::Ahead`                  |
//! |                 | envelope          | RTS, as above                       | as ENVELOPE; 1 to `kept::MOST_BYTES`, no less than has come          |
//! | DATA            | transfer          |                                     | asked for of this node; UNASKED: as FOLLOWED                         |
//! |                 | bytes             |                                     | no more than is missing; UNASKED: `kept::AHEAD_BYTES` in all         |
//! | READY           | sender, request   | below `MOST_REQUESTS`               | a rank here, whose message is for a rank of that node; once          |
//! |                 | transfer          | not UNASKED                         | that node's own number                                               |
//! |                 | len               |                                     | no more than was announced                                           |
//! | REFUSED         | transfer          |                                     | as DATA                                                              |
//! |                 | errno             | at most `MOST_ERRNO`                |                                                                      |
//! | TAKEN           | bytes             | 1 to 2^32                           | no more than has been sent                                           |
//! | CREDIT          | rank              |                                     | of that node                                                         |
//! |                 | count             | 1 to `CREDITS`                      | with what is there no more than `CREDITS`                            |
//! |                 | unexpected        |                                     | a hint                                                               |
//! | SENT            | transfer          | not UNASKED                         | asked for of this node, and once; in a job that survives deaths      |
//! | DEAD            | rank              |                                     | of that node, and once; in a job that survives deaths                |
//! | KNOWN           | rank              |                                     | of a third node, and once; in a job that survives deaths             |
//! | REVOKED         | context           | below 2^32 - 1                      | `REVOCATIONS` of them; in a job that survives deaths                 |
//! | BYE, QUIT       |                   | nothing                             |                                                                      |
//! | BYE_HEARD       |                   | nothing                             | when this node has said BYE                                          |

use vmpi_shared::ask::{self, Nonsense};
use vmpi_shared::endpoint::carrier;
use vmpi_shared::matching::envelope::FLAG_LAST_OF_WINDOW;
use vmpi_shared::matching::envelope::{
    Envelope, FLAG_ELEMENTS, FLAG_MAPPED, FLAG_SYNC, INLINE_BYTES, PIECE_BYTES, kind,
};
use vmpi_shared::matching::request::NOBODY;
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

/// Envelopes that may be on their way from one node to one rank.
pub const CREDITS: u32 = 64;
/// Transfers with this bit are numbered by the sender's carrier.
pub const UNASKED: u32 = 1 << 31;
/// Requests are below this: those with the bit are the carrier's own names of messages that it keeps.
pub const MOST_REQUESTS: u32 = 1 << 31;
/// The kernel's largest error number.
pub const MOST_ERRNO: u32 = 4095;
/// What an envelope of another node may say of itself.
const TRAVELLING_FLAGS: u8 = FLAG_SYNC | FLAG_ELEMENTS | FLAG_LAST_OF_WINDOW;

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
    #[error("a frame of kind {kind} whose {what} is {number}, which cannot be")]
    Number { kind: u8, what: &'static str, number: u64 },
    #[error("more messages for rank {0} than it had room for")]
    Credits(u32),
    #[error("more answers for rank {0} than it has asked for")]
    Answers(u32),
    #[error("more data than it may send before it is asked")]
    Ahead,
    #[error("questions without an end, and does not take the answers")]
    Unread,
    #[error("a frame of kind {0}, which has no place in this job")]
    Misplaced(u8),
}

/// A frame whose numbers are within the bounds that do not depend on the job.
#[derive(Clone)]
pub enum Frame<'a> {
    Envelope { to: u32, envelope: Envelope, payload: &'a [u8] },
    Data { transfer: u32, bytes: &'a [u8] },
    Said(Said),
}

/// What is said, other than envelopes and data.
#[derive(Clone)]
pub enum Said {
    Credit { rank: u32, count: u32, unexpected: u32 },
    Ready { sender: u32, request: u32, transfer: u32, len: u64 },
    Refused { transfer: u32, errno: i32 },
    Followed { transfer: u32, to: u32, envelope: Envelope },
    Taken { bytes: u32 },
    Bye,
    ByeHeard,
    Quit,
    Sent { transfer: u32 },
    Dead { rank: u32 },
    Known { rank: u32 },
    Revoked { context: u32 },
}

/// What a frame says.
///
/// # Errors
/// What makes no sense.
pub fn read(kind: u8, body: &[u8]) -> Result<Frame<'_>, BodyError> {
    let within = |what: &'static str, number: u32, from: u32, to: u32| match number {
        number if (from..=to).contains(&number) => Ok(number),
        number => Err(BodyError::Number { kind, what, number: number.into() }),
    };
    let length = || BodyError::Length { kind, bytes: body.len() };
    Ok(Frame::Said(match kind {
        ENVELOPE => {
            let (to, envelope, payload) = decode(body)?;
            return Ok(Frame::Envelope { to, envelope, payload });
        }
        DATA => {
            let (transfer, bytes) = body.split_first_chunk::<4>().ok_or_else(length)?;
            return Ok(Frame::Data { transfer: u32::from_le_bytes(*transfer), bytes });
        }
        CREDIT => {
            let [rank, count, unexpected] = words(kind, body)?;
            Said::Credit { rank, count: within("count", count, 1, CREDITS)?, unexpected }
        }
        READY => {
            let [sender, request, transfer, low, high] = words(kind, body)?;
            Said::Ready {
                sender,
                request: within("request", request, 0, MOST_REQUESTS - 1)?,
                transfer: within("transfer", transfer, 0, UNASKED - 1)?,
                len: u64::from(low) | u64::from(high) << 32,
            }
        }
        REFUSED => {
            let [transfer, errno] = words(kind, body)?;
            Said::Refused { transfer, errno: within("errno", errno, 0, MOST_ERRNO)? as i32 }
        }
        FOLLOWED => {
            let (transfer, rest) = body.split_first_chunk::<4>().ok_or_else(length)?;
            let transfer = within("transfer", u32::from_le_bytes(*transfer), UNASKED, u32::MAX)?;
            let (to, envelope, _) = decode(rest)?;
            match envelope.kind {
                kind::RTS => Said::Followed { transfer, to, envelope },
                other => return Err(BodyError::Envelope(other)),
            }
        }
        TAKEN => {
            let [bytes] = words(kind, body)?;
            Said::Taken { bytes: within("number of bytes", bytes, 1, u32::MAX)? }
        }
        SENT => {
            let [transfer] = words(kind, body)?;
            Said::Sent { transfer: within("transfer", transfer, 0, UNASKED - 1)? }
        }
        DEAD => {
            let [rank] = words(kind, body)?;
            Said::Dead { rank }
        }
        KNOWN => {
            let [rank] = words(kind, body)?;
            Said::Known { rank }
        }
        REVOKED => {
            let [context] = words(kind, body)?;
            Said::Revoked { context: within("context", context, 0, u32::MAX - 1)? }
        }
        BYE | BYE_HEARD | QUIT if !body.is_empty() => return Err(length()),
        BYE => Said::Bye,
        BYE_HEARD => Said::ByeHeard,
        QUIT => Said::Quit,
        other => return Err(BodyError::Kind(other)),
    }))
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
    if !carrier::travels(envelope.kind) {
        return Err(BodyError::Envelope(envelope.kind));
    }
    let number = |what, number: u64| BodyError::Number { kind: ENVELOPE, what, number };
    if envelope.flags & !TRAVELLING_FLAGS != 0 {
        return Err(number("flags", envelope.flags.into()));
    }
    // An ask that nobody waits for has none.
    let asks_alone = envelope.kind == kind::ASK && envelope.request == NOBODY;
    if envelope.request >= MOST_REQUESTS && !asks_alone {
        return Err(number("request", envelope.request.into()));
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
    if envelope.kind == kind::PIECE && envelope.offset().checked_add(envelope.len).is_none() {
        return Err(number("offset", envelope.offset()));
    }
    if envelope.kind == kind::ASK && envelope.addr() == 0 && envelope.len > ask::INLINE_BYTES as u64 {
        return Err(length());
    }
    let expected = if has_payload(&envelope) { envelope.len } else { 0 };
    // The block that it names here is not this node's.
    if has_payload(&envelope) && expected == 0 {
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
                bytes[5] &= TRAVELLING_FLAGS;
                bytes[25] &= 0x7f;
                let right = bytes.len().saturating_sub(HEAD_BYTES) as u8;
                let len = if chance.bool() { right } else { chance.u8(..) };
                bytes.resize(bytes.len().max(HEAD_BYTES), 0);
                bytes[26..34].copy_from_slice(&[len, 0, 0, 0, 0, 0, 0, 0]);
            }
            if let Ok((to, envelope, payload)) = decode(&bytes) {
                let (again, used) = encode(to, &envelope);
                assert_eq!([&again[..used], payload].concat(), bytes, "it is written as it was read");
                good += 1;
            }
        }
        assert!(good > 100, "{good}");
        assert_eq!(words::<2>(CREDIT, &[0; 7]), Err(BodyError::Length { kind: CREDIT, bytes: 7 }));
    }
}
