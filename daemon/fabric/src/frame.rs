//! Frames: a head of eight bytes (length of the body, kind, version, two zeros) and a body.
//!
//! The decoder believes nothing: a length beyond the cap, another version or a head that is not zero where it must be ends the link, and its
//! buffer never grows beyond one largest frame.

use crate::seal::{Opener, TAG_BYTES};

/// Changes whenever a frame changes its meaning.
pub const VERSION: u8 = 8;
/// Longest body.
pub const MAX_BODY_BYTES: usize = 256 << 10;
pub const HEAD_BYTES: usize = 8;
/// Room of a decoder: a whole largest frame, and as much again to read ahead.
const BUFFER_BYTES: usize = 2 * MOST_BYTES;
/// Of a frame, sealed or not.
const MOST_BYTES: usize = HEAD_BYTES + MAX_BODY_BYTES + TAG_BYTES;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes is longer than {MAX_BODY_BYTES} allowed")]
    TooLong(u32),
    #[error("a frame of version {0}, where this vmpid speaks {VERSION}")]
    Version(u8),
    #[error("a frame's head has {0:#x} where zeros must be")]
    Head(u16),
    #[error("a message of {0} bytes that is not whole frames")]
    Cut(usize),
    #[error("slot {0}, whose turn it is not")]
    Slot(u32),
    #[error("a frame whose seal is broken: it was changed on its way")]
    Seal,
}

/// The head of a frame.
///
/// # Panics
/// If the body is longer than the cap: the caller cuts what it sends.
pub fn head(kind: u8, body_bytes: usize) -> [u8; HEAD_BYTES] {
    assert!(body_bytes <= MAX_BODY_BYTES, "a frame of {body_bytes} bytes is too long");
    let [a, b, c, d] = (body_bytes as u32).to_le_bytes();
    [a, b, c, d, kind, VERSION, 0, 0]
}

/// Kind and length of the body that follows a head.
///
/// # Errors
/// It is none of this version, or announces too much.
pub fn read_head(head: &[u8; HEAD_BYTES]) -> Result<(u8, usize), FrameError> {
    let [a, b, c, d, kind, version, y, z] = *head;
    let length = u32::from_le_bytes([a, b, c, d]);
    if version != VERSION {
        return Err(FrameError::Version(version));
    }
    if length as usize > MAX_BODY_BYTES {
        return Err(FrameError::TooLong(length));
    }
    match u16::from_le_bytes([y, z]) {
        0 => Ok((kind, length as usize)),
        zeros => Err(FrameError::Head(zeros)),
    }
}

/// Bytes in, frames out.
pub struct Decoder {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { buffer: vec![0; BUFFER_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }
}

impl Decoder {
    /// Room for bytes to come; say with `filled` how many did. Never empty once `next_frame` has returned `None`.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.buffer.len() - self.end < MOST_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.buffer[self.end..]
    }

    pub fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// The next whole frame, if one has come.
    ///
    /// # Errors
    /// Bytes that are no frame; the decoder is of no more use.
    pub fn next_frame(&mut self) -> Result<Option<(u8, &[u8])>, FrameError> {
        self.next_with(None)
    }

    /// The same of sealed frames.
    ///
    /// # Errors
    /// As `next_frame`.
    pub fn next_sealed(&mut self, opener: &mut Opener) -> Result<Option<(u8, &[u8])>, FrameError> {
        self.next_with(Some(opener))
    }

    fn next_with(&mut self, opener: Option<&mut Opener>) -> Result<Option<(u8, &[u8])>, FrameError> {
        let have = &self.buffer[self.start..self.end];
        let Some(head) = have.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let (kind, length) = read_head(head)?;
        let from = self.start + HEAD_BYTES;
        let to = from + length;
        let whole = if opener.is_some() { to + TAG_BYTES } else { to };
        if whole > self.end {
            return Ok(None);
        }
        self.start = whole;
        if let Some(opener) = opener {
            let head = *head;
            opener.open(&head, &mut self.buffer[from..whole])?;
        }
        Ok(Some((kind, &self.buffer[from..to])))
    }
}
