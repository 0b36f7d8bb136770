//! Probes, and the messages that they match.

use super::number::{self, Number, named, names};
use super::p2p::{fits, no_tag, type_of};
use crate::abi::{Abi, CComm, CDatatype, CMessage, CRequest, dec, enc};
use crate::c::status::{write_outcome, write_status};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Handle, Message, Request};
use vmpi_core::p2p::Slot;
use vmpi_core::request::{self, Sought, probe};
use vmpi_core::status::Status;
use vmpi_core::{calls, consts};

/// The arguments of a probe in the core's numbers.
fn probe_args<A: Abi>(source: c_int, tag: c_int, comm: CComm<A>) -> Result<(Rc<Communicator>, i32, i32)> {
    let comm = comm::get(dec::<A, Comm>(comm))?;
    let (source, tag) = (A::rank_in(source), A::tag_in(tag));
    if tag < 0 && tag != consts::ANY_TAG {
        return no_tag(tag);
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
    let sought = Sought::new(dec::<A, Comm>(comm), source, tag);
    if request::message_misses_again(sought) {
        // SAFETY: `flag` is the program's to write.
        unsafe { *flag = 0 };
        return 0;
    }
    entry::run::<A>("MPI_Iprobe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        let found = probe::iprobe(&comm, source, tag, sought)?;
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
    let sought = Sought::new(dec::<A, Comm>(comm), source, tag);
    if request::message_misses_again(sought) {
        // SAFETY: `flag` is the program's to write.
        unsafe { *flag = 0 };
        return 0;
    }
    entry::run::<A>("MPI_Improbe", Target::Comm(dec::<A, Comm>(comm)), || {
        let (comm, source, tag) = probe_args::<A>(source, tag, comm)?;
        let found = probe::improbe(&comm, source, tag, sought)?;
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
    count: impl Number,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
) -> Result<Option<Slot>> {
    let count = number::count(count)?;
    let ty = type_of::<A>(ty, count)?;
    fits(count, &ty)?;
    if message.is_null() {
        return fail(Class::Arg, "the message argument is a null pointer");
    }
    // SAFETY: as promised.
    unsafe {
        let handle = dec::<A, Message>(*message);
        let slot = probe::start_mrecv(handle, A::buf_in(buf).cast_mut(), count, &ty)?;
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
    count: impl Number,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Mrecv")), Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let received = match start_mrecv::<A>(buf, count, ty, message)? {
                Some(slot) => request::wait_slot(slot, calls::CALL_RECV),
                None => Ok(Status::PROC_NULL),
            };
            write_outcome::<A>(status, &received);
            received.map(|_| ())
        }
    })
}

/// MPI 4.1, section 3.8.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn imrecv<A: Abi>(
    buf: *mut c_void,
    count: impl Number,
    ty: CDatatype<A>,
    message: *mut CMessage<A>,
    req: *mut CRequest<A>,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Imrecv")), Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let handle = match start_mrecv::<A>(buf, count, ty, message)? {
                Some(slot) => request::insert_receive(slot),
                None => request::insert_done(Status::PROC_NULL),
            };
            *req = enc::<A, Request>(handle);
        }
        Ok(())
    })
}

#[macro_export]
macro_rules! c_table_probe {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::probe];
            fn MPI_Probe = probe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Iprobe = iprobe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Mprobe = mprobe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Improbe = improbe(source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, flag: *mut c_int, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Mrecv = mrecv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Imrecv = imrecv(buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}

/// The large-count (`_c`) functions.
#[macro_export]
macro_rules! c_table_probe_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::probe];
            fn MPI_Mrecv_c = mrecv(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Imrecv_c = imrecv(buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, message: *mut $crate::abi::CMessage<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
