//! Sealed frames: who stands between two nodes can neither read nor change them, nor leave one out, nor send one again.
//!
//! Each direction of each connection has a key of its own, made of the job's key and of the nonces by which both ends have greeted (`auth::sealing_key`),
//! and counts its frames: the count is the nonce of AES-256-GCM. A key is used on one connection, whose count begins at 0 and never turns back, so no nonce is used
//! twice. A frame's head (length, kind, version) stays legible and is part of what is sealed. Frames before the last one that has been taken, and those that come out
//! of order, do not open. That the end of a connection came too early is seen by what is missing then (BYE).

use ring::aead::{AES_256_GCM, Aad, BoundKey, NONCE_LEN, Nonce, NonceSequence, OpeningKey, SealingKey, UnboundKey};
use ring::error::Unspecified;

use crate::auth::{End, Greeting, sealing_key};
use crate::frame::{FrameError, HEAD_BYTES};
use crate::key::Key;

/// Behind the body of each frame.
pub const TAG_BYTES: usize = 16;
const _: () = assert!(TAG_BYTES == ring::aead::MAX_TAG_LEN);

/// Counts frames, and ends before it repeats one.
struct Count(u64);

impl NonceSequence for Count {
    fn advance(&mut self) -> Result<Nonce, Unspecified> {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&self.0.to_be_bytes());
        self.0 = self.0.checked_add(1).ok_or(Unspecified)?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

fn bound<K: BoundKey<Count>>(key: [u8; 32]) -> K {
    K::new(UnboundKey::new(&AES_256_GCM, &key).expect("32 bytes are a key"), Count(0))
}

/// Seals what this end sends.
pub struct Sealer(SealingKey<Count>);

/// Opens what the other end has sealed.
pub struct Opener(OpeningKey<Count>);

/// Both directions of a connection, as end `of` has them.
pub fn both(key: &Key, of: End, connecting: &Greeting, accepting: &Greeting) -> (Sealer, Opener) {
    let of_end = |end| sealing_key(key, end, connecting, accepting);
    let (mine, theirs) = match of {
        End::Connecting => (End::Connecting, End::Accepting),
        End::Accepting | End::Welcome => (End::Accepting, End::Connecting),
    };
    (Sealer(bound(of_end(mine))), Opener(bound(of_end(theirs))))
}

impl Sealer {
    /// Encrypt the body behind `head`; what goes behind it. `None`: no frame can be sealed any more.
    pub fn seal(&mut self, head: &[u8; HEAD_BYTES], body: &mut [u8]) -> Option<[u8; TAG_BYTES]> {
        let tag = self.0.seal_in_place_separate_tag(Aad::from(head), body).ok()?;
        tag.as_ref().try_into().ok()
    }
}

impl Opener {
    /// Decrypt the body in front of its tag.
    ///
    /// # Errors
    /// It is not the next frame of the other end, as that sent it.
    pub fn open(&mut self, head: &[u8; HEAD_BYTES], sealed: &mut [u8]) -> Result<(), FrameError> {
        self.0.open_in_place(Aad::from(head), sealed).map(drop).map_err(|_| FrameError::Seal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Decoder, head};

    fn ends() -> ((Sealer, Opener), (Sealer, Opener)) {
        let key = Key::from_bytes([3; 32]);
        let connecting = Greeting { nodes: 2, from: 1, to: 0, lane: 0, sealed: true, nonce: [1; 32] };
        let accepting = Greeting { from: 0, to: 1, nonce: [2; 32], ..connecting };
        let both = |of| both(&key, of, &connecting, &accepting);
        (both(End::Connecting), both(End::Accepting))
    }

    fn frame(sealer: &mut Sealer, kind: u8, body: &[u8]) -> Vec<u8> {
        let head = head(kind, body.len());
        let mut sealed = body.to_vec();
        let tag = sealer.seal(&head, &mut sealed).unwrap();
        [&head[..], &sealed, &tag].concat()
    }

    fn take(opener: &mut Opener, bytes: &[u8]) -> Result<Vec<(u8, Vec<u8>)>, FrameError> {
        let mut decoder = Decoder::default();
        decoder.room()[..bytes.len()].copy_from_slice(bytes);
        decoder.filled(bytes.len());
        let mut all = Vec::new();
        while let Some((kind, body)) = decoder.next_sealed(opener)? {
            all.push((kind, body.to_vec()));
        }
        Ok(all)
    }

    #[test]
    fn frames_open_once_and_in_order_at_the_other_end() {
        let ((mut sealer, mut own), (mut other, mut opener)) = ends();
        let frames: Vec<Vec<u8>> =
            (0..4u8).map(|n| frame(&mut sealer, 16 + n, &vec![n; 1000 * usize::from(n)])).collect();
        assert!(!frames[3].windows(8).any(|bytes| bytes == [3; 8]), "it is legible");
        assert_eq!(take(&mut opener, &frames[..2].concat()).unwrap(), [(16, vec![]), (17, vec![1; 1000])]);
        assert_eq!(take(&mut opener, &frames[2]).unwrap(), [(18, vec![2; 2000])]);
        assert_eq!(take(&mut own, &frames[0]), Err(FrameError::Seal), "sent back to who has sent it");
        let (_, (_, mut fresh)) = ends();
        assert_eq!(take(&mut fresh, &frames[1]), Err(FrameError::Seal), "one is left out");
        assert_eq!(take(&mut opener, &frames[2]), Err(FrameError::Seal), "sent again");
        let answer = frame(&mut other, 16, b"x");
        let ((_, mut first), _) = ends();
        assert_eq!(take(&mut first, &answer).unwrap(), [(16, b"x".to_vec())]);
    }

    /// Whatever bit is changed, also one of the head, which is legible: nothing opens.
    #[test]
    fn a_changed_bit_breaks_the_seal() {
        let sealed = frame(&mut ends().0.0, 16, &[5; 40]);
        for bit in 0..8 * sealed.len() {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let got = take(&mut ends().1.1, &changed);
            // A longer frame than has come is waited for.
            assert!(got.is_err() || got == Ok(Vec::new()), "bit {bit}: {got:?}");
        }
    }

    #[test]
    fn a_count_ends_before_it_repeats() {
        let mut count = Count(u64::MAX - 1);
        assert!(count.advance().is_ok() && count.advance().is_err() && count.advance().is_err());
    }
}
