//! A reason to stop, with the exit code that says whose fault it is.

use std::fmt;

/// The exit codes of vmpirun and vmpictl that are not a rank's own.
pub mod code {
    /// Bad flag or bad value.
    pub const USAGE: i32 = 2;
    /// `--check` has found errors in a job that ended well.
    pub const CHECK: i32 = 122;
    /// All ranks wait for each other, and `--on-deadlock abort`.
    pub const DEADLOCK: i32 = 123;
    /// `--timeout` ran out.
    pub const TIMEOUT: i32 = 124;
    /// vmpi itself could not go on.
    pub const OWN: i32 = 125;
    /// The program exists and cannot be executed.
    pub const CANNOT_EXECUTE: i32 = 126;
    /// No such program.
    pub const NOT_FOUND: i32 = 127;
}

/// A sentence (what, where, why, what to do) and the exit code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: i32,
    pub sentence: String,
}

impl Failure {
    pub fn new(code: i32, sentence: impl Into<String>) -> Failure {
        Failure { code, sentence: sentence.into() }
    }

    /// A bad command line: exit code 2.
    pub fn usage(sentence: impl Into<String>) -> Failure {
        Failure::new(code::USAGE, sentence)
    }

    /// vmpi's own fault: exit code 125.
    pub fn own(sentence: impl Into<String>) -> Failure {
        Failure::new(code::OWN, sentence)
    }

    /// The file is there but cannot be executed: exit code 126.
    pub fn cannot_execute(sentence: impl Into<String>) -> Failure {
        Failure::new(code::CANNOT_EXECUTE, sentence)
    }

    /// No such program: exit code 127.
    pub fn not_found(sentence: impl Into<String>) -> Failure {
        Failure::new(code::NOT_FOUND, sentence)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}
