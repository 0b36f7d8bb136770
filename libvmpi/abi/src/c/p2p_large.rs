//! Blocking calls of large messages, which may return before these are over (`vmpi_core::overlap`).

use super::number::{self, Number};
use super::p2p::{Checked, Way, check_here, recv_posted, start_recv, start_send, take, type_of};
use crate::abi::{Abi, CDatatype};
use crate::c::status::{write_outcome, write_status};
use std::ffi::{c_int, c_void};
use vmpi_core::calls;
use vmpi_core::errhandler::Target;
use vmpi_core::errors::Result;
use vmpi_core::handle::Comm;
use vmpi_core::overlap;
use vmpi_core::p2p::{Mode, Slot};
use vmpi_core::request;

/// Wait for a send that has been announced, or return and have the first write to its buffer wait.
#[inline(never)]
pub(super) fn wait_or_leave(slot: Slot, mode: Mode, comm: Comm, function: &'static str) -> Result<()> {
    let may_be_left = matches!(mode, Mode::Standard | Mode::Ready) && overlap::is_on();
    if may_be_left && overlap::leave_send(slot, Target::Comm(comm), function) {
        return Ok(());
    }
    let _watch = may_be_left.then(overlap::watch);
    request::wait_slot(slot, calls::CALL_SEND).map(drop)
}

/// The program starts a large message, for which it will wait.
#[cold]
pub(super) fn large_request<R>() -> Option<Result<R>> {
    if overlap::is_on() {
        overlap::note_large_request();
    }
    None
}

/// A call is about to read `count` elements at `buf`, or to write there: wait for what has been left behind, if it would touch that.
#[cold]
pub(super) fn make_way<A: Abi>(buf: *const c_void, count: impl Number, ty: CDatatype<A>, writes: bool) {
    let number = number::count(count);
    let dense = number.and_then(|count| Ok((count, type_of::<A>(ty, count)?))).ok().filter(|(_, ty)| ty.is_dense());
    match dense.and_then(|(count, ty)| Some((ty.true_lb(), count.checked_mul(ty.size())?))) {
        Some((lb, bytes)) => overlap::make_way((A::buf_in(buf) as u64).wrapping_add_signed(lb), bytes, writes),
        None => overlap::settle_all(),
    }
}

/// The same for a send. A buffered one also writes to what the program has attached.
#[cold]
pub(super) fn make_way_to_send<A: Abi>(mode: Mode, buf: *const c_void, count: impl Number, ty: CDatatype<A>) {
    match mode {
        Mode::Buffered => overlap::settle_all(),
        _ => make_way::<A>(buf, count, ty, false),
    }
}

/// A call is about to write there, and to what `also` points to.
#[cold]
pub(super) fn make_way_beside<A: Abi, T>(buf: *const c_void, count: impl Number, ty: CDatatype<A>, also: *const T) {
    make_way::<A>(buf, count, ty, true);
    overlap::make_way(also as u64, size_of::<T>() as u64, true);
}

/// A blocking receive of a large message, where such ones may be left behind.
///
/// # Safety
/// As `recv`.
#[inline(never)]
pub(super) unsafe fn recv_large<A: Abi>(
    buf: *mut c_void,
    count: i64,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: Comm,
    status: *mut A::Status,
) -> Option<Result<()>> {
    if !overlap::is_on() {
        return None;
    }
    let received = check_here::<A, _>(
        Way::Receive,
        buf,
        count,
        ty,
        source,
        tag,
        comm,
        || None,
        |a| {
            // SAFETY: the program keeps buffer and status until the call returns; what is guarded is left.
            unsafe {
                match overlap::post(&wish::<A>(&a, comm, status, "MPI_Recv", None)) {
                    Some(posted) => conclude::<A>(posted?, status),
                    None => {
                        let _watch = overlap::watch();
                        match take(&a) {
                            Some(got) => {
                                write_status::<A>(status, &got);
                                Ok(())
                            }
                            None => recv_posted::<A>(&a, status),
                        }
                    }
                }
            }
        },
    );
    Some(received)
}

fn wish<'a, A: Abi>(
    a: &'a Checked,
    comm: Comm,
    status: *mut A::Status,
    function: &'static str,
    beside: Option<&'a Checked>,
) -> overlap::Wish<'a> {
    overlap::Wish {
        comm: &a.comm,
        target: Target::Comm(comm),
        buf: a.buf.cast_mut(),
        count: a.count,
        ty: &a.ty,
        source: a.peer,
        tag: a.tag,
        function,
        asks: !A::status_ignored(status),
        beside: beside.map(|sent| (sent.buf, sent.count, &*sent.ty)),
    }
}

/// # Safety
/// As `write_status`.
unsafe fn conclude<A: Abi>(posted: overlap::Posted, status: *mut A::Status) -> Result<()> {
    let received = overlap::conclude(posted);
    // SAFETY: passed on.
    unsafe {
        match received {
            Ok(Some(got)) => write_status::<A>(status, &got),
            Ok(None) => {}
            Err(error) => {
                let failed = Err(error);
                write_outcome::<A>(status, &failed);
                return failed.map(drop);
            }
        }
    }
    Ok(())
}

/// As `exchange`, of what may be left behind.
///
/// # Safety
/// As there.
#[inline(never)]
pub(super) unsafe fn exchange_large<A: Abi>(
    send: &Checked,
    receive: &Checked,
    comm: Comm,
    status: *mut A::Status,
) -> Result<()> {
    let name = "MPI_Sendrecv";
    // SAFETY: as promised.
    unsafe {
        match overlap::post(&wish::<A>(receive, comm, status, name, Some(send))) {
            Some(posted) => {
                let posted = posted?;
                match start_send(send, Mode::Standard) {
                    Ok(sent) => {
                        let sent = sent.map_or(Ok(()), |slot| wait_or_leave(slot, Mode::Standard, comm, name));
                        conclude::<A>(posted, status).and(sent)
                    }
                    Err(error) => {
                        overlap::withdraw(posted);
                        Err(error)
                    }
                }
            }
            None => {
                let incoming = start_recv(receive)?;
                let sent = start_send(send, Mode::Standard)?;
                let received = request::wait_slot(incoming, calls::CALL_RECV);
                sent.map_or(Ok(()), |slot| wait_or_leave(slot, Mode::Standard, comm, name))?;
                write_outcome::<A>(status, &received);
                received.map(drop)
            }
        }
    }
}
