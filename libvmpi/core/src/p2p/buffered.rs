//! The buffers of buffered sends: of the process, of a session, of a communicator (MPI 4.1 section 3.6).
//!
//! A buffer is a promise of so many bytes, or of as many as it takes (MPI_BUFFER_AUTOMATIC). Small buffered sends leave
//! through the slab at once. Large ones are packed into memory of their own, counted against the buffer, and freed when
//! the receiver has taken them.

use super::slot::{self, Slot};
use super::take_in::take_in;
use crate::comm::Communicator;
use crate::errors::{Class, Error, Result};
use crate::guarded::EntryGuarded;
use crate::handle::{Comm, Handle, Session};
use std::ffi::c_void;

/// What a buffer is attached to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    Process,
    Session(Session),
    Comm(Comm),
}

impl Owner {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Owner::Process => "the process",
            Owner::Session(_) => "the session",
            Owner::Comm(_) => "the communicator",
        }
    }
}

/// A buffer as the program gave it.
#[derive(Copy, Clone, Debug)]
pub struct Given {
    /// As it came, so that detaching gives the same back.
    pub addr: *mut c_void,
    pub bytes: u64,
    /// MPI_BUFFER_AUTOMATIC: the library takes the memory it needs.
    pub automatic: bool,
}

/// A send that has left the program but not this process.
struct Pending {
    slot: Slot,
    bytes: u64,
    serial: u64,
}

struct Buffer {
    owner: Owner,
    given: Given,
    pending: Vec<Pending>,
}

impl Buffer {
    /// Forget the sends that have left.
    fn reap(&mut self) {
        self.pending.retain(|send| slot::poll(send.slot).is_none());
    }
}

struct State {
    buffers: Vec<Buffer>,
    /// Of buffers that are gone with their communicator.
    orphans: Vec<Pending>,
    /// Buffered sends so far that had to wait.
    serial: u64,
}

static STATE: EntryGuarded<State> = EntryGuarded::new(State { buffers: Vec::new(), orphans: Vec::new(), serial: 0 });

impl State {
    fn of(&mut self, owner: Owner) -> Option<&mut Buffer> {
        self.buffers.iter_mut().find(|buffer| buffer.owner == owner)
    }
}

fn none_attached(owner: Owner) -> Error {
    Error::new(Class::Buffer, format!("no buffer is attached to {}", owner.describe()))
}

/// MPI_Buffer_attach, MPI_Comm_attach_buffer, MPI_Session_attach_buffer.
///
/// # Errors
/// `Class::Buffer` if one is attached already.
pub fn attach(owner: Owner, given: Given) -> Result<()> {
    STATE.with(|state| match state.of(owner) {
        Some(old) => Err(Error::new(
            Class::Buffer,
            format!("{} has a buffer of {} bytes already; detach it first", owner.describe(), old.given.bytes),
        )),
        None => {
            state.buffers.push(Buffer { owner, given, pending: Vec::new() });
            Ok(())
        }
    })
}

/// Has this owner a buffer?
pub fn is_attached(owner: Owner) -> bool {
    STATE.with(|state| state.of(owner).is_some())
}

/// The buffer is the program's again; what is still in it leaves all the same.
///
/// # Errors
/// `Class::Buffer` if none is attached.
pub(crate) fn give_back(owner: Owner) -> Result<Given> {
    STATE.with(|state| {
        let index =
            state.buffers.iter().position(|buffer| buffer.owner == owner).ok_or_else(|| none_attached(owner))?;
        let buffer = state.buffers.swap_remove(index);
        state.orphans.extend(buffer.pending);
        Ok(buffer.given)
    })
}

/// All that have a buffer.
pub(crate) fn owners() -> Vec<Owner> {
    STATE.with(|state| state.buffers.iter().map(|buffer| buffer.owner).collect())
}

/// The sends of buffers that are gone, which are the caller's to finish.
pub(crate) fn take_orphans() -> Vec<Slot> {
    STATE.with(|state| state.orphans.drain(..).map(|send| send.slot).collect())
}

/// Buffered sends so far that had to wait.
pub(crate) fn serial() -> u64 {
    STATE.with(|state| state.serial)
}

/// Have the sends of this buffer up to number `until` left?
pub(crate) fn have_left(owner: Owner, until: u64) -> bool {
    STATE.with(|state| {
        let Some(buffer) = state.of(owner) else { return true };
        buffer.reap();
        buffer.pending.iter().all(|send| send.serial > until)
    })
}

/// Those that have not.
pub(crate) fn pending_until(owner: Owner, until: u64, slots: &mut Vec<Slot>) {
    STATE.with(|state| {
        let Some(buffer) = state.of(owner) else { return };
        slots.extend(buffer.pending.iter().filter(|send| send.serial <= until).map(|send| send.slot));
    });
}

/// The buffered sends under way.
pub fn pending(slots: &mut Vec<Slot>) {
    STATE.with(|state| {
        let buffered = state.buffers.iter().flat_map(|buffer| &buffer.pending);
        slots.extend(buffered.chain(&state.orphans).map(|send| send.slot));
    });
}

/// The communicator or session is gone, and its buffer with it; what is in it still leaves.
pub fn forget(owner: Owner) {
    STATE.with(|state| {
        if let Some(index) = state.buffers.iter().position(|buffer| buffer.owner == owner) {
            let buffer = state.buffers.swap_remove(index);
            state.orphans.extend(buffer.pending);
        }
        state.orphans.retain(|send| slot::poll(send.slot).is_none());
    });
}

/// The buffer that serves a buffered send on `comm`, with room for `bytes` more: the communicator's own, else its
/// session's, else the process's.
pub(super) fn reserve(comm: &Communicator, bytes: u64) -> Result<Owner> {
    try_reserve(comm, bytes).or_else(|_| {
        // That receivers have taken messages may lie in the inbox.
        take_in();
        try_reserve(comm, bytes)
    })
}

fn try_reserve(comm: &Communicator, bytes: u64) -> Result<Owner> {
    STATE.with(|state| {
        let owner = owner_for(state, comm);
        let Some(buffer) = state.of(owner) else {
            let places = match comm.session() {
                Session::NULL => "the communicator or the process",
                _ => "the communicator, its session or the process",
            };
            return Err(Error::new(
                Class::Buffer,
                format!("a buffered send of {bytes} bytes needs a buffer, and none is attached to {places}"),
            ));
        };
        if buffer.given.automatic {
            return Ok(owner);
        }
        buffer.reap();
        let used: u64 = buffer.pending.iter().map(|send| send.bytes).sum();
        let have = buffer.given.bytes;
        if bytes > have.saturating_sub(used) {
            return Err(Error::new(
                Class::Buffer,
                format!(
                    "a buffered send of {bytes} bytes does not fit: the attached buffer has {have} bytes, {used} of \
                     them in use"
                ),
            ));
        }
        Ok(owner)
    })
}

/// Whose buffer a send on `comm` uses. That of MPI_Buffer_attach serves communicators of sessions, too, whose session
/// has none.
fn owner_for(state: &mut State, comm: &Communicator) -> Owner {
    let own = Owner::Comm(comm.handle);
    if state.of(own).is_some() {
        return own;
    }
    match comm.session() {
        Session::NULL => Owner::Process,
        session if state.of(Owner::Session(session)).is_some() => Owner::Session(session),
        _ => Owner::Process,
    }
}

/// A buffered send is under way.
pub(super) fn detach(owner: Owner, slot: Slot, bytes: u64) {
    STATE.with(|state| {
        state.serial += 1;
        let send = Pending { slot, bytes, serial: state.serial };
        match state.of(owner) {
            Some(buffer) => buffer.pending.push(send),
            None => state.orphans.push(send),
        }
    });
}
