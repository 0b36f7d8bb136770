//! The buffers of buffered sends: MPI 4.1 section 3.6.

use super::args::{not_null, on_comm};
use super::number::{Number, named, named_by, names};
use crate::abi::{Abi, CComm, CRequest, CSession, dec, enc};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Session};
use vmpi_core::p2p::buffered::{self, Given, Owner};
use vmpi_core::request::flush;
use vmpi_core::{comm, session};

/// A communicator or session that exists, as the owner of a buffer.
fn comm_owner<A: Abi>(comm: CComm<A>) -> Result<Owner> {
    Ok(Owner::Comm(comm::get(dec::<A, Comm>(comm))?.handle))
}

fn session_owner<A: Abi>(session: CSession<A>) -> Result<Owner> {
    let handle = dec::<A, Session>(session);
    session::get(handle)?;
    Ok(Owner::Session(handle))
}

fn attach<A: Abi>(owner: Owner, addr: *mut c_void, size: impl Number) -> Result<()> {
    let automatic = A::is_buffer_automatic(addr);
    let bytes = match u64::try_from(size.get()) {
        _ if automatic => 0,
        Ok(bytes) => bytes,
        Err(_) => return fail(Class::Arg, format!("the buffer size is {}, which is negative", size.get())),
    };
    if addr.is_null() && bytes > 0 {
        return fail(Class::Buffer, "the buffer is a null pointer");
    }
    buffered::attach(owner, Given { addr, bytes, automatic })
}

/// Detach, and write address and size.
///
/// # Safety
/// `addr` is null or has room for a pointer, `size` is null or for a number.
unsafe fn detach<N: Number>(owner: Owner, addr: *mut c_void, size: *mut N) -> Result<()> {
    not_null(addr, "buffer_addr")?;
    not_null(size, "size")?;
    let given = flush::detach_buffer(owner)?;
    // SAFETY: neither is null, the rest is promised.
    unsafe {
        addr.cast::<*mut c_void>().write_unaligned(given.addr);
        size.write_unaligned(N::from_u64(given.bytes));
    }
    Ok(())
}

/// Attach, detach, flush and iflush for one kind of owner.
macro_rules! buffer_functions {
    ($object:ident: $Object:ty, $owner:expr, $target:expr;
     $attach:ident $attach_name:literal $detach:ident $detach_name:literal) => {
        #[doc = concat!("`", $attach_name, "`.")]
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $attach<A: Abi>($object: $Object, addr: *mut c_void, size: impl Number) -> c_int {
            entry::run::<A>(named(size, names!($attach_name)), $target, || attach::<A>($owner?, addr, size))
        }

        #[doc = concat!("`", $detach_name, "`; `addr` is the address of a pointer.")]
        ///
        /// # Safety
        /// As the C function's contract.
        pub unsafe fn $detach<A: Abi>($object: $Object, addr: *mut c_void, size: *mut impl Number) -> c_int {
            entry::run::<A>(named_by(size, names!($detach_name)), $target, || {
                // SAFETY: the C function's contract.
                unsafe { detach($owner?, addr, size) }
            })
        }
    };
}

buffer_functions! { comm: CComm<A>, comm_owner::<A>(comm), on_comm::<A>(comm);
comm_attach_buffer "MPI_Comm_attach_buffer" comm_detach_buffer "MPI_Comm_detach_buffer" }
buffer_functions! { session: CSession<A>, session_owner::<A>(session), Target::Session(dec::<A, Session>(session));
session_attach_buffer "MPI_Session_attach_buffer" session_detach_buffer "MPI_Session_detach_buffer" }

/// `MPI_Buffer_attach`.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn buffer_attach<A: Abi>(addr: *mut c_void, size: impl Number) -> c_int {
    entry::run::<A>(named(size, names!("MPI_Buffer_attach")), Target::Process, || {
        attach::<A>(Owner::Process, addr, size)
    })
}

/// `MPI_Buffer_detach`; `addr` is the address of a pointer.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn buffer_detach<A: Abi>(addr: *mut c_void, size: *mut impl Number) -> c_int {
    entry::run::<A>(named_by(size, names!("MPI_Buffer_detach")), Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe { detach(Owner::Process, addr, size) }
    })
}

crate::entry_points! {
    /// `MPI_Buffer_flush`.
    active fn buffer_flush = "MPI_Buffer_flush"() for Target::Process => {
        flush::flush(Owner::Process)?;
    }

    /// `MPI_Buffer_iflush`.
    active fn buffer_iflush = "MPI_Buffer_iflush"(request: *mut CRequest<A>) for Target::Process => {
        not_null(request, "request")?;
        *request = enc::<A, _>(flush::iflush(Owner::Process));
    }

    /// `MPI_Comm_flush_buffer`.
    active fn comm_flush_buffer = "MPI_Comm_flush_buffer"(comm: CComm<A>) for on_comm::<A>(comm) => {
        flush::flush(comm_owner::<A>(comm)?)?;
    }

    /// `MPI_Comm_iflush_buffer`.
    active fn comm_iflush_buffer = "MPI_Comm_iflush_buffer"(comm: CComm<A>, request: *mut CRequest<A>)
        for on_comm::<A>(comm) =>
    {
        let owner = comm_owner::<A>(comm)?;
        not_null(request, "request")?;
        *request = enc::<A, _>(flush::iflush(owner));
    }

    /// `MPI_Session_flush_buffer`.
    active fn session_flush_buffer = "MPI_Session_flush_buffer"(session: CSession<A>)
        for Target::Session(dec::<A, _>(session)) =>
    {
        flush::flush(session_owner::<A>(session)?)?;
    }

    /// `MPI_Session_iflush_buffer`.
    active fn session_iflush_buffer = "MPI_Session_iflush_buffer"(session: CSession<A>, request: *mut CRequest<A>)
        for Target::Session(dec::<A, _>(session)) =>
    {
        let owner = session_owner::<A>(session)?;
        not_null(request, "request")?;
        *request = enc::<A, _>(flush::iflush(owner));
    }
}

/// The buffer of the process, in every face.
#[macro_export]
macro_rules! c_table_buffer {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::buffer];
            fn MPI_Buffer_attach = buffer_attach(addr: *mut c_void, size: c_int) -> c_int;
            fn MPI_Buffer_detach = buffer_detach(addr: *mut c_void, size: *mut c_int) -> c_int;
            fn MPI_Buffer_attach_c = buffer_attach(addr: *mut c_void, size: i64) -> c_int;
            fn MPI_Buffer_detach_c = buffer_detach(addr: *mut c_void, size: *mut i64) -> c_int;
            fn MPI_Buffer_flush = buffer_flush() -> c_int;
            fn MPI_Buffer_iflush = buffer_iflush(request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Comm_attach_buffer = comm_attach_buffer(comm: $crate::abi::CComm<$A>, addr: *mut c_void, size: c_int) -> c_int;
            fn MPI_Comm_detach_buffer = comm_detach_buffer(comm: $crate::abi::CComm<$A>, addr: *mut c_void, size: *mut c_int) -> c_int;
            fn MPI_Comm_attach_buffer_c = comm_attach_buffer(comm: $crate::abi::CComm<$A>, addr: *mut c_void, size: i64) -> c_int;
            fn MPI_Comm_detach_buffer_c = comm_detach_buffer(comm: $crate::abi::CComm<$A>, addr: *mut c_void, size: *mut i64) -> c_int;
            fn MPI_Comm_flush_buffer = comm_flush_buffer(comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_iflush_buffer = comm_iflush_buffer(comm: $crate::abi::CComm<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Session_attach_buffer = session_attach_buffer(session: $crate::abi::CSession<$A>, addr: *mut c_void, size: c_int) -> c_int;
            fn MPI_Session_detach_buffer = session_detach_buffer(session: $crate::abi::CSession<$A>, addr: *mut c_void, size: *mut c_int) -> c_int;
            fn MPI_Session_attach_buffer_c = session_attach_buffer(session: $crate::abi::CSession<$A>, addr: *mut c_void, size: i64) -> c_int;
            fn MPI_Session_detach_buffer_c = session_detach_buffer(session: $crate::abi::CSession<$A>, addr: *mut c_void, size: *mut i64) -> c_int;
            fn MPI_Session_flush_buffer = session_flush_buffer(session: $crate::abi::CSession<$A>) -> c_int;
            fn MPI_Session_iflush_buffer = session_iflush_buffer(session: $crate::abi::CSession<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
