//! Point-to-point messages. (Owner: lead; the signatures here are the contract.)

use crate::comm::Communicator;
use crate::datatype::Type;
use crate::errors::Result;
use crate::status::Status;
use std::ffi::c_void;
use std::rc::Rc;

/// Which matching context of a communicator a message travels in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Plane {
    User,
    Collective,
}

/// Send modes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    Standard,
    Buffered,
    Synchronous,
    Ready,
}

/// One message under way, sent or to be received: a request slot in the job segment, owned by this rank.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

/// Start a send to `dest` (rank in `comm.peers()`, or PROC_NULL). `None`: already complete.
///
/// # Safety
/// `buf` must hold `count` elements and stay unchanged until the slot completes.
pub unsafe fn start_send(
    comm: &Communicator,
    plane: Plane,
    buf: *const c_void,
    count: u64,
    ty: &Rc<Type>,
    dest: i32,
    tag: i32,
    mode: Mode,
) -> Result<Option<Slot>> {
    let _ = (comm, plane, buf, count, ty, dest, tag, mode);
    todo!()
}

/// Start a receive from `source` (rank in `comm.peers()`, ANY_SOURCE or PROC_NULL) with `tag` (or ANY_TAG).
///
/// # Safety
/// `buf` must have room for `count` elements until the slot completes.
pub unsafe fn start_recv(
    comm: &Communicator,
    plane: Plane,
    buf: *mut c_void,
    count: u64,
    ty: &Rc<Type>,
    source: i32,
    tag: i32,
) -> Result<Slot> {
    let _ = (comm, plane, buf, count, ty, source, tag);
    todo!()
}

/// Completed? Then the slot is freed and the data is in place. An error is the operation's (truncation, ...).
pub fn poll(slot: Slot) -> Option<Result<Status>> {
    todo!("{slot:?}")
}

/// Suspend until every slot is complete (for blocking code that is not a schedule); frees them; first error.
pub fn wait_all(slots: &[Slot]) -> Result<()> {
    todo!("{slots:?}")
}
