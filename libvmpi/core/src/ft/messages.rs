//! What deaths and revocations do to messages under way.
//!
//! A message that can no longer complete ends with its error. A send that ends so while its receiver lives stays in its slot until the
//! receiver's answer comes, if it comes: the answer must not be taken for another message's. The receiver may have read a buffer that
//! its owner already used again; so who has copied from another's memory looks, before it believes the data, whether the sender may have given up.
//! A receive into which this node's carrier may be writing ends when the carrier says that it does so no more.

use super::health::{Health, error};
use crate::errors::{Class, Error, Result};
use crate::p2p::{self, Slot};
use crate::plane::Plane;
use crate::process::endpoint;
use std::rc::Rc;
use vmpi_shared::matching::envelope::kind;
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::{ANY_SOURCE, FLAG_COPIED, FLAG_IN_DOUBT, FLAG_KEPT, NOBODY, outcome, state};

fn plane_of(context: u32) -> Plane {
    if context & 1 == 0 { Plane::User } else { Plane::Collective }
}

fn outcome_of(class: Class) -> u32 {
    if class == Class::Revoked { outcome::REVOKED } else { outcome::PEER_FAILED }
}

/// The error of a message that ended with this outcome.
pub(crate) fn error_of(outcome: u32, peer: u32) -> Option<Error> {
    match outcome {
        outcome::REVOKED => Some(error(Class::Revoked, None)),
        outcome::PEER_FAILED => {
            let failed = (peer != NOBODY && endpoint().node.failure(peer).is_some()).then_some(peer);
            Some(error(Class::ProcFailed, failed))
        }
        _ => None,
    }
}

/// The error number in the outcome of something that failed otherwise.
pub(crate) fn errno_of(outcome: u32) -> i32 {
    let errno = (outcome & 0xffff) as i32;
    if errno == libc::ESRCH {
        super::await_verdict();
    }
    errno
}

/// End all messages that can no longer complete.
pub(super) fn sweep() {
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
    if !super::is_quiet() {
        examine(slot);
    }
}

/// What is to become of a send that is about to be started.
#[inline]
pub(crate) fn doomed_send(health: &Health, plane: Plane, tag: i32, to: u32) -> Result<Option<u32>> {
    super::look();
    if super::is_quiet() { Ok(None) } else { examine_send(health, plane, tag, to) }
}

#[cold]
fn examine_send(health: &Health, plane: Plane, tag: i32, to: u32) -> Result<Option<u32>> {
    health.check()?;
    Ok(health.verdict(plane, tag, Some(to)).map(outcome_of))
}

/// May this wildcard receive wait in vain?
#[inline]
pub(crate) fn in_doubt(slot: Slot) -> bool {
    !super::is_quiet() && {
        let shared = &endpoint().queues().slots[slot.0 as usize];
        shared.state == state::POSTED && shared.flags & FLAG_IN_DOUBT != 0
    }
}

/// Has this message been ended by a failure or a revocation?
pub(crate) fn is_casualty(slot: Slot) -> bool {
    let shared = &endpoint().queues().slots[slot.0 as usize];
    in_doubt(slot) || matches!(shared.outcome, outcome::PEER_FAILED | outcome::REVOKED)
}

/// A receive is complete: is its data what was sent? Not for certain if it was copied from the memory of a sender that may have given
/// the operation up.
#[inline]
pub(crate) fn check_received(flags: u32, context: u32, tag: i32, health: Option<&Rc<Health>>) -> Result<()> {
    let Some(health) = health.filter(|_| flags & FLAG_COPIED != 0) else { return Ok(()) };
    check_copied(context, tag, health)
}

/// A copy from or to another's memory has been made, or has failed: has that one given the operation up, and its memory with it?
pub(crate) fn check_copied(context: u32, tag: i32, health: &Health) -> Result<()> {
    super::learn();
    health.check()?;
    if health.needs_all(plane_of(context), tag) { health.check_all() } else { Ok(()) }
}
