//! Constants of the MPI-5 standard ABI; the core speaks these numbers and every face translates to them.
//!
//! Source: MPI 5.0, chapter 20 (Application Binary Interface) and its constants annex.

#![allow(missing_docs)]

/// Predefined datatypes.
pub mod dt {
    use crate::handle::Datatype;
    pub const AINT: Datatype = Datatype(0x201);
    pub const COUNT: Datatype = Datatype(0x202);
    pub const OFFSET: Datatype = Datatype(0x203);
    pub const PACKED: Datatype = Datatype(0x207);
    pub const SHORT: Datatype = Datatype(0x208);
    pub const INT: Datatype = Datatype(0x209);
    pub const LONG: Datatype = Datatype(0x20a);
    pub const LONG_LONG: Datatype = Datatype(0x20b);
    pub const UNSIGNED_SHORT: Datatype = Datatype(0x20c);
    pub const UNSIGNED: Datatype = Datatype(0x20d);
    pub const UNSIGNED_LONG: Datatype = Datatype(0x20e);
    pub const UNSIGNED_LONG_LONG: Datatype = Datatype(0x20f);
    pub const FLOAT: Datatype = Datatype(0x210);
    pub const C_FLOAT_COMPLEX: Datatype = Datatype(0x212);
    pub const CXX_FLOAT_COMPLEX: Datatype = Datatype(0x213);
    pub const DOUBLE: Datatype = Datatype(0x214);
    pub const C_DOUBLE_COMPLEX: Datatype = Datatype(0x216);
    pub const CXX_DOUBLE_COMPLEX: Datatype = Datatype(0x217);
    pub const LOGICAL: Datatype = Datatype(0x218);
    pub const INTEGER: Datatype = Datatype(0x219);
    pub const REAL: Datatype = Datatype(0x21a);
    pub const COMPLEX: Datatype = Datatype(0x21b);
    pub const DOUBLE_PRECISION: Datatype = Datatype(0x21c);
    pub const DOUBLE_COMPLEX: Datatype = Datatype(0x21d);
    pub const CHARACTER: Datatype = Datatype(0x21e);
    pub const LONG_DOUBLE: Datatype = Datatype(0x220);
    pub const C_LONG_DOUBLE_COMPLEX: Datatype = Datatype(0x224);
    pub const CXX_LONG_DOUBLE_COMPLEX: Datatype = Datatype(0x225);
    pub const FLOAT_INT: Datatype = Datatype(0x228);
    pub const DOUBLE_INT: Datatype = Datatype(0x229);
    pub const LONG_INT: Datatype = Datatype(0x22a);
    pub const TWO_INT: Datatype = Datatype(0x22b);
    pub const SHORT_INT: Datatype = Datatype(0x22c);
    pub const LONG_DOUBLE_INT: Datatype = Datatype(0x22d);
    pub const TWO_REAL: Datatype = Datatype(0x230);
    pub const TWO_DOUBLE_PRECISION: Datatype = Datatype(0x231);
    pub const TWO_INTEGER: Datatype = Datatype(0x232);
    pub const C_BOOL: Datatype = Datatype(0x238);
    pub const CXX_BOOL: Datatype = Datatype(0x239);
    pub const WCHAR: Datatype = Datatype(0x23c);
    pub const INT8_T: Datatype = Datatype(0x240);
    pub const UINT8_T: Datatype = Datatype(0x241);
    pub const CHAR: Datatype = Datatype(0x243);
    pub const SIGNED_CHAR: Datatype = Datatype(0x244);
    pub const UNSIGNED_CHAR: Datatype = Datatype(0x245);
    pub const BYTE: Datatype = Datatype(0x247);
    pub const INT16_T: Datatype = Datatype(0x248);
    pub const UINT16_T: Datatype = Datatype(0x249);
    pub const INT32_T: Datatype = Datatype(0x250);
    pub const UINT32_T: Datatype = Datatype(0x251);
    pub const INT64_T: Datatype = Datatype(0x258);
    pub const UINT64_T: Datatype = Datatype(0x259);
    pub const LOGICAL1: Datatype = Datatype(0x2c0);
    pub const INTEGER1: Datatype = Datatype(0x2c1);
    pub const LOGICAL2: Datatype = Datatype(0x2c8);
    pub const INTEGER2: Datatype = Datatype(0x2c9);
    pub const REAL2: Datatype = Datatype(0x2ca);
    pub const LOGICAL4: Datatype = Datatype(0x2d0);
    pub const INTEGER4: Datatype = Datatype(0x2d1);
    pub const REAL4: Datatype = Datatype(0x2d2);
    pub const COMPLEX4: Datatype = Datatype(0x2d3);
    pub const LOGICAL8: Datatype = Datatype(0x2d8);
    pub const INTEGER8: Datatype = Datatype(0x2d9);
    pub const REAL8: Datatype = Datatype(0x2da);
    pub const COMPLEX8: Datatype = Datatype(0x2db);
    pub const LOGICAL16: Datatype = Datatype(0x2e0);
    pub const INTEGER16: Datatype = Datatype(0x2e1);
    pub const REAL16: Datatype = Datatype(0x2e2);
    pub const COMPLEX16: Datatype = Datatype(0x2e3);
    pub const COMPLEX32: Datatype = Datatype(0x2eb);
    // Not in the standard ABI, but in Open MPI's and MPICH's headers.
    pub const LB: Datatype = Datatype(0x2f0);
    pub const UB: Datatype = Datatype(0x2f1);
    pub const TWO_COMPLEX: Datatype = Datatype(0x2f2);
    pub const TWO_DOUBLE_COMPLEX: Datatype = Datatype(0x2f3);
    // Half precision in C: Open MPI 5's MPIX_SHORT_FLOAT and MPIX_C_SHORT_FLOAT_COMPLEX, MPICH 5's MPIX_C_FLOAT16.
    pub const SHORT_FLOAT: Datatype = Datatype(0x2f4);
    pub const C_SHORT_FLOAT_COMPLEX: Datatype = Datatype(0x2f5);
    pub const C_FLOAT16: Datatype = Datatype(0x2f6);
}

/// Predefined reduction operations.
pub mod op {
    use crate::handle::Op;
    pub const SUM: Op = Op(0x21);
    pub const MIN: Op = Op(0x22);
    pub const MAX: Op = Op(0x23);
    pub const PROD: Op = Op(0x24);
    pub const BAND: Op = Op(0x28);
    pub const BOR: Op = Op(0x29);
    pub const BXOR: Op = Op(0x2a);
    pub const LAND: Op = Op(0x30);
    pub const LOR: Op = Op(0x31);
    pub const LXOR: Op = Op(0x32);
    pub const MINLOC: Op = Op(0x38);
    pub const MAXLOC: Op = Op(0x39);
    pub const REPLACE: Op = Op(0x3c);
    pub const NO_OP: Op = Op(0x3d);
}

pub const F_STATUS_SIZE: i32 = 8;
pub const F_SOURCE: i32 = 0;
pub const F_TAG: i32 = 1;
pub const F_ERROR: i32 = 2;
// File Open Modes
pub const MODE_APPEND: i32 = 1;
pub const MODE_CREATE: i32 = 2;
pub const MODE_DELETE_ON_CLOSE: i32 = 4;
pub const MODE_EXCL: i32 = 8;
pub const MODE_RDONLY: i32 = 16;
pub const MODE_RDWR: i32 = 32;
pub const MODE_SEQUENTIAL: i32 = 64;
pub const MODE_UNIQUE_OPEN: i32 = 128;
pub const MODE_WRONLY: i32 = 256;
// Window Assertion Modes
pub const MODE_NOCHECK: i32 = 1024;
pub const MODE_NOPRECEDE: i32 = 2048;
pub const MODE_NOPUT: i32 = 4096;
pub const MODE_NOSTORE: i32 = 8192;
pub const MODE_NOSUCCEED: i32 = 16384;
// Wildcard values - must be negative
pub const ANY_SOURCE: i32 = -1;
pub const ANY_TAG: i32 = -2;
// Rank sentinels - must be negative
pub const PROC_NULL: i32 = -3;
pub const ROOT: i32 = -4;
// Multi-purpose sentinel - must be negative
pub const UNDEFINED: i32 = -32766;
// Thread Support - monotonic values, SINGLE < FUNNELED < SERIALIZED < MULTIPLE.
pub const THREAD_SINGLE: i32 = 0;
pub const THREAD_FUNNELED: i32 = 1024;
pub const THREAD_SERIALIZED: i32 = 2048;
pub const THREAD_MULTIPLE: i32 = 4096;
// Array Datatype Order
pub const ORDER_C: i32 = 0xC;
pub const ORDER_FORTRAN: i32 = 0xF;
// Array Datatype Distribution
pub const DISTRIBUTE_NONE: i32 = 16;
pub const DISTRIBUTE_BLOCK: i32 = 17;
pub const DISTRIBUTE_CYCLIC: i32 = 18;
// Not the standard ABI's number (19), which is a block size that programs may ask for.
pub const DISTRIBUTE_DFLT_DARG: i32 = -19;
// Datatype Decoding Combiners
pub const COMBINER_NAMED: i32 = 101;
pub const COMBINER_DUP: i32 = 102;
pub const COMBINER_CONTIGUOUS: i32 = 103;
pub const COMBINER_VECTOR: i32 = 104;
pub const COMBINER_HVECTOR: i32 = 105;
pub const COMBINER_INDEXED: i32 = 106;
pub const COMBINER_HINDEXED: i32 = 107;
pub const COMBINER_INDEXED_BLOCK: i32 = 108;
pub const COMBINER_HINDEXED_BLOCK: i32 = 109;
pub const COMBINER_STRUCT: i32 = 110;
pub const COMBINER_SUBARRAY: i32 = 111;
pub const COMBINER_DARRAY: i32 = 112;
pub const COMBINER_F90_REAL: i32 = 113;
pub const COMBINER_F90_COMPLEX: i32 = 114;
pub const COMBINER_F90_INTEGER: i32 = 115;
pub const COMBINER_RESIZED: i32 = 116;
pub const COMBINER_VALUE_INDEX: i32 = 117;
// Fortran Datatype Matching
pub const TYPECLASS_LOGICAL: i32 = 191;
pub const TYPECLASS_INTEGER: i32 = 192;
pub const TYPECLASS_REAL: i32 = 193;
pub const TYPECLASS_COMPLEX: i32 = 194;
// Communicator and Group Comparisons
pub const IDENT: i32 = 201;
pub const CONGRUENT: i32 = 202;
pub const SIMILAR: i32 = 203;
pub const UNEQUAL: i32 = 204;
// Communicator Virtual Topology Types
pub const CART: i32 = 211;
pub const GRAPH: i32 = 212;
pub const DIST_GRAPH: i32 = 213;
// Communicator Split Types
pub const COMM_TYPE_SHARED: i32 = 221;
pub const COMM_TYPE_HW_UNGUIDED: i32 = 222;
pub const COMM_TYPE_HW_GUIDED: i32 = 223;
pub const COMM_TYPE_RESOURCE_GUIDED: i32 = 224;
// Window Lock Types
pub const LOCK_EXCLUSIVE: i32 = 301;
pub const LOCK_SHARED: i32 = 302;
// Window Create Flavors
pub const WIN_FLAVOR_CREATE: i32 = 311;
pub const WIN_FLAVOR_ALLOCATE: i32 = 312;
pub const WIN_FLAVOR_DYNAMIC: i32 = 313;
pub const WIN_FLAVOR_SHARED: i32 = 314;
// Window Memory Models
pub const WIN_UNIFIED: i32 = 321;
pub const WIN_SEPARATE: i32 = 322;
// File Positioning
pub const SEEK_CUR: i32 = 401;
pub const SEEK_END: i32 = 402;
pub const SEEK_SET: i32 = 403;
// Invalid Attribute Key
pub const KEYVAL_INVALID: i32 = 0;
// Communicator
pub const TAG_UB: i32 = 501;
pub const IO: i32 = 502;
pub const HOST: i32 = 503;
pub const WTIME_IS_GLOBAL: i32 = 504;
pub const APPNUM: i32 = 505;
pub const LASTUSEDCODE: i32 = 506;
pub const UNIVERSE_SIZE: i32 = 507;
// Window
pub const WIN_BASE: i32 = 601;
pub const WIN_DISP_UNIT: i32 = 602;
pub const WIN_SIZE: i32 = 603;
pub const WIN_CREATE_FLAVOR: i32 = 604;
pub const WIN_MODEL: i32 = 605;
pub const T_VERBOSITY_USER_BASIC: i32 = 0x09;
pub const T_VERBOSITY_USER_DETAIL: i32 = 0x0a;
pub const T_VERBOSITY_USER_ALL: i32 = 0x0c;
pub const T_VERBOSITY_TUNER_BASIC: i32 = 0x11;
pub const T_VERBOSITY_TUNER_DETAIL: i32 = 0x12;
pub const T_VERBOSITY_TUNER_ALL: i32 = 0x14;
pub const T_VERBOSITY_MPIDEV_BASIC: i32 = 0x21;
pub const T_VERBOSITY_MPIDEV_DETAIL: i32 = 0x22;
pub const T_VERBOSITY_MPIDEV_ALL: i32 = 0x24;
pub const T_BIND_NO_OBJECT: i32 = 1;
pub const T_BIND_MPI_COMM: i32 = 2;
pub const T_BIND_MPI_DATATYPE: i32 = 3;
pub const T_BIND_MPI_ERRHANDLER: i32 = 4;
pub const T_BIND_MPI_FILE: i32 = 5;
pub const T_BIND_MPI_GROUP: i32 = 6;
pub const T_BIND_MPI_OP: i32 = 7;
pub const T_BIND_MPI_REQUEST: i32 = 8;
pub const T_BIND_MPI_WIN: i32 = 9;
pub const T_BIND_MPI_MESSAGE: i32 = 10;
pub const T_BIND_MPI_INFO: i32 = 11;
pub const T_BIND_MPI_SESSION: i32 = 12;
pub const T_SCOPE_CONSTANT: i32 = 1;
pub const T_SCOPE_READONLY: i32 = 2;
pub const T_SCOPE_LOCAL: i32 = 3;
pub const T_SCOPE_GROUP: i32 = 4;
pub const T_SCOPE_GROUP_EQ: i32 = 5;
pub const T_SCOPE_ALL: i32 = 6;
pub const T_SCOPE_ALL_EQ: i32 = 7;
pub const T_PVAR_CLASS_STATE: i32 = 1;
pub const T_PVAR_CLASS_LEVEL: i32 = 2;
pub const T_PVAR_CLASS_SIZE: i32 = 3;
pub const T_PVAR_CLASS_PERCENTAGE: i32 = 4;
pub const T_PVAR_CLASS_HIGHWATERMARK: i32 = 5;
pub const T_PVAR_CLASS_LOWWATERMARK: i32 = 6;
pub const T_PVAR_CLASS_COUNTER: i32 = 7;
pub const T_PVAR_CLASS_AGGREGATE: i32 = 8;
pub const T_PVAR_CLASS_TIMER: i32 = 9;
pub const T_PVAR_CLASS_GENERIC: i32 = 10;
// Error codes of the tool interface
pub const T_CB_REQUIRE_NONE: i32 = 0x00;
pub const T_CB_REQUIRE_MPI_RESTRICTED: i32 = 0x03;
pub const T_CB_REQUIRE_THREAD_SAFE: i32 = 0x0F;
pub const T_CB_REQUIRE_ASYNC_SIGNAL_SAFE: i32 = 0x3F;
pub const T_SOURCE_ORDERED: i32 = 1;
pub const T_SOURCE_UNORDERED: i32 = 2;
pub const T_ERR_CANNOT_INIT: i32 = 1001;
pub const T_ERR_NOT_ACCESSIBLE: i32 = 1002;
pub const T_ERR_NOT_INITIALIZED: i32 = 1003;
pub const T_ERR_NOT_SUPPORTED: i32 = 1004;
pub const T_ERR_MEMORY: i32 = 1005;
pub const T_ERR_INVALID: i32 = 1006;
pub const T_ERR_INVALID_INDEX: i32 = 1007;
pub const T_ERR_INVALID_ITEM: i32 = 1008;
pub const T_ERR_INVALID_SESSION: i32 = 1009;
pub const T_ERR_INVALID_HANDLE: i32 = 1010;
pub const T_ERR_INVALID_NAME: i32 = 1011;
pub const T_ERR_OUT_OF_HANDLES: i32 = 1012;
pub const T_ERR_OUT_OF_SESSIONS: i32 = 1013;
pub const T_ERR_CVAR_SET_NOT_NOW: i32 = 1014;
pub const T_ERR_CVAR_SET_NEVER: i32 = 1015;
pub const T_ERR_PVAR_NO_WRITE: i32 = 1016;
pub const T_ERR_PVAR_NO_STARTSTOP: i32 = 1017;
pub const T_ERR_PVAR_NO_ATOMIC: i32 = 1018;

/// `MPI_BOTTOM`, `MPI_IN_PLACE`, `MPI_BUFFER_AUTOMATIC` as buffer addresses.
pub const BOTTOM: usize = 0;
pub const IN_PLACE: usize = 1;
pub const BUFFER_AUTOMATIC: usize = 2;
pub const DISPLACEMENT_CURRENT: i64 = -1;

/// The largest tag that a program may use (MPI_TAG_UB); the bit above is for communicator construction.
pub const TAG_UB_VALUE: i32 = (1 << 30) - 1;
