//! A replay in bounds. A receive there takes the message of one sender, and what others send meanwhile piles up: 192 bytes and a place in tables each. So a receiver
//! says whose message it takes next, and others let ranks of their core run before they send more to one that holds many.
//!
//! Nobody waits for ever: where the receiver has taken nothing for a while its senders go on, for what they send later may be what others wait for.

use crate::comm::Communicator;
use crate::guarded::EntryGuarded;
use crate::process::endpoint;
use vmpi_shared::clock;
use vmpi_shared::mem::sync::{Ordering, yield_cpu};

/// A receiver with so many messages that it has not asked for is not sent more; they stay in the second cache.
const MANY: u32 = 128;
/// A receiver that has taken nothing for so long, nanoseconds, waits for something else.
const STANDSTILL: u64 = 10_000_000;
/// A message is sent after this time in any case.
const LONGEST: u64 = 200_000_000;
/// After a wait in vain so many are sent without one; twice as many after the next.
const FIRST_IN_VAIN: u32 = 64;
const MOST_IN_VAIN: u32 = 1 << 16;

/// How this rank's sends go on.
struct Pace {
    /// So many without a question.
    free: u32,
    in_vain: u32,
}

static PACE: EntryGuarded<Pace> = EntryGuarded::new(Pace { free: 0, in_vain: FIRST_IN_VAIN });

/// This rank takes a message of `source` next.
pub(super) fn favour(comm: &Communicator, source: i32) {
    let peers = comm.peers();
    if let Some(source) = u32::try_from(source).ok().filter(|source| *source < peers.size()) {
        endpoint().favour(peers.world_rank(source));
    }
}

/// A message to rank `to` of the job is about to be sent.
pub(super) fn before_sending(to: u32) {
    let is_free = PACE.with(|pace| {
        let is_free = pace.free > 0;
        pace.free = pace.free.saturating_sub(1);
        is_free
    });
    if is_free || !endpoint().is_flooded(to, MANY) {
        return;
    }
    let was_of_use = await_turn(to);
    PACE.with(|pace| {
        if was_of_use {
            pace.in_vain = FIRST_IN_VAIN;
        } else {
            pace.free = pace.in_vain;
            pace.in_vain = (2 * pace.in_vain).min(MOST_IN_VAIN);
        }
    });
}

/// Let others run until rank `to` has room, or wants this rank's message. False: that does not come about.
fn await_turn(to: u32) -> bool {
    let taken = || endpoint().node.rank(to).received_messages.load(Ordering::Relaxed);
    let begin = clock::monotonic_ns();
    let (mut seen, mut since) = (taken(), begin);
    while endpoint().is_flooded(to, MANY) {
        if !endpoint().yield_core() {
            yield_cpu();
        }
        let (count, now) = (taken(), clock::monotonic_ns());
        if count != seen {
            (seen, since) = (count, now);
        }
        if now - since > STANDSTILL || now - begin > LONGEST {
            return false;
        }
    }
    true
}
