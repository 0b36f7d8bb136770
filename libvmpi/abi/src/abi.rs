//! What distinguishes one C ABI of MPI from another: the codec that each face implements.
//!
//! The core speaks the MPI-5 standard ABI's numbers (`vmpi_core::consts`, `vmpi_core::handle`); a face translates at
//! the border. Nothing here knows what a function does.

use std::ffi::{c_int, c_void};
use vmpi_core::errors::Class;
use vmpi_core::handle;
use vmpi_core::status::Status;

/// How a face writes handles of kind `H` in C and in Fortran.
pub trait Codec<H: handle::Handle> {
    /// The C type: a pointer (Open MPI, standard) or an int (MPICH).
    type C: Copy + PartialEq + 'static;
    /// C handle to core handle. A value that names nothing becomes a core handle that no table knows (`u32::MAX`).
    fn dec(c: Self::C) -> H;
    /// Core handle to C handle.
    fn enc(h: H) -> Self::C;
    /// Fortran INTEGER handle to core handle.
    fn fdec(f: c_int) -> H;
    /// Core handle to Fortran INTEGER handle.
    fn fenc(h: H) -> c_int;
}

/// Integer constants whose value differs between ABIs, by meaning.
///
/// `*_in` turns the face's value into the core's (standard ABI), `*_out` the other way. A value with no meaning
/// passes through unchanged, so that argument checking sees and reports it.
pub trait Abi:
    Codec<handle::Comm>
    + Codec<handle::Group>
    + Codec<handle::Win>
    + Codec<handle::File>
    + Codec<handle::Session>
    + Codec<handle::Message>
    + Codec<handle::Info>
    + Codec<handle::Errhandler>
    + Codec<handle::Request>
    + Codec<handle::Datatype>
    + Codec<handle::Op>
    + Sized
    + Send
    + Sync
    + 'static
{
    /// "Open MPI", "MPICH".
    const NAME: &'static str;
    /// What `MPI_Get_version` reports.
    const VERSION: (c_int, c_int);
    /// The C `MPI_Status`.
    type Status: Copy + 'static;

    /// `MPI_ANY_SOURCE`, `MPI_PROC_NULL`, `MPI_ROOT`, `MPI_UNDEFINED` in a rank argument.
    fn rank_in(rank: c_int) -> i32;
    fn rank_out(rank: i32) -> c_int;
    /// `MPI_ANY_TAG`.
    fn tag_in(tag: c_int) -> i32;
    fn tag_out(tag: i32) -> c_int;
    /// `MPI_BOTTOM`, `MPI_IN_PLACE` (also the Fortran sentinels' addresses) to 0 and 1.
    fn buf_in(buf: *const c_void) -> *const c_void;
    /// `MPI_UNWEIGHTED`, `MPI_WEIGHTS_EMPTY`: `Weights::*`.
    fn weights_in(weights: *const c_int) -> Weights;
    /// Error class (or user-defined code, passed through) to this face's number, and back.
    fn err_out(code: i32) -> c_int;
    fn err_in(code: c_int) -> i32;
    /// `MPI_Comm_compare`'s result, topology kinds, split types, combiners, distributions, array orders, thread
    /// levels, type classes, keyvals of predefined attributes, and `MPI_KEYVAL_INVALID`.
    fn compare_out(result: i32) -> c_int;
    fn topology_out(kind: i32) -> c_int;
    fn split_type_in(kind: c_int) -> i32;
    fn combiner_out(combiner: i32) -> c_int;
    fn distribution_in(distribution: c_int) -> i32;
    fn distribution_out(distribution: i32) -> c_int;
    /// `MPI_DISTRIBUTE_DFLT_DARG`.
    fn darg_in(darg: c_int) -> i32;
    fn darg_out(darg: i32) -> c_int;
    fn order_in(order: c_int) -> i32;
    fn order_out(order: i32) -> c_int;
    fn thread_in(level: c_int) -> i32;
    fn thread_out(level: i32) -> c_int;
    fn typeclass_in(class: c_int) -> i32;
    fn keyval_in(keyval: c_int) -> i32;
    fn keyval_out(keyval: i32) -> c_int;

    /// Longest strings, with the terminating NUL.
    const MAX_PROCESSOR_NAME: usize;
    const MAX_ERROR_STRING: usize;
    const MAX_OBJECT_NAME: usize;
    const MAX_INFO_KEY: usize;
    const MAX_INFO_VAL: usize;
    const MAX_LIBRARY_VERSION_STRING: usize;
    const MAX_PORT_NAME: usize;
    const BSEND_OVERHEAD: c_int;

    /// Is this `MPI_STATUS_IGNORE` or `MPI_STATUSES_IGNORE` (also Fortran's sentinel addresses)?
    fn status_ignored(status: *const Self::Status) -> bool;
    /// Write everything but `MPI_ERROR`.
    ///
    /// # Safety
    /// `status` must be valid for writes and not one of the ignored sentinels.
    unsafe fn status_write(status: *mut Self::Status, value: &Status);
    /// Write `MPI_ERROR` (already in this face's numbers).
    ///
    /// # Safety
    /// As `status_write`.
    unsafe fn status_set_error(status: *mut Self::Status, code: c_int);
    /// # Safety
    /// `status` must be valid for reads.
    unsafe fn status_read(status: *const Self::Status) -> Status;
    /// Length of a Fortran status in INTEGERs, and the index (from 0) of SOURCE, TAG, ERROR in it; a Fortran status
    /// has the same bytes as the C one in every face.
    const F_STATUS_SIZE: usize;

    /// Fortran LOGICAL true as gfortran and the face's distribution use it.
    const F_TRUE: c_int = 1;

    /// Fortran's MPI_ARGV_NULL, MPI_ARGVS_NULL and MPI_ERRCODES_IGNORE, by their addresses; none in a face without Fortran.
    fn f_argv_null(_address: *const c_void) -> bool {
        false
    }
    fn f_argvs_null(_address: *const c_void) -> bool {
        false
    }
    fn f_errcodes_ignored(_address: *const c_void) -> bool {
        false
    }

    /// The class nearest to MPI_ERR_UNSUPPORTED_OPERATION.
    fn unsupported() -> Class {
        Class::UnsupportedOperation
    }
}

/// The weights argument of the distributed-graph constructors.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Weights {
    Unweighted,
    Empty,
    Array(*const c_int),
}

/// The C type of a handle kind in face `A`.
pub type C<A, H> = <A as Codec<H>>::C;
pub type CComm<A> = C<A, handle::Comm>;
pub type CGroup<A> = C<A, handle::Group>;
pub type CWin<A> = C<A, handle::Win>;
pub type CFile<A> = C<A, handle::File>;
pub type CSession<A> = C<A, handle::Session>;
pub type CMessage<A> = C<A, handle::Message>;
pub type CInfo<A> = C<A, handle::Info>;
pub type CErrhandler<A> = C<A, handle::Errhandler>;
pub type CRequest<A> = C<A, handle::Request>;
pub type CDatatype<A> = C<A, handle::Datatype>;
pub type COp<A> = C<A, handle::Op>;

/// C handle to core handle.
#[inline]
pub fn dec<A: Codec<H>, H: handle::Handle>(c: C<A, H>) -> H {
    A::dec(c)
}

/// Core handle to C handle.
#[inline]
pub fn enc<A: Codec<H>, H: handle::Handle>(h: H) -> C<A, H> {
    A::enc(h)
}
