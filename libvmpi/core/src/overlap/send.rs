//! Sends, and requests whose wait is left behind.

use super::guard::{self, Access};
use super::{COUNT, Left, arm, free_place, is_on, is_shared, leave, may_be_left, sites};
use crate::errhandler::Target;
use crate::handle::Request;
use crate::lock;
use crate::p2p::{self, Slot, Source};
use crate::process::endpoint;
use crate::request;
use std::sync::atomic::Ordering;
use vmpi_shared::matching::request::{FLAG_CROWDED, FLAG_ELEMENTS, state};

/// Leave a send behind that has been announced: only writing to its buffer waits. False: wait for it.
pub fn leave_send(slot: Slot, target: Target, function: &'static str) -> bool {
    request::progress();
    leave_if_worth(slot, target, function)
}

fn leave_if_worth(slot: Slot, target: Target, function: &'static str) -> bool {
    can_be_left(slot, target)
        && sites::here(bytes_of(slot)).is_some_and(|site| leave_announced(slot, target, function, site))
}

/// The same for a part of a call that has been judged to be worth it.
pub(super) fn leave_started(slot: Slot, target: Target, function: &'static str, site: Option<sites::Place>) -> bool {
    !p2p::is_over(slot) && can_be_left(slot, target) && leave_announced(slot, target, function, site)
}

fn bytes_of(slot: Slot) -> u64 {
    endpoint().queues().slots[slot.0 as usize].capacity
}

/// Is it a send that is under way, out of the program's memory or out of a copy?
fn can_be_left(slot: Slot, target: Target) -> bool {
    let shared = &endpoint().queues().slots[slot.0 as usize];
    let plain = shared.state == state::SENT && shared.flags & (FLAG_CROWDED | FLAG_ELEMENTS) == 0;
    plain && may_be_left(shared.capacity, target)
}

fn leave_announced(slot: Slot, target: Target, function: &'static str, site: Option<sites::Place>) -> bool {
    let bytes = bytes_of(slot);
    let Some(place) = free_place() else { return false };
    let addr = endpoint().queues().slots[slot.0 as usize].addr;
    // What has been packed is this library's: the program may do what it likes with its own.
    let is_guarded = match p2p::source_of(slot) {
        Source::Dense => true,
        Source::Packed => false,
        Source::Scattered => return false,
    };
    if is_guarded && is_shared(addr, bytes, Some(slot), false) {
        return false;
    }
    if is_guarded && !sites::timed(site, || arm(place, addr, bytes, Access::Write)) {
        sites::refused(site);
        return false;
    }
    let site = sites::leaves(site);
    leave(place, Left { slot, receives: false, is_guarded, function, target, site, at: sites::caller() });
    true
}

/// Leave a request behind that the program waits for: a send, or a receive that nothing has matched yet (a carrier may have the old address of another one). What
/// the program's handle is then. `None`: wait for it. `asks`: it wants a status, which a send's says nothing in.
pub fn leave_request(request: Request, asks: bool, function: &'static str) -> Option<Request> {
    if !is_on() {
        return None;
    }
    let target = Target::Process;
    let (slot, receives) = request::plain_message(request)?;
    if p2p::is_over(slot) {
        return None;
    }
    let left = match receives {
        false => leave_if_worth(slot, target, function),
        true => !asks && leave_posted(slot, target, function),
    };
    left.then(|| request::forget_message(request))
}

fn leave_posted(slot: Slot, target: Target, function: &'static str) -> bool {
    let shared = &endpoint().queues().slots[slot.0 as usize];
    let (addr, len) = (shared.addr, shared.capacity);
    if shared.state != state::POSTED || !p2p::is_dense_receive(slot) || !may_be_left(len, target) {
        return false;
    }
    let (Some(site), Some(place)) = (sites::here(len), free_place()) else { return false };
    if is_shared(addr, len, Some(slot), true) {
        return false;
    }
    if !sites::timed(site, || arm(place, addr, len, Access::Away)) {
        sites::refused(site);
        return false;
    }
    // Nobody has these queues now but this rank, and nothing has matched since.
    endpoint().queues().slots[slot.0 as usize].addr = guard::landing(addr as usize) as u64;
    let site = sites::leaves(site);
    leave(place, Left { slot, receives: true, is_guarded: true, function, target, site, at: sites::caller() });
    true
}

/// Waits have been looked at: if no request but those left behind is under way, the next one need not be.
pub fn note_waited() {
    if endpoint().queues().head.slots_live <= COUNT.load(Ordering::Relaxed) {
        lock::note_done(lock::LARGE);
    }
}
