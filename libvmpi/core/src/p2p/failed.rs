//! Messages under way that deaths and revocations end.
//!
//! A message that can no longer complete ends with its error. A send that ends so while its receiver lives stays in its slot until the
//! receiver's answer comes, if it comes: the answer must not be taken for another message's.
//! A receive into which this node's carrier may be writing ends when the carrier says that it does so no more.

use crate::failure;
use crate::failure::verdict::{outcome_of, plane_of};
use crate::p2p::{self, Slot};
use crate::plane::Plane;
use crate::process::endpoint;
use vmpi_shared::matching::envelope::kind;
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::{ANY_SOURCE, FLAG_IN_DOUBT, FLAG_KEPT, NOBODY, outcome, state};

/// End all messages that can no longer complete.
pub(crate) fn sweep() {
    let used = endpoint().queues().head.slots_used;
    for index in 0..used {
        examine(Slot(index));
    }
}

/// End the message in this slot if it can no longer complete; say so if a wildcard receive may wait in vain.
fn examine(slot: Slot) {
    let queues = endpoint().queues();
    let shared = &queues.slots[slot.0 as usize];
    let (what, context, tag) = (shared.state, shared.context, shared.tag);
    if !matches!(what, state::POSTED | state::SENT | state::TO_PUSH | state::PULLING) {
        return;
    }
    let Some(health) = p2p::health_of(slot) else { return };
    let peer = (shared.from != NOBODY).then_some(shared.from);
    let Some(class) = health.verdict(plane_of(context), tag, peer) else {
        if what == state::POSTED && shared.source == ANY_SOURCE {
            let doubt = plane_of(context) == Plane::User && health.has_unacknowledged();
            let flags = &mut endpoint().queues().slots[slot.0 as usize].flags;
            *flags = if doubt { *flags | FLAG_IN_DOUBT } else { *flags & !FLAG_IN_DOUBT };
        }
        return;
    };
    let mut queues = endpoint().queues();
    let peer_lives = peer.is_some_and(|peer| endpoint().node.failure(peer).is_none());
    if let Some(peer) = peer.filter(|peer| what == state::PULLING && peer_lives && endpoint().node.is_remote(*peer)) {
        return let_go(slot, peer, outcome_of(class));
    }
    if what != state::POSTED && peer_lives {
        queues.slots[slot.0 as usize].flags |= FLAG_KEPT;
    }
    queues.fail(slot.0, outcome_of(class));
}

/// Ask the carrier to write nothing more of what comes from `peer` into the buffer of this receive, which then ends. Death story: the carrier's end is
/// the job's.
#[cold]
fn let_go(slot: Slot, peer: u32, outcome: u32) {
    let flags = &mut endpoint().queues().slots[slot.0 as usize].flags;
    // Kept also if it is over before the answer comes.
    if *flags & FLAG_KEPT == 0 {
        *flags |= FLAG_KEPT;
        let mut envelope = answer(kind::LET_GO, slot.0);
        envelope.from = endpoint().me;
        envelope.set_peer_request(outcome);
        endpoint().deliver(peer, &envelope);
    }
}

/// A receive has just been posted: is there anybody left to wait for?
#[inline]
pub(crate) fn check_posted(slot: Slot) {
    if !failure::is_quiet() {
        examine(slot);
    }
}

/// May this wildcard receive wait in vain?
#[inline]
pub(crate) fn in_doubt(slot: Slot) -> bool {
    !failure::is_quiet() && {
        let shared = &endpoint().queues().slots[slot.0 as usize];
        shared.state == state::POSTED && shared.flags & FLAG_IN_DOUBT != 0
    }
}

/// Has this message been ended by a failure or a revocation?
pub(crate) fn is_casualty(slot: Slot) -> bool {
    let shared = &endpoint().queues().slots[slot.0 as usize];
    in_doubt(slot) || matches!(shared.outcome, outcome::PEER_FAILED | outcome::REVOKED)
}
