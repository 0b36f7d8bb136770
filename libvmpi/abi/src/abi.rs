//! What distinguishes one C ABI of MPI from another: the codec that each face implements.
//!
//! The core speaks the MPI-5 standard ABI's numbers (`vmpi_core::consts`, `vmpi_core::handle`); a face translates at
//! the border. Nothing here knows what a function does.

use crate::numbers::Tables;
use std::ffi::{c_int, c_void};
use vmpi_core::errors::Class;
use vmpi_core::face::{Characters, Face};
use vmpi_core::handle;
use vmpi_core::status::Status;

/// Functions of [`Abi`] that are nothing but a table.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident = $table:ident.$method:ident;)*) => {$(
        $(#[$doc])*
        fn $name(number: c_int) -> i32 {
            Self::NUMBERS.$table.$method(number)
        }
    )*};
}

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

/// A face: constants, and the addresses that have a meaning; how handles are written is in [`Codec`].
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
    /// What `MPI_Get_library_version` begins with there: programs choose by it what they load (mpi4py's `get_vendor`). Empty for an ABI that is nobody's.
    const RELEASE: &'static str;
    /// What `MPI_Get_version` reports.
    const VERSION: (c_int, c_int);
    /// What `MPI_Abi_get_version` reports: -1, -1 where the ABI is not the standard's (MPI 5.0 section 20.3).
    const ABI_VERSION: (c_int, c_int) = (-1, -1);
    /// The C `MPI_Status`.
    type Status: StatusLayout;
    /// What the integer constants are called here. All the functions below that end in `_in` and `_out` follow from it.
    const NUMBERS: Tables;

    /// `MPI_BOTTOM`, `MPI_IN_PLACE` (also the Fortran sentinels' addresses) to 0 and 1.
    fn buf_in(buf: *const c_void) -> *const c_void;
    /// `MPI_UNWEIGHTED`, `MPI_WEIGHTS_EMPTY`: `Weights::*`.
    fn weights_in(weights: *const c_int) -> Weights;
    /// What C calls `MPI_IN_PLACE`, `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE` (`MPI_BOTTOM` is 0 everywhere).
    const IN_PLACE: usize;
    const STATUS_IGNORE: usize;
    /// C's `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY`.
    fn unweighted() -> *const c_int;
    fn weights_empty() -> *const c_int;
    /// Is this `MPI_STATUS_IGNORE` or `MPI_STATUSES_IGNORE` (also Fortran's sentinel addresses)?
    fn status_ignored(status: *const Self::Status) -> bool;

    /// `MPI_LOCK_*`, the bits of `MPI_MODE_NOCHECK` and its like, `MPI_WIN_FLAVOR_*`, `MPI_WIN_UNIFIED`.
    fn lock_in(lock: c_int) -> i32 {
        Self::NUMBERS.locks.to_core(lock)
    }
    fn win_assert_in(assert: c_int) -> i32 {
        Self::NUMBERS.win_asserts.bits_to_core(assert)
    }
    fn win_flavor_out(flavor: i32) -> c_int {
        Self::NUMBERS.win_flavors.to_face(flavor)
    }
    fn win_model_out(model: i32) -> c_int {
        Self::NUMBERS.win_models.to_face(model)
    }

    /// Longest strings, with the terminating NUL.
    const MAX_PROCESSOR_NAME: usize;
    const MAX_ERROR_STRING: usize;
    const MAX_OBJECT_NAME: usize;
    const MAX_INFO_KEY: usize;
    const MAX_INFO_VAL: usize;
    const MAX_LIBRARY_VERSION_STRING: usize;
    const MAX_PORT_NAME: usize;
    const BSEND_OVERHEAD: c_int;
    const MAX_STRINGTAG_LEN: usize;
    /// What this library allows where others do not.
    const FACE: Face = Face {
        logical_on_reals: false,
        bytes_are_bits: false,
        characters: Characters::Unsigned,
        refuses_aliases: false,
        handlers_choose: false,
    };
    /// May MPI_DATATYPE_NULL be the type of a message of no elements?
    const NULL_TYPE_OF_NOTHING: bool = false;
    /// The process sets that a session lists.
    const PSETS: &'static [&'static str] = &["mpi://WORLD", "mpi://SELF"];

    /// Is this `MPI_T_PVAR_ALL_HANDLES`?
    fn is_all_handles(handle: *const c_void) -> bool {
        handle as isize == -1
    }

    /// What C calls it.
    const BUFFER_AUTOMATIC: usize = vmpi_core::consts::BUFFER_AUTOMATIC;

    /// Is this `MPI_BUFFER_AUTOMATIC` (also Fortran's)?
    fn is_buffer_automatic(_buf: *const c_void) -> bool {
        false
    }

    /// `MPI_ANY_SOURCE`, `MPI_PROC_NULL`, `MPI_ROOT`, `MPI_UNDEFINED` in a rank argument.
    #[inline]
    fn rank_in(rank: c_int) -> i32 {
        if rank >= 0 { rank } else { Self::NUMBERS.ranks.to_core(rank) }
    }
    #[inline]
    fn rank_out(rank: i32) -> c_int {
        if rank >= 0 { rank } else { Self::NUMBERS.ranks.to_face(rank) }
    }
    /// `MPI_ANY_TAG`.
    #[inline]
    fn tag_in(tag: c_int) -> i32 {
        if tag >= 0 { tag } else { Self::NUMBERS.tags.to_core(tag) }
    }
    #[inline]
    fn tag_out(tag: i32) -> c_int {
        if tag >= 0 { tag } else { Self::NUMBERS.tags.to_face(tag) }
    }
    /// Error class (or user-defined code, passed through) to this face's number, and back.
    fn err_out(code: i32) -> c_int {
        Self::NUMBERS.errors.to_face(code)
    }
    fn err_in(code: c_int) -> i32 {
        Self::NUMBERS.errors.to_core(code)
    }

    /// `MPI_MODE_*` of files.
    fn amode_in(amode: c_int) -> i32 {
        Self::NUMBERS.file_modes.bits_to_core(amode)
    }
    fn amode_out(amode: i32) -> c_int {
        Self::NUMBERS.file_modes.bits_to_face(amode)
    }
    /// `MPI_DISPLACEMENT_CURRENT`; what only looks like the core's is no displacement at all.
    fn displacement_in(displacement: i64) -> i64 {
        match i32::try_from(displacement).map(|number| Self::NUMBERS.displacements.to_core(number)) {
            Ok(crate::numbers::MEANINGLESS) => i64::MIN,
            Ok(number) => number.into(),
            Err(_) => displacement,
        }
    }

    numbers! {
        /// `MPI_SEEK_*`.
        whence_in = seeks.to_core;
        /// `MPI_Comm_compare`'s result, topology kinds, split types, combiners, distributions, array orders, thread
        /// levels, type classes, keyvals of predefined attributes, and `MPI_KEYVAL_INVALID`.
        compare_out = comparisons.to_face;
        topology_out = topologies.to_face;
        split_type_in = split_types.to_core;
        combiner_out = combiners.to_face;
        distribution_in = distributions.to_core;
        distribution_out = distributions.to_face;
        /// `MPI_DISTRIBUTE_DFLT_DARG`.
        darg_in = dargs.to_core;
        darg_out = dargs.to_face;
        order_in = orders.to_core;
        order_out = orders.to_face;
        thread_in = thread_levels.to_core;
        thread_out = thread_levels.to_face;
        typeclass_in = type_classes.to_core;
        keyval_in = keyvals.to_core;
        keyval_out = keyvals.to_face;
    }

    /// Write everything but `MPI_ERROR`.
    ///
    /// # Safety
    /// `status` must be valid for writes and not one of the ignored sentinels.
    #[inline]
    unsafe fn status_write(status: *mut Self::Status, value: &Status) {
        // SAFETY: promised by the caller.
        let status = unsafe { &mut *status };
        status.set(Self::rank_out(value.source), Self::tag_out(value.tag), value.bytes, value.cancelled);
    }
    /// Write `MPI_ERROR` (already in this face's numbers).
    ///
    /// # Safety
    /// As `status_write`.
    #[inline]
    unsafe fn status_set_error(status: *mut Self::Status, code: c_int) {
        // SAFETY: promised by the caller.
        unsafe { (*status).set_error(code) };
    }
    /// # Safety
    /// `status` must be valid for reads.
    #[inline]
    unsafe fn status_read(status: *const Self::Status) -> Status {
        // SAFETY: promised by the caller.
        let raw = unsafe { (*status).get() };
        Status { source: Self::rank_in(raw.source), tag: Self::tag_in(raw.tag), error: Self::err_in(raw.error), ..raw }
    }
    /// As `status_read`, in the face's own numbers: a field that the program never set, as `MPI_ERROR` mostly, is not looked at, which a checker of memory
    /// would object to.
    ///
    /// # Safety
    /// As `status_read`.
    #[inline]
    unsafe fn status_raw(status: *const Self::Status) -> Status {
        // SAFETY: promised by the caller.
        unsafe { (*status).get() }
    }
    /// Write what `status_raw` has read, changed.
    ///
    /// # Safety
    /// As `status_write`.
    #[inline]
    unsafe fn status_set_raw(status: *mut Self::Status, raw: &Status) {
        // SAFETY: promised by the caller.
        unsafe { (*status).set(raw.source, raw.tag, raw.bytes, raw.cancelled) };
    }
    /// Length of a Fortran status in INTEGERs: in every face it has the same bytes as the C one.
    const F_STATUS_SIZE: usize = size_of::<Self::Status>() / size_of::<c_int>();

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

/// Where a face's C `MPI_Status` has what. Numbers are the face's own.
pub trait StatusLayout: Copy + 'static {
    /// Take over everything but the error code.
    fn set(&mut self, source: c_int, tag: c_int, bytes: u64, cancelled: bool);
    fn set_error(&mut self, code: c_int);
    /// The fields, still in the face's numbers.
    fn get(&self) -> Status;
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
