//! The integer constants of Open MPI 4.1's mpi.h, as tables of the core's number and the face's.
//!
//! Printed by a C program from the real header; error classes that only Open MPI 5 has are taken from its header.

use vmpi_abi::codec::Numbers;
use vmpi_core::consts;
use vmpi_core::errors::Class;

/// Special ranks.
pub const RANKS: Numbers =
    Numbers(&[(consts::ANY_SOURCE, -1), (consts::PROC_NULL, -2), (consts::ROOT, -4), (consts::UNDEFINED, -32766)]);

/// Special tags.
pub const TAGS: Numbers = Numbers(&[(consts::ANY_TAG, -1)]);

/// Results of comparing communicators or groups.
pub const COMPARISONS: Numbers =
    Numbers(&[(consts::IDENT, 0), (consts::CONGRUENT, 1), (consts::SIMILAR, 2), (consts::UNEQUAL, 3)]);

/// Kinds of virtual topologies.
pub const TOPOLOGIES: Numbers =
    Numbers(&[(consts::CART, 1), (consts::GRAPH, 2), (consts::DIST_GRAPH, 3), (consts::UNDEFINED, -32766)]);

/// Split types; Open MPI's own finer ones mean nothing to the core, but a host is what shares memory.
pub const SPLIT_TYPES: Numbers = Numbers(&[
    (consts::COMM_TYPE_SHARED, 0),
    (consts::UNDEFINED, -32766),
    (consts::COMM_TYPE_SHARED, OMPI_COMM_TYPE_HOST),
    (consts::COMM_TYPE_HW_UNGUIDED, 12), // Open MPI 5
    (consts::COMM_TYPE_HW_GUIDED, 13),
]);

/// How a datatype was made.
pub const COMBINERS: Numbers = Numbers(&[
    (consts::COMBINER_NAMED, 0),
    (consts::COMBINER_DUP, 1),
    (consts::COMBINER_CONTIGUOUS, 2),
    (consts::COMBINER_VECTOR, 3),
    (consts::COMBINER_HVECTOR, 5),
    (consts::COMBINER_INDEXED, 6),
    (consts::COMBINER_HINDEXED, 8),
    (consts::COMBINER_INDEXED_BLOCK, 9),
    (consts::COMBINER_HINDEXED_BLOCK, 18),
    (consts::COMBINER_STRUCT, 11),
    (consts::COMBINER_SUBARRAY, 12),
    (consts::COMBINER_DARRAY, 13),
    (consts::COMBINER_F90_REAL, 14),
    (consts::COMBINER_F90_COMPLEX, 15),
    (consts::COMBINER_F90_INTEGER, 16),
    (consts::COMBINER_RESIZED, 17),
]);

/// Distributions of an array.
pub const DISTRIBUTIONS: Numbers =
    Numbers(&[(consts::DISTRIBUTE_NONE, 2), (consts::DISTRIBUTE_BLOCK, 0), (consts::DISTRIBUTE_CYCLIC, 1)]);

/// The default argument of a distribution.
pub const DISTRIBUTION_ARGUMENTS: Numbers = Numbers(&[(consts::DISTRIBUTE_DFLT_DARG, -1)]);

/// Orders of an array.
pub const ORDERS: Numbers = Numbers(&[(consts::ORDER_C, 0), (consts::ORDER_FORTRAN, 1)]);

/// Levels of thread support.
pub const THREAD_LEVELS: Numbers = Numbers(&[
    (consts::THREAD_SINGLE, 0),
    (consts::THREAD_FUNNELED, 1),
    (consts::THREAD_SERIALIZED, 2),
    (consts::THREAD_MULTIPLE, 3),
]);

/// Classes of datatypes.
pub const TYPE_CLASSES: Numbers =
    Numbers(&[(consts::TYPECLASS_INTEGER, 1), (consts::TYPECLASS_REAL, 2), (consts::TYPECLASS_COMPLEX, 3)]);

/// Keys of predefined attributes.
pub const KEYVALS: Numbers = Numbers(&[
    (consts::KEYVAL_INVALID, -1),
    (consts::TAG_UB, 0),
    (consts::IO, 2),
    (consts::HOST, 1),
    (consts::WTIME_IS_GLOBAL, 3),
    (consts::APPNUM, 4),
    (consts::LASTUSEDCODE, 5),
    (consts::UNIVERSE_SIZE, 6),
    (consts::WIN_BASE, 7),
    (consts::WIN_DISP_UNIT, 9),
    (consts::WIN_SIZE, 8),
    (consts::WIN_CREATE_FLAVOR, 10),
    (consts::WIN_MODEL, 11),
]);

/// Kinds of locks.
pub const LOCKS: Numbers = Numbers(&[(consts::LOCK_EXCLUSIVE, 1), (consts::LOCK_SHARED, 2)]);

/// Assertions, as bits.
pub const WIN_ASSERTS: Numbers = Numbers(&[
    (consts::MODE_NOCHECK, 1),
    (consts::MODE_NOPRECEDE, 2),
    (consts::MODE_NOPUT, 4),
    (consts::MODE_NOSTORE, 8),
    (consts::MODE_NOSUCCEED, 16),
]);

/// How a window was made.
pub const WIN_FLAVORS: Numbers = Numbers(&[
    (consts::WIN_FLAVOR_CREATE, 1),
    (consts::WIN_FLAVOR_ALLOCATE, 2),
    (consts::WIN_FLAVOR_DYNAMIC, 3),
    (consts::WIN_FLAVOR_SHARED, 4),
]);

/// Memory models of windows.
pub const WIN_MODELS: Numbers = Numbers(&[(consts::WIN_UNIFIED, 0), (consts::WIN_SEPARATE, 1)]);

/// Error classes. At the end, classes that Open MPI lacks, as the nearest that it has.
pub const ERRORS: Numbers = Numbers(&[
    (Class::Success.0, 0),
    (Class::Buffer.0, 1),
    (Class::Count.0, 2),
    (Class::Type.0, 3),
    (Class::Tag.0, 4),
    (Class::Comm.0, 5),
    (Class::Rank.0, 6),
    (Class::Request.0, 7),
    (Class::Root.0, 8),
    (Class::Group.0, 9),
    (Class::Op.0, 10),
    (Class::Topology.0, 11),
    (Class::Dims.0, 12),
    (Class::Arg.0, 13),
    (Class::Unknown.0, 14),
    (Class::Truncate.0, 15),
    (Class::Other.0, 16),
    (Class::Intern.0, 17),
    (Class::Pending.0, 19),
    (Class::InStatus.0, 18),
    (Class::Access.0, 20),
    (Class::Amode.0, 21),
    (Class::Assert.0, 22),
    (Class::BadFile.0, 23),
    (Class::Base.0, 24),
    (Class::Conversion.0, 25),
    (Class::Disp.0, 26),
    (Class::DupDatarep.0, 27),
    (Class::FileExists.0, 28),
    (Class::FileInUse.0, 29),
    (Class::File.0, 30),
    (Class::InfoKey.0, 31),
    (Class::InfoNokey.0, 32),
    (Class::InfoValue.0, 33),
    (Class::Info.0, 34),
    (Class::Io.0, 35),
    (Class::Keyval.0, 36),
    (Class::Locktype.0, 37),
    (Class::Name.0, 38),
    (Class::NoMem.0, 39),
    (Class::NotSame.0, 40),
    (Class::NoSpace.0, 41),
    (Class::NoSuchFile.0, 42),
    (Class::Port.0, 43),
    (Class::Quota.0, 44),
    (Class::ReadOnly.0, 45),
    (Class::RmaAttach.0, 69),
    (Class::RmaConflict.0, 46),
    (Class::RmaRange.0, 68),
    (Class::RmaShared.0, 71),
    (Class::RmaSync.0, 47),
    (Class::Service.0, 48),
    (Class::Size.0, 49),
    (Class::Spawn.0, 50),
    (Class::UnsupportedDatarep.0, 51),
    (Class::UnsupportedOperation.0, 52),
    (Class::Win.0, 53),
    (Class::RmaFlavor.0, 70),
    (Class::ProcAborted.0, 74),
    (Class::Session.0, 78),
    (Class::ValueTooLarge.0, 79),
    (Class::Errhandler.0, 13),
    (Class::Abi.0, 16),
    (CORE_LASTCODE, 92),
]);

/// The core's MPI_ERR_LASTCODE: codes that the program added lie above, in the core as in Open MPI.
const CORE_LASTCODE: i32 = 0x3fff;

/// A split type of Open MPI's own.
const OMPI_COMM_TYPE_HOST: i32 = 9;

/// `MPI_T_ERR_CANNOT_INIT`.
pub const T_ERR_CANNOT_INIT: i32 = 56;
/// `MPI_T_ERR_NOT_INITIALIZED`.
pub const T_ERR_NOT_INITIALIZED: i32 = 55;
