//! Element counts of Fortran array arguments, as the tables need them.

use crate::abi::{Abi, Codec};
use std::ffi::{c_int, c_void};
use vmpi_core::handle::Comm;
use vmpi_core::{coll, comm, consts, lock, process};

/// The value of an INTEGER argument, as a count (negative ones are reported by the function itself).
///
/// # Safety
/// `count` must be the address of an INTEGER.
#[inline]
pub unsafe fn n(count: *mut c_void) -> usize {
    // SAFETY: promised by the caller.
    usize::try_from(unsafe { count.cast::<c_int>().read_unaligned() }).unwrap_or(0)
}

/// Datatypes in the `sendtypes` or `recvtypes` of MPI_ALLTOALLW: one per peer; none if `buf` is MPI_IN_PLACE.
///
/// # Safety
/// `comm` must be the address of an INTEGER handle.
pub unsafe fn types_of_peers<A: Abi>(comm: *mut c_void, buf: *mut c_void) -> usize {
    if A::buf_in(buf) as usize == consts::IN_PLACE {
        return 0;
    }
    // SAFETY: promised by the caller.
    unsafe { with_comm::<A>(comm, |comm| comm.peers().size() as usize) }
}

/// Datatypes in the `sendtypes` of MPI_NEIGHBOR_ALLTOALLW: one per destination.
///
/// # Safety
/// `comm` must be the address of an INTEGER handle.
pub unsafe fn types_of_destinations<A: Abi>(comm: *mut c_void) -> usize {
    // SAFETY: promised by the caller.
    unsafe { with_comm::<A>(comm, |comm| coll::neighbours(comm).map_or(0, |(_, destinations)| destinations.len())) }
}

/// Datatypes in the `recvtypes` of MPI_NEIGHBOR_ALLTOALLW: one per source.
///
/// # Safety
/// `comm` must be the address of an INTEGER handle.
pub unsafe fn types_of_sources<A: Abi>(comm: *mut c_void) -> usize {
    // SAFETY: promised by the caller.
    unsafe { with_comm::<A>(comm, |comm| coll::neighbours(comm).map_or(0, |(sources, _)| sources.len())) }
}

/// 0 for a communicator that does not exist: the function itself reports it.
///
/// # Safety
/// `comm` must be the address of an INTEGER handle.
unsafe fn with_comm<A: Abi>(comm: *mut c_void, count: impl FnOnce(&comm::Communicator) -> usize) -> usize {
    let _entered = lock::enter();
    if !process::is_active() {
        return 0;
    }
    // SAFETY: promised by the caller.
    let handle = <A as Codec<Comm>>::fdec(unsafe { comm.cast::<c_int>().read_unaligned() });
    comm::get(handle).map_or(0, |comm| count(&comm))
}
