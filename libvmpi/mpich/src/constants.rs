//! The integer constants of MPICH 4.0's mpi.h, as tables of the core's number and the face's.
//!
//! Printed by a C program from the real header; what only MPICH 5 has is taken from its header, which else agrees.

use vmpi_abi::codec::Numbers;
use vmpi_core::consts;
use vmpi_core::errors::Class;

/// Special ranks.
pub const RANKS: Numbers =
    Numbers(&[(consts::ANY_SOURCE, -2), (consts::PROC_NULL, -1), (consts::ROOT, -3), (consts::UNDEFINED, -32766)]);

/// Special tags.
pub const TAGS: Numbers = Numbers(&[(consts::ANY_TAG, -1)]);

/// Results of comparing communicators or groups.
pub const COMPARISONS: Numbers =
    Numbers(&[(consts::IDENT, 0), (consts::CONGRUENT, 1), (consts::SIMILAR, 2), (consts::UNEQUAL, 3)]);

/// Kinds of virtual topologies.
pub const TOPOLOGIES: Numbers =
    Numbers(&[(consts::CART, 2), (consts::GRAPH, 1), (consts::DIST_GRAPH, 3), (consts::UNDEFINED, -32766)]);

/// Split types.
pub const SPLIT_TYPES: Numbers = Numbers(&[
    (consts::COMM_TYPE_SHARED, 1),
    (consts::COMM_TYPE_HW_UNGUIDED, 3),
    (consts::COMM_TYPE_HW_GUIDED, 2),
    (consts::COMM_TYPE_RESOURCE_GUIDED, 4), // MPICH 5
    (consts::UNDEFINED, -32766),
]);

/// How a datatype was made.
pub const COMBINERS: Numbers = Numbers(&[
    (consts::COMBINER_NAMED, 1),
    (consts::COMBINER_DUP, 2),
    (consts::COMBINER_CONTIGUOUS, 3),
    (consts::COMBINER_VECTOR, 4),
    (consts::COMBINER_HVECTOR, 6),
    (consts::COMBINER_INDEXED, 7),
    (consts::COMBINER_HINDEXED, 9),
    (consts::COMBINER_INDEXED_BLOCK, 10),
    (consts::COMBINER_HINDEXED_BLOCK, 19),
    (consts::COMBINER_STRUCT, 12),
    (consts::COMBINER_SUBARRAY, 13),
    (consts::COMBINER_DARRAY, 14),
    (consts::COMBINER_F90_REAL, 15),
    (consts::COMBINER_F90_COMPLEX, 16),
    (consts::COMBINER_F90_INTEGER, 17),
    (consts::COMBINER_RESIZED, 18),
    (consts::COMBINER_VALUE_INDEX, 20),
]);

/// Distributions of an array.
pub const DISTRIBUTIONS: Numbers =
    Numbers(&[(consts::DISTRIBUTE_NONE, 123), (consts::DISTRIBUTE_BLOCK, 121), (consts::DISTRIBUTE_CYCLIC, 122)]);

/// The default argument of a distribution.
pub const DISTRIBUTION_ARGUMENTS: Numbers = Numbers(&[(consts::DISTRIBUTE_DFLT_DARG, -49767)]);

/// Orders of an array.
pub const ORDERS: Numbers = Numbers(&[(consts::ORDER_C, 56), (consts::ORDER_FORTRAN, 57)]);

/// Levels of thread support.
pub const THREAD_LEVELS: Numbers = Numbers(&[
    (consts::THREAD_SINGLE, 0),
    (consts::THREAD_FUNNELED, 1),
    (consts::THREAD_SERIALIZED, 2),
    (consts::THREAD_MULTIPLE, 3),
]);

/// Classes of datatypes.
pub const TYPE_CLASSES: Numbers =
    Numbers(&[(consts::TYPECLASS_INTEGER, 2), (consts::TYPECLASS_REAL, 1), (consts::TYPECLASS_COMPLEX, 3)]);

/// Keys of predefined attributes. The second ones are those that Fortran uses.
pub const KEYVALS: Numbers = Numbers(&[
    (consts::KEYVAL_INVALID, 0x24000000),
    (consts::TAG_UB, 0x64400001),
    (consts::IO, 0x64400005),
    (consts::HOST, 0x64400003),
    (consts::WTIME_IS_GLOBAL, 0x64400007),
    (consts::APPNUM, 0x6440000d),
    (consts::LASTUSEDCODE, 0x6440000b),
    (consts::UNIVERSE_SIZE, 0x64400009),
    (consts::WIN_BASE, 0x66000001),
    (consts::WIN_DISP_UNIT, 0x66000005),
    (consts::WIN_SIZE, 0x66000003),
    (consts::WIN_CREATE_FLAVOR, 0x66000007),
    (consts::WIN_MODEL, 0x66000009),
    (consts::TAG_UB, 0x64400002),
    (consts::IO, 0x64400006),
    (consts::HOST, 0x64400004),
    (consts::WTIME_IS_GLOBAL, 0x64400008),
    (consts::APPNUM, 0x6440000e),
    (consts::LASTUSEDCODE, 0x6440000c),
    (consts::UNIVERSE_SIZE, 0x6440000a),
    (consts::WIN_BASE, 0x66000002),
    (consts::WIN_DISP_UNIT, 0x66000006),
    (consts::WIN_SIZE, 0x66000004),
    (consts::WIN_CREATE_FLAVOR, 0x66000008),
    (consts::WIN_MODEL, 0x6600000a),
]);

/// Error classes.
pub const ERRORS: Numbers = Numbers(&[
    (Class::Success.0, 0),
    (Class::Buffer.0, 1),
    (Class::Count.0, 2),
    (Class::Type.0, 3),
    (Class::Tag.0, 4),
    (Class::Comm.0, 5),
    (Class::Rank.0, 6),
    (Class::Request.0, 19),
    (Class::Root.0, 7),
    (Class::Group.0, 8),
    (Class::Op.0, 9),
    (Class::Topology.0, 10),
    (Class::Dims.0, 11),
    (Class::Arg.0, 12),
    (Class::Unknown.0, 13),
    (Class::Truncate.0, 14),
    (Class::Other.0, 15),
    (Class::Intern.0, 16),
    (Class::Pending.0, 18),
    (Class::InStatus.0, 17),
    (Class::Access.0, 20),
    (Class::Amode.0, 21),
    (Class::Assert.0, 53),
    (Class::BadFile.0, 22),
    (Class::Base.0, 46),
    (Class::Conversion.0, 23),
    (Class::Disp.0, 52),
    (Class::DupDatarep.0, 24),
    (Class::FileExists.0, 25),
    (Class::FileInUse.0, 26),
    (Class::File.0, 27),
    (Class::InfoKey.0, 29),
    (Class::InfoNokey.0, 31),
    (Class::InfoValue.0, 30),
    (Class::Info.0, 28),
    (Class::Io.0, 32),
    (Class::Keyval.0, 48),
    (Class::Locktype.0, 47),
    (Class::Name.0, 33),
    (Class::NoMem.0, 34),
    (Class::NotSame.0, 35),
    (Class::NoSpace.0, 36),
    (Class::NoSuchFile.0, 37),
    (Class::Port.0, 38),
    (Class::Quota.0, 39),
    (Class::ReadOnly.0, 40),
    (Class::RmaAttach.0, 56),
    (Class::RmaConflict.0, 49),
    (Class::RmaRange.0, 55),
    (Class::RmaShared.0, 57),
    (Class::RmaSync.0, 50),
    (Class::Service.0, 41),
    (Class::Size.0, 51),
    (Class::Spawn.0, 42),
    (Class::UnsupportedDatarep.0, 43),
    (Class::UnsupportedOperation.0, 44),
    (Class::Win.0, 45),
    (Class::RmaFlavor.0, 58),
    (Class::ProcAborted.0, 76),
    (Class::ValueTooLarge.0, 77),
    (Class::Session.0, 75),
    (Class::Errhandler.0, 80),
    (Class::Abi.0, 81),
    (CORE_LASTCODE, DYNAMIC_CODE - 1),
]);

/// The core's MPI_ERR_LASTCODE: codes that the program added lie above.
pub const CORE_LASTCODE: i32 = 0x3fff;

/// The bit of error codes that the program added; MPICH's MPI_ERR_LASTCODE is one less.
pub const DYNAMIC_CODE: i32 = 0x4000_0000;

/// `MPI_T_ERR_CANNOT_INIT`.
pub const T_ERR_CANNOT_INIT: i32 = 61;
/// `MPI_T_ERR_NOT_INITIALIZED`.
pub const T_ERR_NOT_INITIALIZED: i32 = 60;
