//! A job's key: all of its nodes have it, and nobody else.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

/// 256 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// # Errors
    /// The system has no random numbers.
    pub fn random() -> io::Result<Key> {
        let mut bytes = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Key(bytes))
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// As [`Key::hex`] writes it.
    pub fn from_hex(text: &str) -> Option<Key> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
        }
        Some(Key(bytes))
    }

    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Never the key itself.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Key(..)")
    }
}
