//! Blocking calls that return before their buffers may be used: the guard.

pub mod guard;
