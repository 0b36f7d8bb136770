//! Who may talk: each end proves that it has the job's key before the other parses a frame.
//!
//! The connecting end sends its greeting; the other answers with its own and a proof over both; the first checks it and sends its proof, which the other
//! acknowledges: until then each side may give the connection up, and the connecting one tries again. A
//! proof is HMAC-SHA256 with the job's key over a word for what it is and both greetings, each with a fresh nonce; compared in
//! constant time. All messages have fixed sizes. Versions are told before proofs, so that a wrong one has its own sentence.

use crate::frame;
use crate::key::Key;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

const MAGIC: [u8; 8] = *b"vmpifab1";
/// In place of an answer: [`no_room`].
const NO_ROOM: [u8; 8] = *b"vmpifull";
const VERSION_BYTES: usize = 16;
/// Magic, frame version, nodes, from, to, vmpi's version, lane, sealed, nonce.
pub const GREETING_BYTES: usize = NONCE_AT + 32;
const LANE_AT: usize = 24 + VERSION_BYTES;
const SEALED_AT: usize = LANE_AT + 4;
const NONCE_AT: usize = SEALED_AT + 4;
pub const PROOF_BYTES: usize = 32;

/// Why an end does not talk to the other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("what answers there is no vmpid")]
    Stranger,
    #[error("its vmpid is version {theirs}, this one is {}: install the same on all nodes", env!("CARGO_PKG_VERSION"))]
    Version { theirs: String },
    #[error("it takes this node for another one of the job (it says {from} to {to} of {nodes} nodes)")]
    Confused { from: u32, to: u32, nodes: u32 },
    #[error("it does not have this job's key")]
    WrongKey,
    #[error(
        "its frames are {}sealed and this node's are {}: --fabric must say the same on all nodes of a job",
        if *theirs { "" } else { "not " }, if *theirs { "not" } else { "" }
    )]
    Sealed { theirs: bool },
    #[error("its port has no room left: more connections come to it from others than it can hear at a time")]
    NoRoom,
    #[error("it ended the greeting: it does not believe this node, or has died")]
    Closed,
    #[error("it did not finish the greeting in time")]
    Slow,
}

/// What an end says of itself first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub nodes: u32,
    /// Who speaks, and to whom.
    pub from: u32,
    pub to: u32,
    /// Which connection of these two this is.
    pub lane: u32,
    /// What follows is sealed (`seal`).
    pub sealed: bool,
    pub nonce: [u8; 32],
}

/// What an end says instead of a greeting that gives up a connection for others.
pub fn no_room() -> [u8; GREETING_BYTES] {
    let mut bytes = [0; GREETING_BYTES];
    bytes[..8].copy_from_slice(&NO_ROOM);
    bytes
}

/// Is that what these bytes begin to say?
pub(crate) fn is_no_room(bytes: &[u8]) -> bool {
    bytes.starts_with(&NO_ROOM)
}

impl Greeting {
    pub fn encode(&self) -> [u8; GREETING_BYTES] {
        self.encode_as(env!("CARGO_PKG_VERSION"))
    }

    fn encode_as(&self, version: &str) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        for (at, word) in [u32::from(frame::VERSION), self.nodes, self.from, self.to].into_iter().enumerate() {
            bytes[8 + 4 * at..12 + 4 * at].copy_from_slice(&word.to_le_bytes());
        }
        let text = &version.as_bytes()[..version.len().min(VERSION_BYTES)];
        bytes[24..24 + text.len()].copy_from_slice(text);
        bytes[LANE_AT..SEALED_AT].copy_from_slice(&self.lane.to_le_bytes());
        bytes[SEALED_AT] = u8::from(self.sealed);
        bytes[NONCE_AT..].copy_from_slice(&self.nonce);
        bytes
    }

    /// # Errors
    /// It is no greeting, or one of another version.
    pub fn decode(bytes: &[u8; GREETING_BYTES]) -> Result<Greeting, Refusal> {
        if is_no_room(bytes) {
            return Err(Refusal::NoRoom);
        }
        if bytes[..8] != MAGIC {
            return Err(Refusal::Stranger);
        }
        let word = |at: usize| u32::from_le_bytes(bytes[8 + 4 * at..12 + 4 * at].try_into().expect("four bytes"));
        let text = &bytes[24..LANE_AT];
        let text = &text[..text.iter().position(|byte| *byte == 0).unwrap_or(VERSION_BYTES)];
        let own = env!("CARGO_PKG_VERSION").as_bytes();
        let padded: [u8; VERSION_BYTES] = std::array::from_fn(|at| own.get(at).copied().unwrap_or(0));
        if bytes[24..LANE_AT] != padded || word(0) != u32::from(frame::VERSION) {
            let theirs = text.iter().map(|b| if b.is_ascii_graphic() { *b as char } else { '?' }).collect::<String>();
            return Err(Refusal::Version { theirs: format!("{theirs} (frames {})", word(0)) });
        }
        let lane = u32::from_le_bytes(bytes[LANE_AT..SEALED_AT].try_into().expect("four bytes"));
        let nonce = bytes[NONCE_AT..].try_into().expect("the rest is the nonce");
        let sealed = match bytes[SEALED_AT..NONCE_AT] {
            [0, 0, 0, 0] => false,
            [1, 0, 0, 0] => true,
            _ => return Err(Refusal::Stranger),
        };
        Ok(Greeting { nodes: word(1), from: word(2), to: word(3), lane, sealed, nonce })
    }
}

/// Which end a proof is of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    Connecting,
    Accepting,
    /// The accepting one's acknowledgement.
    Welcome,
}

/// The key by which end `of` seals what it sends on this connection. Both nonces are fresh for each connection, and so is the key.
pub(crate) fn sealing_key(key: &Key, of: End, connecting: &Greeting, accepting: &Greeting) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.bytes()).expect("HMAC takes keys of any length");
    mac.update(match of {
        End::Connecting => b"vmpi seals connect.",
        End::Accepting | End::Welcome => b"vmpi seals accept..",
    });
    mac.update(&connecting.encode());
    mac.update(&accepting.encode());
    mac.finalize().into_bytes().into()
}

fn mac(key: &Key, of: End, connecting: &Greeting, accepting: &Greeting) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key.bytes()).expect("HMAC takes keys of any length");
    mac.update(match of {
        End::Connecting => b"vmpi connecting end",
        End::Accepting => b"vmpi accepting end.",
        End::Welcome => b"vmpi welcomes end..",
    });
    mac.update(&connecting.encode());
    mac.update(&accepting.encode());
    mac
}

/// What end `of` sends to show that it has the key.
pub fn proof(key: &Key, of: End, connecting: &Greeting, accepting: &Greeting) -> [u8; PROOF_BYTES] {
    mac(key, of, connecting, accepting).finalize().into_bytes().into()
}

/// Is this the proof of end `of`? In constant time.
pub fn check(key: &Key, of: End, connecting: &Greeting, accepting: &Greeting, proof: &[u8]) -> Result<(), Refusal> {
    mac(key, of, connecting, accepting).verify_slice(proof).map_err(|_| Refusal::WrongKey)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greetings() -> (Greeting, Greeting) {
        let a = Greeting { nodes: 3, from: 1, to: 0, lane: 1, sealed: false, nonce: [7; 32] };
        (a, Greeting { nodes: 3, from: 0, to: 1, lane: 1, sealed: false, nonce: [9; 32] })
    }

    #[test]
    fn only_the_key_proves_anything() {
        let (a, b) = greetings();
        let (key, other) = (Key::from_bytes([1; 32]), Key::from_bytes([2; 32]));
        let good = proof(&key, End::Accepting, &a, &b);
        assert_eq!(check(&key, End::Accepting, &a, &b, &good), Ok(()));
        assert_eq!(check(&other, End::Accepting, &a, &b, &good), Err(Refusal::WrongKey));
        // A proof sent back, or one of another conversation, proves nothing.
        assert!(check(&key, End::Connecting, &a, &b, &good).is_err());
        let fresh = Greeting { nonce: [8; 32], ..a };
        assert!(check(&key, End::Accepting, &fresh, &b, &good).is_err());
        let elsewhere = Greeting { lane: 0, ..a };
        assert!(check(&key, End::Accepting, &elsewhere, &b, &good).is_err());
        assert!(check(&key, End::Accepting, &a, &b, &good[..31]).is_err());
    }

    #[test]
    fn greetings_of_others_have_their_own_sentences() {
        let (a, _) = greetings();
        assert_eq!(Greeting::decode(&a.encode()), Ok(a));
        let old = Greeting::decode(&a.encode_as("0.0.9")).unwrap_err();
        assert!(old.to_string().contains("version 0.0.9"), "{old}");
        assert_eq!(Greeting::decode(&[b'x'; GREETING_BYTES]), Err(Refusal::Stranger));
    }

    #[test]
    fn keys_are_written_and_read_and_never_shown() {
        let key = Key::from_bytes(std::array::from_fn(|at| at as u8 * 7));
        assert_eq!(Key::from_hex(&key.hex()), Some(key.clone()));
        assert!(Key::from_hex("12").is_none() && Key::from_hex(&"g".repeat(64)).is_none());
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
