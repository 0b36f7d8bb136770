//! The predefined datatypes: one row each.
//!
//! Sizes and alignments are those of x86-64 Linux, C and gfortran; the padding of the pair types is what a C compiler
//! gives the struct (compared with Debian's Open MPI and MPICH).

use crate::consts::dt;
use crate::handle::Datatype;

/// How the bytes of a basic element are to be read.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// Characters, bytes: no byte order.
    Raw,
    Integer,
    /// C `long`: eight bytes here, four in external32.
    Long,
    /// C `unsigned long`, the same without a sign.
    UnsignedLong,
    /// `wchar_t`: four bytes here, two in the standard's external32.
    Wide,
    Float,
    /// x87 extended precision in sixteen bytes; IEEE quadruple in external32.
    Extended,
}

/// One basic element: `parts` numbers (two for a complex one) of `bytes` bytes each.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Unit {
    pub form: Form,
    pub bytes: u8,
    pub parts: u8,
}

impl Unit {
    /// Bytes in memory.
    pub const fn size(self) -> u64 {
        self.bytes as u64 * self.parts as u64
    }
}

/// A row of the table.
pub struct Basic {
    pub handle: Datatype,
    /// What MPI_Type_get_name says at first.
    pub name: &'static str,
    pub first: Unit,
    /// The second half of a pair type.
    pub second: Option<Unit>,
}

const fn unit(form: Form, bytes: u8) -> Unit {
    Unit { form, bytes, parts: 1 }
}
const fn raw(bytes: u8) -> Unit {
    unit(Form::Raw, bytes)
}
const fn int(bytes: u8) -> Unit {
    unit(Form::Integer, bytes)
}
const fn float(bytes: u8) -> Unit {
    unit(Form::Float, bytes)
}
const fn complex(bytes: u8) -> Unit {
    Unit { form: Form::Float, bytes, parts: 2 }
}
const LONG: Unit = unit(Form::Long, 8);
const UNSIGNED_LONG: Unit = unit(Form::UnsignedLong, 8);
const WIDE: Unit = unit(Form::Wide, 4);
const EXTENDED: Unit = unit(Form::Extended, 16);
const EXTENDED_COMPLEX: Unit = Unit { form: Form::Extended, bytes: 16, parts: 2 };

macro_rules! table {
    ($($handle:ident $name:literal $first:expr $(, $second:expr)?;)*) => {
        /// Every predefined type but the markers MPI_LB and MPI_UB.
        pub static BASICS: &[Basic] = &[$(
            Basic { handle: dt::$handle, name: $name, first: $first, second: table!(@opt $($second)?) },
        )*];
    };
    (@opt) => { None };
    (@opt $e:expr) => { Some($e) };
}

table! {
    AINT "MPI_AINT" int(8);
    COUNT "MPI_COUNT" int(8);
    OFFSET "MPI_OFFSET" int(8);
    PACKED "MPI_PACKED" raw(1);
    SHORT "MPI_SHORT" int(2);
    INT "MPI_INT" int(4);
    LONG "MPI_LONG" LONG;
    LONG_LONG "MPI_LONG_LONG_INT" int(8);
    UNSIGNED_SHORT "MPI_UNSIGNED_SHORT" int(2);
    UNSIGNED "MPI_UNSIGNED" int(4);
    UNSIGNED_LONG "MPI_UNSIGNED_LONG" UNSIGNED_LONG;
    UNSIGNED_LONG_LONG "MPI_UNSIGNED_LONG_LONG" int(8);
    FLOAT "MPI_FLOAT" float(4);
    C_FLOAT_COMPLEX "MPI_C_COMPLEX" complex(4);
    CXX_FLOAT_COMPLEX "MPI_CXX_FLOAT_COMPLEX" complex(4);
    DOUBLE "MPI_DOUBLE" float(8);
    C_DOUBLE_COMPLEX "MPI_C_DOUBLE_COMPLEX" complex(8);
    CXX_DOUBLE_COMPLEX "MPI_CXX_DOUBLE_COMPLEX" complex(8);
    LOGICAL "MPI_LOGICAL" int(4);
    INTEGER "MPI_INTEGER" int(4);
    REAL "MPI_REAL" float(4);
    COMPLEX "MPI_COMPLEX" complex(4);
    DOUBLE_PRECISION "MPI_DOUBLE_PRECISION" float(8);
    DOUBLE_COMPLEX "MPI_DOUBLE_COMPLEX" complex(8);
    CHARACTER "MPI_CHARACTER" raw(1);
    LONG_DOUBLE "MPI_LONG_DOUBLE" EXTENDED;
    C_LONG_DOUBLE_COMPLEX "MPI_C_LONG_DOUBLE_COMPLEX" EXTENDED_COMPLEX;
    CXX_LONG_DOUBLE_COMPLEX "MPI_CXX_LONG_DOUBLE_COMPLEX" EXTENDED_COMPLEX;
    FLOAT_INT "MPI_FLOAT_INT" float(4), int(4);
    DOUBLE_INT "MPI_DOUBLE_INT" float(8), int(4);
    LONG_INT "MPI_LONG_INT" LONG, int(4);
    TWO_INT "MPI_2INT" int(4), int(4);
    SHORT_INT "MPI_SHORT_INT" int(2), int(4);
    LONG_DOUBLE_INT "MPI_LONG_DOUBLE_INT" EXTENDED, int(4);
    TWO_REAL "MPI_2REAL" float(4), float(4);
    TWO_DOUBLE_PRECISION "MPI_2DOUBLE_PRECISION" float(8), float(8);
    TWO_INTEGER "MPI_2INTEGER" int(4), int(4);
    TWO_COMPLEX "MPI_2COMPLEX" complex(4), complex(4);
    TWO_DOUBLE_COMPLEX "MPI_2DOUBLE_COMPLEX" complex(8), complex(8);
    C_BOOL "MPI_C_BOOL" raw(1);
    CXX_BOOL "MPI_CXX_BOOL" raw(1);
    WCHAR "MPI_WCHAR" WIDE;
    INT8_T "MPI_INT8_T" int(1);
    UINT8_T "MPI_UINT8_T" int(1);
    CHAR "MPI_CHAR" raw(1);
    SIGNED_CHAR "MPI_SIGNED_CHAR" raw(1);
    UNSIGNED_CHAR "MPI_UNSIGNED_CHAR" raw(1);
    BYTE "MPI_BYTE" raw(1);
    INT16_T "MPI_INT16_T" int(2);
    UINT16_T "MPI_UINT16_T" int(2);
    INT32_T "MPI_INT32_T" int(4);
    UINT32_T "MPI_UINT32_T" int(4);
    INT64_T "MPI_INT64_T" int(8);
    UINT64_T "MPI_UINT64_T" int(8);
    LOGICAL1 "MPI_LOGICAL1" int(1);
    INTEGER1 "MPI_INTEGER1" int(1);
    LOGICAL2 "MPI_LOGICAL2" int(2);
    INTEGER2 "MPI_INTEGER2" int(2);
    LOGICAL4 "MPI_LOGICAL4" int(4);
    INTEGER4 "MPI_INTEGER4" int(4);
    REAL2 "MPI_REAL2" float(2);
    COMPLEX4 "MPI_COMPLEX4" complex(2);
    SHORT_FLOAT "MPI_SHORT_FLOAT" float(2);
    C_SHORT_FLOAT_COMPLEX "MPI_C_SHORT_FLOAT_COMPLEX" complex(2);
    C_FLOAT16 "MPIX_C_FLOAT16" float(2);
    REAL4 "MPI_REAL4" float(4);
    LOGICAL8 "MPI_LOGICAL8" int(8);
    INTEGER8 "MPI_INTEGER8" int(8);
    REAL8 "MPI_REAL8" float(8);
    COMPLEX8 "MPI_COMPLEX8" complex(4);
    LOGICAL16 "MPI_LOGICAL16" int(16);
    INTEGER16 "MPI_INTEGER16" int(16);
    REAL16 "MPI_REAL16" float(16);
    COMPLEX16 "MPI_COMPLEX16" complex(8);
    COMPLEX32 "MPI_COMPLEX32" complex(16);
}
