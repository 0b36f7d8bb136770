//! Cuts a stream of bytes into whole lines.

use std::time::{Duration, Instant};

/// Longest piece kept while waiting for the end of its line.
const LONGEST_BYTES: usize = 64 << 20;
/// A terminal shows an unfinished line (a prompt) after so long.
const PROMPT: Duration = Duration::from_millis(200);

/// One stream's unfinished line.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
    since: Option<Instant>,
    /// Part of the line has been given out already.
    begun: bool,
}

/// A piece of output: whether it begins a line, and its bytes (whole lines, or an unfinished one).
pub type Piece<'a> = (bool, &'a [u8]);

impl Lines {
    /// Take `bytes`; `out` gets one piece per line, newline included.
    pub fn push(&mut self, bytes: &[u8], now: Instant, mut out: impl FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            if self.partial.is_empty() {
                out((!self.begun, line));
            } else {
                self.partial.extend_from_slice(line);
                out((!self.begun, &self.partial));
                self.partial.clear();
            }
            self.begun = false;
            self.since = None;
            rest = after;
        }
        if !rest.is_empty() {
            self.partial.extend_from_slice(rest);
            self.since = Some(now);
        }
        if self.partial.len() > LONGEST_BYTES {
            self.flush(out);
        }
    }

    /// Give out the unfinished line, at the end of the stream or for a prompt.
    pub fn flush(&mut self, mut out: impl FnMut(Piece<'_>)) {
        if !self.partial.is_empty() {
            out((!self.begun, &self.partial));
            self.partial.clear();
            self.begun = true;
            self.since = None;
        }
    }

    /// When an unfinished line should be shown on a terminal.
    pub fn prompt_at(&self) -> Option<Instant> {
        self.since.map(|since| since + PROMPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lines: &mut Lines, bytes: &[u8]) -> Vec<(bool, String)> {
        let mut got = Vec::new();
        lines.push(bytes, Instant::now(), |(begins, piece)| {
            got.push((begins, String::from_utf8_lossy(piece).into_owned()))
        });
        got
    }

    #[test]
    fn whole_lines_only() {
        let mut lines = Lines::default();
        assert_eq!(pieces(&mut lines, b"ab"), []);
        assert!(lines.prompt_at().is_some());
        assert_eq!(
            pieces(&mut lines, b"c\nd\n\ne"),
            [(true, "abc\n".into()), (true, "d\n".into()), (true, "\n".into())]
        );
        let mut last = Vec::new();
        lines.flush(|(_, piece)| last.extend_from_slice(piece));
        assert_eq!(last, b"e");
        assert_eq!(lines.prompt_at(), None);
    }

    #[test]
    fn a_prompt_shown_early_is_continued_not_begun_again() {
        let mut lines = Lines::default();
        pieces(&mut lines, b"name? ");
        lines.flush(|(begins, _)| assert!(begins));
        assert_eq!(pieces(&mut lines, b"x\ny\n"), [(false, "x\n".into()), (true, "y\n".into())]);
    }

    #[test]
    fn any_cutting_gives_the_same_lines() {
        let text: Vec<u8> =
            (0..2000u32).flat_map(|i| if i % 7 == 3 { vec![b'\n'] } else { vec![b'a' + (i % 26) as u8] }).collect();
        for step in [1, 2, 3, 7, 64, 999, 5000] {
            let mut lines = Lines::default();
            let mut joined = Vec::new();
            for chunk in text.chunks(step) {
                lines.push(chunk, Instant::now(), |(begins, piece)| {
                    assert!(begins && piece.ends_with(b"\n"));
                    joined.extend_from_slice(piece);
                });
            }
            lines.flush(|(_, piece)| joined.extend_from_slice(piece));
            assert_eq!(joined, text, "{step}");
        }
    }

    #[test]
    fn an_endless_line_is_not_kept_for_ever() {
        let mut lines = Lines::default();
        assert_eq!(pieces(&mut lines, &vec![b'x'; LONGEST_BYTES + 1]).len(), 1);
        assert!(!pieces(&mut lines, b"y\n")[0].0);
    }
}
