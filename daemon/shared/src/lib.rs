//! What the daemon and its ranks share; no I/O beyond futex, mmap and the control socket's frames.

pub mod control;
