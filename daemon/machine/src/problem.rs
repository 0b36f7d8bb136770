//! What is wrong with a description of a machine.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// `what` says which key or element, why, and what is allowed.
    #[error("{file}, line {line}: {what}")]
    At { file: String, line: usize, what: String },
    /// Of the file as a whole.
    #[error("{file}: {what}")]
    Whole { file: String, what: String },
    #[error("cannot read {file}: {why}")]
    Unreadable { file: String, why: String },
    #[error("there is no file {name}, nor a machine of this name here; there are {known}")]
    Unknown { name: String, known: String },
}

/// The line of a byte of `text`, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count()
}
