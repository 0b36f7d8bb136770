//! Frames from one process to another of the same machine, in memory that both map: no system call for either.
//!
//! A record is a word (length of the frame, its kind) and the frame, and lies in one piece: where it would not fit before the end of the ring, a word says so. The
//! writer shows what it has written when it flushes. Both ends count bytes from the beginning.
//!
//! SYNC R: the writer's count goes behind the bytes (release), the reader looks at it before them (acquire); the reader's count goes behind what it has read, the
//! writer looks at it before it writes there.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crate::frame::{FrameError, MAX_BODY_BYTES};
use crate::staging::{Span, Staging};

/// Where in the memory the counts stand, and from where on the ring lies.
pub struct Place {
    pub written: usize,
    pub read: usize,
    pub ring: usize,
}

/// What the longest frame carries here besides its body.
const MORE_BYTES: usize = 64;
/// Two of the longest frames fit, wherever the first one begins.
pub const BYTES: usize = 1 << 20;
const WORD_BYTES: usize = 8;
/// Instead of a length: the next record lies at the beginning of the ring.
const WRAPS: u32 = u32::MAX;

const _: () = assert!(2 * (MAX_BODY_BYTES + MORE_BYTES + WORD_BYTES) < BYTES && BYTES.is_power_of_two());

fn record_bytes(frame: usize) -> usize {
    (WORD_BYTES + frame).next_multiple_of(WORD_BYTES)
}

/// Bytes from `at` to the end of the ring.
fn left(at: u64) -> usize {
    BYTES - at as usize % BYTES
}

fn word(length: u32, kind: u8) -> [u8; WORD_BYTES] {
    let [a, b, c, d] = length.to_le_bytes();
    [a, b, c, d, kind, 0, 0, 0]
}

pub struct Writer {
    place: Place,
    written: u64,
    /// What did not fit: kind and frame.
    waiting: VecDeque<(u8, Vec<u8>)>,
    waiting_bytes: usize,
}

impl Writer {
    pub fn new(place: Place) -> Writer {
        Writer { place, written: 0, waiting: VecDeque::new(), waiting_bytes: 0 }
    }

    /// Write a frame of these parts, now or when there is room.
    pub fn push(&mut self, memory: &mut Staging, kind: u8, parts: &[&[u8]]) {
        if !self.waiting.is_empty() || !self.put(memory, kind, parts) {
            let frame = parts.concat();
            self.waiting_bytes += frame.len();
            self.waiting.push_back((kind, frame));
        }
    }

    /// Bytes for which there is no room yet.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Show the reader what has been written.
    pub fn flush(&mut self, memory: &mut Staging) {
        while let Some((kind, frame)) = self.waiting.pop_front() {
            if !self.put(memory, kind, &[&frame]) {
                self.waiting.push_front((kind, frame));
                break;
            }
            self.waiting_bytes -= frame.len();
        }
        memory.word(self.place.written).store(self.written, Ordering::Release); // SYNC R
    }

    fn put(&mut self, memory: &mut Staging, kind: u8, parts: &[&[u8]]) -> bool {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let (needed, left) = (record_bytes(bytes), left(self.written));
        let skipped = if needed > left { left } else { 0 };
        // A count that is no count leaves no room.
        let used = self.written.wrapping_sub(memory.word(self.place.read).load(Ordering::Acquire)); // SYNC R
        if used.saturating_add((skipped + needed) as u64) > BYTES as u64 {
            return false;
        }
        if skipped > 0 {
            self.write(memory, 0, &word(WRAPS, 0));
            self.written += skipped as u64;
        }
        self.write(memory, 0, &word(bytes as u32, kind));
        let mut at = WORD_BYTES;
        for part in parts {
            self.write(memory, at, part);
            at += part.len();
        }
        self.written += needed as u64;
        true
    }

    /// Write behind what has been written.
    fn write(&self, memory: &mut Staging, behind: usize, bytes: &[u8]) {
        let at = self.place.ring + self.written as usize % BYTES + behind;
        memory.write(Span { at, bytes: bytes.len() }).copy_from_slice(bytes);
    }
}

pub struct Reader {
    place: Place,
    read: u64,
}

impl Reader {
    pub fn new(place: Place) -> Reader {
        Reader { place, read: 0 }
    }

    /// The kind of the next frame, and where it lies until `done`.
    ///
    /// # Errors
    /// What stands there is none.
    pub fn next(&mut self, memory: &Staging) -> Result<Option<(u8, Span)>, FrameError> {
        loop {
            let written = memory.word(self.place.written).load(Ordering::Acquire); // SYNC R
            let there = written.wrapping_sub(self.read);
            if there == 0 {
                return Ok(None);
            }
            let at = self.place.ring + self.read as usize % BYTES;
            let &[a, b, c, d, kind, ..] = memory.read(Span { at, bytes: WORD_BYTES }) else { return Ok(None) };
            let (length, left) = (u32::from_le_bytes([a, b, c, d]), left(self.read));
            if length == WRAPS && there >= left as u64 {
                self.read += left as u64;
                continue;
            }
            let bytes = length as usize;
            if bytes > MAX_BODY_BYTES + MORE_BYTES {
                return Err(FrameError::TooLong(length));
            }
            if record_bytes(bytes) > left || record_bytes(bytes) as u64 > there {
                return Err(FrameError::Cut(bytes));
            }
            return Ok(Some((kind, Span { at: at + WORD_BYTES, bytes })));
        }
    }

    /// The frame that lies there has been read.
    pub fn done(&mut self, memory: &Staging, span: Span) {
        self.read += record_bytes(span.bytes) as u64;
        memory.word(self.place.read).store(self.read, Ordering::Release); // SYNC R
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place { written: 64, read: 128, ring: 256 }
    }

    fn ends() -> (Staging, Staging, Writer, Reader) {
        let (ours, fd) = Staging::shared(256 + BYTES).unwrap();
        (ours, Staging::map(fd, 256 + BYTES).unwrap(), Writer::new(place()), Reader::new(place()))
    }

    /// Frames of all lengths, by a writer that is now and then ahead by more than fits.
    #[test]
    fn frames_come_as_they_went() {
        let (mut ours, theirs, mut writer, mut reader) = ends();
        let mut chance = fastrand::Rng::with_seed(3);
        let lengths: Vec<usize> = (0..1500)
            .map(|n| if n % 8 == 0 { chance.usize(..=MAX_BODY_BYTES + MORE_BYTES) } else { chance.usize(..300) })
            .collect();
        let (mut sent, mut got, mut waited) = (0, 0, 0);
        while got < lengths.len() {
            for _ in 0..chance.usize(..100) {
                if let Some(length) = lengths.get(sent) {
                    let frame: Vec<u8> = (0..*length).map(|at| (at * 31 + sent) as u8).collect();
                    let (head, tail) = frame.split_at(frame.len() / 3);
                    writer.push(&mut ours, sent as u8, &[head, tail]);
                    sent += 1;
                }
            }
            let before = got;
            assert!(reader.next(&theirs).unwrap().is_none(), "not shown yet");
            writer.flush(&mut ours);
            waited += usize::from(writer.waiting_bytes() > 0);
            while let Some((kind, span)) = reader.next(&theirs).unwrap() {
                let frame = theirs.read(span);
                assert!(kind == got as u8 && frame.len() == lengths[got], "frame {got}");
                assert!(frame.iter().enumerate().all(|(at, byte)| *byte == (at * 31 + got) as u8), "frame {got}");
                reader.done(&theirs, span);
                got += 1;
            }
            assert!(got > before || sent == got, "it goes on");
        }
        assert!(waited > 10 && writer.waiting_bytes() == 0, "{waited}");
    }

    #[test]
    fn nonsense_is_an_error() {
        for (written, bytes) in
            [(8, word(9, 1)), (4096, word(WRAPS - 1, 1)), (1 << 40, word(1 << 20, 1)), (16, word(WRAPS, 0))]
        {
            let (mut ours, theirs, _, mut reader) = ends();
            ours.write(Span { at: 256, bytes: WORD_BYTES }).copy_from_slice(&bytes);
            ours.word(64).store(written, Ordering::Release);
            assert!(reader.next(&theirs).is_err(), "{written} {bytes:?}");
        }
        // A reader that claims to have read what was never written.
        let (mut ours, theirs, mut writer, _) = ends();
        theirs.word(128).store(7, Ordering::Release);
        writer.push(&mut ours, 1, &[b"frame"]);
        assert_eq!(writer.waiting_bytes(), 5);
    }
}
