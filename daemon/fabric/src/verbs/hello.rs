//! What two ends tell each other over their TCP link before the RDMA connection carries anything.

use super::abi::Address;

/// The frames' kind, one of the fabric's own.
pub const KIND: u8 = 2;
/// Changes with the slots' layout or their protocol.
const VERSION: u8 = 1;
/// Of what the other end gives as its reason no more is passed on, and nothing that a terminal would take for a command.
const MOST_REASON: usize = 400;
const OFFER_BYTES: usize = 3 + 28 + 8 + 4 * 5;

/// One end of a connection, as the other must know it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub address: Address,
    /// The slots into which large frames are written: where, and by which key.
    pub slots_at: u64,
    pub slots_key: u32,
    pub slots: u32,
    pub slot_bytes: u32,
    /// Receives that are posted for frames, and their size.
    pub receives: u32,
    pub receive_bytes: u32,
}

/// A step of the handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Here is my end.
    Offer(Offer),
    /// I have connected mine to yours: what you send will be received.
    Ready,
    /// What I sent has reached you.
    Works,
    /// Not with me: why.
    Without(String),
}

impl Step {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Step::Ready => vec![VERSION, 2],
            Step::Works => vec![VERSION, 3],
            Step::Without(why) => [&[VERSION, 4], why.as_bytes()].concat(),
            Step::Offer(offer) => {
                let Offer { address, slots_at, slots_key, slots, slot_bytes, receives, receive_bytes } = *offer;
                let mut bytes = vec![VERSION, 1, address.ethernet];
                bytes.extend(address.gid);
                for word in [address.queue_pair, address.packet, u32::from(address.lid) | u32::from(address.mtu) << 16]
                {
                    bytes.extend(word.to_le_bytes());
                }
                bytes.extend(slots_at.to_le_bytes());
                for word in [slots_key, slots, slot_bytes, receives, receive_bytes] {
                    bytes.extend(word.to_le_bytes());
                }
                bytes
            }
        }
    }

    /// `None`: no step of this version.
    pub fn decode(bytes: &[u8]) -> Option<Step> {
        let [VERSION, step, rest @ ..] = bytes else { return None };
        match step {
            1 if bytes.len() == OFFER_BYTES => {
                let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
                let low = word(27);
                let address = Address {
                    gid: bytes[3..19].try_into().expect("sixteen bytes"),
                    queue_pair: word(19),
                    packet: word(23),
                    lid: low as u16,
                    mtu: (low >> 16) as u8,
                    ethernet: bytes[2],
                };
                Some(Step::Offer(Offer {
                    address,
                    slots_at: u64::from(word(31)) | u64::from(word(35)) << 32,
                    slots_key: word(39),
                    slots: word(43),
                    slot_bytes: word(47),
                    receives: word(51),
                    receive_bytes: word(55),
                }))
            }
            2 if rest.is_empty() => Some(Step::Ready),
            3 if rest.is_empty() => Some(Step::Works),
            4 => {
                let why = String::from_utf8_lossy(&rest[..rest.len().min(MOST_REASON)]);
                Some(Step::Without(why.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_as_they_went() {
        let address = Address {
            gid: std::array::from_fn(|at| at as u8),
            queue_pair: 17,
            packet: 0x123456,
            lid: 0xfedc,
            mtu: 5,
            ethernet: 1,
        };
        let offer = Offer {
            address,
            slots_at: 0x7f12_3456_789a,
            slots_key: 9,
            slots: 8,
            slot_bytes: 1 << 18,
            receives: 64,
            receive_bytes: 8192,
        };
        for step in [Step::Offer(offer), Step::Ready, Step::Works, Step::Without("no device".into())] {
            let bytes = step.encode();
            assert_eq!(Step::decode(&bytes), Some(step.clone()));
            let longer = [&bytes[..], &[0]].concat();
            assert!(matches!(step, Step::Without(_)) || Step::decode(&longer).is_none());
        }
        let Some(Step::Without(why)) = Step::decode(&[&[VERSION, 4], &b"\x1b[2J\n\xff"[..], &[b'x'; 100_000]].concat())
        else {
            panic!("a reason is one, whatever it is")
        };
        assert!(why.starts_with(" [2J ") && why.len() < 2 * MOST_REASON && !why.chars().any(char::is_control));
        assert_eq!(Step::decode(&[]), None);
        assert_eq!(Step::decode(&[2, 2]), None);
    }
}
