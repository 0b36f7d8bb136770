//! Error handlers. (Owner: comm helper; the signatures here are the contract.)

use crate::errors::{Error, Result};
use crate::handle::{Comm, Errhandler, File, Win};
use std::rc::Rc;

/// The object whose error handler an error goes to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// No object at hand: MPI_COMM_SELF's handler (MPI 4.1 section 9.3), MPI_COMM_WORLD's in older ABIs.
    Process,
    Comm(Comm),
    Win(Win),
    File(File),
}

/// A user's handler: gets the object and may change nothing but the program's own state; `code` is the core's number.
pub type UserHandler = Rc<dyn Fn(Target, i32)>;

/// Make a handler for communicators, windows or files from the program's function.
pub fn create(handler: UserHandler) -> Errhandler {
    let _ = handler;
    todo!()
}

/// Invoke the handler of `target` for `error` raised by `function`; returns the code for the caller.
/// A fatal handler prints function, message, communicator and rank, and ends the job.
pub fn invoke(function: &str, target: Target, error: Error) -> i32 {
    let _ = (function, target, error);
    todo!()
}

/// The handler of `target`.
pub fn handler_of(target: Target) -> Result<Errhandler> {
    todo!("{target:?}")
}
