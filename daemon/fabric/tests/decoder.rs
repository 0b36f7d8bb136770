//! Any bytes in any portions: frames or an error, never a panic, never more memory than one largest frame takes.

use proptest::prelude::*;
use std::time::Instant;
use vmpi_fabric::auth::{GREETING_BYTES, Greeting};
use vmpi_fabric::frame::{Decoder, FrameError, HEAD_BYTES, MAX_BODY_BYTES, head};
use vmpi_fabric::seal::TAG_BYTES;

/// Feed `bytes` in portions of `portion`; all frames, and the error if there was one.
fn decode(bytes: &[u8], portion: usize) -> (Vec<(u8, Vec<u8>)>, Option<FrameError>) {
    let (mut decoder, mut frames, mut rest) = (Decoder::default(), Vec::new(), bytes);
    while !rest.is_empty() {
        let room = decoder.room();
        assert!(!room.is_empty() && room.len() <= 2 * (HEAD_BYTES + MAX_BODY_BYTES + TAG_BYTES));
        let count = portion.min(rest.len()).min(room.len());
        room[..count].copy_from_slice(&rest[..count]);
        decoder.filled(count);
        rest = &rest[count..];
        loop {
            match decoder.next_frame() {
                Ok(Some((kind, body))) => frames.push((kind, body.to_vec())),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fn encode(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    frames.iter().flat_map(|(kind, body)| [&head(*kind, body.len())[..], body].concat()).collect()
}

proptest! {
    #[test]
    fn noise_is_frames_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..4096), portion in 1..600usize) {
        let (frames, _) = decode(&bytes, portion);
        let told: usize = frames.iter().map(|(_, body)| HEAD_BYTES + body.len()).sum();
        prop_assert!(told <= bytes.len());
    }

    #[test]
    fn frames_survive_any_portions(
        frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..2000)), 0..20),
        portion in 1..5000usize,
    ) {
        prop_assert_eq!(decode(&encode(&frames), portion), (frames, None));
    }

    /// A flipped bit in a head is an error or another frame; what came before it is unharmed.
    #[test]
    fn a_damaged_head_harms_nothing_before_it(
        body in prop::collection::vec(any::<u8>(), 0..300), bit in 0..64usize, portion in 1..100usize,
    ) {
        let mut bytes = encode(&[(20, body.clone()), (21, body.clone())]);
        let second = HEAD_BYTES + body.len();
        bytes[second + bit / 8] ^= 1 << (bit % 8);
        let (frames, _) = decode(&bytes, portion);
        prop_assert_eq!(&frames[0], &(20, body));
    }
}

#[test]
fn each_wrong_head_has_its_error() {
    let mut long = head(16, 0);
    long[..4].copy_from_slice(&(MAX_BODY_BYTES as u32 + 1).to_le_bytes());
    assert_eq!(decode(&long, 8).1, Some(FrameError::TooLong(MAX_BODY_BYTES as u32 + 1)));
    let mut version = head(16, 0);
    version[5] = 77;
    assert_eq!(decode(&version, 8).1, Some(FrameError::Version(77)));
    let mut other = head(16, 0);
    other[7] = 1;
    assert_eq!(decode(&other, 8).1, Some(FrameError::Head(256)));
}

#[test]
fn the_largest_frames_pass() {
    let frames = vec![(16, vec![1; MAX_BODY_BYTES]), (17, vec![]), (18, vec![2; MAX_BODY_BYTES - 1]), (19, vec![3])];
    assert_eq!(decode(&encode(&frames), 65536), (frames, None));
}

/// The same bytes each time, of the kind that `fuzz/fuzz_targets/wire_frames.rs` begins with: frames of which bits were changed, and greetings.
#[test]
fn seeded_noise_is_frames_or_an_error() {
    let (start, mut inputs, mut whole, mut wrong) = (Instant::now(), 0, 0, 0);
    for seed in 0..1000 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let frames: Vec<(u8, Vec<u8>)> =
            (0..chance.usize(1..8)).map(|_| (chance.u8(..40), vec![chance.u8(..); chance.usize(..400)])).collect();
        let mut bytes = encode(&frames);
        for _ in 0..chance.usize(..3) {
            let at = chance.usize(..bytes.len());
            bytes[at] ^= 1 << chance.u8(..8);
        }
        let (got, error) = decode(&bytes, chance.usize(1..700));
        assert!(got.iter().map(|(_, body)| HEAD_BYTES + body.len()).sum::<usize>() <= bytes.len());
        (inputs, whole, wrong) = (inputs + 1, whole + got.len(), wrong + usize::from(error.is_some()));
        let own = Greeting { nodes: 2, from: 1, to: 0, lane: 0, sealed: false, nonce: [chance.u8(..); 32] };
        let mut greeting: [u8; GREETING_BYTES] = own.encode();
        greeting[chance.usize(..GREETING_BYTES)] ^= 1 << chance.u8(..8);
        if let Ok(other) = Greeting::decode(&greeting) {
            assert!(other != own && other.encode() == greeting);
        }
    }
    println!("{:.0} inputs a second", f64::from(inputs) / start.elapsed().as_secs_f64());
    assert!(whole > 2000 && wrong > 10, "{whole} frames, {wrong} errors");
}
