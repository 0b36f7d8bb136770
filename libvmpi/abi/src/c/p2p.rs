//! Point-to-point messages: sends, receives, persistent messages.

use super::number::{self, Number, named, names};
use super::p2p_large::{
    exchange_large, large_request, make_way, make_way_beside, make_way_to_send, recv_large, wait_or_leave,
};
use crate::abi::{Abi, CComm, CDatatype, CRequest, dec, enc};
use crate::c::status::{write_outcome, write_status};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::datatype::{self, Type};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Datatype, Handle, Request};
use vmpi_core::overlap;
use vmpi_core::p2p::{self, Mode, Slot};
use vmpi_core::plane::Plane;
use vmpi_core::request;
use vmpi_core::request::exchange::Exchange;
use vmpi_core::status::Status;
use vmpi_core::{calls, consts};

/// The arguments of one message, checked.
pub(super) struct Checked {
    pub comm: Rc<Communicator>,
    pub ty: Rc<Type>,
    pub count: u64,
    /// Rank of the peer and tag in the core's numbers.
    pub peer: i32,
    pub tag: i32,
    pub buf: *const c_void,
}

/// Which way a message goes: the wildcards are for receives.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Way {
    Send,
    Receive,
}

/// The type of a message of `count` elements.
#[inline(always)]
pub(super) fn type_of<A: Abi>(ty: CDatatype<A>, count: u64) -> Result<Rc<Type>> {
    match dec::<A, Datatype>(ty) {
        Datatype::NULL if A::NULL_TYPE_OF_NOTHING && count == 0 => datatype::get(consts::dt::BYTE),
        ty => datatype::get_committed(ty),
    }
}

/// Check (communicator, count, datatype, tag, rank, buffer), in the order in which the real libraries do.
pub(super) fn check<A: Abi>(
    way: Way,
    buf: *const c_void,
    count: impl Number,
    ty: CDatatype<A>,
    peer: c_int,
    tag: c_int,
    comm: CComm<A>,
) -> Result<Checked> {
    check_here::<A, _>(way, buf, count, ty, peer, tag, dec::<A, Comm>(comm), || None, Ok)
}

/// As `check`, in line, for the functions that are most of all calls: `then` gets the arguments where they are, and not in a `Result` that is copied. `large` is called for
/// a large message, before anything else is known of it, and may do all of the call.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn check_here<A: Abi, R>(
    way: Way,
    buf: *const c_void,
    count: impl Number,
    ty: CDatatype<A>,
    peer: c_int,
    tag: c_int,
    comm: Comm,
    large: impl FnOnce() -> Option<Result<R>>,
    then: impl FnOnce(Checked) -> Result<R>,
) -> Result<R> {
    let comm = comm::get(comm)?;
    let count = number::count(count)?;
    let ty = type_of::<A>(ty, count)?;
    match count.checked_mul(ty.size()) {
        Some(bytes) if bytes < overlap::LEAST_BYTES => {}
        _ => {
            fits(count, &ty)?;
            if let Some(done) = large() {
                return done;
            }
        }
    }
    let (tag, peer) = (A::tag_in(tag), A::rank_in(peer));
    if tag < 0 && !(way == Way::Receive && tag == consts::ANY_TAG) {
        return no_tag(tag);
    }
    let size = comm.peers().size();
    if peer as u32 >= size && peer != consts::PROC_NULL && !(way == Way::Receive && peer == consts::ANY_SOURCE) {
        return no_rank(way, peer, size);
    }
    let raw = buf;
    let buf = A::buf_in(buf);
    if raw.is_null() && count > 0 && ty.size() > 0 && ty.is_dense() && ty.true_lb() == 0 && peer != consts::PROC_NULL {
        return no_buffer(count);
    }
    if buf as usize == consts::IN_PLACE {
        return not_in_place();
    }
    then(Checked { comm, ty, count, peer, tag, buf })
}

#[cold]
pub(super) fn no_tag<T>(tag: i32) -> Result<T> {
    fail(Class::Tag, format!("the tag is {tag}; tags are 0 to {}", consts::TAG_UB_VALUE))
}

#[cold]
fn no_rank<T>(way: Way, peer: i32, size: u32) -> Result<T> {
    let role = if way == Way::Send { "destination" } else { "source" };
    fail(Class::Rank, format!("{role} {peer} is not a rank of a group of {size}"))
}

#[cold]
fn no_buffer<T>(count: u64) -> Result<T> {
    fail(Class::Buffer, format!("the buffer is a null pointer, but the count is {count}"))
}

#[cold]
fn not_in_place<T>() -> Result<T> {
    fail(Class::Buffer, "MPI_IN_PLACE is not a buffer of a point-to-point call")
}

/// No message has more bytes than memory can.
#[inline]
pub(super) fn fits(count: u64, ty: &Type) -> Result<()> {
    match count.checked_mul(ty.size()) {
        Some(bytes) if i64::try_from(bytes).is_ok() => Ok(()),
        _ => too_many(count, ty),
    }
}

#[cold]
fn too_many(count: u64, ty: &Type) -> Result<()> {
    fail(Class::Count, format!("{count} elements of {} bytes are more than memory can hold", ty.size()))
}

/// # Safety
/// The buffer in `a` is the program's to keep.
#[inline]
pub(super) unsafe fn start_send(a: &Checked, mode: Mode) -> Result<Option<Slot>> {
    // SAFETY: passed on.
    unsafe { p2p::start_send(&a.comm, Plane::User, a.buf, a.count, &a.ty, a.peer, a.tag, mode) }
}

/// # Safety
/// As above.
pub(super) unsafe fn start_recv(a: &Checked) -> Result<Slot> {
    // SAFETY: passed on.
    unsafe { p2p::start_recv(&a.comm, Plane::User, a.buf.cast_mut(), a.count, &a.ty, a.peer, a.tag) }
}

/// # Safety
/// As above.
#[inline(always)]
unsafe fn start_irecv(a: &Checked) -> Result<Request> {
    if a.peer == consts::PROC_NULL {
        return p2p::start_null_recv(&a.comm).map(|()| request::insert_done(Status::PROC_NULL));
    }
    // SAFETY: passed on.
    unsafe { start_recv(a) }.map(request::insert_receive)
}

/// The short way of a blocking receive.
///
/// # Safety
/// As above.
#[inline(always)]
pub(super) unsafe fn take(a: &Checked) -> Option<Status> {
    // SAFETY: passed on.
    unsafe { p2p::take(&a.comm, a.buf.cast_mut(), a.count, &a.ty, a.peer, a.tag) }
}

#[inline]
fn wait_sent(slot: Option<Slot>) -> Result<()> {
    match slot {
        Some(slot) => request::wait_slot(slot, calls::CALL_SEND).map(drop),
        None => Ok(()),
    }
}

macro_rules! sends {
    ($($blocking:ident $nonblocking:ident $persistent:ident $mode:ident $names:literal $inames:literal $pnames:literal;)*) => {$(
        /// MPI 4.1, section 3.2 and 3.4.
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $blocking<A: Abi>(
            buf: *const c_void, count: impl Number, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
        ) -> c_int {
            let comm = dec::<A, Comm>(comm);
            let makes_way = || make_way_to_send::<A>(Mode::$mode, buf, count, ty);
            entry::run_beside::<A>(named(count, names!($names)), Target::Comm(comm), makes_way, || {
                check_here::<A, _>(Way::Send, buf, count, ty, dest, tag, comm, || None, |a| {
                    // SAFETY: the program keeps the buffer until the call returns, or what it guards is left.
                    match unsafe { start_send(&a, Mode::$mode) }? {
                        Some(slot) => wait_or_leave(slot, Mode::$mode, comm, named(count, names!($names))),
                        None => Ok(()),
                    }
                })
            })
        }

        /// MPI 4.1, section 3.7.2.
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $nonblocking<A: Abi>(
            buf: *const c_void, count: impl Number, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
            req: *mut CRequest<A>,
        ) -> c_int {
            let comm = dec::<A, Comm>(comm);
            let makes_way = || {
                make_way_to_send::<A>(Mode::$mode, buf, count, ty);
                overlap::make_way(req as u64, size_of::<CRequest<A>>() as u64, true);
            };
            entry::run_beside::<A>(named(count, names!($inames)), Target::Comm(comm), makes_way, || {
                check_here::<A, _>(Way::Send, buf, count, ty, dest, tag, comm, large_request, |a| {
                    // SAFETY: the program keeps the buffer until the request completes; `req` is its to write.
                    unsafe {
                        let slot = start_send(&a, Mode::$mode)?;
                        *req = enc::<A, Request>(request::insert_send(slot));
                    }
                    Ok(())
                })
            })
        }

        /// MPI 4.1, section 3.9.
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $persistent<A: Abi>(
            buf: *const c_void, count: impl Number, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
            req: *mut CRequest<A>,
        ) -> c_int {
            entry::run::<A>(named(count, names!($pnames)), Target::Comm(dec::<A, Comm>(comm)), || {
                let a = check::<A>(Way::Send, buf, count, ty, dest, tag, comm)?;
                // SAFETY: the program keeps the buffer while the request is active.
                let start = Rc::new(move || unsafe { start_send(&a, Mode::$mode) });
                // SAFETY: `req` is the program's to write.
                unsafe { *req = enc::<A, Request>(request::insert_persistent_message(start, false)) };
                Ok(())
            })
        }
    )*};
}

sends! {
    send isend send_init Standard "MPI_Send" "MPI_Isend" "MPI_Send_init";
    bsend ibsend bsend_init Buffered "MPI_Bsend" "MPI_Ibsend" "MPI_Bsend_init";
    ssend issend ssend_init Synchronous "MPI_Ssend" "MPI_Issend" "MPI_Ssend_init";
    rsend irsend rsend_init Ready "MPI_Rsend" "MPI_Irsend" "MPI_Rsend_init";
}

/// MPI 4.1, section 3.2.4.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn recv<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    let comm = dec::<A, Comm>(comm);
    let makes_way = || make_way_beside::<A, _>(buf, count, ty, status);
    // SAFETY: passed on.
    let large = || unsafe { recv_large::<A>(buf, count.get(), ty, source, tag, comm, status) };
    entry::run_beside::<A>(named(count, names!("MPI_Recv")), Target::Comm(comm), makes_way, || {
        check_here::<A, _>(Way::Receive, buf, count, ty, source, tag, comm, large, |a| {
            // SAFETY: the program keeps buffer and status until the call returns.
            unsafe {
                match take(&a) {
                    Some(got) => {
                        write_status::<A>(status, &got);
                        Ok(())
                    }
                    None => recv_posted::<A>(&a, status),
                }
            }
        })
    })
}

/// The long way of a blocking receive.
///
/// # Safety
/// As `recv`.
#[inline(never)]
pub(super) unsafe fn recv_posted<A: Abi>(a: &Checked, status: *mut A::Status) -> Result<()> {
    // SAFETY: as promised.
    unsafe {
        let got = request::wait_slot(start_recv(a)?, calls::CALL_RECV);
        write_outcome::<A>(status, &got);
        got.map(|_| ())
    }
}

/// MPI 4.1, section 3.7.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn irecv<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    let comm = dec::<A, Comm>(comm);
    let makes_way = || make_way_beside::<A, _>(buf, count, ty, req);
    entry::run_beside::<A>(named(count, names!("MPI_Irecv")), Target::Comm(comm), makes_way, || {
        check_here::<A, _>(Way::Receive, buf, count, ty, source, tag, comm, large_request, |a| {
            // SAFETY: the program keeps the buffer until the request completes; `req` is its to write.
            unsafe { *req = enc::<A, Request>(start_irecv(&a)?) };
            Ok(())
        })
    })
}

/// MPI 4.1, section 3.9.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn recv_init<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Recv_init")), Target::Comm(dec::<A, Comm>(comm)), || {
        let a = check::<A>(Way::Receive, buf, count, ty, source, tag, comm)?;
        // SAFETY: the program keeps the buffer while the request is active.
        let start = Rc::new(move || unsafe { start_recv(&a) }.map(Some));
        // SAFETY: `req` is the program's to write.
        unsafe { *req = enc::<A, Request>(request::insert_persistent_message(start, true)) };
        Ok(())
    })
}

/// Receive, send, wait for both, or leave them behind with the errors of `comm`, if that is given.
///
/// # Safety
/// Both buffers are valid until this returns.
unsafe fn exchange<A: Abi>(
    send: &Checked,
    receive: &Checked,
    comm: Option<Comm>,
    status: *mut A::Status,
) -> Result<()> {
    // SAFETY: as promised.
    unsafe {
        let (incoming, sent) = if p2p::is_eager(send.count * send.ty.size()) {
            // It leaves at once: then the receive may go the short way.
            let sent = start_send(send, Mode::Standard)?;
            if sent.is_none()
                && let Some(got) = take(receive)
            {
                write_status::<A>(status, &got);
                return Ok(());
            }
            (start_recv(receive)?, sent)
        } else {
            if let Some(comm) = comm.filter(|_| overlap::is_on()) {
                return exchange_large::<A>(send, receive, comm, status);
            }
            let incoming = start_recv(receive)?;
            (incoming, start_send(send, Mode::Standard)?)
        };
        let received = request::wait_slot(incoming, calls::CALL_RECV);
        wait_sent(sent)?;
        write_outcome::<A>(status, &received);
        received.map(|_| ())
    }
}

/// MPI 4.1, section 3.10.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv<A: Abi>(
    sendbuf: *const c_void,
    sendcount: impl Number,
    sendtype: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: impl Number,
    recvtype: CDatatype<A>,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    let handle = dec::<A, Comm>(comm);
    let makes_way = || {
        make_way::<A>(sendbuf, sendcount, sendtype, false);
        make_way::<A>(recvbuf, recvcount, recvtype, true);
        overlap::make_way(status as u64, size_of::<A::Status>() as u64, true);
    };
    entry::run_beside::<A>(named(sendcount, names!("MPI_Sendrecv")), Target::Comm(handle), makes_way, || {
        let send = check::<A>(Way::Send, sendbuf, sendcount, sendtype, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, recvbuf, recvcount, recvtype, source, recvtag, comm)?;
        // SAFETY: the program keeps buffers and status until the call returns.
        unsafe { exchange::<A>(&send, &receive, Some(handle), status) }
    })
}

/// MPI 4.1, section 3.10.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv_replace<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Sendrecv_replace")), Target::Comm(dec::<A, Comm>(comm)), || {
        let mut send = check::<A>(Way::Send, buf, count, ty, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, buf, count, ty, source, recvtag, comm)?;
        // SAFETY: the program's buffer holds `count` elements; `packed` lives until the exchange is over.
        unsafe {
            let packed = pack_outgoing(&mut send)?;
            let done = exchange::<A>(&send, &receive, None, status);
            drop(packed);
            done
        }
    })
}

/// The request of a send and a receive.
///
/// # Safety
/// Both buffers are valid until the request completes; `packed` holds what `send` points to, if it is given.
unsafe fn start_exchange(send: &Checked, receive: &Checked, packed: Option<Vec<u8>>) -> Result<Request> {
    // SAFETY: as promised.
    let incoming = unsafe { start_recv(receive)? };
    // SAFETY: as promised.
    match unsafe { start_send(send, Mode::Standard) } {
        Ok(outgoing) => Ok(request::insert(Box::new(Exchange::new(incoming, outgoing, packed)))),
        Err(error) => {
            // The receive must not be left behind; if it has matched already, its data is wanted in the buffer anyway.
            p2p::cancel(incoming);
            request::wait_slot(incoming, calls::CALL_RECV).and(Err(error))
        }
    }
}

/// MPI 4.1, section 3.7.7.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn isendrecv<A: Abi>(
    sendbuf: *const c_void,
    sendcount: impl Number,
    sendtype: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: impl Number,
    recvtype: CDatatype<A>,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>(named(sendcount, names!("MPI_Isendrecv")), Target::Comm(dec::<A, Comm>(comm)), || {
        let send = check::<A>(Way::Send, sendbuf, sendcount, sendtype, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, recvbuf, recvcount, recvtype, source, recvtag, comm)?;
        // SAFETY: the program keeps the buffers until the request completes; `req` is its to write.
        unsafe { *req = enc::<A, Request>(start_exchange(&send, &receive, None)?) };
        Ok(())
    })
}

/// MPI 4.1, section 3.7.7.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn isendrecv_replace<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Isendrecv_replace")), Target::Comm(dec::<A, Comm>(comm)), || {
        let mut send = check::<A>(Way::Send, buf, count, ty, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, buf, count, ty, source, recvtag, comm)?;
        // SAFETY: the program's buffer holds `count` elements.
        let packed = unsafe { pack_outgoing(&mut send)? };
        // SAFETY: as above; the exchange keeps `packed`, whose bytes do not move with it.
        unsafe { *req = enc::<A, Request>(start_exchange(&send, &receive, Some(packed))?) };
        Ok(())
    })
}

/// Let `send` leave from a packed copy, so that its buffer is free for what comes in.
///
/// # Safety
/// The buffer holds `count` elements.
unsafe fn pack_outgoing(send: &mut Checked) -> Result<Vec<u8>> {
    if send.peer == consts::PROC_NULL {
        return Ok(Vec::new());
    }
    let mut packed = vec![0u8; (send.count * send.ty.size()) as usize];
    // SAFETY: as promised.
    unsafe { datatype::pack(&send.ty, send.count, send.buf.cast(), 0, &mut packed) };
    send.count = packed.len() as u64;
    send.ty = datatype::get(consts::dt::PACKED)?;
    send.buf = packed.as_ptr().cast();
    Ok(packed)
}

#[macro_export]
macro_rules! c_table_p2p {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::p2p];
            fn MPI_Send = send(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Bsend = bsend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Ssend = ssend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Rsend = rsend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Isend = isend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Ibsend = ibsend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Issend = issend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Irsend = irsend(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Send_init = send_init(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Bsend_init = bsend_init(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Ssend_init = ssend_init(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Rsend_init = rsend_init(buf: *const c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Recv = recv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Irecv = irecv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Recv_init = recv_init(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Sendrecv = sendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: $crate::abi::CDatatype<$A>, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Sendrecv_replace = sendrecv_replace(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Isendrecv = isendrecv(sendbuf: *const c_void, sendcount: c_int, sendtype: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: c_int, recvtype: $crate::abi::CDatatype<$A>, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Isendrecv_replace = isendrecv_replace(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}

/// The chapter's large-count (`_c`) functions.
#[macro_export]
macro_rules! c_table_p2p_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::p2p];
            fn MPI_Send_c = send(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Bsend_c = bsend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Ssend_c = ssend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Rsend_c = rsend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Isend_c = isend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Ibsend_c = ibsend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Issend_c = issend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Irsend_c = irsend(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Send_init_c = send_init(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Bsend_init_c = bsend_init(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Ssend_init_c = ssend_init(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Rsend_init_c = rsend_init(buf: *const c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Recv_c = recv(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Irecv_c = irecv(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Recv_init_c = recv_init(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Sendrecv_c = sendrecv(sendbuf: *const c_void, sendcount: i64, sendtype: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: i64, recvtype: $crate::abi::CDatatype<$A>, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Sendrecv_replace_c = sendrecv_replace(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Isendrecv_c = isendrecv(sendbuf: *const c_void, sendcount: i64, sendtype: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, recvbuf: *mut c_void, recvcount: i64, recvtype: $crate::abi::CDatatype<$A>, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Isendrecv_replace_c = isendrecv_replace(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, sendtag: c_int, source: c_int, recvtag: c_int, comm: $crate::abi::CComm<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
