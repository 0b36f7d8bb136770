//! Point-to-point messages: sends, receives, probes, persistent messages, the buffer of buffered sends.

use crate::abi::{Abi, CComm, CDatatype, CMessage, CRequest, dec, enc};
use crate::c::request::write_status;
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::datatype::{self, Type};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Datatype, Handle, Message, Request};
use vmpi_core::p2p::{self, Mode, Plane, Slot, probe};
use vmpi_core::{consts, request};

/// The arguments of one message, checked.
struct Checked {
    comm: Rc<Communicator>,
    ty: Rc<Type>,
    count: u64,
    /// Rank of the peer and tag in the core's numbers.
    peer: i32,
    tag: i32,
    buf: *const c_void,
}

/// Which way a message goes: the wildcards are for receives.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    Send,
    Receive,
}

/// Check (communicator, count, datatype, tag, rank, buffer), in the order in which the real libraries do.
fn check<A: Abi>(
    way: Way,
    buf: *const c_void,
    count: c_int,
    ty: CDatatype<A>,
    peer: c_int,
    tag: c_int,
    comm: CComm<A>,
) -> Result<Checked> {
    let comm = comm::get(dec::<A, Comm>(comm))?;
    if count < 0 {
        return fail(Class::Count, format!("the count is {count}, which is negative"));
    }
    let ty = datatype::get_committed(dec::<A, Datatype>(ty))?;
    let (tag, peer) = (A::tag_in(tag), A::rank_in(peer));
    let wild = way == Way::Receive && tag == consts::ANY_TAG;
    if tag < 0 && !wild {
        return fail(Class::Tag, format!("the tag is {tag}; tags are 0 to {}", p2p::TAG_UB));
    }
    let size = comm.peers().size();
    let special = peer == consts::PROC_NULL || (way == Way::Receive && peer == consts::ANY_SOURCE);
    if !special && (peer < 0 || peer as u32 >= size) {
        let role = if way == Way::Send { "destination" } else { "source" };
        return fail(Class::Rank, format!("{role} {peer} is not a rank of a group of {size}"));
    }
    let raw = buf;
    let buf = A::buf_in(buf);
    if raw.is_null() && count > 0 && ty.size() > 0 && ty.is_dense() && ty.true_lb() == 0 && peer != consts::PROC_NULL {
        return fail(Class::Buffer, format!("the buffer is a null pointer, but the count is {count}"));
    }
    if buf as usize == consts::IN_PLACE {
        return fail(Class::Buffer, "MPI_IN_PLACE is not a buffer of a point-to-point call");
    }
    Ok(Checked { comm, ty, count: count as u64, peer, tag, buf })
}

/// # Safety
/// The buffer in `a` is the program's to keep.
unsafe fn start_send(a: &Checked, mode: Mode) -> Result<Option<Slot>> {
    // SAFETY: passed on.
    unsafe { p2p::start_send(&a.comm, Plane::User, a.buf, a.count, &a.ty, a.peer, a.tag, mode) }
}

/// # Safety
/// As above.
unsafe fn start_recv(a: &Checked) -> Result<Slot> {
    // SAFETY: passed on.
    unsafe { p2p::start_recv(&a.comm, Plane::User, a.buf.cast_mut(), a.count, &a.ty, a.peer, a.tag) }
}

fn wait_sent(slot: Option<Slot>) -> Result<()> {
    match slot {
        Some(slot) => request::wait_slot(slot, request::CALL_SEND).map(drop),
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
            buf: *const c_void, count: c_int, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
        ) -> c_int {
            entry::run::<A>($names, Target::Comm(dec::<A, Comm>(comm)), || {
                let a = check::<A>(Way::Send, buf, count, ty, dest, tag, comm)?;
                // SAFETY: the program keeps the buffer until the call returns.
                wait_sent(unsafe { start_send(&a, Mode::$mode) }?)
            })
        }

        /// MPI 4.1, section 3.7.2.
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $nonblocking<A: Abi>(
            buf: *const c_void, count: c_int, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
            req: *mut CRequest<A>,
        ) -> c_int {
            entry::run::<A>($inames, Target::Comm(dec::<A, Comm>(comm)), || {
                let a = check::<A>(Way::Send, buf, count, ty, dest, tag, comm)?;
                // SAFETY: the program keeps the buffer until the request completes; `req` is its to write.
                unsafe {
                    let slot = start_send(&a, Mode::$mode)?;
                    *req = enc::<A, Request>(request::insert_message(slot, false));
                }
                Ok(())
            })
        }

        /// MPI 4.1, section 3.9.
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $persistent<A: Abi>(
            buf: *const c_void, count: c_int, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
            req: *mut CRequest<A>,
        ) -> c_int {
            entry::run::<A>($pnames, Target::Comm(dec::<A, Comm>(comm)), || {
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
    count: c_int,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Recv", Target::Comm(dec::<A, Comm>(comm)), || {
        let a = check::<A>(Way::Receive, buf, count, ty, source, tag, comm)?;
        // SAFETY: the program keeps buffer and status until the call returns.
        unsafe {
            let slot = start_recv(&a)?;
            write_status::<A>(status, &request::wait_slot(slot, request::CALL_RECV)?);
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.7.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn irecv<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>("MPI_Irecv", Target::Comm(dec::<A, Comm>(comm)), || {
        let a = check::<A>(Way::Receive, buf, count, ty, source, tag, comm)?;
        // SAFETY: the program keeps the buffer until the request completes; `req` is its to write.
        unsafe { *req = enc::<A, Request>(request::insert_message(Some(start_recv(&a)?), true)) };
        Ok(())
    })
}

/// MPI 4.1, section 3.9.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn recv_init<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>("MPI_Recv_init", Target::Comm(dec::<A, Comm>(comm)), || {
        let a = check::<A>(Way::Receive, buf, count, ty, source, tag, comm)?;
        // SAFETY: the program keeps the buffer while the request is active.
        let start = Rc::new(move || unsafe { start_recv(&a) }.map(Some));
        // SAFETY: `req` is the program's to write.
        unsafe { *req = enc::<A, Request>(request::insert_persistent_message(start, true)) };
        Ok(())
    })
}

/// Receive, send, wait for both.
///
/// # Safety
/// Both buffers are valid until this returns.
unsafe fn exchange<A: Abi>(send: &Checked, receive: &Checked, status: *mut A::Status) -> Result<()> {
    // SAFETY: as promised.
    unsafe {
        let incoming = start_recv(receive)?;
        let sent = start_send(send, Mode::Standard)?;
        let received = request::wait_slot(incoming, request::CALL_RECV);
        wait_sent(sent)?;
        write_status::<A>(status, &received?);
    }
    Ok(())
}

/// MPI 4.1, section 3.10.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv<A: Abi>(
    sendbuf: *const c_void,
    sendcount: c_int,
    sendtype: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: c_int,
    recvtype: CDatatype<A>,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Sendrecv", Target::Comm(dec::<A, Comm>(comm)), || {
        let send = check::<A>(Way::Send, sendbuf, sendcount, sendtype, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, recvbuf, recvcount, recvtype, source, recvtag, comm)?;
        // SAFETY: the program keeps buffers and status until the call returns.
        unsafe { exchange::<A>(&send, &receive, status) }
    })
}

/// MPI 4.1, section 3.10.
///
/// # Safety
/// As the C function's contract.
#[allow(clippy::too_many_arguments)]
pub unsafe fn sendrecv_replace<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: CComm<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Sendrecv_replace", Target::Comm(dec::<A, Comm>(comm)), || {
        let mut send = check::<A>(Way::Send, buf, count, ty, dest, sendtag, comm)?;
        let receive = check::<A>(Way::Receive, buf, count, ty, source, recvtag, comm)?;
        // The outgoing data leaves from a packed copy, so that the buffer is free for what comes in.
        let mut packed = vec![0u8; (send.count * send.ty.size()) as usize];
        // SAFETY: the program's buffer holds `count` elements.
        unsafe { datatype::pack(&send.ty, send.count, send.buf.cast(), 0, &mut packed) };
        send.count = packed.len() as u64;
        send.ty = datatype::get(consts::dt::PACKED)?;
        send.buf = packed.as_ptr().cast();
        // SAFETY: as above; `packed` lives until the exchange is over.
        unsafe { exchange::<A>(&send, &receive, status) }
    })
}

/// The arguments of a probe in the core's numbers.
fn probe_args<A: Abi>(source: c_int, tag: c_int, comm: CComm<A>) -> Result<(Rc<Communicator>, i32, i32)> {
    let comm = comm::get(dec::<A, Comm>(comm))?;
    let (source, tag) = (A::rank_in(source), A::tag_in(tag));
    if tag < 0 && tag != consts::ANY_TAG {
        return fail(Class::Tag, format!("the tag is {tag}; tags are 0 to {}", p2p::TAG_UB));
    }
    Ok((comm, source, tag))
}

/// MPI 4.1, section 3.8.1.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn probe<A: Abi>(source: c_int, tag: c_int, comm: CComm<A>, status: *mut A::Status) -> c_int {
    entry::run::<A>("MPI_Probe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        // SAFETY: `status` is the program's to write.
        unsafe { write_status::<A>(status, &probe::probe(&comm, source, tag)?) };
        Ok(())
    })
}

/// MPI 4.1, section 3.8.1.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn iprobe<A: Abi>(
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Iprobe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        let found = probe::iprobe(&comm, source, tag)?;
        // SAFETY: `flag` and `status` are the program's to write.
        unsafe {
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                write_status::<A>(status, &found);
            }
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.8.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn mprobe<A: Abi>(
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    message: *mut CMessage<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Mprobe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        let (taken, found) = probe::mprobe(&comm, source, tag)?;
        // SAFETY: `message` and `status` are the program's to write.
        unsafe {
            *message = enc::<A, Message>(taken);
            write_status::<A>(status, &found);
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.8.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn improbe<A: Abi>(
    source: c_int,
    tag: c_int,
    comm: CComm<A>,
    flag: *mut c_int,
    message: *mut CMessage<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Improbe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        let found = probe::improbe(&comm, source, tag)?;
        // SAFETY: `flag`, `message` and `status` are the program's to write.
        unsafe {
            *flag = c_int::from(found.is_some());
            if let Some((taken, found)) = found {
                *message = enc::<A, Message>(taken);
                write_status::<A>(status, &found);
            }
        }
        Ok(())
    })
}

/// Start receiving a matched message; the handle becomes MPI_MESSAGE_NULL.
///
/// # Safety
/// `message` is valid; the buffer is the program's to keep.
unsafe fn start_mrecv<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
) -> Result<Option<Slot>> {
    if count < 0 {
        return fail(Class::Count, format!("the count is {count}, which is negative"));
    }
    let ty = datatype::get_committed(dec::<A, Datatype>(ty))?;
    if message.is_null() {
        return fail(Class::Arg, "the message argument is a null pointer");
    }
    // SAFETY: as promised.
    unsafe {
        let handle = dec::<A, Message>(*message);
        let slot = probe::start_mrecv(handle, A::buf_in(buf).cast_mut(), count as u64, &ty)?;
        *message = enc::<A, Message>(Message::NULL);
        Ok(slot)
    }
}

/// MPI 4.1, section 3.8.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn mrecv<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Mrecv", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let received = match start_mrecv::<A>(buf, count, ty, message)? {
                Some(slot) => request::wait_slot(slot, request::CALL_RECV)?,
                None => vmpi_core::status::Status::PROC_NULL,
            };
            write_status::<A>(status, &received);
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.8.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn imrecv<A: Abi>(
    buf: *mut c_void,
    count: c_int,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>("MPI_Imrecv", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let handle = match start_mrecv::<A>(buf, count, ty, message)? {
                Some(slot) => request::insert_message(Some(slot), true),
                None => request::insert_done(vmpi_core::status::Status::PROC_NULL),
            };
            *req = enc::<A, Request>(handle);
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.6.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn buffer_attach<A: Abi>(buf: *mut c_void, size: c_int) -> c_int {
    entry::run::<A>("MPI_Buffer_attach", Target::Process, || {
        if size < 0 {
            return fail(Class::Arg, format!("the buffer size is {size}, which is negative"));
        }
        p2p::buffered::attach(buf, size as u64)
    })
}

/// MPI 4.1, section 3.6. `addr` is the address of a pointer.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn buffer_detach<A: Abi>(addr: *mut c_void, size: *mut c_int) -> c_int {
    entry::run::<A>("MPI_Buffer_detach", Target::Process, || {
        let (buf, bytes) = p2p::buffered::detach_buffer()?;
        // SAFETY: both are the program's to write.
        unsafe {
            *addr.cast::<*mut c_void>() = buf;
            *size = bytes as c_int;
        }
        Ok(())
    })
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
            fn MPI_Probe = probe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Iprobe = iprobe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Mprobe = mprobe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Improbe = improbe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, flag: *mut c_int, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Mrecv = mrecv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Imrecv = imrecv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Buffer_attach = buffer_attach(buf: *mut c_void, size: c_int) -> c_int;
            fn MPI_Buffer_detach = buffer_detach(addr: *mut c_void, size: *mut c_int) -> c_int;
        }
    };
}
