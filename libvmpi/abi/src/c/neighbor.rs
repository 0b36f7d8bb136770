//! Chapter 8: neighbourhood collectives, in the same forms as the others.

#![allow(clippy::too_many_arguments, reason = "MPI's argument lists")]

use super::coll::{block, check_request, collectives, give, listed, nth, one};
use crate::abi::{Abi, CComm, CDatatype, CInfo, CRequest, dec};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use vmpi_core::coll::{self, Call, Counts, Many, Types};
use vmpi_core::comm;

collectives! {
    /// MPI_Neighbor_allgather
    "MPI_Neighbor_allgather" "MPI_Ineighbor_allgather": neighbor_allgather ineighbor_allgather neighbor_allgather_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>,
    ) = Call::NeighborAllgather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: Many::Even(block::<A>(recvbuf, recvcount, recvtype)),
    };
    /// MPI_Neighbor_allgatherv
    "MPI_Neighbor_allgatherv" "MPI_Ineighbor_allgatherv": neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, displs: impl Into<Counts>, recvtype: CDatatype<A>,
    ) = Call::NeighborAllgather {
        send: block::<A>(sendbuf, sendcount, sendtype),
        recv: listed::<A>(recvbuf, recvcounts, displs, one::<A>(recvtype)),
    };
    /// MPI_Neighbor_alltoall
    "MPI_Neighbor_alltoall" "MPI_Ineighbor_alltoall": neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init(
        sendbuf: *const c_void, sendcount: impl Into<i64>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcount: impl Into<i64>, recvtype: CDatatype<A>,
    ) = Call::NeighborAlltoall {
        send: Many::Even(block::<A>(sendbuf, sendcount, sendtype)),
        recv: Many::Even(block::<A>(recvbuf, recvcount, recvtype)),
    };
    /// MPI_Neighbor_alltoallv
    "MPI_Neighbor_alltoallv" "MPI_Ineighbor_alltoallv": neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init(
        sendbuf: *const c_void, sendcounts: impl Into<Counts>, sdispls: impl Into<Counts>, sendtype: CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, rdispls: impl Into<Counts>, recvtype: CDatatype<A>,
    ) = Call::NeighborAlltoall {
        send: listed::<A>(sendbuf, sendcounts, sdispls, one::<A>(sendtype)),
        recv: listed::<A>(recvbuf, recvcounts, rdispls, one::<A>(recvtype)),
    };
    /// MPI_Neighbor_alltoallw (displacements are MPI_Aint in all forms)
    "MPI_Neighbor_alltoallw" "MPI_Ineighbor_alltoallw": neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init(
        sendbuf: *const c_void, sendcounts: impl Into<Counts>, sdispls: impl Into<Counts>,
        sendtypes: *const CDatatype<A>,
        recvbuf: *mut c_void, recvcounts: impl Into<Counts>, rdispls: impl Into<Counts>,
        recvtypes: *const CDatatype<A>,
    ) = Call::NeighborAlltoall {
        send: listed::<A>(sendbuf, sendcounts, sdispls, Types::Each(&|i| nth::<A>(sendtypes, i))),
        recv: listed::<A>(recvbuf, recvcounts, rdispls, Types::Each(&|i| nth::<A>(recvtypes, i))),
    };
}

/// The rows of this chapter: functions of the three forms, exported names (blocking, nonblocking, persistent, Open
/// MPI 4's persistent; then those of the large-count forms), arguments before the communicator. `$N`, `$D`: the C
/// types of counts and displacements.
#[macro_export]
#[doc(hidden)]
macro_rules! neighbor_rows {
    ($emit:ident, $A:ty, $N:ty, $D:ty) => {
        $crate::$emit! { $A, [$crate::c::neighbor];
            neighbor_allgather ineighbor_allgather neighbor_allgather_init:
                MPI_Neighbor_allgather MPI_Ineighbor_allgather MPI_Neighbor_allgather_init MPIX_Neighbor_allgather_init,
                MPI_Neighbor_allgather_c MPI_Ineighbor_allgather_c MPI_Neighbor_allgather_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>)
            neighbor_allgatherv ineighbor_allgatherv neighbor_allgatherv_init:
                MPI_Neighbor_allgatherv MPI_Ineighbor_allgatherv MPI_Neighbor_allgatherv_init MPIX_Neighbor_allgatherv_init,
                MPI_Neighbor_allgatherv_c MPI_Ineighbor_allgatherv_c MPI_Neighbor_allgatherv_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcounts: *const $N, displs: *const $D, recvtype: $crate::abi::CDatatype<$A>)
            neighbor_alltoall ineighbor_alltoall neighbor_alltoall_init:
                MPI_Neighbor_alltoall MPI_Ineighbor_alltoall MPI_Neighbor_alltoall_init MPIX_Neighbor_alltoall_init,
                MPI_Neighbor_alltoall_c MPI_Ineighbor_alltoall_c MPI_Neighbor_alltoall_init_c;
                (sendbuf: *const c_void, sendcount: $N, sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void,
                 recvcount: $N, recvtype: $crate::abi::CDatatype<$A>)
            neighbor_alltoallv ineighbor_alltoallv neighbor_alltoallv_init:
                MPI_Neighbor_alltoallv MPI_Ineighbor_alltoallv MPI_Neighbor_alltoallv_init MPIX_Neighbor_alltoallv_init,
                MPI_Neighbor_alltoallv_c MPI_Ineighbor_alltoallv_c MPI_Neighbor_alltoallv_init_c;
                (sendbuf: *const c_void, sendcounts: *const $N, sdispls: *const $D,
                 sendtype: $crate::abi::CDatatype<$A>, recvbuf: *mut c_void, recvcounts: *const $N,
                 rdispls: *const $D, recvtype: $crate::abi::CDatatype<$A>)
            neighbor_alltoallw ineighbor_alltoallw neighbor_alltoallw_init:
                MPI_Neighbor_alltoallw MPI_Ineighbor_alltoallw MPI_Neighbor_alltoallw_init MPIX_Neighbor_alltoallw_init,
                MPI_Neighbor_alltoallw_c MPI_Ineighbor_alltoallw_c MPI_Neighbor_alltoallw_init_c;
                (sendbuf: *const c_void, sendcounts: *const $N, sdispls: *const i64,
                 sendtypes: *const $crate::abi::CDatatype<$A>, recvbuf: *mut c_void, recvcounts: *const $N,
                 rdispls: *const i64, recvtypes: *const $crate::abi::CDatatype<$A>)
        }
    };
}

/// The blocking and nonblocking functions of this chapter.
#[macro_export]
macro_rules! c_table_neighbor {
    ($A:ty) => {
        $crate::neighbor_rows! { export_collectives, $A, c_int, c_int }
    };
}

/// The persistent functions of this chapter (MPI 4.0).
#[macro_export]
macro_rules! c_table_neighbor_init {
    ($A:ty) => {
        $crate::neighbor_rows! { export_persistent_collectives, $A, c_int, c_int }
    };
}

/// The persistent functions of this chapter as Open MPI 4 names them.
#[macro_export]
macro_rules! c_table_neighbor_mpix_init {
    ($A:ty) => {
        $crate::neighbor_rows! { export_mpix_persistent_collectives, $A, c_int, c_int }
    };
}

/// The large-count functions of this chapter (MPI 4.0), persistent ones included.
#[macro_export]
macro_rules! c_table_neighbor_c {
    ($A:ty) => {
        $crate::neighbor_rows! { export_large_collectives, $A, i64, i64 }
    };
}
