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
    can_be_left(slot, target) && leave_announced(slot, target, function)
}

/// Is it a send that is under way, out of the program's memory or out of a copy?
fn can_be_left(slot: Slot, target: Target) -> bool {
    let shared = &endpoint().queues().slots[slot.0 as usize];
    let plain = shared.state == state::SENT && shared.flags & (FLAG_CROWDED | FLAG_ELEMENTS) == 0;
    plain && may_be_left(shared.capacity, target)
}

fn leave_announced(slot: Slot, target: Target, function: &'static str) -> bool {
    let bytes = endpoint().queues().slots[slot.0 as usize].capacity;
    let (Some(site), Some(place)) = (sites::here(bytes), free_place()) else { return false };
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
    leave(place, Left { slot, addr: 0, receives: false, is_guarded, function, target, site });
    true
}

/// Leave a request behind that the program waits for: a send, or a receive that nothing has matched yet (a carrier may have the old address of another one). The handle
/// is the program's no more then. False: wait for it. `asks`: it wants a status, which a send's says nothing in.
pub fn leave_request(request: Request, asks: bool, function: &'static str) -> bool {
    if !is_on() {
        return false;
    }
    let target = Target::Process;
    let Some((slot, receives)) = request::plain_message(request) else { return false };
    if p2p::is_over(slot) {
        return false;
    }
    let left = match receives {
        false => can_be_left(slot, target) && leave_announced(slot, target, function),
        true => !asks && leave_posted(slot, target, function),
    };
    if left {
        request::forget_message(request);
    }
    left
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
    leave(place, Left { slot, addr, receives: true, is_guarded: true, function, target, site });
    true
}

/// Waits have been looked at: if no request but those left behind is under way, the next one need not be.
pub fn note_waited() {
    if endpoint().queues().head.slots_live <= COUNT.load(Ordering::Relaxed) {
        lock::note_done(lock::LARGE);
    }
}
