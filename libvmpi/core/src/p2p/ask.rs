//! Requests that are no messages: a carrier answers them (one-sided communication over nodes), or the network of virtual time.

use super::slot::{self, Local, Slot};
use crate::errors::Result;
use crate::process::endpoint;
use vmpi_shared::matching::request::{ASKED, FLAG_KEPT, state};

/// A request about rank `to` of the job; the answer is a word, or `data` that the carriers put in place.
///
/// # Errors
/// `Class::NoMem` if too many are under way.
pub(crate) fn open(to: u32, data: bool) -> Result<Slot> {
    let slot = slot::take(Local::default())?;
    begin(slot, to, data);
    Ok(slot)
}

/// As [`open`], for what must be asked although too many are under way; the answer is a word. `None`: such a one is under way, too.
pub(crate) fn open_spare(to: u32) -> Option<Slot> {
    let slot = slot::take_spare(Local::default())?;
    begin(slot, to, false);
    Some(slot)
}

fn begin(slot: Slot, to: u32, data: bool) {
    let queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    shared.state = if data { state::PULLING } else { state::SENT };
    (shared.context, shared.tag) = ASKED;
    (shared.from, shared.source) = (to, to as i32);
}

/// The outcome if it has been answered; then the request is free.
pub(crate) fn close(slot: Slot) -> Option<u32> {
    close_with_number(slot).map(|(outcome, _)| outcome)
}

/// As [`close`], with the number that came with the outcome.
pub(crate) fn close_with_number(slot: Slot) -> Option<(u32, u64)> {
    let mut queues = endpoint().queues();
    if !queues.is_over(slot.0) {
        return None;
    }
    let shared = &queues.slots[slot.0 as usize];
    let answer = (shared.outcome, shared.remote);
    queues.release_slot(slot.0);
    Some(answer)
}

/// It is waited for no more; the request is free once it has been answered.
pub(crate) fn abandon(slot: Slot) {
    let mut queues = endpoint().queues();
    let shared = &mut queues.slots[slot.0 as usize];
    (shared.state, shared.flags) = (state::COMPLETE, shared.flags | FLAG_KEPT);
    queues.release_slot(slot.0);
}

/// Nothing has been asked: the request is free.
pub(crate) fn give_up(slot: Slot) {
    endpoint().queues().free_slot(slot.0);
}
