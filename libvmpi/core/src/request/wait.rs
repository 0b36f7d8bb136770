//! How a rank waits: look, arm, suspend, look again.

use super::{Active, Entry, ORPHANS, Progress, REQUESTS, is_casualty, is_complete, is_inactive, progress};
use crate::errors::Result;
use crate::ft;
use crate::handle::Request;
use crate::lock;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::status::Status;
use crate::tool::event;
use vmpi_shared::matching::request::{FLAG_AWAITED, FLAG_WAKE, state};

/// What a rank waits in, for `vmpictl` (indices of `vmpi_shared::sched::report::CALLS`).
pub const CALL_RECV: u32 = 1;
pub const CALL_SEND: u32 = 2;
pub const CALL_WAIT: u32 = 3;
pub const CALL_PROBE: u32 = 4;
pub const CALL_COLLECTIVE: u32 = 5;
pub const CALL_WINDOW: u32 = 8;
pub const CALL_SPAWN: u32 = 9;
pub const CALL_CONNECT: u32 = 10;
pub const CALL_AGREE: u32 = 11;

/// A test or probe found nothing: let another rank of this core run, if one is READY. True if one ran.
pub fn poll_missed() -> bool {
    let ran = endpoint().yield_core();
    if ran {
        progress();
    }
    ran
}

/// Suspend until something has happened since `seen`. The caller has armed what it waits for and looks again afterwards.
pub fn block(seen: u64, call: u32, peer: i32, tag: i32) {
    lock::wait_outside(seen, || {
        if endpoint().is_stuck() {
            drowned();
        }
        event::around(peer, tag, || endpoint().suspend(call, peer, tag));
    });
}

/// What would end the wait can only come behind a message for which there is no room.
#[cold]
fn drowned() -> ! {
    let most = endpoint().job.config().unexpected;
    crate::process::abort(
        125,
        &format!(
            "this rank has {most} messages that no receive was posted for, which is the limit, and waits for another one: \
             post receives earlier, or let senders wait (MPI_Ssend)"
        ),
    )
}

/// Suspend until all `slots` are over. They stay taken.
pub fn wait_slots(slots: &[Slot], call: u32) {
    loop {
        let seen = progress();
        let open: Vec<Slot> = slots.iter().copied().filter(|slot| !p2p::is_over(*slot)).collect();
        if open.is_empty() {
            return;
        }
        await_slots(seen, &open, open.len() as u32, call);
    }
}

/// One suspension until `open` are over, or something else needs this rank; the caller looks again, and knows then which are.
pub(crate) fn wait_more(seen: u64, open: &[Slot], call: u32) {
    await_slots(seen, open, open.len() as u32, call);
}

/// As `wait_slots` for one message, without allocation: the hot path of MPI_Send and MPI_Recv.
#[inline]
pub fn wait_slot(slot: Slot, call: u32) -> Result<Status> {
    loop {
        let seen = progress();
        if let Some(result) = p2p::poll(slot) {
            return result;
        }
        if ft::in_doubt(slot) {
            p2p::abandon(slot);
            return Err(ft::failed_source());
        }
        await_slots(seen, &[slot], 1, call);
    }
}

/// One suspension: until `missing` of the open slots are over, or something else needs this rank.
fn await_slots(seen: u64, open: &[Slot], missing: u32, call: u32) {
    let (mut peer, mut tag) = (-1, -1);
    if let Some(first) = open.first() {
        let shared = &endpoint().queues().slots[first.0 as usize];
        // A send has no source; its receiver is told by its number in the job.
        peer = if shared.state == state::SENT { shared.from as i32 } else { shared.source };
        tag = shared.tag;
    }
    for slot in open {
        let endpoint = endpoint();
        let shared = &endpoint.queues().slots[slot.0 as usize];
        if shared.state == state::SENT {
            let receiver = shared.from;
            endpoint.await_receiver(receiver);
        }
    }
    if lock::is_threaded() {
        // Several threads wait for different things: any completion makes them look.
        set_flag(open, FLAG_WAKE);
    } else {
        set_flag(open, FLAG_AWAITED);
        endpoint().arm(missing.min(open.len() as u32));
    }
    block(seen, call, peer, tag);
    let queues = endpoint().queues();
    for slot in open {
        queues.slots[slot.0 as usize].flags &= !FLAG_AWAITED;
    }
}

/// Run an operation to its end: the blocking form of a collective.
pub fn run(operation: &mut dyn Progress) -> Result<Status> {
    let mut slots = Vec::new();
    loop {
        let seen = progress();
        if let Some(status) = operation.advance()? {
            return Ok(status);
        }
        slots.clear();
        operation.pending(&mut slots);
        slots.retain(|slot| !p2p::is_over(*slot));
        if !slots.is_empty() {
            let missing = if operation.needs_all() { slots.len() as u32 } else { 1 };
            await_slots(seen, &slots, missing, CALL_COLLECTIVE);
        }
    }
}

pub(super) fn set_flag(slots: &[Slot], flag: u32) {
    let queues = endpoint().queues();
    for slot in slots {
        queues.slots[slot.0 as usize].flags |= flag;
    }
}

/// How many of a set must be complete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Need {
    All,
    /// At least one (of those that are neither null nor inactive).
    One,
}

/// Suspend until enough of `requests` are complete; finishes none of them.
///
/// # Errors
/// `Class::Request` for a handle that names no request.
pub fn wait_for(requests: &[Request], need: Need) -> Result<()> {
    loop {
        let seen = progress();
        let mut open = Vec::new();
        let (mut complete, mut foreign) = (0, false);
        for request in requests {
            if is_complete(*request)? {
                complete += usize::from(need == Need::One && !is_inactive(*request)?);
                continue;
            }
            REQUESTS.with(|table| match table.get(*request).map(|entry| &entry.active) {
                Some(Active::Message(slot)) => open.push(*slot),
                // Its slots are flagged WAKE already, by `advance`.
                Some(Active::Collective(_)) => {}
                _ => foreign = true,
            });
        }
        if need == Need::All && requests.iter().any(|request| is_casualty(*request)) {
            return Ok(());
        }
        let over = match need {
            Need::All => open.is_empty() && !foreign && all_complete(requests)?,
            Need::One => complete > 0 || all_inactive(requests)?,
        };
        if over {
            return Ok(());
        }
        if foreign && !lock::is_threaded() {
            // A generalized request is completed by the program itself, from a thread that may not call MPI at the same
            // time: nothing here can be woken by it, so look again in a moment.
            if !poll_missed() {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            continue;
        }
        let missing = if need == Need::All { open.len() as u32 } else { 1 };
        await_slots(seen, &open, missing, CALL_WAIT);
    }
}

fn all_complete(requests: &[Request]) -> Result<bool> {
    for request in requests {
        if !is_complete(*request)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn all_inactive(requests: &[Request]) -> Result<bool> {
    for request in requests {
        if !is_inactive(*request)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Look once whether enough of `requests` are complete; a miss is a scheduling point.
pub fn test_for(requests: &[Request], need: Need) -> Result<bool> {
    progress();
    for attempt in 0..2 {
        let satisfied = match need {
            Need::All => requests.iter().any(|request| is_casualty(*request)) || all_complete(requests)?,
            Need::One => {
                let mut any = all_inactive(requests)?;
                for request in requests {
                    any |= is_complete(*request)? && !is_inactive(*request)?;
                }
                any
            }
        };
        if satisfied {
            return Ok(true);
        }
        if attempt == 0 && !poll_missed() {
            break;
        }
    }
    Ok(false)
}

/// MPI_Comm_disconnect: let messages on the communicator with this context complete; receives that nothing has matched do not
/// count. The requests stay for MPI_Wait.
pub fn finish_on(context: u32) {
    loop {
        let seen = progress();
        let mut slots = Vec::new();
        REQUESTS.with(|requests| {
            for (_, entry) in requests.iter() {
                match &entry.active {
                    Active::Message(slot) => slots.push(*slot),
                    Active::Collective(operation) => operation.pending(&mut slots),
                    _ => {}
                }
            }
        });
        p2p::buffered::pending(&mut slots);
        let queues = endpoint().queues();
        slots.retain(|slot| {
            let shared = &queues.slots[slot.0 as usize];
            shared.context & !1 == context && shared.state != state::POSTED && !p2p::is_over(*slot)
        });
        if slots.is_empty() {
            return;
        }
        await_slots(seen, &slots, slots.len() as u32, CALL_WAIT);
    }
}

/// MPI_Finalize: let buffered messages and freed requests leave.
pub fn finish_buffered() {
    p2p::buffered::flush_all();
    loop {
        let seen = progress();
        let open = ORPHANS.with(|list| list.clone());
        let slots: Vec<Slot> = REQUESTS.with(|requests| {
            open.iter()
                .filter_map(|request| match requests.get(*request) {
                    Some(Entry { active: Active::Message(slot), receive: false, .. }) => Some(*slot),
                    _ => None,
                })
                .collect()
        });
        if slots.is_empty() {
            return;
        }
        await_slots(seen, &slots, slots.len() as u32, CALL_SEND);
    }
}
