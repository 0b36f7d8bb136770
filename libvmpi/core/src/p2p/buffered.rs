//! MPI_Bsend's buffer: how much of it is promised.
//!
//! Small buffered sends leave through the slab at once. Large ones are packed into memory of their own, counted
//! against the attached buffer, and freed when the receiver has taken them.

use super::slot::{self, Slot};
use crate::errors::{Class, Error, Result};
use crate::giant::Giant;
use crate::request;
use std::ffi::c_void;

struct Attached {
    addr: *mut c_void,
    bytes: u64,
}

struct State {
    attached: Option<Attached>,
    /// Sends under way and their bytes.
    pending: Vec<Slot>,
    used: u64,
}

static STATE: Giant<State> = Giant::new(State { attached: None, pending: Vec::new(), used: 0 });

/// MPI_Buffer_attach.
///
/// # Errors
/// `Class::Buffer` if one is attached already.
pub fn attach(addr: *mut c_void, bytes: u64) -> Result<()> {
    STATE.with(|state| match &state.attached {
        Some(old) => Err(Error::new(
            Class::Buffer,
            format!("a buffer of {} bytes is attached already; detach it first", old.bytes),
        )),
        None => {
            state.attached = Some(Attached { addr, bytes });
            Ok(())
        }
    })
}

/// MPI_Buffer_detach: waits until all buffered messages have left; gives address and size back.
///
/// # Errors
/// `Class::Buffer` if none is attached.
pub fn detach_buffer() -> Result<(*mut c_void, u64)> {
    flush();
    STATE
        .with(|state| state.attached.take())
        .map(|a| (a.addr, a.bytes))
        .ok_or_else(|| Error::new(Class::Buffer, "no buffer is attached"))
}

/// Wait until all buffered messages have left.
pub fn flush() {
    let pending = STATE.with(|state| std::mem::take(&mut state.pending));
    request::wait_slots(&pending, request::CALL_SEND);
    for slot in pending {
        slot::poll(slot);
    }
    STATE.with(|state| state.used = 0);
}

/// The buffered sends under way.
pub fn pending(slots: &mut Vec<Slot>) {
    STATE.with(|state| slots.extend_from_slice(&state.pending));
}

/// Check that `bytes` more fit into the attached buffer.
pub(super) fn reserve(bytes: u64) -> Result<()> {
    STATE.with(|state| {
        if slot::reap_detached(&mut state.pending) {
            state.used = 0;
        }
        let have = state.attached.as_ref().map_or(0, |a| a.bytes);
        if state.used + bytes > have {
            return Err(Error::new(
                Class::Buffer,
                format!(
                    "a buffered send of {bytes} bytes does not fit: the attached buffer has {have} bytes, {} of them in use",
                    state.used
                ),
            ));
        }
        Ok(())
    })
}

/// A buffered send is under way.
pub(super) fn detach(slot: Slot, bytes: u64) {
    STATE.with(|state| {
        state.pending.push(slot);
        state.used += bytes;
    });
}
