//! The one way into and out of every entry point.
//!
//! [`run`] takes the entry lock, checks that MPI is up, lets a rank that lost its core get it back (a scheduling
//! point), runs the body, turns an error into what the object's error handler makes of it, and tells
//! tools of the events that there were.

use crate::abi::Abi;
use std::ffi::c_int;
use vmpi_core::errors::Error;
use vmpi_core::tool::event;
use vmpi_core::{lock, process, raise};

pub use vmpi_core::errhandler::Target;

/// Run an entry point of an initialized MPI. `target` says whose error handler an error goes to.
#[inline]
pub fn run<A: Abi>(function: &'static str, target: Target, body: impl FnOnce() -> Result<(), Error>) -> c_int {
    run_entered::<A>(lock::enter(), function, target, body)
}

/// As `run`, for a call that says what it touches where others have been left behind (`vmpi_core::overlap`): `makes_way` is called then.
#[inline(always)]
pub fn run_beside<A: Abi>(
    function: &'static str,
    target: Target,
    makes_way: impl FnOnce(),
    body: impl FnOnce() -> Result<(), Error>,
) -> c_int {
    run_entered::<A>(lock::enter_with(makes_way), function, target, body)
}

#[inline(always)]
fn run_entered<A: Abi>(
    entered: lock::Entered,
    function: &'static str,
    target: Target,
    body: impl FnOnce() -> Result<(), Error>,
) -> c_int {
    if !process::is_active() {
        process::fatal_outside_mpi(function);
    }
    process::calling(function);
    process::scheduling_point();
    let code = match body() {
        Ok(()) => 0,
        Err(error) => raise::<A>(function, target, error),
    };
    drop(entered);
    event::deliver();
    code
}

/// Run MPI_Abort, which waits for nothing.
pub fn run_at_once<A: Abi>(function: &'static str, body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let _entered = lock::enter_with(|| ());
    match body() {
        Ok(()) => 0,
        Err(error) => raise::<A>(function, Target::Process, error),
    }
}

/// Run an entry point that is allowed before MPI_Init and after MPI_Finalize (no scheduling point, no world).
#[inline]
pub fn run_any_time<A: Abi>(function: &'static str, body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let _entered = lock::enter();
    match body() {
        Ok(()) => 0,
        Err(error) => raise::<A>(function, Target::Process, error),
    }
}

/// Hand `error` to the error handler of `target`; returns the code that the function returns if the handler returns.
#[cold]
pub fn raise<A: Abi>(function: &'static str, target: Target, error: Error) -> c_int {
    A::err_out(raise::invoke(function, target, error))
}

/// The call is one that this vmpi does not offer.
#[cold]
pub fn unsupported<A: Abi>(function: &'static str) -> c_int {
    run::<A>(function, Target::Process, || {
        Err(Error::new(
            A::unsupported(),
            format!("{function} is not offered by this version of vmpi (docs/functions.md has the list)"),
        ))
    })
}
