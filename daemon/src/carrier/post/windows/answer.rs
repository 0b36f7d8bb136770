//! What comes of an operation on a window.

use crate::carrier::transfer::Cursor;

/// What comes of an ask.
pub enum Answer {
    Nothing,
    /// It has been done, with this outcome.
    Word(u32),
    /// It has been done; this number was there before.
    Number(u64),
    /// It cannot be read.
    Refused(i32),
    Data(Vec<u8>),
    /// Too much for one frame: as a large message.
    Stream(Cursor),
    /// To be fetched from the origin.
    Bring(Cursor),
}

impl Answer {
    /// Is the ask not done with that? It holds its credit until it is.
    pub fn goes_on(&self) -> bool {
        matches!(self, Answer::Stream(_) | Answer::Bring(_))
    }
}
