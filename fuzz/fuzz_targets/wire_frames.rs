//! What a node of the job, or whoever reaches its port, sends: bytes to frames, frames to what they say, greetings. Nothing panics, and nothing that is read is
//! larger than what came. (What a carrier does with frames in whatever order is `daemon/src/carrier/post/hostile.rs`.)
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmpi_fabric::auth::{GREETING_BYTES, Greeting};
use vmpi_fabric::frame::{Decoder, HEAD_BYTES, MAX_BODY_BYTES};
use vmpi_shared::ask::{self, Ask};
use vmpi_shared::matching::envelope::{INLINE_BYTES, kind};

#[allow(dead_code)]
#[path = "../../daemon/src/carrier/wire.rs"]
mod wire;

fn frame(of: u8, body: &[u8]) {
    let Ok(frame) = wire::read(of, body) else { return };
    match frame {
        wire::Frame::Envelope { to, envelope, payload } => {
            assert!(payload.len() <= body.len() && envelope.request.min(wire::MOST_REQUESTS) <= wire::MOST_REQUESTS);
            let (bytes, used) = wire::encode(to, &envelope);
            let again = [&bytes[..used], payload].concat();
            assert_eq!(again, body, "it is written as it was read");
            if envelope.kind == kind::INLINE {
                assert!(envelope.len <= INLINE_BYTES as u64);
            }
            if let Ok(ask) = Ask::of(&envelope) {
                let payload = if wire::has_payload(&envelope) { payload } else { envelope.ask_payload() };
                if let Ok((blocks, data)) = ask::read_payload(&ask, payload) {
                    assert!(blocks.len() * ask::BLOCK_BYTES + data.len() == payload.len());
                }
            }
        }
        wire::Frame::Data { bytes, .. } => assert!(bytes.len() + 4 == body.len()),
        wire::Frame::Said(wire::Said::Credit { count, .. }) => assert!((1..=wire::CREDITS).contains(&count)),
        wire::Frame::Said(wire::Said::Refused { errno, .. }) => assert!((0..=4095).contains(&errno)),
        wire::Frame::Said(_) => {}
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Some(greeting) = bytes.first_chunk::<GREETING_BYTES>()
        && let Ok(greeting) = Greeting::decode(greeting)
    {
        assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
    }
    let Some((first, rest)) = bytes.split_first() else { return };
    // As the body of one frame, of a kind that exists or the next one.
    frame(16 + first % 15, rest);
    // And as what comes by a link, in portions.
    let (mut decoder, portion, mut left) = (Decoder::default(), usize::from(*first) + 1, rest);
    while !left.is_empty() {
        let room = decoder.room();
        let count = portion.min(left.len()).min(room.len());
        assert!(count > 0 && room.len() <= 2 * (HEAD_BYTES + MAX_BODY_BYTES + 16));
        room[..count].copy_from_slice(&left[..count]);
        decoder.filled(count);
        left = &left[count..];
        loop {
            match decoder.next_frame() {
                Ok(Some((kind, body))) => frame(kind, body),
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
});
