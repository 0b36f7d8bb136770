//! Partitioned communication: MPI 4.1 chapter 4.

use super::args::{array, not_negative, not_null, on_comm};
use super::p2p::{Way, check};
use crate::abi::{Abi, CComm, CDatatype, CInfo, CRequest, dec, enc};
use crate::entry::Target;
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Handle, Request};
use vmpi_core::request::partitioned::{self, Arguments, Channel, precv_init as core_precv, psend_init as core_psend};
use vmpi_core::{consts, info, request};

#[allow(clippy::too_many_arguments)] // As many as MPI says.
fn arguments<A: Abi>(
    way: Way,
    buf: *const c_void,
    partitions: c_int,
    count: i64,
    ty: CDatatype<A>,
    peer: c_int,
    tag: c_int,
    comm: CComm<A>,
    info: CInfo<A>,
) -> Result<Arguments> {
    let a = check::<A>(way, buf, count, ty, peer, tag, comm)?;
    let Some(partitions) = u64::try_from(partitions).ok().filter(|&partitions| partitions > 0) else {
        return fail(Class::Arg, format!("the number of partitions is {partitions}, it must be positive"));
    };
    for (class, is_any) in [(Class::Rank, a.peer == consts::ANY_SOURCE), (Class::Tag, a.tag == consts::ANY_TAG)] {
        if is_any {
            return fail(class, "a partitioned receive takes no wildcards");
        }
    }
    let bytes = a.count.checked_mul(a.ty.size()).and_then(|bytes| bytes.checked_mul(partitions));
    if bytes.is_none_or(|bytes| i64::try_from(bytes).is_err()) {
        return fail(
            Class::Count,
            format!("{partitions} partitions of {count} elements are more than memory can hold"),
        );
    }
    info::hints(dec::<A, _>(info))?;
    Ok(Arguments {
        comm: a.comm,
        buf: a.buf.cast_mut(),
        partitions,
        count: a.count,
        ty: a.ty,
        peer: a.peer,
        tag: a.tag,
    })
}

/// Declare partitions of a send ready; what that completes is noticed at once.
fn ready<A: Abi>(req: CRequest<A>, partitions: impl Iterator<Item = i64> + Clone) -> Result<()> {
    match partitioned::channel(dec::<A, Request>(req))? {
        Channel::Send(sender) => {
            sender.ready(partitions)?;
            request::progress();
            Ok(())
        }
        Channel::Receive(_) => fail(Class::Request, "the request is a partitioned receive, not a send"),
    }
}

crate::entry_points! {
    /// `MPI_Psend_init`.
    active fn psend_init = "MPI_Psend_init"(
        buf: *const c_void, partitions: c_int, count: i64, ty: CDatatype<A>, dest: c_int, tag: c_int, comm: CComm<A>,
        info: CInfo<A>, req: *mut CRequest<A>,
    ) for on_comm::<A>(comm) => {
        let arguments = arguments::<A>(Way::Send, buf, partitions, count, ty, dest, tag, comm, info)?;
        not_null(req, "request")?;
        *req = enc::<A, _>(core_psend(arguments)?);
    }

    /// `MPI_Precv_init`.
    active fn precv_init = "MPI_Precv_init"(
        buf: *mut c_void, partitions: c_int, count: i64, ty: CDatatype<A>, source: c_int, tag: c_int, comm: CComm<A>,
        info: CInfo<A>, req: *mut CRequest<A>,
    ) for on_comm::<A>(comm) => {
        let arguments = arguments::<A>(Way::Receive, buf, partitions, count, ty, source, tag, comm, info)?;
        not_null(req, "request")?;
        *req = enc::<A, _>(core_precv(arguments)?);
    }

    /// `MPI_Pready`.
    active fn pready = "MPI_Pready"(partition: c_int, req: CRequest<A>) for Target::Process => {
        ready::<A>(req, std::iter::once(i64::from(partition)))?;
    }

    /// `MPI_Pready_range`: both ends are included.
    active fn pready_range = "MPI_Pready_range"(low: c_int, high: c_int, req: CRequest<A>) for Target::Process => {
        if low > high {
            return fail(Class::Arg, format!("the range of partitions from {low} to {high} is empty"));
        }
        ready::<A>(req, i64::from(low)..=i64::from(high))?;
    }

    /// `MPI_Pready_list`.
    active fn pready_list = "MPI_Pready_list"(length: c_int, list: *const c_int, req: CRequest<A>)
        for Target::Process =>
    {
        let length = not_negative(length, Class::Arg, "length")?;
        ready::<A>(req, array(list, length, "array_of_partitions")?.iter().map(|&partition| i64::from(partition)))?;
    }

    /// `MPI_Parrived`; true of MPI_REQUEST_NULL and of an inactive request.
    active fn parrived = "MPI_Parrived"(req: CRequest<A>, partition: c_int, flag: *mut c_int) for Target::Process => {
        not_null(flag, "flag")?;
        let handle = dec::<A, Request>(req);
        if handle.is_null() {
            *flag = 1;
            return Ok(());
        }
        let Channel::Receive(receiver) = partitioned::channel(handle)? else {
            return fail(Class::Request, "the request is a partitioned send, not a receive");
        };
        request::progress();
        let mut arrived = receiver.has_arrived(partition.into())?;
        if !arrived && request::poll_missed() {
            arrived = receiver.has_arrived(partition.into())?;
        }
        *flag = c_int::from(arrived);
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_partitioned {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::partitioned];
            fn MPI_Psend_init = psend_init(buf: *const c_void, partitions: c_int, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Precv_init = precv_init(buf: *mut c_void, partitions: c_int, count: i64, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Pready = pready(partition: c_int, req: $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Pready_range = pready_range(low: c_int, high: c_int, req: $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Pready_list = pready_list(length: c_int, list: *const c_int, req: $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Parrived = parrived(req: $crate::abi::CRequest<$A>, partition: c_int, flag: *mut c_int) -> c_int;
        }
    };
}

/// Drafts of MPI 4.0 had these beside the two above, and mpi4py names them; they are the same.
#[macro_export]
macro_rules! c_table_partitioned_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::partitioned];
            fn MPI_Psend_init_c = psend_init(buf: *const c_void, partitions: c_int, count: i64, ty: $crate::abi::CDatatype<$A>, dest: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Precv_init_c = precv_init(buf: *mut c_void, partitions: c_int, count: i64, ty: $crate::abi::CDatatype<$A>, source: c_int, tag: c_int, comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
