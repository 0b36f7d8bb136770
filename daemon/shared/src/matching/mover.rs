//! Who matches, as the queues see it: what it can do with payloads.

use super::envelope::Envelope;
use super::request::Slot;

/// What became of an attempt to move a payload.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// The bytes are in the receive buffer (as many as fit).
    Done,
    /// The bytes are there, and will be there in virtual time when `PLACED` says so.
    Timed,
    /// The copy failed for good, with this errno.
    Failed(i32),
    /// The other process is no more, in a job that goes on.
    Gone,
    /// The kernel refuses single copy between these two processes: use pieces.
    Refused,
    /// Neither end of the transfer is this process.
    LeaveToOwner,
}

/// Who does the matching, and what it can do with payloads.
pub trait Mover {
    /// Rank whose queues these are.
    fn owner(&self) -> u32;
    /// Is it the rank whose queues these are?
    fn is_owner(&self) -> bool;
    /// Move the payload of a ready-to-send to where the receive `slot`, number `index`, wants it.
    fn transfer(&mut self, envelope: &Envelope, index: u32, slot: &Slot) -> Transfer;
    /// Copy a piece into the receive `slot` (owner only) and give its block back.
    fn piece(&mut self, envelope: &Envelope, slot: &Slot);
    /// Copy what is left of the send `slot` (owner only) together with its receiver, who has offered that.
    fn help(&mut self, offer: &Envelope, slot: &Slot);
}
