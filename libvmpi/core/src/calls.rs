//! What a rank waits in, for `vmpictl` (indices of `vmpi_shared::sched::report::CALLS`).

use std::sync::atomic::AtomicU64;

pub const CALL_RECV: u32 = 1;
pub const CALL_SEND: u32 = 2;
pub const CALL_WAIT: u32 = 3;
pub const CALL_PROBE: u32 = 4;
pub const CALL_COLLECTIVE: u32 = 5;
pub const CALL_WINDOW: u32 = 8;
pub const CALL_SPAWN: u32 = 9;
pub const CALL_CONNECT: u32 = 10;
pub const CALL_AGREE: u32 = 11;
pub const CALL_DESCRIPTOR: u32 = 12;

pub const CALL_LEFT_RECV: u32 = 13;

pub const CALL_LEFT_SEND: u32 = 14;

/// Messages that were not over when the call that waits for them returned (`overlap`), of this process.
pub static DEFERRED: AtomicU64 = AtomicU64::new(0);
