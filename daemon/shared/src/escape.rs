//! Text for people, of which programs, ranks or peers have chosen parts: their control characters are shown, never sent to the terminal.
//!
//! Escapes are those of JSON, so that a JSON document stays the same document.

use std::fmt;

use std::borrow::Cow;
use std::fmt::Write;

/// All control characters but line ends and tabs as `\u001b`: of a whole text, at the place where it is written.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

/// All control characters: of a name, which could begin a line of its own otherwise.
pub fn word(text: &str) -> Cow<'_, str> {
    escape(text, char::is_control)
}

/// As `lines`; further lines are indented, so that none passes for a line of vmpi's.
pub fn indented(text: &str) -> Cow<'_, str> {
    match text.trim_end().contains('\n') {
        true => Cow::Owned(lines(text.trim_end()).replace('\n', "\n    ")),
        false => lines(text),
    }
}

fn escape(text: &str, is_unwanted: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unwanted) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unwanted(c) {
            let _ = write!(escaped, "\\u{:04x}", c as u32);
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Environment variables as logs show them: their names. Values may be secrets.
pub struct Names<'a>(pub &'a [(String, String)]);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        assert!(matches!(lines("a\tb\nc"), Cow::Borrowed(_)));
        assert_eq!(lines("\x1b[31mred\x07\r\u{9b}2J\x7f ü"), "\\u001b[31mred\\u0007\\u000d\\u009b2J\\u007f ü");
        assert_eq!(word("a\nvmpirun: all is well"), "a\\u000avmpirun: all is well");
        assert_eq!(indented("a\nvmpirun: all is well\n"), "a\n    vmpirun: all is well");
    }

    #[test]
    fn json_stays_the_same_document() {
        let document = serde_json::json!({ "program": "\x1b[2J\u{9b}\x7f\nx", "é": ["\t"] });
        for text in [document.to_string(), format!("{document:#}")] {
            let read: serde_json::Value = serde_json::from_str(&lines(&text)).unwrap();
            assert_eq!(read, document);
            assert!(!lines(&text).chars().any(|c| c.is_control() && c != '\n'));
        }
    }
}
