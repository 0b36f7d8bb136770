//! Letting messages leave: those of a buffer, of a communicator, of freed requests.

use crate::calls::{self, CALL_SEND, CALL_WAIT};
use crate::errors::Result;
use crate::p2p::buffered::{Given, Owner};
use crate::p2p::{self, Slot, buffered};
use crate::process::endpoint;
use crate::request;
use crate::request::progress::{ORPHANS, progress};
use crate::request::table::{Active, Entry, Progress, REQUESTS};
use crate::request::wait::await_slots;
use crate::status::Status;
use vmpi_shared::matching::request::state;

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
        buffered::pending(&mut slots);
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
    flush_all();
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

/// The counterpart of [`buffered::attach`]: waits until all buffered messages have left; gives the buffer back.
///
/// # Errors
/// `Class::Buffer` if none is attached.
pub fn detach_buffer(owner: Owner) -> Result<Given> {
    flush(owner)?;
    buffered::give_back(owner)
}

/// Wait until the messages that are in the buffer now have left; at once if there is none.
///
/// # Errors
/// Those of the messages.
pub fn flush(owner: Owner) -> Result<()> {
    request::run(&mut Flush::of(owner)).map(drop)
}

/// A request that completes when the messages that are in the buffer now have left.
pub fn iflush(owner: Owner) -> crate::handle::Request {
    request::insert(Box::new(Flush::of(owner)))
}

/// MPI_Finalize: wait until all buffered messages have left.
pub fn flush_all() {
    for owner in buffered::owners() {
        // The buffer exists, and nothing else can fail.
        let _ = flush(owner);
    }
    let slots = buffered::take_orphans();
    request::wait_slots(&slots, calls::CALL_SEND);
    for slot in slots {
        p2p::poll(slot);
    }
}

/// Waits for the sends of one buffer up to a certain one.
struct Flush {
    owner: Owner,
    until: u64,
}

impl Flush {
    fn of(owner: Owner) -> Flush {
        Flush { owner, until: buffered::serial() }
    }
}

impl Progress for Flush {
    fn advance(&mut self) -> Result<Option<Status>> {
        Ok(buffered::have_left(self.owner, self.until).then_some(Status::EMPTY))
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        buffered::pending_until(self.owner, self.until, slots);
    }
}
