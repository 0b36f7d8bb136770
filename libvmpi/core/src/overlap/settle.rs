//! How a call that has been left behind ends.

use super::guard;
use super::{COUNT, Left, MOST, TABLE, pages, sites};
use crate::calls::{CALL_LEFT_RECV, CALL_LEFT_SEND};
use crate::lock;
use crate::p2p;
use crate::process::{self, endpoint};
use crate::raise;
use crate::request;
use std::sync::atomic::Ordering;
use vmpi_shared::sched::report::LEFT_CALLS;
use vmpi_shared::sched::{RunState, Wait};

/// The program touches what `ticket` guards: wait for it, as in MPI. Called in a signal's handler, in the middle of any instruction of the program, malloc's included, or of a system call of its.
pub(super) fn touched(ticket: u32, addr: usize, ip: usize) {
    if get(ticket as usize).is_none() {
        // A call that is still under way guards it: nobody could wait for that here.
        let why = format!(
            "{} has not returned, and its buffer was touched (address {addr:#x}, by the instruction at {ip:#x})",
            process::called()
        );
        process::abort(1, &why);
    }
    if is_switching() {
        let why = format!(
            "what a call that was left behind guards has been touched while this rank waited in MPI or left it (address {addr:#x}, by the instruction at {ip:#x}): a fault of \
             vmpi's. VMPI_OVERLAP=off does without such calls"
        );
        process::abort(125, &why);
    }
    let entered = lock::enter_with(|| ());
    process::scheduling_point();
    settle(ticket as usize);
    drop(entered);
}

/// Is this rank at a place where it cannot wait: on its way out of its core or back, or lending its queues?
fn is_switching() -> bool {
    let (node, me) = (&endpoint().node, endpoint().me);
    let runs = matches!(node.state(me), RunState::Running | RunState::Away | RunState::Adopted);
    let waits = node.rank(me).wait_kind.load(Ordering::Relaxed) != Wait::None as u32;
    !runs || waits || (lock::is_at_work() && lock::is_outside())
}

/// Wait for all calls that have been left behind.
pub fn settle_all() {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    reap();
    (0..MOST).for_each(settle);
}

/// An MPI call that is about to reach for `len` bytes at `addr`, to write there or only to read, and whose other arguments touch nothing of the program's: end what is over, and
/// wait for what it would touch.
pub fn make_way(addr: u64, len: u64, writes: bool) {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    reap();
    if len != 0 && COUNT.load(Ordering::Relaxed) != 0 {
        // What others bring comes to whole pages.
        let (start, end) = pages(addr, len);
        guard::wait_for_range(start as usize, (end - start) as usize, writes);
    }
}

/// End what is over.
pub(super) fn reap() {
    request::progress();
    for place in 0..MOST {
        if get(place).is_some_and(|left| p2p::is_over(left.slot)) {
            finish(place, true);
        }
    }
}

fn get(place: usize) -> Option<Left> {
    TABLE.with(|table| table.get(place).copied().flatten())
}

/// Wait for one, if it is there.
fn settle(place: usize) {
    let Some(Left { slot, receives, function, at, .. }) = get(place) else { return };
    process::calling(function);
    let call = if receives { CALL_LEFT_RECV } else { CALL_LEFT_SEND };
    tell(function, at);
    let mut was_over = true;
    loop {
        let seen = request::progress();
        // The program may have touched it in a handler of its own while this waited.
        if get(place).is_none_or(|left| left.slot != slot) {
            return;
        }
        if p2p::is_over(slot) {
            return finish(place, was_over);
        }
        was_over = false;
        request::wait_more(seen, &[slot], call);
    }
}

/// Tell those who look from outside what this rank waits for.
fn tell(function: &str, at: usize) {
    let plain = function.strip_suffix("_c").unwrap_or(function);
    let call = LEFT_CALLS.iter().position(|known| *known == plain).unwrap_or(0);
    let endpoint = endpoint();
    let whereabouts = endpoint.node.whereabouts(endpoint.me);
    whereabouts.left_at.store(at as u64, Ordering::Relaxed);
    whereabouts.left_call.store(call as u32, Ordering::Relaxed);
}

/// Its message is over: the buffer is the program's again. An error ends the job, or it would not have been left behind.
fn finish(place: usize, was_over: bool) {
    let Some(left) = TABLE.with(|table| table[place].take()) else { return };
    if COUNT.fetch_sub(1, Ordering::Relaxed) == 1 {
        lock::note_done(lock::LEFT);
    }
    // What is still to be copied goes to the landing: the first and the last page may be another guard's, too.
    let outcome = p2p::poll(left.slot);
    sites::timed(left.site, || {
        if left.is_guarded {
            guard::disarm(place as u32);
        }
    });
    sites::ended(left.site, was_over);
    if let Some(Err(error)) = outcome {
        raise::invoke(left.function, left.target, error);
    }
}
