//! What deaths and revocations mean for a message.
//!
//! A receiver may have read a buffer that its owner, who had given the send up, already used again; so who has copied from another's memory looks, before
//! it believes the data, whether the sender may have given up.

use super::health::{Health, error};
use crate::errors::{Class, Error, Result};
use crate::plane::Plane;
use crate::process::endpoint;
use std::rc::Rc;
use vmpi_shared::matching::request::{FLAG_COPIED, NOBODY, outcome};

pub(crate) fn plane_of(context: u32) -> Plane {
    if context & 1 == 0 { Plane::User } else { Plane::Collective }
}

pub(crate) fn outcome_of(class: Class) -> u32 {
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

/// What is to become of a send that is about to be started.
#[inline]
pub(crate) fn doomed_send(health: &Health, plane: Plane, tag: i32, to: u32) -> Result<Option<u32>> {
    if super::is_quiet() { Ok(None) } else { examine_send(health, plane, tag, to) }
}

#[cold]
fn examine_send(health: &Health, plane: Plane, tag: i32, to: u32) -> Result<Option<u32>> {
    health.check()?;
    Ok(health.verdict(plane, tag, Some(to)).map(outcome_of))
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
