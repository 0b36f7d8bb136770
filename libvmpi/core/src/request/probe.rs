//! Probing, and messages that a matched probe has taken.

use crate::calls;
use crate::chance::{self, Answer, Want};
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::Type;
use crate::errors::{Class, Error, Result, fail};
use crate::failure::Health;
use crate::guarded::EntryGuarded;
use crate::handle::Message;
use crate::lock;
use crate::p2p::{Slot, take_in};
use crate::process::endpoint;
use crate::request::{self, Sought};
use crate::status::Status;
use crate::table::Table;
use crate::tool::event;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::decisions::Entry;
use vmpi_shared::matching::envelope::Envelope;
use vmpi_shared::matching::queues::PROBE_ANY;

/// With the health of their communicators.
static MESSAGES: EntryGuarded<Table<Message, (Envelope, Rc<Health>)>> = EntryGuarded::new(Table::new());

fn status_of(envelope: &Envelope) -> Status {
    Status { source: envelope.source, tag: envelope.tag, error: 0, bytes: envelope.len, cancelled: false }
}

fn check(comm: &Communicator, source: i32) -> Result<()> {
    take_in::look();
    comm.health.check()?;
    let size = comm.peers().size();
    if source != consts::ANY_SOURCE && source != consts::PROC_NULL && (source < 0 || source as u32 >= size) {
        return fail(Class::Rank, format!("source {source} is not a rank of a group of {size}"));
    }
    Ok(())
}

/// Job rank of a source; `None`: any.
fn source_rank(comm: &Communicator, source: i32) -> Option<u32> {
    u32::try_from(source).ok().map(|source| comm.peers().world_rank(source))
}

/// Find a message; index in the unexpected queue.
fn find(comm: &Communicator, source: i32, tag: i32) -> Option<u32> {
    endpoint().queues().find_unexpected(comm.context, source, tag)
}

/// MPI_Iprobe: the status of a message that could be received now. A miss is a scheduling point.
pub fn iprobe(comm: &Communicator, source: i32, tag: i32, sought: Sought) -> Result<Option<Status>> {
    check(comm, source)?;
    if source == consts::PROC_NULL {
        return Ok(Some(Status::PROC_NULL));
    }
    let found = look(comm, source, tag, sought)?;
    Ok(found.map(|index| status_of(&endpoint().queues().unexpected[index as usize].envelope)))
}

/// MPI_Probe: as `iprobe`, but waits.
pub fn probe(comm: &Communicator, source: i32, tag: i32) -> Result<Status> {
    check(comm, source)?;
    if source == consts::PROC_NULL {
        return Ok(Status::PROC_NULL);
    }
    let index = wait_for(comm, source, tag)?;
    Ok(status_of(&endpoint().queues().unexpected[index as usize].envelope))
}

fn wait_for(comm: &Communicator, source: i32, tag: i32) -> Result<u32> {
    if event::is_wanted() && chance::is_on() {
        let want = chance::probing(comm, Want { source, tag });
        let index = wait_to_find(comm, want.source, want.tag)?;
        note_found(comm, Want { source, tag }, index);
        return Ok(index);
    }
    wait_to_find(comm, source, tag)
}

fn note_found(comm: &Communicator, asked: Want, index: u32) {
    let envelope = &endpoint().queues().unexpected[index as usize].envelope;
    chance::note_found(comm.context, asked, envelope.source, envelope.tag);
}

fn wait_to_find(comm: &Communicator, source: i32, tag: i32) -> Result<u32> {
    let weight = if lock::is_threaded() { PROBE_ANY } else { 1 };
    loop {
        let seen = request::progress();
        if let Some(index) = find(comm, source, tag) {
            return Ok(index);
        }
        comm.health.check_source(source_rank(comm, source))?;
        {
            let head = endpoint().queues().head;
            // Of several threads each may wait for another message: then any one wakes them.
            head.probe_active += weight;
            head.probe_context = comm.context;
            head.probe_source = source;
            head.probe_tag = tag;
        }
        request::block(seen, calls::CALL_PROBE, source, tag);
        endpoint().queues().head.probe_active -= weight;
    }
}

/// Is there one now? A miss lets others run and stays a miss: what they send meanwhile may belong to what the program does after it has seen other
/// things that they have done, too (the next round of NBX, after the end of this one's barrier).
fn look(comm: &Communicator, source: i32, tag: i32, sought: Sought) -> Result<Option<u32>> {
    if event::is_wanted() && chance::is_on() {
        return look_by_chance(comm, Want { source, tag });
    }
    request::progress_now();
    let found = find(comm, source, tag);
    if found.is_none() {
        if !request::message_missed() {
            request::note_message(sought);
        }
        comm.health.check_source_now_or_later(source_rank(comm, source))?;
    }
    Ok(found)
}

/// The same where a record says what is found, or a generator does, or it is written down.
#[cold]
fn look_by_chance(comm: &Communicator, asked: Want) -> Result<Option<u32>> {
    request::progress_now();
    let found = match chance::answer() {
        Some(Answer::No) => None,
        Some(Answer::Found(want)) => Some(wait_to_find(comm, want.source, want.tag)?),
        Some(other) => chance::left_the_record("what a probe finds", &other.told()),
        None if !chance::was_found(comm.context, asked) && chance::says_not_yet() => None,
        None => {
            let want = chance::probing(comm, asked);
            find(comm, want.source, want.tag)
        }
    };
    match found {
        Some(index) => note_found(comm, asked, index),
        None => {
            chance::note(&Entry::No(1));
            request::poll_missed();
            comm.health.check_source_now_or_later(source_rank(comm, asked.source))?;
        }
    }
    Ok(found)
}

fn take(comm: &Communicator, index: u32) -> (Message, Status) {
    let envelope = endpoint().queues().take_unexpected(index);
    if event::is_wanted() {
        chance::taken(envelope.context);
    }
    let status = status_of(&envelope);
    (MESSAGES.with(|messages| messages.insert((envelope, comm.health.clone()))), status)
}

/// MPI_Improbe.
pub fn improbe(comm: &Communicator, source: i32, tag: i32, sought: Sought) -> Result<Option<(Message, Status)>> {
    check(comm, source)?;
    if source == consts::PROC_NULL {
        return Ok(Some((Message::NO_PROC, Status::PROC_NULL)));
    }
    let found = look(comm, source, tag, sought)?;
    Ok(found.map(|index| take(comm, index)))
}

/// MPI_Mprobe.
pub fn mprobe(comm: &Communicator, source: i32, tag: i32) -> Result<(Message, Status)> {
    check(comm, source)?;
    if source == consts::PROC_NULL {
        return Ok((Message::NO_PROC, Status::PROC_NULL));
    }
    Ok(take(comm, wait_for(comm, source, tag)?))
}

/// Start receiving a matched message; `None` for MPI_MESSAGE_NO_PROC.
///
/// # Safety
/// `buf` must have room for `count` elements until the slot completes.
pub unsafe fn start_mrecv(message: Message, buf: *mut c_void, count: u64, ty: &Rc<Type>) -> Result<Option<Slot>> {
    if message == Message::NO_PROC {
        return Ok(None);
    }
    let envelope = MESSAGES.with(|messages| messages.remove(message));
    let Some((envelope, health)) = envelope else {
        return Err(Error::new(
            Class::Request,
            "the message handle names no matched message (MPI_MESSAGE_NULL, or received before)",
        ));
    };
    // SAFETY: passed on.
    unsafe { crate::p2p::recv::start_matched(health, &envelope, buf, count, ty) }.map(Some)
}
