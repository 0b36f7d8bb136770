//! What the C++ bindings of Open MPI and MPICH (libmpi_cxx, libmpichcxx) need from the library below them.
//!
//! They make an operation, an error handler or a key with a C function, and right after that call into the library to say how a
//! C++ function is to be called. What was made last in a thread is remembered here, with the program's functions.

use std::cell::Cell;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Datatype, Errhandler, Handle, Op};
use vmpi_core::op::UserFunction;
use vmpi_core::{datatype, op};

thread_local! {
    static OP: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    static ERRHANDLER: Cell<(u32, usize)> = const { Cell::new((0, 0)) };
    static KEYVAL: Cell<(i32, Option<Callbacks>)> = const { Cell::new((0, None)) };
}

/// What a key of attributes was made with.
#[derive(Copy, Clone, Debug)]
pub struct Callbacks {
    pub copy: usize,
    pub delete: usize,
    pub extra: usize,
    /// Raw core handle to INTEGER handle, for the kind of object that carries the attributes.
    pub integer: fn(u32) -> i32,
}

pub(super) fn made_op(handle: Op, function: usize) {
    OP.set((handle.raw(), function));
}

pub(super) fn made_errhandler(handle: Errhandler, function: usize) {
    ERRHANDLER.set((handle.raw(), function));
}

pub(super) fn made_keyval(keyval: i32, callbacks: Callbacks) {
    KEYVAL.set((keyval, Some(callbacks)));
}

fn not_last<T>(what: &str) -> Result<T> {
    fail(
        Class::Arg,
        format!("this {what} is not the one that was made just now; only a C++ binding calls this function"),
    )
}

/// The function that the operation which was made last was made with.
///
/// # Errors
/// `Class::Arg` for another operation.
pub fn function_of_op(handle: Op) -> Result<usize> {
    let (last, function) = OP.get();
    if last == handle.raw() { Ok(function) } else { not_last("operation") }
}

/// The same of an error handler.
///
/// # Errors
/// `Class::Arg` for another one.
pub fn function_of_errhandler(handle: Errhandler) -> Result<usize> {
    let (last, function) = ERRHANDLER.get();
    if last == handle.raw() { Ok(function) } else { not_last("error handler") }
}

/// The callbacks of the key that was made last.
///
/// # Errors
/// `Class::Arg` for another key.
pub fn functions_of_keyval(keyval: i32) -> Result<Callbacks> {
    match KEYVAL.get() {
        (last, Some(callbacks)) if last == keyval => Ok(callbacks),
        _ => not_last("key"),
    }
}

/// Have an operation call `call` with vectors of at most as many elements as an int can count.
///
/// # Errors
/// `Class::Op`.
pub fn replace_op(handle: Op, call: impl Fn(*const c_void, *mut c_void, i32, Datatype) + 'static) -> Result<()> {
    let whole: UserFunction = Rc::new(move |input, inout, len, ty| {
        let extent = datatype::get(ty).map_or(0, |ty| ty.extent());
        let mut done = 0u64;
        while done < len {
            let part = (len - done).min(i32::MAX as u64);
            let at = (done as i64).wrapping_mul(extent) as isize;
            call(input.wrapping_byte_offset(at), inout.wrapping_byte_offset(at), part as i32, ty);
            done += part;
        }
    });
    op::replace(handle, whole)
}
