//! Messages that have been taken out of the inbox and are not to be seen yet: their receiver holds them back, in its own memory, as if they were still
//! under way (`vmpirun --chaos`). Only it matches for itself then.

use super::{Outgoing, Queues};
use crate::matching::envelope::Envelope;
use crate::matching::mover::Mover;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In `QueueHead::direct_room`, which is never so large: what comes is held back.
pub const HOLDS: u32 = u32::MAX;

/// What this process, the only owner of queues in it, holds back, in the order in which it came.
static HELD: Mutex<VecDeque<Envelope>> = Mutex::new(VecDeque::new());

pub fn held() -> MutexGuard<'static, VecDeque<Envelope>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queues<'_> {
    /// A message has come to a rank that holds them back. It stays in the inbox until that one sees to it.
    #[cold]
    pub(super) fn hold(&mut self, envelope: &Envelope, mover: &mut dyn Mover) -> bool {
        if !mover.is_owner() {
            self.head.wake = 1;
            return false;
        }
        let mut copy = Envelope::EMPTY;
        envelope.copy_to(&mut copy);
        held().push_back(copy);
        true
    }

    /// Match or queue a message that was held back. False: there is no room for it.
    pub fn admit(&mut self, envelope: &Envelope, mover: &mut dyn Mover, out: &mut Outgoing) -> bool {
        let mark = std::mem::take(&mut self.head.direct_room);
        let done = self.accept(envelope, mover, out);
        self.head.direct_room = mark;
        done
    }
}
