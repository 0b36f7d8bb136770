//! What an emulated link writes before each body.

use super::BULK;

/// What each frame carries: the clock, its way, its form, and how many staged bodies of the other end have been told.
pub const STAMP_BYTES: usize = 14;

/// What follows the stamp.
pub mod form {
    pub const BODY: u8 = 0;
    /// Word of a staged body.
    pub const STAGED: u8 = 1;
    /// Where the sender's memory can be opened.
    pub const OFFER: u8 = 2;
    /// The memory that was offered has been opened.
    pub const OPENED: u8 = 3;
    /// Nothing: it was sent for its stamp.
    pub const TOLD: u8 = 4;
    /// All that follows this by the same way comes through the ring.
    pub const RING: u8 = 5;
}

pub struct Stamp {
    pub clock: u64,
    pub way: usize,
    pub form: u8,
    pub told: u32,
}

impl Stamp {
    pub fn encode(&self) -> [u8; STAMP_BYTES] {
        let mut stamp = [0; STAMP_BYTES];
        stamp[..8].copy_from_slice(&self.clock.to_le_bytes());
        (stamp[8], stamp[9]) = (self.way as u8, self.form);
        stamp[10..].copy_from_slice(&self.told.to_le_bytes());
        stamp
    }

    pub fn decode(body: &[u8]) -> Option<(Stamp, &[u8])> {
        let (stamp, body) = body.split_first_chunk::<STAMP_BYTES>()?;
        let (clock, rest) = stamp.split_first_chunk::<8>()?;
        let [way, form, told @ ..] = *rest.first_chunk::<6>()?;
        let (clock, told) = (u64::from_le_bytes(*clock), u32::from_le_bytes(told));
        Some((Stamp { clock, way: usize::from(way).min(BULK), form, told }, body))
    }
}

/// A stamp, and what follows it.
pub fn stamped<'a>(stamp: &'a [u8], parts: &[&'a [u8]]) -> Vec<&'a [u8]> {
    std::iter::once(stamp).chain(parts.iter().copied()).collect()
}
