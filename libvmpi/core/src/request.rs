//! Requests: what MPI_Wait and MPI_Test work on. (Owner: lead; the signatures here are the contract.)

use crate::errors::Result;
use crate::handle::Request;
use crate::p2p::Slot;
use crate::status::Status;

/// A nonblocking operation made of several messages (a collective).
pub trait Progress {
    /// Poll the messages under way, do what follows from them, start the next. `Some`: all done.
    /// An error ends the operation; messages still under way are the implementor's to finish or cancel.
    fn advance(&mut self) -> Result<Option<Status>>;
    /// The slots that must complete before `advance` can do more.
    fn pending(&self, slots: &mut Vec<Slot>);
}

/// Make a request of an operation that has been started (its first `advance` was called by the caller or not).
pub fn insert(operation: Box<dyn Progress>) -> Request {
    let _ = operation;
    todo!()
}

/// Run an operation to its end: the blocking form of a collective.
pub fn run(operation: &mut dyn Progress) -> Result<Status> {
    let _ = operation;
    todo!()
}

/// A persistent operation: each MPI_Start calls `start`.
pub fn insert_persistent(start: Box<dyn FnMut() -> Result<Box<dyn Progress>>>) -> Request {
    let _ = start;
    todo!()
}
