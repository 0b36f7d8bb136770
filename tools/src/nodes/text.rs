//! An agent's frames as lines of text on its standard error, for a way that carries no more. `flux exec` ends what it prints at the first zero byte, and its
//! standard output is kept back until a block of it is full; its standard error is passed on at once. Other lines there are a person's to read.

use base64ct::{Base64, Encoding};
use std::io::{self, BufRead, Read, Write};

/// What a launcher says before its first frame, where it wants text: as a length of a frame it would be none.
pub const ASKED: [u8; 4] = *b"text";
const MARK: &str = "vmpid: ";

/// A frame in each write, each a line.
pub struct Lines<W>(pub W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(format!("{MARK}{}\n", Base64::encode_string(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The bytes of these lines; what else there is goes to `rest`.
pub struct Unlined<R, W> {
    from: R,
    rest: W,
    bytes: Vec<u8>,
    taken: usize,
}

impl<R: BufRead, W: Write> Unlined<R, W> {
    pub fn new(from: R, rest: W) -> Unlined<R, W> {
        Unlined { from, rest, bytes: Vec::new(), taken: 0 }
    }
}

impl<R: BufRead, W: Write> Read for Unlined<R, W> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.bytes.len() {
            let mut line = Vec::new();
            if self.from.read_until(b'\n', &mut line)? == 0 {
                return Ok(0);
            }
            let text = String::from_utf8_lossy(&line);
            let (before, frame) = match text.split_once(MARK) {
                Some((before, coded)) => (before, Base64::decode_vec(coded.trim_end()).ok()),
                None => ("", None),
            };
            let other = if frame.is_some() { before.as_bytes() } else { &line };
            // Whoever cannot be told of it can do without.
            let _ = self.rest.write_all(other);
            (self.bytes, self.taken) = (frame.unwrap_or_default(), 0);
        }
        let count = to.len().min(self.bytes.len() - self.taken);
        to[..count].copy_from_slice(&self.bytes[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::frames::{self, Frame, FromNode};

    #[test]
    fn frames_come_through_among_other_lines() {
        assert!(u32::from_le_bytes(ASKED) > vmpi_shared::control::MAX_FRAME_BYTES);
        let mut wire = b"flux: a warning\nan unfinished ".to_vec();
        Lines(&mut wire).write_all(frames::PREAMBLE).unwrap();
        frames::say(&mut Lines(&mut wire), &FromNode::Alive).unwrap();
        wire.extend_from_slice(b"vmpid: no frame!\n");
        frames::pass(&mut Lines(&mut wire), 7, &[0, 10, 255, 0]).unwrap();
        assert!(!wire.contains(&0));
        let mut rest = Vec::new();
        let mut from = Unlined::new(&wire[..], &mut rest);
        frames::await_preamble(&mut from).unwrap();
        assert!(matches!(frames::hear::<FromNode>(&mut from), Ok(Some(Frame::Said(FromNode::Alive)))));
        let bytes = frames::hear::<FromNode>(&mut from);
        assert!(matches!(bytes, Ok(Some(Frame::Bytes(7, bytes))) if bytes == [0, 10, 255, 0]));
        assert!(matches!(frames::hear::<FromNode>(&mut from), Ok(None)));
        assert_eq!(rest, b"flux: a warning\nan unfinished vmpid: no frame!\n");
    }
}
