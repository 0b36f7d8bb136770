//! Chapter 6: collectives. Each is written once and comes in three forms (blocking, nonblocking, persistent), each
//! with `int` and with MPI_Count arguments.

#![allow(clippy::too_many_arguments, reason = "MPI's argument lists")]

use crate::abi::{Abi, CComm, CDatatype, CInfo, COp, CRequest, dec, enc};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use vmpi_core::coll::{self, Block, Call, Counts, Many, Operands, Parts, Types};
use vmpi_core::comm;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Datatype, Request};

/// A buffer argument in core numbers.
pub(super) fn buffer<A: Abi>(addr: *const c_void) -> *mut c_void {
    A::buf_in(addr).cast_mut()
}

/// A (buffer, count, datatype) argument.
pub(super) fn block<A: Abi>(addr: *const c_void, count: impl Into<i64>, datatype: CDatatype<A>) -> Block {
    Block { addr: buffer::<A>(addr), count: count.into(), ty: dec::<A, _>(datatype) }
}

/// A (buffer, counts, displacements) argument.
pub(super) fn listed<'a, A: Abi>(
    addr: *const c_void,
    counts: impl Into<Counts>,
    displs: impl Into<Counts>,
    types: Types<'a>,
) -> Many<'a> {
    Many::Listed { addr: buffer::<A>(addr), counts: counts.into(), displs: displs.into(), types }
}

/// The datatype of all blocks of a v form.
pub(super) fn one<A: Abi>(datatype: CDatatype<A>) -> Types<'static> {
    Types::One(dec::<A, _>(datatype))
}

/// Entry `i` of the array of datatypes of a w form; the null handle if there is no array.
///
/// # Safety
/// The array must be null or have more than `i` entries.
pub(super) unsafe fn nth<A: Abi>(datatypes: *const CDatatype<A>, i: usize) -> Datatype {
    if datatypes.is_null() {
        return vmpi_core::handle::Handle::NULL;
    }
    // SAFETY: the caller's contract.
    dec::<A, _>(unsafe { *datatypes.add(i) })
}

fn operands<A: Abi>(send: *const c_void, recv: *mut c_void, datatype: CDatatype<A>, op: COp<A>) -> Operands {
    Operands { send: buffer::<A>(send), recv: buffer::<A>(recv), ty: dec::<A, _>(datatype), op: dec::<A, _>(op) }
}

/// Where a request goes: checked before the collective is started.
pub(super) fn check_request<A: Abi>(request: *mut CRequest<A>) -> Result<()> {
    if request.is_null() {
        return fail(Class::Arg, "request is a null pointer");
    }
    Ok(())
}

/// Hand the request to the program.
///
/// # Safety
/// `out` must have passed `check_request`.
pub(super) unsafe fn give<A: Abi>(out: *mut CRequest<A>, request: Request) {
    // SAFETY: not null; the program's contract is that it points to a request.
    unsafe { *out = enc::<A, _>(request) }
}

/// Define the three forms of each collective: `"MPI_X" "MPI_Ix": x ix x_init(arguments before comm) = call;`.
macro_rules! collectives {
    ($(
        $(#[$doc:meta])*
        $name:literal $nonblocking_name:literal: $blocking:ident $nonblocking:ident $persistent:ident ($($arg:ident: $ty:ty),* $(,)?) = $call:expr;
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the MPI standard demands of the arguments.
        pub unsafe fn $blocking<A: Abi>($($arg: $ty,)* comm: CComm<A>) -> c_int {
            let handle = dec::<A, _>(comm);
            entry::run::<A>($name, Target::Comm(handle), || {
                let comm = comm::get(handle)?;
                // SAFETY: the caller's contract.
                unsafe { coll::program_call(handle, &comm, &$call) }
            })
        }

        #[doc = concat!("The nonblocking form of ", $name, ".")]
        ///
        /// # Safety
        /// As the MPI standard demands of the arguments.
        pub unsafe fn $nonblocking<A: Abi>($($arg: $ty,)* comm: CComm<A>, request: *mut CRequest<A>) -> c_int {
            let handle = dec::<A, _>(comm);
            entry::run::<A>($nonblocking_name, Target::Comm(handle), || {
                let comm = comm::get(handle)?;
                check_request::<A>(request)?;
                // SAFETY: the caller's contract, and `request` was checked.
                unsafe { give::<A>(request, coll::start(&comm, &$call)?) };
                Ok(())
            })
        }

        #[doc = concat!("The persistent form of ", $name, ". The info argument has no keys that matter here.")]
        ///
        /// # Safety
        /// As the MPI standard demands of the arguments.
        pub unsafe fn $persistent<A: Abi>(
            $($arg: $ty,)* comm: CComm<A>, _info: CInfo<A>, request: *mut CRequest<A>,
        ) -> c_int {
            let handle = dec::<A, _>(comm);
            entry::run::<A>(concat!($name, "_init"), Target::Comm(handle), || {
                let comm = comm::get(handle)?;
                check_request::<A>(request)?;
                // SAFETY: the caller's contract, and `request` was checked.
                unsafe { give::<A>(request, coll::init(&comm, &$call)?) };
                Ok(())
            })
        }
    )*};
}
pub(super) use collectives;

collectives! {
    /// MPI_Barrier
    "MPI_Barrier" "MPI_Ibarrier": barrier ibarrier barrier_init() = Call::Barrier;
    /// MPI_Bcast
    "MPI_Bcast" "MPI_Ibcast": bcast ibcast bcast_init(
        buf: *mut c_void, count: impl Into<i64>, datatype: CDatatype<A>, root: c_int,
    ) = Call::Bcast { data: block::<A>(buf, count, datatype), root: A::rank_in(root) };
    /// MPI_Gather
    "MPI_Gather" "MPI_Igather": gather igather gather_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>, root: c_int,
    ) = Call::Gather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: Many::Even(block::<A>(recvbuf, recvcount, recvtype)),
        root: A::rank_in(root),
    };
    /// MPI_Gatherv
    "MPI_Gatherv" "MPI_Igatherv": gatherv igatherv gatherv_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, displs: impl Into<Counts>, recvtype: CDatatype<A>,
        root: c_int,
    ) = Call::Gather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: listed::<A>(recvbuf, recvcounts, displs, one::<A>(recvtype)),
        root: A::rank_in(root),
    };
    /// MPI_Scatter
    "MPI_Scatter" "MPI_Iscatter": scatter iscatter scatter_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>, root: c_int,
    ) = Call::Scatter {
        send: Many::Even(block::<A>(sendbuf, sendcount, sendtype)),
        recv: block::<A>(recvbuf, recvcount, recvtype),
        root: A::rank_in(root),
    };
    /// MPI_Scatterv
    "MPI_Scatterv" "MPI_Iscatterv": scatterv iscatterv scatterv_init(
        sendbuf: *const c_void, sendcounts: impl Into<Counts>, displs: impl Into<Counts>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>, root: c_int,
    ) = Call::Scatter {
        send: listed::<A>(sendbuf, sendcounts, displs, one::<A>(sendtype)),
        recv: block::<A>(recvbuf, recvcount, recvtype),
        root: A::rank_in(root),
    };
    /// MPI_Allgather
    "MPI_Allgather" "MPI_Iallgather": allgather iallgather allgather_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>,
    ) = Call::Allgather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: Many::Even(block::<A>(recvbuf, recvcount, recvtype)),
    };
    /// MPI_Allgatherv
    "MPI_Allgatherv" "MPI_Iallgatherv": allgatherv iallgatherv allgatherv_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, displs: impl Into<Counts>, recvtype: CDatatype<A>,
    ) = Call::Allgather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: listed::<A>(recvbuf, recvcounts, displs, one::<A>(recvtype)),
    };
    /// MPI_Alltoall
    "MPI_Alltoall" "MPI_Ialltoall": alltoall ialltoall alltoall_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>,
    ) = Call::Alltoall {
        send: Many::Even(block::<A>(sendbuf, sendcount, sendtype)),
        recv: Many::Even(block::<A>(recvbuf, recvcount, recvtype)),
    };
    /// MPI_Alltoallv
    "MPI_Alltoallv" "MPI_Ialltoallv": alltoallv ialltoallv alltoallv_init(
        sendbuf: *const c_void, sendcounts: impl Into<Counts>, sdispls: impl Into<Counts>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, rdispls: impl Into<Counts>, recvtype: CDatatype<A>,
    ) = Call::Alltoall {
        send: listed::<A>(sendbuf, sendcounts, sdispls, one::<A>(sendtype)),
        recv: listed::<A>(recvbuf, recvcounts, rdispls, one::<A>(recvtype)),
    };
    /// MPI_Alltoallw
    "MPI_Alltoallw" "MPI_Ialltoallw": alltoallw ialltoallw alltoallw_init(
        sendbuf: *const c_void, sendcounts: impl Into<Counts>, sdispls: impl Into<Counts>,
        sendtypes: *const CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, rdispls: impl Into<Counts>,
        recvtypes: *const CDatatype<A>,
    ) = Call::Alltoall {
        send: listed::<A>(sendbuf, sendcounts, sdispls, Types::Each(&|i| nth::<A>(sendtypes, i))),
        recv: listed::<A>(recvbuf, recvcounts, rdispls, Types::Each(&|i| nth::<A>(recvtypes, i))),
    };
    /// MPI_Reduce
    "MPI_Reduce" "MPI_Ireduce": reduce ireduce reduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: impl Into<i64>, datatype: CDatatype<A>, op: COp<A>,
        root: c_int,
    ) = Call::Reduce {
        operands: operands::<A>(sendbuf, recvbuf, datatype, op),
        count: count.into(),
        root: A::rank_in(root),
    };
    /// MPI_Allreduce
    "MPI_Allreduce" "MPI_Iallreduce": allreduce iallreduce allreduce_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: impl Into<i64>, datatype: CDatatype<A>, op: COp<A>,
    ) = Call::Allreduce { operands: operands::<A>(sendbuf, recvbuf, datatype, op), count: count.into() };
    /// MPI_Reduce_scatter
    "MPI_Reduce_scatter" "MPI_Ireduce_scatter": reduce_scatter ireduce_scatter reduce_scatter_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: impl Into<Counts>, datatype: CDatatype<A>,
        op: COp<A>,
    ) = Call::ReduceScatter {
        operands: operands::<A>(sendbuf, recvbuf, datatype, op),
        parts: Parts::Listed(recvcounts.into()),
    };
    /// MPI_Reduce_scatter_block
    "MPI_Reduce_scatter_block" "MPI_Ireduce_scatter_block": reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: impl Into<i64>, datatype: CDatatype<A>,
        op: COp<A>,
    ) = Call::ReduceScatter {
        operands: operands::<A>(sendbuf, recvbuf, datatype, op),
        parts: Parts::Even(recvcount.into()),
    };
    /// MPI_Scan
    "MPI_Scan" "MPI_Iscan": scan iscan scan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: impl Into<i64>, datatype: CDatatype<A>, op: COp<A>,
    ) = Call::Scan { operands: operands::<A>(sendbuf, recvbuf, datatype, op), count: count.into() };
    /// MPI_Exscan
    "MPI_Exscan" "MPI_Iexscan": exscan iexscan exscan_init(
        sendbuf: *const c_void, recvbuf: *mut c_void, count: impl Into<i64>, datatype: CDatatype<A>, op: COp<A>,
    ) = Call::Exscan { operands: operands::<A>(sendbuf, recvbuf, datatype, op), count: count.into() };
}

/// The rows of this chapter: functions of the three forms, exported names (blocking, nonblocking, persistent, Open
/// MPI 4's persistent; then those of the large-count forms), arguments before the communicator. `$N`, `$D`: the C
/// types of counts and displacements.
#[macro_export]
#[doc(hidden)]
macro_rules! coll_rows {
    ($emit:ident, $A:ty, $N:ty, $D:ty) => {
        $crate::$emit! { $A, [$crate::c::coll];
            barrier ibarrier barrier_init:
                MPI_Barrier MPI_Ibarrier MPI_Barrier_init MPIX_Barrier_init,
                ;
                ()
            bcast ibcast bcast_init:
                MPI_Bcast MPI_Ibcast MPI_Bcast_init MPIX_Bcast_init,
                MPI_Bcast_c MPI_Ibcast_c MPI_Bcast_init_c;
                (buf: *mut c_void, count: $N, datatype: $crate::abi::CDatatype<$A>, root: c_int)
            gather igather gather_init:
                MPI_Gather MPI_Igather MPI_Gather_init MPIX_Gather_init,
                MPI_Gather_c MPI_Igather_c MPI_Gather_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>, root: c_int)
            gatherv igatherv gatherv_init:
                MPI_Gatherv MPI_Igatherv MPI_Gatherv_init MPIX_Gatherv_init,
                MPI_Gatherv_c MPI_Igatherv_c MPI_Gatherv_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcounts: *const $N, displs: *const $D, recvtype: $crate::abi::CDatatype<$A>, root: c_int)
            scatter iscatter scatter_init:
                MPI_Scatter MPI_Iscatter MPI_Scatter_init MPIX_Scatter_init,
                MPI_Scatter_c MPI_Iscatter_c MPI_Scatter_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>, root: c_int)
            scatterv iscatterv scatterv_init:
                MPI_Scatterv MPI_Iscatterv MPI_Scatterv_init MPIX_Scatterv_init,
                MPI_Scatterv_c MPI_Iscatterv_c MPI_Scatterv_init_c;
                (sendbuf: *const c_void, sendcounts: *const $N, displs: *const $D,
                 sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void, recvcount: $N,
                 recvtype: $crate::abi::CDatatype<$A>, root: c_int)
            allgather iallgather allgather_init:
                MPI_Allgather MPI_Iallgather MPI_Allgather_init MPIX_Allgather_init,
                MPI_Allgather_c MPI_Iallgather_c MPI_Allgather_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>)
            allgatherv iallgatherv allgatherv_init:
                MPI_Allgatherv MPI_Iallgatherv MPI_Allgatherv_init MPIX_Allgatherv_init,
                MPI_Allgatherv_c MPI_Iallgatherv_c MPI_Allgatherv_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcounts: *const $N, displs: *const $D, recvtype: $crate::abi::CDatatype<$A>)
            alltoall ialltoall alltoall_init:
                MPI_Alltoall MPI_Ialltoall MPI_Alltoall_init MPIX_Alltoall_init,
                MPI_Alltoall_c MPI_Ialltoall_c MPI_Alltoall_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>)
            alltoallv ialltoallv alltoallv_init:
                MPI_Alltoallv MPI_Ialltoallv MPI_Alltoallv_init MPIX_Alltoallv_init,
                MPI_Alltoallv_c MPI_Ialltoallv_c MPI_Alltoallv_init_c;
                (sendbuf: *const c_void, sendcounts: *const $N, sdispls: *const $D,
                 sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void, recvcounts: *const $N,
                 rdispls: *const $D, recvtype: $crate::abi::CDatatype<$A>)
            alltoallw ialltoallw alltoallw_init:
                MPI_Alltoallw MPI_Ialltoallw MPI_Alltoallw_init MPIX_Alltoallw_init,
                MPI_Alltoallw_c MPI_Ialltoallw_c MPI_Alltoallw_init_c;
                (sendbuf: *const c_void, sendcounts: *const $N, sdispls: *const $D,
                 sendtypes: *const $crate::abi::CDatatype<$A>, recvbuf: *mut c_void, recvcounts: *const $N,
                 rdispls: *const $D, recvtypes: *const $crate::abi::CDatatype<$A>)
            reduce ireduce reduce_init:
                MPI_Reduce MPI_Ireduce MPI_Reduce_init MPIX_Reduce_init,
                MPI_Reduce_c MPI_Ireduce_c MPI_Reduce_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, count: $N, datatype: $crate::abi::CDatatype<$A>,
                 op: $crate::abi::COp<$A>, root: c_int)
            allreduce iallreduce allreduce_init:
                MPI_Allreduce MPI_Iallreduce MPI_Allreduce_init MPIX_Allreduce_init,
                MPI_Allreduce_c MPI_Iallreduce_c MPI_Allreduce_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, count: $N, datatype: $crate::abi::CDatatype<$A>,
                 op: $crate::abi::COp<$A>)
            reduce_scatter ireduce_scatter reduce_scatter_init:
                MPI_Reduce_scatter MPI_Ireduce_scatter MPI_Reduce_scatter_init MPIX_Reduce_scatter_init,
                MPI_Reduce_scatter_c MPI_Ireduce_scatter_c MPI_Reduce_scatter_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, recvcounts: *const $N,
                 datatype: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>)
            reduce_scatter_block ireduce_scatter_block reduce_scatter_block_init:
                MPI_Reduce_scatter_block MPI_Ireduce_scatter_block MPI_Reduce_scatter_block_init MPIX_Reduce_scatter_block_init,
                MPI_Reduce_scatter_block_c MPI_Ireduce_scatter_block_c MPI_Reduce_scatter_block_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, recvcount: $N, datatype: $crate::abi::CDatatype<$A>,
                 op: $crate::abi::COp<$A>)
            scan iscan scan_init:
                MPI_Scan MPI_Iscan MPI_Scan_init MPIX_Scan_init,
                MPI_Scan_c MPI_Iscan_c MPI_Scan_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, count: $N, datatype: $crate::abi::CDatatype<$A>,
                 op: $crate::abi::COp<$A>)
            exscan iexscan exscan_init:
                MPI_Exscan MPI_Iexscan MPI_Exscan_init MPIX_Exscan_init,
                MPI_Exscan_c MPI_Iexscan_c MPI_Exscan_init_c;
                (sendbuf: *const c_void, recvbuf: *mut c_void, count: $N, datatype: $crate::abi::CDatatype<$A>,
                 op: $crate::abi::COp<$A>)
        }
    };
}

/// The blocking and nonblocking functions of this chapter.
#[macro_export]
macro_rules! c_table_coll {
    ($A:ty) => {
        $crate::coll_rows! { export_collectives, $A, c_int, c_int }
    };
}

/// The persistent functions of this chapter (MPI 4.0).
#[macro_export]
macro_rules! c_table_coll_init {
    ($A:ty) => {
        $crate::coll_rows! { export_persistent_collectives, $A, c_int, c_int }
    };
}

/// The persistent functions of this chapter as Open MPI 4 names them.
#[macro_export]
macro_rules! c_table_coll_mpix_init {
    ($A:ty) => {
        $crate::coll_rows! { export_mpix_persistent_collectives, $A, c_int, c_int }
    };
}

/// The large-count functions of this chapter (MPI 4.0), persistent ones included.
#[macro_export]
macro_rules! c_table_coll_c {
    ($A:ty) => {
        $crate::coll_rows! { export_large_collectives, $A, i64, i64 }
    };
}

/// Export each row's `MPI_X` and `MPI_Ix`.
#[macro_export]
#[doc(hidden)]
macro_rules! export_collectives {
    ($A:ty, [$($module:tt)*]; $($f:ident $fi:ident $fp:ident: $n:ident $ni:ident $np:ident $nx:ident, $($large:ident)*;
        ($($arg:ident : $ty:ty),*))*) => {
        $crate::export_c! { $A, [$($module)*]; $(
            fn $n = $f($($arg: $ty,)* comm: $crate::abi::CComm<$A>) -> c_int;
            fn $ni = $fi($($arg: $ty,)* comm: $crate::abi::CComm<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
        )* }
    };
}

/// Export each row's `MPI_X_init`.
#[macro_export]
#[doc(hidden)]
macro_rules! export_persistent_collectives {
    ($A:ty, [$($module:tt)*]; $($f:ident $fi:ident $fp:ident: $n:ident $ni:ident $np:ident $nx:ident, $($large:ident)*;
        ($($arg:ident : $ty:ty),*))*) => {
        $crate::export_c! { $A, [$($module)*]; $(
            fn $np = $fp($($arg: $ty,)* comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>,
                request: *mut $crate::abi::CRequest<$A>) -> c_int;
        )* }
    };
}

/// Export each row's `MPIX_X_init`.
#[macro_export]
#[doc(hidden)]
macro_rules! export_mpix_persistent_collectives {
    ($A:ty, $module:tt; $($f:ident $fi:ident $fp:ident: $n:ident $ni:ident $np:ident $nx:ident, $($large:ident)*;
        $args:tt)*) => {
        $crate::export_persistent_collectives! { $A, $module; $(
            $f $fi $fp: $n $ni $nx $np, $($large)*; $args
        )* }
    };
}

/// Export each row's `MPI_X_c`, `MPI_Ix_c` and `MPI_X_init_c`, if it has them.
#[macro_export]
#[doc(hidden)]
macro_rules! export_large_collectives {
    ($A:ty, $module:tt; $($f:ident $fi:ident $fp:ident: $n:ident $ni:ident $np:ident $nx:ident,
        $($c:ident $ci:ident $cp:ident)?; $args:tt)*) => {$($(
        $crate::export_collectives! { $A, $module; $f $fi $fp: $c $ci $cp $nx, ; $args }
        $crate::export_persistent_collectives! { $A, $module; $f $fi $fp: $c $ci $cp $nx, ; $args }
    )?)*};
}
